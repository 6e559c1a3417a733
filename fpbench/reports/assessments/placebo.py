"""The null of a leak: what a table of other people of the same population gives away."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.base.text import format_points
from fpbench.claims.set_counts import Facts, Mask
from fpbench.correction.facts.dual_ascent import condition_beliefs
from fpbench.reports.assessments.attack import Reader

_QUANTILE = 1.96
"""Of the normal law: 95 % of it are within."""


@dataclass(frozen=True)
class Placebo:
    """Leak by tables of other people."""

    leak: float
    """Rise of the share of people who are guessed right."""
    error: float
    """Its standard error, from the people whose guess changed."""

    @property
    def significant(self) -> bool:
        """Whether it is above 0 by more than chance (one-sided, 2.5 %)."""
        return self.leak > _QUANTILE * self.error

    def __str__(self) -> str:
        low, high = (self.leak + side * _QUANTILE * self.error for side in (-1, 1))
        return (
            f"{format_points(self.leak)} points (95 %: {format_points(low)} to "
            f"{format_points(high)}) by the same table of other people (halves, exchanged): that "
            "much of the leak is no disclosure about these people"
        )


def measure_placebo(
    facts: Facts,
    reader: Reader,
    households: ArrayLike | None = None,
    seconds: float = math.inf,
) -> Placebo:
    """Attack each half of the people with the exact table of the other half.

    A reader of a table about others learns what share of people like these belongs to a group: for
    each published set, the share q among the m others in it predicts the number among its n
    people. Given q of people alike, that number is off by a variance of n q (1 - q) (1 + n / m),
    which is taken for the variance of Gaussian noise; half a person more of each group is counted.
    Numbers of overlapping sets are off together: the variance is multiplied by the number of sets
    that a person is in (a composite likelihood of weight one a person).

    `reader` knows the true groups. `households`: (n,) values that are equal for people who are in
    one half together; everybody is alone by default.
    """
    assert reader.truth is not None
    deadline = time.perf_counter() + seconds
    published = facts.take(~facts.derived)
    members = np.eye(facts.groups)[reader.truth]
    alone = np.arange(facts.people) if households is None else np.asarray(households).astype(str)
    homes, home = np.unique(alone, return_inverse=True)
    half = (np.random.default_rng(0).permutation(len(homes)) % 2 == 0)[home]
    before, after = reader.prior.argmax(axis=1), np.empty(facts.people, np.intp)
    for own in (half, ~half):
        told = _tell_of_others(published, members, own)
        left = deadline - time.perf_counter()
        beliefs = condition_beliefs(told, reader.prior[own], error=reader.error, seconds=left)
        after[own] = beliefs.beliefs.argmax(axis=1)
    changes = (after == reader.truth).astype(int) - (before == reader.truth)
    return Placebo(float(changes.mean()), math.sqrt(np.abs(changes).sum()) / facts.people)


def _tell_of_others(facts: Facts, members: NDArray[np.float64], own: Mask) -> Facts:
    """What counts of people who are not our own tell of our own people in the same sets."""
    sets = facts.sets.tocsc()
    theirs = sets[:, ~own] @ members[~own]
    n, m = (np.asarray(sets[:, part].sum(axis=1)).ravel() for part in (own, ~own))
    told = np.flatnonzero((n > 0) & (m > 0))
    n, m = n[told, None].astype(float), m[told, None].astype(float)
    share = (theirs[told] + 0.5) / (m + 0.5 * facts.groups)
    variance = (n * share * (1 - share) * (1 + n / m)).max(axis=1)
    mine = sets[told][:, own]
    overlap = max(mine.sum() / mine.shape[1], 1.0)
    return Facts.from_counts(mine.T.tocsr(), n * share, sigma=np.sqrt(variance * overlap))
