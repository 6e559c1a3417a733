"""Two groups: which sizes conditions leave to group 1."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fpbench.correction.exact.two_group_regions
from fpbench.claims import (
    METRICS,
    KnownUnfairness,
    Part,
    Proportional,
    RateBounds,
    RateConstraint,
    RatesWithin,
    Row,
    ShareBounds,
)
from fpbench.claims.counts import Classes
from fpbench.claims.rates import FORMS
from fpbench.correction.exact.two_group_regions import Region, separate_regions

TOLERANCES = (
    0.0, 1e-17, 0.01, 0.1, 0.2, 0.25, 1 / 3, 0.1 + 0.2, 0.5, 0.12345678901234567, 0.95, 1.0,
)  # fmt: skip


def classes_of(p: int, n: int) -> Classes:
    """Everyone, n people of whom p are positively predicted."""
    return Classes((None, None), (0, 1), (n - p, p), 2)


def claimed(p: int, n: int, form, tolerance) -> Region:
    """The sizes that a claim leaves, empty groups included."""
    classes = classes_of(p, n)
    (way,) = separate_regions(
        RateConstraint(tolerance=tolerance, form=form).conditions(classes), classes
    )
    ((label, region),) = way.parts
    assert label is None
    assert region.least == (1, 1)  # a claim is about two groups that have members
    return Region(region.part, region.conditions)


@pytest.mark.slow
@pytest.mark.parametrize("tolerance", TOLERANCES)
@pytest.mark.parametrize("form", FORMS)
def test_sizes_of_claims_equal_enumeration(form, tolerance):
    for n in (*range(10), 13):
        for p in range(n + 1):
            lows, highs = claimed(p, n, form, tolerance).interval(np.arange(p + 1))
            assert lows.dtype == highs.dtype == np.int64
            for x in range(p + 1):
                wanted = [
                    m
                    for m in range(x, n - (p - x) + 1)
                    if oracles.rates_agree((n - m, m), (p - x, x), form, tolerance)
                ]
                assert list(range(lows[x], highs[x] + 1)) == wanted


@given(
    st.integers(1, 10**7), st.floats(0, 1), st.floats(0, 1), st.sampled_from(FORMS),
    st.sampled_from(TOLERANCES) | st.sampled_from([1e-4, 0.002, 0.03]) | st.floats(0, 1),
)  # fmt: skip
def test_sizes_of_large_groups_end_where_the_claim_ends(n, share, part, form, tolerance):
    p = round(n * share)
    x = round(p * part)
    (low,), (high,) = claimed(p, n, form, tolerance).interval(np.array([x]))
    first, last = x, n - (p - x)

    def holds(m: int) -> bool:
        return oracles.rates_agree((n - m, m), (p - x, x), form, tolerance)

    low, high = int(low), int(high)
    if low > high:
        # Empty: the sizes on either side of the gap, and those that would fit best, all fail.
        near = {first, last, low, low - 1, high, high + 1, round(x * n / p) if p else first}
        assert not any(holds(m) for m in near if first <= m <= last)
        return
    assert first <= low <= high <= last
    assert holds(low)
    assert holds(high)
    assert low == first or not holds(low - 1)
    assert high == last or not holds(high + 1)


def test_python_integers_give_what_machine_integers_give(monkeypatch):
    x = np.arange(401)
    machine = {
        (form, tolerance): claimed(400, 1500, form, tolerance).interval(x)
        for form in FORMS
        for tolerance in (0.0, 0.03, 0.2, 1.0)
    }
    monkeypatch.setattr(
        fpbench.correction.exact.two_group_regions,
        "_avoid_overflow",
        lambda x, largest: x.astype(object),
    )
    for (form, tolerance), found in machine.items():
        slow = claimed(400, 1500, form, tolerance).interval(x)
        assert slow[0].dtype == slow[1].dtype == np.int64
        np.testing.assert_array_equal(slow, found)


@st.composite
def parts(draw) -> Part:
    """One class of each prediction, perhaps among the classes of others."""
    sizes = draw(st.lists(st.integers(0, 6), min_size=2, max_size=2))
    if draw(st.booleans()):
        return Part((0,), (1,), tuple(sizes), 2)
    return Part((2,), (3,), (4, 5, *sizes), 2)


@st.composite
def conditions(draw, part: Part):
    kind = draw(st.sampled_from(["row", "huge row", "proportional", "together"]))
    if kind == "proportional":
        return Proportional(part, draw(st.integers(0, 1)))
    if kind == "together":
        tolerance = st.fractions(0, 1, max_denominator=12) | st.floats(0, 1).map(Fraction)
        return RatesWithin(part, draw(tolerance), draw(st.booleans()))
    most = 10**30 if kind == "huge row" else 5
    coefficient = st.integers(-most, most)
    table = [[0, 0] for _ in part.sizes]
    for j in (*part.negative, *part.positive):
        table[j] = [draw(coefficient), draw(coefficient)]
    return Row.of(table, draw(st.integers(-8 * most, 8 * most)))


@given(st.data(), parts(), st.tuples(st.integers(0, 3), st.integers(0, 3)))
def test_sizes_of_any_conditions_equal_enumeration(data, part, least):
    chosen = data.draw(st.lists(conditions(part), max_size=3))
    region = Region(part, tuple(chosen)).needing(least)
    low, high = region.interval(np.arange(part.positives + 1))
    n, p = part.people, part.positives
    for x in range(p + 1):
        wanted = []
        for m in range(x, n - (p - x) + 1):
            counts = np.full((len(part.sizes), 2), -(10**6))  # what is elsewhere does not matter
            counts[part.positive[0]] = p - x, x
            counts[part.negative[0]] = n - p - (m - x), m - x
            if n - m >= least[0] and m >= least[1] and all(c.holds(counts) for c in chosen):
                wanted.append(m)
        assert list(range(low[x], high[x] + 1)) == wanted


BOUND = st.sampled_from([0.0, 0.1, 0.25, 1 / 3, Fraction(1, 3), 0.5, 0.8, 1.0])


@given(
    st.lists(st.integers(0, 5), min_size=4, max_size=4).filter(lambda sizes: sizes[0] + sizes[1]),
    st.sampled_from(METRICS),
    st.sampled_from(["claim", "positive-rate", "share", "unfairness"]),
    st.lists(BOUND, min_size=2, max_size=2).map(sorted),
    st.integers(0, 1),
)
def test_the_ways_of_a_constraint_are_its_counts(sizes, metric, kind, bounds, group):
    """Slice by slice, over all pairs (x, m): some way allows them where the definition does."""
    constraint = {
        "claim": RateConstraint(metric, bounds[0]),
        "positive-rate": RateBounds(group, *bounds, metric),
        "share": ShareBounds(group, *bounds),
        "unfairness": KnownUnfairness(metric, *bounds),
    }[kind]
    labels = {(None,): (None, None), (0,): (0, 0), (1,): (1, 1), (0, 1): (0, 0, 1, 1)}
    of_label = labels[constraint.labels]
    classes = Classes(of_label, (0, 1) * (len(of_label) // 2), tuple(sizes[: len(of_label)]), 2)
    ways = separate_regions(constraint.conditions(classes), classes)
    allowed = set()
    for way in ways:
        assert [label for label, _ in way.parts] == list(constraint.labels)
        of_part = []
        for _, region in way.parts:
            x = np.arange(region.part.positives + 1)
            ends = zip(x.tolist(), *(end.tolist() for end in region.interval(x)), strict=True)
            of_part.append({(i, m) for i, low, high in ends for m in range(low, high + 1)})
        chosen = {(one,) for one in of_part[0]}
        for more in of_part[1:]:
            chosen = {(*some, one) for some in chosen for one in more}
        n = sum(region.people for _, region in way.parts)
        if way.union:
            chosen = {some for some in chosen if 0 < sum(m for _, m in some) < n}
        allowed |= chosen
    wanted = set()
    pairs = [
        [(x, m) for x in range(p + 1) for m in range(x, x + rest + 1)]
        for rest, p in zip(classes.sizes[::2], classes.sizes[1::2], strict=True)
    ]
    everything = [(a,) for a in pairs[0]] if len(pairs) == 1 else [
        (a, b) for a in pairs[0] for b in pairs[1]
    ]  # fmt: skip
    for some in everything:
        counts = [
            ((rest + p - m, m), (p - x, x))
            for (x, m), rest, p in zip(some, classes.sizes[::2], classes.sizes[1::2], strict=True)
        ]
        if oracles.holds(constraint, counts):
            wanted.add(some)
    assert allowed == wanted


def test_what_links_slices_is_no_region():
    classes = Classes((0, 0, 1, 1), (0, 1, 0, 1), (3, 4, 5, 6), 2)
    odds = RateConstraint("equalized-odds", 0.1).conditions(classes)
    assert [way.union for way in separate_regions(odds, classes)] == [True]
    assert separate_regions([*odds, *ShareBounds(1, 0.5).conditions(classes)], classes) is None
    # Far from each other, rather than from the overall rate, is not an interval of sizes.
    apart = KnownUnfairness("statistical-parity", 0.1, 0.5, "between-groups").conditions(classes)
    assert separate_regions(apart, classes) is None


def test_an_unfairness_that_is_known_from_below_is_one_of_several_ways():
    classes = classes_of(4, 10)
    near = KnownUnfairness("statistical-parity", 0, 0.2).conditions(classes)
    assert len(separate_regions(near, classes)) == 1
    far = KnownUnfairness("statistical-parity", 0.1, 0.2).conditions(classes)
    assert len(separate_regions(far, classes)) == 4  # one of two groups, above or below
