"""Published values, closed forms, and laws that every conversion must keep."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
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
    rho_to_epsilon,
    sampled_gaussian_sigma,
)
from fpbench.privacy.accounting import (
    _list_terms,
    _measure_renyi,
    rho_to_delta,
    sampled_gaussian_epsilon,
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
    total = compose([Guarantee(epsilon, rho=epsilon**2 / 2)] * times)
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


# Noise on samples


@pytest.mark.parametrize(
    ("share", "sigma", "steps", "delta", "renyi", "numerical"),
    [
        (0.01, 1.0, 1000, 1e-5, 2.1077530754515745, 1.8282436455855091),
        (0.02, 2.0, 500, 1e-5, 1.0152578678692419, 0.9209285481112798),
        (0.256 / 60, 1.1, 14063, 1e-5, 2.5970795196566616, 2.381778812581751),
        (0.1, 0.7, 50, 1e-6, 15.670307345646439, 12.384131448191123),
        (0.5, 4.0, 100, 1e-5, 6.391292656339921, 5.868720578133993),
        (1.0, 10.0, 40, 1e-5, 2.814109167845533, 2.594383623305774),
    ],
)
def test_epsilon_of_steps_on_samples(share, sigma, steps, delta, renyi, numerical):
    """dp-accounting 0.6.0: RdpAccountant of orders 2 to 1,024, and PLDAccountant."""
    found = sampled_gaussian_epsilon(share, sigma, steps, delta)
    assert found == pytest.approx(renyi, rel=1e-12)
    assert numerical < found < 1.3 * numerical
    assert sampled_gaussian_sigma(found, delta, share, steps) == pytest.approx(sigma, rel=1e-9)


@pytest.mark.parametrize(("share", "sigma"), [(0.05, 0.8), (0.3, 2.0), (0.7, 1.5)])
@pytest.mark.parametrize("order", [2, 5, 17])
def test_renyi_divergence_of_a_step_is_the_greater_integral(share, sigma, order):
    """Of one more person, and of one less: densities of N(0, s) and its mixture with N(1, s)."""

    def integrate_ratio(sign):
        def density(z):
            away = stats.norm.logpdf(z, 0, sigma)
            moved = stats.norm.logpdf(z, 1, sigma)
            mixed = np.logaddexp(math.log1p(-share) + away, math.log(share) + moved)
            one, other = (mixed, away)[::sign]
            return math.exp(order * one + (1 - order) * other)

        return integrate.quad(density, -30 * sigma, order + 30 * sigma, limit=1000)[0]

    greater = max(integrate_ratio(1), integrate_ratio(-1))
    found = _measure_renyi(share, sigma)[_list_terms(share)[0] == order].item()
    assert found == pytest.approx(math.log(greater) / (order - 1), rel=1e-6)


@given(st.floats(1e-6, 1), st.floats(0.05, 1e6), st.integers(1, 10_000), deltas)
def test_more_steps_larger_samples_and_less_noise_cost_more(share, sigma, steps, delta):
    found = sampled_gaussian_epsilon(share, sigma, steps, delta)
    assert sampled_gaussian_epsilon(share, sigma, steps + 1, delta) >= found
    assert sampled_gaussian_epsilon(min(1.0, 1.1 * share), sigma, steps, delta) >= found * 0.999999
    assert sampled_gaussian_epsilon(share, 1.1 * sigma, steps, delta) <= found
    together = compose_gaussians([sigma] * steps)
    if share == 1:
        assert found >= gaussian_epsilon(together, delta) * 0.999999


@settings(max_examples=20)
@given(st.floats(0.01, 1e6), st.floats(-20, -0.05), st.floats(1e-4, 1), st.integers(1, 5000))
def test_sigma_is_enough_and_hardly_more(epsilon, power, share, steps):
    sigma = sampled_gaussian_sigma(epsilon, 10**power, share, steps)
    assert sampled_gaussian_epsilon(share, sigma, steps, 10**power) <= epsilon
    if sigma > 1e-100:
        assert sampled_gaussian_epsilon(share, 0.999 * sigma, steps, 10**power) > epsilon


def test_an_epsilon_that_renyi_orders_cannot_show_is_refused():
    with pytest.raises(InputError, match=r"epsilon must be above 0\.00298, which is as little"):
        sampled_gaussian_sigma(1e-4, 1e-9, 0.1, 10)
    for wrong in ({"share": 0.0}, {"share": 1.1}, {"sigma": 0.0}, {"steps": 0}, {"delta": 1.0}):
        right = {"share": 0.1, "sigma": 1.0, "steps": 5, "delta": 1e-5}
        with pytest.raises(InputError, match=next(iter(wrong))):
            sampled_gaussian_epsilon(**{**right, **wrong})
    with pytest.raises(InputError, match=r"share must be above 0 and at most 1, not 1\.1"):
        sampled_gaussian_epsilon(1.1, 1.0, 5, 1e-5)
