"""Bounds on epsilon from below, of many runs, on mechanisms whose epsilon is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from fpbench import InputError
from fpbench.auditing import (
    bound_epsilon,
    find_most_provable,
)
from fpbench.auditing.epsilon_bounds import bound_by_hits, choose_threshold


def randomise(truth, epsilon, rng):
    """Randomised response of N people with the same bit, and a number that tells nothing."""
    honest = rng.random(len(truth)) < np.exp(epsilon) / (1 + np.exp(epsilon))
    return np.column_stack([np.where(honest, truth, 1 - truth), rng.normal(size=len(truth))])


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_many_runs_are_bounded_nearly_always(epsilon):
    rng, audits, n = np.random.default_rng(0), 200, 200
    bounds = np.array([
        bound_epsilon(randomise(np.ones(n), epsilon, rng), randomise(np.zeros(n), epsilon, rng))
        for _ in range(audits)
    ])  # fmt: skip
    assert np.count_nonzero(bounds > epsilon) <= binom.ppf(0.9999, audits, 0.05)
    assert (bounds >= 0).all()
    if epsilon == 2:
        assert bounds.mean() > 1


def test_delta_is_allowed_for():
    """A release that fails with probability delta, and otherwise tells nothing."""
    rng, n = np.random.default_rng(0), 4000
    one = (rng.random((n, 1)) < 0.02).astype(float)
    other = np.zeros((n, 1))
    assert bound_epsilon(one, other) > 1
    assert bound_epsilon(one, other, delta=0.05) == 0


@given(st.integers(0, 2**32), st.floats(0, 0.1))
def test_a_threshold_promises_the_bound_of_its_shares_of_all_draws(seed, delta):
    rng = np.random.default_rng(seed)
    p, q = np.sort(rng.normal(1, 1, 40)), np.sort(rng.normal(0, 1, 50))
    promised, threshold = choose_threshold(p, q, 200, delta, 0.05)
    hits = [np.array(200 * np.mean(part >= threshold)) for part in (p, q)]
    assert promised == pytest.approx(float(bound_by_hits(*hits, 200, delta, 0.05)))


def test_few_draws_are_binned_coarsely():
    """Of noise of deviation 1 on numbers 2 apart; a bin for each few draws would prove 1.16."""
    bounds = [
        bound_epsilon(*(np.random.default_rng([seed, at]).normal(at, 1, (200, 1)) for at in (0, 2)))
        for seed in range(20)
    ]
    assert np.mean(bounds) > 1.4


def test_the_most_provable_is_that_of_an_event_that_never_fails():
    one, other = np.ones((200, 1)), np.zeros((200, 1))
    assert bound_epsilon(one, other) == pytest.approx(find_most_provable(200, 0.0, 0.95))
    assert find_most_provable(200, 0.0, 0.95) == pytest.approx(np.log(0.9638 / 0.0362), abs=0.01)


@pytest.mark.parametrize(("call", "words"), [
    (lambda: bound_epsilon(np.zeros((40, 1)), np.zeros((40, 2))), "must both be"),
    (lambda: bound_epsilon(np.zeros((39, 1)), np.zeros((39, 1))), "at least 40, not 39"),
    (lambda: bound_epsilon(np.zeros((40, 1)), np.full((40, 1), np.nan)), "must be numbers"),
    (lambda: bound_epsilon(np.zeros((40, 1)), np.zeros((40, 1)), delta=1), "delta must be in"),
])  # fmt: skip
def test_bad_input_is_refused(call, words):
    with pytest.raises(InputError, match=words):
        call()
