"""Tilted Poisson-binomial distributions of how many people belong to group 1.

People belong to group 1 independently, each with an own probability. A *tilt* shifts all
log-odds by one number, so that a count that is very improbable becomes the expected one: nothing
underflows, and the tilt is taken back exactly.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.floating[Any]]
_Counts = NDArray[np.int64]
_Mask = NDArray[np.bool_]

TRIM = 1e-40
"""A count this much less probable than the likeliest one is left out of a distribution."""
_RELIABLE = 1e-20
"""Counts that are likelier than this, next to the likeliest, have lost nothing by trimming."""
_FAR = 50.0
"""Counts whose log-probability is this far below the likeliest one's do not matter."""
_STRAIGHT = 1e-3
"""Greatest error, at the midpoint, of linear interpolation between tilts."""
_WIDE = 96
"""Length from which convolving one pair of arrays at a time is quicker than all pairs at once."""


class Side:
    """The people of a slice with one prediction: how many of them are of group 1, roughly."""

    def __init__(self, log_odds: _Floats, mask: _Mask) -> None:
        self.certain = int(np.count_nonzero(mask & (log_odds == np.inf)))
        self.rows = np.flatnonzero(mask & np.isfinite(log_odds))
        self.free = len(self.rows)
        self.log_odds = log_odds[self.rows]

    @cached_property
    def height(self) -> _Floats:
        """(free + 1,) log-probability of each count, up to a constant and a rough one."""
        return np.concatenate([[0.0], -np.cumsum(self._ties)])

    def tilt(self, count: int) -> float:
        """The smallest shift of all log-odds that makes a count the likeliest, roughly."""
        least = self._ties[count - 1] if count > 0 else -np.inf
        most = self._ties[count] if count < self.free else np.inf
        return float(min(max(least, 0), most))

    @cached_property
    def _ties(self) -> _Floats:
        """(free,) tilts that make each count and the next about equally likely.

        They make the midpoint of the two the expected count, by interpolation.
        """
        if self.free == 0:
            return np.empty(0)
        tilts, level = self._levels()
        between = np.arange(self.free) + 0.5
        return np.asarray(np.interp(np.log(between) - np.log(self.free - between), level, tilts))

    def _levels(self) -> tuple[_Floats, _Floats]:
        """Tilts, and the log-odds of the expected share of group 1 under each.

        If all beliefs were equal, one would be a linear function of the other. With few levels of
        confidence it is nearly piecewise linear: points are added at the bends.
        """
        from scipy.special import expit

        # People of nearly the same belief are taken together.
        _, alike = np.unique(np.round(self.log_odds, 2), return_inverse=True)
        people = np.bincount(alike)
        means = np.bincount(alike, self.log_odds) / people

        def expected(tilts: _Floats) -> tuple[_Floats, _Floats]:
            ones = np.array([expit(means + tilt) @ people for tilt in tilts])
            zeros = np.array([expit(-means - tilt) @ people for tilt in tilts])
            return ones, np.log(ones) - np.log(zeros)

        spread = np.quantile(means, np.linspace(0, 1, 16), method="nearest")
        around = math.log(4 * self.free) * np.linspace(-1, 1, 7)
        tilts = np.unique(np.subtract.outer(around, spread))
        ones, level = expected(tilts)
        bent = np.ones(len(tilts) - 1, dtype=bool)
        while bent.any():
            bent_rows = np.flatnonzero(bent)
            middle = (tilts[bent_rows] + tilts[bent_rows + 1]) / 2
            middle_ones, middle_level = expected(middle)
            missed = np.abs(np.interp(middle_level, level, tilts) - middle)
            bent[bent_rows] = (missed > _STRAIGHT) & (ones[bent_rows + 1] - ones[bent_rows] > 0.5)
            halves = np.ones(len(bent), dtype=int)
            halves[bent_rows] = 2
            bent = np.repeat(bent, halves)
            tilts = np.insert(tilts, bent_rows + 1, middle)
            ones = np.insert(ones, bent_rows + 1, middle_ones)
            level = np.insert(level, bent_rows + 1, middle_level)
        return tilts, level


