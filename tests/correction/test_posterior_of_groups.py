"""Beliefs of any number of groups, given any constraint."""

from __future__ import annotations

import math
from itertools import pairwise, product

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fpbench
from fpbench import Correction, Problem
from fpbench.claims import (
    METRICS,
    KnownPeople,
    KnownUnfairness,
    LinearConstraint,
    RateBounds,
    RateConstraint,
    ShareBounds,
)
from fpbench.claims.rates import FORMS
from fpbench.correction import CountedProblem, compute_posterior, posterior, solve_exact
from fpbench.correction.conditioning.conditioned import Conditioned
from fpbench.correction.conditioning.maximum_entropy import condition_approximately
from fpbench.correction.conditioning.regions import satisfy
from fpbench.plugin import SolverStatus

pytestmark = pytest.mark.numeric

MOST = 1.5
"""Times 1 / n: the greatest mean absolute error of probabilities that are approximate."""


def problem_of(predictions, labels, groups, *constraints):
    """What is known; the guess does not matter."""
    said = np.asarray(predictions)
    return Problem(np.zeros(len(said), dtype=int), groups, said, np.asarray(labels), constraints)


def enumerate_all(beliefs, problem):
    """P(claim) and everyone's posterior from all K^n vectors."""
    n, k = beliefs.shape
    vectors = oracles.all_vectors(n, k)
    mass = beliefs[np.arange(n), vectors].prod(axis=1)
    vectors, mass = vectors[mass > 0], mass[mass > 0]
    mass = mass * oracles.satisfied(problem, vectors)
    if mass.sum() == 0:
        return 0.0, None
    return mass.sum(), np.stack([mass @ (vectors == g) for g in range(k)], axis=1) / mass.sum()


def approximate(beliefs, problem):
    """Maximum entropy, whatever else would be possible."""
    known = beliefs.copy()
    for constraint in problem.constraints:
        if isinstance(constraint, KnownPeople):
            known[list(constraint.rows)] = np.eye(problem.groups)[list(constraint.groups)]
    return condition_approximately(known, CountedProblem(problem))


def people(seed, n, k, confidence=1.0):
    """Beliefs, predictions and labels of a few people, and a truth drawn from the beliefs."""
    rng = np.random.default_rng(seed)
    beliefs = rng.dirichlet(np.full(k, confidence), n)
    truth = (rng.random((n, 1)) < beliefs.cumsum(axis=1)).argmax(axis=1)
    return beliefs, rng.integers(0, 2, n), rng.integers(0, 2, n), truth


KINDS = {
    **{f"{form} {metric}": [RateConstraint(metric, 0.34, form)]
       for form in FORMS for metric in METRICS},
    **{f"unfairness {form} {metric}": [KnownUnfairness(metric, 0.3, 0.7, form)]
       for form in FORMS for metric in METRICS},
    **{f"{form} in every slice": [RateConstraint("equalized-odds", 0.34, form, every_slice=True)]
       for form in FORMS},
    "every slice, any rate": [RateConstraint("equalized-odds", 1.0, every_slice=True)],
    "share": [ShareBounds(1, 0.1, 0.3)],
    "rate": [RateBounds(1, 0.4, 0.6)],
    "rate of labels": [RateBounds(0, 0.2, 0.6, "equalized-odds")],
    "known": [KnownPeople([0, 2], [1, 0]), RateConstraint("statistical-parity", 0.4)],
    "linear": [LinearConstraint(1, np.arange(12) % 4, 4, 6)],
    "linear of halves": [LinearConstraint(0, np.linspace(0.5, 1.5, 12), 1.9, 3.1)],
    "tied slices": [RateConstraint("equal-opportunity", 0.4), ShareBounds(1, 0.1, 0.5)],
    "a share and a claim": [RateConstraint(tolerance=0.3), ShareBounds(0, 0.3, 0.5)],
    "linear and a claim": [LinearConstraint(1, np.arange(12) % 3, 2, 5),
                           RateConstraint("equal-opportunity", 0.5)],
}  # fmt: skip


