"""Whose group follows from exact counts and ranges, one set of people at a time.

If a set has as many people who are known to be of a group as it may have at most, nobody else of
it belongs to the group; if as few may still belong to it as it has at least, all of them do. Each
conclusion may allow others. Noisy counts are not looked at, so a conclusion is never wrong where
the facts are right.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fpbench.auditing.fairness_reports.facts import Facts, Mask
from fpbench.base.errors import InputError

Reasons: TypeAlias = NDArray[np.int32]
"""(n, K) the set that ruled each group out; -1 for none."""

_TRIES = 400
"""Sets of facts that are tried, to find the few that matter."""


def propagate(facts: Facts, possible: Mask | None = None) -> Mask:
    """The groups that each person may have, (n, K); whoever has one left is proven.

    Parameters
    ----------
    facts
        What is known.
    possible
        (n, K) groups that people may have by anything else; all by default. Not changed.

    Raises
    ------
    ContradictionError
        If no assignment of groups satisfies the facts, as far as this finds out.
    """
    try:
        return _rule_out(facts, possible)[0]
    except _Contradicted as shown:
        causes = _trace(facts, shown.reasons, shown.sets)
        few = _drop_idle(facts, causes, lambda part: _contradicts(part, possible))
        raise facts.contradiction(few) from None


def explain_proof(facts: Facts, person: int) -> tuple[int, ...]:
    """Numbers of a few sets from which a person's group follows; empty if it does not.

    None of them can be left out, unless a proof is so long that not all were tried. What only
    linear programs prove is not explained.

    Parameters
    ----------
    facts
        What is known.
    person
        Row of the person.
    """
    if not 0 <= person < facts.people:
        raise InputError(f"there is no person {person}: the rows are 0 to {facts.people - 1}")
    possible, reasons = _rule_out(facts, None)
    if possible[person].sum() > 1:
        return ()
    causes = _trace(facts, reasons, reasons[person][reasons[person] >= 0])
    return _drop_idle(facts, causes, lambda part: bool(_rule_out(part, None)[0][person].sum() == 1))


def _rule_out(facts: Facts, start: Mask | None) -> tuple[Mask, Reasons]:
    """What each person may be, and why."""
    n, k = facts.people, facts.groups
    possible = np.ones((n, k), np.bool_) if start is None else start.copy()
    reasons = np.full((n, k), -1, np.int32)
    if not possible.any(axis=1).all():
        person = int(np.flatnonzero(~possible.any(axis=1))[0])
        raise InputError(f"person {person} is left no possible group")
    hard = ~facts.noisy
    settled = ~hard
    upper = facts.count(possible.astype(np.int32))
    sure = possible & (possible.sum(axis=1) == 1)[:, None]
    fixed = facts.count(sure.astype(np.int32))
    while True:
        wrong = hard & ((fixed > facts.high) | (upper < facts.low)).any(axis=1)
        if wrong.any():
            raise _Contradicted(reasons, np.flatnonzero(wrong)[:1])
        before = possible.copy()
        open_ = (upper > fixed) & ~settled[:, None]
        for group in range(k):
            full = np.flatnonzero(open_[:, group] & (fixed[:, group] == facts.high[:, group]))
            if len(full):
                people, cause = _list_members(facts, full)
                out = before[people, group] & ~sure[people, group]
                possible[people[out], group] = False
                reasons[people[out], group] = cause[out]
            short = np.flatnonzero(open_[:, group] & (upper[:, group] == facts.low[:, group]))
            if len(short):
                people, cause = _list_members(facts, short)
                all_ = before[people, group]
                people, cause = people[all_], cause[all_]
                for other in range(k):
                    if other != group:
                        out = before[people, other]
                        possible[people[out], other] = False
                        reasons[people[out], other] = cause[out]
        changed = np.flatnonzero((before != possible).any(axis=1))
        if not len(changed):
            return possible, reasons
        left = possible[changed].sum(axis=1)
        if (left == 0).any():
            person = changed[left == 0][0]
            raise _Contradicted(reasons, np.unique(reasons[person][reasons[person] >= 0]))
        membership = facts.membership[changed]
        ruled = before[changed] & ~possible[changed]
        certain = possible[changed] & (left == 1)[:, None]
        sure[changed] = certain
        for group in range(k):
            for rows, table, sign in ((ruled, upper, -1), (certain, fixed, 1)):
                who = np.flatnonzero(rows[:, group])
                hit = np.bincount(membership[who].indices, minlength=len(facts))
                table[:, group] += sign * hit


def _list_members(
    facts: Facts, which: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Members of sets, one after the other, and which set each is listed for."""
    part = facts.sets[which]
    return part.indices, np.repeat(which, np.diff(part.indptr))


class _Contradicted(Exception):  # noqa: N818, it never leaves this module
    """Facts contradict each other; why groups were ruled out, and the sets where it showed."""

    def __init__(self, reasons: Reasons, sets: NDArray[np.intp]) -> None:
        super().__init__()
        self.reasons, self.sets = reasons, sets


def _contradicts(facts: Facts, start: Mask | None) -> bool:
    try:
        _rule_out(facts, start)
    except _Contradicted:
        return True
    return False


def _trace(facts: Facts, reasons: Reasons, sets: NDArray[np.integer[Any]]) -> NDArray[np.intp]:
    """Sets that led to conclusions about members of these sets, those of them, and so on.

    The farthest come first.
    """
    traced: list[NDArray[np.intp]] = []
    seen = np.zeros(len(facts) + 1, np.bool_)
    seen[-1] = True  # no reason is -1
    new = np.unique(sets)
    while len(new):
        seen[new] = True
        traced.insert(0, new)
        causes = np.unique(reasons[np.unique(facts.sets[new].indices)])
        new = causes[~seen[causes]]
    return np.concatenate(traced)


def _drop_idle(
    facts: Facts, sets: NDArray[np.intp], holds: Callable[[Facts], bool]
) -> tuple[int, ...]:
    """Fewer of these sets for which something still holds: parts of them are left out in turn."""
    size, tries = max(1, len(sets) // 2), 0
    while True:
        at = 0
        while at < len(sets) and tries < _TRIES and len(sets) > 1:
            fewer, tries = np.delete(sets, slice(at, at + size)), tries + 1
            if len(fewer) and holds(facts.take(fewer)):
                sets = fewer
            else:
                at += size
        if size == 1:
            return tuple(sorted(int(number) for number in sets))
        size //= 2
