from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from fpbench import Correction, Problem
from fpbench.claims import (
    KnownPeople,
    KnownUnfairness,
    RateConstraint,
    ShareBounds,
)
from fpbench.correction import solve_exact
from fpbench.correction.optimal import find_smallest_tolerance
from fpbench.plugin import SolverStatus


def test_large_problems_take_few_steps():
    rng = np.random.default_rng(2)
    n, steps = 2003, []  # a prime: no group's rate equals the overall rate
    predictions = np.zeros(n, int)
    predictions[:700] = 1
    problem = Problem(rng.integers(0, 2, n), 2, predictions, None, (RateConstraint(),))

    def counted(one):
        steps.append(one)
        return solve_exact(one)

    assert solve_exact(problem).status is SolverStatus.INFEASIBLE
    relaxed, tolerance = find_smallest_tolerance(problem, counted)
    assert 0 < tolerance < Fraction(1, n)
    assert len(steps) < 80
    assert solve_exact(relaxed).values is not None
    tighter = tolerance - Fraction(1, 10**15)
    less = replace(problem, constraints=(RateConstraint(tolerance=tighter),))
    assert solve_exact(less).status is SolverStatus.INFEASIBLE


def impossible(*constraints) -> Problem:
    return Problem(np.array([0, 1, 1]), 2, np.array([1, 0, 0]), np.array([1, 0, 1]), constraints)


@pytest.mark.parametrize("problem", [
    impossible(ShareBounds(0, 0.5, 0.5)),
    impossible(KnownUnfairness("statistical-parity", 0.0, 0.0)),
    impossible(RateConstraint(), ShareBounds(0, 0.5, 0.5)),
    impossible(RateConstraint(), KnownPeople([0, 0], [0, 1])),
    impossible(RateConstraint(), KnownPeople([0, 1, 2], [0, 0, 0])),
    impossible(RateConstraint("predictive-equality")),
    impossible(RateConstraint("predictive-equality", 1.0)),
], ids=['no claim', 'not a claim', 'share', 'contradiction', 'all known', 'slice', 'slice at 1'])  # fmt: skip
def test_hopeless_problems_have_no_tolerance(problem):
    assert solve_exact(problem).status is SolverStatus.INFEASIBLE
    assert find_smallest_tolerance(problem, solve_exact) is None


@pytest.mark.parametrize("after", range(4))
def test_a_solver_that_runs_out_of_time_gives_no_tolerance(after):
    calls = []

    def tired(problem):
        calls.append(problem)
        if len(calls) > after:
            return Correction(None, SolverStatus.TIMEOUT)
        return solve_exact(problem)

    assert find_smallest_tolerance(impossible(RateConstraint()), tired) is None
    assert len(calls) == after + 1
