from __future__ import annotations

from dataclasses import replace

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

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
from fpbench.correction import weights as weights_module
from fpbench.correction.weights import (
    find_best_exponent,
    scale_confidence,
    score_exponents,
    sharpen,
)

pytestmark = pytest.mark.numeric

MOST = 30


def make(rng, n, constraint, weights, k=2) -> tuple[Problem, np.ndarray]:
    """A problem with weights not yet raised to a power, and its truth."""
    truth = (rng.random(n) < 0.6).astype(np.int8) if k == 2 else rng.integers(0, k, n)
    wrong = rng.random(n) < 0.25
    guess = np.where(wrong, (truth + 1) % k, truth)
    predictions = (rng.random(n) < np.where(guess == 1, 0.6, 0.25)).astype(np.int8)
    labels = (rng.random(n) < 0.5).astype(np.int8)
    return Problem(guess, k, predictions, labels, (constraint,), weights), truth


def achieved(problem: Problem, truth: np.ndarray, values: np.ndarray) -> int:
    """Net guesses that a correction puts right."""
    return int((values == truth).sum() - (problem.guess == truth).sum())


def all_achieved(problem: Problem, truth: np.ndarray, most: int) -> list[int]:
    """The same of the solver, for every exponent."""
    scores, power = [], np.ones(len(truth))
    for _ in range(most + 1):
        found = solve_exact(replace(problem, weights=power))
        scores.append(achieved(problem, truth, found.values))
        power = power * problem.weights
    return scores


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("metric", METRICS)
def test_scores_are_what_the_solver_achieves(metric, form):
    rng = np.random.default_rng([METRICS.index(metric), FORMS.index(form)])
    varied = 0
    for n in (60, 300, 1000):
        for tolerance in (0.0, 0.01, 0.1):
            confidence = rng.uniform(0.5, 1, n)
            problem, truth = make(
                rng, n, RateConstraint(metric, tolerance, form), scale_confidence(confidence)
            )
            scores = score_exponents(problem, truth, MOST)
            powers = [replace(problem, weights=problem.weights**k) for k in range(MOST + 1)]
            found = [solve_exact(power) for power in powers]
            if scores is None:
                assert all(correction.values is None for correction in found)
                continue
            wanted = [achieved(problem, truth, correction.values) for correction in found]
            if metric == "equalized-odds":
                # The scores do not see to it that a group has a member in one of the slices.
                free = [oracles.least_cost_of_moves(p, both_in_use=False) for p in powers]
                same = [c.objective <= f * (1 + 1e-9) for c, f in zip(found, free, strict=True)]
                assert scores[same].tolist() == np.array(wanted)[same].tolist()
                if not all(same):
                    continue
            assert scores.tolist() == wanted
            assert find_best_exponent(problem, truth, MOST) == wanted.index(max(wanted))
            varied += len(set(wanted)) > 1
    assert varied > 2


