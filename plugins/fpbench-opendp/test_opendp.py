"""The mechanisms, as they are used: installed, found by name, attacked, in a matrix."""

from __future__ import annotations

import re
import tomllib
from itertools import permutations
from pathlib import Path

import numpy as np
import opendp.prelude as dp
import pytest
from fpbench_opendp import gaussian, laplace, permute_and_flip
from pydantic import ValidationError
from scipy import stats

import fpbench
from fpbench import InputError, testing
from fpbench.privacy import COUNT_SENSITIVITY, Sensitivity

COUNTS = np.array([[3, 0, 12], [7, 1, 5]])
ATTRIBUTE = COUNT_SENSITIVITY["attribute"]
DRAWS = {
    "opendp-laplace": 3000,
    "opendp-discrete-laplace": 8000,
    "opendp-geometric": 1500,
    "opendp-gaussian": 3000,
    "opendp-discrete-gaussian": 4000,
    "opendp-permute-and-flip": 1000,
}
every = pytest.mark.parametrize("name", DRAWS)
UNLIKELY = 1e-9
"""Nobody can seed the operating system: tests of frequencies fail this often by chance."""


def released(name, counts=COUNTS, epsilon=1.0, sensitivity=ATTRIBUTE, upper=20, **parameters):
    mechanism = fpbench.component("mechanism", name, **parameters)
    return mechanism.release(
        np.asarray(counts), sensitivity, epsilon, np.random.default_rng(0), upper=upper
    )


def test_all_that_is_registered_is_tested():
    entries = fpbench.plugin.discover().of_kind("mechanism")
    assert {e.name for e in entries if e.source.distribution == "fpbench-opendp"} == set(DRAWS)


