"""Published values, closed forms, and laws that every conversion must keep."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from fpbench import Guarantee, InputError
from fpbench.privacy import (
    compose,
    compose_gaussians,
    epsilon_to_rho,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_rho,
    gaussian_sigma,
    pure_rho,
    rho_to_delta,
    rho_to_epsilon,
)

epsilons = st.floats(1e-3, 50)
deltas = st.floats(-12, -0.05).map(lambda power: 10**power)
sigmas = st.floats(0.1, 300)
rhos = st.floats(1e-6, 20)


# Published values


@pytest.mark.parametrize(
    ("sigma", "exact", "classic"), [(10, 10.00, 11.60), (50, 1.555, 2.00), (200, 0.341, 0.485)]
)
def test_200_votes_of_teachers(sigma, exact, classic):
    """Tran et al., A Fairness Analysis on Private Aggregation of Teacher Ensembles, 2021: m = 200
    queries at delta 1e-5. One teacher's vote changes two counts by one: L2 sensitivity sqrt 2, the
    noise is of standard deviation sigma. Their epsilons, by Renyi divergence, are those of the
    classic conversion of rho; the exact ones are lower.
    """
    together = compose_gaussians([sigma / math.sqrt(2)] * 200)
    assert gaussian_epsilon(together, 1e-5) == pytest.approx(exact, abs=6e-3)
    rho = 200 * gaussian_rho(sigma, math.sqrt(2))
    assert rho_to_epsilon(rho, 1e-5, "classic") == pytest.approx(classic, abs=6e-3)
    assert exact < rho_to_epsilon(rho, 1e-5) < classic


def test_the_standard_normal_at_epsilon_1():
    """Dong, Roth & Su, Gaussian Differential Privacy, 2022, Corollary 2.13, for mu = 1."""
    expected = stats.norm.cdf(-0.5) - math.e * stats.norm.cdf(-1.5)
    assert gaussian_delta(1.0, 1.0) == pytest.approx(expected, rel=1e-12)
    assert expected == pytest.approx(0.126937, abs=1e-6)


# Against the definition


@given(st.floats(0, 8), st.floats(0.3, 20))
def test_delta_is_what_the_densities_say(epsilon, sigma):
    """The hockey-stick divergence of N(1, s^2) from N(0, s^2), integrated."""
    one, other = stats.norm(1, sigma), stats.norm(0, sigma)
    start = sigma**2 * epsilon + 0.5  # from where on the ratio of the densities is above e^epsilon

    def excess(x):
        return one.pdf(x) - math.exp(epsilon) * other.pdf(x)

    expected, _ = integrate.quad(excess, start, start + 40 * sigma, epsabs=1e-13, limit=200)
    assert gaussian_delta(epsilon, sigma) == pytest.approx(expected, abs=1e-10)


@given(st.floats(1e-4, 3), st.floats(0, 8))
def test_the_delta_of_rho_is_the_least_over_all_orders(rho, epsilon):
    a = 1 + np.geomspace(1e-6, 1e6, 20_001)
    logs = (a - 1) * (a * rho - epsilon) - np.log(a - 1) + a * np.log1p(-1 / a)
    found = rho_to_delta(rho, epsilon)
    least = min(logs.min(), 0.0)
    # The grid is coarse where the best order is large.
    assert math.exp(least - 0.01) <= found <= math.exp(least) * (1 + 1e-9)


# Laws


@given(epsilons, deltas)
def test_sigma_and_epsilon_are_inverse(epsilon, delta):
    sigma = gaussian_sigma(epsilon, delta)
    assert gaussian_epsilon(sigma, delta) == pytest.approx(epsilon, rel=1e-6)
    assert gaussian_delta(epsilon, sigma) <= delta
    assert gaussian_delta(epsilon, sigma) == pytest.approx(delta, rel=1e-6)


@given(sigmas, deltas)
def test_epsilon_and_sigma_are_inverse(sigma, delta):
    epsilon = gaussian_epsilon(sigma, delta)
    if epsilon > 1e-9:
        assert gaussian_sigma(epsilon, delta) == pytest.approx(sigma, rel=1e-6)
    assert gaussian_delta(epsilon, sigma) <= delta * (1 + 1e-12)


@given(epsilons, deltas)
def test_rho_and_epsilon_are_inverse(epsilon, delta):
    rho = epsilon_to_rho(epsilon, delta)
    assert rho_to_epsilon(rho, delta) == pytest.approx(epsilon, rel=1e-6)
    assert rho_to_delta(rho, epsilon) <= delta


@given(rhos, deltas)
def test_a_better_conversion_is_better(rho, delta):
    """Of Gaussian noise, whose rho this is: exact, optimal over rho, classic."""
    exact = gaussian_epsilon(1 / math.sqrt(2 * rho), delta)
    optimal, classic = rho_to_epsilon(rho, delta), rho_to_epsilon(rho, delta, "classic")
    assert exact <= optimal * (1 + 1e-9)
    assert optimal <= classic
    assert classic == rho + 2 * math.sqrt(rho * math.log(1 / delta))


@given(epsilons, deltas, st.floats(1.01, 3))
def test_more_privacy_needs_more_noise(epsilon, delta, more):
    sigma = gaussian_sigma(epsilon, delta)
    assert gaussian_sigma(epsilon * more, delta) < sigma
    assert epsilon_to_rho(epsilon * more, delta) > epsilon_to_rho(epsilon, delta)
    assert gaussian_delta(epsilon, sigma * more) < gaussian_delta(epsilon, sigma)
    if delta * more < 1:
        assert gaussian_sigma(epsilon, delta * more) < sigma


@given(epsilons, deltas, st.floats(0.1, 10))
def test_noise_is_relative_to_the_sensitivity(epsilon, delta, sensitivity):
    sigma = gaussian_sigma(epsilon, delta, sensitivity)
    assert sigma == pytest.approx(sensitivity * gaussian_sigma(epsilon, delta))
    assert gaussian_rho(sigma, sensitivity) == pytest.approx(gaussian_rho(sigma / sensitivity))


@given(st.lists(sigmas, min_size=1, max_size=5))
def test_composed_gaussians_are_one_with_the_sum_of_the_rhos(parts):
    together = compose_gaussians(parts)
    assert together <= min(parts) * (1 + 1e-12)
    assert gaussian_rho(together) == pytest.approx(sum(map(gaussian_rho, parts)))
    assert compose_gaussians([*parts, 1e9]) == pytest.approx(together)


@given(st.floats(0.01, 0.3), st.integers(50, 500))
def test_many_small_releases_cost_less_by_rho(epsilon, times):
    total = compose([Guarantee(epsilon, rho=pure_rho(epsilon))] * times)
    assert total.rho == pytest.approx(times * epsilon**2 / 2)
    assert rho_to_epsilon(total.rho, 0.01) < total.epsilon


def test_noise_beyond_need_has_epsilon_0():
    assert gaussian_epsilon(1e6, 0.01) == 0.0
    assert rho_to_epsilon(1e-9, 0.5) == 0.0


@pytest.mark.parametrize("call", [
    lambda: gaussian_delta(-1.0, 1.0),
    lambda: gaussian_delta(math.nan, 1.0),
    lambda: gaussian_delta(1.0, 0.0),
    lambda: gaussian_delta(1.0, 1.0, 0.0),
    lambda: gaussian_sigma(0.0, 1e-05),
    lambda: gaussian_sigma(1.0, 0.0),
    lambda: gaussian_sigma(1.0, 1.0),
    lambda: gaussian_sigma(math.inf, 1e-05),
    lambda: gaussian_epsilon(1.0, 1.0),
    lambda: gaussian_epsilon(-1.0, 0.1),
    lambda: gaussian_rho(0.0),
    lambda: pure_rho(0.0),
    lambda: rho_to_delta(0.0, 1.0),
    lambda: rho_to_epsilon(1.0, 0.0),
    lambda: rho_to_epsilon(-1.0, 0.1),
    lambda: rho_to_epsilon(1.0, 0.1, "best"),
    lambda: epsilon_to_rho(1.0, 2.0),
    lambda: epsilon_to_rho(0.0, 0.1),
    lambda: compose_gaussians([]),
    lambda: compose_gaussians([1.0, 0.0]),
])  # fmt: skip
def test_numbers_out_of_range_are_refused(call):
    with pytest.raises(InputError, match=r"must (not )?be|unknown conversion"):
        call()


@pytest.mark.parametrize(("rho", "epsilon"), [(1.0, 1e308), (1e-300, 1e10), (5e-324, 1e-20)])
def test_a_delta_below_all_floats_is_none(rho, epsilon):
    assert rho_to_delta(rho, epsilon) == 0.0


def test_beyond_all_sense_there_is_an_answer():
    assert 0 < epsilon_to_rho(1e299, 1e-6) <= 1e299
    with pytest.raises(InputError, match="at most 1e300"):
        epsilon_to_rho(1e308, 1e-6)
