"""Tables of results: leaderboards, a paper's tables from our rows, and verdicts on a paper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fpbench.base.text import format_number
from fpbench.cli.screen import console
from fpbench.cli.screen import verdicts as verdict_boards
from fpbench.cli.screen.sparklines import curves
from fpbench.components.names import Status
from fpbench.results import leaderboard as board_columns
from fpbench.results import other_sheets as board_data

if TYPE_CHECKING:
    from rich.table import Table

    from fpbench.api.reproduce import Reproduction
    from fpbench.results.leaderboard import Leaderboard
    from fpbench.results.sheet import Sheet

MOST = 100
"""Lines of a table that are shown unless all are asked for: rich takes long for thousands."""
_MOST_CURVES = 12
"""Sweeps that are drawn below a leaderboard."""
_COLOURS = {"failed": console.COLOURS[Status.FAILED], "warning": "yellow"}


def show_leaderboards(
    made: Iterable[Leaderboard], measures: Sequence[str] = (), most: int | None = None
) -> None:
    """Leaderboards below each other; a title that they share is said once.

    Parameters
    ----------
    made, measures
        See `show_leaderboard`.
    most
        How many lines of each to show; None for the first 100, and a word on how to see the others.
    """
    title, cut = None, False
    for board in made:
        if title is not None:
            console.terminal().print()
        shown = replace(board, title="") if board.title == title else board
        show_leaderboard(shown, measures, most or MOST)
        title, cut = board.title, cut or len(board.lines) > (most or MOST)
    if cut and most is None:
        console.terminal().print(SHOW_ALL, style="dim", soft_wrap=True)


SHOW_ALL = "`fpbench leaderboard RUN --all` shows all lines"
"""Said where lines were left out without anybody asking for it."""


def show_leaderboard(
    board: Leaderboard, measures: Sequence[str] = (), most: int | None = None
) -> None:
    """A leaderboard as a table; what all its lines share is said once, above.

    Parameters
    ----------
    board
        What to show.
    measures
        The measures to show; none for those that tell most.
    most
        How many lines to show; None for all.
    """
    show_sheet(board_columns.sheet(board, measures, most))
    grid = board_data.grid_sheet(board) if board.view == "mechanisms" else None
    if grid is not None:
        show_sheet(grid)
    show_curves(board)


def show_sheet(sheet: Sheet) -> None:
    """A table and what is to be said of it; words are folded where there is too little room."""
    from rich.markup import escape

    out = console.terminal()
    sheet, widths = sheet.fit(out.width)
    if sheet.title:
        out.print(escape(sheet.title), style="bold")
    if sheet.about:
        about = sheet.about.replace(" · ", "; ") if console.MODE.plain else sheet.about
        out.print(escape(about), style="dim")
    if sheet.columns:
        table = empty_table()
        for column, width in zip(sheet.columns, widths, strict=True):
            table.add_column(
                escape(column.heading),
                justify="right" if column.number else "left",
                overflow="fold",
                no_wrap=column.number and not column.wraps,
                width=width,
            )
        for row in sheet.rows:
            table.add_row(*(_coloured(escape(value)) for value in row))
        out.print(table)
    for text in sheet.all_notes:
        out.print(text, style="dim", markup=False, soft_wrap=True)
    for word, texts in (("warning", sheet.warnings), ("failed", sheet.failures)):
        for text in texts:
            out.print(f"{word}: {text}", style=_COLOURS[word], markup=False, soft_wrap=True)


def _coloured(value: str) -> str:
    """Failures stand out, wherever they are counted."""
    counted, bracket, failures = value.partition(" (")
    return f"{counted} [red]({failures}[/]" if bracket and failures.endswith(" failed)") else value


def show_curves(board: Leaderboard) -> None:
    """How the measure that is ranked by moves along each sweep of a parameter."""
    from rich.markup import escape

    found = curves(board)
    if not found or console.MODE.plain:
        return
    out, table = console.terminal(), empty_table()
    for heading in (board.glossary.heading(board.rank_by), "from", "to", "along"):
        table.add_column(heading, no_wrap=heading != "along", overflow="fold")
    for curve in found[:_MOST_CURVES]:
        least, greatest = (f"{value:g}" for value in (curve.values[0], curve.values[-1]))
        along = f"{curve.parameter} {least} to {greatest}"
        others = ", ".join(label for label in curve.labels if label)
        ends = (format_number(curve.means[0]), format_number(curve.means[-1]))
        table.add_row(curve.line, *ends, escape(f"{along} ({others})" if others else along))
    out.print(table)
    left = len(found) - _MOST_CURVES
    if left > 0:
        out.print(f"{left} more sweep{'s' * (left != 1)}", style="dim")


def show_reproduction(made: Reproduction) -> None:
    """A paper's tables and statements beside our numbers; attacks against the strongest, too."""
    for number, sheet in enumerate(made.tables):
        if number:
            console.terminal().print()
        show_sheet(sheet)
    if not made.tables:
        show_leaderboards(made.run.leaderboards())
    verdict_boards.show_verdicts(made.verdicts)
    verdict_boards.show_standings(made.verdicts)
    counted = [("as stated", made.verdicts)]
    for sheet in made.tables_of_strongest:
        show_sheet(sheet)
    if made.verdicts_on_strongest:
        verdict_boards.show_verdicts(made.verdicts_on_strongest)
        counted.append(("strongest adversary", made.verdicts_on_strongest))
    verdict_boards.show_counts(counted)


def empty_table() -> Table:
    """A table without lines, in the style of all."""
    from rich import box
    from rich.table import Table

    if console.MODE.plain:
        return Table(header_style="", box=None, padding=(0, 1, 0, 0), pad_edge=False)
    return Table(header_style="bold", box=box.SIMPLE_HEAD, show_edge=False, padding=0)
