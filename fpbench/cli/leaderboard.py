"""The commands that rank a run and compare two: `leaderboard` and `compare`."""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fpbench.base.errors import InputError, suggest_name
from fpbench.base.files import write_output
from fpbench.cli.groups import (
    Output,
    RunDirectory,
    complete_kind,
    complete_measure,
    complete_view,
)
from fpbench.cli.screen import console
from fpbench.components.names import KINDS

if TYPE_CHECKING:
    from fpbench.base.sheet import Sheet
    from fpbench.results.leaderboard import Leaderboard, Line
    from fpbench.results.snapshot import Snapshot


class Form(StrEnum):
    """How tables are written."""

    TABLE = "table"
    MARKDOWN = "markdown"
    LATEX = "latex"
    HTML = "html"
    JSON = "json"


Where = Annotated[
    list[str] | None,
    typer.Option(
        help="Only rows that match; may be repeated. learner=pate*, epsilon<=1, seed<5.",
        metavar="FILTER",
    ),
]
Top = Annotated[int | None, typer.Option(min=1, help="Show only this many lines.")]
Every = Annotated[
    bool,
    typer.Option("--all", help="Show all lines; otherwise a terminal shows the best of each task."),
]
Json = Annotated[bool, typer.Option("--json", help="The same as --format json.")]
FormatOption = Annotated[Form, typer.Option("--format", help="How tables are written.")]


def leaderboard(
    run: RunDirectory,
    by: Annotated[
        str | None,
        typer.Option(
            help="Measure to rank by: its name or heading.", autocompletion=complete_measure
        ),
    ] = None,
    view: Annotated[
        str,
        typer.Option(
            help="combinations, attacks, defences, reports or audits.",
            metavar="VIEW",
            autocompletion=complete_view,
        ),
    ] = "combinations",
    where: Where = None,
    group: Annotated[
        str | None,
        typer.Option(
            help="Make a leaderboard for each label of a kind.",
            metavar="KIND",
            autocompletion=complete_kind,
        ),
    ] = None,
    sort: Annotated[
        str | None,
        typer.Option(
            help="Show lines in the order of this column; ranks stay.",
            metavar="COLUMN",
            autocompletion=complete_measure,
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            help="Measures to show, by name or heading, with commas between.",
            metavar="NAMES",
            autocompletion=complete_measure,
        ),
    ] = None,
    top: Top = None,
    every: Every = False,
    together: Annotated[
        bool, typer.Option("--together", help="Rank lines together that are not comparable.")
    ] = False,
    form: FormatOption = Form.TABLE,
    as_json: Json = False,
    output: Output = None,
) -> None:
    """Rank combinations, attacks, defences, reports or audits.

    By default attacks on the same model are ranked by their accuracy with the disclosure.
    Neighbours that do not differ significantly share a rank (=1).
    """
    from fpbench.api.saved_run import Run
    from fpbench.results.snapshot import check_view

    chosen_form, lines = Form.JSON if as_json else form, _count_lines(top, every)
    view = check_view(view)
    snapshot = Run(run).read(keys=False)
    boards = [
        _sort_lines(board, sort)
        for board in _list_boards(snapshot, by, view, where or [], group, together)
    ]
    if not boards:
        snapshot.leaderboard(by, view=view, where=where or [])  # says why there is none
    typed = [name.strip() for name in (columns or "").split(",") if name.strip()]
    measures = [_find_column(boards, text) for text in typed]
    if chosen_form is Form.TABLE and output is None:
        from fpbench.cli.screen.results import show_leaderboards

        show_leaderboards(boards, measures, lines)
        return
    _write(_format_boards(boards, chosen_form, measures, top), output)


def _count_lines(top: int | None, every: bool) -> int | None:
    """Number of lines of a table to show; None without an option."""
    if top and every:
        raise InputError("--top and --all contradict each other")
    return sys.maxsize if every else top


def _list_boards(
    snapshot: "Snapshot",
    by: str | None,
    view: str,
    where: Sequence[str],
    group: str | None,
    together: bool,
) -> "Iterator[Leaderboard]":
    """The leaderboards of a view; for each label of a kind if asked for."""
    if group is None:
        yield from snapshot.leaderboards(by, view=view, where=where, together=together)
        return
    if group not in KINDS:
        raise InputError(f"unknown kind to group by: {group!r}; {suggest_name(group, KINDS)}")
    for label in snapshot.labels(group, where):
        mine = [*where, f"{group}={label}"]
        for board in snapshot.leaderboards(by, view=view, where=mine, together=together):
            if group in board.kinds:
                yield board
            else:
                scope = ", ".join(filter(None, (f"{group} {label}", board.scope)))
                yield replace(board, scope=scope)


