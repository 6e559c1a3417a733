"""The points that one group may have: whole counts of two classes, and what they cost.

A point's *excess* is what it costs, less the price of its people, above the group's best point.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_Numbers = NDArray[np.float64]
_Integers = NDArray[np.int64]

_EQUAL = 1e-13
"""Costs that differ by less than this, relative to what they are made of, are equal."""


class HalfPlane(NamedTuple):
    """a times the first count + b times the second is at most `most`."""

    a: int
    b: int
    most: int


class Axis(NamedTuple):
    """What each count of one class in a group costs."""

    first: int
    """Least count."""
    costs: _Numbers
    """Cost of `first`, first + 1, ...: convex."""


class Points(NamedTuple):
    """Points and their excess."""

    a: _Integers
    b: _Integers
    excess: _Numbers


class Group:
    """The points that one group may have."""

    def __init__(self, axes: tuple[Axis, Axis], planes: Sequence[HalfPlane]) -> None:
        self._axes, self._planes = axes, planes
        a, b = axes
        self._a = a.first + np.arange(len(a.costs))
        low = np.full(len(self._a), b.first)
        high = low + len(b.costs) - 1
        for plane in planes:
            low, high = _within(plane, self._a, low, high)
        self._low, self._high = low - b.first, high - b.first

    def turned(self) -> Group:
        """The same with the two classes changed around."""
        planes = [HalfPlane(plane.b, plane.a, plane.most) for plane in self._planes]
        return Group((self._axes[1], self._axes[0]), planes)

    def price(self, prices: tuple[float, float]) -> float:
        """Set the prices; returns the least cost of a point less its prices, infinite if none."""
        a, b = self._axes
        self._h = a.costs - prices[0] * self._a
        self._v = b.costs - prices[1] * (b.first + np.arange(len(b.costs)))
        # From here to there costs are least: they fall before, and rise after.
        least = int(np.argmin(self._v))
        scale = b.costs[least] + abs(prices[1]) * (abs(b.first) + len(b.costs))
        flat = np.flatnonzero(self._v <= self._v[least] + _EQUAL * scale)
        self._valley = int(flat[0]), int(flat[-1])
        some = self._low <= self._high
        self._best = np.full(len(self._h), np.inf)
        self._best[some] = (self._h + self._v[self._nearest()])[some]
        self._least = float(self._best.min())
        return self._least

    def _nearest(self) -> _Integers:
        """Place of the best b of each a."""
        inside: _Integers = np.clip(self._valley[0], self._low, self._high)
        return np.clip(inside, 0, len(self._v) - 1)

    def best(self) -> tuple[int, int]:
        """The first point without excess."""
        row = int(np.argmin(self._best))
        return int(self._a[row]), self._axes[1].first + int(self._nearest()[row])

    @property
    def flat(self) -> bool:
        """Whether several counts of the second class cost least."""
        return self._valley[0] < self._valley[1]

    @property
    def span(self) -> float:
        """No point has a greater excess."""
        return float(self._h.max() + self._v.max() - self._least)

    def points(self, excess: float) -> Points:
        """All points whose excess is at most this."""
        rows = np.flatnonzero(self._best - self._least <= excess)
        room = self._least + excess - self._h[rows]
        valley = self._valley[0]
        falling, rising = self._v[: valley + 1], self._v[valley:]
        low = valley + 1 - np.searchsorted(falling[::-1], room, side="right")
        high = valley - 1 + np.searchsorted(rising, room, side="right")
        # The best point of a row is in, whatever rounding says.
        nearest = self._nearest()[rows]
        low = np.maximum(np.minimum(low, nearest), self._low[rows])
        high = np.minimum(np.maximum(high, nearest), self._high[rows])
        count = high - low + 1
        row = np.repeat(rows, count)
        at = np.repeat(low - np.cumsum(count) + count, count) + np.arange(count.sum())
        b = self._axes[1].first + at
        return Points(self._a[row], b, self._h[row] + self._v[at] - self._least)

    def rows(self, excess: float) -> Points:
        """Every a with its best b, whose excess is at most this."""
        rows = np.flatnonzero(self._best - self._least <= excess)
        b = self._axes[1].first + self._nearest()[rows]
        return Points(self._a[rows], b, self._best[rows] - self._least)

    def best_b(self, a: int) -> tuple[int, int]:
        """Least and greatest b that cost least, given a that can be."""
        at, first = a - self._axes[0].first, self._axes[1].first
        low, high = np.clip(self._valley, self._low[at], self._high[at])
        return first + int(low), first + int(high)

    def excess(self, a: _Integers, b: _Integers | None) -> _Numbers:
        """Excess of points, infinite where the group cannot be; of the best b if None."""
        row = a - self._axes[0].first
        inside = (row >= 0) & (row < len(self._a))
        row = np.where(inside, row, 0)
        if b is None:
            return np.where(inside, self._best[row] - self._least, np.inf)
        at = b - self._axes[1].first
        inside &= (at >= self._low[row]) & (at <= self._high[row])
        at = np.where(inside, at, 0)
        return np.where(inside, self._h[row] + self._v[at] - self._least, np.inf)


def _within(
    plane: HalfPlane, a: _Integers, low: _Integers, high: _Integers
) -> tuple[_Integers, _Integers]:
    """The interval of b that a half-plane leaves for each a."""
    largest = abs(plane.most) + abs(plane.b) + abs(plane.a) * int(abs(a).max(initial=1))
    room = plane.most - plane.a * (a if largest < 2**62 else a.astype(object))
    if plane.b == 0:
        return np.where(np.asarray(room >= 0, dtype=bool), low, high + 1), high
    if plane.b > 0:
        most = np.clip(room // plane.b, -(2**62), 2**62).astype(np.int64)
        return low, np.minimum(high, most)
    least = np.clip(-(room // -plane.b), -(2**62), 2**62).astype(np.int64)
    return np.maximum(low, least), high
