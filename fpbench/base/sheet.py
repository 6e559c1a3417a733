"""Tables as text: plain, Markdown, LaTeX, HTML. Their content is escaped.

Control characters are spelt out, in files as well: no table needs them.
"""

from __future__ import annotations

import textwrap
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import groupby, zip_longest
from typing import Any, NamedTuple, Protocol, TypeVar

from fpbench.base.text import escape_unprintable, show_lines

_LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
    "\n": " ", "\r": " ",
})  # fmt: skip
_MARKDOWN = str.maketrans({
    "\\": r"\\", "|": r"\|", "*": r"\*", "_": r"\_", "`": r"\`", "[": r"\[", "]": r"\]",
    "<": "&lt;", ">": "&gt;", "&": "&amp;", "\n": " ", "\r": " ", "#": r"\#", "~": r"\~",
})  # fmt: skip


LABEL_WIDTH = 14
"""Least width of columns of words, in letters, at which a table fits a terminal of 80; a label of
this length or less is not broken between its words either."""
WIDE_LABEL = 22
"""Their width if the most important columns still fit: the length of our longest name."""
NARROW_LABEL = 8
"""Their width if numbers would be cut otherwise."""


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    heading: str
    number: bool = True
    """Whether its values are numbers, which are aligned to the right."""
    wraps: bool = False
    """Whether its heading may be broken between words."""
    whole: bool = False
    """Whether its words are never broken, as numbers are not."""


class Row(NamedTuple):
    """A line of a table as text."""

    kind: str
    """`heading`, `rule`, `section` or `row`."""
    parts: tuple[str, ...]
    """Parts of its cells, aligned."""
    cells: tuple[str, ...]
    """The whole cells that the parts are of."""


