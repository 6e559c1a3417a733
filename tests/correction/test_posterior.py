from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import oracles
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import expit, gammaln, logit, logsumexp
from scipy.stats import binom

from fpbench import InputError, Problem
from fpbench.claims import METRICS, KnownPeople, RateBounds, RateConstraint, ShareBounds
from fpbench.claims.counts import Classes
from fpbench.claims.rates import FORMS
from fpbench.correction import compute_posterior
from fpbench.correction.exact.two_group_regions import separate_regions
from fpbench.correction.posterior import condition_on_regions

pytestmark = pytest.mark.numeric

BELIEFS = (0.0, 1e-30, 1e-9, 0.02, 0.3, 0.3, 0.5, 0.77, 0.9, 1 - 1e-9, 1.0)
TOLERANCES = (0.0, 0.001, 0.1, 0.25, 1 / 3, 0.5, 1.0)


def problem_of(predictions, labels, *constraints):
    """What is known of two groups; its guess does not matter."""
    said = np.asarray(predictions, dtype=int)
    labels = None if labels is None else np.asarray(labels)
    return Problem(np.zeros(len(said), dtype=int), 2, said, labels, constraints)


def both(p):
    """Beliefs about two groups, from those of group 1."""
    p = np.asarray(p, dtype=float)
    return np.column_stack([1 - p, p])


def given_claims(p, predictions, labels, *constraints):
    return compute_posterior(both(p), problem_of(predictions, labels, *constraints))


def enumerate_all(p, allowed):
    """P(claim) and everyone's posterior from all 2^n vectors and a mask of those allowed."""
    vectors = oracles.all_vectors(len(p), 2)
    mass = np.where(vectors == 1, p, 1 - p).prod(axis=1) * allowed
    claim = mass.sum()
    return claim, (mass @ vectors) / claim if claim > 0 else None


def agrees(found, p, claim, posterior):
    if claim == 0:
        assert found.probabilities is None and found.expected_accuracy is None
        assert found.claim_bits == math.inf
        return
    assert 2**-found.claim_bits == pytest.approx(claim, rel=1e-9)
    assert (found.method, found.error) == ("exact", 0.0)
    np.testing.assert_allclose(found.probabilities, both(posterior), rtol=1e-9, atol=1e-12)
    assert found.expected_accuracy == pytest.approx(np.maximum(posterior, 1 - posterior).mean())
    assert found.prior_expected_accuracy == pytest.approx(np.maximum(p, 1 - p).mean())


@st.composite
def people(draw, most=9):
    n = draw(st.integers(1, most))
    belief = st.sampled_from(BELIEFS) | st.floats(0.01, 0.99)
    p = np.array(draw(st.lists(belief, min_size=n, max_size=n)))
    binary = st.lists(st.integers(0, 1), min_size=n, max_size=n)
    return p, np.array(draw(binary)), np.array(draw(binary))


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("metric", METRICS)
@given(people(), st.sampled_from(TOLERANCES))
@example((np.array([0.2, 0.0, 1.0]), np.array([1, 0, 1]), np.array([1, 1, 0])), 0.0)
# Nearly all the mass has an empty group: what remains must not come from a difference.
@example((np.array([1e-9, 1e-9, 1e-9, 1e-30]), np.array([1, 0, 1, 0]), np.array([1, 1, 0, 0])), 0.0)
def test_equals_enumeration(metric, form, drawn, tolerance):
    p, predictions, labels = drawn
    problem = problem_of(predictions, labels, RateConstraint(metric, tolerance, form))
    allowed = oracles.satisfied(problem, oracles.all_vectors(len(p), 2))
    agrees(compute_posterior(both(p), problem), p, *enumerate_all(p, allowed))


BOUNDS = st.lists(st.sampled_from(TOLERANCES), min_size=2, max_size=2).map(sorted)


@st.composite
def constraints(draw, n):
    """Up to three constraints that leave each slice one region."""
    group, metrics = st.integers(0, 1), draw(st.sampled_from([METRICS[:1], METRICS[1:3]]))
    metric = st.sampled_from(metrics)
    found = draw(st.lists(st.sampled_from(["claim", "rate", "share", "known"]), max_size=3))
    if METRICS[0] not in metrics:  # a share is about everyone
        found = [kind for kind in found if kind != "share"]
    made = []
    for kind in found:
        if kind == "claim":
            form = draw(st.sampled_from(FORMS))
            made.append(RateConstraint(draw(metric), draw(st.sampled_from(TOLERANCES)), form))
        elif kind == "rate":
            made.append(RateBounds(draw(group), *draw(BOUNDS), draw(metric)))
        elif kind == "share":
            made.append(ShareBounds(draw(group), *draw(BOUNDS)))
        else:
            person = st.tuples(st.integers(0, n - 1), group)
            pairs = draw(st.lists(person, max_size=3))
            made.append(KnownPeople([row for row, _ in pairs], [code for _, code in pairs]))
    return made


