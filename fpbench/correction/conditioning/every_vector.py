"""Beliefs given anything at all about few people: every vector of groups is looked at."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fpbench.claims.constraints import LinearConstraint
from fpbench.claims.counts import Condition
from fpbench.correction.conditioning.conditioned import Conditioned
from fpbench.correction.conditioning.regions import Tables, satisfy

_Floats: TypeAlias = NDArray[np.float64]

_MOST_VECTORS = 300_000
_SLACK = 1e-9
"""By how much a sum may miss its bounds, as a share of the coefficients': sums are rounded."""


def condition_vectors(
    beliefs: _Floats,
    members: NDArray[np.int8],
    conditions: Sequence[Condition],
    classes: int,
    linear: Sequence[LinearConstraint],
) -> Conditioned | None:
    """Beliefs given conditions on counts and on sums; None if there are too many vectors.

    Parameters
    ----------
    beliefs
        (n, K) probabilities of independent people.
    members
        (n,) class of each person in 0..J-1, -1 for nobody's.
    conditions
        On the counts (J, K).
    classes
        J.
    linear
        On weighted sums.
    """
    choices = [np.flatnonzero(person) for person in beliefs]
    if math.prod(map(len, choices)) > _MOST_VECTORS:
        return None
    with np.errstate(divide="ignore"):
        log_beliefs = np.log(beliefs)
    logs = np.zeros(1)
    tables: Tables = np.zeros((1, classes, beliefs.shape[1]), dtype=np.int64)
    sums = np.zeros((1, len(linear)))
    columns = np.array([one.array() for one in linear]).T.reshape(len(beliefs), len(linear))
    vectors: NDArray[Any] = np.zeros((1, 0), dtype=np.int8)
    for person, groups in enumerate(choices):
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
    allowed = satisfy(conditions, tables)
    for number, one in enumerate(linear):
        allowed &= sums[:, number] >= one.low - slack[number]
        allowed &= sums[:, number] <= one.high + slack[number]
    logs = np.where(allowed, logs, -np.inf)
    log_claim = float(np.logaddexp.reduce(logs))
    if log_claim == -np.inf:
        return Conditioned(-math.inf, None)
    mass = np.exp(logs - log_claim)
    posterior = np.stack([mass @ (vectors == group) for group in range(beliefs.shape[1])], axis=1)
    return Conditioned(log_claim, posterior / posterior.sum(axis=1, keepdims=True))
