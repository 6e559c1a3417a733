"""Beliefs about two groups given regions of counts, exactly.

An adversary's beliefs are independent probabilities of belonging to group 1; a claim about rates
depends only on `x`, how many of the positively predicted belong to group 1, and `y`, how many of
the others. So the probability of the claim is a sum over two Poisson-binomial distributions, and
each person's posterior a derivative of it. Nothing is approximated and nothing ever subtracted: a
distribution is a tree of convolutions, its derivatives the tree walked back from the root
(reverse-mode differentiation). Time is about proportional to n; 136,000 people take a quarter of a
second.

A claim that contradicts the beliefs may be as improbable as 2^-2000. Beliefs are therefore tilted
first (all log-odds of a prediction shift by one number, as in a saddlepoint approximation), so that
the likeliest pair that satisfies the claim becomes the expected one. This is taken back exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fpbench.correction.conditioning.conditioned import Conditioned
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
_NEGLIGIBLE = 60.0
"""Pairs whose log-probability lies this far below the likeliest one's do not count."""
_BLOCK = 256
"""Rows of the table of pairs that are in memory at once."""


def condition_on_regions(
    prior: NDArray[np.float64],
    predictions: Codes,
    allowed: Sequence[tuple[_Mask, Sequence[Interval]]],
    occupied: bool = True,
) -> Conditioned:
    """Beliefs given that counts lie in a region in each slice.

    `prior`, `predictions`: (n,) log-odds of belonging to group 1, and predictions in {0, 1}.
    `allowed`: for each slice, its mask (n,) and intervals of sizes that group 1 may have in it.
    Slices share nobody, and intervals no size. It is quick if each makes a region that is convex up
    to rounding. `occupied`: whether each group is known to have a member in the slices together.
    """
    events = [
        list(_find_events(prior[mask], predictions[mask] == 1, sizes)) for mask, sizes in allowed
    ]
    together = [
        (sum(event.log_probability for event in chosen), chosen)
        for chosen in product(*events)
        if not (occupied and set.intersection(*(event.empty for event in chosen)))
    ]
    if not together:
        return Conditioned(-math.inf, None)
    log_claim = float(np.logaddexp.reduce([log for log, _ in together]))
    posterior = to_probabilities(prior)
    for which, (mask, _) in enumerate(allowed):
        shares = (np.exp(log - log_claim) * chosen[which].posterior for log, chosen in together)
        posterior[mask] = sum(shares)
    posterior = np.clip(posterior, 0, 1)  # rounding of the sums may leave a little more than 1
    return Conditioned(min(log_claim, 0.0), posterior)


def to_probabilities(log_odds: _Floats) -> NDArray[np.float64]:
    """(n, 2) probabilities of log-odds (n,) of group 1; neither loses digits where it is small."""
    return np.asarray(np.exp(-np.logaddexp(0, np.column_stack([log_odds, -log_odds]))))


class _Event(NamedTuple):
    """One of the disjoint ways in which a slice satisfies its claim."""

    log_probability: float
    posterior: _Floats
    """(n, 2) P(group | event) of the people of the slice."""
    empty: set[int]
    """The groups that are empty in the slice."""


def _find_events(prior: _Floats, positive: _Mask, sizes: Sequence[Interval]) -> Iterator[_Event]:
    """All ways in which a slice satisfies its claim, apart from negligible ones.

    A group may be empty in one slice but not in all: these events are listed, not subtracted.
    """
    n = len(prior)
    intervals = [interval(np.arange(np.count_nonzero(positive) + 1)) for interval in sizes]
    nobody, everybody = -np.logaddexp(0, prior).sum(), -np.logaddexp(0, -prior).sum()
    if nobody > -np.inf and any(low[0] <= 0 <= high[0] for low, high in intervals):
        yield _Event(float(nobody), _place_everyone_in(0, n), empty={1} if n else {0, 1})
    if n and everybody > -np.inf and any(low[-1] <= n <= high[-1] for low, high in intervals):
        yield _Event(float(everybody), _place_everyone_in(1, n), empty={0})
    x, y = Side(prior, positive), Side(prior, ~positive)
    sure = np.arange(x.free + 1) + x.certain + y.certain
    for interval in intervals:
        low, high = (ends[x.certain : x.certain + x.free + 1] for ends in interval)
        least = np.maximum(np.maximum(low, 1) - sure, 0)
        most = np.minimum(np.minimum(high, n - 1) - sure, y.free)
        yield from _find_mixed(prior, x, y, least, most)


def _place_everyone_in(group: int, people: int) -> _Floats:
    return np.asarray(np.eye(2)[np.full(people, group)])


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
        posterior = np.column_stack([prior < 0, prior > 0]).astype(float)  # of who is certain
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
