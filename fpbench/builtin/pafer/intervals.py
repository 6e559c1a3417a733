"""Intervals for the fairness of the population, computed from released counts only.

A plausible true count is a noisy count with noise added again; for given counts, a plausible rate
of the population is a draw of Jeffreys' beta distribution. Both together give plausible draws
of the rates after a release: generalised pivotal quantities (Weerahandi, 1993). A beta draw is
never 0, but a rate may be: if it is plausible that nobody of a group is accepted, the lower end is
0.
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
    """B draws of the rates that are plausible given each of r releases."""

    rates: Numbers
    """(B, r, S, K) rates of the population, none of them 0."""
    nobody: NDArray[np.bool_]
    """(B, r, S, K) whether the number of accepted people, rounded, is 0."""


def draw_rates(accepted: Numbers, members: Numbers, rng: np.random.Generator) -> Draws:
    """Draws of the population's rates, given plausible numbers of people (B, r, S, K)."""
    accepted = np.minimum(accepted, members)
    return Draws(rng.beta(accepted + 0.5, members - accepted + 0.5), accepted < 0.5)


def project_totals(counts: Numbers, people: NDArray[np.int64]) -> Numbers:
    """Counts (..., S, M, K) summed over all parts and projected onto their public sum."""
    return project_counts(counts.sum(axis=-2), people.sum(axis=-1))


def estimate_interval(drawn: Draws, confidence: float) -> tuple[Numbers, Numbers]:
    """Ends of intervals for the least ratio of two groups' rates.

    The fairness ratio is the minimum over all ordered pairs of groups and all strata. Its lower end
    is the minimum of the pairs' lower ends: it exceeds the truth only if the lower end of the truly
    least pair does. The upper end is the minimum of the pairs' upper ends, each at a level divided
    by the number of pairs that may have the minimum (Bonferroni, after the selection of
    Chernozhukov, Lee & Rosen, 2013): the estimate of a minimum is biased downwards if several
    pairs are about equal.

    If nobody of a group is accepted in at least (1 - confidence) / 2 of the draws, a rate of 0 is
    plausible, and the lower end is 0.

    `drawn`: B draws of each of r releases.

    Returns: lower and upper ends (r,), in [0, 1].
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
    low = np.minimum(_find_quantiles(differences, tail), -_find_quantiles(differences, 1 - tail))
    high = np.minimum(_find_quantiles(differences, 1 - tail), -_find_quantiles(differences, tail))
    candidates = (low <= high.min(axis=0)).sum(axis=0)
    level = tail / np.maximum(candidates, 1)
    safe = np.minimum(
        _find_quantiles(differences, 1 - level), -_find_quantiles(differences, level)
    ).min(axis=0)
    least = np.exp(np.minimum(low.min(axis=0), 0))
    least[(drawn.nobody.sum(axis=0) >= tail * (draws + 1)).any(axis=(1, 2))] = 0.0
    return least, np.exp(np.minimum(safe, 0))


_RANK = 5
"""Least number of draws beyond a quantile that is interpolated, not extrapolated."""


def _find_quantiles(ordered: Numbers, level: float | Numbers) -> Numbers:
    """Quantiles (P, r) of draws (P, r, B), sorted along the last axis, at one level or (r,) levels.

    The j-th of B draws is the quantile j / (B + 1). If too few draws are beyond a quantile, the
    nearest reliable one is extrapolated as in a normal distribution.
    """
    releases, last = ordered.shape[1], ordered.shape[2] - 1
    at = np.broadcast_to(np.asarray(level, dtype=np.float64), releases)
    least = min(_RANK / (last + 2), 0.4)
    taken = np.clip(at, least, 1 - least)
    quantiles = _interpolate(ordered, taken)
    if (taken != at).any():
        levels, which = np.unique(at, return_inverse=True)
        normal = NormalDist()
        ends = np.clip(levels, least, 1 - least)
        stretch = [
            normal.inv_cdf(v) / normal.inv_cdf(end) if v != end else 1.0
            for v, end in zip(levels.tolist(), ends.tolist(), strict=True)
        ]
        middle = _interpolate(ordered, np.full(releases, 0.5))
        quantiles = middle + (quantiles - middle) * np.array(stretch)[which]
    return quantiles


def _interpolate(ordered: Numbers, level: Numbers) -> Numbers:
    """Quantiles (P, r) interpolated between draws."""
    releases, last = ordered.shape[1], ordered.shape[2] - 1
    place = np.clip(level * (last + 2) - 1, 0, last)
    below = place.astype(np.intp)
    above, share, rows = np.minimum(below + 1, last), place - below, np.arange(releases)
    quantiles: Numbers = ordered[:, rows, below] * (1 - share) + ordered[:, rows, above] * share
    return quantiles
