import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import PrivateAttr
from scipy import stats

import fpbench
from fpbench import Guarantee, InputError, Mechanism
from fpbench.auditing.epsilon_bounds import bound_by_hits
from fpbench.builtin.mechanisms.exponential import Exponential
from fpbench.builtin.mechanisms.gaussian import DiscreteGaussian, Gaussian
from fpbench.builtin.mechanisms.laplace import DiscreteLaplace, Laplace
from fpbench.components.guarantee import NEIGHBOURS
from fpbench.plugin import discover
from fpbench.privacy import COUNT_SENSITIVITY, Sensitivity
from fpbench.testing import check_mechanism, epsilon_lower_bound
from fpbench.testing.attacks import PAIRS, Attack, attack_mechanism


def ours(kind):
    found = [
        entry
        for entry in discover()
        if entry.kind == kind and entry.source.distribution == "fpbench-toolkit"
    ]
    assert found
    return [fpbench.component(kind, entry.name) for entry in found]


def shrunk(mechanism, factor=0.8):
    """The same mechanism with noise that is too small: it believes in a lower sensitivity."""

    class Shrunk(type(mechanism)):
        def release(self, counts, sensitivity, epsilon, rng, upper=None):
            less = Sensitivity(factor * sensitivity.l1, factor * sensitivity.l2)
            return super().release(counts, less, epsilon, rng, upper)

    return Shrunk(**mechanism.model_dump())


def named(component):
    return component.name


# Ours


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ours("mechanism"), ids=named)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_our_mechanisms_pass(mechanism, epsilon):
    check_mechanism(mechanism, epsilon=epsilon, draws=20_000)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ours("policy"), ids=named)
@pytest.mark.parametrize("mechanism", ours("mechanism"), ids=named)
def test_our_chains_of_mechanism_and_policy_pass(mechanism, policy):
    check_mechanism(mechanism, policy, draws=10_000)


@pytest.mark.slow
@pytest.mark.parametrize("utility", ["squared", "root", "indicator"])
def test_other_utilities_pass(utility):
    check_mechanism(Exponential(utility=utility), draws=30_000)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism", [Gaussian(delta=0.02), DiscreteGaussian(delta=0.005)], ids=named
)
def test_a_delta_that_can_be_seen_passes_too(mechanism):
    check_mechanism(mechanism)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism", [cls(noise="secure") for cls in (DiscreteLaplace, DiscreteGaussian, Exponential)],
    ids=named,
)  # fmt: skip
def test_secure_noise_passes(mechanism):
    """Slow to draw, and of the operating system, not seeded: fewer draws, and more confidence."""
    check_mechanism(mechanism, neighbours=["attribute"], draws=1500, confidence=1 - 1e-9)


# Too little noise


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism", [Laplace(), DiscreteLaplace(), Gaussian(delta=0.02)], ids=named
)
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_noise_too_small_by_a_fifth_is_found(mechanism, neighbours):
    options = {"neighbours": [neighbours], "draws": 100_000}
    for attack in attack_mechanism(shrunk(mechanism), rng=np.random.default_rng(1), **options):
        assert attack.broken
        assert 1 < attack.epsilon < 1.25
        assert (attack.claimed.epsilon, attack.claimed.neighbours) == (1.0, neighbours)
    with pytest.raises(AssertionError) as found:
        check_mechanism(shrunk(mechanism), **options)
    assert str(found.value).startswith(
        f"mechanism {mechanism.name!r} claims epsilon 1 at delta "
        f"{getattr(mechanism, 'delta', 0):g} for neighbours = {neighbours!r}, but has at least 1."
    )


def test_the_bounds_of_all_attacks_are_true_together(monkeypatch):
    """Each may be wrong with its share of what all may be (Bonferroni)."""
    wrong = []

    def record(*_, confidence, **__):
        wrong.append(1 - confidence)
        return 0.0

    monkeypatch.setattr("fpbench.testing.attacks.epsilon_lower_bound", record)
    attacks = attack_mechanism(Laplace(), confidence=0.99, rng=np.random.default_rng(0))
    assert len(attacks) == len(wrong) > 1
    assert wrong == pytest.approx([0.01 / len(wrong)] * len(wrong))


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_it_is_found_in_discrete_gaussian_noise(neighbours):
    """Its claim comes from rho and has some slack, so the draws must be many."""
    mechanism, options = DiscreteGaussian(delta=0.02), {"neighbours": [neighbours], "epsilon": 4.0}
    check_mechanism(mechanism, draws=100_000, **options)
    with pytest.raises(AssertionError, match=r"claims epsilon 4 at delta 0\.02 .* has at least 4"):
        check_mechanism(shrunk(mechanism), draws=300_000, **options)


