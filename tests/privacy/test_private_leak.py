from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.special import expit
from scipy.stats import norm

from fpbench import Guarantee, InputError
from fpbench.privacy import gaussian_epsilon, limit_private_leak, limit_private_nats


def best_of_all_channels(belief, epsilon, delta=0.0):
    """The greatest accuracy about one person of any guess under (epsilon, delta), by a program.

    A guess is a channel from K groups to K names. Every event that names any of a set of groups
    must be about as likely whichever group is true.
    """
    groups = len(belief)
    rows, sides = [], []
    for truth in range(groups):
        for other in range(groups):
            if truth == other:
                continue
            for event in range(1, 2**groups - 1):
                row = np.zeros((groups, groups))
                named = [(event >> name) & 1 == 1 for name in range(groups)]
                row[truth, named] = 1
                row[other, named] = -math.exp(epsilon)
                rows.append(row.ravel())
                sides.append(delta)
    sums = np.kron(np.eye(groups), np.ones(groups))
    solved = linprog(-np.diag(belief).ravel(), rows, sides, sums, np.ones(groups), bounds=(0, 1))
    assert solved.success
    return -solved.fun


@settings(max_examples=30)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 4),
    st.floats(0.01, 4),
    st.sampled_from([0.0, 0.001, 0.1]),
)
def test_it_is_the_best_of_all_channels(seed, groups, epsilon, delta):
    belief = np.random.default_rng(seed).dirichlet(np.full(groups, 0.8))
    best = best_of_all_channels(belief, epsilon, delta)
    limit = limit_private_leak(belief[None], Guarantee(epsilon, delta))
    assert limit == pytest.approx(best - belief.max(), abs=1e-7)


def test_two_groups_in_closed_form():
    for top, epsilon in ((0.5, 0.1), (0.6, 1.0), (0.9, 1.0)):
        limit = limit_private_leak([[top, 1 - top]], Guarantee(epsilon))
        assert limit == pytest.approx(max(expit(epsilon) - top, 0))


# Best channel found under all Renyi constraints, and the limit of the notes: NOTES-limits 3.3.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("rho", "top", "found", "limit"),
    [
        (0.05, 0.6, 0.0140, 0.0157),
        (0.5, 0.5, 0.2388, 0.2396),
        (0.5, 0.7, 0.075, 0.087),
        (0.5, 0.9, 0.0036, 0.0037),
        (0.005, 0.5, 0.02499, 0.02499),
    ],
)
def test_zero_concentrated_privacy(rho, top, found, limit):
    given_rho = limit_private_leak([[top, 1 - top]], Guarantee(1e6, rho=rho))
    assert found - 1e-5 <= given_rho <= limit + 5e-4


@pytest.mark.slow
@pytest.mark.parametrize("top", [0.5, 0.6, 0.8, 0.95])
@pytest.mark.parametrize("multiplier", [0.5, 2.0, 20.0])
def test_gaussian_noise_leaks_less_than_its_guarantees_allow(top, multiplier):
    mu, logit = 1 / multiplier, math.log(top / (1 - top))
    leak = top * norm.cdf(mu / 2 + logit / mu) + (1 - top) * norm.cdf(mu / 2 - logit / mu) - top
    rho = mu * mu / 2
    epsilon = max(gaussian_epsilon(multiplier, 1e-5), 1e-9)
    assert leak <= limit_private_leak([[top, 1 - top]], Guarantee(epsilon, 1e-5)) + 1e-12
    assert leak <= limit_private_leak([[top, 1 - top]], Guarantee(1e6, rho=rho)) + 1e-12
    both = limit_private_leak([[top, 1 - top]], Guarantee(epsilon, 1e-5, rho=rho))
    assert leak <= both + 1e-12


def test_a_change_of_group_is_a_removal_and_an_addition():
    beliefs = [[0.55, 0.45], [0.8, 0.2]]

    def limit(epsilon, delta, neighbours, rho=None):
        return limit_private_leak(beliefs, Guarantee(epsilon, delta, neighbours, rho))

    assert limit(0.5, 0.0, "add-remove") == limit(1.0, 0.0, "attribute")
    twice = 0.01 * (1 + math.exp(0.5))
    assert limit(0.5, 0.01, "add-remove") == pytest.approx(limit(1.0, twice, "attribute"))
    assert limit(1e6, 0.0, "add-remove", 0.05) == limit(1e6, 0.0, "attribute", 0.2)
    assert limit(0.5, 0.0, "replace-one") == limit(0.5, 0.0, "attribute")


@pytest.mark.parametrize("variation", [0.1, 0.5, 0.99, 1.0])
def test_rho_tells_of_two_equal_groups_half_the_total_variation(variation):
    """Of t, for which a release whose rho is 2 t artanh t exists: randomised response."""
    rho = 2 * variation * math.atanh(variation) if variation < 1 else 40.0
    limit = limit_private_leak([[0.5, 0.5]], Guarantee(1e6, rho=rho))
    assert limit == pytest.approx(variation / 2, abs=1e-9)