@dataclass(frozen=True)
class Sheet:
    """A table as it is shown."""

    title: str
    about: str
    """What all lines share."""
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    """Why cells failed."""
    unshown: int = 0
    """Lines that were left out."""
    spare: tuple[str, ...] = ()
    """Headings of columns that a narrow terminal leaves out, in this order."""
    telling: frozenset[str] = frozenset()
    """Headings of spare columns that stay if broken labels make room for them."""
    sections: tuple[str, ...] = ()
    """Headings of columns that a terminal shows as lines between the rows that share them."""
    opening: tuple[str, ...] = ()
    """Sentences above the table."""
    explained: tuple[tuple[str, str], ...] = ()
    """Headings of columns, and what they mean."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """All sentences below the table."""
        return (
            *filter(None, [self.legend]),
            *self.all_notes,
            *(f"warning: {text}" for text in self.warnings),
            *(f"failed: {text}" for text in self.failures),
        )

    @property
    def legend(self) -> str:
        """What the shown headings mean, as one line; empty without any to explain."""
        headings = {column.heading for column in self.columns}
        return "; ".join(f"{name}: {text}" for name, text in self.explained if name in headings)

    @property
    def all_notes(self) -> tuple[str, ...]:
        """The notes, and how many lines are not shown."""
        more = [f"{self.unshown:,} more line{'s' * (self.unshown != 1)}"] if self.unshown else []
        return (*self.notes, *more)

    def lay_out(self, room: int) -> tuple[Sheet, list[Row]]:
        """The table without columns that are sections or do not fit, and the lines of its rows.

        `room`: letters that a line may have.
        """
        sheet, sections = self._divide()
        sheet, widths = sheet.fit(room)
        numbers = [column.number for column in sheet.columns]
        headings = tuple(column.heading for column in sheet.columns)
        lines = [
            Row("heading", parts, ()) for parts in align_row(headings, numbers, widths, bottom=True)
        ]
        lines.append(Row("rule", ("─" * (sum(widths) + len(widths) - 1),), ()))
        for place, cells in enumerate(sheet.rows):
            if place in sections:
                lines.append(Row("section", (sections[place],), ()))
            lines += [Row("row", parts, cells) for parts in align_row(cells, numbers, widths)]
        return sheet, lines

    def _divide(self) -> tuple[Sheet, dict[int, str]]:
        """The table without the columns of its sections; the sections in words by first rows."""
        headings = [column.heading for column in self.columns]
        apart = [headings.index(heading) for heading in self.sections]
        if not apart:
            return self, {}
        kept = [i for i in range(len(headings)) if i not in apart]
        words = [self._name_section(row, apart) for row in self.rows]
        runs = groupby(range(len(words)), words.__getitem__)
        return self._keep_columns(kept, sections=()), {next(rows): name for name, rows in runs}

    def _name_section(self, row: tuple[str, ...], apart: Iterable[int]) -> str:
        named = (f"{self.columns[i].heading} {row[i]}" for i in apart if row[i])
        return ", ".join(named) or "no attack"

    def _keep_columns(self, kept: Sequence[int], **others: Any) -> Sheet:
        columns = tuple(self.columns[i] for i in kept)
        rows = tuple(tuple(row[i] for i in kept) for row in self.rows)
        return replace(self, columns=columns, rows=rows, **others)

    def fit(self, room: int) -> tuple[Sheet, list[int]]:
        """The table without the spare columns that do not fit, and the width of each column.

        `room`: letters that a line may have.
        """
        telling = self.telling & {column.heading for column in self.columns}
        for label_width in (WIDE_LABEL, *range(LABEL_WIDTH, NARROW_LABEL - 1, -1)):
            part = self._drop_spare(room, label_width)
            least = part._compute_least_widths(label_width)
            fits = sum(least) + len(least) - 1 <= room
            headings = {column.heading for column in part.columns}
            if fits and (telling <= headings or label_width <= LABEL_WIDTH):
                break
        return part, part._compute_widths(room, label_width)

    def _drop_spare(self, room: int, label_width: int) -> Sheet:
        """The table without the spare columns that do not fit."""
        least = self._compute_least_widths(label_width)
        kept = list(range(len(self.columns)))
        for heading in self.spare:
            if sum(least[i] for i in kept) + len(kept) - 1 <= room:
                break
            kept = [i for i in kept if self.columns[i].heading != heading]
        count = len(self.columns) - len(kept)
        if not count:
            return self
        note = f"{count} more column{'s' * (count != 1)} on a wider terminal"
        return self._keep_columns(kept, notes=(*self.notes, note))

    def _compute_least_widths(self, label_width: int) -> list[int]:
        """The least width of each column: numbers whole, words broken if they are long."""
        widths = []
        for place, column in enumerate(self.columns):
            values = [row[place] for row in self.rows]
            if column.number or column.whole:
                heading = column.heading.split() if column.wraps else [column.heading]
                widths.append(max(map(len, (*heading, *values)), default=0))
            else:
                longest = max(map(_measure_least, (column.heading, *values)))
                widths.append(min(longest, label_width))
        return widths

    def _compute_widths(self, room: int, label_width: int) -> list[int]:
        """The width of each column: numbers are shown whole, and words share the rest."""
        widths = self._compute_least_widths(label_width)
        full = [
            max(map(len, (column.heading, *(row[place] for row in self.rows))))
            for place, column in enumerate(self.columns)
        ]
        room -= sum(widths) + len(widths) - 1
        for _ in range(room):
            narrow = [i for i in range(len(widths)) if widths[i] < full[i]]
            if not narrow:
                break
            # Labels come before headings of numbers.
            neediest = min(narrow, key=lambda i: (self.columns[i].number, widths[i] / full[i]))
            widths[neediest] += 1
        return widths


def _measure_least(text: str) -> int:
    """Least width of a text in letters: a short one is not broken, a longer one between words."""
    return len(text) if len(text) <= LABEL_WIDTH else max(map(len, text.split()), default=0)


@dataclass(frozen=True)
class Separator:
    """A line between tables."""

    text: str
    colour: str | None = None
    """Its colour in a terminal."""


def make_table(
    title: str, words: Sequence[str], numbers: Sequence[str], rows: Iterable[tuple[str, ...]]
) -> list[Sheet]:
    """A list of one table with columns of words, then of numbers; empty if there are no rows."""
    columns = (*(Column(name, number=False) for name in words),
               *(Column(name, wraps=True) for name in numbers))  # fmt: skip
    return [Sheet(title, "", columns, rows)] if (rows := tuple(rows)) else []


class InWords:
    """Base class of objects that notebooks show as their text."""

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return f"<p>{_escape_html(str(self))}</p>"


class Paged(ABC):
    """Base class of objects that are shown as lines and tables, one below the other."""

    @abstractmethod
    def page(self) -> list[Sheet | Separator]:
        """The lines and tables."""

    def __str__(self) -> str:
        return "\n".join(
            escape_unprintable(part.text) if isinstance(part, Separator) else write_plain([part])
            for part in self.page()
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return "\n".join(
            f"<p>{_escape_html(part.text)}</p>"
            if isinstance(part, Separator)
            else write_html([part])
            for part in self.page()
        )


def write_plain(sheets: Iterable[Sheet], width: int = 100) -> str:
    """Tables in columns of letters, for `print`, where a line has `width` letters."""
    return "\n\n".join(_format_text(sheet, width) for sheet in sheets)


def _format_text(sheet: Sheet, width: int) -> str:
    head = [sheet.title, *sheet.opening, sheet.about]
    lines = [line for words in head for line in textwrap.wrap(words, width)]
    sheet, rows = sheet.lay_out(width)
    lines += [" ".join(row.parts).rstrip() for row in rows if row.kind != "rule"]
    return show_lines([*lines, *sheet.remarks])


def align_row(
    cells: Sequence[str],
    numbers: Sequence[bool],
    widths: Sequence[int],
    hang: str = "",
    *,
    bottom: bool = False,
) -> list[tuple[str, ...]]:
    """The lines of a row, each of one part a cell: words are broken, and numbers end together.

    `numbers`: whether a cell is a number. `hang`: what further lines of a cell begin with.
    `bottom`: whether cells end in the same line.
    """
    folded = [
        textwrap.wrap(cell, wide, subsequent_indent=hang, break_on_hyphens=False) or [""]
        for cell, wide in zip(cells, widths, strict=True)
    ]
    if bottom:
        most = max(map(len, folded), default=0)
        folded = [[""] * (most - len(parts)) + parts for parts in folded]
    return [
        tuple(
            part.rjust(wide) if number else part.ljust(wide)
            for part, wide, number in zip(parts, widths, numbers, strict=True)
        )
        for parts in zip_longest(*folded, fillvalue="")
    ]


def write_markdown(sheets: Iterable[Sheet]) -> str:
    """Tables in GitHub's Markdown."""
    parts = []
    for sheet in sheets:
        lines = [f"**{_escape_md(sheet.title)}**  "] if sheet.title else []
        if sheet.opening:
            lines += [_escape_md(" ".join(sheet.opening)), ""]
        if sheet.about:
            lines.append(_escape_md(sheet.about))
        lines += ["", _format_md_row(column.heading for column in sheet.columns)]
        lines.append("|" + "|".join(" ---: " if c.number else " --- " for c in sheet.columns) + "|")
        lines += [_format_md_row(row) for row in sheet.rows]
        lines += ["", *(f"- {_escape_md(text)}" for text in sheet.remarks)] if sheet.remarks else []
        parts.append("\n".join(lines).strip("\n"))
    return "\n\n".join(parts)


