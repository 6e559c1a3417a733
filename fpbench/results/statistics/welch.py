"""Welch's t-test from means, standard deviations and counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class SampleMoments:
    """A sample of a measure in three numbers."""

    mean: float
    deviation: float
    """Standard deviation (n - 1)."""
    count: int
    """At least 2."""


@dataclass(frozen=True)
class Difference:
    """The difference of the mean of some samples' means from that of others, or from a number."""

    mean: float
    low: float
    """Lower end of the two-sided 95 % interval."""
    high: float
    p_lower: float
    """p-value of the one-sided test that it is not below 0."""


def compare_means(
    ours: Sequence[SampleMoments], others: Sequence[SampleMoments] | float
) -> Difference:
    """The difference of two means, each of independent samples alike in weight.

    `others`: at least one sample, independent of ours; or a number that is known.

    Welch (Biometrika 34, 1947): the variance is the sum of those of the means, and the degrees of
    freedom follow Satterthwaite's rule. With one sample against a number it is Student's t-test.
    A difference without any spread is exact.
    """
    from scipy.stats import t

    mean, parts = _average(ours), _compute_variances(ours)
    if isinstance(others, int | float):
        mean -= others
    else:
        mean -= _average(others)
        parts += _compute_variances(others)
    variance = math.fsum(v for v, _ in parts)
    if variance == 0:
        return Difference(mean, mean, mean, float(mean >= 0))
    # In units of their sum, or squares of small variances are 0.
    freedom = 1 / math.fsum((v / variance) ** 2 / f for v, f in parts)
    error = math.sqrt(variance)
    half = float(t.ppf(0.975, freedom)) * error
    return Difference(mean, mean - half, mean + half, float(t.cdf(mean / error, freedom)))


def _average(samples: Sequence[SampleMoments]) -> float:
    return math.fsum(sample.mean for sample in samples) / len(samples)


def _compute_variances(samples: Sequence[SampleMoments]) -> list[tuple[float, int]]:
    """Each sample's part of the variance of the mean of means, and its degrees of freedom."""
    n = len(samples)
    return [(s.deviation**2 / s.count / n**2, s.count - 1) for s in samples]