def test_three_dependent_people_in_closed_form():
    even = [[0.5, 0.5]]
    together = limit_private_leak(even, Guarantee(0.2, 1e-3), household_size=3)
    delta = 3 * math.exp(0.4) * 1e-3
    assert together == pytest.approx(limit_private_leak(even, Guarantee(0.6, delta)))
    concentrated = limit_private_leak(even, Guarantee(1e6, rho=0.02), household_size=3)
    assert concentrated == pytest.approx(limit_private_leak(even, Guarantee(1e6, rho=0.18)))


def test_groups_none_of_which_is_likely():
    even = np.full((3, 5), 0.2)
    assert limit_private_leak(even, Guarantee(1.0)) + 0.2 == pytest.approx(0.405, abs=5e-4)
    # Merging groups two by two can only make telling easier.
    limit = limit_private_leak(even, Guarantee(1e6, rho=0.05))
    assert 0 < limit <= limit_private_leak([[0.5, 0.5]], Guarantee(1e6, rho=0.05)) + 0.1


def test_certain_people_and_the_mean_over_people():
    certain = [[1.0, 0.0], [0.5, 0.5]]
    assert limit_private_leak(certain, Guarantee(1.0)) == pytest.approx((expit(1.0) - 0.5) / 2)
    assert limit_private_leak(certain, Guarantee(1.0, rho=0.1)) > 0
    with pytest.raises(InputError, match="must sum to 1"):
        limit_private_leak([[0.5, 0.6]], Guarantee(1.0))


@pytest.mark.parametrize("size", [1, 2, 5])
def test_people_who_depend_on_each_other_share_their_guarantee(size):
    """Of a cluster of people alike, the noisy count tells the group of all: exactly, and bounded."""
    epsilon = 0.1
    counts = np.arange(-800, 801)
    # Discrete Laplace noise on a count that is 0 or `size`, each with chance one half.
    law = np.exp(-epsilon * np.abs(counts))
    law /= law.sum()
    moved = np.roll(law, size)
    gain = np.maximum(law, moved).sum() / 2 - 0.5
    beliefs = np.full((3, 2), 0.5)
    limit = limit_private_leak(beliefs, Guarantee(epsilon), household_size=size)
    assert gain <= limit + 1e-12
    assert limit == pytest.approx(1 / (1 + np.exp(-size * epsilon)) - 0.5)
    if size > 1:
        assert gain > limit_private_leak(beliefs, Guarantee(epsilon))  # which is for people alone


def test_what_no_household_is():
    with pytest.raises(InputError, match="a household has at least 1 person, not 0"):
        limit_private_leak(np.full((1, 2), 0.5), Guarantee(1.0), household_size=0)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0])
def test_a_private_release_tells_no_more_than_its_nats(epsilon):
    """Randomised response of everybody's group: its information is exactly the limit's or less."""
    keep = 1 / (1 + math.exp(-epsilon))
    entropy = -keep * math.log(keep) - (1 - keep) * math.log(1 - keep)
    told = math.log(2) - entropy  # of one person at one half
    assert told <= limit_private_nats(Guarantee(epsilon), 1)
    divergence = epsilon * math.tanh(epsilon / 2)
    assert limit_private_nats(Guarantee(epsilon), 10) == pytest.approx(10 * divergence)
    assert limit_private_nats(Guarantee(epsilon, neighbours="add-remove"), 1) == pytest.approx(
        2 * epsilon * math.tanh(epsilon)
    )
    assert limit_private_nats(Guarantee(1.0, 1e-6, "attribute", 0.02), 100) == pytest.approx(2.0)
    twice = Guarantee(1.0, 1e-6, "add-remove", 0.02)
    assert limit_private_nats(twice, 100) == pytest.approx(8.0)
    assert limit_private_nats(Guarantee(1.0, 1e-6), 100) == math.inf


@pytest.mark.slow
def test_dependent_people_multiply_every_kind_of_guarantee():
    beliefs = np.array([[0.5, 0.5], [0.7, 0.3], [0.4, 0.6]])
    for size in (2, 4):
        together = limit_private_leak(beliefs, Guarantee(0.2, 1e-3), household_size=size)
        # Hybrids: each of the members changes in turn.
        delta = sum(1e-3 * math.exp(0.2 * step) for step in range(size))
        least = limit_private_leak(beliefs, Guarantee(0.2 * size, delta))
        assert least <= together <= 1.5 * least
        assert together > limit_private_leak(beliefs, Guarantee(0.2 * size, 1e-3))
        # Gaussian noise on a count of members alike: the shift is their number.
        rho = 0.01
        shift = size * math.sqrt(2 * rho)
        gain = norm.cdf(shift / 2) - 0.5
        concentrated = Guarantee(30.0, 1e-9, "attribute", rho)
        even = np.full((1, 2), 0.5)
        assert gain <= limit_private_leak(even, concentrated, household_size=size) <= 1.4 * gain
        assert limit_private_leak(even, concentrated) < gain
