"""An adversary's posterior beliefs about everyone's group, given that a claim holds.

Its beliefs are independent probabilities. A claim depends on few totals: how many people of each
prediction (and label) belong to each group. Where their distribution can be computed, the posterior
is exact: for two groups, by convolutions, for any number of people (`two_groups`); for more, where
all tables of counts can be listed (`count_tables`). Elsewhere the beliefs are those of maximum
entropy under the totals that are expected given the claim (`maximum_entropy`).

Counts in other sets of people are `Facts`; `collect_facts` merges all counts into one object. For
few people the posterior is exact, whatever else is known (`every_vector`). For more, proven people
are settled, the others' beliefs are those given all counts, exact or of maximum entropy
(`condition_beliefs`), and constraints that are not counts, such as a claim that rates are within a
tolerance, then condition these beliefs, together with the counts of their own classes. That is not
Bayes' rule twice: the first step leaves people dependent, and the second takes them for
independent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.base.argument_types import check_arguments
from fpbench.base.errors import InputError
from fpbench.claims.conditions import AnyOf, RatesApart
from fpbench.claims.constraints import KnownPeople, LinearConstraint
from fpbench.claims.set_counts import Facts
from fpbench.components.beliefs import check_beliefs
from fpbench.components.records import Problem, SolverStatus
from fpbench.correction.conditioning.conditioned import Conditioned
from fpbench.correction.conditioning.count_tables import condition_tables
from fpbench.correction.conditioning.every_vector import condition_vectors
from fpbench.correction.conditioning.maximum_entropy import condition_approximately
from fpbench.correction.conditioning.regions import list_options
from fpbench.correction.conditioning.two_groups import Interval, condition_on_regions
from fpbench.correction.exact.counting import CountedProblem
from fpbench.correction.exact.solve import solve_exact
from fpbench.correction.exact.two_group_regions import (
    Region,
    join_intervals,
    separate_regions,
)
from fpbench.correction.facts.collecting import collect_facts
from fpbench.correction.facts.dual_ascent import condition_beliefs
from fpbench.correction.proven import find_possible

_Floats: TypeAlias = NDArray[np.float64]
Method: TypeAlias = Literal["exact", "maximum-entropy"]

_LEAST = 1e-9
"""Stands for a prior belief of 0 in a group that is then proven."""
_MOST = 700.0
"""Greatest log-odds: beyond them, probabilities near 0 underflow."""
_DRAW = 0
"""Seed of the groups that the search begins from."""
_RARE = 8 * math.log(2)
"""Surprise (nats) above which a claim may leave few, distant tables of counts, some of which
sampling misses."""
_MANY_TABLES = 8_000_000
"""Most tables of counts that are listed then: a few seconds."""
_SEARCH = 20.0
"""Seconds that the search for groups that satisfy a very improbable claim may take."""
_NEAR = 0.03
"""Root mean square distance to the optimum at which beliefs given facts are accurate enough."""
_ASCENT = 60.0
"""Seconds that beliefs given facts may take."""
_LAST_DIGITS = 1e-12
"""How far sums of probabilities may be from 1."""


@dataclass(frozen=True)
class PosteriorBeliefs:
    """Beliefs before and after a claim."""

    probabilities: _Floats | None
    """(n, K) P(group | claim) of each person; None if the claim has probability 0, or is so rare
    that the likeliest groups that satisfy it were not found in time."""
    claim_bits: float
    """-log2 P(claim): what the claim tells the adversary. `inf` if the probability is 0, NaN if
    unknown, as for facts about more than few people."""
    prior_expected_accuracy: float
    """Expected accuracy of naming the likeliest group, before the claim."""
    expected_accuracy: float | None
    """The same after it; None without beliefs after it."""
    method: Method
    """How it was computed: `exact`, or `maximum-entropy` with sampled counts."""
    error: float | None
    """Standard error of sampling, as a mean absolute error of the probabilities; 0 if exact. None
    if the claim is so rare that one table of counts that satisfies it stands for all others. For
    facts: the greatest distance to the optimum, as in `condition_beliefs`."""


@check_arguments
def compute_posterior(beliefs: ArrayLike, problem: Problem) -> PosteriorBeliefs:
    """Beliefs given all that is known in a problem.

    Parameters
    ----------
    beliefs
        (n, K) probabilities of each group, of independent people; 0 and 1 are certain. With two
        groups the smaller probability is used: no digits are lost where the other is nearly 1.
    problem
        Its guess, weights and own beliefs are not used. Known people are facts, not probabilities.
        People whom its constraints are not about keep their beliefs.

    Returns
    -------
    Posterior
        Exact for two groups whose constraints do not link slices, and for few people; else
        approximate, but reproducible.

    Raises
    ------
    InputError
        If beliefs are not probabilities (n, K).
    ContradictionError
        If facts contradict each other or other counts.

    Notes
    -----
    The likeliest groups that satisfy a very rare claim are searched for 20 seconds. A
    `LinearConstraint` whose coefficients have no common unit leaves a probability density; its
    bounds then are 1e-6 of the greatest coefficient wider on each side.
    """
    prior = check_beliefs(beliefs)
    if prior.shape != (len(problem.guess), problem.groups):
        raise InputError(
            f"beliefs must be {(len(problem.guess), problem.groups)} probabilities, not "
            f"{prior.shape}"
        )
    counted = CountedProblem(problem)
    if counted.known is None:
        return _report(prior, Conditioned(-math.inf, None), "exact")
    if counted.known:
        prior = prior.copy()
        prior[list(counted.known)] = np.eye(problem.groups)[list(counted.known.values())]
    if any(isinstance(one, Facts) for one in problem.constraints):
        return _condition_on_facts(prior, counted)
    if not counted.linear and (answer := _condition_two_groups(prior, counted)) is not None:
        return _report(prior, answer, "exact")
    prior = prior / prior.sum(axis=1, keepdims=True)
    exact = (condition_vectors if counted.linear else condition_tables)(prior, counted)
    if exact is not None:
        return _report(prior, exact, "exact")
    answer = condition_approximately(prior, counted)
    if not counted.linear and answer.log_probability < -_RARE:
        exact = condition_tables(prior, counted, _MANY_TABLES)
        if exact is not None:
            return _report(prior, exact, "exact")
        if answer.probabilities is None:
            answer = _condition_on_rare(prior, counted)
    return _report(prior, answer, "maximum-entropy")


def _condition_on_facts(prior: _Floats, counted: CountedProblem) -> PosteriorBeliefs:
    """Beliefs given facts and all other constraints."""
    problem = counted.problem
    possible = find_possible(problem) if problem.possible is None else problem.possible
    allowed = np.where(possible, prior, 0.0)
    if not allowed.any(axis=1).all():  # the beliefs gave a proven group probability 0
        allowed = np.where(possible, np.maximum(prior, _LEAST), 0.0)
    exact = condition_vectors(allowed, counted)
    if exact is not None:
        return _report(prior, exact, "exact")
    facts, others = collect_facts(counted)
    ascent = condition_beliefs(facts, prior, possible, error=_NEAR, seconds=_ASCENT)
    answer = Conditioned(math.nan, ascent.beliefs, ascent.error_bound)
    if others:
        # Sums that are counts add nothing more; other counted constraints still do.
        left = tuple(
            one
            for one in problem.constraints
            if one in others or not isinstance(one, Facts | LinearConstraint)
        )
        later = compute_posterior(ascent.beliefs, replace(problem, constraints=left))
        answer = replace(answer, probabilities=later.probabilities)
        if math.isinf(later.claim_bits):
            answer = replace(answer, log_probability=-math.inf)
    everywhere = bool(ascent.exact.all()) and not others
    return _report(prior, answer, "exact" if everywhere else "maximum-entropy")


def _report(prior: _Floats, answer: Conditioned, method: Method) -> PosteriorBeliefs:
    before = float(prior.max(axis=1).mean())
    if answer.probabilities is None:
        bits = math.nan if math.isnan(answer.log_probability) else math.inf
        return PosteriorBeliefs(None, bits, before, None, method, 0.0)
    bits = -answer.log_probability / math.log(2)
    bits = bits if math.isnan(bits) else max(0.0, bits)
    # Sums in floating point may move certain people by a last digit.
    certain = ((prior == 1) & (answer.probabilities > 1 - _LAST_DIGITS)).any(axis=1)
    probabilities = np.where(certain[:, None], prior, answer.probabilities)
    after = float(probabilities.max(axis=1).mean())
    return PosteriorBeliefs(probabilities, bits, before, after, method, answer.error)


def _condition_two_groups(prior: _Floats, counted: CountedProblem) -> Conditioned | None:
    """The exact posterior, for any number of people; None if it cannot be computed."""
    problem = counted.problem
    if problem.groups != 2:
        return None
    split = tuple(
        AnyOf(tuple(list_options(c))) if isinstance(c, AnyOf | RatesApart) else c
        for c in counted.conditions
    )
    ways = separate_regions(split, counted.classes)
    if ways is None or (len(ways) != 1 and any(len(way.parts) != 1 for way in ways)):
        return None
    everyone = np.ones(len(prior), dtype=bool)
    allowed = []
    for number, (label, _) in enumerate(ways[0].parts if ways else ()):
        mask = counted.inside(label)
        regions = [way.parts[number][1] for way in ways]
        allowed.append((everyone if mask is None else mask, list(_list_layers(regions))))
    if not ways:  # a list of options that is empty
        return Conditioned(-math.inf, None)
    return condition_on_regions(
        _take_log_odds(prior), problem.predictions, allowed, occupied=ways[0].union
    )


def _list_layers(regions: Sequence[Region]) -> Iterator[Interval]:
    if len(regions) == 1:
        yield regions[0].interval
        return
    for number in range(len(regions)):
        yield partial(_take_layer, regions, number)


def _take_layer(
    regions: Sequence[Region], number: int, x: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return join_intervals(regions, x)[number]


def _take_log_odds(prior: _Floats) -> _Floats:
    """(n,) log-odds of group 1, from the smaller of the two probabilities."""
    smaller = prior.min(axis=1)
    with np.errstate(divide="ignore"):
        odds = np.log(smaller) - np.log1p(-smaller)
    odds = np.where(smaller > 0, np.maximum(odds, -_MOST), odds)
    return np.asarray(np.where(prior[:, 1] <= prior[:, 0], odds, -odds))


def _condition_on_rare(prior: _Floats, counted: CountedProblem) -> Conditioned:
    """Beliefs given a claim that no drawn counts satisfied: from counts near the expected ones.

    Groups are drawn from the beliefs, so that their counts are near the expected ones (the
    likeliest groups' are not), and as few as possible are changed to satisfy the claim.
    """
    drawn = np.random.default_rng(_DRAW).random((len(prior), 1))
    guess = np.minimum((prior.cumsum(axis=1) <= drawn).sum(axis=1), prior.shape[1] - 1)
    certain = np.flatnonzero(np.count_nonzero(prior, axis=1) == 1)
    guess[certain] = prior[certain].argmax(axis=1)
    problem = replace(
        counted.problem,
        guess=guess,
        weights=None,
        constraints=(*counted.problem.constraints, KnownPeople(certain, guess[certain])),
    )
    nearest = solve_exact(problem, _SEARCH)
    if nearest.status == SolverStatus.INFEASIBLE:
        return Conditioned(-math.inf, None)
    if nearest.status != SolverStatus.OPTIMAL:  # the groups found may be far from the likeliest
        return Conditioned(math.nan, None)
    return condition_approximately(prior, counted, nearest.values)