def _escape_md(text: str) -> str:
    return escape_unprintable(text, but="\r\n").translate(_MARKDOWN)


def _format_md_row(values: Iterable[str]) -> str:
    return "| " + " | ".join(_escape_md(value) for value in values) + " |"


def write_latex(sheets: Iterable[Sheet]) -> str:
    """Tables for LaTeX with the package `booktabs`."""
    parts = []
    for sheet in sheets:
        head = [sheet.title, sheet.about.replace(" · ", ", ")]
        caption = ". ".join(_escape_tex(text) for text in (*head, *sheet.remarks) if text)
        lines = [r"\begin{table}", r"\centering", rf"\caption{{{caption}}}"]
        lines.append(rf"\begin{{tabular}}{{{''.join('lr'[c.number] for c in sheet.columns)}}}")
        lines += [
            r"\toprule",
            _format_tex_row(column.heading for column in sheet.columns),
            r"\midrule",
        ]
        lines += [_format_tex_row(row) for row in sheet.rows]
        parts.append("\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"]))
    return "\n\n".join(parts)


def _escape_tex(text: str) -> str:
    return escape_unprintable(text, but="\r\n").translate(_LATEX)


def _format_tex_row(values: Iterable[str]) -> str:
    return " & ".join(_format_tex_value(value) for value in values) + r" \\"


def _format_tex_value(text: str) -> str:
    """A text for LaTeX, whose numbers have a minus sign instead of a hyphen."""
    number = text.startswith("-") and text[1:2] in set(".0123456789")
    return f"${_escape_tex(text)}$" if number and " " not in text else _escape_tex(text)


def write_html(sheets: Sequence[Sheet]) -> str:
    """Tables for a notebook: plain HTML without scripts, and every word escaped."""
    return "\n".join(map(_format_html, sheets))


class _Table(Protocol):
    def _repr_html_(self) -> str: ...


_AnyTable = TypeVar("_AnyTable", bound=_Table)


class Shown(list[_AnyTable]):
    """A list of tables that shows them below each other."""

    def __str__(self) -> str:
        return "\n\n".join(map(str, self))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return "\n".join(table._repr_html_() for table in self)


def _format_html(sheet: Sheet) -> str:
    lines = [f"<p>{_escape_html(' '.join(sheet.opening))}</p>"] if sheet.opening else []
    title = f"<strong>{_escape_html(sheet.title)}</strong>"
    title += f"<br>{_escape_html(sheet.about)}" if sheet.about else ""
    if not sheet.columns:
        lines.append(f"<p>{title}</p>")
    else:
        headings = [column.heading for column in sheet.columns]
        caption = f"<caption>{title}</caption>\n" if sheet.title or sheet.about else ""
        head = _format_html_row("th scope='col'", headings, sheet.columns)
        lines.append(f"<table>\n{caption}<thead>{head}</thead><tbody>")
        lines += [_format_html_row("td", row, sheet.columns) for row in sheet.rows]
        lines.append("</tbody></table>")
    if sheet.remarks:
        items = "".join(f"<li>{_escape_html(text)}</li>" for text in sheet.remarks)
        lines.append(f"<ul>{items}</ul>")
    return "\n".join(lines)


def _escape_html(text: str) -> str:
    return escape(escape_unprintable(text, but="\n"))


def _format_html_row(tag: str, texts: Iterable[str], columns: Iterable[Column]) -> str:
    cells = (
        f"<{tag} style='text-align:{'right' if column.number else 'left'}'>"
        f"{_escape_html(text)}</{tag.split(maxsplit=1)[0]}>"
        for text, column in zip(texts, columns, strict=True)
    )
    return f"<tr>{''.join(cells)}</tr>"
