from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpbench.claims import AnyOf, Gap, Occupied, Proportional, RatesApart, RatesWithin, Row
from fpbench.claims.conditions import find_simplest_between
from fpbench.claims.counts import Classes

FRACTIONS = (Fraction(1, 10), Fraction(1, 5), Fraction(1, 4), Fraction(1, 3), Fraction(1, 2),
             Fraction(7, 10), Fraction(10**17 + 1, 3 * 10**17))  # fmt: skip
fractions = st.fractions(-5, 5) | st.fractions(max_denominator=10**30)


def tables(classes: Classes) -> list[np.ndarray]:
    """Every table of counts (J, K)."""
    lines = [
        [line for line in product(range(size + 1), repeat=classes.groups) if sum(line) == size]
        for size in classes.sizes
    ]
    return [np.array(table) for table in product(*lines)]


def small_classes(rng) -> Classes:
    """Two classes, or four; some may be empty."""
    groups = int(rng.integers(2, 4))
    if rng.random() < 0.7:
        return Classes((None, None), (0, 1), tuple(rng.integers(0, 5, 2).tolist()), groups)
    most = 2 if groups == 3 else 3
    return Classes((0, 0, 1, 1), (0, 1, 0, 1), tuple(rng.integers(0, most + 1, 4).tolist()), groups)


def some_part(rng, classes):
    return classes.part(rng.choice(list(dict.fromkeys(classes.labels))))


def some_fraction(rng):
    return FRACTIONS[rng.integers(len(FRACTIONS))]


def row(rng, classes):
    shape = len(classes.sizes), classes.groups
    coefficients = rng.integers(-4, 5, shape) * (rng.random(shape) < 0.6)
    return Row.of(coefficients.tolist(), int(rng.integers(-5, 6)))


def rate_row(rng, classes):
    part = some_part(rng, classes)
    bound = part.rate_at_most if rng.random() < 0.5 else part.rate_at_least
    return bound(int(rng.integers(classes.groups)), some_fraction(rng))


def proportional(rng, classes):
    return Proportional(some_part(rng, classes), int(rng.integers(classes.groups)))


def occupied(rng, classes):
    return Occupied(tuple(classes.part(label) for label in dict.fromkeys(classes.labels)))


def together(rng, classes):
    return RatesWithin(some_part(rng, classes), some_fraction(rng), bool(rng.random() < 0.5))


def apart(rng, classes):
    tolerance = Fraction(1) if rng.random() < 0.2 else some_fraction(rng)
    return RatesApart(some_part(rng, classes), tolerance, bool(rng.random() < 0.5))


def gap(rng, classes):
    one, other = rng.choice(classes.groups, 2, replace=False).tolist()
    chosen = apart(rng, classes)
    return Gap(chosen.part, chosen.tolerance, chosen.ratio, one, other)


def any_of(rng, classes):
    makers = (row, rate_row, together, gap)
    return AnyOf(tuple(
        tuple(makers[rng.integers(4)](rng, classes) for _ in range(rng.integers(1, 3)))
        for _ in range(rng.integers(1, 4))
    ))  # fmt: skip


MAKERS = (row, rate_row, proportional, occupied, together, apart, gap, any_of)


def definition(condition, counts) -> bool:
    """Whether a condition holds, said once more."""
    if isinstance(condition, Row):
        return (np.array(condition.coefficients) * counts).sum() <= condition.most
    if isinstance(condition, AnyOf):
        return any(all(definition(c, counts) for c in option) for option in condition.options)
    if isinstance(condition, Occupied):
        inside = [j for part in condition.parts for j in part.negative + part.positive]
        return all(sum(counts[j][k] for j in inside) >= 1 for k in range(counts.shape[1]))
    part = condition.part
    said = [int(sum(counts[j][k] for j in part.positive)) for k in range(part.groups)]
    members = [int(sum(counts[j][k] for j in part.negative)) + x for k, x in enumerate(said)]
    rates = [Fraction(x, m) if m else None for x, m in zip(said, members, strict=True)]
    if isinstance(condition, Proportional):
        rate = rates[condition.group]
        return rate is None or rate == Fraction(sum(said), sum(members))
    if isinstance(condition, RatesWithin):
        there = [rate for rate in rates if rate is not None]
        if condition.ratio:
            return all(a >= (1 - condition.tolerance) * b for a, b in product(there, there))
        return all(a - b <= condition.tolerance for a, b in product(there, there))
    pairs = (
        [(condition.high, condition.low)]
        if isinstance(condition, Gap)
        else [(a, b) for a, b in product(range(part.groups), repeat=2) if a != b]
    )
    return any(_far(rates[a], rates[b], condition) for a, b in pairs)


def _far(high, low, condition) -> bool:
    if high is None or low is None:
        return False
    if condition.ratio:
        return high > 0 and low / high <= 1 - condition.tolerance
    return high - low >= condition.tolerance


def all_hold(conditions, counts) -> bool:
    return all(condition.holds(counts) for condition in conditions)


@pytest.mark.parametrize("make", MAKERS)
def test_a_condition_holds_where_its_definition_says(make):
    rng = np.random.default_rng(1)
    answers = set()
    for _ in range(25):
        classes = small_classes(rng)
        condition = make(rng, classes)
        for counts in tables(classes):
            answers.add(condition.holds(counts))
            assert condition.holds(counts) == definition(condition, counts)
    assert answers == {True, False}