class Tilted:
    """Tilted distribution of how many people of a side are of group 1, as a tree of convolutions.

    A level is an array (counts, nodes). Sorted people are dealt out in turn: the nodes of a level
    look alike, and one window of counts fits all.
    """

    def __init__(self, side: Side, centre: int | None = None) -> None:
        """Tilt so that `centre` becomes the likeliest count; no tilt if it is None."""
        from scipy.special import expit

        self._centre = centre or 0
        self._tilt = 0.0 if centre is None else side.tilt(centre)
        log_odds = side.log_odds + self._tilt
        grown = np.logaddexp(0, log_odds) - np.logaddexp(0, side.log_odds)
        self.log_scale = float(grown.sum()) - self._tilt * self._centre
        """Log of the ratio of the probability of the centre to its tilted probability."""
        self._order = np.argsort(log_odds, kind="stable")
        # Padding of the last level: people who are certainly not of group 1.
        leaves: _Floats = np.zeros((2, 1 << max(side.free - 1, 1).bit_length()))
        leaves[0] = 1.0
        leaves[:, : side.free] = expit([-log_odds[self._order], log_odds[self._order]])
        first, self._levels, self._cuts = 0, [leaves], [0]
        while (level := self._levels[-1]).shape[1] > 1:
            parents = _convolve(*np.hsplit(level, 2))
            likely = np.flatnonzero((parents >= TRIM * parents.max(axis=0)).any(axis=1))
            first = 2 * first + int(likely[0])
            self._levels.append(parents[likely[0] : likely[-1] + 1])
            self._cuts.append(int(likely[0]))
        self.distribution: _Floats = self._levels[-1][:, 0]
        self.counts = np.arange(first, first + len(self.distribution))

    def log_untilt(self, counts: _Counts) -> _Floats:
        """Log of the factor that untilts the probabilities of counts, up to the scale."""
        return -self._tilt * (counts - self._centre)

    def posterior(self, weights: _Floats) -> _Floats:
        """(n, 2) P(group) of each person given an event whose likelihood by count is `weights`."""
        # The expected weight is linear in every node: its derivatives go down from the root.
        slopes = weights[:, None]
        for level, cut in zip(self._levels[-2::-1], self._cuts[:0:-1], strict=True):
            whole = np.zeros((2 * len(level) - 1, slopes.shape[1]))
            whole[cut : cut + len(slopes)] = slopes
            one, other = np.hsplit(level, 2)
            slopes = np.hstack([_correlate(whole, other), _correlate(whole, one)])
        both = (self._levels[0] * slopes)[:, : len(self._order)]
        posterior: _Floats = np.empty((len(self._order), 2))
        posterior[self._order] = (both / both.sum(axis=0)).T
        return posterior


def _convolve(a: _Floats, b: _Floats) -> _Floats:
    """Convolution of each column of one array with that of another: (w, m) twice, (2 w - 1, m)."""
    width, count = a.shape
    if width >= _WIDE:
        return np.stack([np.convolve(*pair) for pair in zip(a.T, b.T, strict=True)], axis=1)
    result = np.zeros((2 * width - 1, count))
    for shift in range(width):
        result[shift : shift + width] += a[shift] * b
    return result


def _correlate(whole: _Floats, b: _Floats) -> _Floats:
    """Transpose of the convolution with b: (2 w - 1, m) and (w, m), giving (w, m)."""
    width = len(b)
    if width >= _WIDE:
        return np.stack([np.correlate(*pair) for pair in zip(whole.T, b.T, strict=True)], axis=1)
    return np.stack([(whole[shift : shift + width] * b).sum(axis=0) for shift in range(width)])


class CountedPeople:
    """Log-probabilities of how many of n people belong to group 0 of two, all to many digits.

    Distributions under several tilts each give the counts near their centre.

    Attributes
    ----------
    box
        (n + 1,) log-probability of each count.
    """

    def __init__(self, log_odds: _Floats) -> None:
        side = Side(log_odds, np.ones(len(log_odds), np.bool_))
        self.box: NDArray[np.float64] = np.full(side.free + 1, -np.inf)
        self._parts: list[tuple[Tilted, _Mask, _Floats]] = []
        first = ahead = 0
        while first <= side.free:
            tilted = Tilted(side, min(first + ahead, side.free))
            law = tilted.distribution
            kept = (law >= _RELIABLE * law.max()) & (tilted.counts >= first)
            counts = tilted.counts[kept]
            if counts[0] > first:
                ahead //= 2
                continue
            own = tilted.log_scale + tilted.log_untilt(counts)
            self.box[counts] = own + np.log(law[kept])
            self._parts.append((tilted, kept, own))
            ahead, first = (len(counts) - ahead) * 3 // 4, int(counts[-1]) + 1

    def walk_back(self, log_weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n, 2) P(group) of each person given an event, by its log-likelihoods by count."""
        logs = self.box + log_weights
        top, posterior = logs.max(), 0.0
        for tilted, kept, own in self._parts:
            counts = tilted.counts[kept]
            if logs[counts].max() < top - _FAR:
                continue
            raised = own + log_weights[counts]
            weights = np.zeros(len(kept))
            weights[kept] = np.exp(raised - raised.max())
            chance = np.exp(logs[counts] - top).sum()
            posterior = posterior + chance * tilted.posterior(weights)[:, ::-1]
        return np.asarray(posterior / np.exp(logs - top).sum())
