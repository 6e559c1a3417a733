"""The exact correction for any number of groups, and for conditions that link parts.

Only the numbers of people who leave and enter each group matter, class by class (module
`counting`), and the cost of leaving is convex and piecewise linear. Departs from the model of Ferry
et al. (SaTML 2023), whose 2K(K - 1) counts of moves a constraint solver cannot finish for many
groups: here a linear program with ever finer pieces finds where the optimum lies, a small integer
program with every breakpoint near it finds the optimum and a bound, and conditions that are not
linear, or too close for floating point, are decided exactly, by branching.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from fpbench.claims.conditions import RatesWithin
from fpbench.claims.counts import Condition, Counts
from fpbench.components.records import Correction, SolverStatus
from fpbench.correction.exact.cost_programs import PROVEN, LinkedPrograms
from fpbench.correction.exact.counting import CountedProblem

_FINE = 2**20
"""Parts of a person that counts are rounded to before their rates are compared."""


def solve_many_groups(counted: CountedProblem, time_limit: float) -> Correction:
    """Correct a guess about any number of groups; proven optimal unless time runs out.

    `counted`: a problem whose constraints are about counts. `time_limit`: seconds.

    Returns: `optimal` or `infeasible`; `feasible` with a bound, or `timeout`, when time runs out.
    """
    if counted.known is None:
        return Correction(None, SolverStatus.INFEASIBLE)
    return _BranchAndBound(counted, time.perf_counter() + time_limit).run()


@dataclass(order=True)
class _Node:
    bound: float
    number: int
    conditions: tuple[Condition, ...]


class _BranchAndBound:
    """Branch and bound over conditions: relax to rows, solve, check exactly, branch."""

    def __init__(self, counted: CountedProblem, deadline: float) -> None:
        self._counted, self._deadline = counted, deadline
        self._programs = LinkedPrograms(counted, deadline)
        self._numbers = itertools.count()
        self._open: list[_Node] = []
        self._best: Counts | None = None
        self._cost = np.inf

    def run(self) -> Correction:
        counted = self._counted
        self._push(0.0, [counted.conditions])
        while self._open and not self._proven(self._open[0].bound):
            node = heapq.heappop(self._open)
            if not self._expand(node):
                self._push(node.bound, [node.conditions])
                break
        if self._best is None:
            status = SolverStatus.TIMEOUT if self._open else SolverStatus.INFEASIBLE
            return Correction(None, status)
        bound = min(self._open[0].bound, self._cost) if self._open else self._cost
        if self._proven(bound):
            return counted.correction(self._best, SolverStatus.OPTIMAL)
        return counted.correction(self._best, SolverStatus.FEASIBLE, counted.base + bound)

    def _push(self, bound: float, children: Sequence[tuple[Condition, ...]]) -> None:
        for conditions in children:
            heapq.heappush(self._open, _Node(bound, next(self._numbers), conditions))

    def _expand(self, node: _Node) -> bool:
        """Solve or split a node; returns False if time runs out."""
        conditions = node.conditions
        relaxed, least = self._programs.relax(conditions)
        bound = max(node.bound, least)
        if relaxed is None or self._proven(bound):
            return True
        if time.perf_counter() > self._deadline:
            return False
        # Rates far apart differ however they are rounded to whole people.
        fine = np.rint(relaxed * _FINE).astype(np.int64)
        unequal = next(
            (c for c in conditions if isinstance(c, RatesWithin) and _has_rate_gap(c, fine)), None
        )
        if unequal is not None:
            self._push(bound, [(*conditions, *way) for way in unequal.alternatives(fine)])
            return True
        counts, least, finished = self._programs.solve(conditions)
        bound = max(bound, least)
        if counts is not None and not self._proven(bound):
            self._push(bound, self._check_counts(counts, conditions))
        return finished

    def _proven(self, bound: float) -> bool:
        """Whether this bound excludes anything cheaper than the best so far."""
        return bound >= self._cost * (1 - PROVEN)

    def _check_counts(
        self, counts: Counts, conditions: tuple[Condition, ...]
    ) -> list[tuple[Condition, ...]]:
        """Keep counts that satisfy all conditions; else return the branches of a violated one."""
        # The last one: branches of other conditions may be conditions that branch themselves.
        violated = next((c for c in reversed(conditions) if not c.holds(counts)), None)
        if violated is None:
            cost = self._counted.cost(counts) - self._counted.base
            if cost < self._cost:
                self._best, self._cost = counts, cost
            return []
        ways = violated.alternatives(counts)
        if isinstance(violated, RatesWithin) and self._best is None:
            # Counts that satisfy both branches satisfy the claim: an answer if time runs out.
            both, _, _ = self._programs.solve([*conditions, *ways[0], *ways[1]])
            if both is not None and all(c.holds(both) for c in conditions):
                self._best = both
                self._cost = self._counted.cost(both) - self._counted.base
        return [(*conditions, *way) for way in ways]


def _has_rate_gap(condition: RatesWithin, fine: Counts) -> bool:
    """Whether rates differ by more than rounding to whole people can explain."""
    _, members = condition.part.tally(fine)
    smallest = max(min(members), 1)
    # Rounding moves each of two rates by up to a person.
    close = condition.tolerance + Fraction(2 * _FINE, smallest)
    return not replace(condition, tolerance=min(close, Fraction(1))).holds(fine)
