"""Corrections of guesses for people without a matrix."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from numpy.typing import ArrayLike

from fpbench.api.problem_arrays import check_problem
from fpbench.api.run import given_component
from fpbench.base.errors import PluginError
from fpbench.claims.conditions import Constraint
from fpbench.claims.rates import Form, Metric, RateConstraint
from fpbench.components.attack_kinds import Corrector
from fpbench.components.catalog import discover
from fpbench.components.records import Correction


def correct(
    guess: ArrayLike,
    predictions: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    metric: Metric | None = "statistical-parity",
    tolerance: float | Fraction = 0.0,
    form: Form = "to-overall",
    constraints: Sequence[Constraint] = (),
    groups: int | None = None,
    corrector: str | Mapping[str, Any] | Corrector = "exact",
    **parameters: Any,
) -> Correction:
    """Change a guess of everyone's group as little as possible so that a fairness claim holds.

    Parameters
    ----------
    guess
        (n,) guessed group codes in 0..K-1.
    predictions
        (n,) the model's predictions in {0, 1}.
    labels
        (n,) true labels in {0, 1}; needed by every metric but statistical parity.
    weights
        (n,) positive costs of changing each guess; by default every change costs 1.
    metric, tolerance, form
        The claim; see `RateConstraint`. None for the metric: nothing is claimed about rates.
    constraints
        What else is known: `ShareBounds`, `RateBounds`, `KnownUnfairness`, `KnownPeople`,
        `LinearConstraint`, or more `RateConstraint`s.
    groups
        K; by default the greatest code in the guess plus one, and at least 2.
    corrector
        Name of an installed corrector; a table, `{"use": NAME, ...}`; or a corrector that was made.
    **parameters
        Its parameters, if it is given by name.

    Returns
    -------
    Correction
        Corrected values (n,), objective, status, moves and seconds.

    Raises
    ------
    InputError
        If an argument is not as described.

    Examples
    --------
    >>> import fpbench
    >>> guess, predictions = [0, 0, 0, 1, 1, 1], [1, 1, 0, 1, 0, 0]
    >>> found = fpbench.correct(guess, predictions, weights=[3, 2, 1, 1, 1, 2], tolerance=0.1)
    >>> found.values.tolist(), found.objective
    ([0, 0, 0, 1, 0, 1], 1.0)
    """
    solver = given_component("corrector", corrector, **parameters)
    assert isinstance(solver, Corrector)
    claim = () if metric is None else (RateConstraint(metric, tolerance, form),)
    known = (*claim, *constraints)
    problem = check_problem(guess, predictions, labels, weights, known, groups)
    started = time.perf_counter()
    correction = solver.correct(problem)
    seconds = time.perf_counter() - started
    return replace(correction, seconds=seconds)


def correctors_for(constraint: Constraint) -> list[str]:
    """Names of the installed correctors that can express a constraint."""
    catalog, found = discover(), []
    for entry in catalog.of_kind("corrector"):
        try:
            cls = catalog.component(entry.kind, entry.name)
        except PluginError:
            continue
        if issubclass(cls, Corrector) and constraint.word in cls.expresses:
            found.append(entry.name)
    return found
