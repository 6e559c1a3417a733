"""Welch's t-test from summaries is the one from samples."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fpbench.results.verdicts import SampleMoments, compare_means

samples = st.lists(st.floats(-100, 100), min_size=2, max_size=20).filter(lambda x: np.std(x) > 1e-3)


def summary(values):
    return SampleMoments(float(np.mean(values)), float(np.std(values, ddof=1)), len(values))


@given(samples, samples)
def test_of_two_samples_it_is_scipys(a, b):
    found = compare_means([summary(a)], [summary(b)])
    theirs = stats.ttest_ind(a, b, equal_var=False, alternative="less")
    low, high = stats.ttest_ind(a, b, equal_var=False).confidence_interval()
    assert found.p_lower == pytest.approx(theirs.pvalue, abs=1e-9)
    assert found.mean == pytest.approx(np.mean(a) - np.mean(b), abs=1e-9)
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-6, abs=1e-9)


@given(samples, st.floats(-100, 100))
def test_against_a_number_it_is_students(a, number):
    found = compare_means([summary(a)], number)
    theirs = stats.ttest_1samp(a, number, alternative="less")
    low, high = stats.ttest_1samp(a, number).confidence_interval()
    assert found.p_lower == pytest.approx(theirs.pvalue, abs=1e-9)
    assert (found.low + number, found.high + number) == pytest.approx((low, high), abs=1e-6)


def test_of_several_samples_intervals_hold_the_truth_as_often_as_they_say():
    rng = np.random.default_rng(0)
    inside = significant = 0
    for _ in range(2_000):
        ours = [summary(rng.normal(i, 1 + i, 6)) for i in range(3)]
        others = [summary(rng.normal(1, 2, 4)) for _ in range(2)]
        found = compare_means(ours, others)
        inside += found.low <= 0 <= found.high
        significant += found.p_lower <= 0.05
    assert 0.93 <= inside / 2_000 <= 0.97
    assert 0.03 <= significant / 2_000 <= 0.07


def test_a_difference_without_spread_is_what_it_is():
    for mean, p in ((1.0, 1.0), (0.0, 1.0), (-1.0, 0.0)):
        found = compare_means([SampleMoments(mean, 0.0, 5)], [SampleMoments(0.0, 0.0, 5)])
        assert (found.mean, found.low, found.high, found.p_lower) == (mean, mean, mean, p)


@given(st.integers(-150, 150))
def test_it_does_not_depend_on_the_unit(power):
    unit = 10.0**power
    ours, others = (
        [SampleMoments(1.0, 1.0, 9), SampleMoments(2.0, 3.0, 4)],
        [SampleMoments(3.0, 2.0, 5)],
    )
    scaled = [[SampleMoments(s.mean * unit, s.deviation * unit, s.count) for s in some]
              for some in (ours, others)]  # fmt: skip
    one, other = compare_means(ours, others), compare_means(*scaled)
    assert other.p_lower == pytest.approx(one.p_lower, rel=1e-6)
    assert math.isclose(other.low, one.low * unit, rel_tol=1e-6)
