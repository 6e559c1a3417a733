"""Layout of all tables on a screen."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from fpbench.cli.screen import console
from fpbench.components.names import Status

if TYPE_CHECKING:
    from fpbench.base.sheet import Sheet

_REMARK_COLOURS = {"failed": console.COLOURS[Status.FAILED], "warning": "yellow"}


def show_sheet(sheet: Sheet, colours: Mapping[str, str] = MappingProxyType({})) -> None:
    """Print a table with its title and remarks; text is folded where the width is too small.

    `colours`: styles of cells by their text.
    """
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    out, plain = console.choose_terminal(), console.MODE.plain
    sheet, sections = sheet.divide()
    sheet, widths = sheet.fit(out.width)
    if sheet.title:
        out.print(escape(sheet.title), style="bold")
    for sentence in sheet.opening:
        out.print(escape(sentence))
    if sheet.about:
        about = sheet.about.replace(" · ", "; ") if plain else sheet.about
        out.print(escape(about), style="dim")

    def show_rows(first: int, last: int, *, header: bool) -> None:
        if plain:
            table = Table(header_style="", box=None, padding=(0, 1, 0, 0), pad_edge=False)
        else:
            table = Table(header_style="bold", box=box.SIMPLE_HEAD, show_edge=False, padding=0)
        table.show_header = header
        for column, width in zip(sheet.columns, widths, strict=True):
            table.add_column(
                escape(column.heading),
                justify="right" if column.number else "left",
                overflow="fold",
                no_wrap=column.whole or (column.number and not column.wraps),
                width=width,
            )
        for row in sheet.rows[first:last]:
            table.add_row(*(_add_colour(value, colours) for value in row))
        out.print(table)

    if sheet.columns:
        show_rows(0, 0 if sections else len(sheet.rows), header=True)
    ends = [begin for _, begin in sections[1:]] + [len(sheet.rows)] * bool(sections)
    for (words, begin), end in zip(sections, ends, strict=True):
        out.print(escape(words), style="bold")
        show_rows(begin, end, header=False)
    for note in sheet.all_notes:
        show_line(note, "dim")
    for word, texts in (("warning", sheet.warnings), ("failed", sheet.failures)):
        for text in texts:
            show_line(f"{word}: {text}", _REMARK_COLOURS[word])


def show_line(text: str, colour: str | None = None) -> None:
    """Print a line: folded between words on a terminal, elsewhere unbroken."""
    out = console.choose_terminal()
    out.print(text, style=colour, markup=False, soft_wrap=not out.is_terminal)


def _add_colour(value: str, colours: Mapping[str, str]) -> str:
    """Markup of a cell; counts of failures are highlighted."""
    from rich.markup import escape

    if value in colours:
        return f"[{colours[value]}]{escape(value)}[/]"
    counted, bracket, failures = escape(value).partition(" (")
    if bracket and failures.endswith(" failed)"):
        return f"{counted} [red]({failures}[/]"
    return escape(value)
