import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy import stats

import fpbench
from fpbench import InputError, Mechanism
from fpbench.builtin.mechanisms import _exact
from fpbench.builtin.mechanisms.exponential import LOSSES, Exponential
from fpbench.builtin.mechanisms.gaussian import DiscreteGaussian, Gaussian
from fpbench.builtin.mechanisms.laplace import DiscreteLaplace, Laplace
from fpbench.components.guarantee import NEIGHBOURS
from fpbench.privacy import COUNT_SENSITIVITY, Sensitivity
from fpbench.privacy.accounting import rho_to_delta

COUNTS = np.array([[3, 0, 12], [7, 1, 5]])
ATTRIBUTE = COUNT_SENSITIVITY["attribute"]
ONE = Sensitivity(1.0, 1.0)

MECHANISMS = [
    Laplace(),
    Gaussian(),
    Gaussian(delta=1e-3, calibration="classic"),
    DiscreteLaplace(),
    DiscreteGaussian(),
    *(Exponential(utility=utility) for utility in LOSSES),
]
SECURE = [
    DiscreteLaplace(noise="secure"),
    DiscreteGaussian(noise="secure"),
    Exponential(noise="secure"),
]


def called(mechanism):
    return " ".join(f"{value}" for value in (mechanism.name, *mechanism.model_dump().values()))


every = pytest.mark.parametrize("mechanism", [*MECHANISMS, *SECURE], ids=called)
simulated = pytest.mark.parametrize("mechanism", MECHANISMS, ids=called)
secure = pytest.mark.parametrize("mechanism", SECURE, ids=called)


def pmf_laplace(z, scale):
    weights = np.exp(-np.abs(z) / scale)
    return weights * np.tanh(1 / (2 * scale))  # 1 / the sum over all integers


def pmf_gaussian(z, variance):
    everything = np.arange(
        -60 * math.isqrt(math.ceil(variance)) - 60, 60 * math.isqrt(math.ceil(variance)) + 61
    )
    return np.exp(-(z**2) / (2 * variance)) / np.exp(-(everything**2) / (2 * variance)).sum()


def pmf_exponential(q, upper, epsilon, utility, sensitivity=ONE):
    """From the definition: exp(e u / 2 D), D by brute force over all counts."""
    r = np.arange(upper + 1.0)
    u = {
        "absolute": lambda q: -np.abs(r - q),
        "squared": lambda q: -((r - q) ** 2),
        "root": lambda q: -np.sqrt(np.abs(r - q)),
        "indicator": lambda q: np.where(r == q, 0.0, -1.0),
    }[utility]
    change = max([np.abs(u(q) - u(q + 1)).max() for q in range(upper)], default=1.0)
    weights = np.exp(epsilon / sensitivity.l1 * u(q) / (2 * change))
    return weights / weights.sum()


def fits(draws, values, p):
    """Whether frequencies of `values` are those of `p`; the rest is one more value."""
    draws = np.asarray(draws)
    expected = p * len(draws)
    kept = expected >= 5
    seen = np.array([np.count_nonzero(draws == value) for value in values[kept]])
    table_seen = np.append(seen, len(draws) - seen.sum())
    table_expected = np.append(expected[kept], len(draws) - expected[kept].sum())
    if table_expected[-1] < 5:
        assert table_seen[-1] <= 25
        table_seen, table_expected = table_seen[:-1], table_expected[:-1]
        table_expected = table_expected * table_seen.sum() / table_expected.sum()
    if len(table_seen) == 1:  # one value has all the mass
        return table_seen[0] == len(draws)
    return stats.chisquare(table_seen, table_expected).pvalue > 0.001


# The laws


@pytest.mark.parametrize("sensitivity", [ONE, ATTRIBUTE])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_continuous_noise_has_the_calibrated_scale(sensitivity, epsilon, rng):
    counts = np.resize(COUNTS, 20_000)
    noise = Laplace().release(counts, sensitivity, epsilon, rng) - counts
    assert stats.kstest(noise, stats.laplace(scale=sensitivity.l1 / epsilon).cdf).pvalue > 0.01
    assert abs(np.corrcoef(noise[:-1], noise[1:])[0, 1]) < 0.05  # of each count its own
    noise = Gaussian(delta=1e-5).release(counts, sensitivity, epsilon, rng) - counts
    sigma = fpbench.privacy.gaussian_sigma(epsilon, 1e-5, sensitivity.l2)
    assert stats.kstest(noise, stats.norm(scale=sigma).cdf).pvalue > 0.01
    assert fpbench.privacy.gaussian_delta(epsilon, sigma, sensitivity.l2) == pytest.approx(
        1e-5, rel=1e-6
    )


