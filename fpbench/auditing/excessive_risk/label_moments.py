"""Moments of the difference between labels from noisy votes and labels without noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fpbench.privacy.noisy_votes import VoteLabels, flip_probabilities, vote_labels

_Floats = NDArray[np.float64]

_FAR = 100.0
"""Standard deviations beyond which a normal tail is 0 in double precision."""


@dataclass(frozen=True, eq=False)
class LabelMoments:
    """Moments of delta, the noisy label minus the clean one, for each of m people."""

    clean: _Floats
    """(m,) labels without noise."""
    mean: _Floats
    """(m,) E[delta]."""
    variance: _Floats
    """(m,) Var[delta]."""
    distance: _Floats
    """(m,) E|delta|: of hard labels, the flip probability."""

    @property
    def square(self) -> _Floats:
        """(m,) E[delta^2]."""
        return self.variance + self.mean**2


def compute_label_moments(
    votes: NDArray[np.int64], sigma: float, labels: VoteLabels
) -> LabelMoments:
    """Moments of the labels of m people, in closed form, from noiseless votes (m, 2) of k teachers.

    `hard`: delta is 1 - 2 y with the flip probability p, else 0. `soft`: delta is normal, of
    standard deviation t = sigma / (sqrt 2 k). `soft-clipped`: the same, cut where the label leaves
    [0, 1]: a censored normal variable. InputError if sigma or the kind of label is invalid.
    """
    teachers = int(votes[0].sum()) if len(votes) else 1
    flips = flip_probabilities(votes, sigma)
    clean = vote_labels(votes.astype(np.float64), labels, teachers)
    if labels == "hard":
        return LabelMoments(clean, (1 - 2 * clean) * flips, flips * (1 - flips), flips)
    deviation = sigma / (math.sqrt(2) * teachers)
    still = np.zeros(len(clean))
    if deviation == 0:
        return LabelMoments(clean, still, still, still)
    if labels == "soft":
        distance = np.full(len(clean), deviation * math.sqrt(2 / math.pi))
        return LabelMoments(clean, still, np.full(len(clean), deviation**2), distance)
    return _compute_censored(clean, deviation)


def _compute_censored(clean: _Floats, deviation: float) -> LabelMoments:
    """Moments of clean + deviation x a standard normal variable, cut to [0, 1]."""
    from scipy.special import ndtr

    with np.errstate(over="ignore"):
        ends = -clean / deviation, (1 - clean) / deviation
    low, high = (np.clip(end, -_FAR, _FAR) for end in ends)
    at_low, at_high = (np.exp(-(end**2) / 2) / math.sqrt(2 * math.pi) for end in (low, high))
    below, above = ndtr(low), ndtr(-high)
    inside = 1 - below - above
    # Of delta: -clean below, 1 - clean above, deviation x normal between.
    mean = deviation * (at_low - at_high) - clean * below + (1 - clean) * above
    square = (
        deviation**2 * (inside + low * at_low - high * at_high)
        + clean**2 * below
        + (1 - clean) ** 2 * above
    )
    top = 1 / math.sqrt(2 * math.pi)
    distance = deviation * (2 * top - at_low - at_high) + clean * below + (1 - clean) * above
    return LabelMoments(clean, mean, np.maximum(square - mean**2, 0.0), distance)
