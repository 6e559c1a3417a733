"""Beliefs given counts in sets of people together with other constraints."""

from fractions import Fraction

import numpy as np
import oracles
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

import fpbench
from fpbench import FairnessReport, InputError, Problem
from fpbench.claims import (
    ContradictionError,
    Facts,
    KnownPeople,
    KnownUnfairness,
    LinearConstraint,
    RateBounds,
    RateConstraint,
    ShareBounds,
)
from fpbench.correction import CountedProblem, compute_posterior, find_possible
from fpbench.correction.conditioning import every_vector
from fpbench.correction.facts import exact_components
from fpbench.correction.facts.collecting import collect_facts


def enumerate_beliefs(prior, problem):
    """Probability of all that is known, and beliefs given it, from all vectors of groups."""
    vectors = oracles.all_vectors(len(prior), problem.groups)
    vectors = vectors[oracles.satisfied(problem, vectors)]
    logs = np.log(prior)[np.arange(len(prior)), vectors].sum(axis=1)
    for facts in (one for one in problem.constraints if isinstance(one, Facts)):
        members = facts.membership.toarray()
        for group in range(problem.groups):
            missed = (vectors == group).astype(int) @ members - facts.low[:, group]
            gaussian, laplace = facts.sigma > 0, facts.scale > 0
            logs = logs - (missed**2 / 2)[:, gaussian] @ (1 / facts.sigma[gaussian] ** 2)
            logs = logs - np.abs(missed)[:, laplace] @ (1 / facts.scale[laplace])
    if not len(vectors):
        return -np.inf, None
    mass = np.exp(logs - logsumexp(logs))
    each = [mass @ (vectors == group) for group in range(problem.groups)]
    return logsumexp(logs), np.stack(each, axis=1)


@st.composite
def problems(draw):
    """A few people, facts about random sets that are true of some groups, and other constraints."""
    k = draw(st.sampled_from([2, 2, 3]))
    n = draw(st.integers(3, 8 if k == 2 else 6))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    truth, predictions, labels = rng.integers(0, k, n), rng.integers(0, 2, n), rng.integers(0, 2, n)
    constraints = []
    for _ in range(draw(st.integers(1, 2))):
        members = rng.random((n, draw(st.integers(1, 3)))) < 0.6
        counts = (members.T.astype(int) @ np.eye(k)[truth]).astype(float)
        kind = draw(st.sampled_from(["exact", "range", "gaussian", "laplace"]))
        slack = rng.integers(0, 2, counts.shape) if kind == "range" else 0
        noise = {"gaussian": {"sigma": 1.5}, "laplace": {"scale": 0.7}}.get(kind, {})
        error = rng.integers(-1, 2, counts.shape) if noise else 0
        high = counts + slack + error
        constraints.append(Facts.from_counts(members, counts - slack + error, high, **noise))
    share = np.mean(truth == 1)
    others = [
        ShareBounds(1, max(share - 0.01, 0), min(share + 0.01, 1)),
        ShareBounds(0, 0.0, 1.0),
        LinearConstraint(1, 2.0 * (np.arange(n) % 2), high=2.0 * n),
        KnownPeople([0], [int(truth[0])]),
        RateBounds(1, 0.0, 0.9),
        RateConstraint("statistical-parity", 0.7),
    ]
    constraints += draw(st.lists(st.sampled_from(others), max_size=2, unique_by=id))
    problem = Problem(truth, k, predictions, labels, tuple(draw(st.permutations(constraints))))
    return rng.dirichlet(np.ones(k), n), problem


@pytest.mark.slow
@given(problems())
def test_few_people_are_exact_whatever_is_known(drawn):
    prior, problem = drawn
    _, wanted = enumerate_beliefs(prior, problem)
    if wanted is None:  # the claim of parity may be false
        return
    answer = compute_posterior(prior, problem)
    np.testing.assert_allclose(answer.probabilities, wanted, atol=1e-9)
    assert answer.method == "exact"
    possible = find_possible(problem)
    assert (possible | (wanted < 1e-12)).all()
    again = compute_posterior(prior, Problem(**{**vars(problem), "possible": possible}))
    np.testing.assert_allclose(again.probabilities, wanted, atol=1e-9)