def test_the_classic_calibration_is_the_textbooks(rng):
    counts = np.zeros(20_000, dtype=int)
    classic = Gaussian(delta=1e-5, calibration="classic")
    sigma = math.sqrt(2 * math.log(1.25 / 1e-5)) * math.sqrt(2) / 0.5
    noise = classic.release(counts, ATTRIBUTE, 0.5, rng)
    assert stats.kstest(noise, stats.norm(scale=sigma).cdf).pvalue > 0.01
    assert sigma > fpbench.privacy.gaussian_sigma(0.5, 1e-5, ATTRIBUTE.l2)
    # What it promises is true, and its rho is that of the noise it adds.
    assert fpbench.privacy.gaussian_delta(0.5, sigma, ATTRIBUTE.l2) < 1e-5
    rho = classic.guarantee(0.5, "attribute").rho
    assert rho == pytest.approx(2 / (2 * sigma**2))


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0, 40.0])
@pytest.mark.parametrize("sensitivity", [ONE, ATTRIBUTE])
def test_discrete_laplace_noise_has_its_distribution(epsilon, sensitivity, rng):
    counts = np.resize(COUNTS, 30_000)
    noise = DiscreteLaplace().release(counts, sensitivity, epsilon, rng) - counts
    z = np.arange(-100, 101)
    assert fits(noise, z, pmf_laplace(z, sensitivity.l1 / epsilon))


@pytest.mark.parametrize("scale", ["0.2", "1", "7/3", "20"])
def test_exact_discrete_laplace_draws_have_it_too(scale):
    below = random.Random(1).randrange
    draws = [_exact.draw_discrete_laplace(Fraction(scale), below) for _ in range(20_000)]
    z = np.arange(-300, 301)
    assert fits(draws, z, pmf_laplace(z, float(Fraction(scale))))


@pytest.mark.parametrize("variance", ["0.1", "1", "22/7", "150"])
def test_discrete_gaussian_draws_have_their_distribution(variance, rng):
    below = random.Random(2).randrange
    z = np.arange(-100, 101)
    p = pmf_gaussian(z, float(Fraction(variance)))
    assert fits(
        [_exact.draw_discrete_gaussian(Fraction(variance), below) for _ in range(15_000)], z, p
    )
    from fpbench.builtin.mechanisms._simulated import simulate_discrete_gaussian

    assert fits(
        simulate_discrete_gaussian(np.array(float(Fraction(variance))), (30_000,), rng), z, p
    )


@given(st.fractions(0, 30, max_denominator=50))
def test_a_coin_of_bias_exp_of_a_fraction_ends_and_is_exact_at_0(x):
    below = random.Random(3).randrange
    assert _exact.draw_bernoulli_exp(0, 7, below)
    assert isinstance(_exact.draw_bernoulli_exp(x.numerator, x.denominator, below), bool)


@pytest.mark.parametrize("x", ["1/10", "1", "3/2", "5"])
def test_a_coin_of_bias_exp_of_a_fraction_has_that_bias(x):
    x, below, n = Fraction(x), random.Random(4).randrange, 20_000
    heads = sum(_exact.draw_bernoulli_exp(x.numerator, x.denominator, below) for _ in range(n))
    assert stats.binomtest(heads, n, math.exp(-x)).pvalue > 0.001


@pytest.mark.parametrize("utility", LOSSES)
@pytest.mark.parametrize(
    ("q", "upper"), [(0, 0), (0, 1), (1, 1), (0, 9), (9, 9), (4, 30), (29, 30)]
)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0])
def test_the_exponential_mechanism_follows_its_definition(utility, q, upper, epsilon, rng):
    chosen = Exponential(utility=utility).release(np.full(8000, q), ATTRIBUTE, epsilon, rng, upper)
    r = np.arange(upper + 1)
    assert set(chosen) <= set(r)
    if upper:
        assert fits(chosen, r, pmf_exponential(q, upper, epsilon, utility, ATTRIBUTE))


