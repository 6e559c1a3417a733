from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fpbench.correction.exact.two_group_moves
import fpbench.correction.exact.two_groups
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
from fpbench.correction import CountedProblem, solve_exact
from fpbench.correction.exact.many_groups import solve_many_groups
from fpbench.correction.exact.two_group_regions import separate_regions
from fpbench.plugin import SolverStatus

TOLERANCES = (0.0, 0.0, 0.01, 0.05, 0.1, 0.2, 0.25, 1 / 3, 0.5, 0.9, 1.0)
AWKWARD = (1 / 3, 1e-17, 0.1 + 0.2, 0.12345678901234567, 0.049999999999999996, 1 - 2**-53, 5e-324)


def make(rng, n, constraint, *, rates=(0.5, 0.5), weights="random") -> Problem:
    """A problem whose guessed groups have these rates of positive predictions."""
    guess = (rng.random(n) < rng.uniform(0.1, 0.9)).astype(np.int8)
    predictions = (rng.random(n) < np.asarray(rates)[guess]).astype(np.int8)
    labels = (rng.random(n) < rng.uniform(0.1, 0.9)).astype(np.int8)
    drawn = {
        "none": None,
        "tied": rng.integers(1, 4, n) / 2,
        "random": rng.uniform(1, 2, n) ** 6,
        "tiny": rng.uniform(1, 2, n) * 1e-9,
    }[weights]
    return Problem(guess, 2, predictions, labels, (constraint,), drawn)


def check(problem: Problem, least: float | None) -> None:
    """The answer is the optimum, and all it says of itself is true."""
    found = solve_exact(problem)
    if least is None:
        assert found.status is SolverStatus.INFEASIBLE
        assert (found.values, found.objective, found.bound, found.moves) == (None,) * 4
        return
    assert found.status is SolverStatus.OPTIMAL
    assert found.objective == pytest.approx(least, rel=1e-12, abs=0)
    assert found.bound == found.objective
    assert found.gap == 0
    assert found.values.dtype == problem.guess.dtype
    assert oracles.admissible(problem, found.values)
    changed = found.values != problem.guess
    assert oracles.costs(problem)[changed].sum() == pytest.approx(found.objective, rel=1e-12, abs=0)
    assert not changed[~oracles.looked_at(problem)].any()
    moves = np.zeros((2, 2, 2), dtype=int)
    np.add.at(
        moves,
        (problem.predictions[changed], problem.guess[changed], found.values[changed]),
        1,
    )
    np.testing.assert_array_equal(found.moves, moves)


@st.composite
def small_problems(draw) -> Problem:
    n = draw(st.integers(1, 8))

    def column(values):
        return np.array(draw(st.lists(values, min_size=n, max_size=n)))

    bits = st.integers(0, 1)
    weight = draw(
        st.sampled_from([None, st.sampled_from([0.5, 1.0, 1.5]), st.floats(1e-3, 1e3), st.just(7)])
    )
    constraint = RateConstraint(
        draw(st.sampled_from(METRICS)),
        draw(st.sampled_from(TOLERANCES) | st.sampled_from(AWKWARD) | st.floats(0, 1)),
        draw(st.sampled_from(FORMS)),
    )
    guess, predictions, labels = column(bits), column(bits), column(bits)
    weights = None if weight is None else column(weight).astype(float)
    return Problem(guess, 2, predictions, labels, (constraint,), weights)


@given(small_problems())
def test_small_problems_equal_all_vectors(problem):
    check(problem, oracles.brute_force(problem))


@st.composite
def mixed_problems(draw) -> Problem:
    """Up to three constraints of any kind."""
    problem = draw(small_problems())
    n, group = len(problem.guess), st.integers(0, 1)
    metric, form = st.sampled_from(METRICS), st.sampled_from(FORMS)
    bound = st.sampled_from([*TOLERANCES, Fraction(1, 3), Fraction(2, 7)]) | st.floats(0, 1)
    bounds = st.lists(bound, min_size=2, max_size=2).map(sorted)
    person = st.tuples(st.integers(0, n - 1), group)
    known = st.lists(person, max_size=n).map(
        lambda pairs: KnownPeople(*np.reshape(pairs, (-1, 2)).T)
    )
    one = st.one_of(
        st.builds(RateConstraint, metric, bound, form),
        st.builds(lambda k, b: ShareBounds(k, *b), group, bounds),
        st.builds(lambda k, b, m: RateBounds(k, *b, m), group, bounds, metric),
        st.builds(lambda m, b, f: KnownUnfairness(m, *b, f), metric, bounds, form),
        known,
    )
    constraints = draw(st.lists(one, min_size=1, max_size=3))
    return replace(problem, constraints=tuple(constraints))


