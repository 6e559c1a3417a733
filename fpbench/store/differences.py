"""What differs between two runs: cells, measures, versions.

Runs that the same kernels computed are compared to the last bit. Linear-algebra libraries choose
their code by the processor, and other code adds up in another order: numbers of runs that other
kernels computed count as equal within `TOLERANCE`. Rows of a component that does not claim this
(`portable` is false in them) are then listed apart: they are not comparable.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpbench.base.argument_types import check_arguments
from fpbench.base.arguments import check_whole_number, to_path
from fpbench.base.sheet import Paged, Separator, Sheet, make_table
from fpbench.base.text import count_noun
from fpbench.components.names import KINDS, PORTABLE
from fpbench.store.environment import have_same_kernels
from fpbench.store.packing import Column, is_identical
from fpbench.store.results import Results
from fpbench.store.store import Store

_Places = NDArray[np.intp]

TOLERANCE = 1e-6
"""Greatest difference of numbers of two kernels; a share of the larger number if it is above 1."""


def is_near(one: Any, other: Any) -> bool:
    """Whether two floats are equal within `TOLERANCE`, or other values are identical."""
    if type(one) is not float or type(other) is not float:
        return is_identical(one, other)
    if one == other or (math.isnan(one) and math.isnan(other)):
        return True
    scale = max(1.0, abs(one), abs(other))
    return math.isfinite(scale) and abs(one - other) <= TOLERANCE * scale


def find_different(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Names of the measures that two results of a cell do not have alike, to the last bit."""
    return [
        name for name in dict.fromkeys([*one, *other])
        if name not in one or name not in other or not is_identical(one[name], other[name])
    ]  # fmt: skip


@dataclass(frozen=True)
class CellChange:
    """A measure or status of a cell that differs between two runs."""

    cell: str
    """Its labels and seed."""
    name: str
    """The measure, or `status`."""
    one: Any
    other: Any


@dataclass(frozen=True)
class Spread:
    """Differences of cells in one measure."""

    name: str
    cells: int
    """Number of cells that differ."""
    largest: float | None
    """Largest absolute difference; None where no pair of numbers differs."""
    mean: float | None
    """Mean difference, the other run minus this one, over the cells that differ."""


@dataclass(frozen=True, repr=False)
class RunDifference(Paged):
    """What differs between two runs; prints itself as `fpbench compare --cells` does."""

    one: Path
    other: Path
    same_matrix: bool
    environment: tuple[tuple[str, str, str], ...]
    """Entries in which the environments of the latest sessions differ: name and both values."""
    exact: bool
    """Whether the same kernels computed both runs: then values are compared to the last bit."""
    compared: int
    """Number of cells that are done in both."""
    incomparable: int
    """Number of these cells that are not compared, because other kernels give other numbers."""
    apart: tuple[Spread, ...]
    """Differences of the cells that are not compared."""
    other_code: int
    """Number of cells whose keys differ, because of other code, data or versions."""
    only_one: tuple[str, ...]
    """Cells that only the first has."""
    only_other: tuple[str, ...]
    measures_only_one: tuple[str, ...]
    """Measures that only rows of the first have."""
    measures_only_other: tuple[str, ...]
    statuses: tuple[CellChange, ...]
    """Cells whose status differs."""
    spreads: tuple[Spread, ...]
    """Measures that differ, those in most cells first."""
    changes: tuple[CellChange, ...]
    """The values that differ, cell by cell."""

    def __bool__(self) -> bool:
        return bool(
            self.only_one or self.only_other or self.measures_only_one or self.measures_only_other
            or self.statuses or self.changes
        )  # fmt: skip

    def page(self) -> list[Sheet | Separator]:
        """What `fpbench compare --cells` shows."""
        one, other = str(self.one), str(self.other)
        page: list[Sheet | Separator] = []
        if not self.same_matrix:
            page.append(Separator(
                "the runs are of different matrices: cells are the same if their labels and seed "
                "match"
            ))  # fmt: skip
        page += make_table("environment", ("", one, other), (), self.environment)
        page += _list_cells(f"only in {one}", self.only_one)
        page += _list_cells(f"only in {other}", self.only_other)
        for run, names in ((one, self.measures_only_one), (other, self.measures_only_other)):
            page += [Separator(f"measures only in {run}: {', '.join(names)}")] if names else []
        rows = change_rows(self.statuses[:FEW], named=False)
        page += make_table("status", ("cell", one, other), (), rows)
        page += count_rest(len(self.statuses) - FEW)
        page += _tabulate_spreads("measures", self.spreads)
        page += make_table("cells", ("cell", "measure"), (one, other), change_rows(self.changes))
        page += count_rest(sum(spread.cells for spread in self.spreads) - len(self.changes))
        if self.other_code:
            cells = count_noun(self.other_code, "cell")
            page.append(Separator(f"other code, data or versions made {cells} of both"))
        title = "measures of cells that are not comparable across kernels"
        page += _tabulate_spreads(title, self.apart)
        if self.incomparable:
            page.append(Separator(f"{count_noun(self.incomparable, 'cell')} {NOT_COMPARABLE}"))
        cells = count_noun(self.compared - self.incomparable, "cell")
        end = "they differ" if self else "the results are the same"
        return [*page, Separator(f"{cells} compared {name_comparison(self.exact)}: {end}")]


