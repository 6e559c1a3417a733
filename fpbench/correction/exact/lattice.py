"""Exact search for whole counts of two classes of people, group by group, near known prices.

Without the constraint that groups sum to the size of each of the two classes, the groups would be
independent. Prices of these constraints (the duals of the linear program) turn the best points of
the groups into a bound; a point that costs more than the best by its *excess* can be part of a
solution only if all excesses together are at most the gap to the optimum. So the points of small
excess are listed, exactly, in integers, and combined group after group; a solution whose excess is
within what was listed is optimal (Lagrangian relaxation; Geoffrion, 1974).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fpbench.correction.exact.highs import HighsModel

_Numbers = NDArray[np.float64]
_Integers = NDArray[np.int64]

_EQUAL = 1e-13
"""Costs that differ by less than this, relative to their summands, are equal."""


class HalfPlane(NamedTuple):
    """a times the first count + b times the second is at most `most`."""

    a: int
    b: int
    most: int


class CountAxis(NamedTuple):
    """Cost of each count of one class in a group."""

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
    """The possible points of one group."""

    def __init__(self, axes: tuple[CountAxis, CountAxis], planes: Sequence[HalfPlane]) -> None:
        self._axes, self._planes = axes, planes
        a, b = axes
        self._a = a.first + np.arange(len(a.costs))
        low = np.full(len(self._a), b.first)
        high = low + len(b.costs) - 1
        for plane in planes:
            low, high = _cut_interval(plane, self._a, low, high)
        self._low, self._high = low - b.first, high - b.first

    def turned(self) -> Group:
        """The same group with the two classes swapped."""
        planes = [HalfPlane(plane.b, plane.a, plane.most) for plane in self._planes]
        return Group((self._axes[1], self._axes[0]), planes)

    def price(self, prices: tuple[float, float]) -> float:
        """Set the prices; returns the least cost of a point minus its prices, infinite if none."""
        a, b = self._axes
        self._h = a.costs - prices[0] * self._a
        self._v = b.costs - prices[1] * (b.first + np.arange(len(b.costs)))
        # The interval of least costs: they fall before, and rise after.
        least = int(np.argmin(self._v))
        scale = b.costs[least] + abs(prices[1]) * (abs(b.first) + len(b.costs))
        flat = np.flatnonzero(self._v <= self._v[least] + _EQUAL * scale)
        self._valley = int(flat[0]), int(flat[-1])
        some = self._low <= self._high
        self._best = np.full(len(self._h), np.inf)
        self._best[some] = (self._h + self._v[self._find_nearest()])[some]
        self._least = float(self._best.min())
        return self._least

    def _find_nearest(self) -> _Integers:
        """Place of the best b of each a."""
        inside: _Integers = np.clip(self._valley[0], self._low, self._high)
        return np.clip(inside, 0, len(self._v) - 1)

    def best(self) -> tuple[int, int]:
        """The first point without excess."""
        row = int(np.argmin(self._best))
        return int(self._a[row]), self._axes[1].first + int(self._find_nearest()[row])

    @property
    def flat(self) -> bool:
        """Whether several counts of the second class cost least."""
        return self._valley[0] < self._valley[1]

    @property
    def span(self) -> float:
        """Upper bound of the points' excess."""
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
        nearest = self._find_nearest()[rows]
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
        b = self._axes[1].first + self._find_nearest()[rows]
        return Points(self._a[rows], b, self._best[rows] - self._least)

    def best_b(self, a: int) -> tuple[int, int]:
        """Least and greatest b of least cost, for a possible a."""
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


