"""The efficient model of Ferry et al., as an integer program over numbers of people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from fpbench import InputError
from fpbench.claims import (
    AnyOf,
    Condition,
    Gap,
    Occupied,
    Part,
    Proportional,
    RatesApart,
    RatesWithin,
    Row,
)
from fpbench.correction import CountedProblem
from fpbench_ortools._program import Program

_BITS = 61
"""Bits of the greatest product: the cost of one person times the number of people."""
_LINES = 24
"""Lines below each curve of costs in the first model."""


class Costs:
    """Costs of people who leave their group, as whole numbers, and lines below the costs.

    The cheapest leave first, so the cost of l people is convex in l, and the least number above
    all chords of its curve: lines through (m, cost of m) and (m + 1, cost of m + 1). Few chords
    matter, so a model starts with some, and gets those near its solution later.

    Parameters
    ----------
    counted
        A problem whose known people do not contradict each other.
    budget
        No correction that costs more is admitted; the cost of one person is rounded down to a
        small part of it.
    """

    def __init__(self, counted: CountedProblem, budget: float) -> None:
        bits = _BITS - len(counted.problem.guess).bit_length()
        self.budget = budget
        self.unit = budget / 2**bits if budget > 0 else 1.0
        self.each: dict[tuple[int, int], NDArray[np.int64]] = {}
        """Ascending costs of the people of a class and group who may leave."""
        self._lines: dict[tuple[int, int], set[int]] = {}
        for j, k in np.ndindex(counted.counts.shape):
            costs = counted.weights(j, k)
            costs = costs[np.cumsum(costs) <= budget]
            self.each[j, k] = np.floor(costs / self.unit).astype(np.int64)
            spread = np.linspace(0, len(costs) - 1, min(len(costs), _LINES))
            self._lines[j, k] = set(spread.astype(int).tolist())

    def with_budget(self, counted: CountedProblem, budget: float) -> Costs:
        """The same costs with a smaller budget, so rounded less, and with the same lines."""
        costs = Costs(counted, budget)
        for at, lines in self._lines.items():
            costs._lines[at].update(m for m in lines if m < len(costs.each[at]))
        return costs

    def sharpen(self, leaving: NDArray[np.int64]) -> bool:
        """Add the lines at this number of leaving people; whether any line is new."""
        before = sum(map(len, self._lines.values()))
        for at, lines in self._lines.items():
            m = int(leaving[at])
            lines.update({m - 1, m} & set(range(len(self.each[at]))))
        return sum(map(len, self._lines.values())) > before

    def list_lines(self, at: tuple[int, int]) -> Iterable[tuple[int, int]]:
        """Slope a and intercept b: l people cost at least a l + b."""
        total = np.concatenate([[0], np.cumsum(self.each[at])])
        for m in sorted(self._lines[at]):
            slope = int(self.each[at][m])
            yield slope, int(total[m]) - slope * m


class CountModel:
    """The table of counts (J, K), and a lower bound of the least cost of reaching it.

    Raises
    ------
    InputError
        If a condition needs whole numbers that CP-SAT cannot compute with.
    """

    def __init__(self, counted: CountedProblem, costs: Costs) -> None:
        self._counted, self.program = counted, Program()
        now, sizes = counted.counts, counted.classes.sizes
        self._count = np.empty(now.shape, dtype=np.int64)
        for (j, k), each in costs.each.items():
            most = len(each)
            count = self.program.add_variable(now[j, k] - most, sizes[j])
            self._count[j, k] = count
            if most:
                leaving = self.program.add_variable(0, most)
                # At least as many as are missing; the minimum is never above that.
                self.program.add_row([(leaving, 1), (count, 1)], int(now[j, k]), None)
                paid = self.program.add_cost(int(each.sum()))
                for slope, intercept in costs.list_lines((j, k)):
                    self.program.add_row([(paid, 1), (leaving, -slope)], intercept, None)
        for j, size in enumerate(sizes):
            self.program.add_row([(v, 1) for v in self._count[j]], size, size)
        self._totals: dict[tuple[tuple[int, ...], int], int] = {}
        for condition in counted.conditions:
            self._require(condition, ())

    def read_counts(self, values: Sequence[int]) -> NDArray[np.int64]:
        """(J, K) people of each class in each group, in a solution."""
        return np.asarray(values, dtype=np.int64)[self._count]

    def _require(self, condition: Condition, literals: tuple[int, ...]) -> None:
        """Let a condition hold where all of `literals` are 1."""
        match condition:
            case Row():
                self._add_row(condition, literals)
            case Occupied():
                self._add_rows(condition, literals)
            case Proportional(part, group):
                x, m = condition.unit
                times = self.program.add_variable(0, part.people // max(m, 1))
                positives, members = self._tally(part, group)
                self.program.add_row([(positives, 1), (times, -x)], 0, 0, literals)
                self.program.add_row([(members, 1), (times, -m)], 0, 0, literals)
            case RatesWithin(part):
                self._add_rows(condition, literals)
                for high, low in permutations(range(part.groups), 2):
                    self._require_near(condition, high, low, literals)
            case Gap():
                self._add_rows(condition, literals)
                self._require_far(condition, literals)
            case RatesApart() | AnyOf():
                ways = condition.alternatives(self._counted.counts)
                chosen = [self.program.add_variable(0, 1) for _ in ways]
                self.program.require_any(chosen, literals)
                for literal, way in zip(chosen, ways, strict=True):
                    for inner in way:
                        self._require(inner, (literal,))
            case _:
                raise InputError(f"corrector 'cp-sat' cannot express the condition {condition}")

    def _add_rows(self, condition: Condition, literals: tuple[int, ...]) -> None:
        for row in condition.rows():
            self._add_row(row, literals)

    def _add_row(self, row: Row, literals: tuple[int, ...]) -> None:
        small = _shorten_denominator(row, self._counted.classes.sizes)
        terms = [(int(self._count[j, k]), a) for j, k, a in small.terms]
        self.program.add_row(terms, None, small.most, literals)

    def _tally(self, part: Part, group: int) -> tuple[int, int]:
        """Positively predicted people and people of a group."""
        positives = self._get_total(part.positive, group)
        return positives, self._get_total((*part.positive, *part.negative), group)

    def _get_total(self, classes: tuple[int, ...], group: int) -> int:
        if (classes, group) not in self._totals:
            most = sum(self._counted.classes.sizes[j] for j in classes)
            terms = [(int(self._count[j, group]), 1) for j in classes]
            self._totals[classes, group] = self.program.add_total(terms, most)
        return self._totals[classes, group]

    def _require_near(
        self, condition: RatesWithin, high: int, low: int, literals: tuple[int, ...]
    ) -> None:
        """Bound how far one group's rate is above another's, from above, if both have a rate."""
        e, q = floor_fraction(
            condition.tolerance, _bound_products(condition.part)
        ).as_integer_ratio()
        xn, ym, mn = self._add_products(condition.part, high, low)
        if condition.ratio:
            self.program.add_row([(xn, q - e), (ym, -q)], None, 0, literals)
        else:
            self.program.add_row([(xn, q), (ym, -q), (mn, -e)], None, 0, literals)

    def _require_far(self, condition: Gap, literals: tuple[int, ...]) -> None:
        """Bound how far one group's rate is above another's, from below; both have a rate."""
        products = _bound_products(condition.part)
        e, q = (1 - floor_fraction(1 - condition.tolerance, products)).as_integer_ratio()
        xn, ym, mn = self._add_products(condition.part, condition.high, condition.low)
        if condition.ratio:
            self.program.add_row([(ym, q), (xn, e - q)], None, 0, literals)
        else:
            self.program.add_row([(xn, q), (ym, -q), (mn, -e)], 0, None, literals)

    def _add_products(self, part: Part, high: int, low: int) -> tuple[int, int, int]:
        """Products x n, y m and m n for rates x / m and y / n of two groups."""
        (x, m), (y, n) = self._tally(part, high), self._tally(part, low)
        product = self.program.add_product
        return product(x, n), product(y, m), product(m, n)


def _bound_products(part: Part) -> int:
    """Greatest product of counts of two groups: a denominator of differences of their rates."""
    return max(part.people**2 // 4, 1)


def _shorten_denominator(row: Row, sizes: Sequence[int]) -> Row:
    """The same row for whole counts, without a long denominator if it bounds a quotient.

    p A <= q B, for sums A and B of counts, says A / B <= q / p. Replacing q / p by the greatest
    fraction up to it that counts can form makes no difference.
    """
    coefficients = {a for _, _, a in row.terms}
    if row.most or len(coefficients) != 2 or min(coefficients) > 0 or max(coefficients) < 0:
        return row
    p, q = max(coefficients), -min(coefficients)
    most_a, most_b = (
        sum(sizes[j] for j in {j for j, _, a in row.terms if a == own}) for own in (p, -q)
    )
    bound = floor_fraction(min(Fraction(q, p), Fraction(most_a)), max(most_b, 1))
    smaller = {p: bound.denominator, -q: -bound.numerator, 0: 0}
    return Row.of([[smaller[a] for a in line] for line in row.coefficients], 0)


def floor_fraction(value: Fraction, most: int) -> Fraction:
    """The greatest fraction up to a value, at least 0, whose denominator is at most `most`."""
    nearest = value.limit_denominator(most)
    if nearest <= value:
        return nearest
    # The next lower fraction a / b with such a denominator has numerator b - denominator a = 1.
    numerator, denominator = nearest.as_integer_ratio()
    b = most - (most - pow(numerator, -1, denominator)) % denominator
    return Fraction((numerator * b - 1) // denominator, b)
