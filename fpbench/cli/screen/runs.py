"""What merges, comparisons and verifications of runs show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from fpbench.cli.screen import console
from fpbench.components.names import Status
from fpbench.store.differences import TOLERANCE

if TYPE_CHECKING:
    from fpbench.execution.verification import Verification
    from fpbench.store.differences import Change, RunDifference, Spread
    from fpbench.store.merging import Merged

_FEW = 10
"""Cells that are named where only their number matters."""
_WORDS = {"": "not run yet"}


def show_merged(merged: Merged, runs: int) -> None:
    """What is in a merged run."""
    counts = [
        f"{merged.counts[status]:,} {_WORDS.get(status, status)}"
        for status in (*Status, "")
        if merged.counts.get(status)
    ]
    _say(f"merged {runs} runs of {_several(merged.sessions, 'session')}: {', '.join(counts)}")
    _say(f"run directory: {merged.path}")


def show_difference(found: RunDifference) -> None:
    """What differs between two runs."""
    one, other = str(found.one), str(found.other)
    if not found.same_matrix:
        _say("the runs are of different matrices: cells are the same if their labels and seed are")
    if found.environment:
        _table("environment", ("", one, other), found.environment)
    _cells(f"only in {one}", found.only_one)
    _cells(f"only in {other}", found.only_other)
    for where, names in ((one, found.measures_only_one), (other, found.measures_only_other)):
        if names:
            _say(f"measures only in {where}: {', '.join(names)}")
    if found.statuses:
        _table("status", ("cell", one, other), _changes(found.statuses[:_FEW], named=False))
        _more(len(found.statuses) - _FEW)
    if found.spreads:
        columns = ("measure", "cells", "largest difference", "mean difference")
        _table("measures", columns, map(_spread, found.spreads))
    if found.changes:
        columns = ("cell", "measure", one, other)
        _table("cells", columns, _changes(found.changes))
        _more(sum(spread.cells for spread in found.spreads) - len(found.changes))
    if found.other_code:
        _say(f"other code, data or versions made {_several(found.other_code, 'cell')} of both")
    if found.apart:
        columns = (
            "not comparable across kernels",
            "cells",
            "largest difference",
            "mean difference",
        )
        _table("measures of cells that are not comparable", columns, map(_spread, found.apart))
    if found.incomparable:
        _say(f"{_several(found.incomparable, 'cell')} {_NOT_COMPARABLE}")
    cells = _several(found.compared - found.incomparable, "cell")
    end = "they differ" if found else "the results are the same"
    _say(f"{cells} compared {_to(found.exact)}: {end}")


def show_verification(found: Verification) -> None:
    """What became of cells that were run again."""
    if found.environment:
        _table("environment", ("", "of the run", "here"), found.environment)
    for each in found.checked:
        if each.problem is not None:
            _say(f"could not be run again: {each.cell}: {each.problem}", "yellow")
    changes = [change for each in found.checked if each.comparable for change in each.changes]
    if changes:
        _table("differs", ("cell", "measure", "in the run", "again"), _changes(changes))
    apart = [change for each in found.checked if not each.comparable for change in each.changes]
    if apart:
        _table(
            "differs, not comparable", ("cell", "measure", "in the run", "again"), _changes(apart)
        )
    if found.misplaced:
        names = ", ".join(map(ascii, found.misplaced[:_FEW]))
        _say(f"rows name what fpbench measures elsewhere, or never: {names}", "red")
        _more(len(found.misplaced) - _FEW)
    if found.computed or found.said:
        _say(
            f"compared: {_several(len(found.computed), 'measure')} that fpbench computed again "
            "from guesses, corrections, predictions and releases, and "
            f"{len(found.said)} that components say of themselves{_listed(found.said)}; of times "
            "only that they are there"
        )
    unrecorded = sum(not each.promise_recorded for each in found.checked)
    if unrecorded:
        _say(f"what models guarantee is not recorded in {_several(unrecorded, 'cell')}")
    other = sum(not each.same_code for each in found.checked)
    if other:
        _say(f"other code or data than is here made {_several(other, 'cell')} of the sample")
    without = sum(not each.comparable and each.problem is None for each in found.checked)
    if without:
        _say(f"{_several(without, 'cell')} {_NOT_COMPARABLE}", "yellow")
    right = sum(each.same for each in found.checked)
    _say(
        f"{right} of {_several(len(found.checked) - without, 'cell')} run again "
        f"{'are' if right != 1 else 'is'} the same {_to(found.exact)} ({found.done:,} are done; "
        f"--seed {found.seed} draws the same sample)",
        None if found.same else "red",
    )


def _listed(names: Sequence[str]) -> str:
    """The first few names, in brackets."""
    more = [f"and {len(names) - _FEW} more"] if len(names) > _FEW else []
    return f" ({', '.join([*map(_shown, names[:_FEW]), *more])})" if names else ""


def _shown(name: str) -> str:
    """A name of a measure, which a stranger may have chosen."""
    return name if name.isprintable() else ascii(name)


_NOT_COMPARABLE = (
    "not comparable across kernels: a component in them does not claim the same numbers on every "
    "processor (portable = false)"
)


def _to(exact: bool) -> str:
    """What kind of comparison was made."""
    if exact:
        return "to the last bit"
    return f"within {TOLERANCE:g}, as other kernels computed the run or none are recorded"


def _spread(spread: Spread) -> tuple[str, ...]:
    said = (spread.largest, spread.mean)
    return (spread.name, f"{spread.cells:,}", *("-" if v is None else f"{v:.3g}" for v in said))


def _changes(changes: Iterable[Change], *, named: bool = True) -> Iterable[tuple[str, ...]]:
    for change in changes:
        names = (change.name,) if named else ()
        yield (change.cell, *names, _plain(change.one), _plain(change.other))


def _plain(value: Any) -> str:
    """A value to the last bit: the shortest digits that give it again."""
    return "-" if value is None else str(value)


def _cells(heading: str, cells: Sequence[str]) -> None:
    if cells:
        _say(f"{_several(len(cells), 'cell')} {heading}:")
        for cell in cells[:_FEW]:
            _say(f"  {cell}")
        _more(len(cells) - _FEW)


def _more(count: int) -> None:
    if count > 0:
        _say(f"  and {count:,} more")


def _several(count: int, word: str) -> str:
    return f"{count:,} {word}{'s' * (count != 1)}"


def _say(text: str, colour: str | None = None) -> None:
    console.terminal().print(text, style=colour, markup=False, soft_wrap=True)


def _table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    from rich.markup import escape
    from rich.table import Table

    out = console.terminal()
    out.print(title, style="bold", markup=False)
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(escape(column), overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    out.print(table)
