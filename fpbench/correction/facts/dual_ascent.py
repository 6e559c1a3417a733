"""Beliefs given facts: the nearest ones, by Kullback-Leibler divergence, that agree with them.

Of n people with independent beliefs p, the posterior q minimises KL(q || p) plus, for each fact,
how badly the expected count E = sum of q fits it: (E - c)^2 / 2 sigma^2 for a count c with Gaussian
noise, |E - c| / b for Laplace noise of scale b, the distance to a range for a range; other laws are
replaced by one of these (`Facts.soften`). A linear row is a range of a sum in which people count
differently; clauses of several rows are left out. Each fact then
has one multiplier, and log q is log p plus the multipliers of the facts about a person. Multipliers
are found by L-BFGS-B on the dual, scaled by the counts' variances; for very many people after
sweeps, table by table. The duality gap bounds the distance to the optimum: KL(q || q*) is at most
the gap, so that by Pinsker's inequality the root mean square of people's total variation distances
is at most sqrt(gap / 2n). Beliefs need not come from multipliers: the dual iterates oscillate
around the optimum, and a mean of the last beliefs, weighted for the least gap, is several times
nearer.

The optimum is not Bayes' rule, but near it where sets are large: with one exact count over n
people it is off by about .17 / n on average; with many sets of about 5 people each, by .1. So
people whose beliefs can be computed exactly (`exact_components`) take no part in it.
"""

from __future__ import annotations

import math
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.base.argument_types import check_arguments
from fpbench.base.errors import InputError
from fpbench.claims.count_laws import EXPONENTIAL
from fpbench.claims.set_counts import ContradictionError, Facts, Floats, Mask
from fpbench.components.beliefs import check_beliefs
from fpbench.correction.facts.exact_components import condition_exactly
from fpbench.correction.facts.propagation import check_possible, propagate
from fpbench.correction.facts.table_sweeps import TableSweeps

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_SIGMA = 0.05
"""Softness of exact counts: less gains almost nothing and takes several times as long."""
_LEAST = 1e-9
"""Least belief in a group that is possible."""
_LAST, _OFTEN = 60, 20
"""Number of last beliefs that are averaged, and steps between averages."""
_REMEMBERED = 1 << 23
"""Most numbers of beliefs that are kept in memory."""
_MANY = 1 << 24
"""Number of memberships above which tables are swept, and no sparse matrix is made."""
_SLOW = 0.7
"""Sweeps end when one leaves more than this share of the gap."""


@dataclass(frozen=True)
class ConditionedBeliefs:
    """Beliefs given facts.

    Attributes
    ----------
    beliefs
        (n, K) probability of each group, of each person.
    error_bound
        Upper bound of the root mean square distance (total variation) to the optimum, over the
        people who were not decided beforehand.
    iterations
        Number of steps.
    exact
        (n,) whether a person's beliefs are those of Bayes' rule, to many digits.
    """

    beliefs: Floats
    error_bound: float
    iterations: int
    exact: Mask


@check_arguments
def condition_beliefs(
    facts: Facts,
    beliefs: ArrayLike,
    possible: Mask | None = None,
    *,
    error: float = 0.01,
    iterations: int = 3000,
    seconds: float = math.inf,
) -> ConditionedBeliefs:
    """The beliefs given facts: exact where they can be computed, else those of maximum entropy.

    Parameters
    ----------
    facts
        The facts. Contradictory ones make beliefs meaningless, so `propagate` first.
    beliefs
        (n, K) probability of each group, of each person, before.
    possible
        (n, K) groups that people may have, as `propagate` finds them; all by default. People with
        one are subtracted from the facts.
    error
        Stop when `error_bound` is at most this.
    iterations, seconds
        Limits of steps and time; `error_bound` says how near the result is.

    Raises
    ------
    InputError
        If beliefs are not probabilities, or of other people or groups.
    """
    prior = check_beliefs(beliefs)
    if prior.shape != (facts.people, facts.groups):
        raise InputError(
            f"beliefs must be ({facts.people}, {facts.groups}), of the people and groups that the "
            f"facts are about, not {prior.shape}"
        )
    check_possible(facts, possible)
    allowed = np.ones(prior.shape, np.bool_) if possible is None else possible
    deadline = time.perf_counter() + seconds
    prior = np.maximum(prior, _LEAST)
    exact = allowed.sum(axis=1) == 1
    if seconds <= 0 and not exact.all():
        posterior = np.where(allowed, prior, 0.0)
        posterior /= posterior.sum(axis=1, keepdims=True)
        return ConditionedBeliefs(posterior, math.inf, 0, exact)
    known, allowed, left, rest = _remove_decided(facts.drop_derived(), allowed)
    # The law of a number that the exponential mechanism chose, or cell keys, depends on all of its
    # set.
    whole = bool((known.laws.kind >= EXPONENTIAL).any())
    told, own = (known, slice(None)) if whole else (left, rest)
    posterior, exact = allowed.astype(np.float64), allowed.sum(axis=1) == 1
    posterior[own], exact[own] = condition_exactly(told, prior[own], allowed[own], deadline)
    if exact.all():
        return ConditionedBeliefs(posterior, 0.0, 0, exact)
    # No set has people of both kinds.
    left = left.take(left.count(exact[rest]) == 0)
    with np.errstate(divide="ignore"):
        logits = np.log(np.where(allowed[rest], prior[rest], 0.0))
    dual = _Dual(left.soften(), logits)
    dual.minimise(error, iterations, deadline)
    posterior[~exact] = dual.best.beliefs[~exact[rest]]
    return ConditionedBeliefs(posterior, dual.bound, dual.iterations, exact)