@pytest.mark.slow
def test_it_is_found_in_the_exponential_mechanism():
    """Its claim is reached only for small epsilons, at the end of a long range of counts."""

    def release(mechanism):
        return lambda counts, rng: mechanism.release(
            counts, COUNT_SENSITIVITY["add-remove"], 0.25, rng, upper=60
        )

    options = {"draws": 2_000_000, "confidence": 0.999}
    for mechanism, low, high in ((Exponential(), 0.15, 0.25), (shrunk(Exponential()), 0.25, 0.28)):
        found = epsilon_lower_bound(
            release(mechanism), 0, 1, rng=np.random.default_rng(1), **options
        )
        assert low < found < high


@pytest.mark.slow
@pytest.mark.parametrize("utility", ["root", "indicator"])
def test_other_utilities_have_half_the_epsilon_they_claim(utility):
    """So that a fifth less noise breaks nothing, but much less does."""
    check_mechanism(shrunk(Exponential(utility=utility)), draws=30_000)
    with pytest.raises(AssertionError, match="'exponential' claims epsilon 1 at delta 0 "):
        check_mechanism(shrunk(Exponential(utility=utility), 0.3))


@pytest.mark.slow
@pytest.mark.parametrize("policy", ours("policy"), ids=named)
def test_a_policy_does_not_hide_it(policy):
    """Some policies hide a part of it, by forgetting; what is left is still too much."""
    with pytest.raises(AssertionError, match=f"'laplace' with policy '{policy.name}' claims"):
        check_mechanism(shrunk(Laplace(), 0.5), policy, neighbours=["attribute"], draws=30_000)


@pytest.mark.slow
def test_a_guarantee_of_the_wrong_relation_is_found():
    """Noise for adding a person is too little for changing one: L1 sensitivity 1, not 2."""

    class Mistaken(Laplace):
        def release(self, counts, sensitivity, epsilon, rng, upper=None):
            return super().release(counts, COUNT_SENSITIVITY["add-remove"], epsilon, rng, upper)

    check_mechanism(Mistaken(), neighbours=["add-remove"])
    with pytest.raises(AssertionError, match=r"has at least 1\.[89]"):
        check_mechanism(Mistaken(), neighbours=["attribute"])


def test_noise_that_two_cells_share_is_found():
    """Each cell alone is private; their difference is not noisy at all."""

    class Sharing(Laplace):
        def release(self, counts, sensitivity, epsilon, rng, upper=None):
            noise = rng.laplace(scale=sensitivity.l1 / epsilon, size=counts.shape[:-1])
            return counts + noise[..., None]

    with pytest.raises(AssertionError, match="has at least"):
        check_mechanism(Sharing(), draws=20_000)


@pytest.mark.slow
def test_an_atom_that_gives_the_truth_away_is_found():
    """Hardly ever, but then for certain: a delta that was not claimed."""

    class Leaking(Laplace):
        _seldom: float = PrivateAttr(0.005)

        def release(self, counts, sensitivity, epsilon, rng, upper=None):
            noisy = super().release(counts, sensitivity, epsilon, rng, upper)
            return np.where(rng.random(counts.shape) < self._seldom, counts, noisy)

    with pytest.raises(AssertionError, match="claims epsilon 0.1 "):
        check_mechanism(Leaking(), epsilon=0.1, draws=60_000)


# The bound itself


@given(st.integers(0, 2**32 - 1), st.floats(0.2, 2))
def test_the_bound_is_below_the_truth_and_near(seed, epsilon):
    """Randomised response, whose epsilon is known; so sure that 60 trials of any run are right."""

    def release(counts, rng):
        lie = rng.random(counts.shape) < 1 / (1 + math.exp(epsilon))
        return np.where(lie, 1 - counts, counts).astype(float)

    options = {"draws": 40_000, "confidence": 1 - 1e-8}
    found = epsilon_lower_bound(release, 0, 1, rng=np.random.default_rng(seed), **options)
    assert epsilon - 0.4 < found <= epsilon


