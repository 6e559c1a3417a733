"""Explanations of proofs: the published counts that a person's group follows from."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fpbench.base.argument_types import check_arguments
from fpbench.base.errors import InputError
from fpbench.claims.set_counts import Facts
from fpbench.correction.facts.interior_point import LinearSolver
from fpbench.correction.facts.linear_programs import (
    GroupProgram,
    ProofLog,
    find_deadline,
    find_origins,
    prove_and_log,
)
from fpbench.correction.facts.propagation import rule_out, trace_ruled_out

_ROUNDS = 8
"""Most rounds in which a linear program chooses fewer sets."""


@check_arguments
def explain_proof(facts: Facts, person: int, *, seconds: float = 30.0) -> tuple[int, ...]:
    """Numbers of a few sets from which a person's group follows; empty if no proof was found.

    They are sets whose counts were published, not derived ones, and their counts alone prove the
    group again: one set at a time (`propagate`), or by a linear program whose multipliers are
    checked in fractions. None of them can be left out, unless the time or the attempts run out
    before each was tried.

    Parameters
    ----------
    facts
        What is known.
    person
        Row of the person.
    seconds
        The search for a proof ends then, and so does the search for a shorter one.

    Raises
    ------
    InputError
        If there is no such person, or `seconds` is not a number.
    ContradictionError
        If no assignment of groups satisfies the facts, as far as this finds out.
    """
    if not 0 <= person < facts.people:
        raise InputError(f"there is no person {person}: the rows are 0 to {facts.people - 1}")
    deadline = find_deadline(seconds)
    published = np.flatnonzero(~facts.noisy & ~facts.derived)
    hard = facts.take(published)
    with LinearSolver() as solver:
        allowed, log = prove_and_log(hard, None, deadline, person, solver)
        if allowed[person].sum() > 1:
            return ()
        sets = _follow(hard, log, person)
        group = int(allowed[person].argmax())

        def find(part: Facts) -> NDArray[np.intp]:
            return _find_sets(*_drop_strangers(part, person), group, solver, deadline)

        for _ in range(_ROUNDS):
            fewer = find(hard.take(sets))
            if not len(fewer) or len(fewer) == len(sets):
                break
            sets = sets[fewer]
        shown = _list_few(hard, sets, find, deadline)
    return tuple(int(published[number]) for number in shown)


def _list_few(
    facts: Facts, sets: NDArray[np.intp], find: Callable[[Facts], NDArray[np.intp]], deadline: float
) -> tuple[int, ...]:
    """A smaller list of sets that still has a proof: parts of it are left out in turn.

    Only the sets that the last proof needs are kept, which may be far fewer.
    """
    size = max(1, len(sets) // 2)
    while True:
        at = 0
        while at < len(sets) > 1 and time.perf_counter() < deadline:
            fewer = np.delete(sets, slice(at, at + size))
            used = find(facts.take(fewer)) if len(fewer) else fewer
            if len(used):
                at = int((used < at).sum())
                sets = fewer[used]
            else:
                at += size
        if size == 1:
            return tuple(sorted(int(number) for number in sets))
        size = min(size // 2, max(1, len(sets) // 2))


def _follow(facts: Facts, log: ProofLog, person: int) -> NDArray[np.intp]:
    """Sets that led to the proof of a person, sets that those conclusions rest on, and so on."""
    seen = np.zeros(len(facts), np.bool_)
    done = np.zeros(len(facts) + len(log.certificates), np.bool_)
    causes = np.unique(log.reasons[person])
    while len(causes := causes[(causes >= 0) & ~done[causes]]):
        done[causes] = True
        sets = [causes[causes < len(facts)]]
        sets += [log.certificates[c - len(facts)].sets for c in causes[causes >= len(facts)]]
        new = np.unique(np.concatenate(sets))
        new = new[~seen[new]]
        seen[new] = True
        causes = np.unique(log.reasons[np.unique(facts.sets[new].indices)]) if len(new) else new
    return np.flatnonzero(seen)


def _drop_strangers(facts: Facts, person: int) -> tuple[Facts, int]:
    """The facts without people who are in none of their sets, and the row of a person there."""
    inside = np.zeros(facts.people, np.bool_)
    inside[person] = True
    for table in facts.tables:
        for people, codes in table.split():
            inside[people] |= codes > 0
    rows = np.flatnonzero(inside)
    tables = tuple(table.take_people(rows, facts.people) for table in facts.tables)
    return replace(facts, tables=tables, people=len(rows)), int(np.searchsorted(rows, person))


def _find_sets(
    facts: Facts, person: int, group: int, solver: LinearSolver, deadline: float
) -> NDArray[np.intp]:
    """Sets that prove that a person is of a group: by propagation, then by one linear program."""
    rounds = np.empty((facts.people, facts.groups), np.int32)
    possible, reasons = rule_out(facts, None, rounds)
    needed = np.zeros(possible.shape, np.bool_)
    needed[person] = ~possible[person]
    if possible[person].sum() == 1:
        return np.flatnonzero(trace_ruled_out(facts, reasons, rounds, needed))
    used = np.zeros(len(facts), np.bool_)
    for other in np.flatnonzero(possible[person]):
        if other == group:
            continue
        # With two groups, the program is about the second, whichever is to be ruled out.
        about = 1 if facts.groups == 2 else int(other)
        program, people = GroupProgram.of(facts, possible, about)
        place = np.flatnonzero(people == person)
        if not len(place):
            return np.zeros(0, np.intp)
        column = program.pattern[place[0]]
        cost = np.zeros(len(program.most))
        cost[column] = 1.0 if about == other else -1.0
        below = 1 if about == other else 1 - int(program.most[column])
        solution = solver.maximise(
            cost, program.matrix, program.low, program.high, program.most, deadline, corner=True
        )
        rows = np.zeros(0, np.intp)
        if solution is not None:
            rows = np.flatnonzero(program.find_proof(cost, solution.duals, below))
        if not len(rows):
            return rows
        used[find_origins(facts, program.facts, rows)] = True
    # People subtracted from these sets were decided by others.
    members = np.unique(facts.sets[np.flatnonzero(used)].indices)
    needed[members] = ~possible[members]
    return np.flatnonzero(used | trace_ruled_out(facts, reasons, rounds, needed))
