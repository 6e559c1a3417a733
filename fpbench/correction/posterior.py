"""An adversary's posterior beliefs about everyone's group given that a claim holds; two groups.

Its beliefs are independent probabilities of belonging to group 1; a claim about rates depends only
on `x`, how many of the positively predicted belong to group 1, and `y`, how many of the others. So
the probability of the claim is a sum over two Poisson-binomial distributions, and each person's
posterior a derivative of it. Nothing is approximated and nothing ever subtracted: a distribution is
a tree of convolutions, its derivatives the tree walked back from the root (reverse-mode
differentiation). Time is about proportional to n; 136,000 people take a quarter of a second.

A claim that contradicts the beliefs may be as improbable as 2^-2000. Beliefs are therefore tilted
first (all log-odds of a prediction shift by one number, as in a saddlepoint approximation), so that
the likeliest pair that satisfies the claim becomes the expected one. This is taken back exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.base.errors import InputError
from fpbench.components.records import Problem
from fpbench.correction.exact.counting import CountedProblem
from fpbench.correction.exact.two_group_regions import separate_regions
from fpbench.correction.poisson_binomial import Side, Tilted
from fpbench.data.sample import Codes

_Floats = NDArray[np.floating[Any]]
_Counts = NDArray[np.int64]
_Mask = NDArray[np.bool_]

Interval: TypeAlias = Callable[[_Counts], tuple[_Counts, _Counts]]
"""From numbers of positively predicted people of group 1 to the least and greatest size of group 1
that a claim allows in a slice; least above greatest if none is allowed."""

_TAKEN_BACK = 10.0
"""Greatest log-factor by which taking back a tilt may raise a pair; far less than 1 / TRIM."""
_MOST = 700.0
"""Greatest log-odds: beyond them, probabilities near 0 underflow."""
_NEGLIGIBLE = 60.0
"""Pairs whose log-probability lies this far below the likeliest one's do not count."""
_BLOCK = 256
"""Rows of the table of pairs that are in memory at once."""


@dataclass(frozen=True)
class Posterior:
    """Beliefs before and after a claim."""

    probabilities: NDArray[np.float64] | None
    """(n,) P(group 1 | claim) of each person; None if the claim has probability 0."""
    claim_bits: float
    """-log2 P(claim): what the claim tells the adversary. `inf` if the probability is 0."""
    prior_expected_accuracy: float
    """Expected share of people put right by naming the likelier group, before the claim."""
    expected_accuracy: float | None
    """The same after it; None if the claim has probability 0."""


def compute_posterior(log_odds: ArrayLike, problem: Problem) -> Posterior:
    """Beliefs given all that is known in a problem.

    Parameters
    ----------
    log_odds
        (n,) log(p / (1 - p)) of independent probabilities p of group 1, infinite if certain;
        probabilities themselves would lose all digits near 1.
    problem
        Two groups; its guess and weights are not looked at. People outside the slices that its
        constraints look at keep their beliefs.

    Raises
    ------
    InputError
        If log-odds are not (n,) numbers up to 700, or constraints tie slices to each other.
    """
    counted, prior = CountedProblem(problem), np.array(log_odds, dtype=np.float64)
    if prior.shape != problem.guess.shape or len(prior) == 0 or np.isnan(prior).any():
        raise InputError(f"log-odds must be {problem.guess.shape} numbers, not {prior.shape}")
    if (most := np.abs(prior, where=np.isfinite(prior), out=np.zeros_like(prior)).max()) > _MOST:
        raise InputError(f"log-odds must be at most {_MOST:g}, or infinite, not {most:g}")
    ways = separate_regions(counted.conditions, counted.classes)
    if ways is None or len(ways) != 1:
        raise InputError("a posterior needs constraints that leave each slice one region of counts")
    if counted.known is None:
        return Posterior(None, math.inf, _expect_accuracy(_to_probability(prior)), None)
    prior[list(counted.known)] = np.where(list(counted.known.values()), np.inf, -np.inf)
    everyone = np.ones(len(prior), dtype=bool)
    masks = [(counted.inside(label), region.interval) for label, region in ways[0].parts]
    slices = [(everyone if mask is None else mask, interval) for mask, interval in masks]
    return condition_on_regions(prior, problem.predictions, slices, occupied=ways[0].union)


def condition_on_regions(
    prior: NDArray[np.float64],
    predictions: Codes,
    allowed: Sequence[tuple[_Mask, Interval]],
    occupied: bool = True,
) -> Posterior:
    """Beliefs given that counts lie in a region in each slice.

    Parameters
    ----------
    prior, predictions
        (n,) log-odds of belonging to group 1, and predictions in {0, 1}.
    allowed
        For each slice, its mask (n,) and the sizes that group 1 may have in it. The slices share
        nobody. A region may have any shape; it is quick if it is convex up to rounding.
    occupied
        Whether each group is known to have a member in the slices together.
    """
    events = [
        list(_find_events(prior[mask], predictions[mask] == 1, sizes)) for mask, sizes in allowed
    ]
    together = [
        (sum(event.log_probability for event in chosen), chosen)
        for chosen in product(*events)
        if not (occupied and set.intersection(*(event.empty for event in chosen)))
    ]
    before = _expect_accuracy(posterior := _to_probability(prior))
    if not together:
        return Posterior(None, math.inf, before, None)
    log_claim = np.logaddexp.reduce([log for log, _ in together])
    for which, (mask, _) in enumerate(allowed):
        shares = (np.exp(log - log_claim) * chosen[which].posterior for log, chosen in together)
        posterior[mask] = sum(shares)
    posterior = np.clip(posterior, 0, 1)  # rounding of the sums may leave a little more than 1
    bits = float(max(0.0, -log_claim / math.log(2)))
    return Posterior(posterior, bits, before, _expect_accuracy(posterior))