@pytest.mark.parametrize(
    ("q", "upper", "rate"), [(0, 1, "1/40"), (3, 5, "3/20"), (0, 40, "1/2"), (40, 40, "3")]
)
def test_exact_choices_follow_it_too(q, upper, rate):
    below = random.Random(5).randrange
    draws = [_exact.draw_laplace_within(q, upper, Fraction(rate), below) for _ in range(10_000)]
    p = pmf_exponential(q, upper, 2 * float(Fraction(rate)), "absolute")
    assert fits(draws, np.arange(upper + 1), p)


@pytest.mark.slow
@secure
def test_secure_and_simulated_noise_have_one_distribution(mechanism, rng):
    """The calibration is the same too; secure draws are not seeded, so a wide margin."""
    counts = np.full(4000, 20)
    safe = mechanism.release(counts, ATTRIBUTE, 0.5, rng, upper=200)
    loose = mechanism.model_copy(update={"noise": "simulation"})
    drawn = loose.release(np.full(100_000, 20), ATTRIBUTE, 0.5, rng, upper=200)
    assert stats.ks_2samp(safe, drawn, method="asymp").pvalue > 1e-7
    assert (safe == np.rint(safe)).all()


# What they guarantee


@given(
    st.sampled_from(list(LOSSES)),
    st.integers(1, 40),
    st.floats(0.01, 8),
    st.data(),
)
def test_exponential_neighbours_are_as_likely_as_epsilon_allows(utility, upper, epsilon, data):
    q = data.draw(st.integers(0, upper - 1))
    one, other = (pmf_exponential(count, upper, epsilon, utility) for count in (q, q + 1))
    losses = np.log(one) - np.log(other)
    assert np.abs(losses).max() <= epsilon + 1e-9
    # Rho of a loss within a range of epsilon.
    assert losses.max() - losses.min() <= epsilon + 1e-9
    rho = Exponential(utility=utility).guarantee(epsilon, "add-remove").rho
    assert rho == pytest.approx(epsilon**2 / 8, rel=1e-14)
    for order in (1.01, 2.0, 10.0):
        renyi = np.log(np.sum(other * np.exp(order * losses))) / (order - 1)
        assert renyi <= order * rho + 1e-9


@given(st.floats(0.05, 6), st.sampled_from([1e-6, 1e-3, 0.05]))
def test_discrete_gaussian_noise_keeps_epsilon_and_delta(epsilon, delta):
    """Delta at epsilon, from the distribution itself, for one cell and for two."""
    mechanism = DiscreteGaussian(delta=delta)
    for neighbours, cells in (("add-remove", 1), ("attribute", 2)):
        variance = float(mechanism._find_variance(epsilon, COUNT_SENSITIVITY[neighbours].l2))
        z = np.arange(-60, 61) if variance < 25 else np.arange(-400, 401)
        p = pmf_gaussian(z, variance)
        if p[0] > 1e-15:  # too wide to add up here
            return
        loss = (2 * z + 1) / (2 * variance)  # of z against z + 1
        p, loss = (p, loss) if cells == 1 else (np.outer(p, p), np.add.outer(loss, loss))
        lost = np.sum(p * np.maximum(0, -np.expm1(epsilon - loss)))
        assert lost <= delta
        assert mechanism.guarantee(epsilon, neighbours).delta == delta
        rho = mechanism.guarantee(epsilon, neighbours).rho
        assert cells / (2 * variance) <= rho * (1 + 1e-12)


@pytest.mark.parametrize("mechanism", [Laplace(), DiscreteLaplace(noise="secure"), Exponential()])
@pytest.mark.parametrize("epsilon", [1e160, 1e300, np.float64(1e300)])
def test_huge_epsilons_have_no_rho(mechanism, epsilon):
    claimed = mechanism.guarantee(epsilon, "attribute")
    assert (claimed.epsilon, claimed.rho) == (epsilon, None)
    release = mechanism.release(COUNTS, ATTRIBUTE, 1e300, np.random.default_rng(0), COUNTS + 9)
    np.testing.assert_allclose(release, COUNTS, atol=1e-200)


