"""Whose group follows from several counts together: proofs by linear programs.

Counts of one group are linear in who belongs to it, and whole. If some people's memberships sum to
less than 1 in every solution of the linear relaxation, none of them belongs to the group.
Candidates are those whom an interior solution puts at an end, so that two programs do: one for the
candidates, and one for the greatest number of them who may be elsewhere.

No proof rests on the solver: any multipliers of the rows give a bound (weak duality). Those of the
solver are rounded, and the bound is computed in whole numbers.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, identity

from fpbench.auditing.fairness_reports.facts import Facts, Floats, Mask
from fpbench.auditing.fairness_reports.interior_point import Solution, maximise
from fpbench.auditing.fairness_reports.propagation import propagate

_NEAR = 1e-3
"""How near to its end a number is that may have to be there."""
_BITS = 30
"""Binary digits after the point of multipliers in proofs."""
_ROUNDS = 4
"""Times that candidates are fewer and tried again."""


def prove(facts: Facts, possible: Mask | None = None, *, seconds: float = 30.0) -> Mask:
    """The groups that each person may have, (n, K), by `propagate` and linear programs.

    Parameters
    ----------
    facts
        What is known; noisy facts are not looked at.
    possible
        (n, K) groups that people may have by anything else.
    seconds
        The programs end then, and what was not proven is left out. Of more than two groups each
        has its part of the time.

    Raises
    ------
    ContradictionError
        If no assignment of groups satisfies the facts, as far as this finds out.

    Notes
    -----
    Of more than two groups, one at a time is looked at against all others together.
    """
    started = time.perf_counter()
    allowed = propagate(facts, possible)
    hard = facts.take(~facts.noisy & ~facts.derived)
    groups = [1] if facts.groups == 2 else list(range(facts.groups))
    for done, group in enumerate(groups):
        left = seconds - (time.perf_counter() - started)
        program, people = _Program.of(hard, allowed, group)
        if not len(program.most) or left <= 0:
            continue
        before = allowed.copy()
        deadline = time.perf_counter() + left / (len(groups) - done)
        none, all_ = program.prove(deadline)
        for people_of, others in ((none, False), (all_, True)):
            who = people[people_of]
            allowed[who] &= (np.arange(facts.groups) == group) == others
        if (allowed != before).any():
            allowed = propagate(facts, allowed)
    return allowed


@dataclass(frozen=True)
class _Program:
    """Who belongs to one group: how many of the people that have the same sets, `x` of `most`."""

    facts: Facts
    """Those that are left; what is decided is subtracted."""
    matrix: csr_array
    """(sets, patterns)."""
    low: Floats
    high: Floats
    most: Floats
    """(patterns,) people of each."""
    pattern: NDArray[np.intp]
    """(people,) the pattern of each person."""

    @classmethod
    def of(cls, facts: Facts, allowed: Mask, group: int) -> tuple[_Program, NDArray[np.intp]]:
        """The program of what is left, and the rows of its people."""
        left, rest = facts.remove_people(allowed)
        free = np.flatnonzero(allowed[rest, group] & (np.diff(left.membership.indptr) > 0))
        membership = left.membership[free]
        draws = np.random.default_rng(20260102).integers(2**63, size=(len(left), 2))
        _, first, pattern = np.unique(
            membership @ draws, axis=0, return_index=True, return_inverse=True
        )
        matrix = membership[first].T.tocsr()
        used = np.flatnonzero(np.diff(matrix.indptr) > 0)
        most = np.bincount(pattern, minlength=len(first)).astype(np.float64)
        low, high = left.low[used, group], left.high[used, group]
        return cls(left.take(used), matrix[used], low, high, most, pattern), rest[free]

    def prove(self, deadline: float) -> tuple[Mask, Mask]:
        """Masks of the people of whom nobody belongs to the group, and of those who all do."""
        nobody = np.zeros(len(self.pattern), np.bool_), np.zeros(len(self.pattern), np.bool_)
        inner = self._maximise(np.zeros(len(self.most)), deadline)
        if inner is None:
            self.check_contradiction(deadline)
            return nobody
        none, all_ = inner.x < _NEAR, inner.x > self.most - _NEAR
        for _ in range(_ROUNDS):
            if not (none | all_).any():
                break
            # How many candidates are not where they would have to be: whole, and at least 0.
            cost = none.astype(np.float64) - all_
            solution = self._maximise(cost, deadline)
            if solution is None:
                break
            if self.bound(cost, solution.duals) + int(self.most[all_].sum()) < 1:
                return none[self.pattern], all_[self.pattern]
            none &= solution.x < _NEAR
            all_ &= solution.x > self.most - _NEAR
        return nobody

    def check_contradiction(self, deadline: float) -> None:
        """Raise ContradictionError if counts cannot all hold, even of parts of people.

        The multipliers of the program in which counts may be missed, at a price of 1 each, prove
        it; the counts with multipliers far from 0 are named.
        """
        rows = len(self.low)
        slack = identity(rows, np.int8, format="csr")
        cost = np.concatenate([np.zeros(len(self.most)), -np.ones(2 * rows)])
        most = np.concatenate([self.most, np.full(2 * rows, np.inf)])
        wide = csr_array(hstack([self.matrix, slack, -slack], format="csr"))
        left = deadline - time.perf_counter()
        solution = maximise(cost, wide, self.low, self.high, most, left)
        if solution is None:
            return
        nothing = np.zeros(len(self.most))
        for least in (0.9, 0.5, 0.2, 0.1, 0.01, 0.0):
            duals = np.where(np.abs(solution.duals) > least, solution.duals, 0.0)
            if self.bound(nothing, duals) < 0:
                raise self.facts.contradiction(np.flatnonzero(duals))

    def bound(self, cost: Floats, duals: Floats) -> Fraction:
        """What cost @ x is at most, by multipliers of the rows; exact, whatever they are."""
        unit = 1 << _BITS
        sums = np.bincount(self.matrix.indices, minlength=len(self.most)).max(initial=1)
        greatest = float(np.abs(duals).max(initial=0.0))
        if not greatest * sums < 2**31:  # sums of whole numbers would not fit
            return Fraction(int(np.maximum(cost, 0) @ self.most))
        y = np.rint(duals * unit).astype(np.int64)
        reduced = np.rint(cost).astype(np.int64) * unit - self.matrix.T.astype(np.int64) @ y
        ends = np.where(y > 0, self.high, self.low)
        total = sum(int(a) * int(b) for a, b in zip(y, ends, strict=True))
        gains = np.maximum(reduced, 0)
        total += sum(int(a) * int(b) for a, b in zip(gains, self.most, strict=True) if a)
        return Fraction(total, unit)

    def _maximise(self, cost: Floats, deadline: float) -> Solution | None:
        left = deadline - time.perf_counter()
        return maximise(cost, self.matrix, self.low, self.high, self.most, left)
