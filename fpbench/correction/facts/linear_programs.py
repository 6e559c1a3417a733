"""Groups that follow from several counts together: proofs by linear programs.

Counts of one group are linear in who belongs to it, and whole. If some people's memberships sum to
less than 1 in every solution of the linear relaxation, none of them belongs to the group.
Candidates are people whom an interior solution puts at a bound, so two programs are enough: one
finds the candidates, the other the greatest number of them who may be off the bound.

Sets with few undecided people come first: their programs are small, take a fraction of a second,
and prove most of what can be proven; proven people are removed from other sets, which become small.
So a time limit cuts off only the largest programs.

No proof relies on the solver: any dual multipliers give a bound (weak duality). The solver's
multipliers are rounded, and the bound is computed in whole numbers.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, identity

from fpbench.base.argument_types import check_arguments
from fpbench.base.arguments import show_value
from fpbench.base.errors import InputError
from fpbench.claims.set_counts import Facts, Floats, Mask
from fpbench.correction.facts.interior_point import LinearSolver, Solution
from fpbench.correction.facts.propagation import check_possible, propagate_and_log

_NEAR = 1e-3
"""Distance to a bound within which a number is a candidate."""
_BITS = 30
"""Binary digits after the point of multipliers in proofs."""
_ROUNDS = 4
"""Most attempts, each with fewer candidates."""
_SIZES = 16, 64, 256
"""Most undecided people of a set in the first programs; then sets of any size."""
_WORTH, _WORTH_LAST = 0.1, 0.02
"""Share of the undecided people to be proven for another round at the same size."""


@check_arguments
def prove(
    facts: Facts,
    possible: Mask | None = None,
    *,
    seconds: float = 30.0,
    largest: int | None = None,
) -> Mask:
    """The groups that each person may have, (n, K), by `propagate` and linear programs.

    Parameters
    ----------
    facts
        The facts; noisy ones are ignored.
    possible
        (n, K) groups that are possible by other knowledge.
    seconds
        Time limit of the programs; what is not proven by then stays open.
    largest
        Most undecided people of a set that programs are about; unlimited by default. A limit makes
        results quick, and the same on any machine.

    Raises
    ------
    ContradictionError
        If no assignment of groups satisfies the facts, as far as this finds out.
    InputError
        If `seconds` is not a number.

    Notes
    -----
    With more than two groups, each is taken in turn against all others together.
    """
    check_possible(facts, possible)
    deadline = find_deadline(seconds)
    allowed, _ = propagate_and_log(facts, possible)
    with LinearSolver() as solver:
        for _ in prove_in_steps(facts, allowed, deadline, solver, largest):
            pass
    return allowed


def find_deadline(seconds: float) -> float:
    """The end of a time limit, by `time.perf_counter`; InputError if it is not a number."""
    if not isinstance(seconds, int | float | np.number) or math.isnan(seconds):
        raise InputError(f"seconds must be a number, not {show_value(seconds)}")
    return time.perf_counter() + float(seconds)


class Certificate(NamedTuple):
    """Why a linear program rules groups out, in whole numbers.

    If one of these people had a group that is ruled out, the multipliers times the counts of
    `group` in the sets would sum to more than the ends of their ranges allow.
    """

    group: int
    sets: NDArray[np.intp]
    """Sets that are needed, some only for their ranges narrow those of the same people."""
    multipliers: NDArray[np.int64]
    """One a set, times 2^30: above 0 of upper ends, below 0 of lower ones."""
    people: NDArray[np.intp]
    ruled_out: NDArray[np.intp]
    """The groups that are ruled out, one a person; a person may occur again."""


class GroupProof(NamedTuple):
    """A proof by a program about one group."""

    facts: Facts
    """The remaining facts that it is about."""
    group: int
    multipliers: NDArray[np.int64]
    """(M,) of their sets, times 2^30."""


class SetReasons(NamedTuple):
    """Groups that single sets rule out."""

    facts: Facts
    """The remaining facts."""
    reasons: NDArray[np.int32]
    """(people, K) the set that ruled each group out; -1 for none."""


class ProofStep(NamedTuple):
    """What is ruled out at once, and why."""

    people: NDArray[np.intp]
    out: Mask
    """(people, K)."""
    why: GroupProof | SetReasons


@dataclass(frozen=True)
class ProofLog:
    """Why groups were ruled out."""

    reasons: NDArray[np.int32]
    """(n, K) the set that ruled each group out, or M more than the certificate; -1 for none."""
    certificates: list[Certificate]
    """In the order of the proofs; those without people are of one set whose range others narrowed,
    when they became the same."""

    @classmethod
    def of(cls, facts: Facts) -> ProofLog:
        """An empty log of proofs by facts."""
        return cls(np.full((facts.people, facts.groups), -1, np.int32), [])

    def add(self, facts: Facts, step: ProofStep) -> None:
        """Note a step of proofs by facts."""
        people, out, why = step
        if isinstance(why, GroupProof):
            self._note(people, out, len(facts) + len(self.certificates))
            self._certify(facts, why, people, out)
        else:
            traced = self._trace(facts, why.facts, np.unique(why.reasons[out]))
            self._note(people, out, traced[why.reasons])

    def _note(self, people: NDArray[np.intp], out: Mask, reasons: int | NDArray[np.intp]) -> None:
        """Note why groups were ruled out, (people, K) `out`: one reason, or (people, K)."""
        rows, groups = np.nonzero(out)
        self.reasons[people[rows], groups] = np.broadcast_to(reasons, out.shape)[out]

    def _certify(
        self, facts: Facts, proof: GroupProof, people: NDArray[np.intp], out: Mask
    ) -> None:
        """Note a proof by a linear program, which rules out (people, K) `out`."""
        used = np.flatnonzero(proof.multipliers)
        sets = find_origins(facts, proof.facts, used)
        multipliers = np.zeros(len(sets), np.int64)
        own = _locate(facts, proof.facts.origin[used])
        multipliers[np.searchsorted(sets, own)] = proof.multipliers[used]
        rows, groups = np.nonzero(out)
        self.certificates.append(Certificate(proof.group, sets, multipliers, people[rows], groups))

    def _trace(self, facts: Facts, left: Facts, numbers: NDArray[np.intp]) -> NDArray[np.intp]:
        """Reasons (M',) for what each set of `left`, some of them these, rules out.

        A set whose range others narrowed, when they became the same, is a certificate with them.
        """
        reasons = _locate(facts, left.origin)
        none = np.zeros(0, np.intp)
        for number in numbers:
            if int(left.origin[number]) in left.repeats:
                reasons[number] = len(facts) + len(self.certificates)
                sets = find_origins(facts, left, np.array([number]))
                self.certificates.append(Certificate(0, sets, 0 * sets, none, none))
        return reasons


def prove_and_log(
    facts: Facts,
    possible: Mask | None,
    deadline: float,
    person: int | None = None,
    solver: LinearSolver | None = None,
) -> tuple[Mask, ProofLog]:
    """As `prove`, with the reasons; stops when a person is proven.

    A solver that is running already saves the start of a process.
    """
    log = ProofLog.of(facts)
    allowed, log.reasons[:] = propagate_and_log(facts, possible)
    with LinearSolver() if solver is None else nullcontext(solver) as running:
        steps = prove_in_steps(facts, allowed, deadline, running)
        while person is None or allowed[person].sum() > 1:
            step = next(steps, None)
            if step is None:
                break
            log.add(facts, step)
    return allowed, log


def prove_in_steps(
    facts: Facts,
    allowed: Mask,
    deadline: float,
    solver: LinearSolver,
    largest: int | None = None,
) -> Iterator[ProofStep]:
    """Rule out, in (n, K) `allowed`, what linear programs prove of propagated facts."""
    left, rest = facts.take(~facts.noisy).remove_people(allowed)
    groups = [1] if facts.groups == 2 else list(range(facts.groups))
    limit = math.inf if largest is None else largest
    sizes = [*(size for size in _SIZES if size < limit), limit]
    solver.started_by = deadline
    while sizes and len(rest) and len(left) and time.perf_counter() < deadline:
        programs = left.take(~left.derived & (left.sizes <= sizes[0]))
        own = allowed[rest]
        for done, group in enumerate(groups):
            if len(programs):
                now = time.perf_counter()
                until = now + (deadline - now) / (len(groups) - done)
                before = own.copy()
                proof = GroupProgram.prove_group(programs, own, group, solver, until)
                if proof is not None:
                    yield ProofStep(rest, before & ~own, proof)
        decided = (own != allowed[rest]).any(axis=1).sum()
        if decided:
            before = own
            own, reasons = propagate_and_log(left, before)
            allowed[rest] = own
            yield ProofStep(rest, before & ~own, SetReasons(left, reasons))
            left, still = left.remove_people(own)
            rest = rest[still]
        if decided <= (_WORTH_LAST if math.isinf(sizes[0]) else _WORTH) * len(rest):
            done_with = left.sizes.max(initial=0) <= sizes.pop(0)
            sizes = [] if done_with else sizes


def _locate(facts: Facts, origins: NDArray[np.intp]) -> NDArray[np.intp]:
    """Numbers of the sets of facts, in any order, that have these original numbers."""
    order = np.argsort(facts.origin)
    return np.asarray(order[np.searchsorted(facts.origin, origins, sorter=order)])


def find_origins(facts: Facts, left: Facts, numbers: NDArray[np.intp]) -> NDArray[np.intp]:
    """Numbers of the original facts that these sets of the remaining facts come from."""
    own = left.origin[numbers].tolist()
    narrowed = (other for origin in own for other in left.repeats.get(origin, ()))
    return np.flatnonzero(np.isin(facts.origin, [*own, *narrowed]))


def number_rows(pairs: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """First of each distinct row (P,), ascending, and which of them each row (n,) is.

    A third of the time of `np.unique` by rows.
    """
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    ascending = pairs[order]
    new = np.append(True, (ascending[1:] != ascending[:-1]).any(axis=1))[: len(pairs)]
    place = np.empty(len(pairs), np.intp)
    place[order] = np.cumsum(new) - 1
    return order[new], place


@dataclass(frozen=True)
class GroupProgram:
    """A program about one group: `x` of the `most` people with the same sets belong to it."""

    facts: Facts
    """The remaining facts; decided people are subtracted."""
    matrix: csr_array
    """(sets, patterns)."""
    low: Floats
    high: Floats
    most: Floats
    """(patterns,) people of each."""
    pattern: NDArray[np.intp]
    """(people,) the pattern of each person."""

    @classmethod
    def prove_group(
        cls, facts: Facts, allowed: Mask, group: int, solver: LinearSolver, deadline: float
    ) -> GroupProof | None:
        """Rule out, in (n, K) `allowed`, what programs about one group prove; None without one."""
        if time.perf_counter() > deadline:
            return None
        program, people = cls.of(facts, allowed, group)
        if not len(program.most):
            return None
        none, all_, multipliers = program.prove(solver, deadline)
        for who, others in ((none, False), (all_, True)):
            allowed[people[who]] &= (np.arange(facts.groups) == group) == others
        return GroupProof(program.facts, group, multipliers) if multipliers.any() else None

    @classmethod
    def of(cls, facts: Facts, allowed: Mask, group: int) -> tuple[GroupProgram, NDArray[np.intp]]:
        """The program of undecided people, and the rows of its people."""
        left, rest = facts.remove_people(allowed)
        free = np.flatnonzero(allowed[rest, group] & (np.diff(left.membership.indptr) > 0))
        membership = left.membership[free]
        draws = np.random.default_rng(20260102).integers(2**63, size=(len(left), 2))
        first, pattern = number_rows(membership @ draws)
        matrix = membership[first].T.tocsr()
        used = np.flatnonzero(np.diff(matrix.indptr) > 0)
        most = np.bincount(pattern, minlength=len(first)).astype(np.float64)
        low, high = left.low[used, group], left.high[used, group]
        return cls(left.take(used), matrix[used], low, high, most, pattern), rest[free]

    @check_arguments
    def prove(self, solver: LinearSolver, deadline: float) -> tuple[Mask, Mask, NDArray[np.int64]]:
        """Masks of people in patterns with nobody in the group, and in patterns with everybody.

        The third value is the multipliers of the proof (`find_proof`).
        """
        no = np.zeros(len(self.pattern), np.bool_)
        nobody = no, no, np.zeros(len(self.low), np.int64)
        inner = self._maximise(solver, np.zeros(len(self.most)), deadline)
        if inner is None:
            self.check_contradiction(solver, deadline)
            return nobody
        none, all_ = inner.x < _NEAR, inner.x > self.most - _NEAR
        for _ in range(_ROUNDS):
            if not (none | all_).any():
                break
            # How many candidates are not at their bound: whole, and at least 0.
            cost = none.astype(np.float64) - all_
            solution = self._maximise(solver, cost, deadline)
            if solution is None:
                break
            used = self.find_proof(cost, solution.duals, 1 - int(self.most[all_].sum()))
            if used.any():
                return none[self.pattern], all_[self.pattern], used
            none &= solution.x < _NEAR
            all_ &= solution.x > self.most - _NEAR
        return nobody

    def check_contradiction(self, solver: LinearSolver, deadline: float) -> None:
        """Raise ContradictionError if counts cannot all hold, even of parts of people.

        The multipliers of the program in which counts may be missed, at a price of 1 each, prove
        it; the counts with multipliers far from 0 are named.
        """
        rows = len(self.low)
        slack = identity(rows, np.int8, format="csr")
        cost = np.concatenate([np.zeros(len(self.most)), -np.ones(2 * rows)])
        most = np.concatenate([self.most, np.full(2 * rows, np.inf)])
        wide = csr_array(hstack([self.matrix, slack, -slack], format="csr"))
        solution = solver.maximise(cost, wide, self.low, self.high, most, deadline)
        if solution is None:
            return
        used = self.find_proof(np.zeros(len(self.most)), solution.duals, 0)
        if used.any():
            raise self.facts.contradiction(np.flatnonzero(used))

    def find_proof(self, cost: Floats, duals: Floats, below: int) -> NDArray[np.int64]:
        """Multipliers of the rows, times 2^30, that prove that cost @ x is less than a number.

        All are 0 if they do not.

        Rows with small multipliers are left out if the proof works without them.
        """
        for least in (0.9, 0.5, 0.2, 0.1, 0.01, 1e-4, 0.0):
            own = np.where(np.abs(duals) > least, duals, 0.0)
            if self.bound(cost, own) < below:
                return np.asarray(np.rint(own * (1 << _BITS)), np.int64)
        return np.zeros(len(duals), np.int64)

    def bound(self, cost: Floats, duals: Floats) -> Fraction:
        """An upper bound of cost @ x from multipliers of the rows; valid for any multipliers."""
        return bound_cost(cost, duals, self.matrix, self.low, self.high, self.most)

    def _maximise(self, solver: LinearSolver, cost: Floats, deadline: float) -> Solution | None:
        return solver.maximise(cost, self.matrix, self.low, self.high, self.most, deadline)


def bound_cost(
    cost: Floats, duals: Floats, matrix: csr_array, low: Floats, high: Floats, most: Floats
) -> Fraction:
    """An upper bound of cost @ x if low <= matrix @ x <= high and 0 <= x <= most, all whole.

    By multipliers of the rows; valid for any.
    """
    unit = 1 << _BITS
    sums = np.bincount(matrix.indices, minlength=len(most)).max(initial=1)
    greatest = float(np.abs(duals).max(initial=0.0))
    if not greatest * sums < 2**31:  # sums of whole numbers would not fit
        return Fraction(int(np.maximum(cost, 0) @ most))
    y = np.rint(duals * unit).astype(np.int64)
    reduced = np.rint(cost).astype(np.int64) * unit - matrix.T.astype(np.int64) @ y
    ends = np.where(y > 0, high, low)
    total = sum(int(a) * int(b) for a, b in zip(y, ends, strict=True))
    gains = np.maximum(reduced, 0)
    total += sum(int(a) * int(b) for a, b in zip(gains, most, strict=True) if a)
    return Fraction(total, unit)
