from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression

from fpbench import InputError
from fpbench.correction import calibration
from fpbench.correction.calibration import (
    LEAST_WEIGHT,
    calibrate,
    calibrate_beliefs,
    calibrate_guess,
)

pytestmark = pytest.mark.numeric

PROBABILITY = st.sampled_from([0.0, 1.0, 0.5]) | st.floats(0, 1)
SOMEONE = np.array([0.0, 0.1, 0.5, 0.7, 1.0])


@st.composite
def held_out(draw, least=2, most=40):
    m = draw(st.integers(least, most))
    return draw(arrays(float, m, elements=PROBABILITY)), draw(arrays(bool, m))


def targets(happened):
    """Platt's: as if one more had been seen of each kind."""
    yes, no = happened.sum(), (~happened).sum()
    return np.where(happened, (yes + 1) / (yes + 2), 1 / (no + 2))


@given(held_out())
def test_calibrated_beliefs_are_those_of_maximum_likelihood(drawn):
    beliefs, happened = drawn
    assume(0 < happened.sum() < len(happened))
    target = targets(happened)
    p = calibrate(beliefs, beliefs, happened)
    assert ((p > 0) & (p < 1)).all()
    # Where the loss is least, its slopes are 0; at the end of what is allowed, one is positive.
    scores = np.clip(logit(beliefs), -10, 10)
    assert (p - target).mean() == pytest.approx(0, abs=1e-6)
    correlation = ((scores - scores.mean()) * (p - target)).mean()
    flat = np.ptp(p) < 1e-12
    assert correlation >= -1e-5 if flat else correlation == pytest.approx(0, abs=1e-5)


