"""Rows of a run counted and averaged over seeds, one line per combination of components."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpbench.base.arrays import find_unique
from fpbench.components.measures import Glossary
from fpbench.components.names import KINDS
from fpbench.results.statistics.intervals import LEAST_SEEDS, Interval, estimate_bounds
from fpbench.store.results import Results

_Floats = NDArray[np.float64]


class Tallies:
    """The cells that are done or failed, by combination, in the order of the plan."""

    def __init__(self, results: Results) -> None:
        self.results = results
        done, failed = results.finished()
        counted = np.flatnonzero(done | failed)
        numbers, place = find_unique(results.combination[counted])
        first = np.empty(len(numbers), np.intp)
        first[place[::-1]] = np.arange(len(counted))[::-1]  # of several the last one stays
        self._combinations = numbers[np.argsort(first)]
        line = np.full(len(results.combinations), -1)
        line[self._combinations] = np.arange(len(self))
        self.line = line[results.combination]
        """(n,) the line of each row; -1 for none."""
        rows = np.flatnonzero(done)
        # Stable: the rows of a line stay in the order of the plan.
        self._rows = rows[np.argsort(self.line[rows], kind="stable")]
        self._of_rows = self.line[self._rows]
        self.done = np.bincount(self._of_rows, minlength=len(self))
        self.failed = np.bincount(self.line[failed], minlength=len(self))
        self._by_seed: dict[str, _Floats] = {}
        self._texts: dict[str, list[str]] = {}
        self._columns: dict[str, _Column] = {}

    def __len__(self) -> int:
        return len(self._combinations)

    @property
    def glossary(self) -> Glossary:
        """Headings and meanings of measures."""
        return self.results.glossary

    def labels(self, number: int) -> Mapping[str, str]:
        """The label of each kind that a line combines."""
        return self._labels[number]

    @cached_property
    def _labels(self) -> list[dict[str, str]]:
        combinations = self.results.combinations
        return [dict(zip(KINDS, combinations[i], strict=True)) for i in self._combinations.tolist()]

    def measures(self, number: int) -> Mapping[str, Interval]:
        """Means over seeds of the measures of a line."""
        return _Measures(self, number)

    def names(self, numbers: Iterable[int]) -> set[str]:
        """Measures that some of these lines have a number of."""
        done, _ = self.results.finished()
        among = done & np.isin(self.line, np.fromiter(numbers, np.intp))
        return {name for name in self.known if self.results.measured(name, among)}

    def means(self, name: str) -> _Floats | None:
        """(lines,) means of a measure, NaN where a line has none; None if no line has."""
        column = self.column(name)
        return column.means if column.counts.any() else None

    @property
    def seeds(self) -> NDArray[np.int64]:
        """The seeds at which some line is done, in ascending order."""
        return self._seeds[0]

    def describe_seeds(self, numbers: Sequence[int] | slice = slice(None)) -> tuple[str, ...]:
        """A note if lines were not done at the same seeds, so that their means may be chosen."""
        done = self._done_at[numbers]
        counts, every = done.sum(axis=1), int(done.any(axis=0).sum())
        if (counts == every).all():
            return ()
        few = " to ".join(map(str, sorted({counts.min(), counts.max()})))
        told = f"warning: lines have different seeds ({few} of {every})"
        return (f"{told}: the missing may be worst",)

    @cached_property
    def _done_at(self) -> NDArray[np.bool_]:
        """(lines, seeds) whether a line is done at a seed."""
        seeds, seed = self._seeds
        done = np.zeros((len(self), len(seeds)), np.bool_)
        done[self._of_rows, seed] = True
        return done

    @cached_property
    def _seeds(self) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
        return find_unique(self.results.seeds[self._rows])

    def by_seed(self, name: str) -> _Floats:
        """(lines, seeds) a measure; NaN where it was not measured."""
        if name not in self._by_seed:
            values = self.results.numbers(name)[self._rows]
            seeds, seed = self._seeds
            values_by_seed = np.full((len(self), len(seeds)), np.nan)
            values_by_seed[self._of_rows, seed] = np.where(np.isfinite(values), values, np.nan)
            self._by_seed = {name: values_by_seed}  # many leaderboards mostly need the same measure
        return self._by_seed[name]

    def text(self, name: str, number: int) -> str:
        """The text that all rows of a line have under a name; empty if they differ or have none."""
        if name not in self._texts:
            positions, words = self.results.texts(name)
            rows = np.flatnonzero(positions >= 0)
            least = np.full(len(self) + 1, len(words))  # the last is of no line
            greatest = np.full(len(self) + 1, -1)
            np.minimum.at(least, self.line[rows], positions[rows])
            np.maximum.at(greatest, self.line[rows], positions[rows])
            same = np.where(least == greatest, least, -1)
            self._texts[name] = [words[i] if i >= 0 else "" for i in same.tolist()]
        return self._texts[name][number]

    @cached_property
    def reasons(self) -> list[tuple[str, ...]]:
        """Why cells of each line failed, each reason once."""
        reasons_of: list[dict[str, None]] = [{} for _ in range(len(self))]
        _, failed = self.results.finished()
        for row in np.flatnonzero(failed).tolist():
            reasons_of[self.line[row]].setdefault(str(self.results.reasons[row]))
        return [tuple(reasons) for reasons in reasons_of]

    @cached_property
    def warnings(self) -> list[tuple[str, ...]]:
        """The texts of each line's measures that are named ..._warning, each once."""
        warnings_of: list[dict[str, None]] = [{} for _ in range(len(self))]
        for name in self.results.names:
            if name.endswith("_warning"):
                positions, words = self.results.texts(name)
                pairs = zip(self._of_rows.tolist(), positions[self._rows].tolist(), strict=True)
                for line, position in dict.fromkeys(pairs):
                    if position >= 0 and words[position]:
                        warnings_of[line].setdefault(words[position])
        return [tuple(warnings) for warnings in warnings_of]

    @cached_property
    def known(self) -> tuple[str, ...]:
        """The measures that some row has."""
        return "seconds", *self.results.names

    def column(self, name: str) -> _Column:
        """A measure of all lines, read and averaged when it is first asked for."""
        if name not in self._columns:
            values = self.results.numbers(name)[self._rows]
            finite = np.isfinite(values)
            counts = np.bincount(self._of_rows[finite], minlength=len(self))
            self._columns[name] = _Column(name, values[finite], counts)
        return self._columns[name]


