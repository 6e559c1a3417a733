import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting import gaussian_mechanism
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import RdpAccountant

from fpbench.builtin.mechanisms.exponential import LOSSES
from fpbench.builtin.mechanisms.gaussian import DiscreteGaussian, Gaussian
from fpbench.builtin.mechanisms.laplace import DiscreteLaplace, Laplace
from fpbench.builtin.pate.noisy_votes import VoteCost
from fpbench.components.guarantee import NEIGHBOURS
from fpbench.privacy import (
    COUNT_SENSITIVITY,
    compose_gaussians,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_rho,
    gaussian_sigma,
    rho_to_epsilon,
)
from fpbench.privacy.accounting import sampled_gaussian_epsilon

EPSILONS = [0.05, 0.5, 1.0, 4.0, 12.0]
DELTAS = [1e-10, 1e-6, 1e-3, 0.1]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_gaussian_calibration(epsilon, delta):
    theirs = gaussian_mechanism.get_sigma_gaussian(epsilon, delta)
    assert gaussian_sigma(epsilon, delta) == pytest.approx(theirs, rel=1e-6)
    assert gaussian_epsilon(theirs, delta) == pytest.approx(
        gaussian_mechanism.get_epsilon_gaussian(theirs, delta), rel=1e-6
    )


@pytest.mark.parametrize("sigma", [0.7, 3.0, 25.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 3.0])
def test_the_delta_of_gaussian_noise(sigma, epsilon):
    theirs = pld.from_gaussian_mechanism(sigma).get_delta_for_epsilon(epsilon)
    assert gaussian_delta(epsilon, sigma) == pytest.approx(theirs, rel=1e-3, abs=1e-12)


@pytest.mark.parametrize("sigma", [10, 50, 200])
def test_200_votes_of_teachers(sigma):
    one = pld.from_gaussian_mechanism(sigma, sensitivity=math.sqrt(2))
    theirs = one.self_compose(200).get_epsilon_for_delta(1e-5)
    together = compose_gaussians([sigma / math.sqrt(2)] * 200)
    assert gaussian_epsilon(together, 1e-5) == pytest.approx(theirs, abs=1e-3)


@pytest.mark.parametrize(
    ("answers", "tests", "ratio"), [(200, 0, 1.0), (60, 200, 2.0), (9, 50, 0.5)]
)
@pytest.mark.parametrize("sigma", [20, 100])
def test_answers_and_tests_of_teachers(answers, tests, ratio, sigma):
    theirs = pld.from_gaussian_mechanism(sigma, sensitivity=math.sqrt(2)).self_compose(answers)
    if tests:
        theirs = theirs.compose(pld.from_gaussian_mechanism(sigma * ratio).self_compose(tests))
    ours = VoteCost(answers, tests, ratio).epsilon(sigma, 1e-5)
    assert ours == pytest.approx(theirs.get_epsilon_for_delta(1e-5), abs=1e-3)


@pytest.mark.parametrize("rho", [0.001, 0.03, 0.5, 2.6])
@pytest.mark.parametrize("delta", [1e-10, 1e-6, 1e-3])
def test_rho_is_converted_as_renyi_divergences_are(rho, delta):
    """Theirs is the least over a grid of orders, so ours is a little less; never below the truth."""
    orders = [1 + order for order in np.geomspace(0.01, 5000, 2000)]
    accountant = RdpAccountant(orders)
    accountant.compose(dp_accounting.GaussianDpEvent(1 / math.sqrt(2 * rho)))
    theirs = accountant.get_epsilon(delta)
    assert gaussian_rho(1 / math.sqrt(2 * rho)) == pytest.approx(rho)
    assert rho_to_epsilon(rho, delta) == pytest.approx(theirs, rel=1e-3)
    assert rho_to_epsilon(rho, delta) <= theirs * (1 + 1e-9)


