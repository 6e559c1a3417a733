"""Translation of a problem's constraints into facts, as far as they are counts in sets."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TypeAlias

import numpy as np

from fpbench.claims.conditions import Constraint
from fpbench.claims.constraints import KnownPeople, LinearConstraint
from fpbench.claims.counts import Row
from fpbench.claims.set_counts import Facts, Mask
from fpbench.correction.exact.counting import CountedProblem

_SLACK = 1e-9
"""Tolerance of a sum's bounds, relative to the sum of its coefficients, for rounding."""

_Classes: TypeAlias = frozenset[int]


@dataclass(frozen=True)
class _Count:
    """How many people of some classes, or of a set, belong to a group."""

    group: int
    low: float
    high: float
    people: _Classes | Mask
    name: str


def collect_facts(counted: CountedProblem) -> tuple[Facts, tuple[Constraint, ...]]:
    """The facts that a problem's constraints state, and the constraints that say more.

    The share of a group is a count. So is its exact rate, or a bound of it, if the group's size is
    known exactly; and a sum whose coefficients are 0 or one other number. A claim that compares
    rates is not a count, nor is the rate of a group of unknown size. Known people are in neither
    list: `find_possible` and beliefs take care of them.

    `counted`: a problem with `Facts`.

    Raises ContradictionError if counts of the same people differ.
    """
    problem = counted.problem
    facts = [one for one in problem.constraints if isinstance(one, Facts)]
    others = [one for one in problem.constraints if not isinstance(one, Facts | KnownPeople)]
    counts: list[_Count] = []
    for _ in range(2):  # a rate is a count once the size of its group is known
        sizes = _find_sizes(counts)
        for one in tuple(others):
            if (read := _read_counts(one, counted, sizes)) is not None:
                counts += read
                others.remove(one)
    if counts:
        facts.append(_make_facts(counts, counted))
    return Facts.join(facts), tuple(others)


def _find_sizes(counts: list[_Count]) -> dict[tuple[_Classes, int], int]:
    """Members of a group in classes, where they are known exactly."""
    ends: dict[tuple[_Classes, int], tuple[float, float]] = {}
    for one in counts:
        if isinstance(one.people, frozenset):
            low, high = ends.get((one.people, one.group), (0.0, inf))
            ends[one.people, one.group] = max(low, one.low), min(high, one.high)
    return {where: int(low) for where, (low, high) in ends.items() if low == high}


def _read_counts(
    constraint: Constraint, counted: CountedProblem, sizes: dict[tuple[_Classes, int], int]
) -> list[_Count] | None:
    """A constraint as counts; None if it is not about counts alone."""
    name = f"{constraint.word} of a group"
    if isinstance(constraint, LinearConstraint):
        numbers = constraint.array()
        values = np.unique(numbers[numbers != 0])
        if len(values) != 1:
            return None
        slack = _SLACK * float(np.abs(numbers).sum())
        ends = (constraint.low - slack, constraint.high + slack)
        low, high = sorted(end / values[0] for end in ends)
        return [_Count(constraint.group, low, high, numbers != 0, name)]
    conditions = constraint.conditions(counted.classes)
    if not conditions or not all(isinstance(one, Row) for one in conditions):
        return None
    counts = []
    for row in conditions:
        assert isinstance(row, Row)
        if (read := _read_row(row, sizes, name)) is None:
            return None
        counts += read
    return counts


def _read_row(row: Row, sizes: dict[tuple[_Classes, int], int], name: str) -> list[_Count] | None:
    """A row as bounds of counts; None if it is about several with an unknown sum."""
    terms, coefficients = row.terms, {a for _, _, a in row.terms}
    groups = {k for _, k, _ in terms}
    if len(groups) != 1 or len(coefficients) > 2:
        return None
    (group,), total = groups, sizes.get((frozenset(j for j, _, _ in terms), next(iter(groups))))
    if len(coefficients) == 2 and total is None:
        return None
    counts = []
    for own in coefficients:
        # Of a x + b (m - x) <= c, a bound of x follows from the sum m.
        other = sum(coefficients) - own
        factor, most = own - other, row.most - other * (total or 0)
        people = frozenset(j for j, _, a in terms if a == own)
        ends = (0.0, float(most // factor)) if factor > 0 else (float(-(most // -factor)), inf)
        counts.append(_Count(group, *ends, people, name))
    return counts


def _make_facts(counts: list[_Count], counted: CountedProblem) -> Facts:
    """Counts as facts."""
    shape = len(counts), counted.problem.groups
    low, high = np.zeros(shape), np.full(shape, np.inf)
    members = np.zeros((len(counted.problem.guess), len(counts)), np.bool_)
    for number, one in enumerate(counts):
        low[number, one.group], high[number, one.group] = one.low, one.high
        if isinstance(one.people, frozenset):
            members[:, number] = np.isin(counted.members, list(one.people))
        else:
            members[:, number] = one.people
    return Facts.from_counts(members, low, high, names=[one.name for one in counts])
