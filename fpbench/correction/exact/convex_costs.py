"""Convex costs in pieces, for linear programs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_Numbers = NDArray[np.float64]
_Integers = NDArray[np.int64]


def tangents(ends: _Integers, costs: _Numbers, weights: _Numbers) -> tuple[_Numbers, _Numbers]:
    """Lengths and slopes of a convex function below the cost that meets it at the ends."""
    low, high = ends[:-1], ends[1:]
    first, last = weights[low], weights[high - 1]
    rise = costs[high] - costs[low] - first * (high - low)
    # The tangents cross where following the second one makes up for all the rise.
    steeper = np.where(last > first, last - first, 1.0)
    after = np.clip(np.where(last > first, rise / steeper, 0.0), 0.0, high - low)
    lengths = np.stack([high - low - after, after], axis=1).ravel()
    slopes = np.stack([first, last], axis=1).ravel()
    return lengths[lengths > 0], slopes[lengths > 0]


def even(low: int, high: int, pieces: int) -> _Integers:
    """Ends of about so many pieces of equal length."""
    return np.unique(np.rint(np.linspace(low, high, pieces + 1)).astype(np.int64))


def merged(ends: _Integers, more: _Integers) -> _Integers:
    """Ends and more of them, as far as they lie between the first and the last."""
    return np.union1d(ends, more[(more >= ends[0]) & (more <= ends[-1])])
