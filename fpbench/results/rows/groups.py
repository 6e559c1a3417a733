"""Rows of a run in groups, from which verdicts and paper tables are computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fpbench.components.names import FIXED, Status
from fpbench.results.rows.selection import match_rows, read_where
from fpbench.store.results import Results, Rows

if TYPE_CHECKING:
    from fpbench.matrix.expectations import Scalar


class RowGroup:
    """Some rows of a run, in the order of its plan."""

    def __init__(self, results: Results) -> None:
        self._results = results
        self._rows: Rows = np.arange(len(results))
        # Groups of one run share the columns that have been read.
        self._numbers: dict[str, NDArray[np.float64]] = {}
        self._values: dict[str, list[Any]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def take(self, which: NDArray[np.bool_] | Sequence[int]) -> RowGroup:
        """The rows of a mask, or at positions."""
        part = RowGroup.__new__(RowGroup)
        part._results, part._rows = self._results, self._rows[np.asarray(which)]
        part._numbers, part._values = self._numbers, self._values
        return part

    def numbers(self, name: str) -> NDArray[np.float64]:
        """(rows,) the finite numbers in a column; NaN where there is none."""
        if name not in self._numbers:
            numbers = self._results.numbers(name)
            self._numbers[name] = np.where(np.isfinite(numbers), numbers, np.nan)
        return self._numbers[name][self._rows]

    def values(self, name: str) -> list[Any]:
        """The values of a column; None for rows without one."""
        if name not in self._values:
            self._values[name] = self._results.values(name)
        values = self._values[name]
        return [values[row] for row in self._rows.tolist()]

    def done(self) -> RowGroup:
        """The rows of cells that are done."""
        return self.take(np.array([s == Status.DONE for s in self.values("status")], np.bool_))

    def undone(self) -> RowGroup:
        """The rows of cells that failed, were skipped, or have not been run."""
        return self.take(np.array([s != Status.DONE for s in self.values("status")], np.bool_))

    def where(self, where: Mapping[str, Scalar | list[Scalar]]) -> RowGroup:
        """The rows that have one of the named values in each named column."""
        return self.take(match_rows(self._results, read_where(where))[self._rows])

    def split(self, names: Iterable[str]) -> dict[tuple[Any, ...], RowGroup]:
        """The rows by their values in some columns, in the order of first appearance."""
        columns = [self.values(name) for name in names]
        keys = zip(*columns, strict=True) if columns else [()] * len(self)
        places: dict[tuple[Any, ...], list[int]] = {}
        for place, key in enumerate(keys):
            places.setdefault(key, []).append(place)
        return {key: self.take(mine) for key, mine in places.items()}

    def columns(self) -> set[str]:
        """Names of the columns that some of the rows have."""
        names = (name for name in self._results.names if self._results.has(name)[self._rows].any())
        return {*names, *FIXED}
