"""Bootstrap intervals of many lines at once: the same as of each alone."""

import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpbench import intervals
from fpbench.intervals import RESAMPLES, bounds, interval


@settings(max_examples=25)
@given(st.integers(2, 12), st.integers(1, 5), st.integers(0, 2**32), st.sampled_from(["", "gain"]))
def test_lines_are_resampled_as_each_would_be_alone(count, lines, seed, name):
    values = np.random.default_rng(seed).normal(size=(lines, count))
    low, high = bounds(values, name)
    for i in range(lines):
        alone = interval(values[i], name)
        assert (low[i], high[i]) == pytest.approx((alone.low, alone.high), abs=1e-12)
        draws = np.random.default_rng(zlib.crc32(name.encode())).integers(
            count, size=(RESAMPLES, count)
        )
        tail = intervals._tail(count)
        plain = np.quantile(values[i][draws].mean(axis=1), (tail, 1 - tail))
        assert (low[i], high[i]) == pytest.approx(tuple(plain), abs=1e-12)
        assert (alone.mean, alone.deviation) == (values[i].mean(), values[i].std(ddof=1))


def test_what_does_not_fit_at_once_is_the_same(monkeypatch):
    values = np.random.default_rng(0).normal(size=(7, 30))
    whole = bounds(values, "gain")
    monkeypatch.setattr(intervals, "_AT_ONCE", 2 * RESAMPLES)  # two lines, and parts of the draws
    intervals._times.cache_clear()
    assert np.allclose(bounds(values, "gain"), whole, atol=1e-12)


def test_of_many_values_intervals_are_those_of_the_means_distribution():
    """Beyond 256 values lines share resamples: as wide as the normal limit says, and centred."""
    rng = np.random.default_rng(0)
    for count in (257, 300, 511, 512, 513, 1_000):
        values = rng.exponential(size=(20, count))
        low, high = bounds(values, "gain")
        normal = 2 * 1.96 * values.std(axis=1, ddof=1) / np.sqrt(count)
        assert np.abs((high - low) / normal - 1).mean() < 0.03
        assert np.abs(((high + low) / 2 - values.mean(axis=1)) / normal).mean() < 0.05


def test_of_many_values_each_count_has_nearly_the_interval_of_independent_resamples():
    values = np.random.default_rng(1).normal(size=(8, 400))
    ends = np.array(bounds(values, "gain"))
    drawn = intervals._drawn(np.random.default_rng(2), 400, 20_000)
    tail = intervals._tail(400)
    plain = np.quantile(values @ drawn.T / 400, (tail, 1 - tail), axis=1)
    assert np.abs(ends - plain).max() < 0.1 * (plain[1] - plain[0]).max()
