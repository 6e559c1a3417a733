"""Votes of teachers with Gaussian noise: flips, labels, and their privacy cost.

The private aggregation of teacher ensembles (PATE) for two labels. Each private person is in the
training data of one teacher only, so at most one vote of each count vector depends on that person.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpbench.auditing import VoteLabels
from fpbench.base.argument_types import check_arguments
from fpbench.base.arguments import check_whole_number, show_value
from fpbench.base.errors import InputError
from fpbench.privacy import (
    gaussian_epsilon,
    gaussian_rho,
    gaussian_sigma,
    rho_to_epsilon,
)

_Floats = NDArray[np.float64]


@check_arguments
def count_votes(positive: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Votes (m, 2) of the teachers for label 0 and label 1, of each of m people.

    Parameters
    ----------
    positive
        (k, m) whether each of k teachers votes for label 1.
    """
    if positive.ndim != 2:
        raise InputError(f"positive must be (k, m), the vote of each teacher, not {positive.shape}")
    ones = np.count_nonzero(positive, axis=0).astype(np.int64)
    return np.column_stack([len(positive) - ones, ones])


@check_arguments
def flip_probabilities(votes: NDArray[np.int64], sigma: float) -> _Floats:
    """The probability (m,) that noise changes which label has more votes.

    Phi(-|n1 - n0| / (sqrt 2 sigma)), whatever the margin: the difference of the counts has noise of
    standard deviation sqrt 2 sigma. Tran et al.'s Theorem 2 is the case of a margin of k. A tie
    counts as votes for label 0; noise then changes it half the time.

    Parameters
    ----------
    votes
        (m, 2) counts without noise.
    sigma
        Standard deviation of the noise of each count; 0 changes nothing.

    Raises
    ------
    InputError
        If sigma is negative or not finite.
    """
    from scipy.special import ndtr

    if votes.ndim != 2 or votes.shape[1] != 2:
        raise InputError(f"votes must be (m, 2), of label 0 and label 1, not {votes.shape}")
    if not 0 <= sigma < math.inf:
        raise InputError(f"sigma must be at least 0 and finite, not {show_value(sigma)}")
    margin = np.abs(np.subtract(votes[:, 1], votes[:, 0], dtype=np.float64))
    if sigma == 0:
        return np.zeros(len(margin))
    flips: _Floats = ndtr(-margin / (math.sqrt(2) * sigma))
    return flips


@check_arguments
def vote_labels(noisy: NDArray[Any], labels: VoteLabels, teachers: int) -> _Floats:
    """Labels (...), or shares of label 1, that a student learns from noisy counts.

    Parameters
    ----------
    noisy
        (..., 2) counts of label 0 and label 1, with noise or without.
    labels
        `hard`: 1 if label 1 has more votes, else 0, also for a tie. `soft`: 1/2 + (n1 - n0) / (2
        k). `soft-clipped`: the same, cut to [0, 1]. `equation-12`: n1 / k, the weight of label 1
        in Tran et al.'s equation (12); that of label 0 is n0 / k.
    teachers
        Number k of teachers.

    Notes
    -----
    n1 / k and n0 / k, as Tran et al. print them (Definition 5), do not sum to 1 with noise, and
    their weighted loss (equation 12) may not be convex where a sum is negative. `soft` keeps the
    difference of the two, and sums to 1; without noise they are the same.
    """
    if noisy.shape[-1:] != (2,):
        raise InputError(f"noisy counts must be (..., 2), not {noisy.shape}")
    check_whole_number("teachers", teachers, 1)
    if labels == "equation-12":
        return np.asarray(noisy[..., 1] / teachers, dtype=np.float64)
    difference = noisy[..., 1] - noisy[..., 0]
    if labels == "hard":
        winners: _Floats = (difference > 0).astype(np.float64)
        return winners
    soft: _Floats = 0.5 + difference / (2 * teachers)
    return soft if labels == "soft" else np.clip(soft, 0.0, 1.0)


@check_arguments
@dataclass(frozen=True)
class VoteCost:
    """The privacy cost of all answers about votes, when one teacher may change.

    Every answer has Gaussian noise of a standard deviation that is a fixed multiple of `sigma`, so
    all of them together are one Gaussian release of this L2 sensitivity (Dong, Roth & Su, Gaussian
    Differential Privacy, JRSS B 2022, Corollary 3.3).

    Attributes
    ----------
    answers
        Greatest number of people whose noisy counts are released.
    tests
        Number of people whose greatest count is first compared with a threshold, under noise.
    ratio
        Standard deviation of the noise of those tests, in multiples of sigma.
    """

    answers: int
    tests: int = 0
    ratio: float = 1.0

    def __post_init__(self) -> None:
        if self.answers < 1 or self.tests < 0 or not 0 < self.ratio < math.inf:
            raise InputError(f"answers must be at least 1, tests at least 0, ratio above 0: {self}")

    @property
    def sensitivity(self) -> float:
        """sqrt(2 answers + tests / ratio^2).

        A changed vote moves two counts by 1, sqrt 2 in all, and the greatest count by 1 at most.
        Answers may depend on earlier tests: the sum of squares is bounded whatever their outcome
        (Smith & Thakurta, Fully Adaptive Composition for Gaussian Differential Privacy, 2022).
        """
        return math.sqrt(2 * self.answers + self.tests / self.ratio**2)

    @check_arguments
    def epsilon(self, sigma: float, delta: float) -> float:
        """The least epsilon at this delta: exact, by the analytic Gaussian mechanism."""
        return gaussian_epsilon(sigma, delta, self.sensitivity)

    @check_arguments
    def sigma(self, epsilon: float, delta: float) -> float:
        """The least standard deviation of noise that gives (epsilon, delta)."""
        return gaussian_sigma(epsilon, delta, self.sensitivity)

    @check_arguments
    def rho(self, sigma: float) -> float:
        """Rho of zero-concentrated differential privacy."""
        return gaussian_rho(sigma, self.sensitivity)

    @check_arguments
    def papers_epsilon(self, sigma: float, delta: float) -> float:
        """Epsilon as Tran et al. compute it: m g / sigma^2 + ln(1 / delta) / (g - 1), best order g.

        That is m / sigma^2 + 2 sqrt(m ln(1 / delta)) / sigma, the classic conversion of zCDP
        (Papernot et al., Scalable Private Learning with PATE, ICLR 2018, Proposition 8); never
        below the exact one.
        """
        return rho_to_epsilon(self.rho(sigma), delta, "classic")