@pytest.mark.slow
@given(people(), st.data())
def test_any_constraints_together_equal_enumeration(drawn, data):
    p, predictions, labels = drawn
    problem = problem_of(predictions, labels, *data.draw(constraints(len(p))))
    allowed = oracles.satisfied(problem, oracles.all_vectors(len(p), 2))
    claim, posterior = enumerate_all(p, allowed)
    prior = p.copy()
    for constraint in problem.constraints:
        if isinstance(constraint, KnownPeople):
            prior[list(constraint.rows)] = list(constraint.groups)
    given_known = enumerate_all(prior, allowed)[0]
    found = compute_posterior(both(p), problem)
    if claim == 0 and given_known > 0:
        # Known people are facts, not chances: they contradict a belief of exactly 0 or 1.
        assert found.probabilities is not None
        return
    if claim == 0:
        agrees(found, prior, 0, None)
        return
    # Bits are those of what is claimed of known people, not of who they are.
    agrees(found, prior, given_known, posterior)


@given(people(), st.data())
def test_any_region_equals_enumeration(drawn, data):
    p, predictions, _ = drawn
    n, positives = len(p), int(predictions.sum())
    ends = st.lists(st.integers(-1, n + 1), min_size=positives + 1, max_size=positives + 1)
    low, high = np.array(data.draw(ends)), np.array(data.draw(ends))
    vectors = oracles.all_vectors(n, 2)
    x, m = vectors[:, predictions == 1].sum(axis=1), vectors.sum(axis=1)
    allowed = (low[x] <= m) & (m <= high[x]) & (m > 0) & (m < n)
    everyone = np.ones(n, dtype=bool)
    regions = [(everyone, [lambda x: (low[x], high[x])])]
    found = condition_on_regions(logit(p), predictions, regions)
    claim, posterior = enumerate_all(p, allowed)
    if claim == 0:
        assert (found.log_probability, found.probabilities) == (-math.inf, None)
        return
    assert math.exp(found.log_probability) == pytest.approx(claim, rel=1e-9)
    np.testing.assert_allclose(found.probabilities, both(posterior), rtol=1e-9, atol=1e-12)


def log_distribution(log_one, log_zero):
    """Log-probabilities of a sum of independent 0/1, one person after the other."""
    f = np.zeros(1)
    for one, zero in zip(log_one, log_zero, strict=True):
        f = np.logaddexp(np.append(f + zero, -np.inf), np.append(-np.inf, f + one))
    return f


def sizes(constraint, positives, n):
    """Least and greatest size of group 1 for each number of its positives; empty groups too."""
    classes = Classes((None, None), (0, 1), (n - positives, positives), 2)
    (way,) = separate_regions(constraint.conditions(classes), classes)
    region = replace(way.parts[0][1], least=(0, 0))
    return region.interval(np.arange(positives + 1))


def log_claim(log_one, log_zero, positive, constraint):
    """Log P(claim) under statistical parity from a table of all pairs, and that table."""
    x = log_distribution(log_one[positive], log_zero[positive])
    y = log_distribution(log_one[~positive], log_zero[~positive])
    n = len(positive)
    low, high = sizes(constraint, len(x) - 1, n)
    m = np.arange(len(x))[:, None] + np.arange(len(y))
    inside = (low[:, None] <= m) & (m <= high[:, None]) & (m > 0) & (m < n)
    table = np.where(inside, x[:, None] + y, -np.inf)
    return logsumexp(table), table


STRENGTHS = {
    "weak": lambda rng, n: rng.normal(0.5, 1, n),
    "strong": lambda rng, n: rng.normal(-1, 4, n),
    "equal": lambda rng, n: np.full(n, -0.4),
    "clusters": lambda rng, n: rng.normal(0, 1, n) + rng.choice([-30.0, 0, 30], n),
    "outliers": lambda rng, n: np.where(rng.random(n) < 0.02, 300.0, -1) * rng.choice([-1, 1], n),
}


