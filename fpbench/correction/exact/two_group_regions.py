"""Two groups: regions of counts that conditions allow, part by part.

In one part of the people a table of counts for two groups is two numbers: x, the positively
predicted people of group 1, and m, all its people. Given x, every condition here restricts m to an
interval, and all conditions together to a convex region, up to rounding to whole people.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fpbench.claims.conditions import AnyOf, Gap, Occupied, Proportional, RatesWithin
from fpbench.claims.counts import Classes, Condition, Part, Row

_Integers: TypeAlias = NDArray[np.integer[Any]]
_Counts: TypeAlias = NDArray[np.int64]
_Bounds: TypeAlias = tuple[_Integers | None, _Integers | None]


@dataclass(frozen=True)
class Region:
    """The pairs (x, m) of one part that satisfy some conditions."""

    part: Part
    """The people of the part, in one class of each prediction."""
    conditions: tuple[Row | Proportional | RatesWithin | Gap, ...]
    least: tuple[int, int] = (0, 0)
    """Least people of group 0 and of group 1."""

    @property
    def people(self) -> int:
        """People in the part."""
        return self.part.people

    def needing(self, least: tuple[int, int]) -> Region:
        """The region with at least `least` people in each group."""
        most = max(self.least[0], least[0]), max(self.least[1], least[1])
        return replace(self, least=most)

    def interval(self, x: _Counts) -> tuple[_Counts, _Counts]:
        """Least and greatest size of group 1 for each number x of positives; may be empty.

        `x`: (m,) positively predicted people of group 1.
        """
        n = self.people
        low = np.maximum(x, self.least[1])
        high = np.minimum(x + (n - self.part.positives), n - self.least[0])
        for condition in self.conditions:
            for one_low, one_high in _list_intervals(condition, self.part, x):
                if one_low is not None:
                    low = np.maximum(low, _narrow(one_low, n))
                if one_high is not None:
                    high = np.minimum(high, _narrow(one_high, n))
        return low, high


@dataclass(frozen=True)
class RegionSet:
    """Regions of disjoint parts: one way to satisfy all conditions."""

    parts: tuple[tuple[int | None, Region], ...]
    """Label of the part, None for everyone; and its region."""
    union: bool
    """Whether each group needs a member in the parts together."""


def separate_regions(conditions: Sequence[Condition], classes: Classes) -> list[RegionSet] | None:
    """Region sets that satisfy conditions on two groups; None if conditions link parts."""
    choices = [c.options for c in conditions if isinstance(c, AnyOf)]
    plain = [c for c in conditions if not isinstance(c, AnyOf)]
    alternatives = []
    for options in product(*choices):
        region_set = _separate([*plain, *(c for option in options for c in option)], classes)
        if region_set is None:
            return None
        alternatives.append(region_set)
    return alternatives


def join_intervals(regions: Sequence[Region], x: _Counts) -> list[tuple[_Counts, _Counts]]:
    """Disjoint intervals of sizes, together those that any of the regions of one part allows.

    `x`: (m,) positively predicted people of group 1.
    """
    ends = [region.interval(x) for region in regions]
    lows, highs = np.array([low for low, _ in ends]), np.array([high for _, high in ends])
    lows = np.where(lows <= highs, lows, regions[0].people + 1)
    order = np.argsort(lows, axis=0, kind="stable")
    reached = np.full_like(x, -1)
    joined = []
    for which in order:
        at = which, np.arange(len(x))
        joined.append((np.maximum(lows[at], reached + 1), highs[at]))
        reached = np.maximum(reached, np.where(lows[at] <= highs[at], highs[at], -1))
    return joined


def _separate(conditions: list[Condition], classes: Classes) -> RegionSet | None:
    labels = list(dict.fromkeys(classes.labels))
    parts = [classes.part(label) for label in labels]
    inside = [{*part.negative, *part.positive} for part in parts]
    own: list[list[Row | Proportional | RatesWithin | Gap]] = [[] for _ in parts]
    least, union = [(0, 0)] * len(parts), False
    for condition in conditions:
        used = _list_classes(condition)
        indices = [minimum for minimum, part_classes in enumerate(inside) if used <= part_classes]
        if isinstance(condition, Occupied):
            if indices:
                least[indices[0]] = (1, 1)
            union = union or not indices
        elif isinstance(condition, Row | Proportional | RatesWithin | Gap) and indices:
            own[indices[0]].append(condition)
        else:
            return None
    allowed = (
        Region(p, tuple(c), minimum) for p, c, minimum in zip(parts, own, least, strict=True)
    )
    return RegionSet(tuple(zip(labels, allowed, strict=True)), union)


def _list_classes(condition: Condition) -> set[int]:
    if isinstance(condition, Row):
        return {j for j, _, _ in condition.terms}
    if isinstance(condition, Occupied):
        return set(condition.classes)
    if isinstance(condition, Proportional | RatesWithin | Gap):
        return {*condition.part.negative, *condition.part.positive}
    return {-1}


def _list_intervals(
    condition: Row | Proportional | RatesWithin | Gap, part: Part, x: _Counts
) -> Iterator[_Bounds]:
    if isinstance(condition, RatesWithin):
        yield _cut_by_rates(condition, part, x)
    elif isinstance(condition, Gap):
        yield _cut_by_gap(condition, part, x)
    else:
        yield from (_cut_by_row(row, part, x) for row in condition.rows())


def _cut_by_row(row: Row, part: Part, x: _Counts) -> _Bounds:
    """Sizes m with a x + b (m - x) <= c, where a and b weigh group 1 against group 0."""
    (j0,), (j1,), n = part.negative, part.positive, part.people
    (b0, b1), (a0, a1) = row.coefficients[j0], row.coefficients[j1]
    a, b = a1 - a0, b1 - b0
    room = row.most - b0 * part.sizes[j0] - a0 * part.sizes[j1]
    largest = abs(room) + (abs(a) + abs(b)) * max(n, 1)
    rest = room - (a - b) * _avoid_overflow(x, largest)
    if b > 0:
        return None, rest // b
    if b < 0:
        return -(rest // -b), None
    return np.where(np.asarray(rest >= 0, dtype=bool), 0, n + 1), None


def _cut_by_rates(condition: RatesWithin, part: Part, x: _Counts) -> _Bounds:
    """By symmetry of the groups, group 1 is largest where group 0 is smallest."""
    n, positives = part.people, part.positives
    own = _avoid_overflow(x, 8 * condition.tolerance.denominator * max(n, 1) ** 2)
    least = _find_least_ratio if condition.ratio else _find_least_between
    low = least(own, positives, n, condition.tolerance)
    return low, n - least(positives - own, positives, n, condition.tolerance)


def _cut_by_gap(condition: Gap, part: Part, x: _Counts) -> _Bounds:
    """A group's rate falls with its size and the other's rises: only small sizes are far apart."""
    n, positives = part.people, part.positives
    own = _avoid_overflow(x, 8 * condition.tolerance.denominator * max(n, 1) ** 2)
    if condition.high == 1:
        return np.ones_like(own), _find_most_apart(own, positives, n, condition)
    others = n - _find_most_apart(positives - own, positives, n, condition)
    return others, np.full_like(own, n - 1)


def _find_most_apart(x: _Integers, positives: int, n: int, condition: Gap) -> _Integers:
    """Greatest m for which the rate x / m is far enough above the other group's; 0 if none."""
    e, q = condition.tolerance.as_integer_ratio()

    def holds(m: _Integers) -> NDArray[np.bool_]:
        if condition.ratio:
            far = q * (positives - x) * m <= (q - e) * x * (n - m)
            return np.asarray(far & (x > 0), dtype=bool)
        return np.asarray(q * (x * n - positives * m) >= e * m * (n - m), dtype=bool)

    low, high = np.zeros_like(x), np.full_like(x, max(n - 1, 0))
    while (low < high).any():
        middle = (low + high + 1) // 2
        ok = holds(middle)
        low, high = np.where(ok, middle, low), np.where(ok, high, middle - 1)
    return low