@pytest.mark.parametrize("make", MAKERS)
def test_rows_hold_wherever_a_condition_holds(make):
    rng = np.random.default_rng(2)
    looked_at = 0
    for _ in range(25):
        classes = small_classes(rng)
        condition = make(rng, classes)
        rows = condition.rows()
        linear = isinstance(condition, Row | Proportional | Occupied)
        for counts in tables(classes):
            if linear:
                assert all_hold(rows, counts) == condition.holds(counts)
            elif condition.holds(counts):
                looked_at += len(rows)
                assert all_hold(rows, counts)
    assert bool(looked_at) == (make in (together, gap))


@pytest.mark.parametrize("make", MAKERS)
def test_ways_out_lose_nothing_but_the_counts_that_violate(make):
    """Whatever satisfies a condition satisfies a way out; what violates it satisfies none."""
    rng = np.random.default_rng(3)
    tried = 0
    while tried < 60:
        classes = small_classes(rng)
        condition = make(rng, classes)
        everything = tables(classes)
        held = [condition.holds(counts) for counts in everything]
        violating = [c for c, ok in zip(everything, held, strict=True) if not ok]
        satisfying = [c for c, ok in zip(everything, held, strict=True) if ok]
        for at in rng.permutation(len(violating))[:5]:
            tried += 1
            ways = condition.alternatives(violating[at])
            assert not any(all_hold(way, violating[at]) for way in ways)
            for counts in satisfying:
                assert any(all_hold(way, counts) for way in ways)


numbers = st.integers(-(10**20), 10**20)
lines = st.lists(numbers, min_size=3, max_size=3)


@given(st.lists(lines, min_size=1, max_size=3), numbers, st.integers(1, 10**6))
def test_a_row_is_in_lowest_terms_and_says_the_same(coefficients, most, factor):
    found = Row.of([[factor * a for a in line] for line in coefficients], factor * most)
    assert found == Row.of(coefficients, most)
    assert math.gcd(*(a for line in found.coefficients for a in line)) in (0, 1)
    for shift in range(5):
        counts = (7 * np.arange(3 * len(coefficients)).reshape(-1, 3) + 11 * shift) % 13
        total = sum(a * int(c) for line, own in zip(coefficients, counts, strict=True)
                    for a, c in zip(line, own, strict=True))  # fmt: skip
        assert found.holds(counts) == (total <= most)


@pytest.mark.parametrize(
    ("most", "lowest"), [(7, 3), (6, 3), (5, 2), (-1, -1), (-2, -1), (-3, -2), (0, 0)]
)
def test_the_right_side_of_a_row_is_rounded_down(most, lowest):
    assert Row.of([[2, -4], [0, 6]], most) == Row(((1, -2), (0, 3)), lowest)


def test_a_row_names_its_terms():
    assert Row.of([[0, 3], [-5, 0]], 2).terms == [(0, 1, 3), (1, 0, -5)]
    assert Row.of([[0, 0]], 2).terms == []
    assert Row.of([[0, 0]], 2).holds(np.array([[1, 1]]))
    assert not Row.of([[0, 0]], -1).holds(np.array([[1, 1]]))


@given(fractions, fractions)
def test_between_lies_strictly_between(one, other):
    low, high = sorted((one, other))
    if low < high:
        assert low < find_simplest_between(low, high) < high


def test_between_is_simple():
    assert find_simplest_between(Fraction(0), Fraction(1)).denominator <= 4
    assert find_simplest_between(Fraction(333, 1000), Fraction(335, 1000)).denominator < 1000


@pytest.mark.parametrize("positives", range(5))
def test_a_proportional_group_is_a_multiple_of_its_unit(positives):
    classes = Classes((None, None), (0, 1), (4 - positives, positives), 2)
    condition = Proportional(classes.part(None), 0)
    x, m = condition.unit
    assert Fraction(x, m) == Fraction(positives, 4)
    sizes = {
        (int(counts[1, 0]), int(counts[:, 0].sum()))
        for counts in tables(classes)
        if condition.holds(counts)
    }
    assert sizes == {(times * x, times * m) for times in range(4 // m + 1)}


def test_a_part_is_the_people_with_a_label():
    classes = Classes((0, 0, 1, 1), (0, 1, 0, 1), (5, 3, 2, 7), 2)
    everyone, zero, one = (classes.part(label) for label in (None, 0, 1))
    assert (everyone.negative, everyone.positive) == ((0, 2), (1, 3))
    assert (zero.negative, zero.positive) == ((0,), (1,))
    assert (one.negative, one.positive) == ((2,), (3,))
    assert [part.people for part in (everyone, zero, one)] == [17, 8, 9]
    assert [part.positives for part in (everyone, zero, one)] == [10, 3, 7]
    counts = np.array([[5, 0], [1, 2], [0, 2], [0, 7]])
    assert everyone.rates(counts) == [Fraction(1, 6), Fraction(9, 11)]
    assert one.rates(counts) == [None, Fraction(7, 9)]
    assert zero.tally(counts) == ([1, 2], [6, 2])


def test_rates_within_rounding_are_told_apart():
    """Fractions so near to each other that floats are the same."""
    near = Fraction(1, 3) + Fraction(1, 10**30)
    classes = Classes((None, None), (0, 1), (4, 2), 2)
    part, counts = classes.part(None), np.array([[2, 2], [1, 1]])
    assert oracles.unfairness([3, 3], [1, 1], "to-overall") == 0
    assert part.rate_at_most(0, Fraction(1, 3)).holds(counts)
    assert part.rate_at_most(0, near).holds(counts)
    assert not part.rate_at_least(0, near).holds(counts)