def _cut_interval(
    plane: HalfPlane, a: _Integers, low: _Integers, high: _Integers
) -> tuple[_Integers, _Integers]:
    """The interval of b within a half-plane, for each a."""
    largest = abs(plane.most) + abs(plane.b) + abs(plane.a) * int(abs(a).max(initial=1))
    room = plane.most - plane.a * (a if largest < 2**62 else a.astype(object))
    if plane.b == 0:
        return np.where(np.asarray(room >= 0, dtype=bool), low, high + 1), high
    if plane.b > 0:
        most = np.clip(room // plane.b, -(2**62), 2**62).astype(np.int64)
        return low, np.minimum(high, most)
    least = np.clip(-(room // -plane.b), -(2**62), 2**62).astype(np.int64)
    return np.maximum(low, least), high


_Prices = tuple[float, float]


class Unfinished(Enum):
    """The result of a search that ended early."""

    UNFINISHED = "unfinished"


UNFINISHED = Unfinished.UNFINISHED

MOST = 3_000_000
"""Most combinations of points that one search tries."""
_CUTS = 25
"""Most steps in the search for the best prices."""


def search_lattice(
    groups: Sequence[Group], sizes: tuple[int, int], prices: tuple[float, float], unit: float
) -> list[tuple[int, int]] | Unfinished | None:
    """The cheapest points of all groups that add up to the sizes of both classes.

    `groups`: K of them. `sizes`: people of both classes. `prices`: cost of one more person of each
    class; any give the right answer, good ones quickly. `unit`: about the cost of moving one
    person.

    Returns: counts of both classes in every group; None if there are none; UNFINISHED if it would
    take too many combinations.
    """
    if sum(group.price(prices) for group in groups) == np.inf:
        return None
    turned = [group.turned() for group in groups]
    for group in turned:
        group.price(prices[::-1])
    # Where costs are flat there are very many points, and almost any count is optimal.
    if any(group.flat for group in groups):
        solution = _widen(groups, sizes, unit, projected=True)
        if isinstance(solution, list):
            return solution
    if any(group.flat for group in turned):
        solution = _widen(turned, sizes[::-1], unit, projected=True)
        if isinstance(solution, list):
            return [(a, b) for b, a in solution]
    if not any(group.flat for group in (*groups, *turned)):
        solution = _widen(groups, sizes, unit, projected=False)
        if solution is not UNFINISHED:
            return solution
    # Prices of the linear program need not be unique: those of whole counts bound better.
    best = _find_prices(groups, sizes, prices, unit)
    for group in groups:
        group.price(best)
    return _widen(groups, sizes, unit, projected=False)


def _find_prices(
    groups: Sequence[Group], sizes: tuple[int, int], prices: _Prices, unit: float
) -> _Prices:
    """Prices near the given ones with the greatest bound, by cutting planes (Kelley, 1960)."""
    model, best, start = HighsModel(), (-np.inf, prices), None
    # In units, and relative to here: a solver takes very large numbers to be infinite.
    step, shift = model.columns([-2.0, -2.0], [2.0, 2.0]), np.zeros(2)
    # HiGHS minimises: this is the gain in the bound, turned around.
    (below,) = model.columns([-np.inf], [np.inf], 1.0)
    for _ in range(_CUTS):
        trial = prices[0] + unit * float(shift[0]), prices[1] + unit * float(shift[1])
        bound = sum(group.price(trial) for group in groups) + float(np.dot(trial, sizes))
        start = bound if start is None else start
        gain = (bound - start) / unit
        best = max(best, (gain, trial))
        slope = np.array(sizes) - np.sum([group.best() for group in groups], axis=0)
        model.row([*step, below], [*slope, 1.0], float(slope @ shift) - gain, np.inf)
        answer = model.solve()
        if answer is None or answer.values is None or -answer.bound - best[0] < 1e-6:
            break
        shift = answer.values[:2]
    return best[1]


def _widen(
    groups: Sequence[Group], sizes: tuple[int, int], unit: float, *, projected: bool
) -> list[tuple[int, int]] | Unfinished | None:
    """List points of increasing excess, until a solution is within the listed excess.

    If `projected`, the second class may have any size at first; its people are then shared among
    the groups, if that is possible at the same cost.
    """
    excess, most = unit / 512, max(group.span for group in groups)
    while True:
        listed = [group.rows(excess) if projected else group.points(excess) for group in groups]
        points, total = _combine(groups, listed, sizes, excess, projected)
        if points is UNFINISHED:
            return points
        if points is not None and total <= excess:
            return _share_rest(groups, points, sizes[1]) if projected else points
        if points is None and excess > most:
            return None
        excess = min(4 * excess, total * (1 + 1e-12)) if points is not None else 4 * excess


def _combine(
    groups: Sequence[Group],
    listed: list[Points],
    sizes: tuple[int, int],
    excess: float,
    projected: bool,
) -> tuple[list[tuple[int, int]] | Unfinished | None, float]:
    """The best sum of one listed point per group, and its excess; the last group may use any."""
    order = sorted(range(len(groups)), key=lambda k: len(listed[k].a))
    last = order.pop()
    a, b, total = (np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), np.zeros(1))
    trail = []
    looked_at = 0
    for k in order:
        own = listed[k]
        looked_at += len(a) * len(own.a)
        if looked_at > MOST:
            return UNFINISHED, np.inf
        sums = total[:, None] + own.excess[None, :]
        state, point = np.nonzero(sums <= excess)
        sums = sums[state, point]
        a, b = a[state] + own.a[point], b[state] + own.b[point]
        keep = _keep_cheapest(a if projected else a * (b.max() + 1) + b, sums)
        a, b, total = a[keep], b[keep], sums[keep]
        trail.append((k, state[keep], point[keep]))
    rest = groups[last].excess(sizes[0] - a, None if projected else sizes[1] - b)
    at = int(np.argmin(total + rest))
    best = float(total[at] + rest[at])
    if not np.isfinite(best):
        return None, np.inf
    points = [(0, 0)] * len(groups)
    points[last] = int(sizes[0] - a[at]), int(sizes[1] - b[at])
    for k, state, point in reversed(trail):
        points[k] = int(listed[k].a[point[at]]), int(listed[k].b[point[at]])
        at = state[at]
    return points, best


def _share_rest(
    groups: Sequence[Group], points: list[tuple[int, int]], size: int
) -> list[tuple[int, int]] | Unfinished:
    """The same a with b of the same cost that add up to `size`; UNFINISHED if none do."""
    ranges = [group.best_b(a) for group, (a, _) in zip(groups, points, strict=True)]
    rest = size - sum(low for low, _ in ranges)
    if rest < 0 or rest > sum(high - low for low, high in ranges):
        return UNFINISHED
    shared = []
    for (a, _), (low, high) in zip(points, ranges, strict=True):
        more = min(rest, high - low)
        shared.append((a, low + more))
        rest -= more
    return shared


def _keep_cheapest(key: _Integers, cost: _Numbers) -> NDArray[np.intp]:
    """Index of the cheapest of each key; the first of equals."""
    order = np.lexsort((cost, key))
    first = np.ones(len(order), dtype=bool)
    first[1:] = np.diff(key[order]) > 0
    return order[first]
