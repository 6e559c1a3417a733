"""The rows of a run as columns: a million of them are read, compared and ranked at once.

The measures of cells are stored in *blocks*: cells that have the same measures, with a column for
each. A name that few cells have takes no memory for the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fpbench.base.errors import InputError
from fpbench.base.sheet import InWords
from fpbench.base.text import count_noun
from fpbench.components.measures import Glossary
from fpbench.components.names import FIXED, KINDS, Status
from fpbench.components.own_measures import GLOSSARY
from fpbench.store.packing import Column, to_plain

if TYPE_CHECKING:
    from pandas import DataFrame

_MOST_PLACES = 10_000_000
_MOST_EMPTY = 100
"""Greatest number of places per value in a table with more places than that."""
Rows = NDArray[np.intp]
"""Positions of rows."""
Labels = tuple[str, ...]
"""A label for every kind, in the order of `KINDS`; empty where the kind is not used."""


@dataclass(frozen=True)
class Block:
    """Cells that have the same measures."""

    rows: Rows
    """Positions of the cells."""
    columns: Mapping[str, Column]


def lay_out(rows: Sequence[Mapping[str, Any]]) -> Iterator[Block]:
    """Blocks of the measures of some cells, which are numbered in their order."""
    layouts: dict[tuple[str, ...], list[int]] = {}
    for i, measures in enumerate(rows):
        layouts.setdefault(tuple(measures), []).append(i)
    for names, places in layouts.items():
        columns = {name: Column.of([rows[i][name] for i in places]) for name in names}
        yield Block(np.array(places), columns)


@dataclass(frozen=True)
class Results(InWords):
    """Rows of a run, in the order of its plan."""

    combinations: Sequence[Labels]
    """All combinations of components."""
    combination: NDArray[np.int64]
    """(n,) position of each row's combination."""
    seeds: NDArray[np.int64]
    """(n,)."""
    statuses: NDArray[Any]
    """(n,) `done`, `failed` or `skipped`; empty where a cell has not been run yet."""
    seconds: NDArray[np.float64]
    """(n,) how long each took; NaN where unknown."""
    cells: NDArray[Any]
    """(n,) the keys; empty texts if they were not read."""
    reasons: NDArray[Any]
    """(n,) why rows were skipped or failed, or None."""
    blocks: Sequence[Block] = ()
    glossary: Glossary = field(default=GLOSSARY, repr=False)
    """Headings and meanings of measures."""

    def __len__(self) -> int:
        return len(self.seeds)

    def __str__(self) -> str:
        """The numbers of rows, measures and done rows."""
        done, _ = self.finished()
        measures = count_noun(len(self.names), "measure")
        return f"{count_noun(len(self), 'row')} of {measures}, {int(done.sum()):,} done"

    __repr__ = __str__

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]], glossary: Glossary = GLOSSARY) -> Results:
        """Results from dictionaries, one per row; missing values are empty."""
        rows = list(rows)
        combinations: dict[Labels, int] = {}
        chosen = [
            combinations.setdefault(tuple(row.get(kind, "") for kind in KINDS), len(combinations))
            for row in rows
        ]
        return cls(
            combinations=list(combinations),
            combination=np.array(chosen, np.int64),
            seeds=np.array([row.get("seed", 0) for row in rows], np.int64),
            statuses=np.array([row.get("status", "") for row in rows], np.str_),
            seconds=np.array([row.get("seconds") for row in rows], np.float64),
            cells=np.array([row.get("cell", "") for row in rows], object),
            reasons=np.array([row.get("reason") or None for row in rows], object),
            blocks=list(
                lay_out([to_plain({k: v for k, v in r.items() if k not in FIXED}) for r in rows])
            ),
            glossary=glossary,
        )  # fmt: skip

    @cached_property
    def names(self) -> list[str]:
        """Names of the measures, in the order in which rows first have them."""
        filled = [block for block in self.blocks if len(block.rows)]
        order = sorted(filled, key=lambda block: int(block.rows.min()))
        return list(dict.fromkeys(name for block in order for name in block.columns))

    @cached_property
    def _having(self) -> Mapping[str, Sequence[Block]]:
        """The blocks of each name."""
        having: dict[str, list[Block]] = {}
        for block in self.blocks:
            for name in block.columns:
                having.setdefault(name, []).append(block)
        return having

    def columns(self, name: str) -> Sequence[tuple[Rows, Column]]:
        """The columns of a measure, with the rows that have it."""
        return [(block.rows, block.columns[name]) for block in self._having.get(name, ())]

    def numbers(self, name: str) -> NDArray[np.float64]:
        """(n,) a measure, `seconds` or `seed`; NaN where there is no number."""
        if name == "seconds":
            return self.seconds
        if name == "seed":
            return self.seeds.astype(np.float64)
        numbers = np.full(len(self), np.nan)
        for rows, column in self.columns(name):
            numbers[rows] = column.numbers()
        return numbers

    def measured(self, name: str, among: NDArray[np.bool_]) -> bool:
        """Whether some of these rows have a finite number of a measure, or of `seconds`."""
        return bool(np.isfinite(self.numbers(name)[among]).any())

    def values(self, name: str) -> list[Any]:
        """The n values of any column as in `rows`; None where a row has none."""
        if name == "seconds":
            return [None if math.isnan(value) else value for value in self.seconds.tolist()]
        if name in FIXED:
            return list(np.asarray(self.fixed()[name]).tolist())
        return list(self._fill(name, None))

    def _fill(self, name: str, missing: Any) -> NDArray[Any]:
        values = np.full(len(self), missing, object)
        for rows, column in self.columns(name):
            values[rows] = column.values()
        return values

    def has(self, name: str) -> NDArray[np.bool_]:
        """(n,) whether rows have a measure, even if it is None."""
        present = np.zeros(len(self), np.bool_)
        for rows, _ in self.columns(name):
            present[rows] = True
        return present

    def texts(self, name: str) -> tuple[NDArray[np.int64], list[str]]:
        """(n,) the position of each row's text in a list, -1 for another value; and the list."""
        positions, place = np.full(len(self), -1), dict[str, int]()
        for rows, column in self.columns(name):
            of = [
                place.setdefault(value, len(place)) if isinstance(value, str) else -1
                for value in column.levels or ()
            ]
            positions[rows] = -1 if column.levels is None else np.array(of)[column.data]
        return positions, list(place)

    def take(self, kept: NDArray[np.bool_]) -> Results:
        """The rows of a mask, in their order."""
        if kept.all():
            return self
        place, blocks = np.cumsum(kept) - 1, []
        for block in self.blocks:
            here = kept[block.rows]
            if here.any():
                columns = {name: column.take(here) for name, column in block.columns.items()}
                blocks.append(Block(place[block.rows[here]], columns))
        return replace(
            self, combination=self.combination[kept], seeds=self.seeds[kept],
            statuses=self.statuses[kept], seconds=self.seconds[kept], cells=self.cells[kept],
            reasons=self.reasons[kept], blocks=blocks,
        )  # fmt: skip

    def without(self, names: Set[str]) -> Results:
        """These results without some measures."""
        blocks = [
            Block(block.rows, {k: v for k, v in block.columns.items() if k not in names})
            for block in self.blocks
        ]
        return replace(self, blocks=blocks)

    def beside(self, rows: Rows, measures: Mapping[str, Any]) -> Results:
        """These results with more measures of some rows; NaN becomes None."""
        columns = {}
        for name, numbers in measures.items():
            values = np.array(numbers, np.float64)
            columns[name] = Column.of_numbers(values, np.isnan(values))
        return replace(self, blocks=[*self.blocks, Block(rows, columns)]) if len(rows) else self

    @cached_property
    def components(self) -> DataFrame:
        """(combinations, kinds) the labels of each combination; empty where a kind is not used."""
        import pandas as pd

        return pd.DataFrame(list(self.combinations), columns=list(KINDS), dtype=object)

    def labels_of(self, kind: str) -> NDArray[Any]:
        """(n,) the label of a kind in each row; empty where it is not used."""
        return np.asarray(self.components[kind].to_numpy()[self.combination])

    def merge_combinations(self, kinds: Iterable[str]) -> tuple[list[Labels], NDArray[np.intp]]:
        """Combinations with the labels of some kinds only, and the new index of each old one."""
        empty, kinds = [""] * len(self.combinations), {*kinds}
        columns = [self.components[kind] if kind in kinds else empty for kind in KINDS]
        merged: dict[Labels, int] = {}
        numbers = [merged.setdefault(labels, len(merged)) for labels in zip(*columns, strict=True)]
        return list(merged), np.array(numbers, np.intp)

    def labels(self, row: int) -> dict[str, str]:
        """The label of each kind that a row combines."""
        return dict(zip(KINDS, self.combinations[self.combination[row]], strict=True))

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary per row.

        `cell`, a label for every kind (empty where not used), `seed`, `status`, `reason`,
        `seconds`, then the measures.
        """
        fixed = {name: self.values(name) for name in self.fixed()}
        rows = [dict(zip(fixed, row, strict=True)) for row in zip(*fixed.values(), strict=True)]
        for block in self.blocks:
            columns = [column.values() for column in block.columns.values()]
            for row, *values in zip(block.rows.tolist(), *columns, strict=True):
                rows[row].update(zip(block.columns, values, strict=True))
        return rows

    def frame(self) -> DataFrame:
        """The rows: labels, seed, status, reason, seconds, and one column per measure.

        Raises InputError if nearly all of it would be empty: most rows have few of many measures.
        """
        import pandas as pd

        places = len(self) * len(self.names)
        values = sum(len(block.rows) * len(block.columns) for block in self.blocks)
        if places > max(_MOST_PLACES, _MOST_EMPTY * values):
            raise InputError(
                f"a table of {len(self):,} rows and {len(self.names):,} measures would have "
                f"{values:,} values in {places:,} places; export with --long, or take rows()"
            )
        return pd.DataFrame(self.fixed() | {name: self._list(name) for name in self.names})

    def fixed(self) -> dict[str, Any]:
        """The columns that every run has."""
        labels = {kind: self.labels_of(kind) for kind in KINDS}
        return {
            "cell": self.cells, **labels, "seed": self.seeds,
            "status": self.statuses.astype(object), "reason": self.reasons, "seconds": self.seconds,
        }  # fmt: skip

    def _list(self, name: str) -> Any:
        """A measure from which pandas infers its type; NaN where it is missing."""
        columns = [column for _, column in self.columns(name)]
        if any(column.levels is not None for column in columns):
            return self._fill(name, np.nan).tolist()
        whole = all(column.data.dtype == np.int64 and not column.absent.any() for column in columns)
        if whole and self.has(name).all():
            return self._fill(name, 0).astype(np.int64)
        return self.numbers(name)

    def finished(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """(n,) whether a row is done, and (n,) whether it failed."""
        return self._finished

    @cached_property
    def _finished(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        return self.statuses == Status.DONE.value, self.statuses == Status.FAILED.value