@every
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_an_attack_does_not_disprove_it(name, epsilon):
    mechanism = fpbench.component("mechanism", name)
    testing.check_mechanism(
        mechanism, epsilon=epsilon, neighbours=("attribute",), draws=max(DRAWS[name] // 3, 1000),
        confidence=1 - UNLIKELY,
    )  # fmt: skip


def test_an_attack_of_this_size_would_find_half_the_noise():
    mechanism = fpbench.component("mechanism", "opendp-discrete-laplace")

    def too_little(counts, rng):
        return mechanism.release(counts, Sensitivity(1.0, 1.0), 4.0, rng)

    bound = testing.epsilon_lower_bound(
        too_little, (6, 4), (5, 5), draws=2000, rng=np.random.default_rng(0)
    )
    assert bound > 2


@every
def test_shapes_are_broadcast_and_the_generator_is_not_used(name):
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    mechanism = fpbench.component("mechanism", name)
    counts = COUNTS.copy()
    epsilon = np.array([0.5, 2.0])[:, None, None]
    noisy = mechanism.release(counts, ATTRIBUTE, epsilon, rng, upper=np.array([[20], [30]]))
    assert noisy.shape == (2, 2, 3)
    assert noisy.dtype == np.float64
    assert np.isfinite(noisy).all()
    assert rng.bit_generator.state == before
    assert (counts == COUNTS).all()


@every
def test_much_epsilon_is_hardly_any_noise_and_little_is_much(name):
    assert released(name, epsilon=500.0) == pytest.approx(COUNTS, abs=0.5)
    far = released(name, np.full(200, 10), epsilon=1e-4)
    assert np.abs(far - 10).mean() > 4


@every
def test_each_element_gets_its_own_epsilon_and_bound(name):
    epsilon = np.array([1e-3, 800.0])[:, None]
    noisy = released(name, np.full((2, 300), 10), epsilon, upper=np.array([20, 11] * 150))
    assert np.abs(noisy[0] - 10).std() > 1
    assert noisy[1] == pytest.approx(np.full(300, 10), abs=0.5)


@pytest.mark.parametrize("name", ["opendp-geometric", "opendp-permute-and-flip"])
def test_what_chooses_within_bounds_needs_them_and_stays_there(name):
    noisy = released(name, np.full(400, 3), epsilon=0.01, upper=np.array([3, 7] * 200))
    assert set(noisy[::2]) <= {0.0, 1.0, 2.0, 3.0}
    assert noisy.min() == 0
    assert noisy[::2].max() == 3
    assert noisy[1::2].max() == 7
    assert released(name, [0], upper=0) == [0.0]
    with pytest.raises(InputError, match="needs `upper`"):
        released(name, upper=None)
    with pytest.raises(InputError, match="a count is below 0 or above its bound"):
        released(name, upper=11)
    with pytest.raises(InputError, match="upper bounds must be whole numbers"):
        released(name, upper=20.5)


@every
def test_bad_input_is_refused(name):
    for wrong in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(InputError, match="epsilon must be above 0 and finite"):
            released(name, epsilon=wrong)
    with pytest.raises(InputError, match="counts must be whole numbers"):
        released(name, COUNTS + 0.5)
    with pytest.raises((ValidationError, fpbench.FpbenchError), match="secure"):
        fpbench.component("mechanism", name, noise="simulation")


@pytest.mark.parametrize("name", ["opendp-gaussian", "opendp-discrete-gaussian"])
def test_what_opendp_cannot_convert_is_refused(name):
    mechanism = fpbench.component("mechanism", name)
    with pytest.raises(InputError, match="up to 10000, not 1e"):
        mechanism.guarantee(1e308, "attribute")
    with pytest.raises(InputError, match="up to 10000"):
        released(name, epsilon=1e6)


@pytest.mark.parametrize("epsilon", [1e-4, 0.1, 0.3, 1.0, 7.7])
@pytest.mark.parametrize("l1", [1, 2])
def test_opendps_own_map_says_what_is_claimed(epsilon, l1):
    for measurement in (
        laplace._calibrate_laplace(epsilon, float(l1)),
        laplace._calibrate_discrete_laplace(epsilon, l1),
        laplace._calibrate_geometric(epsilon, l1, 30),
        permute_and_flip._calibrate_noisy_max(epsilon, l1),
    ):
        assert epsilon * (1 - 1e-9) <= measurement.map(l1) <= epsilon


@pytest.mark.parametrize("epsilon", [1e-2, 0.3, 1.0, 7.7])
@pytest.mark.parametrize("of", [int, float])
def test_opendps_own_conversion_says_what_is_claimed(of, epsilon):
    measurement = gaussian._calibrate_gaussian(of, epsilon, 1e-6, 2**0.5)
    rho = fpbench.privacy.epsilon_to_rho(epsilon, 1e-6)
    assert rho * (1 - 1e-9) <= measurement.map(2**0.5) <= rho
    approximate = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(measurement), delta=1e-6)
    spent, delta = approximate.map(2**0.5)
    assert spent <= epsilon
    assert spent == pytest.approx(epsilon, rel=1e-6)
    assert delta == 1e-6
    kind = "opendp-gaussian" if of is float else "opendp-discrete-gaussian"
    guarantee = fpbench.component("mechanism", kind).guarantee(epsilon, "attribute")
    assert (guarantee.epsilon, guarantee.delta, guarantee.rho) == (epsilon, 1e-6, rho)


def test_whole_numbers_have_the_distribution_that_is_written():
    draws = 20_000
    noise = released("opendp-discrete-laplace", np.full(draws, 50), 1.0) - 50
    z = np.arange(-8, 9)
    expected = np.exp(-np.abs(z) / 2) * np.tanh(1 / 4)
    seen = np.array([(noise == value).sum() for value in z])
    rest = draws - seen.sum()
    chance = stats.chisquare([*seen, rest], draws * np.array([*expected, 1 - expected.sum()]))
    assert chance.pvalue > UNLIKELY