@pytest.mark.slow
@pytest.mark.parametrize("tolerance", [0.0, 0.001, 0.02])
@pytest.mark.parametrize("strength", STRENGTHS)
def test_equals_a_computation_with_logarithms(strength, tolerance):
    rng = np.random.default_rng(list(STRENGTHS).index(strength))
    for n, skew in ((60, 0.0), (240, 5.0), (600, 0.5)):
        positive = np.arange(n) % 3 == 0
        p = expit(STRENGTHS[strength](rng, n) + skew * np.where(positive, 1, -1))
        with np.errstate(divide="ignore"):
            log_one, log_zero = np.log(p), np.log1p(-p)
        constraint = RateConstraint(tolerance=tolerance)
        claim, table = log_claim(log_one, log_zero, positive, constraint)
        found = given_claims(p, positive, None, constraint)
        assert found.claim_bits * math.log(2) == pytest.approx(-claim, rel=1e-11, abs=1e-9)
        share = np.exp(table - claim)
        expected_x = share.sum(axis=1) @ np.arange(len(share))
        expected_y = share.sum(axis=0) @ np.arange(share.shape[1])
        assert found.probabilities[positive, 1].sum() == pytest.approx(expected_x, rel=1e-9)
        assert found.probabilities[~positive, 1].sum() == pytest.approx(expected_y, rel=1e-9)
        for i in rng.choice(n, 2):
            log_other = log_zero.copy()
            log_other[i] = -np.inf
            with_one, _ = log_claim(log_one, log_other, positive, constraint)
            assert found.probabilities[i, 1] == pytest.approx(np.exp(with_one - claim), abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "beliefs", "tolerance", "least_bits"),
    [
        (20_000, (0.6, 0.3), 0.01, 100),
        (20_000, (0.99, 0.01), 0.0, 10_000),
        (20_000, (0.001, 0.7), 0.001, 3_000),
        (136_000, (0.5, 0.35), 0.002, 1_500),
        (136_000, (0.4, 0.4), 0.002, 0.1),
    ],
)
def test_equal_beliefs_are_binomial(n, beliefs, tolerance, least_bits):
    positives = n // 4
    predictions = np.arange(n) < positives
    constraint = RateConstraint(tolerance=tolerance)
    x = np.arange(positives + 1)
    low, high = sizes(constraint, positives, n)
    low, high = np.maximum(low, 1) - x, np.minimum(high, n - 1) - x
    log_x = binom.logpmf(x, positives, beliefs[0])
    log_y = binom.logpmf(np.arange(n - positives + 1), n - positives, beliefs[1])
    # Only some of the pairs count: those near the likeliest are enough.
    best = np.clip(np.argmax(log_y), low, high)
    bound = np.where((low <= high) & (high >= 0), log_x + log_y[best % len(log_y)], -np.inf)
    rows = np.flatnonzero(bound > bound.max() - 50)
    ends = [(max(low[r], 0), min(high[r], n - positives) + 1) for r in rows]
    log_rows = np.array(
        [log_x[r] + logsumexp(log_y[a:b]) for r, (a, b) in zip(rows, ends, strict=True)]
    )
    claim = logsumexp(log_rows)
    found = given_claims(np.where(predictions, *beliefs), predictions, None, constraint)
    assert found.claim_bits > least_bits
    assert found.claim_bits * math.log(2) == pytest.approx(-claim, rel=1e-10, abs=1e-9)
    expected = np.exp(log_rows - claim) @ rows / positives
    np.testing.assert_allclose(found.probabilities[:positives, 1], expected, rtol=1e-8)
    assert np.ptp(found.probabilities[positives:, 1]) < 1e-12


def log_binomial(n, log_odds):
    """Log-probabilities of 0..n of n people who are all equally likely."""
    k = np.arange(n + 1)
    ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return ways - k * np.logaddexp(0, -log_odds) - (n - k) * np.logaddexp(0, log_odds)


