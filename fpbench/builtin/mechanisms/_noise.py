"""What mechanisms share: checks of what they are handed, and one calibration for each epsilon."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench import InputError, as_written, check_epsilon


def checked(epsilon: ArrayLike) -> NDArray[np.float64]:
    """Epsilon as an array.

    Raises
    ------
    InputError
        If `fpbench.check_epsilon` refuses it.
    """
    check_epsilon(epsilon)
    return np.asarray(epsilon, dtype=np.float64)


def whole(numbers: ArrayLike, what: str) -> NDArray[np.int64]:
    """Numbers as an integer array.

    Raises
    ------
    InputError
        If they are not whole.
    """
    values = np.asarray(numbers)
    if not np.issubdtype(values.dtype, np.integer):
        raise InputError(f"{what} must be whole numbers, not of type {values.dtype}")
    return values.astype(np.int64, copy=False)


def each(
    calibration: Callable[[float], float], epsilon: NDArray[np.float64]
) -> NDArray[np.float64]:
    """A calibration at every epsilon of an array, computed once for each value."""
    values, where = np.unique(epsilon, return_inverse=True)
    found = np.array([calibration(float(value)) for value in values])
    return found[where].reshape(epsilon.shape)


def with_drawn(
    counts: NDArray[np.int64],
    law: Callable[[Fraction], Fraction],
    draw: Callable[[Fraction], int],
    epsilon: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Counts with independent draws added: `law` is the parameter of `draw` at each epsilon.

    They are added as integers. Sums beyond 2^53 are rounded afterwards, which tells nothing; noise
    that was rounded before would not hide whether a count is even.
    """
    counts, epsilon = np.broadcast_arrays(counts, epsilon)
    values, where = np.unique(epsilon, return_inverse=True)
    laws = [law(as_written(value)) for value in values]
    noisy = [int(q) + draw(laws[i]) for q, i in zip(counts.flat, where.ravel(), strict=True)]
    return np.array(noisy, dtype=np.float64).reshape(counts.shape)
