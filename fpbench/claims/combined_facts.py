"""Facts of several reports about overlapping people, as facts about all of these people."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.base.argument_types import check_arguments
from fpbench.base.arguments import check_pairs, check_type
from fpbench.base.errors import InputError
from fpbench.claims.count_laws import CountLaws
from fpbench.claims.set_counts import Facts
from fpbench.claims.set_tables import SetTable


class CombinedFacts(NamedTuple):
    """Facts about the union of the people of several reports.

    Attributes
    ----------
    facts
        Facts of all reports, and of differences between reports.
    ids
        (n,) ids of the people, in the order of the first report that they are in.
    """

    facts: Facts
    ids: NDArray[Any]


@check_arguments
def combine_facts(
    reports: Sequence[tuple[Facts, ArrayLike]], *, names: Sequence[str] | None = None
) -> CombinedFacts:
    """Facts of several reports about the union of their people, with those of differences.

    Take a set of one report and a set of another that have the same members among people in both
    reports. If one of the sets has no further members, the difference of the two counts is the
    count of those who left, or joined. Such derived facts let `propagate` find what linear programs
    find anyway.

    Parameters
    ----------
    reports
        For each report, its facts, and (n,) ids of the people they are about: whole numbers or
        texts, the same for the same person in all reports.
    names
        Names of the reports, for messages; their numbers by default.

    Returns
    -------
    CombinedFacts
        `facts` about everybody, whose sets are named after report and set, and `ids`.

    Raises
    ------
    ContradictionError
        If two reports differ about the same people.
    InputError
        If there is no report, ids repeat or are too few, or groups differ in number.
    """
    check_pairs("reports", reports, "pairs of facts and ids")
    if not len(reports):
        raise InputError("there is no report to combine: give at least one")
    called = [f"report {number}" for number in range(len(reports))] if names is None else names
    if len(called) != len(reports):
        raise InputError(f"names must be {len(reports)}, one a report, not {len(called)}")
    everybody: dict[Any, int] = {}
    rows = []
    for name, (facts, ids) in zip(called, reports, strict=True):
        check_type(f"{name}: the first of each pair", facts, Facts, "Facts")
        own = np.asarray(ids)
        if own.shape != (facts.people,):
            raise InputError(f"{name}: ids must be {facts.people}, one a person, not {own.shape}")
        if facts.groups != reports[0][0].groups:
            raise InputError(
                f"{name} is about {facts.groups} groups, and {called[0]} about "
                f"{reports[0][0].groups}"
            )
        listed = own.tolist()
        if len(set(listed)) < len(listed):
            twice = next(one for one in listed if listed.count(one) > 1)
            raise InputError(f"{name}: the id {twice!r} occurs twice")
        rows.append(np.array([everybody.setdefault(one, len(everybody)) for one in listed]))
    kinds = {type(one) for one in everybody}
    if len(kinds) > 1:
        raise InputError(
            f"ids are of different types: {', '.join(sorted(kind.__name__ for kind in kinds))}"
        )
    told = [facts for facts, _ in reports]
    joined = join_reports(told, rows, len(everybody), called)
    return CombinedFacts(joined, np.array(list(everybody)))


def join_reports(
    told: Sequence[Facts], rows: Sequence[NDArray[np.intp]], people: int, names: Sequence[str]
) -> Facts:
    """Facts of reports about some of these people, and then facts of differences.

    Sets are named after report and set.

    `told`: for each report, its facts. `rows`: for each report, (n,) row of each of its people
    among all. `people`: number of all people.

    Raises ContradictionError if two reports differ about the same people.
    """
    parts = [
        facts.rename(f"{name}: {{}}".format).over(own, people)
        for name, facts, own in zip(names, told, rows, strict=True)
    ]
    inside = np.zeros((len(parts), people), np.bool_)
    for here, own in zip(inside, rows, strict=True):
        here[own] = True
    differences = [
        _subtract(parts[a], parts[b], inside[a] & inside[b])
        for a, b in combinations(range(len(parts)), 2)
    ]
    return Facts.join([*parts, *(part for part in differences if part is not None)])


def _subtract(one: Facts, other: Facts, both: NDArray[np.bool_]) -> Facts | None:
    """Facts about people who are in only one of two reports; None if there are none."""
    reports, alone = (one, other), ~both
    if both.all():
        return None
    # Random sums tell a set's members among those whom both reports are about.
    draws = np.random.default_rng(20260104).integers(2**62, size=(len(both), 2))
    draws[alone] = 0
    sums, extra = ([facts.count(of) for facts in reports] for of in (draws, alone))
    # Sets without others, by their members: the other report's where both have one.
    bases: tuple[dict[tuple[int, ...], tuple[Facts, int]], ...] = ({}, {})
    for which, facts in enumerate(reports):
        for number in np.flatnonzero(~facts.noisy & ~facts.derived & (extra[which] == 0)).tolist():
            bases[which][tuple(sums[which][number].tolist())] = facts, number
    parts = []
    for which, facts in enumerate(reports):
        outer, inner = [], []
        for number in np.flatnonzero(~facts.noisy & ~facts.derived & (extra[which] > 0)).tolist():
            key = tuple(sums[which][number].tolist())
            base = bases[1 - which].get(key) or bases[which].get(key)
            if base is not None:
                outer.append(number)
                inner.append(base)
        if outer:
            parts.append(_take_differences(facts, np.array(outer), inner, alone))
    return Facts.join(parts) if parts else None


def _take_differences(
    facts: Facts,
    outer: NDArray[np.intp],
    inner: list[tuple[Facts, int]],
    alone: NDArray[np.bool_],
) -> Facts:
    """Facts about the members that sets have and smaller sets lack: those in `alone`."""
    tables = []
    for table in facts.take(outer).tables:
        here = alone if table.rows is None else alone[table.rows]
        member = np.where(here, table.member, -1).astype(table.member.dtype)
        tables.append(SetTable.of(member, table.numbers, table.rows))
    low, high = (np.array([getattr(f, end)[m] for f, m in inner]) for end in ("low", "high"))
    zeros = np.zeros(len(outer))
    return Facts(
        tuple(tables), facts.people, facts.low[outer] - high, facts.high[outer] - low,
        CountLaws.of(zeros.astype(np.int8), zeros, facts.groups), zeros == 0,
        partial(_name_difference, facts, outer, inner), np.arange(len(outer)),
    )  # fmt: skip


def _name_difference(
    facts: Facts, outer: NDArray[np.intp], inner: list[tuple[Facts, int]], number: int
) -> str:
    less, which = inner[number]
    return f"[{facts.name(int(outer[number]))}] less [{less.name(which)}]"