def cut(constraint, n):
    """The same about the first people."""
    if isinstance(constraint, LinearConstraint):
        own = np.asarray(constraint.coefficients)[:n]
        return LinearConstraint(constraint.group, own, constraint.low, constraint.high)
    return constraint


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("kind", KINDS)
def test_few_people_equal_all_vectors_and_maximum_entropy_nearly(kind):
    errors = []
    for k, n, seeds in ((2, 12, 2), (3, 8, 2), (4, 7, 1)):
        for seed in range(seeds):
            beliefs, said, labels, _ = people([seed, k], n, k)
            known = [cut(constraint, n) for constraint in KINDS[kind]]
            problem = problem_of(said, labels, k, *known)
            given_known = beliefs.copy()
            for constraint in known:
                if isinstance(constraint, KnownPeople):
                    given_known[list(constraint.rows)] = np.eye(k)[list(constraint.groups)]
            claim, posterior = enumerate_all(given_known, problem)
            found = compute_posterior(beliefs, problem)
            if posterior is None:
                assert found.probabilities is None and found.claim_bits == math.inf
                continue
            assert found.method == "exact"
            assert found.claim_bits == pytest.approx(-math.log2(claim), rel=1e-9, abs=1e-9)
            np.testing.assert_allclose(found.probabilities, posterior, rtol=1e-9, atol=1e-12)
            assert found.expected_accuracy == pytest.approx(posterior.max(axis=1).mean())
            # A rare claim about so few people leaves few tables of counts, far from each other.
            pieces = 2 * k * (k - 1) if "unfairness" in kind else 1
            if seed == 0 and claim > 2**-7 and pieces < 20 // (1 + ("equalized" in kind)):
                roughly = approximate(beliefs, problem)
                errors.append(n * np.abs(roughly.probabilities - posterior).mean())
    assert errors
    assert max(errors) < MOST


@given(st.integers(0, 10**6), st.sampled_from([2, 3, 4]), st.data())
def test_certain_people_stay_and_impossible_groups_too(seed, k, data):
    n = {2: 9, 3: 7, 4: 6}[k]
    beliefs, said, labels, _ = people(seed, n, k)
    rng = np.random.default_rng(seed)
    beliefs[rng.random((n, k)) < 0.4] = 0
    beliefs[beliefs.sum(axis=1) == 0, 0] = 1
    beliefs /= beliefs.sum(axis=1, keepdims=True)
    metric, form = data.draw(st.sampled_from(METRICS)), data.draw(st.sampled_from(FORMS))
    problem = problem_of(said, labels, k, RateConstraint(metric, 0.5, form))
    _, posterior = enumerate_all(beliefs, problem)
    found = compute_posterior(beliefs, problem)
    if posterior is None:
        assert found.probabilities is None
        return
    np.testing.assert_allclose(found.probabilities, posterior, rtol=1e-9, atol=1e-12)
    assert (found.probabilities[beliefs == 0] == 0).all()
    certain = beliefs.max(axis=1) == 1
    np.testing.assert_array_equal(found.probabilities[certain], beliefs[certain])


def law_of_counts(beliefs):
    """(m + 1, m + 1) law of the numbers of groups 1 and 2 of three, person after person."""
    law = np.ones((1, 1))
    for one in beliefs:
        after = np.pad(law * one[0], ((0, 1), (0, 1)))
        after[1:, :-1] += law * one[1]
        after[:-1, 1:] += law * one[2]
        law = after
    return law


def allowed_counts(form, tolerance, x, y):
    """Whether positives x and negatives y of three groups satisfy a claim, by its definition.

    Rates are compared multiplied out; arrays of whole numbers that broadcast to each other.
    """
    e, q = tolerance
    m = [a + b for a, b in zip(x, y, strict=True)]
    allowed = np.logical_and.reduce([one > 0 for one in m])
    positives, everyone = sum(x), sum(m)
    if form == "to-overall":
        for own, size in zip(x, m, strict=True):
            allowed &= q * abs(own * everyone - positives * size) <= e * size * everyone
        return allowed
    for (one, size), (other, their) in product(list(zip(x, m, strict=True)), repeat=2):
        if form == "ratio":
            allowed &= q * other * size >= (q - e) * one * their
        else:
            allowed &= q * (one * their - other * size) <= e * size * their
    return allowed