@simulated
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_a_guarantee_says_epsilon_delta_relation_and_rho(mechanism, neighbours):
    claimed = mechanism.guarantee(0.7, neighbours)
    assert (claimed.epsilon, claimed.neighbours) == (0.7, neighbours)
    delta = getattr(mechanism, "delta", 0.0)
    assert claimed.delta == delta
    # Rho is no worse than any pure guarantee has, and epsilon is no worse than rho says.
    if delta == 0:
        assert 0 < claimed.rho <= 0.7**2 / 2
    elif getattr(mechanism, "calibration", "analytic") == "analytic":
        assert rho_to_delta(claimed.rho, 0.7) >= delta * (1 - 1e-9)


# The shape of answers


@every
def test_answers_have_the_shape_of_counts_and_epsilons(mechanism, rng):
    before = COUNTS.copy()
    epsilon = np.array([0.2, 0.9]).reshape(2, 1, 1, 1)
    many = np.broadcast_to(COUNTS, (2, 3, 2, 3))
    for counts, at, shape in (
        (COUNTS, 0.5, (2, 3)),
        (np.array(5), 0.5, ()),
        (many, epsilon, (2, 3, 2, 3)),
        (COUNTS, epsilon, (2, 1, 2, 3)),
        (COUNTS[:0], 0.5, (0, 3)),
    ):
        noisy = mechanism.release(counts, ATTRIBUTE, at, rng, upper=30)
        assert isinstance(noisy, np.ndarray | np.float64)
        assert noisy.shape == shape
        assert noisy.dtype == np.float64
        if not mechanism.continuous:
            assert (noisy == np.rint(noisy)).all()
    np.testing.assert_array_equal(COUNTS, before)


@simulated
def test_each_epsilon_of_an_array_has_noise_of_its_own(mechanism, rng):
    epsilons = np.array([0.1, 0.5, 0.9])
    counts = np.full((4000, 1), 500)
    together = mechanism.release(counts, ATTRIBUTE, epsilons, rng, upper=1000)
    for noisy, epsilon in zip(together.T, epsilons, strict=True):
        alone = mechanism.release(np.full(4000, 500), ATTRIBUTE, epsilon, rng, upper=1000)
        assert stats.ks_2samp(noisy, alone, method="asymp").pvalue > 0.001
    spread = together.std(axis=0)
    if getattr(mechanism, "utility", "absolute") == "absolute":
        assert spread[0] > 2 * spread[1] > 2 * spread[2]


def test_bounds_of_an_array_are_kept_each(rng):
    upper = np.array([[4], [40]])
    for utility in LOSSES:
        chosen = Exponential(utility=utility).release(
            np.array([[0, 4], [7, 40]]), ATTRIBUTE, np.full((2000, 1, 1), 0.1), rng, upper
        )
        assert chosen.shape == (2000, 2, 2)
        assert (chosen >= 0).all()
        assert (chosen <= upper).all()
        assert chosen[:, 0].max() == 4
        assert chosen[:, 1].max() > 20


@simulated
def test_simulated_noise_is_that_of_the_generator_it_is_handed(mechanism):
    counts = np.full((50, 3), 30)
    first, second, third = (
        mechanism.release(counts, ATTRIBUTE, 0.5, np.random.default_rng(seed), upper=90)
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, second)
    assert (first != third).any()


@secure
def test_secure_noise_does_not_use_the_generator(mechanism, rng):
    before = rng.bit_generator.state
    counts = np.full(200, 50)
    first, second = (mechanism.release(counts, ATTRIBUTE, 0.1, rng, upper=99) for _ in range(2))
    assert (first != second).any()
    assert rng.bit_generator.state == before


@pytest.mark.parametrize(
    ("mechanism", "module"), list(zip(SECURE[:2], ("laplace", "gaussian"), strict=True)),
    ids=["discrete-laplace", "discrete-gaussian"],
)  # fmt: skip
def test_secure_noise_is_added_before_anything_is_rounded(mechanism, module, rng, monkeypatch):
    """An odd number beyond 2^53 is no float; rounded alone, it would leave a count's last bit."""
    odd = 2**53 + 1
    monkeypatch.setattr(f"fpbench.builtin.mechanisms.{module}.exact", lambda law: odd)
    noisy = mechanism.release(np.array([0, 1, 2, 3]), ATTRIBUTE, 1e-9, rng)
    assert noisy.tolist() == [float(odd + count) for count in range(4)]


