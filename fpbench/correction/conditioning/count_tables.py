"""Beliefs given a region of counts, exactly, where all tables of counts can be listed.

People of one class are added one after the other: the law of how many belong to each group. Walked
back from the end with the probability that counts satisfy the claim, the same recurrence gives
everybody's posterior. It runs in logarithms: nothing underflows, and nothing subtracts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fpbench.claims.conditions import Occupied
from fpbench.claims.counts import Condition
from fpbench.correction.conditioning.conditioned import Conditioned
from fpbench.correction.conditioning.regions import (
    Tables,
    join_classes,
    list_classes,
    satisfy,
)
from fpbench.correction.exact.counting import CountedProblem

_Floats: TypeAlias = NDArray[np.float64]

_MOST_TABLES = 400_000
"""Most tables of counts that are listed."""
_CHUNK = 1 << 17
"""Tables that are checked at once."""
_MOST_STEPS = 4_000_000
"""Most counts, summed over people, that a recurrence goes through."""


def condition_tables(
    beliefs: _Floats, counted: CountedProblem, most: int = _MOST_TABLES
) -> Conditioned | None:
    """Beliefs given conditions on counts; None if there are too many tables of counts.

    `beliefs`: (n, K) probabilities of independent people; those of the problem are not used.
    `most`: most tables of counts that are listed.
    """
    members, classes = counted.members, len(counted.classes.sizes)
    slices = _split(counted.conditions, classes)
    if slices is None:
        return None
    if any(_count_steps(beliefs[members == j]) > _MOST_STEPS for j in range(classes)):
        return None
    with np.errstate(divide="ignore"):
        laws = [CountLaw(np.log(beliefs[members == j])) for j in range(classes)]
    sizes = [math.prod(len(laws[j].counts) for j in part.classes) for part in slices]
    if max(sizes, default=0) > most:
        return None
    return _combine(beliefs, members, [_list_tables(part, laws) for part in slices])


@dataclass(frozen=True)
class _Slice:
    """Classes that conditions tie to each other."""

    classes: frozenset[int]
    conditions: tuple[Condition, ...]
    shares: bool
    """Whether every group needs a member in this slice or the others."""


def _split(conditions: Sequence[Condition], classes: int) -> list[_Slice] | None:
    """The slices; None if groups need members in some of the slices only."""
    about = [list_classes(condition, classes) for condition in conditions]
    plain = [a for c, a in zip(conditions, about, strict=True) if not isinstance(c, Occupied)]
    parts = join_classes([*plain, *(frozenset({j}) for j in range(classes))])
    inside: list[list[Condition]] = [[] for _ in parts]
    shared: set[frozenset[int]] = set()
    for condition, used in zip(conditions, about, strict=True):
        tied = [number for number, part in enumerate(parts) if part & used]
        if len(tied) > 1:
            shared.add(used)
        else:
            inside[tied[0] if tied else 0].append(condition)
    if len(shared) > 1:
        return None
    together = next(iter(shared), frozenset())
    if any(part & together not in (part, frozenset()) for part in parts):
        return None
    return [
        _Slice(part, tuple(own), bool(part & together))
        for part, own in zip(parts, inside, strict=True)
    ]


class CountLaw:
    """Log-probabilities of how many people of a class belong to each group.

    Attributes
    ----------
    box
        Of the numbers (n + 1, ...) of all groups but the last.
    counts, log_probabilities
        (T, K) numbers that are possible, and theirs (T,).
    """

    def __init__(self, log_beliefs: _Floats) -> None:
        self._log_beliefs = log_beliefs
        people, groups = log_beliefs.shape
        # The last group has the people who are in no other.
        self._box = (people + 1,) * (groups - 1)
        start: _Floats = np.full(self._box, -np.inf)
        start[(0,) * (groups - 1)] = 0.0
        self._before = [start]
        for person in log_beliefs:
            self._before.append(self._add(self._before[-1], person))
        self.box = self._before[-1]
        self._possible = np.flatnonzero(self.box > -np.inf)
        self.log_probabilities: _Floats = self.box.ravel()[self._possible]
        others = np.stack(np.unravel_index(self._possible, self._box), axis=1)
        rest = people - others.sum(axis=1, keepdims=True)
        self.counts = np.hstack([others, rest]).astype(np.int64)

    @staticmethod
    def _add(law: _Floats, person: _Floats) -> _Floats:
        after = law + person[-1]
        for group, log_belief in enumerate(person[:-1]):
            into, out_of = _shift(group, law.ndim)
            after[into] = np.logaddexp(after[into], law[out_of] + log_belief)
        return np.asarray(after)

    def posterior(self, log_weights: _Floats) -> _Floats:
        """(n, K) given an event whose log-likelihood by counts is `log_weights`."""
        after: _Floats = np.full(self._box, -np.inf).ravel()
        after[self._possible] = log_weights
        return self.walk_back(after.reshape(self._box))

    def walk_back(self, after: _Floats) -> _Floats:
        """The same, of log-likelihoods in the shape of the box."""
        logs = np.array(self._log_beliefs)
        for person in range(len(logs) - 1, -1, -1):
            before, own = self._before[person], self._log_beliefs[person]
            earlier = after + own[-1]
            logs[person, -1] = _log_sum(before + earlier)
            for group in range(len(own) - 1):
                into, out_of = _shift(group, before.ndim)
                moved = after[into] + own[group]
                logs[person, group] = _log_sum(before[out_of] + moved)
                earlier[out_of] = np.logaddexp(earlier[out_of], moved)
            after = earlier
        logs -= np.logaddexp.reduce(logs, axis=1, keepdims=True)
        return np.asarray(np.exp(logs))


def _shift(group: int, dimensions: int) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """Slices of an array of counts that shift it by one person of a group: to, and from."""
    into = tuple(slice(1, None) if d == group else slice(None) for d in range(dimensions))
    out_of = tuple(slice(None, -1) if d == group else slice(None) for d in range(dimensions))
    return into, out_of


def _log_sum(logs: NDArray[Any]) -> float:
    return float(np.logaddexp.reduce(logs, axis=None)) if logs.size else -math.inf


def _count_steps(beliefs: _Floats) -> float:
    people, groups = beliefs.shape
    return float(people * (people + 1.0) ** (groups - 1))


@dataclass(frozen=True)
class _Listed:
    """All tables of a slice that satisfy its conditions."""

    classes: tuple[int, ...]
    laws: tuple[CountLaw, ...]
    counts: tuple[NDArray[np.intp], ...]
    """Of each table, the number of the counts of each class in its law."""
    log_probabilities: _Floats
    groups: NDArray[np.int64]
    """Of each table, the groups that have a member as a number in binary."""
    shares: bool


def _list_tables(part: _Slice, every: Sequence[CountLaw]) -> _Listed:
    classes = tuple(sorted(part.classes))
    laws = tuple(every[j] for j in classes)
    shape = tuple(len(law.counts) for law in laws)
    groups = every[0].counts.shape[1]
    allowed, occupied = [np.zeros(0, np.intp)], [np.zeros(0, np.int64)]
    for start in range(0, math.prod(shape), _CHUNK):
        chunk = np.arange(start, min(start + _CHUNK, math.prod(shape)))
        tables: Tables = np.zeros((len(chunk), len(every), groups), dtype=np.int64)
        for j, law, rows in zip(classes, laws, np.unravel_index(chunk, shape), strict=True):
            tables[:, j] = law.counts[rows]
        kept = satisfy(part.conditions, tables)
        allowed.append(chunk[kept])
        occupied.append((tables[kept].sum(axis=1) > 0) @ (1 << np.arange(groups)))
    counts = np.unravel_index(np.concatenate(allowed), shape)
    logs = np.sum(
        [law.log_probabilities[rows] for law, rows in zip(laws, counts, strict=True)], axis=0
    )
    return _Listed(classes, laws, counts, logs, np.concatenate(occupied), part.shares)


def _combine(beliefs: _Floats, members: NDArray[np.int8], listed: Sequence[_Listed]) -> Conditioned:
    """All slices together: they are linked only by which groups have a member somewhere."""
    everyone = (1 << beliefs.shape[1]) - 1
    sharing = [one for one in listed if one.shares]
    patterns = [_log_patterns(one, everyone) for one in sharing]
    total, posterior = 0.0, beliefs.copy()
    for one in listed:
        logs = one.log_probabilities
        if one.shares:
            others = [p for other, p in zip(sharing, patterns, strict=True) if other is not one]
            logs = logs + _log_completed(others, everyone)[one.groups]
        probability = _log_sum(logs)
        # The joint probability of the slices that share is counted once.
        if not one.shares or one is sharing[0]:
            total += probability
        if probability == -np.inf:
            return Conditioned(-math.inf, None)
        for j, law, rows in zip(one.classes, one.laws, one.counts, strict=True):
            own: _Floats = np.full(len(law.counts), -np.inf)
            np.logaddexp.at(own, rows, logs - probability)
            posterior[members == j] = law.posterior(own - law.log_probabilities)
    return Conditioned(total, posterior)


def _log_patterns(one: _Listed, everyone: int) -> _Floats:
    """Log-probability that a slice satisfies its conditions and just these groups have members."""
    logs: _Floats = np.full(everyone + 1, -np.inf)
    np.logaddexp.at(logs, one.groups, one.log_probabilities)
    return logs


def _log_completed(others: Sequence[_Floats], everyone: int) -> _Floats:
    """For each set of groups, the log-probability that other slices have members of the rest."""
    union: _Floats = np.full(everyone + 1, -np.inf)
    union[0] = 0.0
    for logs in others:
        joined: _Floats = np.full(everyone + 1, -np.inf)
        for groups in np.flatnonzero(logs > -np.inf):
            np.logaddexp.at(joined, np.arange(everyone + 1) | groups, union + logs[groups])
        union = joined
    completed: _Floats = np.full(everyone + 1, -np.inf)
    for some in range(everyone + 1):
        enough = (np.arange(everyone + 1) | some) == everyone
        completed[some] = _log_sum(union[enough])
    return completed
