"""The rows of a run as columns: a million of them are read, compared and ranked at once.

The measures of cells are stored in *blocks*: cells of one layout, with a line of values per name.
A name that few cells have takes no memory for the others.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
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
from fpbench.store import packing
from fpbench.store.packing import Bits, Kinds, ValueKind

if TYPE_CHECKING:
    from pandas import DataFrame

_MOST_PLACES = 10_000_000
_MOST_EMPTY = 100
"""Greatest number of places per value in a table with more places than that."""
Rows = NDArray[np.intp]
"""Positions of rows."""
Labels = tuple[str, ...]
"""A label for every kind, in the order of `KINDS`; empty where the kind is not used."""
_PLACES = {kind: place for place, kind in enumerate(KINDS)}


@dataclass(frozen=True)
class Block:
    """The measures of the cells of one layout."""

    names: tuple[str, ...]
    rows: Rows
    """Positions of the cells."""
    kinds: Kinds
    """(names, rows)."""
    bits: Bits
    """(names, rows)."""

    @cached_property
    def place(self) -> Mapping[str, int]:
        """The line of each name."""
        return {name: i for i, name in enumerate(self.names)}


@dataclass(frozen=True)
class Results(InWords):
    """Rows of a run, in the order of its plan."""

    combinations: Sequence[Labels]
    """All combinations of components."""
    combination: NDArray[np.int64]
    """(n,) position of each row's combination."""
    seeds: NDArray[np.int64]
    """(n,)."""
    statuses: Sequence[str]
    """n of `done`, `failed` and `skipped`; empty where a cell has not been run yet."""
    seconds: NDArray[np.float64]
    """(n,) how long each took; NaN where unknown."""
    cells: Sequence[str]
    """The n keys; empty texts if they were not read."""
    reasons: Mapping[int, str]
    """Why rows were skipped or failed, by position."""
    blocks: Sequence[Block] = ()
    words: Sequence[str] = field(default=(), repr=False)
    """The texts; a measure that is a text is the number of one."""
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
        words: dict[str, int] = {}
        layouts: dict[tuple[str, ...], tuple[list[int], list[bytes]]] = {}
        chosen = []
        for i, row in enumerate(rows):
            labels = tuple(row.get(kind, "") for kind in KINDS)
            chosen.append(combinations.setdefault(labels, len(combinations)))
            measures = {name: value for name, value in row.items() if name not in FIXED}
            positions, blobs = layouts.setdefault(tuple(measures), ([], []))
            positions.append(i)
            blobs.append(packing.pack(measures, lambda text: words.setdefault(text, len(words))))
        return cls(
            combinations=list(combinations),
            combination=np.array(chosen, np.int64),
            seeds=np.array([row.get("seed", 0) for row in rows], np.int64),
            statuses=[row.get("status", "") for row in rows],
            seconds=np.array([row.get("seconds") for row in rows], np.float64),
            cells=[row.get("cell", "") for row in rows],
            reasons={i: row["reason"] for i, row in enumerate(rows) if row.get("reason")},
            blocks=[
                Block(names, np.array(positions), *packing.split(blobs, len(names)))
                for names, (positions, blobs) in layouts.items()
            ],
            words=list(words),
            glossary=glossary,
        )

    @cached_property
    def names(self) -> list[str]:
        """Names of the measures, in the order in which rows first have them."""
        order = sorted(range(len(self.blocks)), key=lambda i: (self._find_first(i), i))
        return list(dict.fromkeys(name for i in order for name in self.blocks[i].names))

    def _find_first(self, block: int) -> int:
        rows = self.blocks[block].rows
        return int(rows.min()) if len(rows) else len(self)

    def numbers(self, name: str) -> NDArray[np.float64]:
        """(n,) a measure, `seconds` or `seed`; NaN where there is no number."""
        if name == "seconds":
            return self.seconds
        if name == "seed":
            return self.seeds.astype(np.float64)
        numbers = np.full(len(self), np.nan)
        for block, i in self._having(name):
            numbers[block.rows] = packing.numbers(block.kinds[i], block.bits[i], self.word)
        return numbers

    def measured(self, name: str, among: NDArray[np.bool_]) -> bool:
        """Whether some of these rows have a finite number of a measure, or of `seconds`."""
        if name == "seconds":
            return bool(np.isfinite(self.seconds[among]).any())
        return any(
            (np.isfinite(packing.numbers(block.kinds[i], block.bits[i], self.word))
             & among[block.rows]).any()
            for block, i in self._having(name)
        )  # fmt: skip

    def kinds(self, name: str) -> Kinds:
        """(n,) the kind of each value of a measure; `NONE` where it is missing."""
        kinds = np.zeros(len(self), np.uint8)
        for block, i in self._having(name):
            kinds[block.rows] = block.kinds[i]
        return kinds

    def bits(self, name: str) -> Bits:
        """(n,) the eight bytes of each value of a measure; 0 where it is missing."""
        bits = np.zeros(len(self), np.int64)
        for block, i in self._having(name):
            bits[block.rows] = block.bits[i]
        return bits

    def value(self, name: str, row: int) -> Any:
        """A measure of one row; None where it is missing."""
        value = None
        for block, i in self._having(name):
            for at in np.flatnonzero(block.rows == row):
                part = slice(at, at + 1)
                (value,) = packing.unpack_values(
                    block.kinds[i][part], block.bits[i][part], self.word
                )
        return value

    def values(self, name: str) -> list[Any]:
        """The n values of any column as in `rows`; None where a row has none."""
        if name in KINDS:
            labels = self.labels_of(name)
            return [labels[i] for i in self.combination.tolist()]
        if name == "seconds":
            return [None if math.isnan(value) else value for value in self.seconds.tolist()]
        if name in FIXED:
            return list(self.fixed()[name])
        values: list[Any] = [None] * len(self)
        for block, i in self._having(name):
            block_values = packing.unpack_values(block.kinds[i], block.bits[i], self.word)
            for row, value in zip(block.rows.tolist(), block_values, strict=True):
                values[row] = value
        return values

    def has(self, name: str) -> NDArray[np.bool_]:
        """(n,) whether rows have a measure, even if it is None."""
        present = np.zeros(len(self), np.bool_)
        for block, _ in self._having(name):
            present[block.rows] = True
        return present

    def texts(self, name: str) -> tuple[Rows, NDArray[np.int64]]:
        """The rows in which a measure is a text, and the numbers of these texts."""
        rows, numbers = [np.zeros(0, np.intp)], [np.zeros(0, np.int64)]
        for block, i in self._having(name):
            texts = block.kinds[i] == ValueKind.WORD
            rows.append(block.rows[texts])
            numbers.append(block.bits[i][texts])
        return np.concatenate(rows), np.concatenate(numbers)

    def _having(self, name: str) -> Sequence[tuple[Block, int]]:
        return self._places.get(name, ())

    @cached_property
    def _places(self) -> Mapping[str, Sequence[tuple[Block, int]]]:
        """The blocks that have each name, and its line there."""
        places: dict[str, list[tuple[Block, int]]] = {}
        for block in self.blocks:
            for place, name in enumerate(block.names):
                places.setdefault(name, []).append((block, place))
        return places

    def word(self, number: int) -> str:
        """The text with a number; ValueError if there is none."""
        if not 0 <= number < len(self.words):
            raise ValueError(f"a measure that is word no. {number} of {len(self.words)}")
        return self.words[number]

    def without(self, names: Set[str]) -> Results:
        """These results without some measures."""
        if not any(names & block.place.keys() for block in self.blocks):
            return self
        blocks = []
        for block in self.blocks:
            lines = [i for i, name in enumerate(block.names) if name not in names]
            others = tuple(block.names[i] for i in lines)
            blocks.append(Block(others, block.rows, block.kinds[lines], block.bits[lines]))
        return replace(self, blocks=blocks)

    def beside(self, rows: Rows, measures: Mapping[str, object]) -> Results:
        """These results with more measures of some rows; NaN becomes None."""
        if not len(rows):
            return self
        numbers = np.array(list(measures.values()), np.float64)
        kinds = np.where(np.isnan(numbers), ValueKind.NONE, ValueKind.FLOAT).astype(np.uint8)
        block = Block(tuple(measures), rows, kinds, numbers.view(np.int64))
        wider = replace(self, blocks=[*self.blocks, block])
        wider.__dict__["_finished"] = self._finished  # the same rows
        return wider

    def labels_of(self, kind: str) -> list[str]:
        """The label of a kind in each of `combinations`; empty where it is not used."""
        place = _PLACES[kind]
        return [labels[place] for labels in self.combinations]

    def merge_combinations(self, kinds: Collection[str]) -> tuple[list[Labels], NDArray[np.int64]]:
        """Combinations with the labels of some kinds only, and the new index of each old one."""
        columns = [
            self.labels_of(kind) if kind in kinds else [""] * len(self.combinations)
            for kind in KINDS
        ]
        merged: dict[Labels, int] = {}
        numbers = [merged.setdefault(labels, len(merged)) for labels in zip(*columns, strict=True)]
        return list(merged), np.array(numbers, np.int64)

    def labels(self, row: int) -> dict[str, str]:
        """The label of each kind that a row combines."""
        return dict(zip(KINDS, self.combinations[self.combination[row]], strict=True))

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary per row.

        `cell`, a label for every kind (empty where not used), `seed`, `status`, `reason`,
        `seconds`, then the measures.
        """
        seeds, seconds = self.seeds.tolist(), self.seconds.tolist()
        rows: list[dict[str, Any]] = [
            {
                "cell": cell,
                **self.labels(i),
                "seed": seeds[i],
                "status": self.statuses[i],
                "reason": self.reasons.get(i),
                "seconds": None if seconds[i] != seconds[i] else seconds[i],
            }
            for i, cell in enumerate(self.cells)
        ]
        for block in self.blocks:
            columns = [packing.unpack_values(block.kinds[i], block.bits[i], self.word)
                       for i in range(len(block.names))]  # fmt: skip
            for row, *values in zip(block.rows.tolist(), *columns, strict=True):
                rows[row].update(zip(block.names, values, strict=True))
        return rows

    def frame(self) -> DataFrame:
        """The rows: labels, seed, status, reason, seconds, and one column per measure.

        Raises InputError if nearly all of it would be empty: most rows have few of many measures.
        """
        import pandas as pd

        places = len(self) * len(self.names)
        values = sum(block.kinds.size for block in self.blocks)
        if places > max(_MOST_PLACES, _MOST_EMPTY * values):
            raise InputError(
                f"a table of {len(self):,} rows and {len(self.names):,} measures would have "
                f"{values:,} values in {places:,} places; export with --long, or take rows()"
            )
        return pd.DataFrame(self.fixed() | {name: self._column(name) for name in self.names})

    def fixed(self) -> dict[str, Any]:
        """The columns that every run has."""
        columns: dict[str, Any] = {"cell": list(self.cells)}
        columns |= {kind: self.values(kind) for kind in KINDS}
        columns |= {
            "seed": self.seeds,
            "status": list(self.statuses),
            "reason": [self.reasons.get(i) for i in range(len(self))],
            "seconds": self.seconds,
        }
        return columns

    def _column(self, name: str) -> Any:
        """A measure as pandas holds it; NaN where it is missing."""
        rows, values = self.column(name)
        if values.dtype == np.int64:
            return values
        full = np.full(len(self), np.nan, values.dtype)
        full[rows] = values
        return full.tolist() if values.dtype == object else full  # pandas infers the type

    def column(self, name: str) -> tuple[Rows, NDArray[Any]]:
        """The rows that have a measure, ascending, and its values as pandas holds them.

        Whole numbers stay whole where every row has one.
        """
        having = self._having(name)
        rows = np.concatenate([block.rows for block, _ in having])
        kinds = np.concatenate([block.kinds[i] for block, i in having])
        bits = np.concatenate([block.bits[i] for block, i in having])
        rows, first = np.unique(rows[::-1], return_index=True)  # the last entry of a row counts
        kinds, bits = kinds[::-1][first], bits[::-1][first]
        present = set(np.unique(kinds).tolist())
        if present == {ValueKind.INT} and len(rows) == len(self):
            return rows, bits
        if present <= {ValueKind.FLOAT, ValueKind.INT, ValueKind.NONE} and present != {
            ValueKind.NONE
        }:
            return rows, packing.numbers(kinds, bits, self.word)
        values = np.empty(len(rows), object)
        values[:] = packing.unpack_values(kinds, bits, self.word)
        return rows, values

    def finished(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """(n,) whether a row is done, and (n,) whether it failed."""
        return self._finished

    @cached_property
    def _finished(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        numbers = defaultdict(int, {Status.DONE.value: 1, Status.FAILED.value: 2})
        statuses = np.fromiter(map(numbers.__getitem__, self.statuses), np.uint8, len(self))
        return statuses == 1, statuses == 2
