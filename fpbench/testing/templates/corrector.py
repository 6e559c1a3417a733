"""A corrector: it changes a guess so that it satisfies all constraints."""

# `fpbench check .` runs it with three groups, and twice with one seed, and checks that it does not
# modify its input. If it has no answer, it raises `fpbench.InputError`. The difficult inputs:
# - a constraint that nobody can express (`self.check` refuses it)
# - small problems, whose answers are compared with brute force

from collections.abc import Iterator
from itertools import product

import numpy as np

from fpbench import Correction, Corrector, Problem, hookimpl
from fpbench.claims import RateConstraint
from fpbench.plugin import SolverStatus


class Example(Corrector):
    """Changes guesses one by one, always the one that reduces the violation most.

    It may get stuck, and its answer may not be the cheapest: its status is `feasible`, not
    `optimal`.
    """

    name = "example-name"
    summary = "changes one guess after the other"
    expresses = frozenset({"to-overall"})

    def correct(self, problem: Problem) -> Correction:
        """Search."""
        self.check(problem)
        values = problem.guess.copy()
        weights = np.ones(len(values)) if problem.weights is None else problem.weights
        missing = _count_missing(problem, values)
        while missing > 0:
            tried = list(_list_changes(problem, values, weights))
            best = min(tried, key=lambda one: _count_missing(problem, one), default=values)
            if _count_missing(problem, best) >= missing:
                return Correction(None, SolverStatus.TIMEOUT)
            values, missing = best, _count_missing(problem, best)
        cost = float(weights[values != problem.guess].sum())
        return Correction(values, SolverStatus.FEASIBLE, cost)


def _count_missing(problem: Problem, values: np.ndarray) -> float:
    """The total violation of the constraints; every group needs a member."""
    far = 0.0
    for claim in problem.constraints:
        assert isinstance(claim, RateConstraint)
        unfairness = claim.unfairness(values, problem.predictions, problem.labels, problem.groups)
        far += max(float(unfairness - claim.exact_tolerance), 0.0)
        everybody = np.ones(len(values), dtype=bool)
        slices = [everybody if one is None else one for one in claim.slices(problem.labels)]
        whole = [np.logical_or.reduce(slices)]
        for people in slices if claim.every_slice else whole:
            empty = problem.groups - len(np.unique(values[people]))
            far += empty if people.any() else 0
    return far


def _list_changes(
    problem: Problem, values: np.ndarray, weights: np.ndarray
) -> Iterator[np.ndarray]:
    """Values with one more change, the cheapest of each type."""
    labels = np.zeros(len(values)) if problem.labels is None else problem.labels
    for predicted, label, old in product((0, 1), (0, 1), range(problem.groups)):
        people = (problem.predictions == predicted) & (labels == label) & (values == old)
        rows = np.flatnonzero(people & (values == problem.guess))
        for new in range(problem.groups) if len(rows) else ():
            if new != old:
                changed = values.copy()
                changed[rows[np.argmin(weights[rows])]] = new
                yield changed


@hookimpl
def fpbench_correctors() -> list[type[Corrector]]:
    """Register the component."""
    return [Example]
