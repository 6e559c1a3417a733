"""The general integer program over individuals: constraints as lines of a program.

A column says that a person moves from the initial group to another: K - 1 columns per person, one
for two groups. A person with no such column set stays, at no cost.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpbench import Problem
from fpbench.claims import (
    AnyOf,
    Condition,
    KnownPeople,
    LinearConstraint,
    Proportional,
    Row,
)
from fpbench.correction import CountedProblem


def simplify(row: Row, sizes: tuple[int, ...]) -> Row:
    """An equivalent row for whole counts, with the smallest coefficients.

    A bound on a rate says that x times one integer is at most y times another. Few rates are
    possible: the greatest one within the bound is equivalent, and its terms do not exceed the
    number of people, however many digits the bound has.

    `row`: any row; a row of another form is returned unchanged. `sizes`: (J,) people of each class.
    """
    groups = {k for _, k, _ in row.terms}
    coefficients = sorted({a for *_, a in row.terms})
    if row.most or len(groups) != 1 or len(coefficients) != 2 or math.prod(coefficients) > 0:
        return row
    low, high = coefficients
    people = {c: sum(sizes[j] for j, _, a in row.terms if a == c) for c in coefficients}
    bound = _find_greatest(Fraction(-low, high), people[high], people[low])
    new = {high: bound.denominator, low: -bound.numerator, 0: 0}
    return Row.of(([new[a] for a in line] for line in row.coefficients), 0)


def exclude_counts(condition: Condition, counts: NDArray[np.int64]) -> AnyOf:
    """A cut of rows that excludes counts violating a condition, and nothing that satisfies it."""
    if not isinstance(condition, AnyOf):
        return AnyOf(tuple(_list_ways(condition, counts)))
    ways: list[tuple[Condition, ...]] = []
    for option in condition.options:
        violated = next(c for c in option if not c.holds(counts))
        ways += [(*_list_rows(option), *way) for way in _list_ways(violated, counts)]
    return AnyOf(tuple(ways))


def _list_ways(condition: Condition, counts: NDArray[np.int64]) -> Iterator[tuple[Row, ...]]:
    """Rows of its alternatives, which are split until counts that violate it violate each."""
    for way in condition.alternatives(counts):
        rows = _list_rows(way)
        if all(row.holds(counts) for row in rows):
            violated = next(c for c in way if not c.holds(counts))
            yield from ((*rows, *more) for more in _list_ways(violated, counts))
        else:
            yield rows


def _list_rows(conditions: Iterable[Condition]) -> tuple[Row, ...]:
    return tuple(row for condition in conditions for row in condition.rows())


def _find_greatest(bound: Fraction, numerator: int, denominator: int) -> Fraction:
    """The greatest fraction up to a bound with limited numerator and denominator.

    Descends the Stern-Brocot tree, all steps to one side at once.
    """
    n, d = bound.as_integer_ratio()
    (low_n, low_d), (high_n, high_d) = (0, 1), (1, 0)
    while low_n * d != n * low_d:
        below, above = n * low_d - d * low_n, d * high_n - n * high_d
        steps = below // above
        room = [(numerator - low_n) // high_n]
        if high_d:
            room.append((denominator - low_d) // high_d)
        taken = max(min(steps, *room), 0)
        low_n, low_d = low_n + taken * high_n, low_d + taken * high_d
        if taken < steps or low_n * d == n * low_d:
            break
        below -= taken * above
        steps = -(-above // below) - 1
        high_n, high_d = high_n + steps * low_n, high_d + steps * low_d
        if low_n + high_n > numerator or low_d + high_d > denominator:
            break
    return Fraction(low_n, low_d)


NEAR = 1e-6
"""Greatest violation of a `LinearConstraint`, as a share of its largest coefficient."""

_BITS = 10
"""Rows with larger coefficients are scaled down to this many bits: violations in whole numbers stay
above a solver's tolerance, and sums stay exact in floats."""

_Solution = NDArray[np.float64]


