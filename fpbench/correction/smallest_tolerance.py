"""The smallest tolerance at which a claim can hold, exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from fpbench.claims.conditions import between
from fpbench.claims.rates import RateConstraint
from fpbench.components.records import Correction, Problem, SolverStatus


def relax(
    problem: Problem, solve: Callable[[Problem], Correction]
) -> tuple[Problem, Fraction] | None:
    """An infeasible problem with the smallest tolerance of its claim that makes it feasible.

    Parameters
    ----------
    problem
        Infeasible. The first constraint on rates is its claim; the others stay as they are.
    solve
        Corrects a problem, or proves it infeasible.

    Returns
    -------
    problem, tolerance
        None if there is no claim on rates, if no tolerance helps, or if a solver ran out of time.

    Notes
    -----
    Bisection, which ends because attained tolerances are fractions of counts: with denominators
    d and at most B = n^2, two of them differ by at least 1 / (d B).
    """
    at = next((i for i, c in enumerate(problem.constraints) if isinstance(c, RateConstraint)), None)
    if at is None:
        return None
    claim = problem.constraints[at]
    assert isinstance(claim, RateConstraint)

    def tolerating(tolerance: Fraction) -> Problem:
        constraints = list(problem.constraints)
        constraints[at] = replace(claim, tolerance=tolerance)
        return replace(problem, constraints=tuple(constraints))

    low, tried = claim.exact_tolerance, Fraction(1)
    high: Fraction | None = None
    while True:
        found = solve(tolerating(tried))
        if found.values is not None:
            high = claim.unfairness(
                found.values, problem.predictions, problem.labels, problem.groups
            )
        elif found.status is SolverStatus.INFEASIBLE and tried < 1:
            low = tried
        if high is None or (found.values is None and low != tried):
            return None
        if (high - low) * high.denominator * len(problem.guess) ** 2 <= 1:
            return tolerating(high), high
        tried = between(low, high)