def draw_many(seed, *others, n=19):
    """More people than vectors are listed for, of whom three large sets are counted."""
    rng = np.random.default_rng(seed)
    prior = rng.beta(2, 2, n)
    prior = np.column_stack([1 - prior, prior])
    truth = (rng.random(n) < prior[:, 1]).astype(int)
    members = rng.random((n, 3)) < 0.6
    counts = members.T.astype(int) @ np.eye(2)[truth]
    predictions = (np.arange(n) % 3 == 0).astype(int)
    constraints = (Facts.from_counts(members, counts), *(other(truth) for other in others))
    return prior, Problem(truth, 2, predictions, np.zeros(n, int), constraints)


def test_more_people_are_exact_if_few_differ_in_their_sets():
    prior, problem = draw_many(0, n=14)
    _, wanted = enumerate_beliefs(prior, problem)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(every_vector, "_MOST_VECTORS", 100)
        answer = compute_posterior(prior, problem)
    assert answer.method == "exact"
    np.testing.assert_allclose(answer.probabilities, wanted, atol=1e-9)


@pytest.mark.slow
def test_many_people_are_near_all_vectors_and_nearer_with_all_counts_at_once(monkeypatch):
    monkeypatch.setattr(exact_components, "_MOST_STEPS", -1)

    def share(truth):
        return ShareBounds(1, *([Fraction(int(truth.sum()), len(truth))] * 2))

    errors, apart = [], []
    for seed in range(3):
        prior, problem = draw_many(seed, share)
        _, wanted = enumerate_beliefs(prior, problem)
        answer = compute_posterior(prior, problem)
        assert answer.method == "maximum-entropy"
        assert np.isnan(answer.claim_bits)
        assert 0 <= answer.error <= 0.03
        assert answer.probabilities[:, 1].sum() == pytest.approx(problem.guess.sum(), abs=0.2)
        errors.append(np.abs(answer.probabilities - wanted).mean())
        facts = problem.constraints[0]
        first = compute_posterior(prior, Problem(**{**vars(problem), "constraints": (facts,)}))
        apart.append(np.abs(first.probabilities - wanted).mean())
    # Sets of a dozen people: about what enumeration of such problems shows elsewhere.
    assert np.mean(errors) < 0.08
    assert np.mean(errors) < np.mean(apart)  # the share is worth something, and is used


@pytest.mark.slow
def test_what_is_no_count_conditions_what_the_counts_leave():
    """A claim of rates brings beliefs nearer to those of all vectors than the facts alone do."""

    def claim(truth):
        return RateConstraint("statistical-parity", 0.15, "between-groups")

    nearer, errors = [], []
    for seed in range(4):
        prior, problem = draw_many(seed, claim)
        _, wanted = enumerate_beliefs(prior, problem)
        if wanted is None:
            continue
        alone = Problem(**{**vars(problem), "constraints": problem.constraints[:1]})
        before = np.abs(compute_posterior(prior, alone).probabilities - wanted).mean()
        after = np.abs(compute_posterior(prior, problem).probabilities - wanted).mean()
        nearer.append(before - after)
        errors.append(after)
    assert len(errors) > 1
    assert np.mean(nearer) > 0
    assert np.mean(errors) < 0.06


def test_what_is_a_count_joins_the_facts():
    n = 40
    predictions = (np.arange(n) < 10).astype(int)
    facts = Facts.from_counts(np.ones((n, 1)), [[0, 0]], [[n, n]], names=["everybody"])
    exact = ShareBounds(1, 0.5, 0.5), RateBounds(1, 0.2, 0.3)
    problem = Problem(np.zeros(n, int), 2, predictions, None, (facts, *exact[::-1]))
    joined, others = collect_facts(CountedProblem(problem))
    assert others == ()
    ends = {
        int(size): tuple(ends)
        for size, ends in zip(
            joined.sizes, np.column_stack([joined.low[:, 1], joined.high[:, 1]]), strict=True
        )
    }
    # Of 20 members of group 1, 4 to 6 are among the 10 with prediction 1.
    assert ends == {40: (20.0, 20.0), 10: (4.0, 6.0), 30: (14.0, 16.0)}
    rate = RateBounds(1, 0.2, 0.3)
    problem = Problem(np.zeros(n, int), 2, predictions, None, (facts, rate))
    assert collect_facts(CountedProblem(problem))[1] == (rate,)  # of nobody knows how many
    for claim in (RateConstraint(tolerance=0.1), KnownUnfairness("statistical-parity", 0.1, 0.2)):
        problem = Problem(np.zeros(n, int), 2, predictions, None, (facts, claim))
        assert collect_facts(CountedProblem(problem))[1] == (claim,)
    total = LinearConstraint(0, 3.0 * (np.arange(n) < 5), 6.0, 7.0)
    problem = Problem(np.zeros(n, int), 2, predictions, None, (facts, total))
    joined, others = collect_facts(CountedProblem(problem))
    assert others == ()
    small = joined.sizes == 5
    assert (joined.low[small, 0], joined.high[small, 0]) == (2, 2)