def log_sum_of_two(one, other):
    """Log-distribution of the sum of two independent counts."""
    total = np.full(len(one) + len(other) - 1, -np.inf)
    for count, log in enumerate(one):
        here = slice(count, count + len(other))
        total[here] = np.logaddexp(total[here], log + other)
    return total


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("tolerance", [0.0, 0.002])
@pytest.mark.parametrize("strength", [1.0, 5.0, 8.0, 10.0, 30.0, 100.0, 700.0])
@pytest.mark.parametrize("n", [600, 6_000])
def test_equal_confidence_in_either_group_is_two_binomials(n, strength, tolerance):
    """Beliefs of two values only: between them hardly any count is likely under any tilt."""
    rng = np.random.default_rng(n)
    guess = rng.random(n) < 0.5
    predictions = rng.random(n) < 0.3 + 0.1 * guess
    predictions[np.flatnonzero(predictions)[: int(predictions.sum()) % 100]] = False
    problem = problem_of(predictions, None, RateConstraint(tolerance=tolerance))
    odds = np.where(guess, strength, -strength)
    found = compute_posterior(np.column_stack([expit(-odds), expit(odds)]), problem)
    x, y = (
        log_sum_of_two(
            log_binomial(int((said & guess).sum()), strength),
            log_binomial(int((said & ~guess).sum()), -strength),
        )
        for said in (predictions, ~predictions)
    )
    low, high = sizes(problem.constraints[0], len(x) - 1, n)
    ones = np.arange(len(x))
    low, high = np.maximum(np.maximum(low, 1) - ones, 0), np.minimum(high, n - 1) - ones + 1
    rows = [r for r in ones if low[r] < min(high[r], len(y))]
    logs = np.array([x[r] + logsumexp(y[low[r] : high[r]]) for r in rows])
    claim = logsumexp(logs)
    assert len(rows) > 0
    assert found.claim_bits * math.log(2) == pytest.approx(-claim, rel=1e-11, abs=1e-9)
    expected = np.exp(logs - claim) @ rows
    assert found.probabilities[predictions, 1].sum() == pytest.approx(expected, rel=1e-8)


def test_pairs_far_apart_are_all_counted():
    # With tolerance 0 only a third or two thirds of each prediction may be of group 1. From even
    # odds, both are equally likely, and more than 30 standard deviations apart.
    n, positives = 3000, 999
    constraint = RateConstraint()
    predictions = np.arange(n) < positives
    low, high = sizes(constraint, positives, n)
    assert np.flatnonzero(low <= high).tolist() == [0, 333, 666, 999]
    found = given_claims(np.full(n, 0.5), predictions, None, constraint)
    np.testing.assert_allclose(found.probabilities, 0.5, rtol=1e-9)
    pair = binom.logpmf(333, 999, 0.5) + binom.logpmf(667, 2001, 0.5)
    assert found.claim_bits == pytest.approx(-(pair / math.log(2) + 1), rel=1e-12)


def sample(seed, n):
    rng = np.random.default_rng(seed)
    predictions = (rng.random(n) < 0.3).astype(int)
    p = expit(rng.normal(-0.5, 2, n) + 0.4 * predictions)
    return p, predictions, (rng.random(n) < 0.4).astype(int)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("metric", METRICS)
def test_a_claim_that_says_nothing_leaves_beliefs_as_they_are(metric, form):
    p, predictions, labels = sample(0, 700)
    found = given_claims(p, predictions, labels, RateConstraint(metric, 1.0, form))
    np.testing.assert_allclose(found.probabilities, both(p), rtol=1e-11)
    assert 0 <= found.claim_bits < 1e-11
    assert found.expected_accuracy == pytest.approx(found.prior_expected_accuracy)


@settings(max_examples=20)
@given(st.integers(0, 1000), st.sampled_from(METRICS), st.sampled_from([0.0, 0.003, 0.03, 0.1]))
def test_laws(seed, metric, tolerance):
    p, predictions, labels = sample(seed, 2 * 5 * 7 * 3)
    constraint = RateConstraint(metric, tolerance)
    found = given_claims(p, predictions, labels, constraint)
    renamed = given_claims(1 - p, predictions, labels, constraint)
    assert renamed.claim_bits == pytest.approx(found.claim_bits, rel=1e-9)
    looser = given_claims(p, predictions, labels, RateConstraint(metric, tolerance + 0.05))
    assert looser.claim_bits < found.claim_bits
    if found.probabilities is None:
        assert renamed.probabilities is None
        return
    np.testing.assert_allclose(renamed.probabilities, found.probabilities[:, ::-1], atol=1e-9)
    # A claim knows nobody: of two people that it treats alike, the likelier stays so.
    for cell in np.unique(np.stack([predictions, labels]), axis=1).T:
        rows = np.flatnonzero((predictions == cell[0]) & (labels == cell[1]))
        ranked = found.probabilities[rows[np.argsort(p[rows])], 1]
        assert (np.diff(ranked) > -1e-12).all()
    if metric in METRICS[1:3]:
        outside = ~constraint.slices(labels)[0]
        np.testing.assert_allclose(found.probabilities[outside, 1], p[outside], rtol=1e-13)
        assert not np.allclose(found.probabilities[~outside, 1], p[~outside], rtol=1e-13)


