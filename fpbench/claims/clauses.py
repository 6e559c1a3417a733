"""What is known of counts by group beyond their ranges: clauses of linear rows.

A rate x / n between two fractions, of a group whose size n is unknown, is two clauses of one row
each, like p n <= q x; so is a mean. That some group of a set, nobody says which, has few people is
a clause of K rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

_Whole = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Clauses:
    """R rows in C clauses, of each of which at least one row holds.

    A row says that numbers of people, each of one group in one set and times a whole number, sum to
    `most` or less. These are the T terms.
    """

    row: NDArray[np.intp]
    """(T,) row of each term, ascending."""
    sets: NDArray[np.intp]
    group: NDArray[np.intp]
    factors: _Whole
    """(T,) numbers of the sets and groups, and factors."""
    most: _Whole
    """(R,)."""
    clause: NDArray[np.intp]
    """(R,) clause of each row, ascending from 0."""

    @classmethod
    def of(
        cls, sets: ArrayLike, group: ArrayLike, factors: ArrayLike, most: ArrayLike,
        clause: ArrayLike,
    ) -> Clauses:  # fmt: skip
        """Clauses of rows of W terms each, some of which may have the factor 0.

        `sets`, `group`, `factors`: (R, W), or what is broadcast to it. `most`, `clause`: (R,).
        """
        ends = np.asarray(most, np.int64)
        shape = len(ends), np.shape(factors)[-1]
        wide = [np.broadcast_to(part, shape) for part in (sets, group, factors)]
        used = np.nonzero(wide[2])
        own, groups, whole = (part[used] for part in wide)
        return cls(used[0], own, groups, whole, ends, np.asarray(clause))

    def __len__(self) -> int:
        """Number of clauses."""
        return int(self.clause[-1]) + 1 if len(self.clause) else 0

    @classmethod
    def join(cls, parts: Sequence[Clauses]) -> Clauses:
        """All clauses of several, about the same sets."""
        joined = {
            own.name: np.concatenate([getattr(part, own.name) for part in parts])
            for own in fields(cls)
        }
        for name, sizes, each in (
            ("row", [len(part.most) for part in parts], [len(part.row) for part in parts]),
            ("clause", [*map(len, parts)], [len(part.most) for part in parts]),
        ):
            joined[name] = joined[name] + np.repeat(np.cumsum([0, *sizes])[:-1], each)
        return cls(**joined)

    def add_up(self, counts: NDArray[np.integer[Any]]) -> _Whole:
        """(R,) the sums that rows are about, by counts (M, K) of the groups in the sets."""
        sums = np.zeros(len(self.most), np.int64)
        np.add.at(sums, self.row, self.factors * counts[self.sets, self.group].astype(np.int64))
        return sums

    def renumber(self, new: NDArray[np.intp]) -> Clauses:
        """The clauses about sets that have a new number (M,); it is -1 of those that go."""
        sets = new[self.sets]
        rows = ~np.isin(self.clause, self.clause[self.row[sets < 0]])
        left, clause = rows[self.row], np.unique(self.clause[rows], return_inverse=True)[1]
        return Clauses(
            (np.cumsum(rows) - 1)[self.row[left]], sets[left], self.group[left],
            self.factors[left], self.most[rows], clause,
        )  # fmt: skip

    def keep_single(self) -> Clauses:
        """The clauses of one row, which holds."""
        rows = (np.bincount(self.clause, minlength=len(self)) == 1)[self.clause]
        own = rows[self.row]
        return Clauses(
            (np.cumsum(rows) - 1)[self.row[own]], self.sets[own], self.group[own],
            self.factors[own], self.most[rows], np.arange(rows.sum()),
        )  # fmt: skip

    def find_broken(self, counts: NDArray[np.integer[Any]]) -> NDArray[np.intp]:
        """Numbers of the sets of clauses of which no row holds."""
        kept = np.bincount(self.clause, self.add_up(counts) <= self.most, len(self))
        return np.unique(self.sets[kept[self.clause[self.row]] == 0])


NO_CLAUSES = Clauses(*np.zeros((6, 0), np.int64))
