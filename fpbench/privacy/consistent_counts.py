"""Checks of which noisy counts can be true, and projection onto counts that can."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.base.argument_types import check_arguments
from fpbench.base.arguments import to_floats
from fpbench.base.errors import InputError


@check_arguments
def project_counts(answers: NDArray[np.float64], total: ArrayLike) -> NDArray[np.float64]:
    """Nearest histograms whose counts are at least 0 and sum to their totals.

    The Euclidean projection onto {x >= 0, sum x = total}. It sees noisy answers and public totals
    only, so it costs no privacy.

    Parameters
    ----------
    answers
        (..., K) noisy counts.
    total
        (...) public sum of each histogram, at least 0; broadcast.

    Returns
    -------
    ndarray
        (..., K), of the shape of answers and totals, broadcast.

    Raises
    ------
    InputError
        If there are no counts, one is not finite, or a total is negative.

    Notes
    -----
    The projection is max(x - t, 0), and t is the greatest of (s_j - total) / j over j = 1..K, where
    s_j is the sum of the j greatest answers: no set of j counts may exceed the total, and those
    that stay above 0 reach it.

    References
    ----------
    Held, Wolfe, Crowder: Validation of subgradient optimization. Mathematical Programming 6, 1974.
    """
    values, sums = check_answers(answers, total)
    columns, limits = np.ascontiguousarray(np.moveaxis(values, -1, 0)), sums[..., 0]
    reached, excess = np.zeros(values.shape[:-1]), np.full(values.shape[:-1], -np.inf)
    for j, column in enumerate(_sort_descending(columns), start=1):
        reached += column
        np.maximum(excess, (reached - limits) / j, out=excess)
    projected = np.empty(values.shape)
    for j, column in enumerate(columns):
        # No count can exceed the total, except by rounding.
        projected[..., j] = np.minimum(np.maximum(column - excess, 0), limits)
    return projected


_FEW = 8
"""Groups up to which comparing whole columns is faster than sorting every histogram."""


def _sort_descending(columns: NDArray[np.float64]) -> Sequence[NDArray[np.float64]]:
    """Columns (K, ...) with each histogram's counts in descending order."""
    if len(columns) > _FEW:
        ordered: NDArray[np.float64] = np.sort(columns, axis=0)[::-1]
        return list(ordered)
    ranked = list(columns)
    for last in range(len(ranked) - 1, 0, -1):
        for i in range(last):
            ranked[i], ranked[i + 1] = (
                np.maximum(ranked[i], ranked[i + 1]),
                np.minimum(ranked[i], ranked[i + 1]),
            )
    return ranked


@check_arguments
def find_invalid_answers(answers: NDArray[np.float64], total: ArrayLike) -> NDArray[np.bool_]:
    """True for noisy counts that cannot be true: those below 0 or above their totals.

    Parameters
    ----------
    answers
        (..., K) noisy counts.
    total
        (...) public number of people of each histogram, broadcast.

    Returns
    -------
    ndarray
        Boolean, of the broadcast shape of answers and totals; its mean is the invalid-answer ratio.

    Raises
    ------
    InputError
        If there are no counts, one is not finite, or a total is negative.
    """
    values, sums = check_answers(answers, total)
    invalid: NDArray[np.bool_] = (values < 0) | (values > sums)
    return invalid


@check_arguments
def check_answers(
    answers: NDArray[np.float64], total: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Noisy counts (..., K) and totals (..., 1), of shapes that broadcast.

    Parameters
    ----------
    answers
        (..., K) noisy counts.
    total
        (...) public number of people of each histogram, broadcast.

    Raises
    ------
    InputError
        If there are no counts, one is not finite, or a total is negative.
    """
    values = to_floats("answers", answers)
    sums = to_floats("total", total)[..., None]
    if values.ndim == 0 or values.shape[-1] == 0:
        raise InputError("a histogram needs at least one count")
    if not np.isfinite(values).all():
        raise InputError("noisy counts must be finite numbers")
    if not (np.isfinite(sums).all() and (sums >= 0).all()):
        raise InputError("totals of histograms must be finite numbers of at least 0")
    try:
        shape = np.broadcast_shapes(values.shape, (*sums.shape[:-1], values.shape[-1]))
    except ValueError:
        raise InputError(
            f"totals of shape {np.shape(total)} do not fit histograms of shape {values.shape}"
        ) from None
    return np.broadcast_to(values, shape), sums
