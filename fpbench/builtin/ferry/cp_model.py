"""The efficient model of Ferry et al., in docplex.cp: moves between groups, by class."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import reduce
from itertools import combinations, permutations
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpbench import InputError
from fpbench.builtin.ferry.ip_model import simplify
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

_MOST = 2**53 - 1
"""Greatest whole number that CP Optimizer computes with."""


class MoveModel:
    """The cheapest numbers of people of each class who move between groups.

    Parameters
    ----------
    counted
        A problem whose constraints are about counts, and whose known people do not contradict
        each other.

    Raises
    ------
    InputError
        If a condition needs integers beyond CP Optimizer's range.

    Notes
    -----
    2 K (K - 1) integers count moves; `element` on the cheapest people's cumulated costs gives the
    cost of those who leave; the rest is integer arithmetic, so nothing depends on rounding.

    Departs from the paper: it admits only one of the equivalent sets of moves. Nobody enters a
    group that others leave, which would cost more than staying (for two groups too), and moves do
    not cross, which would cost the same. Otherwise CP Optimizer proves little.

    docplex hashes lists, and keeps them after the model is deleted: it gets none.
    """

    def __init__(self, counted: CountedProblem) -> None:
        from docplex.cp import modeler
        from docplex.cp.model import CpoModel

        self._cp, self._counted = modeler, counted
        self.model = CpoModel(sfile="fpbench")  # otherwise it looks for the caller's file
        shape = classes, groups = counted.counts.shape
        self._moves = {
            (j, k, to): self.model.integer_var(0, int(counted.movable[j, k]), f"move_{j}_{k}_{to}")
            for j in range(classes)
            for k, to in permutations(range(groups), 2)
        }
        self._table, costs = np.empty(shape, dtype=object), []
        for j, k in np.ndindex(shape):
            leaving, entering = self._count_flow(j, k)
            self._table[j, k] = int(counted.counts[j, k]) - leaving + entering
            costs.append(modeler.element(counted.prefix_costs(j, k), leaving))
        for j in range(classes):
            self._forbid_crossing(j)
        for condition in counted.conditions:
            self.model.add(self._express(condition))
        self.model.minimize(reduce(add, costs))

    def read_counts(self, result: Any) -> NDArray[np.int64]:
        """(J, K) people of each class in each group, in a solution."""
        counts = self._counted.counts.copy()
        for (j, k, to), move in self._moves.items():
            moved = result[move]
            counts[j, k] -= moved
            counts[j, to] += moved
        return counts

    def _count_flow(self, j: int, k: int) -> tuple[Any, Any]:
        """Numbers of people who leave and who enter a group; one of the two is 0."""
        out = [move for (c, source, _), move in self._moves.items() if (c, source) == (j, k)]
        into = [move for (c, _, sink), move in self._moves.items() if (c, sink) == (j, k)]
        leaving, entering = reduce(add, out), reduce(add, into)
        if len(out) > 1:  # a single move is within its bounds
            self.model.add(leaving <= int(self._counted.movable[j, k]))
        self.model.add(self._cp.logical_or(leaving == 0, entering == 0))
        return leaving, entering

    def _forbid_crossing(self, j: int) -> None:
        """Forbid crossing moves: people of the lower of two groups go to the lower target."""
        pairs = combinations(range(self._counted.classes.groups), 2)
        for sources, sinks in permutations(pairs, 2):
            if not {*sources} & {*sinks}:
                up = self._moves[j, sources[0], sinks[1]]
                down = self._moves[j, sources[1], sinks[0]]
                self.model.add(self._cp.logical_or(up == 0, down == 0))

    def _express(self, condition: Condition) -> list[Any]:
        """Expressions that are all true exactly if a condition holds."""
        match condition:
            case Row():
                return [self._express_row(condition)]
            case Occupied():
                return self._express_rows(condition)
            case Proportional(part, group):
                positives, members = self._sum_people(part, group)
                x, m = condition.unit
                times = self.model.integer_var(0, part.people // max(m, 1))
                return [positives == x * times, members == m * times]
            case RatesWithin(part):
                pairs = permutations(range(part.groups), 2)
                return [
                    *self._express_rows(condition),
                    *(self._express_near(condition, *pair) for pair in pairs),
                ]
            case Gap():
                return [*self._express_rows(condition), self._express_far(condition)]
            case RatesApart() | AnyOf():
                ways = condition.alternatives(self._counted.counts)
                return [self._disjoin([self._conjoin(way) for way in ways])]
        raise InputError(f"corrector 'cp' cannot express the condition {condition}")

    def _conjoin(self, conditions: Iterable[Condition]) -> Any:
        return reduce(self._cp.logical_and, (e for c in conditions for e in self._express(c)))

    def _disjoin(self, expressions: list[Any]) -> Any:
        return reduce(self._cp.logical_or, expressions, self._cp.false())

    def _sum_people(self, part: Part, group: int) -> tuple[Any, Any]:
        """Positively predicted people and people of a group."""
        positives = reduce(add, self._table[list(part.positive), group])
        negatives = reduce(add, self._table[list(part.negative), group])
        return positives, positives + negatives

    def _express_rows(self, condition: Condition) -> list[Any]:
        return [self._express_row(row) for row in condition.rows()]

    def _express_row(self, row: Row) -> Any:
        sizes = self._counted.classes.sizes
        row = simplify(row, sizes)
        _check(abs(row.most) + sum(abs(a) * sizes[j] for j, _, a in row.terms))
        return reduce(add, [a * self._table[j, k] for j, k, a in row.terms]) <= row.most

    def _express_near(self, condition: RatesWithin, high: int, low: int) -> Any:
        """The rate of one group exceeds that of another by at most a bound, if both exist."""
        products = _multiply(condition.part)
        e, q = floor_fraction(condition.tolerance, products).as_integer_ratio()
        _check(q * products)
        (x, m), (y, n) = (self._sum_people(condition.part, group) for group in (high, low))
        if condition.ratio:
            return (q - e) * (x * n) <= q * (y * m)
        return q * (x * n - y * m) <= e * (m * n)

    def _express_far(self, condition: Gap) -> Any:
        """The rate of one group exceeds that of another by at least a bound; both exist."""
        products = _multiply(condition.part)
        e, q = (1 - floor_fraction(1 - condition.tolerance, products)).as_integer_ratio()
        _check(q * products)
        pair = condition.high, condition.low
        (x, m), (y, n) = (self._sum_people(condition.part, group) for group in pair)
        if condition.ratio:
            return q * (y * m) <= (q - e) * (x * n)
        return q * (x * n - y * m) >= e * (m * n)


def _multiply(part: Part) -> int:
    """Greatest product of counts of two groups: a denominator of differences of their rates."""
    return max(part.people**2 // 4, 1)


def _check(largest: int) -> None:
    if largest > _MOST:
        raise InputError(
            "corrector 'cp': a constraint needs integers beyond 2^53, the limit of CP "
            "Optimizer: write its tolerance with fewer digits, or use the corrector 'exact'"
        )


def floor_fraction(value: Fraction, most: int) -> Fraction:
    """The greatest fraction up to a value >= 0 with a denominator of at most `most`."""
    nearest = value.limit_denominator(most)
    if nearest <= value:
        return nearest
    # Its lower neighbour a / b of such denominators has numerator b - denominator a = 1.
    numerator, denominator = nearest.as_integer_ratio()
    b = most - (most - pow(numerator, -1, denominator)) % denominator
    return Fraction((numerator * b - 1) // denominator, b)
