"""Intervals for the fairness of the population, from what was released and nothing else.

What the counts may truly be is a noisy count with noise once more; what the rate of the population
may be, given counts, is a draw of Jeffreys' beta distribution. Draws of both are draws of the rates
that a release leaves plausible: generalised pivotal quantities (Weerahandi, 1993). A draw of a beta
distribution is never 0, and a rate may be: where it is plausible that nobody of a group is
accepted, the lower end is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from fpbench.privacy import project_counts

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Draws:
    """B draws of what each of r releases leaves plausible."""

    rates: Numbers
    """(B, r, S, K) of the population, none of them 0."""
    nobody: NDArray[np.bool_]
    """(B, r, S, K) whether the number of accepted people, rounded, is 0."""


def plausible_rates(accepted: Numbers, members: Numbers, rng: np.random.Generator) -> Draws:
    """Rates of the population, drawn given numbers of people (B, r, S, K) that may be true."""
    accepted = np.minimum(accepted, members)
    return Draws(rng.beta(accepted + 0.5, members - accepted + 0.5), accepted < 0.5)


def of_margins(counts: Numbers, people: NDArray[np.int64]) -> Numbers:
    """Counts (..., S, M, K) of all parts together, projected onto their public sum."""
    return project_counts(counts.sum(axis=-2), people.sum(axis=-1))


def interval(drawn: Draws, confidence: float) -> tuple[Numbers, Numbers]:
    """Ends of intervals for the least ratio of two groups' rates.

    The ratio of fairness is the least over all pairs of groups, in both orders, and strata. Its
    lower end is the least of the pairs' lower ends, without further ado: it lies above the truth
    only if that of the pair which is truly the least does. The upper end is the least of the
    pairs' upper ends, each taken at a level divided by the number of pairs that may be the least
    one (Bonferroni, after the selection of Chernozhukov, Lee & Rosen, 2013): the estimate of a
    minimum is too low where several pairs are about as far apart.

    Where a rate is 0, nobody is accepted. A group of which nobody is accepted in (1 - confidence) /
    2 of the draws or more may have that rate, and the lower end is 0.

    Parameters
    ----------
    drawn
        B draws of each of r releases.
    confidence
        Of the intervals.

    Returns
    -------
    tuple of ndarray
        Lower and upper ends (r,), in [0, 1].
    """
    draws, releases, strata, k = drawn.rates.shape
    logs = np.moveaxis(np.log(np.maximum(drawn.rates, np.finfo(float).tiny)), (0, 3), (3, 0))
    pairs = list(combinations(range(k), 2))
    by_stratum = np.empty((strata, len(pairs), releases, draws))
    for at, (a, b) in enumerate(pairs):
        np.subtract(logs[a], logs[b], out=by_stratum[:, at].swapaxes(0, 1))
    differences = by_stratum.reshape(-1, releases, draws)
    differences.sort(axis=-1)
    tail = (1 - confidence) / 2
    low = np.minimum(_at(differences, tail), -_at(differences, 1 - tail))
    high = np.minimum(_at(differences, 1 - tail), -_at(differences, tail))
    candidates = (low <= high.min(axis=0)).sum(axis=0)
    level = tail / np.maximum(candidates, 1)
    safe = np.minimum(_at(differences, 1 - level), -_at(differences, level)).min(axis=0)
    least = np.exp(np.minimum(low.min(axis=0), 0))
    least[(drawn.nobody.sum(axis=0) >= tail * (draws + 1)).any(axis=(1, 2))] = 0.0
    return least, np.exp(np.minimum(safe, 0))


_RANK = 5
"""Draws that must lie beyond a quantile to take it from them."""


def _at(ordered: Numbers, level: float | Numbers) -> Numbers:
    """Quantiles (P, r) of the last axis, which is sorted: of (P, r, B), at a level or (r,) of them.

    The j-th of B draws stands for j / (B + 1), so that one more draw would lie below it as often.
    Where too few draws lie beyond, the nearest quantile is moved away from the median as in a
    normal distribution.
    """
    releases, last = ordered.shape[1], ordered.shape[2] - 1
    wanted = np.broadcast_to(np.asarray(level, dtype=np.float64), releases)
    least = min(_RANK / (last + 2), 0.4)
    taken = np.clip(wanted, least, 1 - least)
    found = _among(ordered, taken)
    if (taken != wanted).any():
        levels, which = np.unique(wanted, return_inverse=True)
        normal = NormalDist()
        ends = np.clip(levels, least, 1 - least)
        stretch = [
            normal.inv_cdf(v) / normal.inv_cdf(end) if v != end else 1.0
            for v, end in zip(levels.tolist(), ends.tolist(), strict=True)
        ]
        middle = _among(ordered, np.full(releases, 0.5))
        found = middle + (found - middle) * np.array(stretch)[which]
    return found


def _among(ordered: Numbers, level: Numbers) -> Numbers:
    """The same, from the draws alone."""
    releases, last = ordered.shape[1], ordered.shape[2] - 1
    place = np.clip(level * (last + 2) - 1, 0, last)
    below = place.astype(np.intp)
    above, share, rows = np.minimum(below + 1, last), place - below, np.arange(releases)
    found: Numbers = ordered[:, rows, below] * (1 - share) + ordered[:, rows, above] * share
    return found
