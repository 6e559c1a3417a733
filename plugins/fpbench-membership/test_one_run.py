"""Bounds on epsilon from one run, on mechanisms whose epsilon is known."""

import numpy as np
import pytest
from fpbench_membership import bound_epsilon_one_run, compute_one_run_p_value
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from fpbench import InputError

LAWS = settings(max_examples=30, deadline=None)
SIZES = st.integers(1, 300).flatmap(
    lambda m: st.integers(0, m).flatmap(lambda r: st.integers(0, r).map(lambda v: (m, r, v)))
)


@LAWS
@given(SIZES, st.floats(1e-9, 8))
def test_without_delta_it_is_the_tail_of_a_binomial(sizes, epsilon):
    m, r, v = sizes
    tail = binom.sf(v - 1, r, np.exp(epsilon) / (1 + np.exp(epsilon)))
    assert compute_one_run_p_value(m, r, v, epsilon=epsilon) == pytest.approx(tail)


@LAWS
@given(SIZES, st.floats(1e-9, 8), st.floats(0, 1e-2))
def test_delta_adds_the_worst_mean_of_what_lies_below(sizes, epsilon, delta):
    m, r, v = sizes
    chance = np.exp(epsilon) / (1 + np.exp(epsilon))
    i = np.arange(1, m + 1)
    worst = ((binom.cdf(v - 1, r, chance) - binom.cdf(v - i - 1, r, chance)) / i).max()
    expected = binom.sf(v - 1, r, chance) + 2 * m * delta * worst
    mine = compute_one_run_p_value(m, r, v, epsilon=epsilon, delta=delta)
    assert mine == pytest.approx(min(expected, 1.0), abs=1e-9)


def test_delta_of_one_canary_that_is_guessed_right():
    """P[wrong] is 1 / (1 + e): twice delta of it is added."""
    p_value = compute_one_run_p_value(1, 1, 1, epsilon=1.0, delta=0.1)
    assert p_value == pytest.approx((np.e + 0.2) / (1 + np.e))


@LAWS
@given(SIZES, st.sampled_from([0.0, 1e-5, 1e-3]), st.integers(1, 2))
def test_the_bound_is_where_the_p_value_crosses(sizes, delta, steps):
    m, r, v = sizes
    bound = bound_epsilon_one_run(m, r, v, delta=delta, steps=steps)

    def p_value(epsilon):
        together = delta * sum(np.exp(epsilon * j) for j in range(steps))
        return compute_one_run_p_value(m, r, v, epsilon=steps * epsilon, delta=min(together, 1))

    assert p_value(bound + 1e-6) >= 0.05 - 1e-9
    if bound > 0:
        assert p_value(bound - 1e-6) < 0.05 + 1e-9
        assert all(p_value(e) < 0.05 for e in np.linspace(1e-9, bound, 7)[:-1])


def test_one_run_of_randomised_response_is_bounded_nearly_always_and_nearly_tightly():
    """Each canary is answered rightly with probability e / (1 + e): epsilon is 1."""
    rng, m = np.random.default_rng(0), 1000
    right = rng.binomial(m, np.e / (1 + np.e), 400)
    bounds = {v: bound_epsilon_one_run(m, m, int(v)) for v in np.unique(right)}
    drawn = np.array([bounds[v] for v in right])
    above = np.count_nonzero(drawn > 1)
    assert above <= binom.ppf(0.9999, len(drawn), 0.05)
    assert np.median(drawn) > 0.85


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: compute_one_run_p_value(5, 6, 1, epsilon=1), "right <= guesses <= canaries"),
        (lambda: compute_one_run_p_value(5, 5, 1, epsilon=-1), "epsilon must be above 0"),
        (lambda: compute_one_run_p_value(5.5, 5, 1, epsilon=1), "canaries: must be a whole number"),
        (lambda: compute_one_run_p_value(5, 5, 1, epsilon=1, delta="x"), "delta: must be a number"),
        (lambda: bound_epsilon_one_run(5, 5, 1, confidence=1.0), "confidence"),
        (lambda: bound_epsilon_one_run(5, 5, 1, steps=0), "steps: must be a whole number"),
    ],
)
def test_bad_input_is_refused(call, words):
    with pytest.raises(InputError, match=words):
        call()