@pytest.mark.parametrize("share", [0.001, 0.05, 0.4, 1.0])
@pytest.mark.parametrize("sigma", [0.8, 3.0])
@pytest.mark.parametrize("steps", [1, 300])
def test_gaussian_noise_on_samples(share, sigma, steps):
    event = dp_accounting.PoissonSampledDpEvent(share, dp_accounting.GaussianDpEvent(sigma))
    event = dp_accounting.SelfComposedDpEvent(event, steps)
    renyi, numerical = RdpAccountant([*range(2, 1025)]), PLDAccountant()
    renyi.compose(event)
    numerical.compose(event)
    for delta in (1e-8, 1e-5, 1e-2):
        ours = sampled_gaussian_epsilon(share, sigma, steps, delta)
        theirs = renyi.get_epsilon(delta)  # 0 if delta alone suffices
        assert ours >= theirs * (1 - 1e-9)
        if theirs > 0.2:  # below, they have more orders
            assert ours == pytest.approx(theirs, rel=1e-9)
        assert ours >= numerical.get_epsilon(delta) - 1e-3


@pytest.mark.parametrize("relation", NEIGHBOURS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("mechanism", [DiscreteGaussian(), DiscreteGaussian(delta=1e-3), Gaussian(), Laplace(), DiscreteLaplace()],
                         ids=lambda mechanism: mechanism.name)  # fmt: skip
def test_what_mechanisms_claim_is_true(mechanism, epsilon, relation):
    """By the distribution of the privacy loss of one cell, composed over the cells that change."""
    cells, sensitivity = (
        {"attribute": 2, "add-remove": 1}[relation],
        COUNT_SENSITIVITY[relation],
    )
    claimed = mechanism.guarantee(epsilon, relation)
    step = 1e-4 if epsilon > 0.5 else 1e-5
    if mechanism.name == "discrete-gaussian":
        sigma = math.sqrt(mechanism._find_variance(epsilon, sensitivity.l2))
        one = pld.from_discrete_gaussian_mechanism(sigma, value_discretization_interval=step)
    elif mechanism.name == "gaussian":
        sigma = sensitivity.l2 * mechanism._find_multiplier(epsilon)
        one = pld.from_gaussian_mechanism(sigma, value_discretization_interval=step)
    else:
        made = {
            "laplace": pld.from_laplace_mechanism,
            "discrete-laplace": pld.from_discrete_laplace_mechanism,
        }
        parameter = (
            epsilon / sensitivity.l1
            if mechanism.name == "discrete-laplace"
            else sensitivity.l1 / epsilon
        )
        one = made[mechanism.name](parameter, value_discretization_interval=step)
    together = one.self_compose(cells) if cells > 1 else one
    # Their estimate is pessimistic: a step of its grid a cell, and a mass of 1e-15 or so of losses
    # without end, which no delta of 0 covers.
    theirs = together.get_epsilon_for_delta(max(claimed.delta, 1e-12))
    assert theirs <= epsilon + 3 * cells * step
    if mechanism.name != "discrete-gaussian":  # which goes by rho, and claims more than it has
        assert theirs >= epsilon * (1 - 1e-3)


@pytest.mark.parametrize("utility", LOSSES)
@pytest.mark.parametrize("epsilon", [0.2, 2.0])
def test_the_claim_of_the_exponential_mechanism_is_true(utility, epsilon):
    loss, change = LOSSES[utility]
    upper, worst = 20, 0.0
    r = np.arange(upper + 1.0)
    for q in range(upper):
        logs = []
        for count in (q, q + 1):
            w = -epsilon * loss(np.abs(r - count)) / (2 * change(np.array([float(upper)])))
            logs.append(dict(enumerate(w - np.log(np.exp(w).sum()))))
        both = [pld.from_two_probability_mass_functions(*pair) for pair in (logs, logs[::-1])]
        worst = max(worst, *(one.get_epsilon_for_delta(0.0) for one in both))
    assert 0 < worst <= epsilon + 1e-3