def apply_bayes(beliefs, predictions, form, tolerance):
    """P(claim) and posterior of three groups, one slice: people one by one without and with each.

    By a dynamic program over counts.
    """
    laws, tables = [], []
    for side in (1, 0):
        laws.append(law_of_counts(beliefs[predictions == side]))
        m = np.count_nonzero(predictions == side)
        one, two = np.meshgrid(np.arange(m + 1), np.arange(m + 1), indexing="ij")
        tables.append([m - one - two, one, two])
    inside = [np.flatnonzero((table[0] >= 0).ravel()) for table in tables]
    x = [column.ravel()[inside[0]][:, None] for column in tables[0]]
    y = [column.ravel()[inside[1]][None, :] for column in tables[1]]
    allowed = allowed_counts(form, tolerance, x, y)
    flat = [law.ravel()[rows] for law, rows in zip(laws, inside, strict=True)]
    claim = flat[0] @ allowed @ flat[1]
    weights = [allowed @ flat[1], flat[0] @ allowed]
    posterior = np.empty_like(beliefs)
    for side, rows, weight, law in zip((1, 0), inside, weights, laws, strict=True):
        table = np.zeros(law.shape)
        table.ravel()[rows] = weight
        mine = np.flatnonzero(predictions == side)
        for i in mine:
            others = law_of_counts(beliefs[mine[mine != i]])
            given_group = [(others * table[:-1, :-1]).sum(), (others * table[1:, :-1]).sum(),
                           (others * table[:-1, 1:]).sum()]  # fmt: skip
            posterior[i] = beliefs[i] * given_group / claim
    np.testing.assert_allclose(posterior.sum(axis=1), 1, rtol=1e-9)
    return claim, posterior


def lean(beliefs, factors):
    """Beliefs that lean to groups."""
    leaning = beliefs * factors
    return leaning / leaning.sum(axis=1, keepdims=True)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_sixty_people_equal_a_dynamic_program_over_counts(form):
    beliefs, _, labels, _ = people([3, FORMS.index(form)], 60, 3, confidence=0.7)
    beliefs = lean(beliefs, [3.0, 1.0, 0.7])
    predictions = (np.arange(60) % 5 < 2).astype(int)
    tolerance = {"ratio": (3, 10)}.get(form, (1, 20))
    problem = problem_of(predictions, labels, 3, RateConstraint(
        tolerance=tolerance[0] / tolerance[1], form=form))  # fmt: skip
    claim, posterior = apply_bayes(beliefs, predictions, form, tolerance)
    found = compute_posterior(beliefs, problem)
    assert found.method == "exact"
    assert found.claim_bits == pytest.approx(-math.log2(claim), rel=1e-9)
    np.testing.assert_allclose(found.probabilities, posterior, rtol=1e-8, atol=1e-11)
    roughly = approximate(beliefs, problem)
    assert np.abs(posterior - beliefs).mean() * 60 > 0.4  # the claim tells something
    assert np.abs(roughly.probabilities - posterior).mean() * 60 < MOST
    assert roughly.log_probability == pytest.approx(math.log(claim), abs=0.1)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("most", [posterior._MANY_TABLES, 0])
