"""Constraints, and the conditions on counts that they demand.

A condition that is not linear in the counts implies linear rows, and has alternatives into which a
solver splits it if the rows are not enough.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations

import numpy as np

from fpbench.claims.counts import Classes, Condition, Counts, Part, Row


class Constraint(ABC):
    """A fact about the true groups, in a form that any corrector takes.

    Most constraints are conditions on counts; constraints on individuals (`KnownPeople`,
    `LinearConstraint`) have none, and correctors find them by type.
    """

    @property
    @abstractmethod
    def word(self) -> str:
        """Name of the constraint in a corrector's `expresses`."""

    @property
    @abstractmethod
    def labels(self) -> tuple[int | None, ...]:
        """Labels of the people it looks at; None stands for everyone."""

    def conditions(self, classes: Classes) -> list[Condition]:
        """The conditions on counts that it demands; may be empty."""
        return []

    def check(self, people: int, groups: int) -> None:  # noqa: B027 (most have nothing to refuse)
        """Raise InputError if it is about groups or people that do not exist."""


@dataclass(frozen=True)
class Proportional(Condition):
    """A group's rate in a part is the overall rate, exactly; an empty group satisfies it.

    Then its people are a multiple of people / gcd(people, positives): a solver that counts
    multiples needs no search through remainders.

    Attributes
    ----------
    part
        The people whose rates are compared.
    group
        Code of the group.
    """

    part: Part
    group: int

    @property
    def unit(self) -> tuple[int, int]:
        """Positively predicted people and people of the smallest such group."""
        people, positives = self.part.people, self.part.positives
        divisor = math.gcd(people, positives) or 1
        return positives // divisor, people // divisor

    def holds(self, counts: Counts) -> bool:
        """Whether these counts satisfy it, exactly."""
        return all(row.holds(counts) for row in self.rows())

    def rows(self) -> list[Row]:
        """Rows that hold wherever it holds."""
        x, m = self.unit
        rate = Fraction(x, m or 1)
        return [self.part.rate_at_most(self.group, rate), self.part.rate_at_least(self.group, rate)]

    def alternatives(self, counts: Counts) -> list[list[Condition]]:
        """Ways out for counts that violate it."""
        return next(row for row in self.rows() if not row.holds(counts)).alternatives(counts)


@dataclass(frozen=True)
class Occupied(Condition):
    """Every group has a member in some parts together.

    Attributes
    ----------
    parts
        The parts, which share nobody.
    """

    parts: tuple[Part, ...]

    @property
    def classes(self) -> tuple[int, ...]:
        """Classes of the parts."""
        return tuple(j for part in self.parts for j in (*part.negative, *part.positive))

    def holds(self, counts: Counts) -> bool:
        """Whether these counts satisfy it, exactly."""
        return bool((counts[list(self.classes)].sum(axis=0) > 0).all())

    def rows(self) -> list[Row]:
        """Rows that hold wherever it holds."""
        first, inside = self.parts[0], set(self.classes)
        classes, groups = range(len(first.sizes)), range(first.groups)
        return [
            Row.of([[-int(j in inside and k == g) for k in groups] for j in classes], -1)
            for g in groups
        ]

    def alternatives(self, counts: Counts) -> list[list[Condition]]:
        """An empty group gets a member in one part or another."""
        members = counts[list(self.classes)].sum(axis=0)
        group = int(np.argmin(members))
        return [[part.row(group, 0, -1, -1)] for part in self.parts]


@dataclass(frozen=True)
class _Comparison(Condition):
    part: Part
    tolerance: Fraction
    ratio: bool


@dataclass(frozen=True)
class RatesWithin(_Comparison):
    """The rates of any two groups in a part differ by the tolerance at most.

    Attributes
    ----------
    part
        The people whose rates are compared.
    tolerance, ratio
        Greatest difference of two rates; if `ratio`, 1 minus the least quotient.
    """

    def holds(self, counts: Counts) -> bool:
        """Whether these counts satisfy it, exactly."""
        rates = [rate for rate in self.part.rates(counts) if rate is not None]
        if not rates:
            return True
        if self.ratio:
            return min(rates) >= (1 - self.tolerance) * max(rates)
        return max(rates) - min(rates) <= self.tolerance

    def rows(self) -> list[Row]:
        """The overall rate lies between the least and the greatest: all are near it."""
        if not self.part.people:
            return []
        overall, least = Fraction(self.part.positives, self.part.people), 1 - self.tolerance
        if self.ratio:
            low, high = overall * least, overall / least if least else Fraction(1)
        else:
            low, high = overall - self.tolerance, overall + self.tolerance
        return [
            *(self.part.rate_at_least(k, low) for k in range(self.part.groups) if low > 0),
            *(self.part.rate_at_most(k, high) for k in range(self.part.groups) if high < 1),
        ]

    def alternatives(self, counts: Counts) -> list[list[Condition]]:
        """Any threshold splits the claim in two: the least rate is below it or not."""
        rates = [rate for rate in self.part.rates(counts) if rate is not None]
        low, high, least = min(rates), max(rates), 1 - self.tolerance
        if self.ratio:
            ceiling = find_simplest_between(low / least, high)
            floor = least * ceiling
        else:
            floor = find_simplest_between(low, high - self.tolerance)
            ceiling = floor + self.tolerance
        every = range(self.part.groups)
        return [
            [self.part.rate_at_most(k, ceiling) for k in every],
            [self.part.rate_at_least(k, floor) for k in every],
        ]