def _to_probability(log_odds: _Floats) -> NDArray[np.float64]:
    return np.asarray(np.exp(-np.logaddexp(0, -log_odds)))


def _expect_accuracy(p: _Floats) -> float:
    return float(np.maximum(p, 1 - p).mean())


class _Event(NamedTuple):
    """One of the disjoint ways in which a slice satisfies its claim."""

    log_probability: float
    posterior: _Floats
    """P(group 1 | event) of the people of the slice."""
    empty: set[int]
    """The groups that have nobody in the slice."""


def _find_events(prior: _Floats, positive: _Mask, sizes: Interval) -> Iterator[_Event]:
    """All ways in which a slice satisfies its claim, apart from negligible ones.

    A group may be empty in one slice but not in all: these events are listed, not subtracted.
    """
    n = len(prior)
    low, high = sizes(np.arange(np.count_nonzero(positive) + 1))
    nobody, everybody = -np.logaddexp(0, prior).sum(), -np.logaddexp(0, -prior).sum()
    if low[0] <= 0 <= high[0] and nobody > -np.inf:
        yield _Event(float(nobody), np.zeros(n), empty={1} if n else {0, 1})
    if n and low[-1] <= n <= high[-1] and everybody > -np.inf:
        yield _Event(float(everybody), np.ones(n), empty={0})
    x, y = Side(prior, positive), Side(prior, ~positive)
    sure = np.arange(x.free + 1) + x.certain + y.certain
    low, high = (ends[x.certain : x.certain + x.free + 1] for ends in (low, high))
    least = np.maximum(np.maximum(low, 1) - sure, 0)
    most = np.minimum(np.minimum(high, n - 1) - sure, y.free)
    yield from _find_mixed(prior, x, y, least, most)


def _find_mixed(
    prior: _Floats, x: Side, y: Side, least: _Counts, most: _Counts
) -> Iterator[_Event]:
    """The pairs with least[x] <= y <= most[x]: one event, or a few.

    Both distributions are log-concave. If the region is convex as well, taking back the tilt of
    its likeliest pair makes every other pair less probable, and one tilt serves all. A sparse
    region (a tolerance of 0) may hold several pairs that count, far apart: each gets its own tilt.
    """
    likeliest = np.clip(np.minimum(np.maximum(least, np.argmax(y.height)), most), 0, y.free)
    height = np.where(least <= most, x.height + y.height[likeliest], -np.inf)
    pending = height > height.max() - _NEGLIGIBLE
    while pending.any():
        x0 = int(np.argmax(np.where(pending, height, -np.inf)))
        one, other = Tilted(x, x0), Tilted(y, int(likeliest[x0]))
        raised = one.log_untilt(np.arange(x.free + 1)) + other.log_untilt(likeliest)
        these = pending & (raised <= _TAKEN_BACK)
        pending &= ~these
        x_weights, y_weights = _sum_weights(one, other, np.where(these, least, y.free + 1), most)
        log_probability = one.log_scale + other.log_scale + math.log(one.distribution @ x_weights)
        posterior = (prior > 0).astype(np.float64)  # of those who are certain
        posterior[x.rows] = one.posterior(x_weights)
        posterior[y.rows] = other.posterior(y_weights)
        yield _Event(log_probability, posterior, empty=set())


def _sum_weights(x: Tilted, y: Tilted, least: _Counts, most: _Counts) -> tuple[_Floats, _Floats]:
    """For each x, the sum over the y of the region, the tilts taken back; and the other way round.

    Pair by pair: differences of running sums would lose digits.
    """
    x_weights, y_weights = np.zeros(len(x.counts)), np.zeros(len(y.counts))
    rows = np.flatnonzero((least <= most)[x.counts])
    for block in np.array_split(rows, len(rows) // _BLOCK + 1):
        low, high = least[x.counts[block], None], most[x.counts[block], None]
        columns = np.flatnonzero((y.counts >= low.min()) & (y.counts <= high.max()))
        y_counts = y.counts[columns]
        raised = x.log_untilt(x.counts[block])[:, None] + y.log_untilt(y_counts)
        table = np.exp(np.where((y_counts >= low) & (y_counts <= high), raised, -np.inf))
        x_weights[block] = table @ y.distribution[columns]
        y_weights[columns] += x.distribution[block] @ table
    return x_weights, y_weights
