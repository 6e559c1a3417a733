"""What plans, merges, comparisons and verifications of runs show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fpbench.cli.screen import console
from fpbench.cli.screen.sheets import show_line, show_sheet
from fpbench.components.names import Status
from fpbench.results.sheet import Column, Sheet
from fpbench.store.differences import TOLERANCE

if TYPE_CHECKING:
    from fpbench.api.run import RunPlan
    from fpbench.execution.verification import Verification
    from fpbench.store.differences import Change, RunDifference, Spread
    from fpbench.store.merging import Merged

_FEW = 10
"""Cells that are named where only their number matters."""
_NOT_COMPARABLE = (
    "not comparable across kernels: a component in them does not claim the same numbers on every "
    "processor (portable = false)"
)


def show_plan(plan: RunPlan) -> None:
    """What would run: cells, unique steps beside what each cell alone would cost, skips."""
    console.warn(plan.warnings)
    show_line(str(plan).partition("\n")[0])
    rows = [(" ".join(step), count, plan.steps_alone[step]) for step, count in plan.steps.items()]
    rows.append(("all", sum(plan.steps.values()), sum(plan.steps_alone.values())))
    _show_table("", ("step",), ("unique", "without sharing"),
                [(step, f"{count:,}", f"{alone:,}") for step, count, alone in rows])  # fmt: skip
    show_skipped(plan.skipped)
    for remark in plan.remarks:
        show_line(f"note: {remark}")
    if plan.seconds is not None:
        show_line(f"about {duration(plan.seconds)} of work left, from the times of earlier steps")
    elif plan.runnable > len(plan.done):
        show_line("time: unknown on a first run")


def show_skipped(skipped: Mapping[str, int]) -> None:
    """Reasons why cells are skipped, and how many are."""
    for reason, count in skipped.items():
        show_line(f"skipped {count}: {reason}", console.COLOURS[Status.SKIPPED])


def duration(seconds: float) -> str:
    """A length of time as people say it."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def show_merged(merged: Merged, runs: int) -> None:
    """What is in a merged run."""
    counts = [
        f"{merged.counts[status]:,} {status or 'not run yet'}"
        for status in (*Status, "")
        if merged.counts.get(status)
    ]
    show_line(f"merged {runs} runs of {_count(merged.sessions, 'session')}: {', '.join(counts)}")
    show_line(f"run directory: {merged.path}")


def show_difference(difference: RunDifference) -> None:
    """What differs between two runs."""
    one, other = str(difference.one), str(difference.other)
    if not difference.same_matrix:
        show_line(
            "the runs are of different matrices: cells are the same if their labels and seed are"
        )
    _show_table("environment", ("", one, other), (), difference.environment)
    _show_cells(f"only in {one}", difference.only_one)
    _show_cells(f"only in {other}", difference.only_other)
    for run, names in (
        (one, difference.measures_only_one), (other, difference.measures_only_other)
    ):  # fmt: skip
        if names:
            show_line(f"measures only in {run}: {', '.join(names)}")
    statuses = difference.statuses
    _show_table("status", ("cell", one, other), (), _change_rows(statuses[:_FEW], named=False))
    _show_rest(len(statuses) - _FEW)
    _show_spreads("measures", difference.spreads)
    _show_table("cells", ("cell", "measure"), (one, other), _change_rows(difference.changes))
    _show_rest(sum(spread.cells for spread in difference.spreads) - len(difference.changes))
    if difference.other_code:
        cells = _count(difference.other_code, "cell")
        show_line(f"other code, data or versions made {cells} of both")
    _show_spreads("measures of cells that are not comparable across kernels", difference.apart)
    if difference.incomparable:
        show_line(f"{_count(difference.incomparable, 'cell')} {_NOT_COMPARABLE}")
    cells = _count(difference.compared - difference.incomparable, "cell")
    end = "they differ" if difference else "the results are the same"
    show_line(f"{cells} compared {_name_comparison(difference.exact)}: {end}")