FEW = 10
"""Greatest number of cells named in a list; the others are counted."""
NOT_COMPARABLE = (
    "not comparable across kernels: a component in them does not claim the same numbers on every "
    "processor (portable = false)"
)


def name_comparison(exact: bool) -> str:
    """How closely numbers were compared."""
    if exact:
        return "to the last bit"
    return f"within {TOLERANCE:g}, as the kernels differ or are not recorded"


def change_rows(changes: Iterable[CellChange], *, named: bool = True) -> list[tuple[str, ...]]:
    """Rows of a table: the cell, the measure if it is `named`, and both values."""
    return [
        (change.cell, *((change.name,) if named else ()), _write(change.one), _write(change.other))
        for change in changes
    ]


def count_rest(count: int) -> list[Separator]:
    """A line with the number of unlisted items, if any."""
    return [Separator(f"  and {count:,} more")] if count > 0 else []


def _write(value: Any) -> str:
    """A value to the last bit: the shortest digits that reproduce it."""
    return "-" if value is None else str(value)


def _list_cells(heading: str, cells: Sequence[str]) -> list[Separator]:
    if not cells:
        return []
    named = [Separator(f"  {cell}") for cell in cells[:FEW]]
    head = Separator(f"{count_noun(len(cells), 'cell')} {heading}:")
    return [head, *named, *count_rest(len(cells) - FEW)]


def _tabulate_spreads(title: str, spreads: Iterable[Spread]) -> list[Sheet]:
    rows = [
        (spread.name, f"{spread.cells:,}",
         *("-" if v is None else f"{v:.3g}" for v in (spread.largest, spread.mean)))
        for spread in spreads
    ]  # fmt: skip
    numbers = ("cells", "largest difference", "mean difference")
    return make_table(title, ("measure",), numbers, rows)


@check_arguments
def diff(one: str | Path, other: str | Path, *, most: int = 1_000) -> RunDifference:
    """Compare two runs, of the same matrix or of others.

    Cells are the same if their labels and seeds match, whatever code made them. Measures are
    compared to the last bit if the same kernels computed both runs, else within `TOLERANCE`;
    durations are not compared.

    Parameters
    ----------
    one, other
        Run directories.
    most
        Greatest number of changes that are listed; all are counted.

    Raises
    ------
    StoreError
        If a directory holds no run.
    """
    first, second = to_path("one", one), to_path("other", other)
    check_whole_number("most", most, 0)
    with Store(first) as a, Store(second) as b:
        environment = list_environment_changes(a.environment(), b.environment())
        same_matrix = a.matrix == b.matrix
        sessions = [*a.sessions(), *b.sessions()]
        exact = have_same_kernels(session.environment for session in sessions)
        pair = RunPair(a.results(), b.results(), exact=exact)
    dependent, here, there = pair.find_dependent(), pair.runs[0].names, pair.runs[1].names
    spreads: list[Spread] = []
    apart: list[Spread] = []
    changes: list[CellChange] = []
    for name in here:
        if name in there and not is_time(name):
            found = pair.find_changes(name)
            for group, which in ((spreads, False), (apart, True)):
                if chosen := [each for each in found if bool(dependent[each[0]]) is which]:
                    group.append(_measure_spread(name, chosen))
            for place, *values in found:
                if len(changes) < most and not dependent[place]:
                    cell = pair.name_row(0, int(pair.done[0][place]))
                    changes.append(CellChange(cell, name, *values))
    return RunDifference(
        one=first,
        other=second,
        same_matrix=same_matrix,
        environment=environment,
        exact=exact,
        compared=len(pair.done[0]),
        incomparable=int(np.count_nonzero(dependent)),
        apart=tuple(sorted(apart, key=lambda spread: -spread.cells)),
        other_code=pair.count_other_code(),
        only_one=pair.list_lacking(0),
        only_other=pair.list_lacking(1),
        measures_only_one=tuple(name for name in here if name not in there),
        measures_only_other=tuple(name for name in there if name not in here),
        statuses=pair.list_statuses(),
        spreads=tuple(sorted(spreads, key=lambda spread: -spread.cells)),
        changes=tuple(changes),
    )


def list_environment_changes(
    one: Mapping[str, Any], other: Mapping[str, Any]
) -> tuple[tuple[str, str, str], ...]:
    """Entries in which two environments differ; `-` for a missing one."""
    a, b = dict(_flatten(one)), dict(_flatten(other))
    return tuple(
        (name, a.get(name, "-"), b.get(name, "-"))
        for name in sorted(a.keys() | b.keys())
        if a.get(name) != b.get(name)
    )