OTHERS = {
    "two regions": (KnownUnfairness("statistical-parity", 0.05, 0.1),),
    "linked slices": (RateConstraint("equal-opportunity", 0.05), ShareBounds(1, 0.5, 0.55)),
    "known people": (RateConstraint(tolerance=0.02), KnownPeople(range(20), [0, 1] * 10)),
    "bounds": (RateBounds(1, 0.35, 0.4),),
}


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(("constraints", "k"), [*((c, 2) for c in OTHERS), ("three groups", 3)])
def test_scores_of_anything_else_are_what_the_solver_achieves(constraints, k):
    rng = np.random.default_rng(len(constraints))
    known = OTHERS.get(constraints, (RateConstraint(tolerance=0.01),))
    varied = 0
    for _ in range(3):
        problem, truth = make(rng, 150, None, rng.uniform(1, 2, 150), k)
        problem = replace(problem, constraints=known)
        wanted = all_achieved(problem, truth, 5)
        assert score_exponents(problem, truth, 5).tolist() == wanted
        assert find_best_exponent(problem, truth, 5) == wanted.index(max(wanted))
        varied += len(set(wanted)) > 1
    assert varied
    impossible = replace(problem, constraints=(*known, ShareBounds(0, 1, 1), ShareBounds(1, 1, 1)))
    assert score_exponents(impossible, truth, 5) is None
    assert find_best_exponent(impossible, truth, 5) is None


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("metric", METRICS[:3])
def test_scores_of_small_and_tied_problems(metric):
    rng = np.random.default_rng(METRICS.index(metric))
    infeasible = 0
    for _ in range(150):
        n = int(rng.integers(2, 25))
        # Powers of these are exact, so that equal costs are equal in both computations.
        weights = rng.choice([1.0, 1.5, 2.0], n)
        constraint = RateConstraint(metric, rng.choice([0.0, 0.1, 0.3]), rng.choice(FORMS))
        problem, truth = make(rng, n, constraint, weights)
        scores = score_exponents(problem, truth, 8)
        if scores is None:
            infeasible += 1
            assert solve_exact(problem).values is None
            assert find_best_exponent(problem, truth, 8) is None
        else:
            assert scores.tolist() == all_achieved(problem, truth, 8)
    assert 0 < infeasible < 75


def test_the_first_of_many_equal_weights_are_changed():
    rng = np.random.default_rng(6)
    # Eighths: their cubes, and the sums of these, are exact.
    weights = rng.integers(8, 17, 5000) / 8
    for form in FORMS:
        problem, truth = make(rng, 5000, RateConstraint(tolerance=0.01, form=form), weights)
        assert score_exponents(problem, truth, 3).tolist() == all_achieved(problem, truth, 3)


@pytest.mark.slow
def test_a_large_problem_with_every_exponent():
    rng = np.random.default_rng(9)
    confidence = rng.beta(3, 1.5, 40_000) / 2 + 0.5
    problem, truth = make(
        rng, 40_000, RateConstraint(tolerance=0.002), scale_confidence(confidence)
    )
    assert score_exponents(problem, truth, 99).tolist() == all_achieved(problem, truth, 99)


@pytest.mark.parametrize("k", [3, 4])
@pytest.mark.parametrize("metric", ["statistical-parity", "equalized-odds"])
def test_five_corrections_find_nearly_the_best_of_all_exponents(k, metric, monkeypatch):
    """Of more than two groups, where corrections are solved one by one."""
    solved = []

    def solve(problem):
        solved.append(correction := solve_exact(problem))
        return correction

    monkeypatch.setattr(weights_module, "solve_exact", solve)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        truth, confidence = rng.integers(0, k, 60), rng.uniform(1 / k, 1, 60)
        guess = np.where(rng.random(60) < confidence, truth, rng.integers(0, k, 60))
        predictions, labels = (
            (rng.random(60) < 0.3 + 0.2 * (truth == 0)) * 1,
            rng.integers(0, 2, 60),
        )
        claim = RateConstraint(metric, 0.05)
        problem = Problem(guess, k, predictions, labels, (claim,), scale_confidence(confidence))
        solved.clear()
        found, wanted = score_exponents(problem, truth, 40), all_achieved(problem, truth, 40)
        assert 2 <= len(solved) <= 5
        assert [found[0], found[-1]] == [wanted[0], wanted[-1]]
        assert max(wanted) - 1 <= wanted[found.argmax()]
        for exponent in range(1, 40):  # each has the cheapest of the corrections
            costs = problem.weights**exponent @ np.array([c.values != guess for c in solved]).T
            cheapest = [
                c for c, cost in zip(solved, costs, strict=True) if cost <= costs.min() * (1 + 1e-9)
            ]
            assert found[exponent] in [achieved(problem, truth, c.values) for c in cheapest]


