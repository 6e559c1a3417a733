"""Checks of many tables of counts against conditions, and the split of conditions by people.

Everything is decided in whole numbers, as `Condition.holds` decides one table.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations, product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fpbench.claims.conditions import (
    AnyOf,
    Gap,
    Occupied,
    Proportional,
    RatesApart,
    RatesWithin,
)
from fpbench.claims.counts import Condition, Part, Row

Tables: TypeAlias = NDArray[np.int64]
"""(N, J, K) tables of counts."""
_Mask: TypeAlias = NDArray[np.bool_]
_Integers: TypeAlias = NDArray[Any]


def satisfy(conditions: Sequence[Condition], tables: Tables) -> _Mask:
    """Mask (N,) of the tables that satisfy every condition, exactly.

    `conditions`: about the J classes and K groups of the tables. `tables`: (N, J, K) counts.
    """
    allowed = np.ones(len(tables), dtype=bool)
    for condition in conditions:
        rows = np.flatnonzero(allowed)
        if not len(rows):
            break
        allowed[rows] = _satisfy_one(condition, tables[rows])
    return allowed


def _satisfy_one(condition: Condition, tables: Tables) -> _Mask:
    if isinstance(condition, Row):
        return _satisfy_row(condition, tables)
    if isinstance(condition, Proportional):
        return satisfy(condition.rows(), tables)
    if isinstance(condition, Occupied):
        return np.asarray((tables[:, list(condition.classes)].sum(axis=1) > 0).all(axis=1))
    if isinstance(condition, AnyOf):
        options = [satisfy(option, tables) for option in condition.options]
        return np.asarray(np.array(options, dtype=bool).reshape(-1, len(tables)).any(axis=0))
    if isinstance(condition, RatesWithin | RatesApart | Gap):
        return _compare_rates(condition, tables)
    return np.array([condition.holds(table) for table in tables], dtype=bool)


def _satisfy_row(row: Row, tables: Tables) -> _Mask:
    if not row.terms:
        return np.full(len(tables), row.most >= 0)
    most_people = int(tables.sum(axis=(1, 2)).max(initial=1))
    largest = max(abs(a) for _, _, a in row.terms) * most_people * len(row.terms)
    exact = np.int64 if max(largest, abs(row.most)) < 2**62 else object
    total = sum(tables[:, j, k].astype(exact) * a for j, k, a in row.terms)
    return np.asarray(total <= row.most, dtype=bool)


def _compare_rates(condition: RatesWithin | RatesApart | Gap, tables: Tables) -> _Mask:
    """Rates x / m of pairs of groups, multiplied out; an empty group has no rate."""
    part = condition.part
    positives, members = _tally(part, tables)
    e, q = condition.tolerance.as_integer_ratio()
    most_people = int(members.sum(axis=1).max(initial=1))
    exact = np.int64 if 4 * q * most_people**2 < 2**62 else object
    x, m = positives.T.astype(exact, order="C"), members.T.astype(exact, order="C")

    def difference(high: int, low: int) -> tuple[_Integers, _Integers]:
        """Two numbers of which the first is at most the second where rates are close."""
        one, other = x[high] * m[low], x[low] * m[high]
        if condition.ratio:
            return (q - e) * one, q * other
        return q * (one - other), e * (m[high] * m[low])

    if isinstance(condition, RatesWithin):
        rows = np.arange(len(tables))
        for high, low in permutations(range(part.groups), 2):
            left, right = difference(high, low)
            # If a group is empty, both sides are 0.
            close = np.asarray(left <= right, dtype=bool)
            rows, x, m = rows[close], x[:, close], m[:, close]
        allowed = np.zeros(len(tables), dtype=bool)
        allowed[rows] = True
        return allowed
    if isinstance(condition, Gap):
        pairs = [(condition.high, condition.low)]
    else:
        pairs = list(permutations(range(part.groups), 2))
    apart = np.zeros(len(tables), dtype=bool)
    for high, low in pairs:
        left, right = difference(high, low)
        have = (m[high] > 0) & (m[low] > 0)
        if condition.ratio:
            have &= x[high] > 0
        apart |= have & np.asarray(left >= right, dtype=bool)
    return apart


def _tally(part: Part, tables: Tables) -> tuple[Tables, Tables]:
    """(N, K) positively predicted people and people of every group."""
    positives = tables[:, list(part.positive)].sum(axis=1)
    return positives, positives + tables[:, list(part.negative)].sum(axis=1)


def list_classes(condition: Condition, classes: int) -> frozenset[int]:
    """The classes of people, by number, that a condition is about; all if it does not say."""
    if isinstance(condition, Row):
        return frozenset(j for j, _, _ in condition.terms)
    if isinstance(condition, Occupied):
        return frozenset(condition.classes)
    if isinstance(condition, Proportional | RatesWithin | RatesApart | Gap):
        return frozenset({*condition.part.negative, *condition.part.positive})
    if isinstance(condition, AnyOf):
        return frozenset().union(
            *(list_classes(one, classes) for option in condition.options for one in option)
        )
    return frozenset(range(classes))


def join_classes(sets: Sequence[frozenset[int]]) -> list[frozenset[int]]:
    """Sets of classes that no condition ties to each other."""
    parts: list[frozenset[int]] = []
    for one in sets:
        tied = [part for part in parts if part & one]
        parts = [part for part in parts if not part & one] + [one.union(*tied)]
    return [part for part in parts if part]


def list_options(condition: AnyOf | RatesApart) -> list[tuple[Condition, ...]]:
    """The alternatives of a condition, each as a condition with a single one."""
    if isinstance(condition, AnyOf):
        nested = [
            [list_options(one) if isinstance(one, AnyOf | RatesApart) else [(one,)]
             for one in option]
            for option in condition.options
        ]  # fmt: skip
        return [
            tuple(one for part in chosen for one in part)
            for option in nested
            for chosen in product(*option)
        ]
    return [
        (Gap(condition.part, condition.tolerance, condition.ratio, high, low),)
        for high, low in permutations(range(condition.part.groups), 2)
    ]
