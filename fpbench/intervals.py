"""Means over seeds, and how sure they are."""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2_000
"""Bootstrap resamples behind an interval."""

_AT_ONCE = 16_000_000
"""Numbers that are held at a time."""
_MANY = 256
"""Values from which on lines of nearly as many share resamples; these are of a multiple of it."""


@dataclass(frozen=True)
class Interval:
    """A mean over seeds, and how sure it is."""

    mean: float
    deviation: float | None
    """Standard deviation over seeds (n - 1); None for one seed."""
    low: float | None
    """Lower end of the 95 % bootstrap interval of the mean; None for one seed."""
    high: float | None
    count: int
    """Seeds with a value."""


def interval(values: NDArray[np.float64], name: str = "") -> Interval:
    """Mean, standard deviation and 95 % bootstrap interval of values over seeds.

    Parameters
    ----------
    values
        (n,) one value a seed.
    name
        Seeds the resampling, so that the same values always give the same interval.

    Notes
    -----
    Percentile bootstrap of the mean (Efron, 1979), whose percentiles are moved outwards for a
    handful of seeds (Hesterberg, What teachers should know about the bootstrap, The American
    Statistician 69, 2015, section 5.2). Of normal values it covers the mean in 75 % of all cases
    with 3 seeds, 92 % with 5 and 95 % from 8 on; without that it is 75 %, 84 % and 89 %. Two values
    can only give the interval between them.
    """
    count = len(values)
    if count < 2:
        return Interval(float(values[0]), None, None, None, count)
    low, high = bounds(np.asarray(values, np.float64)[None], name)
    deviation = float(values.std(ddof=1))
    return Interval(float(values.mean()), deviation, float(low[0]), float(high[0]), count)


def bounds(values: NDArray[np.float64], name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Both ends of the 95 % bootstrap interval of the mean of each line.

    Parameters
    ----------
    values
        (lines, n) with n > 1. All lines are resampled alike: a resample is how often each of the n
        is drawn, and the means of all lines over all resamples are one product of matrices.
    name
        Seeds the resampling.

    Returns
    -------
    tuple of ndarray
        (lines,) the lower ends, and the upper ones.
    """
    lines = len(values)
    step = max(_AT_ONCE // RESAMPLES, 1)
    low, high = np.empty(lines), np.empty(lines)
    for start in range(0, lines, step):
        part = slice(start, start + step)
        means = _means(values[part], zlib.crc32(name.encode()))
        tail = _tail(values.shape[1])
        low[part], high[part] = np.quantile(means, (tail, 1 - tail), axis=1)
    return low, high


@cache
def _tail(count: int) -> float:
    """The share of resamples to leave out on each side.

    Less than 2.5 %, so that the interval is as wide as Student's t makes it (Hesterberg).
    """
    from scipy.special import ndtr, stdtrit

    return float(ndtr(-math.sqrt(count / (count - 1)) * stdtrit(count - 1, 0.975)))


def _means(values: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """(lines, resamples)."""
    lines, count = values.shape
    if _MANY < count <= _AT_ONCE // RESAMPLES - _MANY:
        return _thinned(values, seed)
    if count * RESAMPLES <= _AT_ONCE:
        means: NDArray[np.float64] = values @ _times(count, seed).T / count
        return means
    rng, found = np.random.default_rng(seed), np.empty((lines, RESAMPLES))
    step = max(_AT_ONCE // count, 1)
    for start in range(0, RESAMPLES, step):
        part = _drawn(rng, count, min(step, RESAMPLES - start))
        found[:, start : start + step] = values @ part.T / count
    return found


def _thinned(values: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """(lines, resamples) of many values: those of the same resamples that a line has.

    Of a run with failures most lines have another count, and drawing is what takes long. A resample
    of up to 255 more values, without the draws of these, is one of the others whose size is right
    on average: variances are right to one part in the number of values.
    """
    count = values.shape[1]
    times = _times(-(-count // _MANY) * _MANY, seed)[:, :count]
    means: NDArray[np.float64] = values @ times.T / times.sum(axis=1)
    return means


@lru_cache(maxsize=2)
def _times(count: int, seed: int) -> NDArray[np.float64]:
    return _drawn(np.random.default_rng(seed), count, RESAMPLES)


def _drawn(rng: np.random.Generator, count: int, resamples: int) -> NDArray[np.float64]:
    """(resamples, count) how often each of so many values is drawn."""
    draws = rng.integers(count, size=(resamples, count))
    draws += count * np.arange(resamples)[:, None]
    times = np.bincount(draws.ravel(), minlength=resamples * count)
    return times.reshape(resamples, count).astype(np.float64)


__all__ = ["RESAMPLES", "Interval", "bounds", "interval"]
