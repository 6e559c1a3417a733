"""Whole counts of two classes of people, group by group: the exact search near known prices.

Without the two demands that each class has as many people as it has, the groups would be
independent. Prices on these demands (the duals of the linear program) make a bound of the best
points of the groups; a point that costs more than the best by its *excess* can be part of a
solution only if all excesses together are within what is left to the optimum. So the points of
small excess are listed, exactly, in integers, and combined group after group; a solution whose
excess is within what was listed is optimal (Lagrangian relaxation; Geoffrion, 1974).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from fpbench.correction.exact.highs import Model
from fpbench.correction.exact.lattice_points import Group, Points

_Numbers = NDArray[np.float64]
_Integers = NDArray[np.int64]
_Prices = tuple[float, float]


class Unfinished(Enum):
    """The answer of a search that was given up."""

    UNFINISHED = "unfinished"


UNFINISHED = Unfinished.UNFINISHED

MOST = 3_000_000
"""Most combinations of points that one search looks at."""
_CUTS = 25
"""Most steps in looking for the best prices."""


def search(
    groups: Sequence[Group], sizes: tuple[int, int], prices: tuple[float, float], unit: float
) -> list[tuple[int, int]] | Unfinished | None:
    """The cheapest points of all groups that add up to the sizes of both classes.

    Parameters
    ----------
    groups
        K of them.
    sizes
        People of both classes.
    prices
        What one person more of each class costs; any give the right answer, good ones soon.
    unit
        What moving one person costs, about.

    Returns
    -------
    list of (a, b), None or UNFINISHED
        Counts of both classes in every group; None if there are none; UNFINISHED if it would
        take too many combinations.
    """
    if sum(group.price(prices) for group in groups) == np.inf:
        return None
    turned = [group.turned() for group in groups]
    for group in turned:
        group.price(prices[::-1])
    # Where costs are flat there are very many points, and nearly any count will do.
    if any(group.flat for group in groups):
        found = _widen(groups, sizes, unit, projected=True)
        if isinstance(found, list):
            return found
    if any(group.flat for group in turned):
        found = _widen(turned, sizes[::-1], unit, projected=True)
        if isinstance(found, list):
            return [(a, b) for b, a in found]
    if not any(group.flat for group in (*groups, *turned)):
        found = _widen(groups, sizes, unit, projected=False)
        if found is not UNFINISHED:
            return found
    # Prices of the linear program may be one of many: those of whole counts tell more.
    best = _best_prices(groups, sizes, prices, unit)
    for group in groups:
        group.price(best)
    return _widen(groups, sizes, unit, projected=False)


def _best_prices(
    groups: Sequence[Group], sizes: tuple[int, int], prices: _Prices, unit: float
) -> _Prices:
    """Prices near these whose bound is greatest, by cutting planes (Kelley, 1960)."""
    model, best, start = Model(), (-np.inf, prices), None
    # In units, and from here: a solver takes very large numbers to be infinite.
    step, at = model.columns([-2.0, -2.0], [2.0, 2.0]), np.zeros(2)
    # HiGHS minimises: this is the gain in the bound, turned around.
    (below,) = model.columns([-np.inf], [np.inf], 1.0)
    for _ in range(_CUTS):
        tried = prices[0] + unit * float(at[0]), prices[1] + unit * float(at[1])
        bound = sum(group.price(tried) for group in groups) + float(np.dot(tried, sizes))
        start = bound if start is None else start
        gain = (bound - start) / unit
        best = max(best, (gain, tried))
        slope = np.array(sizes) - np.sum([group.best() for group in groups], axis=0)
        model.row([*step, below], [*slope, 1.0], float(slope @ at) - gain, np.inf)
        answer = model.solve()
        if answer is None or answer.values is None or -answer.bound - best[0] < 1e-6:
            break
        at = answer.values[:2]
    return best[1]


def _widen(
    groups: Sequence[Group], sizes: tuple[int, int], unit: float, *, projected: bool
) -> list[tuple[int, int]] | Unfinished | None:
    """List points of more and more excess, until a solution is within what was listed.

    Projected, the second class may have any size at first: its groups then share what it has, if
    they can at the same cost.
    """
    excess, most = unit / 512, max(group.span for group in groups)
    while True:
        listed = [group.rows(excess) if projected else group.points(excess) for group in groups]
        points, total = _combine(groups, listed, sizes, excess, projected)
        if points is UNFINISHED:
            return points
        if points is not None and total <= excess:
            return _shared(groups, points, sizes[1]) if projected else points
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
    """The best sum of one listed point a group, and its excess; of the last group, any point."""
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
        keep = _cheapest(a if projected else a * (b.max() + 1) + b, sums)
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


def _shared(
    groups: Sequence[Group], points: list[tuple[int, int]], size: int
) -> list[tuple[int, int]] | Unfinished:
    """The same a with other b of the same cost that add up; UNFINISHED if none do."""
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


def _cheapest(key: _Integers, cost: _Numbers) -> NDArray[np.intp]:
    """Index of the cheapest of each key; the first of equals."""
    order = np.lexsort((cost, key))
    first = np.ones(len(order), dtype=bool)
    first[1:] = np.diff(key[order]) > 0
    return order[first]