def test_two_facts_prove_together_what_neither_proves():
    members = np.array([[1, 0], [1, 1], [1, 1], [0, 0]], bool)
    whole = Facts.from_counts(members[:, :1], [[1, 2]], names=["three"])
    part = Facts.from_counts(members[:, 1:], [[0, 2]], names=["two of them"])
    known = KnownPeople([3], [1])
    problem = Problem(np.zeros(4, int), 2, np.array([0, 1, 0, 1]), None, (whole, part, known))
    assert find_possible(problem).tolist() == [[1, 0], [0, 1], [0, 1], [0, 1]]
    answer = fpbench.correct(
        problem.guess, problem.predictions, metric=None, constraints=[whole, part],
        corrector="posterior",
    )  # fmt: skip
    assert answer.values[:3].tolist() == [0, 1, 1]
    np.testing.assert_allclose(answer.posterior[:3, 1], [0, 1, 1])
    assert answer.posterior[3, 1] == pytest.approx(1 / (1 + np.e))  # who stands in no fact


def test_facts_that_contradict_each_other_or_a_share_are_named():
    people = np.ones((30, 1))
    one, other = (Facts.from_counts(people, [[a, 30 - a]], names=[name])
                  for a, name in ((10, "the first report"), (11, "the second report")))  # fmt: skip
    guess, predictions = np.zeros(30, int), np.arange(30) % 2

    def correct(*constraints):
        fpbench.correct(guess, predictions, metric=None, constraints=constraints,
                        corrector="posterior")  # fmt: skip

    with pytest.raises(ContradictionError, match="the first report; the second report"):
        correct(one, other)
    with pytest.raises(ContradictionError, match="the first report; share of a group"):
        correct(one, ShareBounds(1, 0.1, 0.2))
    with pytest.raises(InputError, match="facts: about 30 people of 2 groups, not 4 of 2"):
        fpbench.correct([0, 1, 0, 1], [0, 1, 0, 1], constraints=[one], corrector="posterior")


@pytest.mark.parametrize("corrector", ["exact", "cp"])
def test_correctors_that_choose_the_cheapest_groups_refuse_facts(corrector):
    facts = Facts.from_counts(np.ones((4, 1)), [[2, 2]])
    with pytest.raises(InputError, match="cannot express the constraint 'counts'"):
        fpbench.correct([0, 1, 0, 1], [0, 1, 0, 1], constraints=[facts], corrector=corrector)


def test_proven_people_whom_nobody_believed_are_named():
    """Beliefs of 0 are no knowledge where facts prove the opposite."""
    facts = Facts.from_counts(np.eye(3)[:, :1], [[0, 1]])
    problem = Problem(np.zeros(3, int), 2, np.array([0, 1, 0]), None, (facts,))
    beliefs = np.array([[1.0, 0.0], [0.5, 0.5], [0.2, 0.8]])
    answer = compute_posterior(beliefs, problem)
    np.testing.assert_allclose(answer.probabilities, [[0, 1], [0.5, 0.5], [0.2, 0.8]])


def test_codes_of_groups_in_another_order_than_the_facts_are_refused():
    """Names are safe: the answer is the same, whichever order they are given in."""
    X = pd.DataFrame({"job": list("aaabbbbb")})
    predictions, sex = np.array([1, 0, 1, 0, 1, 1, 0, 0]), np.array(list("mmfmmffm"))
    report = FairnessReport.from_predictions(X, predictions, sex, by=["job"], min_cell=0)
    options = {"metric": None, "constraints": [report.facts(X, predictions)], "corrector": "ip"}
    codes = (sex == "m").astype(int)
    answer = fpbench.correct(codes, predictions, groups=["f", "m"], **options)
    assert answer.objective == 0
    assert fpbench.correct(sex, predictions, **options).values.tolist() == sex.tolist()
    for groups in (["m", "f"], 2, None):
        with pytest.raises(InputError, match="the facts number groups as f, m, .*give groups="):
            fpbench.correct(codes, predictions, groups=groups, **options)
