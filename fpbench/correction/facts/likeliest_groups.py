"""The likeliest groups of all people together, given beliefs and published numbers, noisy or not.

Gorgé, Ferry, Gambs and Vidal (Training Set Reconstruction from Differentially Private Forests: How
Effective is DP? SaTML 2026) search for the data set that most likely made the noisy counts in a
forest's leaves, by constraint programming over every feature of every person. Where only the group
is unknown, people with the same sets and beliefs differ in nothing, and the program has a whole
number for each kind of them and group. The law of each noisy count is a convex function of the true
one, hence rows of a mixed-integer linear program, whose optimum is exact.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, vstack

from fpbench.base.argument_types import check_arguments
from fpbench.base.errors import InputError
from fpbench.claims.count_laws import EXACT, LAWS, weigh_number
from fpbench.claims.set_counts import Facts, Floats, Mask
from fpbench.components.beliefs import check_beliefs
from fpbench.correction.exact.highs import HighsModel
from fpbench.correction.facts.dual_ascent import condition_beliefs
from fpbench.correction.facts.propagation import check_possible
from fpbench.correction.facts.worlds import WorldProgram

_LEAST = 1e-9
"""Least belief in a group that is possible."""
_SAME = 1e-6
"""How near, relative to it, a cost is to its bound if it is optimal."""
_SOON = 0.2
"""Share of the time that the beliefs may take from which the search begins."""


@dataclass(frozen=True)
class LikeliestGroups:
    """The likeliest groups that were found.

    Attributes
    ----------
    groups
        (n,) codes; None if nothing was found in time, or nothing is possible.
    log_likelihood
        Of them: log-beliefs, plus log-likelihoods of what is published up to constants.
    bound
        No groups have a greater one.
    proven
        Whether no groups are likelier, or none are possible.
    """

    groups: NDArray[np.intp] | None
    log_likelihood: float
    bound: float
    proven: bool


@check_arguments
def find_likeliest_groups(
    facts: Facts,
    beliefs: ArrayLike | None = None,
    possible: Mask | None = None,
    *,
    seconds: float = 60.0,
) -> LikeliestGroups:
    """The groups of all people that are likeliest together, given facts and independent beliefs.

    Parameters
    ----------
    facts
        The facts; noise that left whole numbers almost surely (`Facts.settle_noise`) is ignored.
    beliefs
        (n, K) probability of each group, of each person; by default all are alike, which gives the
        greatest likelihood.
    possible
        (n, K) groups that people may have; all by default.
    seconds
        Time limit, after which the best that was found is returned, with its `bound`.

    Raises
    ------
    InputError
        If beliefs are not probabilities (n, K), or the log-likelihood of a published number is not
        concave in the true one, as of the exponential mechanism and cell keys.
    """
    deadline = time.perf_counter() + seconds
    shape = facts.people, facts.groups
    prior = np.full(shape, 1 / facts.groups) if beliefs is None else check_beliefs(beliefs)
    if prior.shape != shape:
        raise InputError(f"beliefs must be {shape}, as the facts are, not {prior.shape}")
    check_possible(facts, possible)
    allowed = np.ones(shape, np.bool_) if possible is None else possible
    prior = np.maximum(prior, _LEAST)
    facts = facts.settle_noise().drop_derived()
    weighed, certain = facts.take(facts.laws.kind != EXACT), facts.take(~facts.noisy)
    # People of one atom have the same sets, weighed or not, and beliefs.
    kind = np.unique(prior, axis=0, return_inverse=True)[1].ravel()
    everybody = np.ones(len(kind), np.int8), (kind, np.arange(len(kind)))
    alike = csr_array(everybody, (kind.max(initial=-1) + 1, len(kind)))
    program, first, atom = WorldProgram.of(certain, allowed, vstack([weighed.sets, alike]).tocsr())
    if not len(first):
        return LikeliestGroups(np.zeros(0, np.intp), 0.0, 0.0, True)
    model, count = program.model(-np.log(prior[first]))
    sets = weighed.sets[:, first].tocsr()
    for number, group in np.argwhere(np.isfinite(_list_published(weighed))):
        own = sets.indices[sets.indptr[number] : sets.indptr[number + 1]]
        _add_law(model, weighed, int(number), int(group), count[own, group])
    ascent = condition_beliefs(
        facts, prior, allowed, error=0.05, seconds=(deadline - time.perf_counter()) * _SOON
    )
    guess = np.zeros(count.shape, np.int64)
    np.add.at(guess, (atom, ascent.beliefs.argmax(axis=1)), 1)
    start = (count.ravel(), guess.ravel().astype(np.float64)) if program.allows(guess) else None
    answer = model.solve(max(deadline - time.perf_counter(), 0.0), start=start)
    if answer is None:
        return LikeliestGroups(None, -np.inf, -np.inf, True)
    if answer.values is None:
        return LikeliestGroups(None, -np.inf, -answer.bound, False)
    world = np.rint(answer.values[count]).astype(np.int64)
    if not program.allows(world):  # beyond the solver's tolerance
        return LikeliestGroups(None, -np.inf, -answer.bound, False)
    groups = np.empty(len(atom), np.intp)
    groups[np.argsort(atom, kind="stable")] = np.repeat(
        np.tile(np.arange(facts.groups), len(world)), world.ravel()
    )
    likelihood = weigh_groups(facts, groups) + float(
        np.log(prior)[np.arange(len(atom)), groups].sum()
    )
    # HiGHS may call a start optimal whose cost is not its bound.
    proven = answer.proven and -answer.bound - likelihood <= _SAME * max(abs(likelihood), 1.0)
    return LikeliestGroups(groups, likelihood, max(-answer.bound, likelihood), proven)


def _list_published(facts: Facts) -> Floats:
    """(M, K) published numbers; infinite or NaN where there is none."""
    return np.where(facts.noisy[:, None], facts.low, facts.laws.rounded)


def weigh_groups(facts: Facts, groups: NDArray[np.integer]) -> float:
    """Log-likelihood of what is published of all sets if people have these groups (n,)."""
    counts = facts.count(groups[:, None] == np.arange(facts.groups))
    own = np.flatnonzero(facts.laws.kind != EXACT).tolist()
    return float(sum(facts.weigh(number, counts[[number]])[0] for number in own))


def _add_law(
    model: HighsModel, facts: Facts, number: int, group: int, members: NDArray[np.intp]
) -> None:
    """Add a column that costs what a count is short of the greatest log-likelihood.

    `members`: columns of the count's parts. Between whole numbers the cost is linear, so that a
    row for each change of slope states it.
    """
    kind, width = int(facts.laws.kind[number]), float(facts.laws.width[number])
    size, published = int(facts.sizes[number]), float(_list_published(facts)[number, group])
    counts = np.arange(size + 1)
    costs = -weigh_number(kind, width, published, counts, size)
    counts, costs = counts[np.isfinite(costs)], costs[np.isfinite(costs)]
    slopes = np.diff(costs)
    concave = (np.diff(slopes) >= -_SAME * np.abs(slopes).max(initial=1.0)).all()
    if (np.diff(counts) > 1).any() or not concave:
        raise InputError(
            f"{facts.name(number)}: the log-likelihood of a number published by the law "
            f"{LAWS[kind]!r} is not concave, and likeliest groups cannot be found"
        )
    if not len(counts):
        return
    if len(counts) <= size:  # the others are impossible
        model.row(members, np.ones(len(members)), counts[0], counts[-1])
    # Free where rows bound it: with its least cost as bound, HiGHS called starts optimal wrongly.
    (cost,) = model.columns([-np.inf if len(slopes) else costs[0]], [np.inf], 1.0)
    bends = np.flatnonzero(np.abs(np.diff(slopes, prepend=np.inf)) > _SAME * np.abs(slopes))
    for bend in bends:  # cost >= costs[bend] + slope * (count - counts[bend])
        slope, at = slopes[bend], costs[bend] - slopes[bend] * counts[bend]
        model.row([cost, *members], [1, *np.full(len(members), -slope)], at, np.inf)
