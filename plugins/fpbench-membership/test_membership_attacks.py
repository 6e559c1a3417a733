"""Attacks against brute force and against the exact likelihood ratio."""

import numpy as np
import pytest
from fpbench_membership import (
    compute_confidence,
    compute_log_odds,
    score_answers,
    score_fairness_discrepancy,
    score_lira,
    score_loss,
    score_rmia,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal, norm
from sklearn.metrics import roc_auc_score

from fpbench import InputError
from fpbench.auditing import draw_halves

LAWS = settings(max_examples=25, deadline=None)


@st.composite
def worlds(draw):
    """Confidences of an audited model and of shadow models, and who was in which."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, pairs = draw(st.integers(1, 12)), draw(st.integers(2, 6))
    members = draw_halves(rng.integers(0, 2, n), 2 * pairs, rng)
    target, shadows = rng.random(n), rng.random((2 * pairs, n))
    if draw(st.booleans()):  # answers, which tie
        target, shadows = np.rint(target), np.rint(shadows)
    return target, shadows, members


@LAWS
@given(worlds(), st.booleans())
def test_lira_is_the_ratio_of_two_normal_densities(world, shared):
    target, shadows, members = world
    own, others = compute_log_odds(target), compute_log_odds(shadows)
    scores = score_lira(own, others, members, shared_variance=shared)
    offline = score_lira(own, others, members, online=False, shared_variance=shared)
    logs = []
    for side in (members, ~members):
        mean = np.array([others[side[:, i], i].mean() for i in range(len(own))])
        free = side.sum() - len(own)
        pooled = np.sqrt(((others - mean) ** 2 * side).sum() / free)
        pooled = max(pooled, 1e-6)
        own_spread = [others[side[:, i], i].std(ddof=1) for i in range(len(own))]
        spread = np.full(len(own), pooled) if shared else np.maximum(own_spread, pooled / 10)
        logs.append(norm.logpdf(own, mean, spread))
    np.testing.assert_allclose(scores, logs[0] - logs[1], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(offline, norm.logcdf(own, mean, spread), rtol=1e-9, atol=1e-9)


@LAWS
@given(worlds(), st.booleans(), st.sampled_from([1.0, 1.3, 2.0]), st.floats(0, 1))
def test_rmia_compares_everybody_with_everybody(world, online, gamma, factor):
    target, shadows, members = world
    options = {"online": online, "gamma": gamma, "offline_factor": factor}
    scores = score_rmia(target, shadows, members, **options)
    ratio = np.empty(len(target))
    for i in range(len(target)):
        out = shadows[~members[:, i], i].mean()
        inside = shadows[members[:, i], i].mean()
        mean = (out + inside) / 2 if online else ((1 + factor) * out + 1 - factor) / 2
        ratio[i] = (target[i] + 1e-9) / (mean + 1e-9)
    near = ratio[:, None] / ratio[None, :] * (1 + 1e-12) >= gamma
    np.testing.assert_allclose(scores, near.mean(axis=1), atol=1e-12)
    # Whatever gamma is, nobody with a greater ratio has a smaller score.
    assert (np.diff(scores[np.argsort(ratio)]) >= 0).all()


@LAWS
@given(worlds(), st.booleans())
def test_fd_mia_is_the_ratio_of_two_bivariate_densities(world, shared):
    target, shadows, members = world
    rng = np.random.default_rng(0)
    twin_target, twin_shadows = rng.random(len(target)), rng.random(shadows.shape)
    pairs = [compute_log_odds(each) for each in (target, shadows, twin_target, twin_shadows)]
    scores = score_fairness_discrepancy(*pairs, members, shared_variance=shared)
    logs = []
    for side in (members, ~members):
        z, deviations, spreads, means = [], [], [], []
        for own, others in (pairs[:2], pairs[2:]):
            mean = np.array([others[side[:, i], i].mean() for i in range(len(own))])
            pooled = np.sqrt(((others - mean) ** 2 * side).sum() / (side.sum() - len(own)))
            pooled = max(pooled, 1e-6)
            own_spread = [others[side[:, i], i].std(ddof=1) for i in range(len(own))]
            spread = np.full(len(own), pooled) if shared else np.maximum(own_spread, pooled / 10)
            z.append(own)
            means.append(mean)
            spreads.append(spread)
            deviations.append(np.where(side, (others - mean) / spread, 0))
        products = deviations[0] * deviations[1]
        counts = side.sum(axis=0)
        rho = products.sum(axis=0) / counts
        rho = np.full(len(target), products.sum() / counts.sum()) if shared else rho
        rho = np.clip(rho, -0.99, 0.99)
        density = []
        for i in range(len(target)):
            a, b, r = spreads[0][i], spreads[1][i], rho[i]
            point = [(z[0][i] - means[0][i]) / a, (z[1][i] - means[1][i]) / b]
            standard = multivariate_normal.logpdf(point, [0, 0], [[1, r], [r, 1]])
            density.append(standard - np.log(a * b))
        logs.append(np.array(density))
    np.testing.assert_allclose(scores, logs[0] - logs[1], rtol=1e-6, atol=1e-6)


@LAWS
@given(worlds(), st.sampled_from([2, 4]))
def test_answers_are_compared_by_their_frequencies(world, kinds):
    target, shadows, members = world
    own, others = (np.floor(kinds * np.minimum(each, 0.99)) for each in (target, shadows))
    own[0] = kinds - 1  # the highest answer says how many there are
    scores = score_answers(own, others, members)
    offline = score_answers(own, others, members, online=False)
    for i in range(len(own)):
        same = others[:, i] == own[i]
        inside, outside = same[members[:, i]], same[~members[:, i]]
        a, b = ((s.sum() + 0.5) / (len(s) + kinds / 2) for s in (inside, outside))
        assert scores[i] == pytest.approx(np.log(a / b))
        assert offline[i] == pytest.approx(-np.log(b) if own[i] == kinds - 1 else np.log(b))


def simulate(n=4000, shadows=1000, seed=0):
    """Log-odds that are normal for each person, with known means and spread."""
    rng = np.random.default_rng(seed)
    outside, gain, spread = rng.normal(1, 2, n), rng.exponential(0.7, n), 0.8
    members = draw_halves(np.zeros(n), shadows, rng)
    truth = rng.random(n) < 0.5
    target = outside + gain * truth + spread * rng.standard_normal(n)
    others = outside + gain * members + spread * rng.standard_normal((shadows, n))
    exact = norm.logpdf(target, outside + gain, spread) - norm.logpdf(target, outside, spread)
    return truth, target, others, members, exact


@pytest.mark.slow
def test_in_a_normal_world_lira_finds_the_exact_likelihood_ratio():
    truth, target, others, members, exact = simulate()
    scores = score_lira(target, others, members, shared_variance=True)
    # Each mean has an error of .8 / sqrt(500), and the ratio of about as much.
    assert np.abs(scores - exact).mean() < 0.1
    best = roc_auc_score(truth, exact)
    assert roc_auc_score(truth, scores) == pytest.approx(best, abs=0.005)
    for weaker in (
        score_lira(target, others, members, online=False),
        score_loss(target),
        score_lira(target, others[:4], members[:4]),
    ):
        assert roc_auc_score(truth, weaker) < best - 0.01


def test_the_twin_adds_what_neither_model_shows():
    """Both models share a large error, and the difference of both shows the person."""
    rng = np.random.default_rng(1)
    n, number = 3000, 200
    members, truth = draw_halves(np.zeros(n), number, rng), rng.random(n) < 0.5
    shared, target_shared = 3 * rng.standard_normal((number, n)), 3 * rng.standard_normal(n)
    pairs = []
    for gain in (0.8, 0.0):
        pairs.append(target_shared + gain * truth + 0.3 * rng.standard_normal(n))
        pairs.append(shared + gain * members + 0.3 * rng.standard_normal((number, n)))
    alone = roc_auc_score(truth, score_lira(pairs[0], pairs[1], members))
    both = roc_auc_score(truth, score_fairness_discrepancy(*pairs, members))
    assert alone < 0.6
    assert both > 0.8


def test_confidences_are_of_the_own_label():
    assert compute_confidence([0.2, 0.2], [0, 1]).tolist() == [0.8, 0.2]
    log_odds = compute_log_odds([0.0, 0.5, 1.0])
    assert np.isfinite(log_odds).all()
    assert log_odds[1] == 0
    assert log_odds[0] == pytest.approx(-log_odds[2])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"target": np.zeros(3)}, r"shapes do not agree: target \(3,\)"),
        ({"shadows": np.zeros(2)}, "shapes do not agree"),
        ({"members": np.ones((4, 2), int)}, "members: must be an array of true or false, not"),
        ({"members": np.ones((4, 2), bool)}, "person 0 is in all of them"),
        ({"members": np.zeros((4, 2), bool)}, "person 0 is in no shadow model"),
        ({"target": np.array([np.nan, 0])}, "target: must be numbers"),
    ],
)
def test_bad_input_is_refused_by_every_attack(change, words):
    good = {
        "target": np.zeros(2), "shadows": np.zeros((4, 2)),
        "members": np.repeat([[True], [False]], 2, axis=0) & np.ones((4, 2), bool),
    }  # fmt: skip
    for attack in (score_lira, score_rmia, score_answers):
        attack(**good)
        with pytest.raises(InputError, match=words):
            attack(**{**good, **change})


def test_parameters_out_of_range_are_refused():
    world = np.zeros(2), np.zeros((2, 2)), np.array([[True] * 2, [False] * 2])
    for options, words in (
        ({"gamma": 0.5}, "gamma: must be a number at least 1"),
        ({"offline_factor": 2.0}, "offline_factor"),
        ({"population": [False, False]}, "population"),
    ):
        with pytest.raises(InputError, match=words):
            score_rmia(*world, **options)