def test_rare_claims_are_exact_and_of_too_many_tables_nearly(form, most, monkeypatch):
    """Beliefs contradict the claim: what is left is a few tables of counts, far from each other."""
    n, tolerance = 80, (1, 50)
    beliefs, _, labels, _ = people([n, FORMS.index(form)], n, 3)
    predictions = np.arange(n) % 2
    beliefs = np.where(
        predictions[:, None] == 1, lean(beliefs, [6.0, 1, 0.3]), lean(beliefs, [0.3, 1, 6])
    )
    claim, exact = apply_bayes(beliefs, predictions, form, tolerance)
    assert claim < 2**-18
    monkeypatch.setattr(posterior, "_MANY_TABLES", most)
    problem = problem_of(predictions, labels, 3, RateConstraint(tolerance=0.02, form=form))
    answer = compute_posterior(beliefs, problem)
    if most:
        assert answer.method == "exact"
        assert answer.claim_bits == pytest.approx(-math.log2(claim), rel=1e-9)
        np.testing.assert_allclose(answer.probabilities, exact, rtol=1e-8, atol=1e-11)
    else:
        assert answer.method == "maximum-entropy"
        assert answer.claim_bits == pytest.approx(-math.log2(claim), abs=0.15)
        assert np.abs(answer.probabilities - exact).mean() * n < MOST


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("strength", [0.5, 3.0])
@pytest.mark.parametrize(
    "known",
    [
        [RateConstraint(tolerance=0.01)],
        [RateConstraint("equalized-odds", 0.02, "between-groups")],
        [RateConstraint(tolerance=0.1, form="ratio"), ShareBounds(1, 0.3, 0.32)],
        [ShareBounds(1, 0.7, 1.0)],  # a thousand bits
        [KnownUnfairness("statistical-parity", 0.02, 0.03)],
        [KnownUnfairness("equal-opportunity", 0.05, 0.07, "ratio")],
        [RateBounds(1, 0.1, 0.25, "equalized-odds")],
    ],
)
def test_maximum_entropy_of_two_groups_is_nearly_exact(strength, known):
    rng = np.random.default_rng(0)
    n = 3000
    p = 1 / (1 + np.exp(-rng.normal(-0.7, strength, n)))
    beliefs = np.column_stack([1 - p, p])
    said, labels = rng.random(n) < 0.3, rng.integers(0, 2, n)
    problem = problem_of(said.astype(int), labels, 2, *known)
    exact, roughly = compute_posterior(beliefs, problem), approximate(beliefs, problem)
    assert exact.method == "exact"
    assert np.abs(roughly.probabilities - exact.probabilities).mean() * n < MOST
    assert -roughly.log_probability / math.log(2) == pytest.approx(exact.claim_bits, abs=0.15)


def split(edges, form, metric="statistical-parity"):
    """Claims of which exactly one is true: no rate of so few people is as close to an edge."""
    return [KnownUnfairness(metric, low, high, form)
            for low, high in pairwise(edges)]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("k", "n", "form", "edges", "slack"),
    [
        (2, 3000, "to-overall", (0, 0.0100001, 0.0200003, 1), 0.0),
        (2, 3000, "ratio", (0, 0.0300001, 0.1000003, 1), 0.0),
        (3, 48, "between-groups", (0, 0.1001, 0.3003, 1), 0.0),
        (3, 600, "between-groups", (0, 0.0300001, 0.0600003, 1), MOST),
        (4, 600, "to-overall", (0, 0.0300001, 1), MOST),
    ],
)
def test_beliefs_given_what_may_be_claimed_average_to_the_prior(k, n, form, edges, slack):
    """The probabilities of claims that exclude each other, and all there are, sum to 1.

    Nearly: what is claimed of rates says that every group has a member.
    """
    beliefs, _, labels, truth = people([n, k], n, k, confidence=2.0)
    rng = np.random.default_rng(n)
    said = (rng.random(n) < 0.3 + 0.03 * (truth == 0)).astype(int)
    total, mean = 0.0, np.zeros_like(beliefs)
    for claim in split(edges, form):
        found = compute_posterior(beliefs, problem_of(said, labels, k, claim))
        assert found.method == ("maximum-entropy" if slack else "exact")
        if found.probabilities is not None:
            total += 2**-found.claim_bits
            mean += 2**-found.claim_bits * found.probabilities
    assert total == pytest.approx(1, abs=0.02 if slack else 1e-7)
    assert np.abs(mean / total - beliefs).mean() * n <= slack + 1e-5


@pytest.mark.slow
def test_beliefs_given_a_claim_are_calibrated():
    """Truths drawn from the beliefs, and what is then claimed: as many are right as expected."""
    n, k, right, expected, better = 300, 3, [], [], 0.0
    for seed in range(12):
        beliefs, said, labels, truth = people([seed, 99], n, k, confidence=0.8)
        share = np.count_nonzero(truth == 1) / n
        rate = said[truth == 2].mean()
        known = (
            ShareBounds(1, share - 1e-9, share + 1e-9),
            RateBounds(2, rate - 0.02, rate + 0.02),
        )
        found = compute_posterior(beliefs, problem_of(said, labels, k, *known))
        right.append((found.probabilities.argmax(axis=1) == truth).mean())
        expected.append(found.expected_accuracy)
        rows = np.arange(n)
        better += np.log(found.probabilities[rows, truth] / beliefs[rows, truth]).sum()
        assert found.probabilities[:, 1].sum() == pytest.approx(share * n, abs=0.1)
    # Twelve times 300 people: a standard error of .007.
    assert np.mean(right) == pytest.approx(np.mean(expected), abs=0.025)
    assert better > 0


