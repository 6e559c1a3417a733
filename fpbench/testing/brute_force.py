"""Small problems for correctors, and their solution by brute force."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpbench.base.text import to_fraction
from fpbench.claims.conditions import Constraint
from fpbench.claims.constraints import (
    KnownPeople,
    KnownUnfairness,
    LinearConstraint,
    RateBounds,
    ShareBounds,
)
from fpbench.claims.counts import Classes
from fpbench.claims.rates import FORMS, METRICS, RateConstraint
from fpbench.claims.set_counts import Facts
from fpbench.components.records import Correction, Problem, SolverStatus
from fpbench.testing.fixtures import make_generator

_PEOPLE = {2: 8, 3: 6}
"""Number of people of a problem, by number of groups: few enough for brute force."""
_TOLERANCES = (0.0, 0.1, 0.25)


def find_least_cost(problem: Problem) -> float | None:
    """Least cost over all K^n vectors that satisfy all constraints; None if none does.

    `problem`: with few people: n log K should be below about 15.
    """
    costs = np.ones(len(problem.guess)) if problem.weights is None else problem.weights
    feasible = [
        float(costs[values != problem.guess].sum())
        for values in map(np.array, product(range(problem.groups), repeat=len(problem.guess)))
        if satisfies(problem, values)
    ]
    return min(feasible, default=None)


def satisfies(problem: Problem, values: NDArray[Any]) -> bool:
    """Whether a vector of groups satisfies all constraints, in fractions."""
    labels = problem.predictions * 0 if problem.labels is None else problem.labels
    number = 2 * np.asarray(labels) + problem.predictions
    sizes = np.bincount(number, minlength=4)
    classes = Classes((0, 0, 1, 1), (0, 1, 0, 1), tuple(sizes.tolist()), problem.groups)
    counts = np.bincount(number * problem.groups + values, minlength=4 * problem.groups)
    return all(
        _holds(constraint, values, classes, counts.reshape(4, -1))
        for constraint in problem.constraints
    )


def _holds(
    constraint: Constraint, values: NDArray[Any], classes: Classes, counts: NDArray[np.int64]
) -> bool:
    """`counts`: (4, K) people of each class and group."""
    if isinstance(constraint, KnownPeople):
        rows = np.asarray(constraint.rows, dtype=np.intp)
        return bool((values[rows] == np.asarray(constraint.groups)).all())
    if isinstance(constraint, Facts):
        numbers = constraint.count(np.eye(classes.groups)[values])[~constraint.noisy]
        low, high = (end[~constraint.noisy] for end in (constraint.low, constraint.high))
        return bool(((low <= numbers) & (numbers <= high)).all())
    if isinstance(constraint, LinearConstraint):
        mine = np.asarray(constraint.coefficients)[values == constraint.group]
        total = sum(map(to_fraction, mine.tolist()), Fraction(0))
        return to_fraction(constraint.low) <= total <= to_fraction(constraint.high)
    return all(condition.holds(counts) for condition in constraint.conditions(classes))


class _Unknown(Constraint):
    """A constraint that no corrector knows."""

    @property
    def word(self) -> str:
        """A word that no corrector expresses."""
        return "kit-unknown"

    @property
    def labels(self) -> tuple[int | None, ...]:
        """All people."""
        return (None,)


def make_unknown_constraint() -> Constraint:
    """A constraint that no corrector can express."""
    return _Unknown()


def make_problems(expresses: frozenset[str], k: int) -> Iterator[Problem]:
    """Small problems of k groups, one for each constraint that a corrector expresses."""
    rng, n = make_generator(f"problems {k}"), _PEOPLE[k]
    for number, constraint in enumerate(_list_constraints(expresses, n, k)):
        guess, predictions = rng.integers(0, k, n), rng.integers(0, 2, n)
        weights = None if number % 3 == 0 else np.round(rng.uniform(1, 4, n), 2)
        yield Problem(guess, k, predictions, rng.integers(0, 2, n), (constraint,), weights)


def _list_constraints(expresses: frozenset[str], n: int, k: int) -> Iterator[Constraint]:
    about_rates = [(form, metric) for form in FORMS if form in expresses for metric in METRICS]
    for number, (form, metric) in enumerate(about_rates):
        yield RateConstraint(metric, _TOLERANCES[number % len(_TOLERANCES)], form)
    for form in dict.fromkeys(form for form, _ in about_rates):
        yield RateConstraint("equalized-odds", _TOLERANCES[1], form, every_slice=True)
    others = (
        ShareBounds(0, 0.2, 0.5),
        RateBounds(1, 0.0, 0.5),
        *(KnownUnfairness("statistical-parity", 0.2, 1.0, form) for form in FORMS),
        KnownPeople([0, n - 1], [k - 1, 0]),
        LinearConstraint(0, np.arange(n) % 3, 1, 4),
        state_facts(n, k),
    )
    yield from (constraint for constraint in others if constraint.word in expresses)


def state_facts(n: int, k: int) -> Facts:
    """Counts in two overlapping sets: a range for one, exact for the other."""
    members = np.column_stack([np.arange(n) % 2 == 0, np.arange(n) < n - 1])
    low, high = np.zeros((2, k)), np.full((2, k), n)
    low[0, 0], high[0, 0], low[1, 1], high[1, 1] = 1, 2, 2, 2
    return Facts.from_counts(members, low, high)


def judge(problem: Problem, answer: Any) -> str:
    """The fault of an answer, by brute force; empty if there is none."""
    if not isinstance(answer, Correction):
        return f"correct gave a {type(answer).__name__}, not a Correction"
    status: Any = answer.status
    if not isinstance(status, SolverStatus | None):
        return f"the status {status!r} is not a SolverStatus"
    least, about = find_least_cost(problem), f"about {problem.constraints[0]!r}"
    if answer.status is SolverStatus.INFEASIBLE and least is not None:
        return f"a problem {about} is feasible, but it says infeasible"
    # Without a status, the answer makes no statement about the claim.
    if answer.status is None or answer.values is None:
        return ""
    values = np.asarray(answer.values)
    if not satisfies(problem, values):
        return f"its answer to a problem {about} does not satisfy it"
    costs = np.ones(len(values)) if problem.weights is None else problem.weights
    cost = float(costs[values != problem.guess].sum())
    assert least is not None  # this answer is a solution
    return _explain_wrong_cost(answer, cost, least, about)


def _explain_wrong_cost(answer: Correction, cost: float, least: float, about: str) -> str:
    """The fault of an answer's stated cost, optimality or bound."""
    if answer.objective is not None and not _is_same(answer.objective, cost):
        return f"it says an answer costs {answer.objective:g}, but it costs {cost:g}"
    if answer.status is SolverStatus.OPTIMAL and not _is_same(cost, least):
        return f"its optimum of a problem {about} costs {cost:g}, but brute force found {least:g}"
    if answer.bound is not None and answer.bound > least and not _is_same(answer.bound, least):
        return f"its bound {answer.bound:g} is above the least cost {least:g}"
    return ""


def _is_same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-9)