@pytest.mark.slow
def test_it_errs_no_more_often_than_it_says():
    """At 80 % confidence, of a release right at its epsilon."""
    epsilon, trials = 0.5, 400

    def release(counts, rng):
        lie = rng.random(counts.shape) < 1 / (1 + math.exp(epsilon))
        return np.where(lie, 1 - counts, counts).astype(float)

    rng = np.random.default_rng(3)
    wrong = sum(
        epsilon_lower_bound(release, 0, 1, draws=1000, confidence=0.8, rng=rng) > epsilon
        for _ in range(trials)
    )
    assert stats.binomtest(wrong, trials, 0.2, alternative="greater").pvalue > 0.01


def test_equal_inputs_cannot_be_told_apart():
    release = lambda counts, rng: counts + rng.normal(size=counts.shape)  # noqa: E731
    assert epsilon_lower_bound(release, [3, 4], [3, 4], rng=np.random.default_rng(0)) == 0.0


def test_a_delta_that_covers_everything_leaves_nothing():
    release = lambda counts, rng: counts.astype(float)  # noqa: E731
    options = {"rng": np.random.default_rng(0), "draws": 10_000}
    assert epsilon_lower_bound(release, [3], [4], **options) > 6
    assert epsilon_lower_bound(release, [3], [4], delta=0.9999, **options) == 0.0


@given(st.integers(1, 500), st.data())
def test_frequencies_are_bounded_as_by_clopper_and_pearson(n, data):
    p, q = data.draw(st.integers(0, n)), data.draw(st.integers(0, n))
    delta = data.draw(st.sampled_from([0.0, 0.01, 0.3]))
    low = stats.binomtest(p, n, alternative="greater").proportion_ci(0.9995, "exact").low
    high = stats.binomtest(q, n, alternative="less").proportion_ci(0.9995, "exact").high
    expected = math.log((low - delta) / high) if low > delta else -math.inf
    assert bound_by_hits(np.array(p), np.array(q), n, delta, 0.001) == pytest.approx(
        expected, rel=1e-6, abs=1e-9
    )


@pytest.mark.parametrize("relation", NEIGHBOURS)
def test_the_pairs_are_neighbours_as_far_apart_as_neighbours_may_be(relation):
    for one, other in PAIRS[relation]:
        change = np.subtract(one, other)
        assert np.abs(change).sum() == COUNT_SENSITIVITY[relation].l1
        assert np.linalg.norm(change) == pytest.approx(COUNT_SENSITIVITY[relation].l2)
        assert min(*one, *other) >= 0


def test_an_attack_that_proves_too_much_breaks_a_claim():
    claimed = Guarantee(1.0)
    assert not Attack((1,), (0,), claimed, 1.0).broken
    assert Attack((1,), (0,), claimed, 1.01).broken


def fine(counts, rng):
    return counts + rng.normal(size=counts.shape)


@pytest.mark.parametrize(("wrong", "message"), [
    ({"other": [1, 2]}, r"inputs of shapes \(1,\) and \(2,\)"),
    ({"draws": 10}, "draws must be at least 1000"),
    ({"delta": 1.0}, "delta must be in"),
    ({"confidence": 1.0}, "delta must be in"),
    ({"release": lambda counts, rng: counts[:5]}, r"an array \(5, 1\), not \(2000, \.\.\.\)"),
    ({"release": lambda counts, rng: counts + math.nan}, "not finite"),
])  # fmt: skip
def test_what_cannot_be_judged_is_refused(wrong, message):
    call = {"release": fine, "one": [1], "other": [0], "draws": 2000, **wrong}
    with pytest.raises(InputError, match=message):
        epsilon_lower_bound(**call, rng=np.random.default_rng(0))


def test_toys_of_others_are_judged_too(toys):
    """A mechanism of a third party that is not private at all: noise that ignores epsilon."""
    hiss = fpbench.component("mechanism", "hiss", scale=0.1)
    assert isinstance(hiss, Mechanism)
    with pytest.raises(AssertionError, match="mechanism 'hiss' claims"):
        check_mechanism(hiss, draws=20_000)