def large(k=4, n=1500):
    beliefs, _, labels, truth = people([n, k], n, k, confidence=0.6)
    beliefs = beliefs * np.linspace(2, 0.5, k)
    beliefs /= beliefs.sum(axis=1, keepdims=True)
    said = (np.random.default_rng(1).random(n) < 0.25 + 0.1 * (truth == 0)).astype(int)
    return beliefs, said, labels, truth


LARGE = [
    [RateConstraint(tolerance=0.02)],
    [RateConstraint("equalized-odds", 0.1, "between-groups")],
    [KnownUnfairness("statistical-parity", 0.1, 0.11)],
    [RateConstraint("equal-opportunity", 0.05), ShareBounds(1, 0.2, 0.24)],
]


@pytest.mark.slow
@pytest.mark.parametrize("known", LARGE)
def test_names_and_order_do_not_matter(known):
    beliefs, said, labels, _ = large()
    n, k = beliefs.shape
    found = compute_posterior(beliefs, problem_of(said, labels, k, *known))
    again = compute_posterior(beliefs, problem_of(said, labels, k, *known))
    np.testing.assert_array_equal(found.probabilities, again.probabilities)
    assert found.method == "maximum-entropy" and found.error * n < 0.2
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1, rtol=1e-12)
    order = np.random.default_rng(2).permutation(n)
    other = compute_posterior(beliefs[order], problem_of(said[order], labels[order], k, *known))
    miss = np.abs(other.probabilities - found.probabilities[order]).mean()
    assert miss * n < 0.3
    renamed = [
        ShareBounds(k - 1 - c.group, c.low, c.high) if isinstance(c, ShareBounds) else c
        for c in known
    ]
    other = compute_posterior(beliefs[:, ::-1], problem_of(said, labels, k, *renamed))
    miss = np.abs(other.probabilities[:, ::-1] - found.probabilities).mean()
    assert miss * n < 0.5
    assert other.claim_bits == pytest.approx(found.claim_bits, abs=0.1)


def test_a_claim_about_a_label_leaves_other_people_alone():
    beliefs, said, labels, _ = large()
    problem = problem_of(said, labels, 4, RateConstraint("equal-opportunity", 0.05))
    found = compute_posterior(beliefs, problem)
    np.testing.assert_allclose(found.probabilities[labels == 0], beliefs[labels == 0], rtol=1e-12)
    assert np.abs(found.probabilities - beliefs)[labels == 1].max() > 1e-4
    nothing = compute_posterior(beliefs, problem_of(said, labels, 4, RateConstraint(tolerance=1.0)))
    assert nothing.claim_bits == pytest.approx(0, abs=0.01)
    assert np.abs(nothing.probabilities - beliefs).mean() * len(beliefs) < 0.2


def test_sums_of_many_people_are_what_is_known_of_them():
    beliefs, said, labels, truth = large()
    rng = np.random.default_rng(3)
    hours = rng.integers(20, 60, len(truth)).astype(float)
    pay = rng.gamma(2.0, 13.7, len(truth))
    total, paid = np.rint(hours @ beliefs[:, 1]) + 600, pay @ beliefs[:, 2]
    problem = problem_of(
        said, labels, 4, LinearConstraint(1, hours, total, total),
        LinearConstraint(2, pay, high=0.97 * paid), RateConstraint(tolerance=0.1),
    )  # fmt: skip
    found = compute_posterior(beliefs, problem)
    assert found.method == "maximum-entropy"
    assert hours @ found.probabilities[:, 1] == pytest.approx(total, abs=5)
    assert pay @ found.probabilities[:, 2] <= 0.97 * paid
    # Whoever works long is more likely to belong where more hours are known of than expected.
    odds = np.log(found.probabilities[:, 1] / (1 - found.probabilities[:, 1]))
    before = np.log(beliefs[:, 1] / (1 - beliefs[:, 1]))
    assert np.corrcoef(odds - before, hours)[0, 1] > 0.25