@given(held_out(0), arrays(float, 20, elements=PROBABILITY))
def test_calibration_keeps_the_order(drawn, beliefs):
    p = calibrate(beliefs, *drawn)
    assert (np.diff(p[np.argsort(beliefs)]) >= 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_the_line_is_that_of_a_general_minimiser(seed):
    rng = np.random.default_rng(seed)
    score = np.clip(rng.normal(1, 3, 200), -10, 10)
    happened = rng.random(200) < expit(0.6 * score - 1)
    target = targets(happened)

    def loss(line):
        z = line[0] * score + line[1]
        return (np.logaddexp(0, z) - target * z).sum()

    slope, intercept = minimize(loss, [1, 0], method="BFGS").x
    found = calibrate([0.1, 0.6], expit(score), happened)
    np.testing.assert_allclose(logit(found), slope * logit([0.1, 0.6]) + intercept, atol=1e-4)


def test_a_known_distortion_is_undone():
    rng = np.random.default_rng(0)
    truth = rng.beta(1, 2, 40_000)
    happened = rng.random(len(truth)) < truth
    # A balanced forest's: shifted towards the rarer event, and too timid.
    shown = expit(0.5 * logit(truth) + 0.7)
    found = calibrate(shown, shown, happened)
    assert np.abs(found - truth).max() < 0.02
    assert np.abs(shown - truth).max() > 0.2


def test_a_held_out_part_that_cannot_tell():
    for beliefs, happened in (([], []), ([0.3], [1]), ([0.3, 0.9], [1, 1]), ([0.0, 1.0], [0, 0])):
        found = calibrate(SOMEONE, beliefs, happened)
        np.testing.assert_array_equal(found, SOMEONE)
        assert found is not SOMEONE


@pytest.mark.parametrize("beliefs", [[0.7] * 5, [1.0] * 5, [0.9, 0.8, 0.7, 0.2, 0.1]])
def test_beliefs_that_are_all_equal_or_contradicted_give_the_share(beliefs):
    happened = np.array([False, False, False, True, True])
    share = targets(happened).mean()
    assert share == pytest.approx((3 * 1 / 5 + 2 * 3 / 4) / 5)
    np.testing.assert_allclose(calibrate(SOMEONE, beliefs, happened), share)


def attacked(seed=0, n=300, m=400, k=2):
    """A guess of (n,) people, and of (m,) others whose truth is known."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(k, size=n + m)
    values = np.where(rng.random(n + m) < 0.7, truth, rng.integers(k, size=n + m))
    confidence = np.clip(rng.normal(0.5 + 0.2 * (values == truth), 0.2), 0, 1)
    return values[m:], confidence[m:], values[:m], confidence[:m], truth[:m]


def test_two_groups_get_the_likelier_one_and_its_log_odds():
    values, confidence, held_values, held_confidence, truth = guess = attacked()
    ones = np.where(values == 1, confidence, 1 - confidence)
    held_ones = np.where(held_values == 1, held_confidence, 1 - held_confidence)
    p = calibrate(ones, held_ones, truth == 1)
    likeliest, weights = calibrate_guess(*guess, 2)
    assert likeliest.dtype == values.dtype
    np.testing.assert_array_equal(likeliest, p > 0.5)
    np.testing.assert_allclose(weights, np.abs(logit(p)), rtol=1e-9)
    assert 0 < (likeliest != values).sum() < 100


def test_a_guess_skewed_towards_one_group_is_changed():
    # Only one in ten is of group 1, but the adversary was taught on as many of each.
    rng = np.random.default_rng(1)
    truth = (rng.random(4000) < 0.1).astype(np.int8)
    balanced = expit(rng.normal(3 * truth - 1.5, 1.7))
    values = (balanced > 0.5).astype(np.int8)
    guess = values, np.maximum(balanced, 1 - balanced)
    likeliest, _ = calibrate_guess(*guess, *guess, truth, 2)
    assert (likeliest == truth).mean() > (values == truth).mean() + 0.05


@given(st.integers(0, 10**6), st.integers(0, 60))
def test_the_names_of_two_groups_do_not_matter(seed, m):
    values, confidence, held_values, held_confidence, truth = attacked(seed, 20, m)
    likeliest, weights = calibrate_guess(values, confidence, held_values, held_confidence, truth, 2)
    others, same = calibrate_guess(
        1 - values, confidence, 1 - held_values, held_confidence, 1 - truth, 2
    )
    np.testing.assert_allclose(same, weights, atol=1e-6)
    clear = weights > 1e-5
    np.testing.assert_array_equal((1 - others)[clear], likeliest[clear])


def test_more_groups_keep_the_guess_and_price_it():
    values, confidence, held_values, held_confidence, truth = guess = attacked(k=4)
    p = calibrate(confidence, held_confidence, held_values == truth)
    same, weights = calibrate_guess(*guess, 4)
    np.testing.assert_array_equal(same, values)
    assert (p < 0.25).any()
    np.testing.assert_allclose(
        weights, np.maximum(np.log(3 * p / (1 - p)), LEAST_WEIGHT), rtol=1e-9
    )


@pytest.mark.parametrize("k", [2, 3])
def test_weights_are_positive_and_finite_without_a_held_out_part(k):
    nobody = np.empty(0, dtype=int)
    values = np.array([0, 1, 1, 0, 1])
    confidence = np.array([1.0, 0.0, 0.5, 0.75, 0.4])
    likeliest, weights = calibrate_guess(values, confidence, nobody, nobody, nobody, k)
    if k == 2:
        # No better than its opposite, a guess stays.
        assert likeliest.tolist() == [0, 0, 1, 0, 0]
        np.testing.assert_allclose(weights, [10, 10, LEAST_WEIGHT, np.log(3), np.log(1.5)])
    else:
        assert likeliest.tolist() == values.tolist()
        wanted = [10 + np.log(2), LEAST_WEIGHT, np.log(2), np.log(6), np.log(4 / 3)]
        np.testing.assert_allclose(weights, wanted)


def draw_world(k, m, temperature, seed):
    """Beliefs of m people, made too sure or too unsure and skewed, and groups by the true ones."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 1.5, (m, k))
    true = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    groups = (true.cumsum(axis=1) > rng.random((m, 1))).argmax(axis=1)
    told = np.exp(logits * temperature + np.linspace(0, 1.5, k))
    return true, told / told.sum(axis=1, keepdims=True), groups


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("temperature", [0.4, 1.0, 3.0])
def test_beliefs_of_any_number_of_groups_become_the_true_ones(k, temperature):
    true, told, groups = draw_world(k, 40_000, temperature, k)
    half = len(told) // 2
    calibrated, method = calibrate_beliefs(told[:half], told[half:], groups[half:])
    assert method in ("scaled", "isotonic")
    np.testing.assert_allclose(calibrated.sum(axis=1), 1)
    assert np.abs(calibrated - true[:half]).mean() < 0.015
    assert np.abs(told[:half] - true[:half]).mean() > 3 * np.abs(calibrated - true[:half]).mean()


def test_two_groups_are_scaled_as_an_event_is():
    _, told, groups = draw_world(2, 150, 2.0, 0)
    calibrated, method = calibrate_beliefs(told, told, groups)
    assert method == "scaled"
    np.testing.assert_allclose(
        calibrated[:, 1], calibrate(told[:, 1], told[:, 1], groups == 1), atol=1e-9
    )


def test_a_bent_curve_is_straightened_by_steps():
    rng = np.random.default_rng(1)
    told = rng.random(20_000)
    true = np.where(told < 0.5, 0.1, 0.6)  # no slope and offset of log-odds makes that
    groups = (rng.random(20_000) < true).astype(int)
    beliefs = np.stack([1 - told, told], axis=1)
    calibrated, method = calibrate_beliefs(beliefs, beliefs[:10_000], groups[:10_000])
    assert method == "isotonic"
    assert np.abs(calibrated[:, 1] - true).mean() < 0.02
    assert 0 < calibrated.min() <= calibrated.max() < 1


@pytest.mark.parametrize("told", ["world", "equal", "few"])
def test_both_ways_are_compared_on_fifths_that_neither_was_fitted_to(told, monkeypatch):
    _, beliefs, groups = draw_world(2, 240, 1.5, 3)
    if told == "equal":
        beliefs[:] = 0.62, 0.38
    elif told == "few":
        beliefs = beliefs.round(1)
    losses = []
    compare = calibration._cross_validate
    monkeypatch.setattr(
        calibration, "_cross_validate", lambda *given: losses.append(compare(*given)) or losses[-1]
    )
    _, method = calibrate_beliefs(beliefs, beliefs, groups)
    expected = np.zeros(2)
    for number in range(5):
        inside = np.arange(240) % 5 == number
        known = beliefs[~inside], groups[~inside]  # 192 people are scaled only
        scaled, _ = calibrate_beliefs(beliefs[inside], *known)
        curve = IsotonicRegression(y_min=1 / 194, y_max=1 - 1 / 194).fit(
            np.r_[known[0][:, 1], 0, 1], np.r_[known[1], 1, 0]
        )
        chance = curve.predict(beliefs[inside, 1])
        for way, p in enumerate((scaled[:, 1], chance)):
            expected[way] -= np.log(np.where(groups[inside] == 1, p, 1 - p)).sum()
    np.testing.assert_allclose(losses, [expected], rtol=1e-9)
    assert method == ("isotonic" if expected[1] < expected[0] else "scaled")


@given(st.integers(2, 4), st.integers(2, 30), st.integers(0, 10**6))
def test_calibrated_beliefs_are_probabilities_and_groups_have_no_order(k, m, seed):
    rng = np.random.default_rng(seed)
    told = rng.dirichlet(np.full(k, 0.2), m)  # many are nearly 0 or 1
    groups = rng.integers(0, k, m)
    assume(len(set(groups.tolist())) > 1)
    calibrated, _ = calibrate_beliefs(told, told, groups)
    assert (calibrated >= 0).all()
    np.testing.assert_allclose(calibrated.sum(axis=1), 1)
    order = rng.permutation(k)
    renamed = np.argsort(order)[groups]  # old group g has the new code of its column
    moved, _ = calibrate_beliefs(told[:, order], told[:, order], renamed)
    np.testing.assert_allclose(moved, calibrated[:, order], atol=1e-6)


def test_what_cannot_calibrate_is_said():
    told = np.full((4, 3), 1 / 3)
    as_given, method = calibrate_beliefs(told, np.zeros((0, 3)), [])
    assert method == "none"
    assert (as_given == told).all()
    with pytest.raises(InputError, match="all 4 held-out people .* known= of fpbench.attack"):
        calibrate_beliefs(told, told, [2, 2, 2, 2])
    with pytest.raises(InputError, match=r"held-out beliefs must be \(3, 3\)"):
        calibrate_beliefs(told, told, [0, 1, 2])
    with pytest.raises(InputError, match="must sum to 1; those of person 0 sum to 1.5"):
        calibrate_beliefs(told * 1.5, told, [0, 1, 2, 0])


@pytest.mark.parametrize("m", [6, 30, 200, 500])
def test_confidence_that_tells_nothing_of_equal_groups_changes_no_guess(m):
    guess, truth, values = np.arange(m) % 2, np.arange(m) % 2, np.arange(10) % 2
    likeliest, _ = calibrate_guess(values, np.full(10, 0.8), guess, np.full(m, 0.5), truth, 2)
    np.testing.assert_array_equal(likeliest, values)
