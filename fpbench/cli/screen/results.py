"""Tables of results: leaderboards, a paper's table from our rows, and verdicts on a paper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fpbench.base.text import format_number
from fpbench.cli.screen import console
from fpbench.cli.screen import verdicts as verdict_boards
from fpbench.cli.screen.paper_tables import (
    column_widths,
    empty_table,
    fitting,
    over_seeds,
    show_asked,
    show_summary,
)
from fpbench.cli.screen.sparklines import curves
from fpbench.components.names import Status
from fpbench.results import leaderboard as board_columns
from fpbench.results import other_sheets as board_data
from fpbench.results.leaderboard import AUDITED, LABEL_WIDTH, LESS_TELLING

if TYPE_CHECKING:
    from fpbench.api.reproduce import Reproduction
    from fpbench.results.leaderboard import Leaderboard
    from fpbench.results.sheet import Sheet
    from fpbench.results.verdicts.paper_tables import AuditLine

MOST = 100
"""Lines of a table that are shown unless all are asked for: rich takes long for thousands."""
_MOST_AUDITS = 150
"""Lines of audits beside a paper; of more, so many evenly spaced ones are shown."""
_NUMBER_WIDTH = 9
"""Columns of a measure's column, or more."""
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
    show_sheet(board_columns.sheet(board, console.terminal().width, measures, most))
    grid = board_data.grid_sheet(board) if board.view == "mechanisms" else None
    if grid is not None:
        show_sheet(grid)
    show_curves(board)


def show_sheet(made: Sheet) -> None:
    """A table and what is to be said of it; words are folded where there is too little room."""
    from rich.markup import escape

    out = console.terminal()
    made = _narrowed(made, out.width)
    if made.title:
        out.print(escape(made.title), style="bold")
    if made.about:
        about = made.about.replace(" · ", "; ") if console.MODE.plain else made.about
        out.print(escape(about), style="dim")
    table = empty_table()
    for column, width in zip(made.columns, _widths(made, out.width), strict=True):
        if column.number:
            table.add_column(escape(column.heading), justify="right", no_wrap=True)
        else:
            table.add_column(escape(column.heading), overflow="fold", width=width)
    for row in made.rows:
        table.add_row(*(_coloured(escape(value)) for value in row))
    out.print(table)
    for text in made.notes:
        out.print(text, style="dim", markup=False, soft_wrap=True)
    for word, said in (("warning", made.warnings), ("failed", made.failures)):
        for text in said:
            out.print(f"{word}: {text}", style=_COLOURS[word], markup=False, soft_wrap=True)


def _narrowed(made: Sheet, room: int) -> Sheet:
    """A table without as many of its spare columns as must go to fit."""
    hidden = 0
    for heading in made.spare:
        least = _widths(made, 0)
        if sum(least) + len(least) - 1 <= room:
            break
        kept = [i for i, column in enumerate(made.columns) if column.heading != heading]
        rows = tuple(tuple(row[i] for i in kept) for row in made.rows)
        made, hidden = (
            replace(made, columns=tuple(made.columns[i] for i in kept), rows=rows),
            hidden + 1,
        )
    more = f"{hidden} more column{'s' * (hidden != 1)} on a wider terminal"
    return replace(made, notes=(*made.notes, more)) if hidden else made


def _widths(made: Sheet, room: int) -> list[int]:
    """How wide columns are: numbers as wide as they are, words share what is left.

    Rich would share it, too, but gives some more than they need and cuts numbers instead.
    """
    columns = [
        [column.heading, *(row[place] for row in made.rows)]
        for place, column in enumerate(made.columns)
    ]
    full = [max(map(len, values)) for values in columns]
    widths = [
        full[place]
        if column.number
        else min(max(len(word) for value in values for word in value.split() or [""]),
                 made.label_width)
        for place, (column, values) in enumerate(zip(made.columns, columns, strict=True))
    ]  # fmt: skip
    room -= sum(widths) + len(widths) - 1
    while room > 0 and widths != full:
        neediest = min(range(len(widths)), key=lambda place: widths[place] / max(full[place], 1))
        widths[neediest] += 1
        room -= 1
    return widths


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
    for heading in (board_columns.headings(board.rank_by), "from", "to", "along"):
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


def show_reproduction(made: Reproduction, title: str) -> None:
    """A paper's tables and statements beside our numbers; attacks against the strongest, too."""
    for asked, lines in made.summaries:
        show_asked(asked, lines)
    if not made.summaries and (made.table or not made.audits):
        show_summary(made.table, title)
    if not made.summaries and made.audits:
        show_audits(made.audits, title)
    verdict_boards.show_verdicts(made.verdicts)
    verdict_boards.show_standings(made.verdicts)
    counted = [("as stated", made.verdicts)]
    if made.table_of_strongest:
        if not made.summaries:
            show_summary(
                made.table_of_strongest,
                "Beside it: the same, of the strongest adversary of the run",
            )
        verdict_boards.show_verdicts(made.verdicts_on_strongest)
        counted.append(("strongest adversary", made.verdicts_on_strongest))
    verdict_boards.show_counts(counted)


def show_audits(lines: Sequence[AuditLine], title: str) -> None:
    """Audits as a table, in the order of the matrix; what they share is said once, above."""
    from rich.markup import escape

    out = console.terminal()
    kinds = list(lines[0].labels)
    varying = [kind for kind in kinds if len({line.labels[kind] for line in lines}) > 1]
    shared = [f"{k} {lines[0].labels[k]}" for k in kinds if k not in varying and lines[0].labels[k]]
    shared.append(over_seeds(max(line.seeds for line in lines)))
    step = max(-(-len(lines) // _MOST_AUDITS), 1)
    if step > 1:
        which = {2: "2nd", 3: "3rd"}.get(step, f"{step}th")
        shared.append(f"every {which} of {len(lines)} lines; `fpbench leaderboard` shows all")
    out.print(escape(title), style="bold")
    out.print(escape(" · ".join(shared)), style="dim")
    names = [name for name in AUDITED if any(name in line.measures for line in lines)]
    table, taken = empty_table(), 0
    for kind in varying:
        widest = max([len(kind), *(len(line.labels[kind]) for line in lines)])
        table.add_column(kind, overflow="fold", min_width=min(widest, LABEL_WIDTH))
        taken += 1 + min(widest, LABEL_WIDTH)
    widths = column_widths(names, AUDITED, lines, _NUMBER_WIDTH)
    taken += sum(widths[name] for name in names[-1:])
    names = [*fitting(names[:-1], LESS_TELLING, out.width - taken, widths), *names[-1:]]
    for name in names:
        table.add_column(AUDITED[name], justify="right", no_wrap=True)
    for line in lines[::step]:
        found = [line.measures.get(name) for name in names]
        labels = [escape(line.labels[kind]) for kind in varying]
        table.add_row(*labels, *(format_number(value.mean) if value else "-" for value in found))
    out.print(table)
