"""Votes with noise: flips, labels and privacy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpbench import InputError
from fpbench.builtin.pate.noisy_votes import VoteCost, count_votes, flip_probabilities, vote_labels

SIGMAS = st.floats(0.5, 1e4)
COSTS = st.builds(
    VoteCost, st.integers(1, 5000), st.integers(0, 5000), st.floats(0.1, 100, allow_nan=False)
)


def test_votes_are_counted():
    said = np.array([[True, False, False], [True, True, False]])
    assert count_votes(said).tolist() == [[0, 2], [1, 1], [2, 0]]


@pytest.mark.parametrize("sigma", [5.0, 50.0])
def test_flip_probabilities_are_those_of_drawn_noise(sigma):
    k, draws = 30, 40_000
    ones = np.arange(0, k + 1, 3)
    votes = np.column_stack([k - ones, ones])
    rng = np.random.default_rng(0)
    noisy = votes + sigma * rng.standard_normal((draws, len(ones), 2))
    flipped = (vote_labels(noisy, "hard", k) != vote_labels(votes, "hard", k)).mean(axis=0)
    p = flip_probabilities(votes, sigma)
    assert (np.abs(flipped - p) <= 4.5 * np.sqrt(p * (1 - p) / draws) + 1e-9).all()
    # Theorem 2 of Tran et al. is that of teachers who agree.
    assert p[0] == pytest.approx(0.5 * math.erfc(k / (2 * sigma)), rel=1e-12)


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 500)), min_size=1), SIGMAS)
def test_flips_are_symmetric_and_rarer_the_clearer_the_votes(votes, sigma):
    votes = np.array(votes)
    p = flip_probabilities(votes, sigma)
    assert ((p >= 0) & (p <= 0.5)).all()
    assert (p == flip_probabilities(votes[:, ::-1], sigma)).all()
    assert (p <= flip_probabilities(votes, 2 * sigma)).all()
    order = np.argsort(np.abs(votes[:, 1] - votes[:, 0]))
    assert (np.diff(p[order]) <= 0).all()


def test_no_noise_flips_nothing():
    assert flip_probabilities(np.array([[3, 3], [0, 6]]), 0.0).tolist() == [0.0, 0.0]
    for sigma in (-1.0, math.inf, math.nan):
        with pytest.raises(InputError, match="sigma must be "):
            flip_probabilities(np.array([[3, 3]]), sigma)


def test_labels_of_votes():
    votes = np.array([[3, 1], [2, 2], [0, 4], [-5, 9.0]])
    assert vote_labels(votes, "hard", 4).tolist() == [0, 0, 1, 1]
    assert vote_labels(votes, "soft", 4).tolist() == [0.25, 0.5, 1.0, 2.25]
    assert vote_labels(votes, "soft-clipped", 4).tolist() == [0.25, 0.5, 1.0, 1.0]
    assert vote_labels(votes, "equation-12", 4).tolist() == [0.25, 0.5, 1.0, 2.25]
    assert vote_labels(votes + np.array([0, 1]), "equation-12", 4).tolist() == [
        0.5,
        0.75,
        1.25,
        2.5,
    ]
    with pytest.raises(InputError, match="unknown labels 'sof'; did you mean 'soft'"):
        vote_labels(votes, "sof", 4)


@given(st.integers(1, 300), st.data())
def test_soft_labels_are_shares_and_agree_with_hard_ones(k, data):
    ones = data.draw(st.integers(0, k))
    votes = np.array([k - ones, ones])
    assert vote_labels(votes, "soft", k) == pytest.approx(ones / k, abs=1e-12)
    assert vote_labels(votes, "soft-clipped", k) == vote_labels(votes, "soft", k)
    assert vote_labels(votes, "hard", k) == (vote_labels(votes, "soft", k) > 0.5)


@pytest.mark.parametrize(
    ("sigma", "exact", "paper"), [(10, 10.00, 11.60), (50, 1.555, 2.00), (200, 0.341, 0.485)]
)
def test_epsilons_of_the_notes(sigma, exact, paper):
    cost = VoteCost(200)
    assert cost.epsilon(sigma, 1e-5) == pytest.approx(exact, abs=5e-3 if sigma == 10 else 5e-4)
    assert cost.papers_epsilon(sigma, 1e-5) == pytest.approx(paper, abs=5e-3)
    # Its bound, of the best order, found by trying them.
    orders = np.linspace(1.0001, 500, 2_000_000)
    rdp = 200 * orders / sigma**2 + math.log(1e5) / (orders - 1)
    assert cost.papers_epsilon(sigma, 1e-5) == pytest.approx(rdp.min(), rel=1e-6)


@given(COSTS, SIGMAS, st.sampled_from([1e-3, 1e-5, 1e-9]))
def test_sigma_and_epsilon_turn_into_each_other(cost, sigma, delta):
    epsilon = cost.epsilon(sigma, delta)
    if epsilon > 1e-6:  # below, delta alone nearly covers the noise
        assert cost.sigma(epsilon, delta) == pytest.approx(sigma, rel=1e-6)
    assert cost.papers_epsilon(sigma, delta) >= epsilon


@given(COSTS, SIGMAS)
def test_more_noise_and_fewer_answers_cost_less(cost, sigma):
    epsilon = cost.epsilon(sigma, 1e-5)
    assert cost.epsilon(1.5 * sigma, 1e-5) <= epsilon
    assert cost.epsilon(sigma, 1e-3) <= epsilon
    assert VoteCost(cost.answers + 1, cost.tests, cost.ratio).epsilon(sigma, 1e-5) >= epsilon
    assert VoteCost(cost.answers, cost.tests + 1, cost.ratio).epsilon(sigma, 1e-5) >= epsilon
    assert VoteCost(cost.answers, cost.tests, cost.ratio / 2).epsilon(sigma, 1e-5) >= epsilon


def test_the_cost_is_that_of_all_answers_as_one_gaussian():
    """Sums of squared shifts per unit of noise, written out for one changed vote."""
    cost, sigma = VoteCost(30, 80, 2.5), 7.0
    shifts = [math.sqrt(2) / sigma] * 30 + [1 / (2.5 * sigma)] * 80
    assert cost.sensitivity / sigma == pytest.approx(math.sqrt(math.fsum(s * s for s in shifts)))
    assert cost.rho(sigma) == pytest.approx(math.fsum(s * s for s in shifts) / 2)
    assert VoteCost(200).sensitivity == math.sqrt(400)


@pytest.mark.parametrize("arguments", [(0,), (1, -1), (1, 1, 0.0), (1, 1, math.inf)])
def test_no_cost_of_nothing(arguments):
    with pytest.raises(InputError, match="answers must be at least 1"):
        VoteCost(*arguments)


def test_noisy_winners_of_neighbours_are_within_the_guarantee():
    """A likelihood-ratio attack on all answers: it tells neighbours apart no better than delta."""
    m, sigma, delta, draws = 40, 12.0, 1e-5, 20_000
    epsilon = VoteCost(m).epsilon(sigma, delta)
    rng = np.random.default_rng(1)
    # One teacher of eleven votes 1 instead of 0, where it decides.
    one, other = np.array([6, 5]), np.array([5, 6])

    def score(votes):
        noisy = votes + sigma * rng.standard_normal((draws, m, 2))
        return (noisy[..., 1] - noisy[..., 0]).sum(axis=1)

    for threshold in np.linspace(-60, 60, 13):
        first, second = (score(one) <= threshold).mean(), (score(other) <= threshold).mean()
        slack = 4 * math.sqrt(0.25 / draws)
        assert first <= math.exp(epsilon) * second + delta + slack * (1 + math.exp(epsilon))
    # And the exact epsilon is no smaller than it must be: the best test reaches its delta.
    from scipy.special import ndtr

    mu = VoteCost(m).sensitivity / sigma
    best = ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)
    assert best == pytest.approx(delta, rel=1e-6)
