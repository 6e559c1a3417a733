"""Tables as text that other tools read: Markdown, LaTeX, HTML. What they say is escaped.

Letters that a terminal obeys are spelt out, in files as well: none of the three needs them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from fpbench.base.text import escape_unprintable

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


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    heading: str
    number: bool = True
    """Whether its values are numbers, which are aligned at the right."""


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
    label_width: int = 14
    """Letters that words are given at least, before they are broken."""
    spare: tuple[str, ...] = ()
    """Columns that a narrow terminal does without, in this order."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """All that is said below the table."""
        return (
            *self.notes,
            *(f"warning: {text}" for text in self.warnings),
            *(f"failed: {text}" for text in self.failures),
        )


def markdown(sheets: Iterable[Sheet]) -> str:
    """Tables in GitHub's Markdown."""
    parts = []
    for sheet in sheets:
        lines = [f"**{_md(sheet.title)}**  "] if sheet.title else []
        if sheet.about:
            lines.append(_md(sheet.about))
        lines += ["", _md_row(column.heading for column in sheet.columns)]
        lines.append("|" + "|".join(" ---: " if c.number else " --- " for c in sheet.columns) + "|")
        lines += [_md_row(row) for row in sheet.rows]
        lines += ["", *(f"- {_md(text)}" for text in sheet.remarks)] if sheet.remarks else []
        parts.append("\n".join(lines).strip("\n"))
    return "\n\n".join(parts)


def _md(text: str) -> str:
    return escape_unprintable(text, but="\r\n").translate(_MARKDOWN)


def _md_row(values: Iterable[str]) -> str:
    return "| " + " | ".join(_md(value) for value in values) + " |"


def latex(sheets: Iterable[Sheet]) -> str:
    """Tables for LaTeX with the package `booktabs`."""
    parts = []
    for sheet in sheets:
        head = [sheet.title, sheet.about.replace(" · ", ", ")]
        caption = ". ".join(_tex(text) for text in (*head, *sheet.remarks) if text)
        lines = [r"\begin{table}", r"\centering", rf"\caption{{{caption}}}"]
        lines.append(rf"\begin{{tabular}}{{{''.join('lr'[c.number] for c in sheet.columns)}}}")
        lines += [r"\toprule", _tex_row(column.heading for column in sheet.columns), r"\midrule"]
        lines += [_tex_row(row) for row in sheet.rows]
        parts.append("\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"]))
    return "\n\n".join(parts)


def _tex(text: str) -> str:
    return escape_unprintable(text, but="\r\n").translate(_LATEX)


def _tex_row(values: Iterable[str]) -> str:
    return " & ".join(_tex_value(value) for value in values) + r" \\"


def _tex_value(text: str) -> str:
    """A minus that is one, and no hyphen."""
    number = text.startswith("-") and text[1:2] in set(".0123456789")
    return f"${_tex(text)}$" if number and " " not in text else _tex(text)


def html(sheets: Sequence[Sheet]) -> str:
    """Tables for a notebook: plain HTML without scripts, and every word escaped."""
    return "\n".join(map(_html, sheets))


def _html(sheet: Sheet) -> str:
    lines = ["<table>"]
    if sheet.title or sheet.about:
        about = f"<br>{_text(sheet.about)}" if sheet.about else ""
        lines.append(f"<caption><strong>{_text(sheet.title)}</strong>{about}</caption>")
    headings = "".join(_cell("th scope='col'", c.heading, c.number) for c in sheet.columns)
    lines.append(f"<thead><tr>{headings}</tr></thead><tbody>")
    for row in sheet.rows:
        cells = zip(row, sheet.columns, strict=True)
        lines.append("<tr>" + "".join(_cell("td", v, c.number) for v, c in cells) + "</tr>")
    lines.append("</tbody></table>")
    if sheet.remarks:
        said = "".join(f"<li>{_text(text)}</li>" for text in sheet.remarks)
        lines.append(f"<ul>{said}</ul>")
    return "\n".join(lines)


def _text(text: str) -> str:
    return escape(escape_unprintable(text, but="\n"))


def _cell(tag: str, text: str, number: bool) -> str:
    align = "right" if number else "left"
    return f"<{tag} style='text-align:{align}'>{_text(text)}</{tag.split(maxsplit=1)[0]}>"
