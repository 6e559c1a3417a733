"""Beliefs of few people given any constraints, by enumeration of all vectors of groups."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fpbench.claims.set_counts import Facts
from fpbench.correction.conditioning.conditioned import Conditioned
from fpbench.correction.conditioning.regions import Tables, satisfy
from fpbench.correction.exact.counting import CountedProblem

_Floats: TypeAlias = NDArray[np.float64]

_MOST_VECTORS = 300_000
_SLACK = 1e-9
"""Tolerance of a sum's bounds, relative to the sum of its coefficients, for rounding."""


def condition_vectors(beliefs: _Floats, counted: CountedProblem) -> Conditioned | None:
    """Beliefs given conditions on counts, on sums and facts; None if there are too many vectors.

    `beliefs`: (n, K) probabilities of independent people; those of the problem are not used.
    `counted`: the problem. Noise of a fact's count has the density of its law.
    """
    members, linear, classes = counted.members, counted.linear, len(counted.classes.sizes)
    facts = [one for one in counted.problem.constraints if isinstance(one, Facts)]
    choices = [np.flatnonzero(person) for person in beliefs]
    if math.prod(map(len, choices)) > _MOST_VECTORS:
        return None
    with np.errstate(divide="ignore"):
        log_beliefs = np.log(beliefs)
    loose = np.flatnonzero([len(groups) > 1 for groups in choices])
    fixed = np.array([groups[0] for groups in choices])
    fixed[loose] = -1
    known = fixed[:, None] == np.arange(beliefs.shape[1])
    logs = np.array([log_beliefs[known].sum()])
    tables: Tables = np.zeros((1, classes, beliefs.shape[1]), dtype=np.int64)
    inside = np.flatnonzero((fixed >= 0) & (members >= 0))
    np.add.at(tables[0], (members[inside], fixed[inside]), 1)
    columns = np.array([one.array() for one in linear]).T.reshape(len(beliefs), len(linear))
    sums = np.array([[one.array() @ (fixed == one.group) for one in linear]])
    vectors: NDArray[Any] = np.zeros((1, 0), dtype=np.int8)
    for person in loose.tolist():
        groups = choices[person]
        logs = np.concatenate([logs + log_beliefs[person, group] for group in groups])
        grown = []
        for group in groups:
            table = tables.copy()
            if members[person] >= 0:
                table[:, members[person], group] += 1
            own = np.array([one.group == group for one in linear]) * columns[person]
            named = np.full((len(vectors), 1), group, dtype=np.int8)
            grown.append((table, sums + own, np.hstack([vectors, named])))
        tables, sums, vectors = (np.concatenate(parts) for parts in zip(*grown, strict=True))
    slack = _SLACK * np.abs(columns).sum(axis=0)
    allowed = satisfy(counted.conditions, tables)
    for number, one in enumerate(linear):
        allowed &= sums[:, number] >= one.low - slack[number]
        allowed &= sums[:, number] <= one.high + slack[number]
    logs = np.where(allowed, logs, -np.inf)
    for each in facts:
        logs = logs + _weigh_facts(each, vectors, loose, known)
    log_claim = float(np.logaddexp.reduce(logs))
    if log_claim == -np.inf:
        return Conditioned(-math.inf, None)
    mass = np.exp(logs - log_claim)
    posterior = known.astype(np.float64)
    for k in range(beliefs.shape[1]):
        posterior[loose, k] = mass @ (vectors == k)
    return Conditioned(log_claim, posterior / posterior.sum(axis=1, keepdims=True))


def _weigh_facts(
    facts: Facts, vectors: NDArray[Any], loose: NDArray[np.intp], known: NDArray[np.bool_]
) -> _Floats:
    """(V,) log-likelihood of facts, up to a constant, if the groups are those of a vector.

    `vectors`: (V, L) of the people `loose`; `known`: (n, K) the groups of all others.
    """
    place = np.full(facts.people, -1)
    place[loose] = np.arange(len(loose))
    draws = facts.draw_numbers()[:, 0]

    def add_up(number: int, shares: NDArray[np.int64], sums: NDArray[np.int64]) -> Tables:
        """(V, K) sums over the people of a set and group; (1, K) if all vectors agree."""
        own = facts.sets[[number]].indices
        own = own[place[own] >= 0]
        groups = range(facts.groups if len(own) else 0)
        parts = [(vectors[:, place[own]] == group) @ shares[own] for group in groups]
        return sums[[number]] + (np.stack(parts, axis=1) if parts else 0)

    ones = np.ones(facts.people, np.int64)
    sums = [facts.count(known * shares[:, None]) for shares in (ones, draws)]
    return facts.weigh_sets(
        range(len(facts)),
        lambda number: add_up(number, ones, sums[0]),
        lambda number: add_up(number, draws, sums[1]),
    )
