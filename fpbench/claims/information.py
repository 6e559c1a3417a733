"""What a claim can tell about people's groups, at most, in nats: natural logarithms of chances.

A claim that is computed from counts tells no more than the counts, and none tells more than the
logarithm of how many claims were possible. The bounds hold whatever anybody believes of the people.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from fpbench.base.errors import InputError
from fpbench.claims.rates import Metric, RateConstraint
from fpbench.data.sample import Sample


def limit_count_nats(sizes: Iterable[int], groups: int = 2) -> float:
    """The greatest entropy of the numbers of members that each group has in cells of people.

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
    Of n independent people, with chances p_i, the number of members has at most the entropy
    1/2 ln(2 pi e (V + 1/12)), V = sum p_i (1 - p_i) <= n / 4 (Cover & Thomas, Elements of
    Information Theory, problem 8.7), and at most ln(n + 1). The last group's number follows from
    the others'.
    """
    sizes = list(sizes)
    if groups < 2 or min(sizes, default=0) < 0:
        raise InputError(f"sizes must not be negative, and groups at least 2, not {groups}")
    return (groups - 1) * sum(
        min(math.log(n + 1), 0.5 * math.log(2 * math.pi * math.e * (n / 4 + 1 / 12))) for n in sizes
    )


def limit_claim_nats(metric: Metric, people: Sample) -> float:
    """The greatest information of a claim that is computed from the rates of a metric, in nats.

    Parameters
    ----------
    metric
        Whose rates: of a prediction in everybody, or in the people of a label.
    people
        With labels, predictions, and the names of their groups.
    """
    sizes = count_cells(metric, people)
    return limit_count_nats(sizes, len(people.groups))


def count_cells(metric: Metric, people: Sample) -> list[int]:
    """People of each prediction in each slice of a metric."""
    sizes = []
    for inside in RateConstraint(metric).slices(people.labels):
        predictions = people.predictions if inside is None else people.predictions[inside]
        positive = int(np.count_nonzero(predictions))
        sizes += [len(predictions) - positive, positive]
    return sizes
