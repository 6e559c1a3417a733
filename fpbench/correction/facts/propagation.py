"""Bound propagation: groups that follow from exact counts and ranges, one set at a time.

If a set has its greatest number of known members of a group, nobody else in it is of the group; if
only its least number may still be of the group, all of them are. Each conclusion may allow others.
Noisy counts are ignored, so conclusions are right if the facts are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fpbench.base.argument_types import check_arguments
from fpbench.base.arguments import to_array
from fpbench.base.errors import InputError
from fpbench.claims.set_counts import Facts, Mask

Reasons: TypeAlias = NDArray[np.int32]
"""(n, K) the set that ruled each group out; -1 for none."""

Rounds: TypeAlias = NDArray[np.int32]
"""(n, K) when each group was ruled out, counted from 0; `NEVER` for those that were not."""

NEVER = np.iinfo(np.int32).max

_TRIES = 400
"""Most sets of facts that are tried to find the few that matter."""


@check_arguments
def propagate(facts: Facts, possible: Mask | None = None) -> Mask:
    """(n, K) the groups that each person may have; a person with only one is proven.

    Parameters
    ----------
    facts
        The facts.
    possible
        (n, K) groups that are possible by other knowledge; all by default. Not changed.

    Raises
    ------
    ContradictionError
        If no assignment of groups satisfies the facts, as far as this method can tell.
    """
    check_possible(facts, possible)
    return propagate_and_log(facts, possible)[0]


def propagate_and_log(facts: Facts, possible: Mask | None) -> tuple[Mask, Reasons]:
    """As `propagate`, and why each group was ruled out."""
    try:
        return rule_out(facts, possible)
    except _Contradicted as shown:
        causes = trace(facts, shown.reasons, shown.sets)
        few = drop_idle(facts, causes, lambda part: _contradicts(part, possible))
        raise facts.contradiction(few) from None


def check_possible(facts: Facts, possible: Mask | None) -> None:
    """Refuse anything but a truth value for each person and group of facts."""
    if possible is not None:
        to_array("possible", possible, "b", (facts.people, facts.groups))


def rule_out(
    facts: Facts, start: Mask | None, rounds: Rounds | None = None
) -> tuple[Mask, Reasons]:
    """The groups that each person may have, and why: `propagate` without naming a contradiction.

    `rounds` notes when each was ruled out; -1 for those ruled out from the start.
    """
    n, k = facts.people, facts.groups
    possible = np.ones((n, k), np.bool_) if start is None else start.copy()
    reasons = np.full((n, k), -1, np.int32)
    if not possible.any(axis=1).all():
        person = int(np.flatnonzero(~possible.any(axis=1))[0])
        raise InputError(f"person {person} is left no possible group")
    hard = ~facts.noisy
    settled = ~hard
    sure = possible & (possible.sum(axis=1) == 1)[:, None]
    # Sizes minus what is impossible, as most is possible.
    upper, fixed = facts.sizes[:, None] - facts.count(~possible), facts.count(sure)
    when = np.empty((n, k), np.int32) if rounds is None else rounds
    when[:] = np.where(possible, NEVER, -1)
    round_ = 0
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
        when[before & ~possible] = round_
        round_ += 1
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
    """Members of sets, one after the other, and which set each is listed for.

    Large sets come last, so that people in several are taken to be proven by the largest: few sets
    explain many people.
    """
    which = which[np.argsort(facts.sizes[which], kind="stable")]
    part = facts.sets[which]
    return part.indices, np.repeat(which, np.diff(part.indptr))


class _Contradicted(Exception):  # noqa: N818, it never leaves this module
    """Facts contradict each other; why groups were ruled out, and the sets where it showed."""

    def __init__(self, reasons: Reasons, sets: NDArray[np.intp]) -> None:
        super().__init__()
        self.reasons, self.sets = reasons, sets


def _contradicts(facts: Facts, start: Mask | None) -> bool:
    try:
        rule_out(facts, start)
    except _Contradicted:
        return True
    return False


def trace(facts: Facts, reasons: Reasons, sets: NDArray[np.integer[Any]]) -> NDArray[np.intp]:
    """Sets that led to conclusions about members of these sets, and so on backwards.

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


def trace_ruled_out(facts: Facts, reasons: Reasons, rounds: Rounds, ruled_out: Mask) -> Mask:
    """(M,) sets that ruled groups (n, K) out, and the sets that these conclusions rest on.

    A set says that nobody else is of a group if its known members of the group are as many as may
    be; and that all others are of it if as many as may be are known not to be.
    """
    needed, done = ruled_out & (reasons >= 0), np.zeros(reasons.shape, np.bool_)
    sets = np.zeros(len(facts), np.bool_)
    members = facts.sets
    while (new := needed & ~done).any():
        done |= new
        groups = np.nonzero(new)[1]
        uses = np.column_stack([reasons[new], rounds[new], groups])
        for number, round_, group in np.unique(uses, axis=0).tolist():
            sets[number] = True
            own = members.indices[members.indptr[number] : members.indptr[number + 1]]
            out = rounds[own] < round_
            others = np.arange(facts.groups) != group
            sure = own[out[:, others].all(axis=1) & ~out[:, group]]
            if len(sure) == facts.high[number, group]:
                needed[np.ix_(sure, others)] = True
                continue
            open_ = (~out).sum(axis=0) == facts.low[number]
            full = int(np.flatnonzero(open_ & others)[0])
            needed[own[out[:, full]], full] = True
        needed &= reasons >= 0
    return sets


def drop_idle(
    facts: Facts, sets: NDArray[np.intp], holds: Callable[[Facts], bool]
) -> tuple[int, ...]:
    """A smaller list of sets for which `holds` is true: parts of it are left out in turn."""
    size, tries = max(1, len(sets) // 2), 0
    while True:
        at = 0
        while at < len(sets) > 1 and tries < _TRIES:
            fewer, tries = np.delete(sets, slice(at, at + size)), tries + 1
            if len(fewer) and holds(facts.take(fewer)):
                sets = fewer
            else:
                at += size
        if size == 1:
            return tuple(sorted(int(number) for number in sets))
        size //= 2
