"""Tables of counts and linear rows over them, for constraints and correctors.

A *class* of people is a prediction, and a label where a constraint looks at it. An assignment of
groups is then a table of counts (J, K): people of each of J classes in each of K groups. Everything
is exact: whole numbers and fractions throughout.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
"""(J, K) people of each class in each group."""


@dataclass(frozen=True)
class Classes:
    """The J classes of people that constraints tell apart."""

    labels: tuple[int | None, ...]
    """(J,) label of each class; None if no constraint looks at labels."""
    predictions: tuple[int, ...]
    """(J,)."""
    sizes: tuple[int, ...]
    """(J,) people."""
    groups: int
    """K."""

    def part(self, label: int | None) -> Part:
        """The people with a label; everyone for None."""
        inside = [j for j, own in enumerate(self.labels) if label is None or own == label]
        negative, positive = (
            tuple(j for j in inside if self.predictions[j] == prediction) for prediction in (0, 1)
        )
        return Part(negative, positive, self.sizes, self.groups)


@dataclass(frozen=True)
class Part:
    """The people a rate is taken over, as classes.

    Attributes
    ----------
    negative
        Classes of the part with prediction 0, by number.
    positive
        Classes with prediction 1.
    sizes
        (J,) people of every class, in this part or not.
    groups
        K.
    """

    negative: tuple[int, ...]
    positive: tuple[int, ...]
    sizes: tuple[int, ...]
    groups: int

    @property
    def people(self) -> int:
        """Number of people."""
        return sum(self.sizes[j] for j in (*self.negative, *self.positive))

    @property
    def positives(self) -> int:
        """Number of people with prediction 1."""
        return sum(self.sizes[j] for j in self.positive)

    def rates(self, counts: Counts) -> list[Fraction | None]:
        """Rate of positive predictions of every group; None for an empty group."""
        positives, members = self.tally(counts)
        return [Fraction(x, m) if m else None for x, m in zip(positives, members, strict=True)]

    def tally(self, counts: Counts) -> tuple[list[int], list[int]]:
        """Positively predicted people and people of every group."""
        positives = counts[list(self.positive)].sum(axis=0)
        members = positives + counts[list(self.negative)].sum(axis=0)
        return positives.tolist(), members.tolist()

    def row(self, group: int, x: int, m: int, most: int = 0) -> Row:
        """A row: x times a group's positives + m times its people is at most `most`."""
        own = dict.fromkeys(self.negative, m) | dict.fromkeys(self.positive, x + m)
        table = [[0] * self.groups for _ in self.sizes]
        for j, coefficient in own.items():
            table[j][group] = coefficient
        return Row.of(table, most)

    def rate_at_most(self, group: int, rate: Fraction) -> Row:
        """A group's rate is at most this; an empty group satisfies it."""
        return self.row(group, rate.denominator, -rate.numerator)

    def rate_at_least(self, group: int, rate: Fraction) -> Row:
        """A group's rate is at least this; an empty group satisfies it."""
        return self.row(group, -rate.denominator, rate.numerator)


class Condition(ABC):
    """A condition on counts."""

    @abstractmethod
    def holds(self, counts: Counts) -> bool:
        """Whether these counts satisfy it, exactly."""

    def rows(self) -> list[Row]:
        """Linear rows that it implies: a relaxation, exact if it is linear."""
        return []

    @abstractmethod
    def alternatives(self, counts: Counts) -> list[list[Condition]]:
        """For counts that violate it: conditions to branch on, one list for each branch.

        All counts that satisfy it satisfy one of the lists, and these counts satisfy none.
        """


@dataclass(frozen=True)
class Row(Condition):
    """A weighted sum of counts is at most a number.

    Attributes
    ----------
    coefficients
        (J, K) whole numbers without a common divisor.
    most
        The number.
    """

    coefficients: tuple[tuple[int, ...], ...]
    most: int

    @classmethod
    def of(cls, coefficients: Iterable[Iterable[int]], most: int) -> Row:
        """A row in lowest terms: counts are whole, so its right side is rounded down."""
        table = [list(line) for line in coefficients]
        divisor = math.gcd(*(a for line in table for a in line)) or 1
        return cls(tuple(tuple(a // divisor for a in line) for line in table), most // divisor)

    @property
    def terms(self) -> list[tuple[int, int, int]]:
        """Class, group and coefficient of every count in it."""
        return [
            (j, k, a) for j, line in enumerate(self.coefficients) for k, a in enumerate(line) if a
        ]

    def holds(self, counts: Counts) -> bool:
        """Whether these counts satisfy it, exactly."""
        return sum(a * int(counts[j, k]) for j, k, a in self.terms) <= self.most

    def rows(self) -> list[Row]:
        """Rows that hold wherever it holds."""
        return [self]

    def alternatives(self, counts: Counts) -> list[list[Condition]]:
        """Branches that fix one count or move it: a row of one count is decided exactly.

        Needed only where a violation is too small for a solver that works in floating point.
        """
        if len(self.terms) < 2:
            return [[self]]
        j, k, a = self.terms[0]
        value = int(counts[j, k])
        rest = [list(line) for line in self.coefficients]
        rest[j][k] = 0
        less, more = self._bound(j, k, 1, value - 1), self._bound(j, k, -1, -value - 1)
        same = [self._bound(j, k, 1, value), self._bound(j, k, -1, -value)]
        return [[less], [more], [*same, Row.of(rest, self.most - a * value)]]

    def _bound(self, j: int, k: int, sign: int, most: int) -> Row:
        table = [[0] * len(line) for line in self.coefficients]
        table[j][k] = sign
        return Row.of(table, most)