def _flatten(environment: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    entries = []
    for name, value in environment.items():
        if isinstance(value, Mapping):
            entries += _flatten(value, f"{prefix}{name} ")
        else:
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            entries.append((f"{prefix}{name}", text))
    return entries


def is_time(name: str) -> bool:
    """Whether a measure is a duration, which is never the same twice."""
    return name == "seconds" or name.endswith("_seconds")


def name_cell(labels: Mapping[str, str], seed: int) -> str:
    """The name of a cell in messages: its labels and its seed."""
    names = ", ".join(labels[kind] for kind in KINDS if labels.get(kind))
    return f"{names}, seed {seed}"


class RunPair:
    """Two runs, and the cells that both have: cells with the same labels and seed."""

    def __init__(self, one: Results, other: Results, *, exact: bool) -> None:
        self.runs, self._exact = (one, other), exact
        cells = [*KINDS, "seed"]
        places = [
            run.components.iloc[run.combination].assign(seed=run.seeds, row=np.arange(len(run)))
            .drop_duplicates(cells) for run in self.runs
        ]  # fmt: skip
        both = places[0].merge(places[1], on=cells)  # as the first run has them
        self.rows: list[_Places] = [both["row_x"].to_numpy(), both["row_y"].to_numpy()]
        """Positions, in each run, of the cells that both have."""
        done = one.finished()[0][self.rows[0]] & other.finished()[0][self.rows[1]]
        self.done: list[_Places] = [each[done] for each in self.rows]
        """The same of the cells that both have done."""

    def name_row(self, which: int, row: int) -> str:
        """The name of the cell in a row of one of the runs."""
        run = self.runs[which]
        return name_cell(run.labels(row), int(run.seeds[row]))

    def find_dependent(self) -> NDArray[np.bool_]:
        """(done,) whether numbers depend on the kernel, and the runs were of other kernels."""
        dependent = np.zeros(len(self.done[0]), np.bool_)
        if not self._exact:
            for run, rows in zip(self.runs, self.done, strict=True):
                marks = run.values(PORTABLE)
                dependent |= np.array([marks[row] is False for row in rows.tolist()], np.bool_)
        return dependent

    def count_other_code(self) -> int:
        """Number of cells done in both, by other code or with other data."""
        one, other = (run.cells[rows] for run, rows in zip(self.runs, self.done, strict=True))
        return int((one != other).sum())

    def list_lacking(self, which: int) -> tuple[str, ...]:
        """Cells that only one run has."""
        alone = np.setdiff1d(np.arange(len(self.runs[which])), self.rows[which])
        return tuple(self.name_row(which, row) for row in alone.tolist())

    def list_statuses(self) -> tuple[CellChange, ...]:
        """Cells whose status differs, with the reasons."""
        one, other = (run.statuses[rows] for run, rows in zip(self.runs, self.rows, strict=True))
        changes = []
        for place in np.flatnonzero(one != other).tolist():
            rows = [int(each[place]) for each in self.rows]
            told = []
            for run, row in zip(self.runs, rows, strict=True):
                why, status = run.reasons[row], str(run.statuses[row]) or "not run yet"
                told.append(f"{status}: {why}" if why else status)
            changes.append(CellChange(self.name_row(0, rows[0]), "status", *told))
        return tuple(changes)

    def find_changes(self, name: str) -> list[tuple[int, Any, Any]]:
        """Places in `done` of the cells that differ in a measure, and its values.

        A time is never the same twice: it only has to be present.
        """
        both = zip(self.runs, self.done, strict=True)
        if is_time(name):
            one, other = (run.has(name)[rows].tolist() for run, rows in both)
            places = [i for i, present in enumerate(one) if present != other[i]]
        else:
            one, other = (np.array(run.values(name), object)[rows].tolist() for run, rows in both)
            bits = Column.of([*one, *other]).data.view(np.int64).reshape(2, -1)
            places = np.flatnonzero(bits[0] != bits[1]).tolist()
        changes = [(i, one[i], other[i]) for i in places]
        return changes if self._exact else [each for each in changes if not is_near(*each[1:])]


def _measure_spread(name: str, changes: Sequence[tuple[int, Any, Any]]) -> Spread:
    """The size of the differences of cells in a measure."""
    pairs = [pair for _, *pair in changes if all(isinstance(x, int | float) for x in pair)]
    gaps = np.diff(np.array(pairs, np.float64).reshape(-1, 2)).ravel()
    gaps = gaps[~np.isnan(gaps)]
    if not len(gaps):
        return Spread(name, len(changes), None, None)
    return Spread(name, len(changes), float(np.abs(gaps).max()), float(gaps.mean()))