@pytest.mark.parametrize("n", [200, 1000, 4000])
def test_log_odds_of_many_people_shift_alike(n):
    # The usual approximation: one shift for a prediction, found from the expected count. It was
    # off by 1.12 / n at most, over strengths and tolerances, from n = 200 to 16,000.
    for seed, tolerance in ((1, 0.0), (2, 0.001), (3, 0.02)):
        p, _, _ = sample(seed, n)
        predictions = np.arange(n) < 0.4 * n
        found = given_claims(p, predictions, None, RateConstraint(tolerance=tolerance))
        for side in (predictions, ~predictions):
            exact, s = found.probabilities[side, 1], logit(p[side])
            shift = brentq(lambda t, s=s, e=exact: expit(s + t).sum() - e.sum(), -50, 50)
            assert np.abs(expit(s + shift) - exact).max() < 1.2 / n


def test_equalized_odds_of_large_slices_are_two_independent_claims():
    p, predictions, labels = sample(5, 3000)
    together, *each = (
        given_claims(p, predictions, labels, RateConstraint(metric, 0.01))
        for metric in ("equalized-odds", "predictive-equality", "equal-opportunity")
    )
    assert together.claim_bits == pytest.approx(sum(one.claim_bits for one in each), rel=1e-12)
    wanted = np.where(labels[:, None] == 0, *(one.probabilities for one in each))
    np.testing.assert_allclose(together.probabilities, wanted, rtol=1e-12)


def test_a_claim_with_probability_0():
    # 1 of 3 is positive: no two groups of these have the same rate.
    found = given_claims([0.3, 0.6, 0.9], [1, 0, 0], None, RateConstraint())
    assert found.probabilities is None and found.expected_accuracy is None
    assert found.claim_bits == math.inf
    assert found.prior_expected_accuracy == pytest.approx((0.7 + 0.6 + 0.9) / 3)
    # Nobody in the slice, so that no group has a member.
    claim = RateConstraint("equal-opportunity", 1.0)
    assert given_claims([0.3, 0.6], [1, 0], [0, 0], claim).probabilities is None
    # A certainty that contradicts the claim, and one that does not.
    claim = RateConstraint(tolerance=0.1)
    assert given_claims([1, 1, 0, 0], [1, 1, 0, 0], None, claim).probabilities is None
    certain = given_claims([1, 0, 1, 0], [1, 1, 0, 0], None, claim)
    assert certain.probabilities[:, 1].tolist() == [1, 0, 1, 0]
    assert certain.claim_bits == 0


@pytest.mark.parametrize(
    ("beliefs", "message"),
    [
        ([[0.5, 0.5]], r"beliefs must be \(2, 2\) probabilities, not \(1, 2\)"),
        (np.full((2, 3), 1 / 3), r"beliefs must be \(2, 2\) probabilities, not \(2, 3\)"),
        ([[0.5, np.nan], [0.5, 0.5]], "beliefs must be probabilities; that of person 0 in group 1"),
        ([[0.5, 0.5], [0.5, 0.6]], "a person's beliefs must sum to 1; those of person 1"),
        ([0.5, 0.5], r"beliefs must be \(n, K\)"),
    ],
)
def test_bad_input(beliefs, message):
    with pytest.raises(InputError, match=message):
        compute_posterior(beliefs, problem_of([0, 1], None, RateConstraint()))


def test_beliefs_near_1_lose_no_digits():
    """The smaller probability says how sure a belief is: the greater one is rounded to 1."""
    tiny = np.array([1e-200, 1e-20, 1e-3, 1e-20])
    predictions = [1, 1, 0, 0]
    claim = RateConstraint(tolerance=0.0)
    one = compute_posterior(np.column_stack([1 - tiny, tiny]), problem_of(predictions, None, claim))
    other = compute_posterior(
        np.column_stack([tiny, 1 - tiny]), problem_of(predictions, None, claim)
    )
    # Both groups have a member of either prediction: the likeliest are one and two.
    assert one.claim_bits == pytest.approx(-math.log2(1e-23), rel=1e-9)
    assert other.claim_bits == pytest.approx(one.claim_bits, rel=1e-12)
    np.testing.assert_allclose(other.probabilities[:, ::-1], one.probabilities, rtol=1e-9)
    assert one.probabilities[0, 1] == pytest.approx(1e-180, rel=1e-2)