def _remove_decided(facts: Facts, allowed: Mask) -> tuple[Facts, Mask, Facts, NDArray[np.intp]]:
    """Facts and possible groups, where noise changed nothing as exact ones; and as left then."""
    known = facts.settle_noise()
    if known is not facts:
        with suppress(ContradictionError):  # noise did change a count
            settled = propagate(known, allowed)
            return known, settled, *known.remove_people(settled)
    return facts, allowed, *facts.remove_people(allowed)


class _Best(NamedTuple):
    primal: float
    beliefs: Floats


class _Visited(NamedTuple):
    """Beliefs, with the linear and the convex part of their gap."""

    beliefs: Floats
    expected: Floats
    divergence: float


class _Dual:
    """The dual problem: a multiplier for each set and group of which something is known.

    A range has two multipliers of at least 0, one for each end; Laplace noise bounds its
    multiplier.
    """

    def __init__(self, facts: Facts, logits: Floats) -> None:
        self.logits = logits
        facts = replace(facts, clauses=facts.clauses.keep_single())
        known = np.isfinite(facts.low) & ~facts.derived[:, None]
        known &= facts.noisy[:, None] | (facts.low > 0) | (facts.high < facts.sizes[:, None])
        if facts.groups == 2:  # with two groups, one count is the size minus the other
            known[~facts.noisy, 0] = False
        self.groups = np.flatnonzero(known.any(axis=0))
        if facts.groups > 2 or len(facts.clauses):
            few = facts.groups == 2 and not facts.noisy.any()
            self.groups = np.array([1]) if few else np.arange(facts.groups)
        rows = np.union1d(np.flatnonzero(known.any(axis=1)), facts.clauses.sets)
        self.facts = facts = facts.take(rows)
        linear = _LinearRows.of(facts, self.groups)
        self.factors = linear.factors
        self.many = sum(table.member.size for table in facts.tables) > _MANY
        if not self.many:
            self.sets = facts.sets.astype(np.float64)
            self.membership = self.sets.T.tocsr()
        known, rows = known[rows], np.arange(len(rows))
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
        self.counts, more = len(self.low), len(linear.low)
        self.low, self.high = np.append(self.low, linear.low), np.append(self.high, linear.high)
        self.most = np.append(self.most, np.full(more, np.inf))
        self.variance = np.append(self.variance, np.full(more, _SIGMA**2))
        self.ranges = np.flatnonzero(self.low < self.high)
        self.total = _sum_log(logits)[1]
        self.best = _Best(np.inf, np.exp(logits - self.total[:, None]))
        self.value = np.inf  # of the dual, the least so far; the primal plus it is the gap
        self.visited: deque[_Visited] = deque(
            maxlen=min(_LAST, 1 + _REMEMBERED // max(logits.size, len(self.low), 1))
        )
        self.iterations = 0

    @property
    def bound(self) -> float:
        gap = self.best.primal + self.value
        return math.sqrt(max(gap, 0.0) / (2 * len(self.logits)))

    def minimise(self, error: float, iterations: int, deadline: float) -> None:
        """Find the point of the least gap."""
        from scipy.optimize import minimize

        if not len(self.low):
            self.best, self.value = self.best._replace(primal=0.0), 0.0
            return
        start = np.zeros(len(self.low))
        if self.many:
            start = self._sweep(error, iterations, deadline)
            if self.bound <= error or self.iterations >= iterations:
                return
        beliefs = self.best.beliefs
        spread = self._count(beliefs * (1 - beliefs))
        spread = np.append(spread, self.factors.power(2) @ spread)
        unit = 1 / np.sqrt(spread + np.maximum(self.variance, _SIGMA**2))
        unit = np.concatenate([unit, unit[self.ranges]])
        lowest, highest = -self.most, self.most.copy()
        lowest[self.ranges] = 0.0
        bounds = np.stack([lowest, highest], axis=1)
        bounds = np.concatenate([bounds, np.maximum(bounds[self.ranges], 0)]) / unit[:, None]

        def evaluate(scaled: Floats) -> tuple[float, Floats]:
            if time.perf_counter() > deadline:  # one line search may take many evaluations
                raise StopIteration
            value, gradient = self._evaluate(scaled * unit)
            return value, gradient * unit

        def stop(_: Floats) -> None:
            self.iterations += 1
            if self.iterations % _OFTEN == 0:
                self._mix()
            if self.bound <= error or time.perf_counter() > deadline:
                raise StopIteration

        left = iterations - self.iterations
        with suppress(StopIteration):
            minimize(
                evaluate, self._split(start) / unit, jac=True, method="L-BFGS-B", bounds=bounds,
                callback=stop,
                options={"maxiter": left, "maxfun": 2 * left, "maxcor": 20, "ftol": 0, "gtol": 0},
            )  # fmt: skip

    def _split(self, multipliers: Floats) -> Floats:
        """The point with these multipliers: of ranges, one of each end."""
        below = multipliers.copy()
        below[self.ranges] = np.maximum(below[self.ranges], 0)
        return np.concatenate([below, np.maximum(-multipliers[self.ranges], 0)])

    def _sweep(self, error: float, iterations: int, deadline: float) -> Floats:
        """The multipliers after as many sweeps as pay off."""
        logits = self.logits[:, self.groups]
        if len(self.groups) == 1:
            logits = logits - self.logits[:, 1 - self.groups]
        low, high, variance, most = (
            part[: self.counts].reshape(self.shape)
            for part in (self.low, self.high, self.variance, self.most)
        )
        sweeps = TableSweeps(
            self.facts.tables, logits.T.astype(np.float32), low, high, variance, most
        )
        before, wanted = np.inf, 2 * len(logits) * error**2
        now, longest = time.perf_counter(), 0.0
        # The gap is that of the sweeps once more, so that the last one leaves time for another.
        while self.iterations < iterations and now + 2 * longest < deadline:
            gap = sweeps.sweep()
            self.iterations += 1
            now, started = time.perf_counter(), now
            longest = max(longest, now - started)
            if gap <= wanted or gap > _SLOW * before:
                self._evaluate(self._split(self._pad(sweeps.multipliers)))
                if self.bound <= error or gap >= _SLOW * before:
                    break
            before = gap
        else:
            self._evaluate(self._split(self._pad(sweeps.multipliers)))
        return self._pad(sweeps.multipliers)

    def _pad(self, multipliers: Floats) -> Floats:
        """Multipliers of counts, and 0 for linear rows."""
        return np.append(multipliers, np.zeros(len(self.low) - self.counts))

    def _evaluate(self, point: Floats) -> tuple[float, Floats]:
        """Value and gradient of the dual; remembers the point of the least gap."""
        m, ranges = len(self.low), self.ranges
        below = point[:m].copy()
        above = np.zeros(m)
        above[ranges] = point[m:]
        force = below - above
        logits = self.logits.copy()
        pulls = force[: self.counts] + self.factors.T @ force[self.counts :]
        logits[:, self.groups] += self._add_up(pulls.reshape(self.shape))
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
        # KL(q || p) is the sum of the logits' changes in q minus that of the logarithms' sums.
        divergence = float(force @ expected - (total - self.total).sum())
        self.value = min(self.value, value)
        self.visited.append(_Visited(beliefs, expected, divergence))
        self._remember(divergence + self._price(expected), beliefs)
        return value, gradient

    def _price(self, expected: Floats) -> float:
        """Misfit of expected counts to the facts, in nats."""
        missed = self._miss(expected)
        soft = self.variance
        with np.errstate(divide="ignore", invalid="ignore"):
            price = np.where(soft > 0, missed**2 / (2 * soft), np.abs(missed) * self.most)
        price[self.most == 0] = 0
        return float(price.sum())

    def _miss(self, expected: Floats) -> Floats:
        """Distance of expected counts to the nearest possible ones."""
        return expected - np.clip(expected, self.low, self.high)

    def _remember(self, primal: float, beliefs: Floats) -> None:
        if primal < self.best.primal:
            self.best = _Best(primal, beliefs)

    def _mix(self) -> None:
        """Try a mean of the last beliefs, with weights for which the gap is about least.

        The price is taken for a parabola that touches it at the last beliefs and is nowhere below
        it. The weights' minimum is found by steps towards the best corner or away from the worst
        (Frank and Wolfe; Guelat and Marcotte); whatever they are, the gap of the mean is its own.
        """
        expected = np.array([visited.expected for visited in self.visited])
        nearest = np.clip(expected[-1], self.low, self.high)
        missed = expected - nearest
        with np.errstate(divide="ignore"):
            laplace = np.maximum(np.abs(missed[-1]), _LEAST) / self.most
        soft = np.where(self.variance > 0, self.variance, laplace)
        missed /= np.sqrt(2 * np.where(self.most > 0, soft, np.inf))
        weights = _find_weights(
            np.array([visited.divergence for visited in self.visited]), missed @ missed.T
        )
        beliefs = np.zeros(self.logits.shape)
        for weight, visited in zip(weights, self.visited, strict=True):
            if weight > 0:
                beliefs += weight * visited.beliefs
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(beliefs > 0, np.log(beliefs) - self.logits, 0.0)
        divergence = float((beliefs * logs).sum() + self.total.sum())
        self._remember(divergence + self._price(weights @ expected), beliefs)

    def _add_up(self, force: Floats) -> Floats:
        """(n, G) sums over the sets of each person of (M, G) numbers."""
        if not self.many:
            return np.asarray(self.membership @ force)
        total = np.zeros((len(self.logits), force.shape[1]))
        for table in self.facts.tables:
            own = np.vstack([np.zeros(force.shape[1]), force[table.numbers]])
            for people, codes in table.split():
                total[people] += own[codes]
        return total

    def _expect(self, beliefs: Floats) -> Floats:
        counts = self._count(beliefs)
        return np.append(counts, self.factors @ counts)

    def _count(self, beliefs: Floats) -> Floats:
        used = beliefs[:, self.groups]
        return (self.facts.count(used) if self.many else np.asarray(self.sets @ used)).ravel()


class _LinearRows(NamedTuple):
    """R sums of numbers of people, each times a factor, and what they lie between."""

    factors: csr_array
    """Sparse (R, M G) of the sets' numbers of G groups; their mean square over people is 1."""
    low: Floats
    high: Floats
    """(R,) the least possible sum, and the greatest that is known to be possible."""

    @classmethod
    def of(cls, facts: Facts, groups: NDArray[np.intp]) -> _LinearRows:
        """The rows that tell something; of group 1 alone, if of no other."""
        from scipy.sparse import csr_array

        own, g = facts.clauses, len(groups)
        factors, group, high = own.factors.astype(np.float64), own.group, own.most.astype(float)
        if g == 1:  # people of group 0 are the others
            factors, group = np.where(group == 0, -factors, factors), np.zeros_like(group)
            others = np.where(own.group == 0, own.factors * facts.sizes[own.sets], 0)
            high -= np.bincount(own.row, others, len(high))
        terms = csr_array((factors, (own.row, own.sets * g + group)), (len(high), len(facts) * g))
        sizes = np.repeat(facts.sizes, g)
        low, most = terms.minimum(0) @ sizes, terms.maximum(0) @ sizes
        told = np.flatnonzero((high < most) & (low < most))
        terms, low, high = terms[told], low[told], high[told]
        unit = np.sqrt(terms.power(2) @ sizes / (terms.astype(bool) @ sizes))
        terms.data /= np.repeat(unit, np.diff(terms.indptr))
        return cls(terms, np.minimum(low, high) / unit, high / unit)


def _find_weights(linear: Floats, square: Floats) -> Floats:
    """Weights of at least 0 that sum to 1 and make linear @ w + w @ square @ w about least."""
    weights = np.full(len(linear), 1 / len(linear))
    for _ in range(5 * len(linear)):
        slope = linear + 2 * square @ weights
        best, worst = slope.argmin(), np.where(weights > 0, slope, -np.inf).argmax()
        mean = slope @ weights
        if mean - slope[best] >= slope[worst] - mean or weights[worst] >= 1:
            step, longest = -weights, 1.0
            step[best] += 1
        else:
            step, longest = weights.copy(), weights[worst] / (1 - weights[worst])
            step[worst] -= 1
        bend, fall = 2 * step @ square @ step, -(slope @ step)
        if fall <= 0:
            break
        weights = np.maximum(weights + step * min(longest, fall / bend if bend > 0 else longest), 0)
    return np.asarray(weights / weights.sum())


def _sum_log(logits: Floats) -> tuple[Floats, Floats]:
    """Probabilities (n, K) of logits, and the logarithm (n,) of what they summed to."""
    most = logits.max(axis=1, keepdims=True)
    weights = np.exp(logits - most)
    total = weights.sum(axis=1, keepdims=True)
    return weights / total, (np.log(total) + most)[:, 0]