@pytest.mark.slow
def test_claims_that_hardly_any_table_satisfies():
    """Nothing is drawn that satisfies them: the exact corrector's table of counts stands for all."""
    rng = np.random.default_rng(8)
    seen = set()
    for k, tolerance in ((4, 0.002), (3, 0.002)):
        beliefs, _, labels, _ = people(rng.integers(1000), 150, k, confidence=0.4)
        said = (rng.random(150) < 0.3).astype(int)
        claim = RateConstraint("equalized-odds", tolerance, "between-groups")
        problem = problem_of(said, labels, k, claim)
        found, exact = compute_posterior(beliefs, problem), solve_exact(problem)
        assert (found.probabilities is None) == (exact.status is SolverStatus.INFEASIBLE)
        if found.probabilities is None:
            seen.add("impossible")
            continue
        seen.add("one table" if found.error is None else "several")
        if found.error is None:
            assert found.claim_bits > 20
            counts = [np.array([found.probabilities[(labels == y) & (said == s)].sum(axis=0)
                      for s in (0, 1)]) for y in (0, 1)]  # fmt: skip
            for slice_ in counts:
                np.testing.assert_allclose(slice_, np.rint(slice_), atol=0.01)
                rates = slice_[1][slice_.sum(0) > 0.5] / slice_.sum(0)[slice_.sum(0) > 0.5]
                assert np.ptp(rates) <= tolerance + 0.001
    assert "one table" in seen


def test_tables_satisfy_what_one_table_does():
    """Many tables at once and one by one, of every kind of condition."""
    rng = np.random.default_rng(0)
    said, labels = rng.integers(0, 2, (2, 14))
    for k, kind in product((2, 3), KINDS):
        constraints = [cut(c, 14) for c in KINDS[kind] if c.word not in ("linear", "known")]
        counted = CountedProblem(problem_of(said, labels, k, *constraints))
        sizes = counted.classes.sizes
        tables = np.stack([rng.multinomial(size, rng.dirichlet(np.ones(k)), 60)
                           for size in sizes], axis=1)  # fmt: skip
        wanted = [all(c.holds(table) for c in counted.conditions) for table in tables]
        np.testing.assert_array_equal(satisfy(counted.conditions, tables), wanted)
        huge = tables * 10**8  # numbers that overflow when they are multiplied
        wanted = [all(c.holds(table) for c in counted.conditions) for table in huge]
        np.testing.assert_array_equal(satisfy(counted.conditions, huge), wanted)


@pytest.mark.parametrize(
    ("status", "bits", "said"),
    [(SolverStatus.INFEASIBLE, math.inf, SolverStatus.INFEASIBLE),
     (SolverStatus.TIMEOUT, math.nan, SolverStatus.TIMEOUT),
     (SolverStatus.FEASIBLE, math.nan, SolverStatus.TIMEOUT)],
)  # fmt: skip
def test_what_was_not_found_in_time_is_not_called_impossible(monkeypatch, status, bits, said):
    """Groups that only satisfy the claim may be far from the likeliest ones that do."""
    nothing = Conditioned(-math.inf, None)
    values = np.zeros(6, int) if status == SolverStatus.FEASIBLE else None
    monkeypatch.setattr(posterior, "condition_tables", lambda *_: None)
    monkeypatch.setattr(posterior, "condition_approximately", lambda *_, **__: nothing)
    monkeypatch.setattr(posterior, "solve_exact", lambda *_: Correction(values, status))
    predictions = np.array([0, 1, 0, 1, 0, 1])
    problem = Problem(
        np.zeros(6, int), 3, predictions, predictions, (RateConstraint(),), None,
        np.full((6, 3), 1 / 3),
    )  # fmt: skip
    answer = posterior.compute_posterior(problem.beliefs, problem)
    assert answer.probabilities is None
    assert answer.claim_bits == bits or (math.isnan(bits) and math.isnan(answer.claim_bits))
    correction = fpbench.component("corrector", "posterior").correct(problem)
    assert (correction.values, correction.status) == (None, said)
