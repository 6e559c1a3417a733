"""PATE with votes refused for parity, with fair teachers, and with a fair student."""

from collections import Counter

import numpy as np
import pytest
from pydantic import ValidationError

import fpbench
from fpbench.auditing import excessive_risk
from fpbench.builtin.batched.logistic import fit_logistic, logistic_proba
from fpbench.builtin.pate.fair_learner import FairPate
from fpbench.builtin.pate.learner import Pate
from fpbench.builtin.pate.model import LinearFamily, ParityRefusal
from fpbench.builtin.pate.noisy_votes import VoteCost

KINDS = ("refuse", "teachers")


@pytest.fixture(scope="module")
def people():
    return fpbench.dataset("census-synthetic", rows=1200).sample()


def fit(learner, people, seed=0):
    return learner.fit(people.only(learner.needs), np.random.default_rng(seed))


def refuse_one_by_one(labels, groups, gap, least):
    """The answers to one student's votes, by the definition."""
    answered = []
    for row, (label, group) in enumerate(zip(labels, groups, strict=True)):
        own = [labels[i] for i in answered if groups[i] == group]
        others = [labels[i] for i in answered if groups[i] != group]
        enough = len(own) >= least and others
        if label and enough and np.mean(own) - np.mean(others) >= gap:
            continue
        answered.append(row)
    return answered


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(("gap", "least"), [(0.0, 1), (0.05, 10), (0.3, 4), (1.0, 1)])
def test_refusals_are_those_of_the_definition(k, gap, least):
    rng = np.random.default_rng(k)
    groups = rng.integers(k, size=120)
    labels = (rng.random((5, 120)) < 0.2 + 0.5 * (groups == 0)).astype(float)
    before = (rng.random((5, 120)) < 0.9).astype(float)
    found = ParityRefusal(groups, gap, least).select_answers(labels, before)
    for row in range(5):
        asked = np.flatnonzero(before[row])
        kept = refuse_one_by_one(labels[row, asked], groups[asked], gap, least)
        assert np.flatnonzero(found[row]).tolist() == asked[kept].tolist()


def test_the_answered_votes_are_nearly_at_parity():
    rng = np.random.default_rng(0)
    groups = rng.integers(2, size=2000)
    labels = (rng.random((1, 2000)) < 0.2 + 0.5 * groups).astype(float)
    (answers,) = ParityRefusal(groups, 0.1, 10).select_answers(labels, np.ones((1, 2000))) > 0
    rates = [labels[0, answers & (groups == group)].mean() for group in range(2)]
    assert rates[1] - rates[0] == pytest.approx(0.1, abs=0.01)
    assert answers[groups == 0].all()


@pytest.mark.parametrize("kind", KINDS)
def test_fairness_costs_no_privacy_and_refused_votes_cost_as_much(kind, people):
    parameters = {"teachers": 20, "public": 150, "sigma": 5.0}
    fair, plain = FairPate(fairness=kind, **parameters), Pate(**parameters)
    model = fit(fair, people)
    assert model.guarantee == fit(plain, people).guarantee
    assert fair.cost() == plain.cost()
    assert (model.notes["pate_answered"] < 150) == (kind == "refuse")
    assert fair.twin() == plain


def test_fair_teachers_have_no_covariance_of_group_and_log_odds(people, monkeypatch):
    seen = {}

    def watch(self, design, labels, parts):
        seen.update(design=design, parts=parts, theta=train(self, design, labels, parts))
        return seen["theta"]

    train = LinearFamily.teachers
    monkeypatch.setattr(LinearFamily, "teachers", watch)
    whole = {}
    for kind in ("refuse", "teachers"):
        fit(FairPate(teachers=8, public=100, fairness=kind), people)
        whole[kind] = dict(seen)
    design, parts = whole["refuse"]["design"], whole["refuse"]["parts"]
    spreads = {}
    for kind in KINDS:
        covariances = []
        for rows, theta in zip(parts, whole[kind]["theta"], strict=True):
            odds, group = design[rows] @ theta, people.sensitive[rows]
            covariances.append(np.mean((group - group.mean()) * odds))
        spreads[kind] = np.abs(covariances).max()
    assert spreads["teachers"] < 1e-9 < 1e-3 < spreads["refuse"]


