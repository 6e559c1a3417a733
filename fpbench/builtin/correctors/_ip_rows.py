"""Exactness: rows that floating point can decide, and cuts for those it decided wrong."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from fpbench.claims import AnyOf, Condition, Row


def simplify(row: Row, sizes: tuple[int, ...]) -> Row:
    """An equivalent row for whole counts, with the smallest coefficients.

    A bound on a rate says that x times one integer is at most y times another. Few rates are
    possible: the greatest one within the bound is equivalent, and its terms do not exceed the
    number of people, however many digits the bound has.

    `row`: any row; a row of another form is returned unchanged. `sizes`: (J,) people of each class.
    """
    groups = {k for _, k, _ in row.terms}
    coefficients = sorted({a for *_, a in row.terms})
    if row.most or len(groups) != 1 or len(coefficients) != 2 or not _differ_in_sign(*coefficients):
        return row
    low, high = coefficients
    people = {c: sum(sizes[j] for j, _, a in row.terms if a == c) for c in coefficients}
    bound = _find_greatest(Fraction(-low, high), people[high], people[low])
    new = {high: bound.denominator, low: -bound.numerator, 0: 0}
    return Row.of(([new[a] for a in line] for line in row.coefficients), 0)


def exclude_counts(condition: Condition, counts: NDArray[np.int64]) -> AnyOf:
    """A cut that excludes counts violating a condition, and nothing that satisfies it."""
    if not isinstance(condition, AnyOf):
        return AnyOf(tuple(tuple(way) for way in condition.alternatives(counts)))
    ways: list[tuple[Condition, ...]] = []
    for option in condition.options:
        violated = next(c for c in option if not c.holds(counts))
        ways += [(*option, *way) for way in violated.alternatives(counts)]
    return AnyOf(tuple(ways))


def _differ_in_sign(low: int, high: int) -> bool:
    return low < 0 < high


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
