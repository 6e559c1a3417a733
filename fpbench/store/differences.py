"""What differs between two runs: cells, measures, versions.

Runs that the same kernels computed are compared to the last bit. Linear-algebra libraries choose
their code by the processor, and other code adds up in another order: numbers of runs that other
kernels computed count as equal within `TOLERANCE`. Rows of a component that does not claim this
(`portable` is false in them) are then listed apart: they are not comparable.
"""

from __future__ import annotations

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
from fpbench.store.packing import Bits, Kinds, ValueKind, is_identical
from fpbench.store.results import Results
from fpbench.store.store import Store

_Places = NDArray[np.intp]

TOLERANCE = 1e-6
"""Greatest difference of numbers of two kernels; a share of the larger number if it is above 1."""


def is_near(one: Any, other: Any) -> bool:
    """Whether two floats are equal within `TOLERANCE`, or other values are identical."""
    if type(one) is not float or type(other) is not float:
        return is_identical(one, other)
    return bool(_find_near(np.array([one]), np.array([other]))[0])


def _find_near(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore", over="ignore"):
        scale = np.maximum(1.0, np.maximum(np.abs(one), np.abs(other)))
        close = np.isfinite(scale) & (np.abs(one - other) <= TOLERANCE * scale)
    return np.asarray(close | (one == other) | (np.isnan(one) & np.isnan(other)))


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
    """What differs between two runs; prints itself as `fpbench diff` does."""

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
        """What `fpbench diff` shows."""
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
        pair = _Pair(a.results(), b.results(), exact)
    spreads, changes, apart = pair.measures(most)
    names, others = dict.fromkeys(pair.a.names), dict.fromkeys(pair.b.names)
    return RunDifference(
        one=first,
        other=second,
        same_matrix=same_matrix,
        environment=environment,
        exact=exact,
        compared=len(pair.done[0]),
        incomparable=int(np.count_nonzero(pair.incomparable)),
        apart=apart,
        other_code=pair.other_code(),
        only_one=pair.lacking(0),
        only_other=pair.lacking(1),
        measures_only_one=tuple(name for name in names if name not in others),
        measures_only_other=tuple(name for name in others if name not in names),
        statuses=pair.statuses(),
        spreads=spreads,
        changes=changes,
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


class _Pair:
    """Two runs, and the pairs of rows that are the same cell."""

    def __init__(self, a: Results, b: Results, exact: bool) -> None:
        self.a, self.b, self._exact = a, b, exact
        labels = {labels: i for i, labels in enumerate(dict.fromkeys(
            [*a.combinations, *b.combinations]))}  # fmt: skip
        seeds = np.unique(np.concatenate([a.seeds, b.seeds]))
        flat = []
        for run in (a, b):
            numbers = np.array([labels[each] for each in run.combinations], np.int64)
            flat.append(
                numbers[run.combination] * max(len(seeds), 1) + np.searchsorted(seeds, run.seeds)
            )
        _, first, second = np.intersect1d(flat[0], flat[1], return_indices=True)
        order = np.argsort(first)  # as the first run has them
        self.rows: list[_Places] = [first[order], second[order]]
        both = a.finished()[0][self.rows[0]] & b.finished()[0][self.rows[1]]
        self.done: list[_Places] = [rows[both] for rows in self.rows]
        self.incomparable = np.zeros(len(self.done[0]), dtype=bool)
        """Cells done in both whose numbers depend on the kernel."""
        if not exact:
            for run, rows in zip((a, b), self.done, strict=True):
                if PORTABLE in run.names:
                    marked = run.kinds(PORTABLE)[rows] == ValueKind.BOOL
                    self.incomparable |= marked & (run.bits(PORTABLE)[rows] == 0)
        texts = {text: i for i, text in enumerate(dict.fromkeys([*a.words, *b.words]))}
        self._words = list(texts)
        self._number = [
            np.array([texts[text] for text in run.words] or [0], np.int64) for run in (a, b)
        ]

    def _name_row(self, row: int) -> str:
        return name_cell(self.a.labels(row), int(self.a.seeds[row]))

    def lacking(self, which: int) -> tuple[str, ...]:
        """Cells that only one run has."""
        run = (self.a, self.b)[which]
        alone = np.setdiff1d(np.arange(len(run)), self.rows[which])
        return tuple(name_cell(run.labels(i), int(run.seeds[i])) for i in alone.tolist())

    def other_code(self) -> int:
        """Number of cells done in both, by other code or with other data."""
        pairs = zip(*(rows.tolist() for rows in self.done), strict=True)
        return sum(self.a.cells[i] != self.b.cells[j] for i, j in pairs)

    def statuses(self) -> tuple[CellChange, ...]:
        """Cells whose status differs, with the reasons."""

        def describe(run: Results, row: int) -> str:
            status = run.statuses[row] or "not run yet"
            why = run.reasons.get(row)
            return f"{status}: {why}" if why else status

        pairs = zip(*(rows.tolist() for rows in self.rows), strict=True)
        return tuple(
            CellChange(self._name_row(i), "status", describe(self.a, i), describe(self.b, j))
            for i, j in pairs
            if self.a.statuses[i] != self.b.statuses[j]
        )

    def measures(
        self, most: int
    ) -> tuple[tuple[Spread, ...], tuple[CellChange, ...], tuple[Spread, ...]]:
        """Differences of comparable cells, their changes, and differences of other cells."""
        spreads: list[Spread] = []
        apart: list[Spread] = []
        changes: list[CellChange] = []
        both = set(self.b.names)
        for name in self.a.names:
            if is_time(name) or name not in both:
                continue
            places = self._find_different(name)
            beyond = self.incomparable[places]
            for chosen, group in ((places[~beyond], spreads), (places[beyond], apart)):
                if len(chosen):
                    group.append(self._spread(name, chosen))
            changes += [
                self._make_change(name, int(i)) for i in places[~beyond][: most - len(changes)]
            ]
        by_cells = (
            tuple(sorted(spreads_of, key=lambda spread: -spread.cells))
            for spreads_of in (spreads, apart)
        )
        first, second = by_cells
        return first, tuple(changes), second

    def _spread(self, name: str, places: _Places) -> Spread:
        """The size of the differences of cells in a measure."""
        a, b = (
            run.numbers(name)[rows[places]]
            for run, rows in zip((self.a, self.b), self.done, strict=True)
        )
        with np.errstate(invalid="ignore", over="ignore"):  # differences of infinities
            apart = b - a
            apart = apart[~np.isnan(apart)]
            known = len(apart) > 0
            return Spread(
                name, len(places), float(np.abs(apart).max()) if known else None,
                float(apart.mean()) if known else None,
            )  # fmt: skip

    def _find_different(self, name: str) -> _Places:
        (kinds, bits), (kinds_b, bits_b) = self._take_values(0, name), self._take_values(1, name)
        different = (kinds != kinds_b) | (bits != bits_b)
        if not self._exact:
            floats = (kinds == ValueKind.FLOAT) & (kinds_b == ValueKind.FLOAT)
            different &= ~(floats & _find_near(bits.view(np.float64), bits_b.view(np.float64)))
        return np.flatnonzero(different)

    def _take_values(self, which: int, name: str) -> tuple[Kinds, Bits]:
        run, rows = (self.a, self.b)[which], self.done[which]
        kinds, bits = run.kinds(name)[rows], run.bits(name)[rows]
        texts = kinds >= ValueKind.WORD
        bits[texts] = self._number[which][bits[texts]]
        return kinds, bits

    def _make_change(self, name: str, place: int) -> CellChange:
        values = [
            run.value(name, int(rows[place]))
            for run, rows in zip((self.a, self.b), self.done, strict=True)
        ]
        return CellChange(self._name_row(int(self.done[0][place])), name, *values)