@pytest.mark.parametrize("k", [2, 3])
def test_a_fair_student_has_no_covariance_of_voted_group_and_log_odds(k, people):
    """Of one teacher without noise: the groups that it predicts, and the best student so."""
    rng = np.random.default_rng(k)
    by_age = np.argsort(np.argsort(people.features["age"])) * k // 1200
    noisy = np.where(rng.random(1200) < 0.8, by_age, rng.integers(k, size=1200))
    people = fpbench.Sample(
        tuple("abc"[:k]), features=people.features, labels=people.labels,
        sensitive=noisy.astype(np.int8),
    )  # fmt: skip
    settings = {"teachers": 1, "public": 200, "sigma": 0.0}
    model = fit(FairPate(fairness="student", **settings), people)
    x, plain = model.public_design, fit(Pate(**settings), people)
    private = np.setdiff1d(np.arange(1200), model.public_rows)
    design, whole = plain.design(people.features), plain.public_design
    member = np.eye(k)[people.sensitive]
    chances = [logistic_proba(fit_logistic(design[private], one[None, private], 0.01), whole)[0]
               for one in member.T]  # fmt: skip
    voted = np.argmax(chances, axis=0)
    assert len(set(voted)) == k
    covariances = [np.cov(voted == group, whole @ model.theta_star)[0, 1] for group in range(k)]
    before = [np.cov(voted == group, whole @ plain.theta_star)[0, 1] for group in range(k)]
    assert np.abs(covariances).max() < 1e-9 < 1e-3 < np.abs(before).max()
    # What is projected out is no other than that: K - 1 directions, and predictions know of it.
    assert np.linalg.matrix_rank(x) == np.linalg.matrix_rank(whole) - (k - 1)
    np.testing.assert_allclose(model.design(people.features)[model.public_rows], x)


def test_votes_on_groups_are_paid_for(people):
    for settings, cost in (
        ({}, VoteCost(300)), ({"voting": "confident", "answers": 60}, VoteCost(210, 150, 2.0)),
    ):  # fmt: skip
        learner = FairPate(
            teachers=20, public=150, epsilon=3.0, fairness="student", labels="soft", **settings
        )
        assert learner.cost() == cost
        assert learner.noise() == pytest.approx(cost.sigma(3.0, 1e-5))
        model = fit(learner, people)
        assert model.guarantee.epsilon == 3.0
        np.testing.assert_array_equal(model.scaled.fair, fit(learner, people).scaled.fair)
        clean = learner.model_copy(update={"epsilon": None, "sigma": 0.0})
        assert np.abs(model.scaled.fair - fit(clean, people).scaled.fair).max() > 0.01


def test_an_audit_keeps_the_voted_groups(people):
    model = fit(FairPate(teachers=20, public=150, sigma=5.0, fairness="student"), people)
    report = excessive_risk(model, people, people, repetitions=40, rng=0)
    exact = excessive_risk(model, people, people, method="closed-form")
    assert report.bounds["holds"][~report.bounds["bound"].str.contains("literal|paper")].all()
    for method in (report, exact):
        assert method.overall["risk"].notna().all()
    measured = report.model["sensitivity"], report.model["sensitivity_error"]
    assert abs(measured[0] - exact.model["sensitivity"]) < 4 * measured[1] + 0.02 * measured[0]


def test_a_person_changes_one_teacher_s_part_by_one_person(people, monkeypatch):
    """Of equal people in different groups too."""
    alike = people.take(np.repeat(np.arange(40), 30))
    alike = alike.having(sensitive=np.tile([0, 1, 1], 400).astype(np.int8))
    seen = []
    monkeypatch.setattr(Pate, "_draw_public", lambda self, n, rng: (np.arange(9), np.arange(9, n)))
    prepare = FairPate._prepare_private

    def watch(self, design, sample, parts):
        records = np.column_stack([sample.features.astype(str), sample.labels, sample.sensitive])
        seen.append([Counter(map(tuple, records[rows])) for rows in parts])
        return prepare(self, design, sample, parts)

    monkeypatch.setattr(FairPate, "_prepare_private", watch)
    learner = FairPate(teachers=10, public=9, fairness="teachers")
    for gone in (None, 10, 500, 1111):
        fit(learner, alike.take(np.array([row for row in range(len(alike)) if row != gone])))
        changes = [(one - other).total() for one, other in zip(seen[0], seen[-1], strict=True)]
        assert sorted(changes) == [0] * 9 + [gone is not None]
        assert not any((other - one).total() for one, other in zip(seen[0], seen[-1], strict=True))


def test_the_audit_refuses_as_the_training_does(people):
    model = fit(FairPate(teachers=20, public=150, sigma=5.0, gap=0.01), people)
    _, weights = model.targets(model.draw_noise(40, np.random.default_rng(0)))
    assert weights.shape == (40, 150)
    assert 0.5 < weights.mean() < 1
    report = excessive_risk(model, people, people, repetitions=10, rng=0)
    assert report.overall["risk"].notna().all()


@pytest.mark.parametrize("wrong", [
    {"fairness": "teachers", "gap": 0.1}, {"fairness": "teachers", "least": 3},
    {"fairness": "teachers", "teacher": "mlp"}, {"fairness": "student", "student": "mlp"},
    {"fairness": "student", "gap": 0.1}, {"labels": "equation-12"}, {"gap": -0.1},
])  # fmt: skip
def test_combinations_without_effect_are_refused(wrong):
    with pytest.raises(ValidationError):
        FairPate(**wrong)