class IntegerModel:
    """A problem as a program, and the reading of its solutions.

    It leaves out known people, and people in no constraint: they stay unchanged.

    Parameters
    ----------
    tally
        The problem; no facts put a person into two groups. Of conditions that are not linear it
        has the rows that they imply; `exclude_counts` makes cuts for what these let through.
    counted
        Whether integers that count people link people and conditions. Given these, the rest is a
        transport problem, whose solutions are integral anyway, so only people of linear
        constraints are declared integer.
    """

    def __init__(self, tally: CountedProblem, *, counted: bool) -> None:
        problem = tally.problem
        self._tally = tally
        self._sums = [c for c in problem.constraints if isinstance(c, LinearConstraint)]
        start, k = np.asarray(tally.start, dtype=np.intp), problem.groups
        summed = np.zeros(len(start), dtype=bool)
        for constraint in self._sums:
            summed |= constraint.array() != 0
        inside = summed | (tally.members >= 0)
        people = np.flatnonzero(inside if tally.free is None else inside & tally.free)
        elsewhere = np.array([[h for h in range(k) if h != g] for g in range(k)], dtype=np.intp)
        self._person, self._source = (np.repeat(a, k - 1) for a in (people, start[people]))
        self._target = elsewhere[start[people]].ravel()
        self._class = tally.members[self._person].astype(np.intp)
        self._summed = summed[self._person]
        whole = self._summed if counted else np.ones(len(self._person), dtype=bool)
        self.program = IntegerProgram(_get_costs(problem)[self._person], whole)
        self._forbid_double_moves(k - 1)
        self._changes = self._add_counts() if counted else None
        for condition in tally.conditions:
            self.demand(condition)
        for constraint in self._sums:
            self._add_sum(constraint)

    def read_counts(self, solution: _Solution) -> NDArray[np.int64]:
        """(J, K) people of each class in each group in a solution."""
        counts = self._tally.counts.copy()
        if self._changes is not None:
            changes = np.rint(solution[self._changes]).astype(np.int64)
            counts[:, 1:] += changes
            counts[:, 0] -= changes.sum(axis=1)
            return counts
        moved = self._find_moved(solution) & (self._class >= 0)
        np.add.at(counts, (self._class[moved], self._target[moved]), 1)
        np.add.at(counts, (self._class[moved], self._source[moved]), -1)
        return counts

    def settle(self, solution: _Solution) -> CountedProblem:
        """The problem with people of linear constraints fixed to their groups in a solution."""
        if not self._sums:
            return self._tally
        problem, values = self._tally.problem, np.array(self._tally.start)
        moved = self._summed & self._find_moved(solution)
        values[self._person[moved]] = self._target[moved]
        people = np.unique(self._person[self._summed])
        known = KnownPeople(people, values[people].astype(np.int64))
        return CountedProblem(replace(problem, constraints=(*problem.constraints, known)))

    def misses_any(self, settled: CountedProblem) -> bool:
        """Whether some linear constraint is violated."""
        return any(not _holds(constraint, settled.start) for constraint in self._sums)

    def exclude(self, solution: _Solution) -> None:
        """Exclude a solution's groups for the people of linear constraints."""
        columns = np.flatnonzero(self._summed)
        moved = self._find_moved(solution)[columns]
        least = 1.0 - np.count_nonzero(moved)
        self.program.lines.append(ProgramRow(columns, np.where(moved, -1.0, 1.0), least, math.inf))

    def demand(self, condition: Condition) -> None:
        """Add the lines of a condition."""
        if isinstance(condition, Proportional):
            self._demand_multiples(condition)
        elif isinstance(condition, AnyOf):
            self._demand_any(condition)
        else:
            for row in condition.rows():
                self._add_row(row)

    def _find_moved(self, solution: _Solution) -> NDArray[np.bool_]:
        return np.asarray(solution[: len(self._person)] > 0.5, dtype=bool)

    def _forbid_double_moves(self, columns: int) -> None:
        for first in range(0, len(self._person) if columns > 1 else 0, columns):
            mine = np.arange(first, first + columns)
            self.program.lines.append(ProgramRow(mine, np.ones(columns), -math.inf, 1.0))

    def _add_counts(self) -> NDArray[np.intp]:
        """Columns (J, K - 1): change of each count; the first group loses what others gain."""
        classes, groups = self._tally.counts.shape
        changes = np.empty((classes, groups - 1), dtype=np.intp)
        for j, k in product(range(classes), range(1, groups)):
            changes[j, k - 1] = column = self.program.add(*self._bound_change(j, k))
            here = self._class == j
            into, out = (np.flatnonzero(here & (at == k)) for at in (self._target, self._source))
            columns = np.concatenate([into, out, [column]])
            values = np.repeat([1.0, -1.0, -1.0], [len(into), len(out), 1])
            self.program.lines.append(ProgramRow(columns, values, 0.0, 0.0))
        return changes

    def _bound_change(self, j: int, k: int) -> tuple[int, int]:
        """Least and greatest change of a count."""
        movable = self._tally.movable[j]
        return -int(movable[k]), int(movable.sum() - movable[k])

    def _demand_multiples(self, condition: Proportional) -> None:
        """Make people and positively predicted people of the group the same multiple of the unit.

        The two rows are equivalent, but with one a solver would search through remainders.
        """
        part, group = condition.part, condition.group
        positives, people = condition.unit
        times = self.program.add(0, part.people // people if people else 0)
        inside = (*part.positive, *part.negative)
        for classes, unit in ((part.positive, positives), (inside, people)):
            here = -float(self._tally.counts[list(classes), group].sum())
            terms = {(j, group): 1.0 for j in classes}
            self._add_line(terms, here, here, (times, -float(unit)))

    def _demand_any(self, condition: AnyOf) -> None:
        """Add an integer per option, 1 if its rows are switched on; at least one is."""
        switches = []
        for option in condition.options:
            switches.append(switch := self.program.add(0, 1))
            for row in _list_rows(option):
                self._add_row(row, switch)
        if switches:
            self.program.add_line(((switch, 1.0) for switch in switches), 1.0, math.inf)
        else:
            self.program.forbid()

    def _add_row(self, row: Row, switch: int | None = None) -> None:
        """Add a row; a row with a switch has no effect while the switch is off."""
        row = simplify(row, self._tally.classes.sizes)
        space = row.most - sum(a * int(self._tally.counts[j, k]) for j, k, a in row.terms)
        reach = sum(max(a * b for b in self._bound_change(j, k)) for j, k, a in row.terms)
        if reach <= space:  # it cannot be violated
            return
        scale = _choose_scale(max(abs(a) for *_, a in row.terms))
        # Sums are integers: with large numbers, half a unit more admits nothing new, and keeps
        # rounding from excluding solutions.
        high = (space + (0.5 if scale < 1 else 0.0)) * scale
        terms = {(j, k): a * scale for j, k, a in row.terms}
        off = None if switch is None else (switch, (reach - space) * scale)
        self._add_line(terms, -math.inf, high + (off[1] if off else 0.0), off)

    def _add_line(
        self,
        terms: dict[tuple[int, int], float],
        low: float,
        high: float,
        more: tuple[int, float] | None = None,
    ) -> None:
        """Add a line over changes of counts, and one more column."""
        table = np.zeros(self._tally.counts.shape)
        for cell, value in terms.items():
            table[cell] = value
        if self._changes is not None:
            columns, values = self._changes.ravel(), (table[:, 1:] - table[:, :1]).ravel()
        else:
            values = table[self._class, self._target] - table[self._class, self._source]
            values[self._class < 0] = 0.0
            columns = np.arange(len(values))
        columns, values = columns[values != 0], values[values != 0]
        if more is not None:
            columns, values = np.append(columns, more[0]), np.append(values, more[1])
        if len(columns):
            self.program.lines.append(ProgramRow(columns, values, low, high))
        elif not low <= 0.0 <= high:
            self.program.forbid()

    def _add_sum(self, constraint: LinearConstraint) -> None:
        """Add a linear constraint over the people of a group."""
        group = constraint.group
        array, low, high = _normalise(constraint)
        into, out = self._target == group, self._source == group
        values = array[self._person] * (into.astype(np.float64) - out)
        start = math.fsum(array[self._tally.start == group])
        least, most = (math.fsum(part(values, 0.0)) for part in (np.minimum, np.maximum))
        low, high = low - start, high - start
        if low > most + NEAR or high < least - NEAR:
            self.program.forbid()
            return
        low, high = (-math.inf if low <= least else low), (math.inf if high >= most else high)
        if math.isfinite(low) or math.isfinite(high):
            columns = np.flatnonzero(values)
            self.program.lines.append(ProgramRow(columns, values[columns], low, high))


def _get_costs(problem: Problem) -> NDArray[np.float64]:
    return np.ones(len(problem.guess)) if problem.weights is None else problem.weights


def _choose_scale(largest: int) -> float:
    """The power of two that brings a row's largest coefficient below 2 ** 10."""
    return math.ldexp(1.0, min(_BITS - largest.bit_length(), 0))


def _normalise(constraint: LinearConstraint) -> tuple[NDArray[np.float64], float, float]:
    """Coefficients and bounds, scaled so that the largest coefficient is between 1 and 2."""
    array = constraint.array()
    exponent = 1 - math.frexp(float(np.abs(array).max(initial=0.0)))[1]
    with np.errstate(over="ignore"):  # an infinite bound cannot be reached
        low, high = (
            float(np.ldexp(bound, exponent)) for bound in (constraint.low, constraint.high)
        )
    return np.ldexp(array, exponent), low, high


def _holds(constraint: LinearConstraint, values: NDArray[np.integer[Any]]) -> bool:
    """Whether a linear constraint holds for groups, within the tolerance."""
    array, low, high = _normalise(constraint)
    total = math.fsum(array[values == constraint.group])
    return low - NEAR <= total <= high + NEAR


_HUGE = 1e9
"""Costs above this, in units, are equivalent to it."""


@dataclass(frozen=True)
class ProgramRow:
    """low <= sum of values * columns <= high."""

    columns: NDArray[np.intp]
    values: NDArray[np.float64]
    low: float
    high: float


@dataclass(frozen=True)
class IntegerProgram:
    """Columns between bounds, and lines over them; the cost is minimised."""

    costs: NDArray[np.float64]
    """(m,) costs of the first columns, which are between 0 and 1."""
    whole: NDArray[np.bool_]
    """(m,) which of these are declared integer."""
    others: list[tuple[int, int]] = field(default_factory=list)
    """Bounds of the following columns: integers without a cost."""
    lines: list[ProgramRow] = field(default_factory=list)
    decisive: float | None = None
    """The greatest cost in a solution, if known."""

    @property
    def scaled_costs(self) -> NDArray[np.float64]:
        """(m,) costs for a solver, capped to avoid numerical trouble."""
        costs: NDArray[np.float64] = np.minimum(self.costs / self.unit, _HUGE)
        return costs

    @property
    def unit(self) -> float:
        """The unit of costs for a solver: the decisive cost, or that of a typical column.

        Solvers have absolute tolerances, below which small costs vanish; no scale preserves two
        costs with a ratio above 1e9.
        """
        if self.decisive is not None:
            return self.decisive
        if not len(self.costs):
            return 1.0
        return float(max(np.median(self.costs), self.costs.max() * 1e-9))

    def add(self, low: int, high: int) -> int:
        """The column of a new integer between bounds."""
        self.others.append((low, high))
        return len(self.costs) + len(self.others) - 1

    def add_line(self, terms: Iterable[tuple[int, float]], low: float, high: float) -> None:
        """Add a line of few terms."""
        columns, values = zip(*terms, strict=True)
        self.lines.append(ProgramRow(np.array(columns, dtype=np.intp), np.array(values), low, high))

    def forbid(self) -> None:
        """Make the program infeasible."""
        self.add_line([(self.add(0, 0), 1.0)], 1, 1)