def show_verification(verification: Verification) -> None:
    """What became of cells that were run again."""
    checked, reported = verification.checked, verification.reported
    _show_table("environment", ("", "of the run", "here"), (), verification.environment)
    for cell in checked:
        if cell.problem is not None:
            show_line(f"could not be run again: {cell.cell}: {cell.problem}", "yellow")
    for title, comparable in (("differs", True), ("differs, not comparable", False)):
        changes = [c for cell in checked if cell.comparable is comparable for c in cell.changes]
        _show_table(title, ("cell", "measure"), ("in the run", "again"), _change_rows(changes))
    if verification.misplaced:
        names = ", ".join(map(ascii, verification.misplaced[:_FEW]))
        show_line(f"rows name what fpbench measures elsewhere, or never: {names}", "red")
        _show_rest(len(verification.misplaced) - _FEW)
    if verification.computed or reported:
        show_line(
            f"compared: {_count(len(verification.computed), 'measure')} that fpbench computed "
            "again from guesses, corrections, predictions and releases, and "
            f"{len(reported)} that components say of themselves{_list_names(reported)}; of times "
            "only that they are there"
        )
    unrecorded = sum(not cell.promise_recorded for cell in checked)
    if unrecorded:
        show_line(f"what models guarantee is not recorded in {_count(unrecorded, 'cell')}")
    other = sum(not cell.same_code for cell in checked)
    if other:
        show_line(f"other code or data than is here made {_count(other, 'cell')} of the sample")
    incomparable = sum(not cell.comparable and cell.problem is None for cell in checked)
    if incomparable:
        show_line(f"{_count(incomparable, 'cell')} {_NOT_COMPARABLE}", "yellow")
    same = sum(cell.same for cell in checked)
    show_line(
        f"{same} of {_count(len(checked) - incomparable, 'cell')} run again "
        f"{'are' if same != 1 else 'is'} the same {_name_comparison(verification.exact)} "
        f"({verification.done:,} are done; --seed {verification.seed} draws the same sample)",
        None if verification.same else "red",
    )


def _list_names(names: Sequence[str]) -> str:
    """The first few names, in brackets; escaped, because a stranger may have chosen them."""
    more = [f"and {len(names) - _FEW} more"] if len(names) > _FEW else []
    printable = [name if name.isprintable() else ascii(name) for name in names[:_FEW]]
    return f" ({', '.join([*printable, *more])})" if names else ""


def _name_comparison(exact: bool) -> str:
    if exact:
        return "to the last bit"
    return f"within {TOLERANCE:g}, as other kernels computed the run or none are recorded"


def _show_spreads(title: str, spreads: Iterable[Spread]) -> None:
    rows = [
        (spread.name, f"{spread.cells:,}",
         *("-" if v is None else f"{v:.3g}" for v in (spread.largest, spread.mean)))
        for spread in spreads
    ]  # fmt: skip
    numbers = ("cells", "largest difference", "mean difference")
    _show_table(title, ("measure",), numbers, rows)


def _change_rows(changes: Iterable[Change], *, named: bool = True) -> list[tuple[str, ...]]:
    return [
        (change.cell, *((change.name,) if named else ()), _write(change.one), _write(change.other))
        for change in changes
    ]


def _write(value: Any) -> str:
    """A value to the last bit: the shortest digits that give it again."""
    return "-" if value is None else str(value)


def _show_cells(heading: str, cells: Sequence[str]) -> None:
    if cells:
        show_line(f"{_count(len(cells), 'cell')} {heading}:")
        for cell in cells[:_FEW]:
            show_line(f"  {cell}")
        _show_rest(len(cells) - _FEW)


def _show_rest(count: int) -> None:
    if count > 0:
        show_line(f"  and {count:,} more")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _show_table(
    title: str, words: Sequence[str], numbers: Sequence[str], rows: Iterable[tuple[str, ...]]
) -> None:
    """A table of words and then numbers; nothing if it has no row."""
    columns = (*(Column(name, number=False) for name in words),
               *(Column(name, wraps=True) for name in numbers))  # fmt: skip
    if rows := tuple(rows):
        show_sheet(Sheet(title, "", columns, rows))
