"""A problem as counts: classes of people, conditions on counts, and the cost of counts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpbench.base.argument_types import check_arguments
from fpbench.claims.constraints import KnownPeople, LinearConstraint
from fpbench.claims.counts import Classes, Condition, Counts
from fpbench.components.records import Correction, Problem, SolverStatus
from fpbench.data.sample import Codes

_Weights = NDArray[np.float64]


@check_arguments
@dataclass(frozen=True)
class CountedProblem:
    """A problem as a corrector on counts sees it; every part is computed on first use.

    People of one class and one guessed group differ only in the cost of changing them, so the
    cheapest are changed first, and a correction is a table of counts (J, K). Known people keep
    their group; the others are *free*.

    Attributes
    ----------
    problem
        The problem that is counted.
    """

    problem: Problem

    @cached_property
    def classes(self) -> Classes:
        """The coarsest classes that the constraints distinguish."""
        problem = self.problem
        labels = _list_labels(problem)
        sizes = []
        for label in labels:
            inside = self.inside(label)
            part = problem.predictions if inside is None else problem.predictions[inside]
            positive = int(np.count_nonzero(part))
            sizes += [len(part) - positive, positive]
        both = [(label, prediction) for label in labels for prediction in (0, 1)]
        of_label, of_prediction = zip(*both, strict=True)
        return Classes(of_label, of_prediction, tuple(sizes), problem.groups)

    def inside(self, label: int | None) -> NDArray[np.bool_] | None:
        """Mask (n,) of the people with a label; None for everyone."""
        if label is None:
            return None
        assert self.problem.labels is not None
        return np.equal(self.problem.labels, label)

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """Conditions on the counts."""
        lists = (constraint.conditions(self.classes) for constraint in self.problem.constraints)
        return tuple(condition for conditions in lists for condition in conditions)

    @cached_property
    def linear(self) -> tuple[LinearConstraint, ...]:
        """Bounds on weighted sums, which are not conditions on counts."""
        return tuple(one for one in self.problem.constraints if isinstance(one, LinearConstraint))

    @cached_property
    def known(self) -> dict[int, int] | None:
        """Known people and their groups; None if constraints contradict each other."""
        known: dict[int, int] = {}
        for constraint in self.problem.constraints:
            if isinstance(constraint, KnownPeople):
                rows, groups = constraint.pairs()
                for row, group in zip(rows.tolist(), groups.tolist(), strict=True):
                    if known.setdefault(row, group) != group:
                        return None
        return known

    @cached_property
    def start(self) -> Codes:
        """(n,) initial groups: the guess, and the truth of known people."""
        if not self.known:
            return self.problem.guess
        start = self.problem.guess.copy()
        start[list(self.known)] = list(self.known.values())
        return start

    @cached_property
    def free(self) -> NDArray[np.bool_] | None:
        """(n,) true for people who may be changed; None for everyone."""
        if not self.known:
            return None
        free = np.ones(len(self.problem.guess), dtype=bool)
        free[list(self.known)] = False
        return free

    @cached_property
    def members(self) -> NDArray[np.int8]:
        """(n,) class of each person; -1 for those no constraint looks at."""
        predictions = self.problem.predictions.astype(np.int8, copy=False)
        labels = list(dict.fromkeys(self.classes.labels))
        if labels == [None]:
            return predictions
        codes = np.full(len(predictions), -1, dtype=np.int8)
        for number, label in enumerate(labels):
            part = self.inside(label)
            codes[part] = 2 * number + predictions[part]
        return codes

    @cached_property
    def base(self) -> float:
        """Cost of correcting known people."""
        return float(self._costs[self.start != self.problem.guess].sum()) if self.known else 0.0

    @cached_property
    def counts(self) -> Counts:
        """(J, K) counts of the initial groups, known people included."""
        return self._count(self.members >= 0)

    @cached_property
    def movable(self) -> Counts:
        """(J, K) counts of the free people among them."""
        inside = self.members >= 0
        return self._count(inside if self.free is None else inside & self.free)

    def weights(self, j: int, k: int) -> _Weights:
        """Ascending costs of moving the free people of a class out of their guessed group."""
        return self._sort_cell(j, k)[1]

    def prefix_costs(self, j: int, k: int) -> _Weights:
        """Least cost of moving 0, 1, 2, ... of them."""
        return np.concatenate([[0.0], np.cumsum(self.weights(j, k))])

    def cost(self, counts: Counts) -> float:
        """Least cost of reaching counts, known people included."""
        leaving = np.maximum(self.counts - counts, 0)
        return self.base + sum(
            float(self.weights(j, k)[: leaving[j, k]].sum()) for j, k in np.argwhere(leaving)
        )

    def holds(self, counts: Counts) -> bool:
        """Whether counts can be reached and satisfy every condition, exactly."""
        reachable = (counts.sum(axis=1) == self.classes.sizes).all()
        return bool(
            reachable
            and (counts >= self.counts - self.movable).all()
            and all(condition.holds(counts) for condition in self.conditions)
        )

    def correction(
        self, counts: Counts, status: SolverStatus, bound: float | None = None
    ) -> Correction:
        """The cheapest correction that has these counts; proven optimal ones are their own bound.

        Which of the leaving people goes to which group does not affect the cost: they are assigned
        in order of cost to groups in order of number.
        """
        values = np.array(self.start)
        for j in range(len(counts)):
            change = counts[j] - self.counts[j]
            leaving = np.concatenate([self._sort_cell(j, k)[0][:-m] if (m := int(c)) < 0 else []
                                   for k, c in enumerate(change)]).astype(np.intp)  # fmt: skip
            values[leaving] = np.repeat(np.arange(len(change)), np.maximum(change, 0))
        cost = self.cost(counts)
        if status is SolverStatus.OPTIMAL:
            bound = cost
        return Correction(values, status, cost, bound, self.moves(values))

    def correction_of(self, values: Codes, **more: Any) -> Correction:
        """What a change of everybody's guess costs and moves, with no claim that it is cheapest.

        `more`: other fields of the correction.
        """
        changed = values != self.problem.guess
        cost = float(self._costs[changed].sum())
        return Correction(values, None, objective=cost, moves=self.moves(values), **more)

    def moves(self, values: Codes) -> NDArray[np.int64]:
        """(2, K, K) people by prediction, group guessed and corrected group, changes only."""
        problem, k = self.problem, self.problem.groups
        changed = values != problem.guess
        moves = np.zeros((2, k, k), dtype=np.int64)
        at = (problem.predictions[changed], problem.guess[changed], values[changed])
        np.add.at(moves, at, 1)
        return moves

    @cached_property
    def _costs(self) -> _Weights:
        weights = self.problem.weights
        return np.ones(len(self.start)) if weights is None else weights

    def _count(self, who: NDArray[np.bool_]) -> Counts:
        shape = len(self.classes.sizes), self.classes.groups
        cells = self.members[who].astype(np.int64) * shape[1] + self.start[who]
        return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)

    def _sort_cell(self, j: int, k: int) -> tuple[NDArray[np.intp], _Weights]:
        """Rows and costs of the free people of a cell, cheapest first, among equals in order."""
        if (j, k) not in self._cells:
            mine = (self.members == j) & (self.start == k)
            rows = np.flatnonzero(mine if self.free is None else mine & self.free)
            costs = self._costs[rows]
            order = np.argsort(costs, kind="stable")
            self._cells[j, k] = rows[order], costs[order]
        return self._cells[j, k]

    @cached_property
    def _cells(self) -> dict[tuple[int, int], tuple[NDArray[np.intp], _Weights]]:
        return {}


def _list_labels(problem: Problem) -> tuple[int | None, ...]:
    """Labels of the people that the constraints look at; None if labels do not matter."""
    looked_at = {label for constraint in problem.constraints for label in constraint.labels}
    if looked_at <= {None}:
        return (None,)
    return (0, 1) if len(looked_at) > 1 else tuple(looked_at)