def _narrow(bound: _Integers, n: int) -> _Counts:
    """The bound in 64 bits; a clipped one lies far beyond 0..n."""
    if bound.dtype == object:
        bound = np.clip(bound, -1, n + 1)
    return bound.astype(np.int64, copy=False)


def _avoid_overflow(x: _Counts, largest: int) -> _Integers:
    """The same integers, as Python's own if 64 bits could overflow."""
    return x.astype(np.int64 if largest < 2**62 else object)


def _find_least_ratio(x: _Integers, positives: int, n: int, tolerance: Fraction) -> _Integers:
    """Least m for which the other group's rate is at least (1 - tolerance) times this one's."""
    e, q = tolerance.as_integer_ratio()
    rest = positives - x
    a, b = q * rest * n, q * rest + (q - e) * x
    bounded = np.asarray(b > 0, dtype=bool)
    others = a // np.where(bounded, b, np.ones_like(b))
    return n - np.where(bounded, np.minimum(others, n), n)


def _find_least_between(x: _Integers, positives: int, n: int, tolerance: Fraction) -> _Integers:
    """Least m with q (x n - positives m) <= e m (n - m): rates at most e / q apart.

    The left side minus the right is convex in m and at most 0 at m = n, so the condition holds
    from one root on. The root in floating point is within a step or two; integers settle it.
    """
    e, q = tolerance.as_integer_ratio()

    def holds(m: _Integers) -> NDArray[np.bool_]:
        return np.asarray(q * (x * n - positives * m) <= e * m * (n - m), dtype=bool)

    half, product = e / q * n + positives, n * x.astype(np.float64)
    if half == 0:
        return np.zeros_like(x)
    root = 2 * product / (half + np.sqrt(np.maximum(half**2 - 4 * e / q * product, 0)))
    m = np.clip(np.ceil(root), 0, n).astype(np.int64).astype(x.dtype)
    while not (ok := holds(m)).all():
        m = np.where(ok, m, m + 1)
    while (lower := (m > 0) & holds(m - 1)).any():
        m = np.where(lower, m - 1, m)
    return m