@simulated
def test_a_huge_epsilon_hardly_changes_counts(mechanism, rng):
    at, upper = 1e12, 12
    if getattr(mechanism, "calibration", "") == "classic" or mechanism.name == "discrete-gaussian":
        at = 0.999 if mechanism.name == "gaussian" else 1e4
    noisy = mechanism.release(COUNTS, ATTRIBUTE, at, rng, upper)
    np.testing.assert_allclose(noisy, COUNTS, atol=40 if at < 1 else 1e-3)


# What is refused


@every
def test_an_epsilon_that_is_none_is_refused(mechanism, rng):
    for at in (0.0, np.array([0.5, math.nan])):
        with pytest.raises(InputError, match="epsilon"):
            mechanism.release(COUNTS, ATTRIBUTE, at, rng, upper=30)
    with pytest.raises(InputError, match="epsilon"):
        mechanism.guarantee(0.0, "attribute")


@pytest.mark.parametrize("mechanism", [Gaussian, DiscreteGaussian])
@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, math.nan])
def test_a_delta_out_of_range_is_refused(mechanism, delta):
    with pytest.raises(ValidationError):
        mechanism(delta=delta)


def test_continuous_noise_cannot_be_secure():
    for mechanism in (Laplace, Gaussian):
        with pytest.raises(ValidationError, match=r"floating-point numbers give .*discrete-"):
            mechanism(noise="secure")


@pytest.mark.parametrize("utility", sorted(set(LOSSES) - {"absolute"}))
def test_only_the_default_utility_can_be_secure(utility):
    with pytest.raises(ValidationError, match='exactly.*for the utility "absolute" only'):
        Exponential(noise="secure", utility=utility)


def test_the_classic_calibration_is_refused_where_it_is_not_proven(rng):
    classic = Gaussian(calibration="classic")
    for at in (1.0, 5.0):
        reason = (
            "mechanism 'gaussian': calibration = \"classic\" is proven for epsilon below 1 only"
        )
        with pytest.raises(InputError, match=reason):
            classic.release(COUNTS, ATTRIBUTE, at, rng)
        with pytest.raises(InputError, match="proven"):
            classic.guarantee(at, "attribute")


@pytest.mark.parametrize("mechanism", [Exponential(), Exponential(noise="secure")], ids=called)
def test_the_exponential_mechanism_needs_bounds(mechanism, rng):
    with pytest.raises(
        InputError, match=r"chooses among 0\.\.upper, so it needs `upper`: a public"
    ):
        mechanism.release(COUNTS, ATTRIBUTE, 1.0, rng)
    for counts, upper in ((COUNTS, 11), (COUNTS - 1, 20)):
        with pytest.raises(InputError, match="a count is below 0 or above its bound") as refused:
            mechanism.release(counts, ATTRIBUTE, 1.0, rng, upper)
        assert "12" not in str(refused.value)  # counts are secret
    with pytest.raises(InputError, match="upper bounds must be whole numbers"):
        mechanism.release(COUNTS, ATTRIBUTE, 1.0, rng, 20.5)


@pytest.mark.parametrize("mechanism", [DiscreteLaplace(), *SECURE], ids=called)
def test_whole_numbers_are_needed_for_whole_noise(mechanism, rng):
    with pytest.raises(InputError, match="counts must be whole numbers, not of type float64"):
        mechanism.release(COUNTS / 2, ATTRIBUTE, 1.0, rng, upper=20)


@pytest.mark.parametrize(("name", "parameters"), [
    ("laplace", {}),
    ("discrete-laplace", {"noise": "secure"}),
    ("gaussian", {}),
    ("discrete-gaussian", {}),
    ("exponential", {}),
    ("exponential", {"utility": "squared"}),
])  # fmt: skip
def test_the_law_that_a_mechanism_tells_is_that_of_its_noise(name, parameters):
    mechanism = fpbench.component("mechanism", name, **parameters)
    upper = np.array([[1000, 2000], [1000, 4000]])
    sensitivity = COUNT_SENSITIVITY["attribute"]
    sigma, scale = mechanism.find_noise_law(sensitivity, 0.2, upper)
    measured = Mechanism.find_noise_law(mechanism, sensitivity, 0.2, upper)
    assert sigma.shape == scale.shape == upper.shape
    assert (sigma.any(), scale.any()) == (measured[0].any(), measured[1].any())
    assert np.allclose(sigma + scale, measured[0] + measured[1], rtol=0.1)
