"""Small problems that a corrector is judged on, and whether its answers are right."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from fpbench.claims.conditions import Constraint
from fpbench.claims.constraints import (
    KnownPeople,
    KnownUnfairness,
    LinearConstraint,
    RateBounds,
    ShareBounds,
)
from fpbench.claims.rates import FORMS, METRICS, RateConstraint
from fpbench.components.records import Correction, Problem, SolverStatus
from fpbench.testing.brute_force import least_cost, satisfies
from fpbench.testing.world import fill

_PEOPLE = {2: 8, 3: 6}
"""People of a problem, by its number of groups: few enough to try everything."""
_TOLERANCES = (0.0, 0.1, 0.25)


class _Unknown(Constraint):
    """A constraint that no corrector has heard of."""

    @property
    def word(self) -> str:
        """A word that nobody expresses."""
        return "kit-unknown"

    @property
    def labels(self) -> tuple[int | None, ...]:
        """It looks at everyone."""
        return (None,)


def unknown_constraint() -> Constraint:
    """A constraint that no corrector can express."""
    return _Unknown()


def problems(expresses: frozenset[str], k: int) -> Iterator[Problem]:
    """Problems of k groups about everything that a corrector says it can express."""
    rng, n = fill(f"problems {k}"), _PEOPLE[k]
    for number, constraint in enumerate(_constraints(expresses, n, k)):
        guess, said = rng.integers(0, k, n), rng.integers(0, 2, n)
        weights = None if number % 3 == 0 else np.round(rng.uniform(1, 4, n), 2)
        yield Problem(guess, k, said, rng.integers(0, 2, n), (constraint,), weights)


def _constraints(expresses: frozenset[str], n: int, k: int) -> Iterator[Constraint]:
    about_rates = [(form, metric) for form in FORMS if form in expresses for metric in METRICS]
    for number, (form, metric) in enumerate(about_rates):
        yield RateConstraint(metric, _TOLERANCES[number % len(_TOLERANCES)], form)
    others = (
        ShareBounds(0, 0.2, 0.5),
        RateBounds(1, 0.0, 0.5),
        *(KnownUnfairness("statistical-parity", 0.2, 1.0, form) for form in FORMS),
        KnownPeople([0, n - 1], [k - 1, 0]),
        LinearConstraint(0, np.arange(n) % 3, 1, 4),
    )
    yield from (constraint for constraint in others if constraint.word in expresses)


def verdict(problem: Problem, found: Any) -> str:
    """What is wrong with an answer, by brute force; empty if nothing, or if it says nothing."""
    if not isinstance(found, Correction):
        return f"correct gave a {type(found).__name__}, not a Correction"
    status: Any = found.status
    if not isinstance(status, SolverStatus | None):
        return f"the status {status!r} is not a SolverStatus"
    least, about = least_cost(problem), f"about {problem.constraints[0]!r}"
    if found.status is SolverStatus.INFEASIBLE and least is not None:
        return f"a problem {about} is possible, and it says infeasible"
    # Without a status it solved nothing, and says nothing of a claim.
    if found.status is None or found.values is None:
        return ""
    values = np.asarray(found.values)
    if not satisfies(problem, values):
        return f"its answer to a problem {about} does not satisfy it"
    costs = np.ones(len(values)) if problem.weights is None else problem.weights
    cost = float(costs[values != problem.guess].sum())
    assert least is not None  # this answer is one
    return _wrong_cost(found, cost, least, about)


def _wrong_cost(found: Correction, cost: float, least: float, about: str) -> str:
    """What is wrong with what an answer says of its cost."""
    if found.objective is not None and not _same(found.objective, cost):
        return f"it says an answer costs {found.objective:g}, which costs {cost:g}"
    if found.status is SolverStatus.OPTIMAL and not _same(cost, least):
        return f"its optimum of a problem {about} costs {cost:g}, and brute force found {least:g}"
    if found.bound is not None and found.bound > least and not _same(found.bound, least):
        return f"its bound {found.bound:g} is above the least cost {least:g}"
    return ""


def _same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-9)