class _Column:
    """One measure of all lines.

    `values`: finite values, adjacent for each line. `counts`: (lines,) number of values of each
    line.
    """

    def __init__(self, name: str, values: _Floats, counts: NDArray[np.intp]) -> None:
        self.name, self.values, self.counts = name, values, counts
        self.means, self.deviations = np.full((2, len(counts)), np.nan)
        for lines, block in self._iterate_blocks():
            with np.errstate(over="ignore", invalid="ignore"):  # a stranger's numbers may be huge
                self.means[lines] = block.mean(axis=1)
                if block.shape[1] > 1:
                    self.deviations[lines] = block.std(axis=1, ddof=1)

    def _iterate_blocks(self) -> Iterator[tuple[NDArray[np.intp], _Floats]]:
        """Lines with the same number of values, and (lines, count) their values."""
        starts = np.cumsum(self.counts) - self.counts
        for count in np.unique(self.counts[self.counts > 0]):
            lines = np.flatnonzero(self.counts == count)
            if count * len(lines) == len(self.values):
                yield lines, self.values.reshape(-1, count)
            else:
                yield lines, self.values[starts[lines][:, None] + np.arange(count)]

    @cached_property
    def bounds(self) -> _Floats:
        """(2, lines) ends of the intervals: computed for all lines at the first request."""
        ends = np.full((2, len(self.counts)), np.nan)
        for lines, block in self._iterate_blocks():
            if block.shape[1] >= LEAST_SEEDS:
                with np.errstate(over="ignore", invalid="ignore"):
                    ends[:, lines] = estimate_bounds(block, self.name)
        return ends


class _Lazy(Interval):
    """A mean whose interval is computed at the first access: most are never read."""

    def __init__(self, column: _Column, line: int) -> None:
        several = column.counts[line] > 1
        values: dict[str, Any] = {
            "mean": float(column.means[line]),
            "deviation": float(column.deviations[line]) if several else None,
            "count": int(column.counts[line]),
            "_column": column,
            "_place": line,
        }
        self.__dict__.update(values)

    @property
    def low(self) -> float | None:
        return self._find_end(0)

    @property
    def high(self) -> float | None:
        return self._find_end(1)

    def _find_end(self, which: int) -> float | None:
        column: _Column = self.__dict__["_column"]
        end = float(column.bounds[which, self.__dict__["_place"]])
        return None if np.isnan(end) else end


class _Measures(Mapping[str, Interval]):
    """The measures of one line."""

    def __init__(self, tally: Tallies, line: int) -> None:
        self._tally, self._line = tally, line

    def __getitem__(self, name: str) -> Interval:
        column = self._tally.column(name)
        if not column.counts[self._line]:
            raise KeyError(name)
        return _Lazy(column, self._line)

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._tally.known if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)
