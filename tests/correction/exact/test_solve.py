from __future__ import annotations

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import AWKWARD, TOLERANCES, check_correction, check_values, draw

import fpbench.correction.exact.solve
from fpbench import Problem
from fpbench.claims import (
    METRICS,
    KnownPeople,
    KnownUnfairness,
    RateBounds,
    RateConstraint,
    ShareBounds,
)
from fpbench.claims.rates import FORMS
from fpbench.correction import solve_exact
from fpbench.plugin import SolverStatus

MOST = {2: 9, 3: 7, 4: 6}


@st.composite
def problems(draw) -> Problem:
    """Any small problem; shrinks to a readable one."""
    k = draw(st.integers(2, 4))
    n = draw(st.integers(1, MOST[k]))

    def column(values):
        return np.array(draw(st.lists(values, min_size=n, max_size=n)))

    bits, group = st.integers(0, 1), st.integers(0, k - 1)
    shares = st.sampled_from([0.0, 0.1, 0.25, 1 / 3, 0.5, 0.75, 1.0])
    bounds = st.tuples(shares, shares).map(sorted)
    metric, form = st.sampled_from(METRICS), st.sampled_from(FORMS)
    tolerance = st.sampled_from(TOLERANCES + AWKWARD) | st.floats(0, 1)
    people = st.lists(st.tuples(st.integers(0, n - 1), group), max_size=3)
    constraint = st.one_of(
        st.builds(RateConstraint, metric, tolerance, form),
        st.builds(lambda g, b: ShareBounds(g, *b), group, bounds),
        st.builds(lambda g, b, m: RateBounds(g, *b, m), group, bounds, metric),
        st.builds(lambda m, b, f: KnownUnfairness(m, *b, f), metric, bounds, form),
        st.builds(lambda p: KnownPeople([r for r, _ in p], [g for _, g in p]), people),
    )
    weight = draw(
        st.sampled_from([None, st.sampled_from([0.5, 1.0, 1.5]), st.floats(1e-9, 1e12), st.just(7)])
    )
    constraints = tuple(draw(st.lists(constraint, min_size=1, max_size=3)))
    weights = None if weight is None else column(weight).astype(float)
    return Problem(column(group), k, column(bits), column(bits), constraints, weights)


@pytest.mark.slow
@settings(derandomize=True)
@given(problems())
def test_small_problems_equal_all_vectors(problem):
    check_correction(problem, solve_exact(problem), oracles.brute_force(problem))


@pytest.mark.slow
def test_seeded_problems_equal_all_vectors():
    """Weights and groups of every size, as many of them impossible as not."""
    rng = np.random.default_rng(1)
    statuses = []
    for at in range(250):
        k = 2 + at % 3
        problem = draw(rng, int(rng.integers(1, MOST[k] + 1)), k)
        least = oracles.brute_force(problem)
        statuses.append(least is None)
        check_correction(problem, solve_exact(problem), least)
    assert 50 < sum(statuses) < 200


def test_two_groups_whose_constraints_separate_are_scanned(monkeypatch):
    def no(*_):
        raise AssertionError

    rng = np.random.default_rng(2)
    monkeypatch.setattr(fpbench.correction.exact.solve, "solve_many_groups", no)
    for form in FORMS:
        for metric in METRICS:
            problem = draw(rng, 40, 2, ["rate"], metrics=[metric], forms=[form])
            solve_exact(problem)
    apart = RateConstraint("predictive-equality", 0.1), RateConstraint("equal-opportunity", 0.2)
    solve_exact(draw_with(rng, 2, apart))
    with pytest.raises(AssertionError):
        solve_exact(draw_with(rng, 3, apart))
    with pytest.raises(AssertionError):
        solve_exact(draw_with(rng, 2, (*apart, ShareBounds(0, 0.4, 0.6))))


def draw_with(rng, k, constraints, n=40) -> Problem:
    drawn = draw(rng, n, k, [])
    return Problem(
        drawn.guess, k, drawn.predictions, drawn.labels, tuple(constraints), drawn.weights
    )


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("k", [2, 3, 4])
def test_fewer_people_than_groups_are_impossible_and_as_many_are_not(n, k):
    for metric in METRICS:
        problem = Problem(
            np.zeros(n, int), k, np.ones(n, int), np.ones(n, int), (RateConstraint(metric, 1.0),)
        )
        found = solve_exact(problem)
        possible = n >= k and metric != "predictive-equality"
        assert (found.status is SolverStatus.OPTIMAL) == possible
        if possible:
            assert found.objective == k - 1


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int64])
def test_values_have_the_type_of_the_guess_and_arguments_stay_as_they_are(k, dtype):
    rng = np.random.default_rng(4)
    for _ in range(5):
        drawn = draw(rng, 30, k, ["rate", "known"], weights="random")
        columns = [drawn.guess.astype(dtype), drawn.predictions, drawn.labels, drawn.weights]
        copies = [column.copy() for column in columns]
        for column in columns:
            column.flags.writeable = False
        guess, predictions, labels, weights = columns
        found = solve_exact(Problem(guess, k, predictions, labels, drawn.constraints, weights))
        for column, before in zip(columns, copies, strict=True):
            np.testing.assert_array_equal(column, before)
        if found.values is not None:
            assert found.values.dtype == dtype
            assert not np.shares_memory(found.values, guess)


def test_time_limits_reach_the_search():
    rng = np.random.default_rng(6)
    problem = draw_with(rng, 3, (RateConstraint("equalized-odds", 0.03, "ratio"),), n=300)
    found = solve_exact(problem, 1e-6)
    assert found.status in (SolverStatus.TIMEOUT, SolverStatus.FEASIBLE)
    assert found.seconds < 30


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("k", [2, 3, 5])
def test_more_is_never_cheaper(k):
    """A wider tolerance costs no more, and a further constraint no less."""
    rng = np.random.default_rng([7, k])
    compared = 0
    for metric in METRICS:
        drawn, before = draw_with(rng, k, (), n=400), np.inf
        for tolerance in (0.02, 0.05, 0.1, 0.3, 1.0):
            claim = RateConstraint(metric, tolerance)
            alone = solve_exact(_with(drawn, claim))
            both = solve_exact(_with(drawn, claim, RateBounds(0, 0.0, 0.6, metric)))
            assert _cost(alone) <= before * (1 + 4e-9)
            assert _cost(both) >= _cost(alone) * (1 - 4e-9)
            before = _cost(alone)
            if alone.values is not None:
                compared += 1
                check_values(_with(drawn, claim), alone)
    assert compared > 10


def _cost(found):
    return np.inf if found.objective is None else found.objective


def _with(problem: Problem, *constraints) -> Problem:
    return Problem(
        problem.guess, problem.groups, problem.predictions, problem.labels, constraints,
        problem.weights,
    )  # fmt: skip
