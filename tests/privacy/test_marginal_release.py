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
    _make_whole,
    fit_people,
    measure_marginals,
    number_cells,
    plan_marginals,
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


def make_marginals(tables, *, share=0.5):
    single, sizes = [(0, 2), (1, 2)], np.ones(len(PEOPLE), np.int64)
    return Marginals.of(PEOPLE, sizes, tables, single, pure=True, share=share)


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
@pytest.mark.parametrize(
    ("tables", "share"),
    [(TABLES, 0.5), (TABLES, 0.25), (TABLES, 0.95), ([(0, 2), (1, 2)], 0.5), ([()], 0.5),
     ([(2,), (0, 1, 2)], 0.75)],
)  # fmt: skip
def test_the_greatest_privacy_loss_of_neighbours_is_epsilon(tables, share, k):
    marginals, epsilon = make_marginals(tables, share=share), 1.3
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


@given(
    columns=st.integers(2, 12),
    share=st.sampled_from([0.25, 0.5, 0.95]),
    pure=st.booleans(),
)
def test_smaller_tables_get_their_share_of_the_privacy(columns, share, pure):
    kinds = np.zeros((1, columns + 1), np.int64)
    pairs = [(a, b, columns) for a in range(columns) for b in range(a)]
    single = [(c, columns) for c in range(columns)]
    own = Marginals.of(kinds, np.ones(1, np.int64), pairs, single, pure=pure, share=share)
    privacy = np.array(own.weights) ** (1.0 if pure else 2.0)
    assert len(own.tables) == len(pairs) + columns
    assert privacy[-columns:].sum() / privacy.sum() == pytest.approx(share, abs=0.06)


@pytest.mark.parametrize("noise", ["discrete-laplace", "discrete-gaussian", "exponential"])
def test_planned_weights_are_about_the_best(noise):
    """Much noise leaves single columns only; little is spread, for pairs to be seen."""
    mechanism = resolve_component("mechanism", noise)
    for epsilon in (1.0, 100.0):
        off = {}
        for seed in range(4):
            pairs, true = make_pairs(np.random.default_rng(seed), apart=0.5)
            tables, single = pairs.tables[:3], pairs.tables[3:]
            plans = [
                Marginals.of(pairs.kinds, pairs.sizes, tables, single,
                             pure=noise != "discrete-gaussian", share=share)
                for share in (0.25, 0.95)
            ]  # fmt: skip
            best = plan_marginals(
                pairs.kinds, pairs.sizes, tables, single, 2, mechanism, epsilon
            ).weights
            rates, sizes = find_rates(pairs, true)
            for plan in plans:
                rng = np.random.default_rng(seed)
                noisy = measure_marginals(plan, plan.cells @ true, mechanism, epsilon, rng)
                own, _ = find_rates(plan, fit_people(plan, noisy, 2))
                error = np.nanmean(np.abs(own - rates)[sizes >= 10])
                off.setdefault(plan.weights, []).append(error)
        mean = {weights: np.mean(errors) for weights, errors in off.items()}
        assert best in mean and mean[best] <= 1.05 * min(mean.values())


@given(seed=st.integers(0, 99))
def test_cells_have_the_numbers_of_their_values(seed):
    kinds = np.random.default_rng(seed).integers(-1, 4, (20, 4))
    table = (0, 2, 3)
    _, expected = np.unique(kinds[:, table], axis=0, return_inverse=True)
    np.testing.assert_array_equal(number_cells(kinds, table), expected.ravel())


def make_pairs(rng, people=300, apart=0.0):
    """Kinds of people in pairs of three columns by the prediction, and true numbers of two groups.

    In some slices more of the second group are selected."""
    codes = np.column_stack([rng.integers(0, 3, (people, 3)), rng.random(people) < 0.4])
    groups = rng.random(people) < 0.3 + apart * codes[:, 3] * (codes[:, 0] == 1)
    kinds, which = np.unique(codes, axis=0, return_inverse=True)
    true = np.zeros((len(kinds), 2))
    np.add.at(true, (which.ravel(), groups.astype(int)), 1)
    tables = [(0, 1, 3), (0, 2, 3), (1, 2, 3)]
    sizes = true.sum(axis=1).astype(np.int64)
    return Marginals.of(kinds, sizes, tables, [(c, 3) for c in range(3)], pure=True), true


def find_rates(marginals, people):
    """Rates of both groups in all slices, and their people there; NaN of empty ones."""
    rates, sizes = [], []
    for table in marginals.tables:
        own = number_cells(marginals.kinds, table[:-1])
        selected, all_ = np.zeros((2, own.max() + 1, 2))
        np.add.at(all_, own, people)
        np.add.at(selected, own, people * marginals.kinds[:, [-1]])
        with np.errstate(invalid="ignore"):
            rates.append(selected / all_)
        sizes.append(all_)
    return np.concatenate(rates), np.concatenate(sizes)


def test_a_fit_of_few_people_is_about_as_near_as_public_rates_or_nearer():
    """Of 300 people; whole numbers alone cost a few hundredths."""
    laplace, times = resolve_component("mechanism", "laplace"), []
    for seed, epsilon in product(range(4), (0.1, 1.0, 20.0)):
        marginals, true = make_pairs(np.random.default_rng(seed), apart=0.3)
        rng = np.random.default_rng(seed)
        noisy = measure_marginals(marginals, marginals.cells @ true, laplace, epsilon, rng)
        (rates, sizes), (own, _) = (
            find_rates(marginals, people) for people in (true, fit_people(marginals, noisy, 2))
        )
        counts = sizes >= 10
        public = np.nansum(rates * sizes, axis=1, keepdims=True) / sizes.sum(axis=1, keepdims=True)
        off = [np.nanmean(np.abs(guess - rates)[counts]) for guess in (own, public + 0 * rates)]
        times.append(off[0] / off[1])
    small, middle, large = np.array(times).reshape(4, 3).mean(axis=0)
    assert small < 1.1 and middle < 1.1 and large < 0.75


def test_whole_numbers_keep_the_rates_of_slices():
    """Better than the numbers of each kind alone rounded to whole ones."""
    marginals, _ = make_pairs(np.random.default_rng(0))
    share = np.random.default_rng(1).random(len(marginals.sizes))
    wanted = marginals.sizes[:, None] * np.column_stack([1 - share, share])
    rounded = np.rint(wanted[:, 1])
    alone = np.column_stack([marginals.sizes - rounded, rounded])
    off = [
        np.abs(marginals.contrasts @ (marginals.cells @ (people - wanted))).mean()
        for people in (_make_whole(marginals, wanted, 1.0), alone)
    ]
    assert off[0] < 0.6 * off[1]
