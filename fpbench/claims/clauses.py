"""What is known of counts by group beyond their ranges: clauses of linear rows.

A rate x / n between two fractions, of a group whose size n is unknown, is two clauses of one row
each, like p n <= q x. That some group of a set, nobody says which, has few people is a clause of K
rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_Whole = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Clauses:
    """R rows in C clauses, of each of which at least one row holds.

    A row says that the people of a group in two sets, each times a whole number, sum to `most` or
    less.
    """

    sets: NDArray[np.intp]
    """(R, 2) numbers of the sets."""
    factors: _Whole
    """(R, 2)."""
    group: NDArray[np.intp]
    """(R,)."""
    most: _Whole
    """(R,)."""
    clause: NDArray[np.intp]
    """(R,) clause of each row, ascending from 0."""

    def __len__(self) -> int:
        """Number of clauses."""
        return int(self.clause[-1]) + 1 if len(self.clause) else 0

    @classmethod
    def join(cls, parts: Sequence[Clauses]) -> Clauses:
        """All clauses of several, about the same sets."""
        first = np.cumsum([0, *map(len, parts)])
        shifted = [part.clause + at for part, at in zip(parts, first, strict=False)]
        names = ("sets", "factors", "group", "most")
        joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        return cls(**joined, clause=np.concatenate(shifted))

    def add_up(self, counts: NDArray[np.integer[Any]]) -> _Whole:
        """(R,) the sums that rows are about, by counts (M, K) of the groups in the sets."""
        sums: _Whole = (self.factors * counts[self.sets, self.group[:, None]]).sum(axis=1)
        return sums

    def renumber(self, new: NDArray[np.intp]) -> Clauses:
        """The clauses about sets that have a new number (M,); it is -1 of those that go."""
        sets = new[self.sets]
        left = ~np.isin(self.clause, self.clause[(sets < 0).any(axis=1)])
        clause = np.unique(self.clause[left], return_inverse=True)[1]
        own = {name: getattr(self, name)[left] for name in ("factors", "group", "most")}
        return Clauses(sets[left], clause=clause, **own)

    def find_broken(self, counts: NDArray[np.integer[Any]]) -> NDArray[np.intp]:
        """Numbers of the sets of clauses of which no row holds."""
        kept = np.bincount(self.clause, self.add_up(counts) <= self.most, len(self))
        return np.unique(self.sets[kept[self.clause] == 0])


NO_CLAUSES = Clauses(*np.zeros((2, 0, 2), np.int64), *np.zeros((3, 0), np.int64))