def test_discrete_normal_noise_is_whole_and_as_wide_as_it_says():
    noise = released("opendp-discrete-gaussian", np.full(5000, 50), 2.0) - 50
    assert (noise == np.rint(noise)).all()
    variance = 1 / fpbench.privacy.epsilon_to_rho(2.0, 1e-6)  # squared L2 sensitivity 2, over 2 rho
    # (n - 1) s^2 / variance has almost a chi-squared distribution.
    ratio = noise.var(ddof=1) / variance
    low, high = stats.chi2(4999).ppf([UNLIKELY, 1 - UNLIKELY]) / 4999
    assert low < ratio < high


def test_real_numbers_have_the_distribution_that_is_written():
    noise = released("opendp-laplace", np.full(5000, 50), 0.5) - 50
    assert stats.kstest(noise, stats.laplace(scale=4).cdf).pvalue > UNLIKELY
    rho = fpbench.privacy.epsilon_to_rho(0.5, 1e-6)
    sigma = 2**0.5 / (2 * rho) ** 0.5
    noise = released("opendp-gaussian", np.full(5000, 50), 0.5) - 50
    assert stats.kstest(noise, stats.norm(scale=sigma).cdf).pvalue > UNLIKELY


def permute_and_flip_law(count, upper, epsilon):
    """Probability of every answer, from the definition: all orders of the candidates."""
    keep = np.exp(-epsilon * np.abs(np.arange(upper + 1) - count) / 2)
    law = np.zeros(upper + 1)
    orders = list(permutations(range(upper + 1)))
    for order in orders:
        left = 1.0
        for r in order:
            law[r] += left * keep[r] / len(orders)
            left *= 1 - keep[r]
    return law


@pytest.mark.parametrize("count", [0, 2, 4])
def test_noisy_max_is_permute_and_flip_and_not_the_exponential_mechanism(count):
    draws = 8000
    chosen = released("opendp-permute-and-flip", np.full(draws, count), 1.5,
                      Sensitivity(1.0, 1.0), upper=4)  # fmt: skip
    seen = np.bincount(chosen.astype(int), minlength=5)
    law = permute_and_flip_law(count, 4, 1.5)
    assert law.sum() == pytest.approx(1)
    assert stats.chisquare(seen, draws * law).pvalue > UNLIKELY
    exponential = np.exp(-1.5 * np.abs(np.arange(5) - count) / 2)
    assert stats.chisquare(seen, draws * exponential / exponential.sum()).pvalue < UNLIKELY


@pytest.mark.parametrize("check", testing.checks("fpbench-opendp"), ids=str)
def test_it_keeps_the_laws_of_its_kind(check):
    verdict = check()
    if check.law.words == "is deterministic for a seed":  # OpenDP cannot be given one
        assert verdict.outcome is testing.Outcome.SKIPPED
        assert "cannot be repeated" in verdict.reason
    else:
        assert verdict.outcome is testing.Outcome.KEPT, verdict.reason


@every
def test_it_runs_in_a_matrix(name, tmp_path):
    matrix = {
        "dataset": [{"use": "census-synthetic", "rows": 300}],
        "learner": [{"use": "plain", "base_parameters": {"max_depth": 3}}],
        "auditor": [{"use": "pafer", "epsilon": 0.5}],
        "mechanism": [{"use": name}],
        "policy": [{"use": "clip"}],
    }
    (row,) = fpbench.run(matrix, out=tmp_path / "run").frame().to_dict("records")
    assert row["status"] == "done", row["reason"]
    assert row["noise"] == "secure"


def test_the_matrix_of_the_readme_runs(tmp_path):
    text = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    frame = fpbench.run({**tomllib.loads(block), "seeds": 1}, out=tmp_path / "run").frame()
    assert (frame["status"] == "done").all(), frame["reason"].tolist()


def test_the_matrix_of_the_benchmarks_runs(tmp_path):
    path = Path(__file__).parents[2] / "benchmarks" / "plugins-opendp.toml"
    matrix = tomllib.loads(path.read_text(encoding="utf-8")) | {"seeds": 1}
    frame = fpbench.run(matrix, out=tmp_path / "run").frame()
    assert (frame["status"] == "done").all(), frame["reason"].tolist()
