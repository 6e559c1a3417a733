"""Checks of the arguments of mechanisms, and noise for arrays of epsilons."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench import InputError
from fpbench.base import to_fraction
from fpbench.privacy import check_epsilon


def check_epsilons(epsilon: ArrayLike) -> NDArray[np.float64]:
    """Epsilon as an array; InputError if `fpbench.privacy.check_epsilon` refuses it."""
    check_epsilon(epsilon)
    return np.asarray(epsilon, dtype=np.float64)


def check_integers(numbers: ArrayLike, what: str) -> NDArray[np.int64]:
    """Integers as an array of 64 bits; InputError if they are not of an integer type."""
    values = np.asarray(numbers)
    if not np.issubdtype(values.dtype, np.integer):
        raise InputError(f"{what} must be whole numbers, not of type {values.dtype}")
    return values.astype(np.int64, copy=False)


def calibrate(
    calibration: Callable[[float], float], epsilon: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The calibration for every epsilon in an array, computed once per distinct value."""
    values, where = np.unique(epsilon, return_inverse=True)
    calibrated = np.array([calibration(float(value)) for value in values])
    return calibrated[where].reshape(epsilon.shape)


def add_exact_noise(
    counts: NDArray[np.int64],
    parameter: Callable[[Fraction], Fraction],
    draw: Callable[[Fraction], int],
    epsilon: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Counts plus independent exact noise; `parameter` gives the argument of `draw` by epsilon.

    Noise is added to integers. Sums beyond 2^53 are rounded afterwards, which is post-processing;
    noise rounded before the sum would not hide whether a count is even.
    """
    counts, epsilon = np.broadcast_arrays(counts, epsilon)
    values, where = np.unique(epsilon, return_inverse=True)
    parameters = [parameter(to_fraction(value)) for value in values]
    noisy = [int(q) + draw(parameters[i]) for q, i in zip(counts.flat, where.ravel(), strict=True)]
    return np.array(noisy, dtype=np.float64).reshape(counts.shape)
