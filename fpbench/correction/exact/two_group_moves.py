"""Candidate moves between two groups: all that are optimal for some weights.

People of one slice are moved in two directions: `x`, those with a positive prediction, and `y`, the
others. Only net moves count (see module `two_groups`), so a correction is a pair of numbers, and
the pairs that satisfy a constraint are a convex region, up to rounding to whole people.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fpbench.correction.exact.two_group_regions import Region
from fpbench.data.sample import Codes

_Mask = NDArray[np.bool_]
_Counts = NDArray[np.int64]
_Column = Callable[[_Counts], tuple[_Counts, _Mask, _Counts]]

_WINDOW = 16_384
"""Most numbers of moves that are processed at once: few enough to stay in the cache."""


class Quadrant(NamedTuple):
    """Candidates that move people the same way; each needs fewer moves in y than the one before.

    In order of `a`, which increases strictly, while `d` decreases strictly.
    """

    up_x: bool
    """Whether positively predicted people move from group 0 to group 1."""
    up_y: bool
    """Whether the others do."""
    a: _Counts
    """How many positively predicted people move."""
    d: _Counts
    """How many of the others move."""

    @property
    def cells(self) -> tuple[tuple[bool, bool, int], tuple[bool, bool, int]]:
        """The people it moves: their prediction, whether to group 1, and the greatest number."""
        return (True, self.up_x, int(self.a[-1])), (False, self.up_y, int(self.d[0]))


@dataclass(frozen=True)
class Slice:
    """The people that a constraint looks at, by guess and prediction."""

    guess: Codes
    predictions: Codes
    part: _Mask | None
    free: _Mask | None = None
    """(n,) true for people who may be moved; None for everyone."""

    @property
    def size(self) -> int:
        """Number of people."""
        return len(self.guess) if self.part is None else int(np.count_nonzero(self.part))

    @cached_property
    def ones(self) -> int:
        """Number of people who are guessed to be of group 1."""
        ones = np.equal(self.guess, 1)
        if self.part is not None:
            ones &= self.part
        return int(np.count_nonzero(ones))

    def cell(self, prediction: bool, up: bool) -> _Mask:
        """Mask (n,) of people to move: with the prediction, and a guess of 0 (up) or 1 (down)."""
        mask = np.equal(self.guess, 0 if up else 1)
        mask &= np.equal(self.predictions, 1 if prediction else 0)
        if self.part is not None:
            mask &= self.part
        if self.free is not None:
            mask &= self.free
        return mask

    def frontier(self, region: Region) -> list[Quadrant]:
        """All candidates for the best correction; empty if the region is."""
        positive = np.equal(self.predictions, 1)
        if self.part is not None:
            positive &= self.part
        x = int(np.count_nonzero(np.logical_and(positive, np.equal(self.guess, 1), out=positive)))
        y, positives = self.ones - x, region.part.positives
        xs, ys = (0, positives), (0, region.people - positives)
        if self.free is not None:
            xs, ys = self._find_reach(True, x), self._find_reach(False, y)
        return list_candidates(region, (x, y), xs, ys)

    def _find_reach(self, prediction: bool, current: int) -> tuple[int, int]:
        """Least and greatest number of people of group 1 with a prediction, if all free move."""
        up, down = (int(np.count_nonzero(self.cell(prediction, up))) for up in (True, False))
        return current - down, current + up


def list_candidates(
    region: Region, start: tuple[int, int], xs: tuple[int, int], ys: tuple[int, int]
) -> list[Quadrant]:
    """All moves that are optimal for some weights.

    `start`: people guessed to be of group 1: positively predicted, and others. `xs`, `ys`: least
    and greatest number that each of these can become.
    """
    x0, y0 = start

    def column(x: _Counts) -> tuple[_Counts, _Mask, _Counts]:
        """For each x: the least move in y, whether any is possible, and how far y0 is outside."""
        low, high = region.interval(x)
        low, high = np.maximum(low - x, ys[0]), np.minimum(high - x, ys[1])
        outside = np.maximum(np.maximum(low - y0, y0 - high), 0)
        return np.clip(y0, low, high) - y0, low <= high, outside

    sides = [(True, *_scan_side(column, x0, xs[1])), (False, *_scan_side(column, x0, xs[0]))]
    quadrants = []
    for up_y in (True, False):
        same_y = []
        for up_x, a, dy in sides:
            this_way = dy >= 0 if up_y else dy < 0
            if this_way.any():
                chosen = _select_decreasing(np.abs(dy), this_way)
                same_y.append(Quadrant(up_x, up_y, a[chosen], np.abs(dy[chosen])))
        # Moving nobody in x belongs to both sides: a side with only that is redundant.
        quadrants += [quadrant for quadrant in same_y if quadrant.a[-1] > 0] or same_y[:1]
    return quadrants


def _scan_side(column: _Column, start: int, end: int) -> tuple[_Counts, _Counts]:
    """Candidates on one side of the guess: numbers of moves in x, and signed moves in y.

    How far y0 lies outside the interval is the ceiling of a convex function of x: it falls, then
    rises, with moves in y of one sign before and of one sign after. So the search ends at the
    first x that needs no move in y, or else once it has met a possible x after the fall.
    """
    step = 1 if end >= start else -1
    moves_x, moves_y = [], []
    least_outside: int | None = None
    for a in _split_windows(abs(end - start) + 1):
        dy, possible, outside = column(start + step * a)
        none_needed = np.flatnonzero(possible & (dy == 0))
        if len(none_needed):
            possible[none_needed[0] + 1 :] = False
        moves_x.append(a[possible])
        moves_y.append(dy[possible])
        fallen = np.minimum.accumulate(outside)
        if least_outside is not None:
            fallen = np.minimum(fallen, least_outside)
        if len(none_needed) or possible[outside > fallen].any():
            break
        least_outside = int(fallen[-1])
    return np.concatenate(moves_x), np.concatenate(moves_y)


def _split_windows(count: int) -> Iterator[_Counts]:
    """0, 1, ..., count - 1 in pieces: small ones first, for the side that ends at once."""
    first, size = 0, min(_WINDOW, 256)
    while first < count:
        yield np.arange(first, min(first + size, count))
        first, size = first + size, min(4 * size, _WINDOW)


def _select_decreasing(moves: _Counts, this_way: _Mask) -> _Mask:
    """Mask of the moves in y this way that are fewer than all such before them.

    More moves in x pay off only if they save moves in y of the same kind.
    """
    counted = np.where(this_way, moves, np.iinfo(np.int64).max)
    chosen = this_way.copy()
    chosen[1:] &= counted[1:] < np.minimum.accumulate(counted)[:-1]
    return chosen
