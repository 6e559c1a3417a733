"""Recounts worlds and proofs against published numbers, apart from the attack that found them.

A world is groups of all people that satisfies every published number. A proof rules groups out: by
ranges that are used up, and by multipliers, for which one must be added up to be believed. Nothing
here is shared with the attack: it needs numpy, and what was published of whom.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

UNIT = 1 << 30
"""What multipliers are multiples of."""

_Whole = NDArray[np.int64]
_Mask = NDArray[np.bool_]


class Published(NamedTuple):
    """Ranges (M, K) of the K groups' numbers in M sets, and clauses as in `Clauses`."""

    starts: _Whole
    members: _Whole
    """Of set s, ascending: `members[starts[s] : starts[s + 1]]`."""
    low: _Whole
    high: _Whole
    row: _Whole
    sets: _Whole
    group: _Whole
    factors: _Whole
    most: _Whole
    clause: _Whole

    def add_up(self, of: _Mask) -> _Whole:
        """(M, K) members of each set for whom (n, K) is true."""
        return np.asarray(np.add.reduceat(of[self.members].astype(np.int64), self.starts[:-1]))

    def allows(self, world: NDArray[np.signedinteger]) -> bool:
        """Whether codes of groups (n,) are a world."""
        ones = world[:, None] == np.arange(self.low.shape[1])
        counts = self.add_up(ones)
        sums = np.zeros(len(self.most), np.int64)
        np.add.at(sums, self.row, self.factors * counts[self.sets, self.group])
        kept = np.isin(self.clause, self.clause[sums <= self.most])
        inside = (self.low <= counts) & (counts <= self.high)
        return bool(ones.any(axis=1).all() and inside.all() and kept.all())

    def list_kinds(self, people: int) -> NDArray[np.intp]:
        """(n,) numbers that are equal for people of the same sets, who may exchange their groups.

        If groups are a world, they are one after the exchange.
        """
        own = np.repeat(np.arange(len(self.low)), np.diff(self.starts))
        own, kinds = own[np.argsort(self.members, kind="stable")], dict[bytes, int]()
        ends = np.cumsum([0, *np.bincount(self.members, minlength=people)]).tolist()
        keys = (own[start:end].tobytes() for start, end in pairwise(ends))
        return np.array([kinds.setdefault(key, len(kinds)) for key in keys], np.intp)

    def narrow(self, possible: _Mask) -> tuple[_Whole, _Whole, _Whole, _Whole]:
        """Numbers (M, K) that are sure and possible, and ranges by them and other sets' ranges.

        Sets with the same undecided people share their ranges.
        """
        open_ = possible.sum(axis=1) > 1
        sure, top = self.add_up(possible & ~open_[:, None]), self.add_up(possible)
        inside, same = open_[self.members], dict[bytes, int]()
        ends = [slice(*pair) for pair in pairwise(self.starts)]
        keys = [self.members[own][inside[own]].tobytes() for own in ends]
        place = np.array([same.setdefault(key, len(same)) for key in keys], np.intp)
        low, high = self.low - sure, self.high - sure
        least, most = np.zeros_like(low), np.full_like(high, len(possible))
        np.maximum.at(least, place, low)
        np.minimum.at(most, place, high)
        low, high = least[place] + sure, np.minimum(most[place] + sure, top)
        size = np.diff(self.starts)[:, None]
        high = np.minimum(high, size - low.sum(axis=1, keepdims=True) + low)
        low = np.maximum(low, size - high.sum(axis=1, keepdims=True) + high)
        return sure, top, low, high

    def propagate(self, possible: _Mask) -> _Mask:
        """(n, K) possible groups without those that ranges rule out which are used up."""
        owner = np.repeat(np.arange(len(self.low)), np.diff(self.starts))
        while True:
            sure, top, low, high = self.narrow(possible)
            full, own = np.zeros((2, *possible.shape), np.bool_)
            for marked, sets in ((full, high == sure), (own, low == top)):
                rows, groups = np.nonzero(sets[owner])
                marked[self.members[rows], groups] = True
            own &= possible
            one = possible.sum(axis=1, keepdims=True) == 1
            left = possible & (one | ~full) & (own | ~own.any(axis=1, keepdims=True))
            if (left == possible).all():
                return possible
            possible = left

    def proves(
        self, possible: _Mask, group: int, sets: _Whole, multipliers: _Whole, people: _Whole,
        ruled_out: _Whole,
    ) -> bool:  # fmt: skip
        """Whether no person, by multipliers of the sets' numbers of a group, has a group ruled out.

        In each world, this many of them do: those who have it, minus the multipliers times the
        numbers, plus the same. The first sum is at most everybody's greatest share, the other at
        most that of the ends of the ranges. If both are less than one together, none does.
        """
        if np.abs(multipliers.astype(np.float64)).sum() >= 2**61:  # sums must fit
            return False
        *_, low, high = self.narrow(possible)
        share = np.zeros(possible.shape, np.int64)
        share[people, ruled_out] = UNIT
        for number, multiplier in zip(sets, multipliers, strict=True):
            share[self.members[slice(*self.starts[number : number + 2])], group] -= multiplier
        greatest = np.where(possible, share, np.iinfo(np.int64).min).max(axis=1)
        ends = np.where(multipliers > 0, high[sets, group], low[sets, group])
        products = zip(multipliers.tolist(), ends.tolist(), strict=True)
        return bool(sum(greatest.tolist()) + sum(a * b for a, b in products) < UNIT)
