"""The least cost of a correction, by trying everything: slow, obvious, and no solver's code."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpbench.claims.conditions import Constraint
from fpbench.claims.constraints import (
    KnownPeople,
    KnownUnfairness,
    LinearConstraint,
    RateBounds,
    ShareBounds,
)
from fpbench.claims.rates import RateConstraint
from fpbench.components.records import Problem

_LABELS: dict[str, tuple[int | None, ...]] = {
    "statistical-parity": (None,),
    "predictive-equality": (0,),
    "equal-opportunity": (1,),
    "equalized-odds": (0, 1),
}


def least_cost(problem: Problem) -> float | None:
    """Least cost over all K^n vectors that satisfy what is known; None if none does.

    Parameters
    ----------
    problem
        Of few people: n log K should be below 15 or so.
    """
    costs = np.ones(len(problem.guess)) if problem.weights is None else problem.weights
    found = [
        float(costs[values != problem.guess].sum())
        for values in map(np.array, product(range(problem.groups), repeat=len(problem.guess)))
        if satisfies(problem, values)
    ]
    return min(found, default=None)


def satisfies(problem: Problem, values: NDArray[Any]) -> bool:
    """Whether a vector of groups satisfies all that is known, by the definitions, in fractions.

    Raises
    ------
    TypeError
        If a constraint is none of fpbench's own.
    """
    return all(_holds(problem, constraint, values) for constraint in problem.constraints)


def _holds(problem: Problem, constraint: Constraint, values: NDArray[Any]) -> bool:
    if isinstance(constraint, KnownPeople):
        rows = np.asarray(constraint.rows, dtype=np.intp)
        return bool((values[rows] == np.asarray(constraint.groups)).all())
    if isinstance(constraint, RateBounds):
        own = (rates[constraint.group] for rates, _ in _slices(problem, constraint, values))
        return all(_within(rate, constraint) for rate in own if rate is not None)
    if isinstance(constraint, RateConstraint | KnownUnfairness):
        return _fair(problem, constraint, values)
    members = values == constraint.group  # type: ignore[attr-defined]
    if isinstance(constraint, LinearConstraint):
        mine = np.asarray(constraint.coefficients)[members]
        return _within(sum(map(_written, mine), Fraction(0)), constraint)
    if isinstance(constraint, ShareBounds):
        return _within(Fraction(int(members.sum()), len(values)), constraint)
    raise TypeError(f"no definition of {type(constraint).__name__}")


def _within(number: Fraction, bounds: Any) -> bool:
    return _written(bounds.low) <= number <= _written(bounds.high)


def _fair(
    problem: Problem, constraint: RateConstraint | KnownUnfairness, values: NDArray[Any]
) -> bool:
    if not _all_have_members(problem, constraint, values):
        return False
    apart = max(
        _unfairness(rates, overall, constraint.form)
        for rates, overall in _slices(problem, constraint, values)
    )
    if isinstance(constraint, RateConstraint):
        return apart <= _written(constraint.tolerance)
    return _within(apart, constraint)


def _written(number: float | Fraction) -> Fraction:
    """A number as its digits say it."""
    return number if isinstance(number, Fraction) else Fraction(str(float(number)))


def _masks(problem: Problem, metric: str) -> Iterator[NDArray[np.bool_]]:
    for label in _LABELS[metric]:
        everyone = np.ones(len(problem.guess), dtype=bool)
        yield everyone if label is None else np.asarray(problem.labels) == label


def _all_have_members(problem: Problem, constraint: Any, values: NDArray[Any]) -> bool:
    inside = np.logical_or.reduce(list(_masks(problem, constraint.metric)))
    return len(set(values[inside].tolist())) == problem.groups


def _slices(
    problem: Problem, constraint: Any, values: NDArray[Any]
) -> Iterator[tuple[list[Fraction | None], Fraction]]:
    """Rates of the groups in every slice, None for nobody, and the rate of all."""
    for mask in _masks(problem, getattr(constraint, "metric", "statistical-parity")):
        rates: list[Fraction | None] = []
        for group in range(problem.groups):
            said = problem.predictions[mask & (values == group)]
            rates.append(Fraction(int(said.sum()), len(said)) if len(said) else None)
        said = problem.predictions[mask]
        yield rates, Fraction(int(said.sum()), len(said) or 1)


def _unfairness(rates: list[Fraction | None], overall: Fraction, form: str) -> Fraction:
    known = [rate for rate in rates if rate is not None]
    if not known:
        return Fraction(0)
    if form == "to-overall":
        return max(abs(rate - overall) for rate in known)
    if form == "between-groups":
        return max(known) - min(known)
    return 1 - min(known) / max(known) if max(known) else Fraction(0)