@pytest.mark.slow
@given(mixed_problems())
def test_any_constraints_together_equal_all_vectors(problem):
    check(problem, oracles.brute_force(problem))


def truths(rng, n) -> tuple[Problem, np.ndarray, list]:
    """A problem that claims nothing yet, its truth, and constraints that are true of it."""
    problem = make(rng, n, None, rates=rng.uniform(0.2, 0.8, 2))
    truth = np.where(rng.random(n) < 0.2, 1 - problem.guess, problem.guess)
    said, labels = problem.predictions, problem.labels
    metric, form = rng.choice(METRICS[:3], p=[0.6, 0.2, 0.2]), rng.choice(FORMS)
    part = RateConstraint(metric).slices(labels)[0]
    part = np.ones(n, bool) if part is None else part
    rate = Fraction(int((truth * said)[part].sum()), int(truth[part].sum()))
    claim = RateConstraint(metric, form=form)
    unfair = claim.unfairness(truth, said, labels, 2)
    known = rng.choice(n, n // 10, replace=False)
    return problem, truth, [
        replace(claim, tolerance=unfair),
        ShareBounds(1, Fraction(int(truth.sum()), n) - Fraction(1, 50), 1),
        ShareBounds(0, Fraction(int((1 - truth).sum()), n) - Fraction(1, 50), 1),
        RateBounds(1, rate, rate, metric),
        KnownUnfairness(metric, unfair, unfair, form),
        KnownPeople(known, truth[known]),
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("n", "rounds"), [(60, 20), (600, 4)])
def test_the_truth_satisfies_what_is_true_and_the_answer_costs_no_more(n, rounds):
    rng = np.random.default_rng(n)
    separate = 0
    for _ in range(rounds):
        problem, truth, constraints = truths(rng, n)
        if rng.random() < 0.5:
            constraints = list(rng.permutation(constraints)[: rng.integers(1, 4)])
        problem = replace(problem, constraints=tuple(constraints))
        assert oracles.admissible(problem, truth)
        found = solve_exact(problem)
        spent = oracles.costs(problem)[problem.guess != truth].sum()
        assert found.objective <= spent * (1 + 1e-12)
        check(problem, found.objective)
        # The solver for any number of groups shares nothing with this one but the counting.
        counted = CountedProblem(problem)
        separate += separate_regions(counted.conditions, counted.classes) is not None
        other = solve_many_groups(counted, np.inf)
        assert other.status is SolverStatus.OPTIMAL
        assert other.objective == pytest.approx(found.objective, rel=1e-9)
    assert 0.1 * rounds < separate < rounds


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("metric", METRICS)
def test_seeded_problems_equal_all_vectors(metric, form):
    rng = np.random.default_rng([METRICS.index(metric), FORMS.index(form)])
    statuses = set()
    for _ in range(50):
        constraint = RateConstraint(metric, rng.choice(TOLERANCES), form)
        kind = rng.choice(["none", "tied", "random", "tiny"])
        n = int(rng.integers(5, 13))
        problem = make(rng, n, constraint, rates=rng.random(2), weights=kind)
        least = oracles.brute_force(problem)
        statuses.add(least is None)
        check(problem, least)
        # The dense oracle, used below where 2^n is too many, agrees.
        assert oracles.least_cost_of_moves(problem) == (
            least if least is None else pytest.approx(least, rel=1e-12, abs=0)
        )
    assert statuses == {False, True}


@pytest.mark.parametrize("tolerance", AWKWARD)
@pytest.mark.parametrize("form", FORMS)
def test_awkward_tolerances_are_taken_as_written(form, tolerance):
    rng = np.random.default_rng(11)
    for metric in METRICS:
        for n in (9, 10, 200):
            problem = make(rng, n, RateConstraint(metric, tolerance, form), rates=(0.3, 0.7))
            oracle = oracles.brute_force if n < 12 else oracles.least_cost_of_moves
            check(problem, oracle(problem))


def test_a_tolerance_is_met_exactly_and_not_a_digit_more():
    # One third of 3 in group 0 and 2/3 of 3 in group 1: to-overall unfairness is exactly 1/6.
    guess = np.array([0, 0, 0, 1, 1, 1])
    predictions = np.array([1, 0, 0, 1, 1, 0])
    for tolerance, cost in ((0.16666666666666666, 1.0), (0.16666666666666669, 0.0)):
        problem = Problem(guess, 2, predictions, None, (RateConstraint(tolerance=tolerance),))
        assert solve_exact(problem).objective == cost


@pytest.fixture
def tiny_steps(request, monkeypatch):
    window, block = request.param
    monkeypatch.setattr(fpbench.correction.exact.two_group_moves, "_WINDOW", window)
    monkeypatch.setattr(fpbench.correction.exact.two_groups, "_BLOCK", block)


@cache
def problems_in_steps() -> list[tuple[Problem, float | None]]:
    """Problems of every metric and form, and the least cost of each."""
    rng, problems = np.random.default_rng(5), []
    for metric in METRICS:
        for form in FORMS:
            for n in (8, 12, 30, 120):
                constraint = RateConstraint(metric, rng.choice(TOLERANCES), form)
                kind = rng.choice(["none", "tied", "random"])
                problems.append(make(rng, n, constraint, rates=rng.random(2), weights=kind))
    return [(problem, oracles.least_cost_of_moves(problem)) for problem in problems]


@pytest.mark.slow
@pytest.mark.parametrize(
    "tiny_steps", [(1, 1), (1, 2), (2, 1), (3, 2), (4, 4), (7, 3)], indirect=True
)
@pytest.mark.usefixtures("tiny_steps")
def test_the_answer_does_not_depend_on_windows_and_blocks():
    for problem, least in problems_in_steps():
        check(problem, least)


@cache
def problems_of_multiples() -> list[tuple[Problem, float | None]]:
    """Problems of equal rates that only some sizes have, and the least cost of each."""
    rng, problems = np.random.default_rng(8), []
    for positives, n in ((3, 10), (7, 20), (11, 40), (1, 2), (12, 60)):
        for copies in (2, 7, 8):
            for _ in range(3):
                guess = (rng.random(n * copies) < rng.uniform(0.05, 0.95)).astype(np.int8)
                score = rng.random(n * copies) + rng.uniform(-0.5, 0.5) * guess
                predictions = np.zeros(n * copies, dtype=np.int8)
                predictions[np.argsort(score)[: positives * copies]] = 1
                weights = rng.uniform(1, 2, n * copies) ** 6
                problems += [
                    Problem(guess, 2, predictions, None, (RateConstraint(form=form),), weights)
                    for form in FORMS
                ]
    return [(problem, oracles.least_cost_of_moves(problem)) for problem in problems]


@pytest.mark.slow
@pytest.mark.parametrize(
    "tiny_steps", [(1, 1), (2, 1), (3, 2), (16, 4), (10**9, 10**9)], indirect=True
)
@pytest.mark.usefixtures("tiny_steps")
def test_equal_rates_that_only_some_sizes_have():
    """With 3 of 10 positive, group 1 has a multiple of 3 positives: far between for a window."""
    for problem, least in problems_of_multiples():
        check(problem, least)


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["none", "tied", "random", "tiny"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("metric", METRICS)
def test_medium_problems_equal_every_pair_of_moves(metric, form, weights):
    rng = np.random.default_rng([METRICS.index(metric), FORMS.index(form), len(weights)])
    for n in (50, 400, 3000 if weights == "random" else 1000):
        for rates in ((0.3, 0.4), (0.8, 0.3)):
            constraint = RateConstraint(metric, rng.choice([0.0, 0.002, 0.03, 0.1]), form)
            problem = make(rng, n, constraint, rates=rates, weights=weights)
            check(problem, oracles.least_cost_of_moves(problem))


def test_many_candidates_over_several_windows():
    """More moves than one window, and a bracket far from either end."""
    rng = np.random.default_rng(3)
    problem = make(rng, 80_000, RateConstraint(tolerance=0.001), rates=(0.75, 0.2))
    wide = solve_exact(problem)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fpbench.correction.exact.two_group_moves, "_WINDOW", 10**9)
        patch.setattr(fpbench.correction.exact.two_groups, "_BLOCK", 10**9)
        whole = solve_exact(problem)
    assert wide.objective == pytest.approx(whole.objective, rel=1e-12)
    np.testing.assert_array_equal(wide.values, whole.values)
    assert oracles.admissible(problem, wide.values)


def test_among_equals_the_first_are_changed():
    guess = np.array([0, 1, 0, 0, 1, 1, 0, 0])
    predictions = np.array([1, 0, 1, 1, 0, 0, 1, 1])
    for weights in (None, np.ones(8), np.array([2.0, 1, 2, 2, 1, 1, 2, 2])):
        problem = Problem(guess, 2, predictions, None, (RateConstraint(tolerance=0.25),), weights)
        check(problem, oracles.brute_force(problem))
        values = solve_exact(problem).values
        for prediction in (0, 1):
            for code in (0, 1):
                cell = values[(predictions == prediction) & (guess == code)] != code
                assert list(cell) == sorted(cell, reverse=True)


def test_nothing_to_do_changes_nothing():
    problem = Problem(np.array([0, 1]), 2, np.array([1, 1]), None, (RateConstraint(),))
    found = solve_exact(problem)
    assert found.objective == 0
    assert not found.moves.any()
    assert not np.shares_memory(found.values, problem.guess)
