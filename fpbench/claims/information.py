"""Upper bounds, in nats, of the information that a claim gives about people's groups.

A claim that is computed from counts tells no more than the counts, and no claim tells more than the
logarithm of the number of possible claims. The bounds hold for any prior beliefs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.base.argument_types import check_arguments
from fpbench.base.errors import InputError
from fpbench.claims.rates import Metric, RateConstraint
from fpbench.data.sample import Sample

_TINY = 1e-30
"""Smaller variances are replaced by it."""


@check_arguments
def limit_count_nats(sizes: Iterable[int], groups: int = 2) -> float:
    """The greatest entropy of the groups' numbers of members in cells of people.

    Parameters
    ----------
    sizes
        People of each cell; cells share nobody, and their sizes are known.
    groups
        K, at least 2.

    Returns
    -------
    float
        Nats.

    Raises
    ------
    InputError
        If a size is negative, or there are fewer than 2 groups.

    Notes
    -----
    The numbers of all groups but the last are whole numbers. Given those of the groups before it,
    the best linear prediction of a group's has a mean squared error that is largest where everybody
    is in each group with the same chance: n times `compute_share_variances`. Nor is the entropy
    more than the logarithm of the number of ways to share n people among K groups.
    """
    cells = np.array(list(sizes), dtype=np.float64)
    if groups < 2 or (cells < 0).any():
        raise InputError(f"sizes must not be negative, and groups at least 2, not {groups}")
    return float(count_nats(cells, groups).sum())


def count_nats(sizes: NDArray[Any], groups: int) -> NDArray[np.float64]:
    """`limit_count_nats` of each cell."""
    variances = np.multiply.outer(sizes, compute_share_variances(groups))
    nats = limit_integer_nats(variances).sum(axis=-1)
    return np.asarray(np.minimum(nats, count_ways(sizes, groups)))


def count_ways(sizes: NDArray[Any], groups: int) -> NDArray[np.float64]:
    """Logarithm of the number of ways to share people among groups, for each number of people."""
    from scipy.special import gammaln  # matrices are read by commands that must start quickly

    return np.asarray(gammaln(sizes + groups) - gammaln(groups) - gammaln(sizes + 1))


def compute_share_variances(groups: int) -> NDArray[np.float64]:
    """(K - 1,) variance of membership in each group but the last, given the groups before it.

    Of one person with the same chance 1 / K for each; "given" by the best linear prediction.
    """
    rest = groups - np.arange(1, groups)
    return np.asarray(rest / (rest + 1) / groups)


def limit_integer_nats(variance: ArrayLike) -> NDArray[np.float64]:
    """The greatest entropy of a whole number with this variance, in nats, for each variance.

    With c > 0, any distribution on whole numbers of mean m and variance V has the entropy
    ``H <= -E ln q = ln sum_j exp(-c (j - m)^2) + c V``, q proportional to ``exp(-c (x - m)^2)``;
    by Poisson's summation formula the sum is greatest for a whole m. Any c is valid. For V of 1/2
    or more the best is about 1 / (2 V) and the entropy 1/2 ln(2 pi e V).
    """
    v = np.maximum(np.asarray(variance, dtype=np.float64), _TINY)
    wide, narrow = 0.5 / v, np.log(np.maximum(2 / v - 2, 1.0))
    c = np.where(v < 0.35, narrow, wide)
    terms = np.arange(1, 6)[:, *(None,) * v.ndim] ** 2
    with np.errstate(under="ignore"):
        direct = 2 * np.exp(-c * terms).sum(axis=0)
        dual = 2 * np.exp(-(math.pi**2) / c * terms).sum(axis=0)
    dual_log = 0.5 * np.log(math.pi / c) + np.log1p(dual)
    return np.asarray(np.where(c > math.pi, np.log1p(direct), dual_log) + c * v)


@check_arguments
def limit_claim_nats(metric: Metric, people: Sample) -> float:
    """The greatest information of a claim that is computed from the rates of a metric, in nats.

    Parameters
    ----------
    metric
        The metric whose rates are claimed: of a prediction among everybody, or among people of a
        label.
    people
        With labels, predictions, and the names of their groups.
    """
    sizes = count_cells(metric, people)
    return limit_count_nats(sizes, len(people.groups))


def count_cells(metric: Metric, people: Sample) -> list[int]:
    """Number of people of each prediction in each slice of a metric."""
    sizes = []
    for inside in RateConstraint(metric).slices(people.labels):
        predictions = people.predictions if inside is None else people.predictions[inside]
        positive = int(np.count_nonzero(predictions))
        sizes += [len(predictions) - positive, positive]
    return sizes