@dataclass(frozen=True)
class RatesApart(_Comparison):
    """The rates of some two groups in a part differ by the tolerance at least; it is above 0.

    Attributes
    ----------
    part
        The people whose rates are compared.
    tolerance, ratio
        Least difference; if `ratio`, 1 minus the greatest quotient.
    """

    def _gaps(self) -> list[Gap]:
        pairs = permutations(range(self.part.groups), 2)
        return [Gap(self.part, self.tolerance, self.ratio, high, low) for high, low in pairs]

    def holds(self, counts: Counts) -> bool:
        """Whether these counts satisfy it, exactly."""
        return any(gap.holds(counts) for gap in self._gaps())

    def alternatives(self, counts: Counts) -> list[list[Condition]]:
        """Ways out for counts that violate it."""
        return [[gap, *gap.rows()] for gap in self._gaps()]


@dataclass(frozen=True)
class Gap(_Comparison):
    """The rate of one group exceeds that of another by the tolerance at least; both have members.

    Attributes
    ----------
    part, tolerance, ratio
        As in `RatesApart`, for these two groups.
    high, low
        Codes of the group of the greater rate, and of the other group.
    """

    high: int
    low: int

    def holds(self, counts: Counts) -> bool:
        """Whether these counts satisfy it, exactly."""
        rates = self.part.rates(counts)
        high, low = rates[self.high], rates[self.low]
        if high is None or low is None:
            return False
        if self.ratio:
            return high > 0 and low <= (1 - self.tolerance) * high
        return high - low >= self.tolerance

    def rows(self) -> list[Row]:
        """Rows that hold wherever it holds."""
        occupied = [self.part.row(k, 0, -1, -1) for k in (self.high, self.low)]
        if self.ratio:  # of rates above 0
            return [*occupied, self.part.row(self.high, -1, 0, -1)]
        return [*occupied, self.part.rate_at_least(self.high, self.tolerance),
                self.part.rate_at_most(self.low, 1 - self.tolerance)]  # fmt: skip

    def alternatives(self, counts: Counts) -> list[list[Condition]]:
        """Ways out for counts that violate it."""
        rates = self.part.rates(counts)
        high, low, least = rates[self.high], rates[self.low], 1 - self.tolerance
        if high is None or low is None or (self.ratio and not high):
            return [[row for row in self.rows() if not row.holds(counts)]]
        if self.ratio and not least:
            return [[self.part.rate_at_most(self.low, Fraction(0))]]
        if self.ratio:
            above = find_simplest_between(high, low / least)
            below = least * above
        else:
            below = find_simplest_between(high - self.tolerance, low)
            above = below + self.tolerance
        return [[self.part.rate_at_most(self.low, below)],
                [self.part.rate_at_least(self.high, above)]]  # fmt: skip


@dataclass(frozen=True)
class AnyOf(Condition):
    """At least one of several lists of conditions holds.

    Attributes
    ----------
    options
        The lists; all conditions of one must hold.
    """

    options: tuple[tuple[Condition, ...], ...]

    def holds(self, counts: Counts) -> bool:
        """Whether these counts satisfy it, exactly."""
        return any(all(c.holds(counts) for c in option) for option in self.options)

    def alternatives(self, counts: Counts) -> list[list[Condition]]:
        """Ways out for counts that violate it."""
        return [list(option) for option in self.options]


def find_simplest_between(low: Fraction, high: Fraction) -> Fraction:
    """A fraction of small denominator strictly between two, near their middle."""
    middle, spread = (low + high) / 2, (high - low) / 4
    size = 1
    while abs((simple := middle.limit_denominator(size)) - middle) > spread:
        size *= 2
    return simple