def _sort_lines(board: "Leaderboard", column: str | None) -> "Leaderboard":
    """The lines sorted by a label, or by a measure, best first."""
    if column is None:
        return board
    if column in board.kinds:
        return _reorder(board, sorted(board.lines, key=lambda x: x.labels[column]))
    measure = board.glossary.find(column, board.measured, "column to sort by")
    from fpbench.components.measures import LESS

    sign = 1 if board.glossary[measure].better == LESS else -1
    lines = sorted(
        board.lines,
        key=lambda x: (False, sign * x.measures[measure].mean)
        if measure in x.measures else (True, 0.0),
    )  # fmt: skip
    return _reorder(board, lines)


def _reorder(board: "Leaderboard", lines: "Sequence[Line]") -> "Leaderboard":
    """Lines in a new order, without p-values, which compare a line with the one above it."""
    return replace(board, lines=tuple(replace(line, p_above=None) for line in lines))


def _find_column(boards: "Sequence[Leaderboard]", text: str) -> str:
    """The measure to show that a name or a heading stands for."""
    measured = {name for board in boards for name in board.measured}
    return boards[0].glossary.find(text, measured, "measure to show")


def _format_boards(
    boards: "Sequence[Leaderboard]", form: Form, measures: Sequence[str], top: int | None
) -> str:
    from fpbench.results.leaderboard import make_sheet, to_data

    if form is Form.JSON:
        return _format_json([to_data(replace(each, lines=each.lines[:top])) for each in boards])
    cut = [(board, range(len(board.lines[:top]))) for board in boards]
    return _format_sheets([make_sheet(board, measures, lines) for board, lines in cut], form)


def _format_json(data: object) -> str:
    text = json.dumps(data, indent=2, allow_nan=False)
    return text.replace("\x7f", r"\u007f")  # the one control letter that JSON leaves as it is


def _format_sheets(sheets: "Sequence[Sheet]", form: Form) -> str:
    from fpbench.base import sheet as writing

    write = {Form.LATEX: writing.write_latex, Form.HTML: writing.write_html}.get(
        form, writing.write_markdown
    )
    return write(sheets)


def _write(text: str, output: Path | None) -> None:
    if output is None:
        console.show_text(text)
    else:
        write_output(output, text + "\n")


def _show_or_write(sheets: "Sequence[Sheet]", form: Form, output: Path | None) -> None:
    from fpbench.cli.screen.console import show_sheet

    if form is Form.TABLE and output is None:
        for sheet in sheets:
            show_sheet(sheet)
    else:
        _write(_format_sheets(sheets, form), output)


def compare(
    old: RunDirectory,
    new: Annotated[Path, typer.Argument(help="Run directory to compare with.", metavar="RUN")],
    by: Annotated[
        str | None,
        typer.Option(
            help="Measure to compare; any measure of the runs.", autocompletion=complete_measure
        ),
    ] = None,
    pair: Annotated[
        list[str] | None,
        typer.Option(
            help="Compare label OLD of the first run with label NEW of the second.",
            metavar="OLD=NEW",
        ),
    ] = None,
    where: Where = None,
    cells: Annotated[
        bool,
        typer.Option(
            "--cells",
            help="Show which cells differ in any bit, and what versions made them, instead.",
        ),
    ] = False,
    top: Top = None,
    every: Every = False,
    form: FormatOption = Form.TABLE,
    as_json: Json = False,
    output: Output = None,
) -> None:
    """Compare two runs, and test which changes are significant.

    Combinations with the same labels are compared at the seeds that both runs have. If each run has
    one label of a kind and they differ (a new adversary, for instance), the two are compared.
    Exit code with --cells: 0 if the results are the same; 1 if they differ.
    """
    from fpbench.api.saved_run import Run
    from fpbench.cli.screen.runs import warn_unshown
    from fpbench.results.contrast import compare as compare_runs
    from fpbench.results.contrast import contrast_data, contrast_sheet, read_pairs

    if cells:
        _compare_cells(old, new, sys.maxsize if every else top or _MOST_CELLS)
        return
    chosen_form, lines = Form.JSON if as_json else form, _count_lines(top, every)
    first, second = (Run(path).read(keys=False) for path in (old, new))
    contrasts = compare_runs(
        first.select(where or []), second.select(where or []), by or second.rank_by,
        read_pairs(pair or []),
    )  # fmt: skip
    warn_unshown({run.path: run.unshown_seeds for run in (first, second)})
    if chosen_form is Form.JSON:
        _write(_format_json([contrast_data(each) for each in contrasts]), output)
        return
    most = _MOST_ROWS if chosen_form is Form.TABLE and output is None and lines is None else lines
    _show_or_write([contrast_sheet(each, most) for each in contrasts], chosen_form, output)


_MOST_ROWS = 100
"""Greatest number of lines of a comparison on a terminal by default."""
_MOST_CELLS = 20
"""Greatest number of cells that differ which are listed by default."""


def _compare_cells(one: Path, other: Path, most: int) -> None:
    """Show which cells of two runs differ, and by how much; exit with 1 if any does."""
    from fpbench.cli.screen import runs as boards
    from fpbench.store import differences

    difference = differences.diff(one, other, most=most)
    boards.show_page(difference)
    boards.warn_unshown(boards.read_unshown([one, other]))
    if difference:
        raise typer.Exit(1)
