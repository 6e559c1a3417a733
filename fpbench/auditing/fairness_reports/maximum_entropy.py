"""Beliefs given facts: the nearest ones, by Kullback-Leibler divergence, that agree with them.

Of n people with independent beliefs p, the posterior q minimises KL(q || p) plus, for each fact,
how badly the expected count E = sum of q fits it: (E - c)^2 / 2 sigma^2 for a count c with Gaussian
noise, |E - c| / b for Laplace noise of scale b, the distance to a range for a range. Each fact then
has one multiplier, and log q is log p plus the multipliers of the facts about a person. Multipliers
are found by L-BFGS-B on the dual, scaled by the counts' variances. The duality gap bounds the
distance to the optimum: KL(q || q*) is at most the gap, so that by Pinsker's inequality the root
mean square of people's total variation distances is at most sqrt(gap / 2n).

The optimum is not Bayes' rule, but near it where sets are large: with one exact count over n
people it is off by about .17 / n on average; with many sets of about 5 people each, by .1.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fpbench.auditing.fairness_reports.facts import Facts, Floats, Mask
from fpbench.base.errors import InputError
from fpbench.components.beliefs import check_beliefs

_SIGMA = 0.05
"""Softness of exact counts: less gains next to nothing and takes several times as long."""
_LEAST = 1e-9
"""Least belief in a group that is possible."""


@dataclass(frozen=True)
class ConditionedBeliefs:
    """Beliefs given facts.

    Attributes
    ----------
    beliefs
        (n, K) probability of each group, of each person.
    error_bound
        The root mean square of people's distances (total variation) to the optimum is at most this,
        over the people who were not decided beforehand.
    iterations
        Steps that were taken.
    """

    beliefs: Floats
    error_bound: float
    iterations: int


def condition_beliefs(
    facts: Facts,
    beliefs: ArrayLike,
    possible: Mask | None = None,
    *,
    error: float = 0.01,
    iterations: int = 3000,
    seconds: float = math.inf,
) -> ConditionedBeliefs:
    """The beliefs of maximum entropy that agree with facts.

    Parameters
    ----------
    facts
        What is known; contradictory facts make nonsense of beliefs, so `propagate` first.
    beliefs
        (n, K) probability of each group, of each person, before.
    possible
        (n, K) groups that people may have, as `propagate` finds them; all by default. People with
        one are subtracted from the facts.
    error
        Stop where `error_bound` is at most this.
    iterations, seconds
        Stop then in any case; `error_bound` says how near the result is.

    Raises
    ------
    InputError
        If beliefs are no probabilities, or of other people or groups.
    """
    prior = check_beliefs(beliefs)
    if prior.shape != (facts.people, facts.groups):
        raise InputError(
            f"beliefs must be ({facts.people}, {facts.groups}), of the people and groups that the "
            f"facts are about, not {prior.shape}"
        )
    allowed = np.ones(prior.shape, np.bool_) if possible is None else np.asarray(possible)
    left, rest = facts.remove_people(allowed)
    posterior = allowed.astype(np.float64)
    if not len(rest):
        return ConditionedBeliefs(posterior, 0.0, 0)
    with np.errstate(divide="ignore"):
        logits = np.log(np.where(allowed[rest], np.maximum(prior[rest], _LEAST), 0.0))
    dual = _Dual(left, logits)
    dual.minimise(error, iterations, time.perf_counter() + seconds)
    posterior[rest] = dual.best.beliefs
    return ConditionedBeliefs(posterior, dual.bound, dual.iterations)


class _Point(NamedTuple):
    gap: float
    beliefs: Floats


class _Dual:
    """The dual problem: a multiplier for each set and group of which something is known.

    A range has two multipliers of at least 0, one of each end; Laplace noise bounds its multiplier.
    """

    def __init__(self, facts: Facts, logits: Floats) -> None:
        self.logits = logits
        known = np.isfinite(facts.low) & ~facts.derived[:, None]
        known &= facts.noisy[:, None] | (facts.low > 0) | (facts.high < facts.sizes[:, None])
        if facts.groups == 2:  # of two groups, one count is the size less the other
            known[~facts.noisy, 0] = False
        rows, self.groups = (np.flatnonzero(known.any(axis=axis)) for axis in (1, 0))
        self.sets = facts.sets[rows].astype(np.float64)
        self.membership = self.sets.T.tocsr()
        used = np.ix_(rows, self.groups)
        self.shape = known[used].shape
        scale, sigma = (
            np.broadcast_to(noise[rows, None], self.shape).ravel()
            for noise in (facts.scale, facts.sigma)
        )
        # Multipliers of counts that nobody knows stay 0.
        self.most = np.where(known[used].ravel(), np.inf, 0.0)
        self.most[scale > 0] = np.minimum(self.most, 1 / np.where(scale > 0, scale, 1))[scale > 0]
        self.low, self.high = (
            np.where(self.most > 0, end[used].ravel(), 0.0) for end in (facts.low, facts.high)
        )
        self.variance = np.where(sigma > 0, sigma, np.where(scale > 0, 0.0, _SIGMA)) ** 2
        self.ranges = np.flatnonzero(self.low < self.high)
        self.total = _sum_log(logits)[1]
        self.best = _Point(np.inf, np.exp(logits - self.total[:, None]))
        self.iterations = 0

    @property
    def bound(self) -> float:
        return math.sqrt(max(self.best.gap, 0.0) / (2 * len(self.logits)))

    def minimise(self, error: float, iterations: int, deadline: float) -> None:
        """Find the point of the least gap."""
        from scipy.optimize import minimize

        if not len(self.low):
            self.best = self.best._replace(gap=0.0)
            return
        spread = self.best.beliefs * (1 - self.best.beliefs)
        unit = 1 / np.sqrt(self._expect(spread) + np.maximum(self.variance, _SIGMA**2))
        unit = np.concatenate([unit, unit[self.ranges]])
        lowest, highest = -self.most, self.most.copy()
        lowest[self.ranges] = 0.0
        bounds = np.stack([lowest, highest], axis=1)
        bounds = np.concatenate([bounds, np.maximum(bounds[self.ranges], 0)]) / unit[:, None]

        def evaluate(scaled: Floats) -> tuple[float, Floats]:
            value, gradient = self._evaluate(scaled * unit)
            return value, gradient * unit

        def stop(_: Floats) -> None:
            self.iterations += 1
            if self.bound <= error or time.perf_counter() > deadline:
                raise StopIteration

        minimize(
            evaluate, np.zeros(len(unit)), jac=True, method="L-BFGS-B", bounds=bounds,
            callback=stop,
            options={"maxiter": iterations, "maxfun": 2 * iterations, "maxcor": 20, "ftol": 0,
                     "gtol": 0},
        )  # fmt: skip

    def _evaluate(self, point: Floats) -> tuple[float, Floats]:
        """Value and gradient of the dual; remembers the point of the least gap."""
        m, ranges = len(self.low), self.ranges
        below = point[:m].copy()
        above = np.zeros(m)
        above[ranges] = point[m:]
        force = below - above
        logits = self.logits.copy()
        logits[:, self.groups] += self.membership @ force.reshape(self.shape)
        beliefs, total = _sum_log(logits)
        expected = self._expect(beliefs)
        soft = self.variance
        # Of exact and noisy counts, both ends are the count, and `above` is 0.
        value = float(
            (total - self.total).sum()
            - below @ self.low
            + above @ self.high
            + soft @ (below**2 + above**2) / 2
        )
        gradient = np.concatenate(
            [expected - self.low + soft * below, (self.high - expected + soft * above)[ranges]]
        )
        missed = np.maximum(np.maximum(self.low - expected, expected - self.high), 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            price = np.where(soft > 0, missed**2 / (2 * soft), missed * self.most)
        price[self.most == 0] = 0
        end = np.where(force > 0, self.low, self.high)
        gap = float((force * (expected - end) + price + soft * force**2 / 2).sum())
        if gap < self.best.gap:
            self.best = _Point(gap, beliefs)
        return value, gradient

    def _expect(self, beliefs: Floats) -> Floats:
        return np.asarray(self.sets @ beliefs[:, self.groups]).ravel()


def _sum_log(logits: Floats) -> tuple[Floats, Floats]:
    """Probabilities (n, K) of logits, and the logarithm (n,) of what they summed to."""
    most = logits.max(axis=1, keepdims=True)
    weights = np.exp(logits - most)
    total = weights.sum(axis=1, keepdims=True)
    return weights / total, (np.log(total) + most)[:, 0]
