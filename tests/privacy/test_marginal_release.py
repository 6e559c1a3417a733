"""Measured tables: their guarantee, by enumeration of neighbours; and the fit to what is public."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpbench import Mechanism
from fpbench.components.spec import resolve_component
from fpbench.privacy.marginal_release import (
    Marginals,
    NoisyMarginals,
    fit_people,
    measure_marginals,
    number_cells,
)

PEOPLE = np.array([[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0], [1, 1, -1]])
TABLES = [(0, 1, 2)]


class Watched(Mechanism):
    """Adds nothing, and keeps what it was given."""

    name = "watched"

    def release(self, counts, sensitivity, epsilon, rng, upper=None):
        SEEN.append((np.array(counts), sensitivity, np.array(upper)))
        return counts.astype(float)

    def find_noise_law(self, sensitivity, epsilon, upper):
        return np.ones(upper.shape), np.zeros(upper.shape)


SEEN: list = []


def make_marginals(tables, *, pure=True, people=PEOPLE):
    single = [(0, 2), (1, 2)]
    return Marginals.of(people, np.ones(len(people), np.int64), tables, single, pure=pure)


def count(marginals, groups, k):
    return marginals.cells @ (np.asarray(groups)[:, None] == np.arange(k)).astype(float)


def watch(marginals, groups, k):
    """Weighted counts of a world, as the mechanism gets them, and its sensitivity."""
    counts = count(marginals, groups, k)
    measure_marginals(marginals, counts, Watched(), 1.0, np.random.default_rng(0))
    given, reach, upper = SEEN.pop()
    assert (given >= 0).all() and (given <= upper).all()
    return given, reach


def loss_of_laplace(a, b, scale):
    """The greatest log-ratio of probabilities of whole-number noise, over all outputs near by."""
    outputs = np.arange(min(a, b) - 5, max(a, b) + 6)
    q = np.exp(-1 / scale)
    one, two = ((1 - q) / (1 + q) * q ** np.abs(outputs - c) for c in (a, b))
    return np.log(one / two).max()


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("tables", [TABLES, [(0, 2), (1, 2)], [()], [(2,), (0, 1, 2)]])
def test_the_greatest_privacy_loss_of_neighbours_is_epsilon(tables, k):
    marginals, epsilon = make_marginals(tables), 1.3
    worst = 0.0
    for groups in product(range(k), repeat=len(PEOPLE)):
        own, reach = watch(marginals, groups, k)
        for person, other in product(range(len(PEOPLE)), range(k)):
            changed = [other if i == person else g for i, g in enumerate(groups)]
            near, _ = watch(marginals, changed, k)
            moved = own != near
            losses = map(
                loss_of_laplace, own[moved], near[moved], [reach.l1 / epsilon] * moved.sum()
            )
            worst = max(worst, sum(losses))
            assert ((own - near) ** 2).sum() <= reach.l2**2 + 1e-9
    assert worst == pytest.approx(epsilon)


@settings(max_examples=30)
@given(
    seed=st.integers(0, 999),
    k=st.integers(2, 4),
    noise=st.sampled_from(["discrete-laplace", "laplace", "gaussian", "exponential"]),
    epsilon=st.sampled_from([0.01, 1.0, 100.0]),
)
def test_fitted_people_are_whole_and_as_many_as_there_are(seed, k, noise, epsilon):
    rng = np.random.default_rng(seed)
    kinds = np.unique(rng.integers(-1, 3, (15, 3)), axis=0)
    sizes = rng.integers(0, 6, len(kinds))
    marginals = Marginals.of(kinds, sizes, TABLES, [(0, 2), (1, 2)], pure=noise != "gaussian")
    true = np.array([rng.multinomial(size, np.full(k, 1 / k)) for size in sizes])
    counts = (marginals.cells @ true).astype(float)
    counts[rng.random(len(counts)) < 0.2] = np.nan
    mechanism = resolve_component("mechanism", noise)
    people = fit_people(marginals, measure_marginals(marginals, counts, mechanism, epsilon, rng), k)
    assert people.dtype == np.int64 and (people >= 0).all()
    np.testing.assert_array_equal(people.sum(axis=1), sizes)


def test_noise_that_hides_everything_leaves_the_shares_of_everybody():
    """Rates by group are then those of the slice, which are public."""
    kinds = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    marginals = Marginals.of(kinds, np.full(4, 1000), [(0, 1)], [(0, 1)], pure=True)
    rng = np.random.default_rng(0)
    noisy = NoisyMarginals(rng.normal(0, 1e9, (4, 1)), "gaussian", np.full(4, 1e9), None)
    np.testing.assert_allclose(fit_people(marginals, noisy, 2), 500, atol=1)


def test_smaller_tables_share_half_of_the_privacy():
    kinds = np.array(list(product(range(2), repeat=5)))
    pairs = [(a, b, 4) for a in range(4) for b in range(a)]
    single = [(c, 4) for c in range(4)]
    for pure, weight in ((True, 1.5), (False, 1.5**0.5)):
        own = Marginals.of(kinds, np.ones(32, np.int64), pairs, single, pure=pure)
        assert own.weights == (1,) * 6 + (max(round(weight), 1),) * 4
        assert len(own.tables) == 10


@given(seed=st.integers(0, 99))
def test_cells_have_the_numbers_of_their_values(seed):
    kinds = np.random.default_rng(seed).integers(-1, 4, (20, 4))
    table = (0, 2, 3)
    _, expected = np.unique(kinds[:, table], axis=0, return_inverse=True)
    np.testing.assert_array_equal(number_cells(kinds, table), expected.ravel())
