"""A sentence, what it rests on, and tables, as text and as HTML."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from fpbench.base.text import escape_unprintable, show_lines

_LEAST_WIDTH = 60
_LEAST_WORDS = 24
"""Least width of a table's first column, in characters."""


class LayoutPart(NamedTuple):
    """A table with its title and notes."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    """Words in the first column, and numbers in the others."""
    notes: Sequence[str]


class LayoutPage(NamedTuple):
    """What is laid out."""

    verdict: str
    passes: bool
    findings: Sequence[tuple[str, str]]
    """A name and a sentence each."""
    parts: Sequence[LayoutPart]


def lay_out_text(page: LayoutPage, width: int) -> str:
    """Text in lines of at most `width` characters; tables that cannot be so narrow exceed it."""
    width = max(width, _LEAST_WIDTH)
    lines = textwrap.wrap(page.verdict, width)
    room = max(len(name) for name, _ in page.findings)
    for name, words in page.findings:
        start = f"  {name.ljust(room)}  "
        lines += textwrap.wrap(
            words, width, initial_indent=start, subsequent_indent=" " * len(start)
        )
    for part in page.parts:
        lines += ["", *textwrap.wrap(part.title, width), *_lay_out_table(part, width)]
        for note in part.notes:
            lines += textwrap.wrap(note, width, initial_indent="  ", subsequent_indent="    ")
    return show_lines(lines)


def lay_out_html(page: LayoutPage) -> str:
    """The same for notebooks; all text is escaped."""
    colour = "#1a7f37" if page.passes else "#b3261e"
    html = [f'<p style="color:{colour}"><b>{escape(page.verdict)}</b></p>', "<ul>"]
    html += [f"<li><b>{escape(name)}</b>: {escape(words)}</li>" for name, words in page.findings]
    html.append("</ul>")
    for part in page.parts:
        html.append(f"<p><b>{escape(part.title)}</b></p>")
        if part.rows:
            heads = "".join(f"<th>{escape(head)}</th>" for head in part.heads)
            html.append(f"<table><tr>{heads}</tr>")
            for row in part.rows:
                cells = "".join(f"<td>{escape(cell)}</td>" for cell in row)
                html.append(f"<tr>{cells}</tr>")
            html.append("</table>")
        html += [f"<p>{escape(note)}</p>" for note in part.notes]
    return escape_unprintable("\n".join(html), but="\n")


def _lay_out_table(part: LayoutPart, width: int) -> list[str]:
    """Lines of a table; text that does not fit is wrapped."""
    if not part.rows:
        return []
    rows = [part.heads, *part.rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    room = width - 2 - sum(own + 2 for own in widths[1:])
    widths[0] = min(widths[0], max(room, _LEAST_WORDS))
    lines = []
    for words, *numbers in rows:
        first, *more = textwrap.wrap(words, widths[0], subsequent_indent="  ")
        cells = "".join(
            f"  {cell.rjust(own)}" for cell, own in zip(numbers, widths[1:], strict=True)
        )
        lines += [f"  {first.ljust(widths[0])}{cells}", *(f"  {line}" for line in more)]
    return lines
