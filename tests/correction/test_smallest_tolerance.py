from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import oracles
import pytest
from instances import draw

import fpbench
from fpbench import Correction, Problem, SolverStatus
from fpbench.claims import (
    FORMS,
    METRICS,
    KnownPeople,
    KnownUnfairness,
    LinearConstraint,
    RateConstraint,
    ShareBounds,
)
from fpbench.correction import solve_exact
from fpbench.correction.optimal import find_smallest_tolerance


def all_vectors(n, k):
    return (np.arange(k**n)[:, None] // k ** np.arange(n)) % k


def smallest_tolerance(problem: Problem) -> Fraction | None:
    """Least unfairness of all vectors that satisfy the rest, every group having members."""
    claim, *rest = problem.constraints
    anything = replace(claim, tolerance=1)
    vectors = all_vectors(len(problem.guess), problem.groups)
    allowed = oracles.satisfied(replace(problem, constraints=(anything, *rest)), vectors)
    found = set()
    for values in vectors[allowed]:
        worst = Fraction(0)
        for mask in oracles.masks(problem, claim.metric):
            groups = [mask & (values == k) for k in range(problem.groups)]
            members = [own.sum() for own in groups]
            positives = [(own & (problem.predictions == 1)).sum() for own in groups]
            worst = max(worst, oracles.unfairness(members, positives, claim.form))
        found.add(worst)
    return min(found, default=None)


def by_brute_force(problem: Problem) -> Correction:
    """Any vector that satisfies everything."""
    vectors = all_vectors(len(problem.guess), problem.groups)
    allowed = vectors[oracles.satisfied(problem, vectors)]
    if not len(allowed):
        return Correction(None, SolverStatus.INFEASIBLE)
    return Correction(allowed[0], SolverStatus.OPTIMAL)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("metric", METRICS)
def test_the_smallest_tolerance_is_found_exactly(metric, form):
    rng = np.random.default_rng([METRICS.index(metric), FORMS.index(form)])
    relaxed_ones = hopeless = 0
    while relaxed_ones < 4:
        k = int(rng.integers(2, 4))
        beside = [[], ["share"], ["bounds"], ["known"], ["rate"]][rng.integers(5)]
        problem = draw(rng, int(rng.integers(k, {2: 8, 3: 6}[k])), k, ["rate", *beside],
                       metrics=[metric], forms=[form])  # fmt: skip
        claim = replace(problem.constraints[0], tolerance=float(rng.choice([0.0, 0.02])))
        problem = replace(problem, constraints=(claim, *problem.constraints[1:]))
        if solve_exact(problem).status is not SolverStatus.INFEASIBLE:
            continue
        least, found = smallest_tolerance(problem), find_smallest_tolerance(problem, solve_exact)
        if least is None:
            assert found is None
            hopeless += 1
            continue
        relaxed_ones += 1
        relaxed, tolerance = found
        assert isinstance(tolerance, Fraction)
        assert tolerance == least
        assert relaxed.constraints[0] == replace(claim, tolerance=least)
        assert relaxed.constraints[1:] == problem.constraints[1:]
        assert solve_exact(relaxed).status is SolverStatus.OPTIMAL
        assert find_smallest_tolerance(problem, by_brute_force)[1] == least
    assert hopeless < 200


def test_any_solver_will_do():
    """A claim about rates beside a constraint that only individuals can satisfy."""
    rng = np.random.default_rng(1)
    found_some = 0
    for _ in range(30):
        n = int(rng.integers(3, 8))
        problem = replace(draw(rng, n, 2, []), constraints=(
            RateConstraint(tolerance=0.0), LinearConstraint(1, rng.integers(0, 4, n), 3, 5)
        ))  # fmt: skip
        if by_brute_force(problem).values is None:
            found, least = (
                find_smallest_tolerance(problem, by_brute_force),
                smallest_tolerance(problem),
            )
            assert (found is None) == (least is None)
            if found is not None:
                found_some += 1
                assert found[1] == least
    assert found_some


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


@pytest.mark.parametrize(
    "problem",
    [
        impossible(ShareBounds(0, 0.5, 0.5)),
        impossible(KnownUnfairness("statistical-parity", 0.0, 0.0)),
        impossible(RateConstraint(), ShareBounds(0, 0.5, 0.5)),
        impossible(RateConstraint(), KnownPeople([0, 0], [0, 1])),
        impossible(RateConstraint(), KnownPeople([0, 1, 2], [0, 0, 0])),
        impossible(RateConstraint("predictive-equality")),
        impossible(RateConstraint("predictive-equality", 1.0)),
    ],
    ids=["no claim", "not a claim", "share", "contradiction", "all known", "slice", "slice at 1"],
)
def test_what_no_tolerance_helps_is_none(problem):
    assert solve_exact(problem).status is SolverStatus.INFEASIBLE
    assert find_smallest_tolerance(problem, solve_exact) is None


def test_the_first_claim_is_relaxed_and_no_other():
    hard = RateConstraint(tolerance=0.1), RateConstraint("equalized-odds", 0.9)
    problem = impossible(*hard)
    least = smallest_tolerance(problem)
    relaxed, tolerance = find_smallest_tolerance(problem, solve_exact)
    assert tolerance == least > Fraction(1, 10)
    assert relaxed.constraints[1] == hard[1]
    # The other way round the first would have to give way, and it cannot help.
    assert (
        find_smallest_tolerance(
            impossible(RateConstraint(tolerance=0.0), RateConstraint()), solve_exact
        )
        is None
    )


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


def test_correctors_relax_if_they_are_asked_to():
    guess, predictions = [0, 1, 1, 0, 1], [1, 0, 0, 1, 0]
    reported = fpbench.correct(guess, predictions, tolerance=0.0)
    assert reported.status is SolverStatus.INFEASIBLE
    assert "relaxed_tolerance" not in reported.measures
    found = fpbench.correct(guess, predictions, tolerance=0.0, on_infeasible="relax")
    problem = Problem(np.array(guess), 2, np.array(predictions), None, (RateConstraint(),))
    least = smallest_tolerance(problem)
    assert found.status is SolverStatus.OPTIMAL
    assert found.measures["relaxed_tolerance"] == float(least)
    claim = RateConstraint(tolerance=least)
    assert oracles.admissible(replace(problem, constraints=(claim,)), found.values)
    # What can hold is not relaxed.
    other = fpbench.correct(guess, predictions, tolerance=0.9, on_infeasible="relax")
    assert "relaxed_tolerance" not in other.measures
    hopeless = fpbench.correct(
        guess, predictions, constraints=[ShareBounds(0, 0.5, 0.5)], on_infeasible="relax"
    )
    assert hopeless.status is SolverStatus.INFEASIBLE