def test_the_smallest_of_equally_accurate_exponents_is_chosen():
    rng = np.random.default_rng(1)
    problem, truth = make(rng, 200, RateConstraint(), np.ones(200))
    assert len(set(score_exponents(problem, truth, 99).tolist())) == 1
    assert find_best_exponent(problem, truth) == 0
    problem = replace(problem, weights=rng.uniform(1, 2, 200))
    scores = score_exponents(problem, truth, 99)
    assert find_best_exponent(problem, truth) == np.flatnonzero(scores == scores.max())[0]
    assert find_best_exponent(problem, truth, 0) == 0


@given(arrays(float, st.integers(1, 50), elements=st.floats(0, 1)))
def test_scaled_confidence_lies_in_1_to_2_and_keeps_the_order(confidence):
    before = confidence.copy()
    scaled = scale_confidence(confidence)
    np.testing.assert_array_equal(confidence, before)
    assert scaled.min() == 1
    assert scaled.max() == (2 if confidence.max() > confidence.min() else 1)
    assert (np.diff(scaled[np.argsort(confidence)]) >= 0).all()


def test_scaled_confidence_is_linear():
    np.testing.assert_allclose(scale_confidence(np.array([0.5, 0.6, 0.9])), [1, 1.25, 2])


def test_sharpen_raises_scaled_confidence_to_the_best_power():
    rng = np.random.default_rng(4)
    held_out_confidence = rng.uniform(0.5, 1, 500)
    problem, truth = make(rng, 500, RateConstraint(tolerance=0.01), None)
    confidence = rng.uniform(0.6, 0.9, 30)
    weights, exponent = sharpen(confidence, problem, held_out_confidence, truth)
    scored = replace(problem, weights=scale_confidence(held_out_confidence))
    assert exponent == find_best_exponent(scored, truth)
    assert exponent > 0
    np.testing.assert_array_equal(weights, scale_confidence(confidence) ** exponent)


def test_correctors_of_one_guess_share_its_exponent(monkeypatch):
    searched = []

    def search(problem, truth, most):
        searched.append(most)
        return int(truth.sum())

    monkeypatch.setattr(weights_module, "find_best_exponent", search)
    monkeypatch.setattr(weights_module, "_EXPONENTS", {})
    confidence = np.linspace(0.5, 1, 50)
    problem, truth = make(np.random.default_rng(4), 50, RateConstraint(), None)
    for _ in range(2):
        weights, exponent = sharpen(confidence, problem, confidence.copy(), truth.copy())
        assert exponent == truth.sum()
        np.testing.assert_array_equal(weights, scale_confidence(confidence) ** exponent)
    assert searched == [99]
    assert sharpen(confidence, problem, confidence, 1 - truth)[1] == (1 - truth).sum()
    sharpen(confidence, problem, confidence[::-1], truth, 98)
    assert searched == [99, 99, 98]


@pytest.mark.parametrize(("most", "exponent"), [(99, 1), (1, 1), (0, 0)])
def test_sharpen_falls_back_to_1_where_the_held_out_part_cannot_tell(most, exponent):
    confidence = np.array([0.5, 0.75, 1.0])
    infeasible = Problem(
        np.array([0, 1, 1]), 2, np.array([1, 0, 0]), None, (RateConstraint(tolerance=0.0),)
    )
    truth = np.array([0, 1, 0])
    weights, found = sharpen(confidence, infeasible, np.array([0.6, 0.7, 0.8]), truth, most)
    assert found == exponent
    np.testing.assert_array_equal(weights, np.array([1, 1.5, 2]) ** exponent)


def test_sharpen_falls_back_to_1_where_nothing_is_claimed_of_the_held_out_part():
    problem, truth = make(np.random.default_rng(4), 50, None, None)
    problem = replace(problem, constraints=())
    confidence = np.linspace(0.5, 1, 50)
    weights, exponent = sharpen(confidence, problem, confidence, truth)
    assert exponent == 1
    np.testing.assert_array_equal(weights, scale_confidence(confidence))
