"""PATE: its parts, its noise, its privacy, its students, and what it refuses."""

import io
import math
import pickle
import re
from collections import Counter
from contextlib import redirect_stdout
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from sklearn.linear_model import LogisticRegression

import fpbench
from fpbench import Guarantee, InputError, Sample
from fpbench.builtin.batched.logistic import fit_logistic_apart
from fpbench.builtin.pate.learner import (
    Pate,
    count_earlier,
    deal_parts,
    hash_records,
)
from fpbench.builtin.pate.model import (
    ConfidenceTest,
    StandardizedFeatures,
    derive_targets,
    draw_noise,
)
from fpbench.builtin.pate.noisy_votes import VoteCost, vote_labels
from fpbench.errors import DataError
from fpbench.models import encode
from fpbench.privacy import gaussian_epsilon

pytestmark = pytest.mark.numeric

NORMAL = NormalDist()
SMALL = {"teachers": 9, "public": 60, "sigma": 3.0}
QUICK_MLP = {"hidden": (5, 4), "epochs": 4, "rate": 0.01}


def fit(sample, seed=0, **parameters):
    return Pate(**{**SMALL, **parameters}).fit(sample.only(Pate.needs), np.random.default_rng(seed))


@pytest.fixture(scope="module")
def credit():
    """The real credit card data: the training part and the rest."""
    home = fpbench.plugin.DataHome.default()
    dataset = fpbench.component("dataset", "credit-card")
    if reason := dataset.absent(home):
        pytest.skip(reason)
    everyone = dataset.load(home).sample()
    rows = np.random.default_rng(0).permutation(len(everyone))
    return everyone.take(rows[:22_700]), everyone.take(rows[22_700:])


def test_columns_are_scaled_by_public_people_alone(make_people):
    sample = make_people(300)
    model = fit(sample)
    design = model.design(sample.features)
    assert design.shape == (300, 5)
    assert (design[:, -1] == 1).all()
    shown = design[model.public_rows]
    np.testing.assert_allclose(shown[:, :-1].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(shown[:, :-1].std(axis=0), 1, atol=1e-12)
    assert (shown == model.public_design).all()
    # Private people change nothing of it.
    other = sample.features.copy()
    private = np.setdiff1d(np.arange(300), model.public_rows)
    other.loc[private, "income"] *= 1000
    again = fit(sample.having(features=other))
    assert (again.public_rows == model.public_rows).all()
    assert (again.public_design == shown).all()


def test_columns_that_nothing_public_can_scale_are_left_out():
    encoded = np.array([[1, 5, 0], [2, 5, 0]], dtype=np.float32)
    design = StandardizedFeatures.of(encoded, "one-hot")
    found = design(np.array([[3, 7, 1]], dtype=np.float32))
    assert found.tolist() == [[3.0, 1.0]]


@given(st.integers(1, 400), st.integers(1, 40), st.sampled_from(["hash", "equal"]), st.data())
def test_parts_are_disjoint_and_hold_every_private_person(n, teachers, partition, data):
    rng = np.random.default_rng(n)
    private = np.flatnonzero(rng.random(n) < 0.8)
    teachers = data.draw(st.integers(1, max(1, len(private))))
    encoded = rng.standard_normal((n, 3)).astype(np.float32)
    found = deal_parts(partition, encoded, rng.integers(0, 2, n), private, teachers, rng)
    assert len(found) == teachers
    assert sorted(np.concatenate(found).tolist()) == private.tolist()
    if partition == "equal":
        sizes = [len(part) for part in found]
        assert max(sizes) - min(sizes) <= 1


@given(st.integers(1, 300), st.integers(1, 30), st.integers(0, 299), st.integers(1, 100))
def test_hashed_somebody_more_changes_one_part_only(n, teachers, who, values):
    """The law that the guarantee under add-remove rests on; also of many who are alike."""
    rng = np.random.default_rng(n)
    encoded, labels = rng.integers(0, values, (n, 2)).astype(np.float32), rng.integers(0, 2, n)
    records = list(zip(*encoded.T.tolist(), labels.tolist(), strict=True))

    def taught(rows):
        found = deal_parts("hash", encoded, labels, rows, teachers, np.random.default_rng(5))
        return [Counter(records[row] for row in part) for part in found]

    who %= n
    everybody, others = taught(np.arange(n)), taught(np.delete(np.arange(n), who))
    differ = [(a, b) for a, b in zip(everybody, others, strict=True) if a != b]
    assert len(differ) == 1
    assert differ[0][0] - differ[0][1] == Counter([records[who]])
    assert not differ[0][1] - differ[0][0]


def test_people_who_are_alike_spread():
    encoded, labels = np.zeros((3000, 2), np.float32), np.zeros(3000, np.int8)
    rng = np.random.default_rng(0)
    sizes = [len(part) for part in deal_parts("hash", encoded, labels, np.arange(3000), 10, rng)]
    assert min(sizes) > 240
    assert max(sizes) < 360


@given(st.lists(st.integers(0, 5), max_size=40))
def test_occurrences_are_numbered(values):
    found = count_earlier(np.array(values, dtype=np.uint64)).tolist()
    assert found == [values[:i].count(value) for i, value in enumerate(values)]


def test_hashes_spread_and_tell_records_apart():
    rng = np.random.default_rng(0)
    encoded = rng.integers(0, 3, (20_000, 12)).astype(np.float32)
    labels = rng.integers(0, 2, 20_000)
    hashes = hash_records(encoded, labels, np.uint64(7))
    records = {(*row.tolist(), label) for row, label in zip(encoded, labels, strict=True)}
    assert len(np.unique(hashes)) == len(records)
    counts = np.bincount((hashes % np.uint64(100)).astype(int), minlength=100)
    assert ((counts - 200) ** 2 / 200).sum() < 180  # chi squared of 99 degrees, mean 99
    assert (hash_records(encoded, labels, np.uint64(8)) != hashes).any()
    assert (hash_records(-encoded * 0, labels, np.uint64(8))
            == hash_records(encoded * 0, labels, np.uint64(8))).all()  # fmt: skip


def test_hashed_one_of_many_alike_changes_what_one_part_is_taught():
    """Also in which order: networks learn from batches."""
    rng = np.random.default_rng(0)
    encoded, labels = rng.integers(0, 2, (60, 2)).astype(np.float32), rng.integers(0, 2, 60)
    records = np.column_stack([encoded, labels])

    def taught(rows):
        found = deal_parts("hash", encoded, labels, rows, 6, np.random.default_rng(5))
        return [records[part].tolist() for part in found]

    everybody = taught(np.arange(60))
    for who in range(60):
        others = taught(np.delete(np.arange(60), who))
        assert sum(a != b for a, b in zip(everybody, others, strict=True)) == 1


@pytest.mark.parametrize("teacher", ["logistic", "mlp"])
def test_votes_do_not_depend_on_the_order_of_private_people(teacher, make_people):
    """Of a hash partition: who teaches whom, and in which order, is in the record."""
    sample = make_people(500, seed=3)
    how = {"teacher": "mlp", **QUICK_MLP} if teacher == "mlp" else {}
    model = fit(sample, **how)
    rows = np.arange(500)
    private = np.setdiff1d(rows, model.public_rows)
    rows[private] = np.random.default_rng(1).permutation(private)
    again = fit(sample.take(rows), **how)
    assert (again.public_rows == model.public_rows).all()
    assert (again.votes == model.votes).all()


def test_one_person_moves_one_vote_of_each_public_person(make_people):
    sample = make_people(500, seed=3)
    model = fit(sample, teachers=30)
    who = np.setdiff1d(np.arange(500), model.public_rows)[17]
    labels = sample.labels.copy()
    labels[who] = 1 - labels[who]
    income = sample.features.copy()
    income.loc[who, "income"] = 1e7
    # A record that is replaced leaves one teacher, and may join another.
    for changed in (sample.having(labels=labels), sample.having(labels=labels, features=income)):
        assert np.abs(fit(changed, teachers=30).votes - model.votes).max() <= 2
    equal = fit(sample, teachers=30, partition="equal")
    moved = np.abs(
        fit(sample.having(labels=labels, features=income), teachers=30, partition="equal").votes
        - equal.votes
    )
    assert moved.max() == 1


def test_a_model_keeps_the_contract(make_people, rng):
    sample = make_people(400)
    model = fit(sample)
    assert model.votes.sum(axis=1).tolist() == [9] * 60
    assert (np.diff(model.public_rows) > 0).all()
    noise = model.draw_noise(7, rng)
    assert noise.shape == (7, 60, 2)
    targets, weights = model.targets(noise)
    assert targets.shape == (7, 60)
    assert weights is None
    assert (
        targets == (model.votes[:, 1] + noise[..., 1] > model.votes[:, 0] + noise[..., 0])
    ).all()
    parameters = model.fit_students(targets)
    design = model.design(sample.features)
    assert parameters.shape == (7, design.shape[1])
    away = np.linalg.norm(parameters - model.theta_star, axis=1)
    assert (model.distances(parameters) == away).all()
    assert model.student_proba(parameters, design).shape == (7, 400)
    assert (model.sigma, model.labels, model.penalty, model.student) == (
        3.0,
        "hard",
        0.5,
        "logistic",
    )
    base = model.student_proba(model.theta_star[None], design)[0]
    np.testing.assert_allclose(model.baseline.predict_proba(sample.features, rng)[:, 1], base)
    clean = model.fit_students(vote_labels(model.votes, "hard", 9)[None])
    np.testing.assert_allclose(clean[0], model.theta_star, atol=1e-9)
    proba = model.predict_proba(sample.features, rng)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert (model.predict(sample.features, rng) == (proba[:, 1] > 0.5)).all()
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(sample.features, rng) == model.predict(sample.features, rng)).all()


def test_notes_say_how_often_students_label_as_the_votes_do(make_people, rng):
    sample = make_people(400)
    model = fit(sample)
    public = sample.features.iloc[model.public_rows]
    won = model.votes[:, 1] > model.votes[:, 0]
    assert 0.2 < won.mean() < 0.8
    for name, student in (("", model), ("_baseline", model.baseline)):
        agree = (student.predict_proba(public, rng)[:, 1] > 0.5) == won
        assert model.notes[f"pate{name}_vote_accuracy"] == pytest.approx(agree.mean())
        assert agree.mean() > 0.6


def test_students_are_those_of_scikit_learn_one_by_one(make_people, rng):
    sample = make_people(400)
    model = fit(sample, penalty=0.05)
    targets, _ = model.targets(model.draw_noise(12, rng))
    for found, labels in zip(model.fit_students(targets), targets, strict=True):
        theirs = LogisticRegression(
            C=1 / (2 * 0.05 * 60), fit_intercept=False, solver="newton-cholesky", tol=1e-10
        ).fit(model.public_design, labels)
        np.testing.assert_allclose(found, theirs.coef_[0], atol=1e-6)


@pytest.mark.parametrize("voting", ["gnmax", "confident"])
@pytest.mark.parametrize("repetitions", [1, 6, 7])
def test_antithetic_noise_comes_in_opposites(voting, repetitions, make_people, rng):
    model = fit(make_people(400), voting=voting)
    noise = model.draw_noise(repetitions, rng, antithetic=True)
    assert noise.shape == (repetitions, 60, 2 if voting == "gnmax" else 3)
    half = -(-repetitions // 2)
    assert (noise[half:] == -noise[: repetitions - half]).all()


def test_noise_is_as_large_as_said(make_people, rng):
    model = fit(make_people(400), voting="confident", ratio=5.0)
    spread = model.draw_noise(2000, rng).std(axis=(0, 1))
    np.testing.assert_allclose(spread, [3, 3, 15], rtol=0.02)


@pytest.mark.parametrize("labels", ["hard", "soft", "soft-clipped"])
def test_without_noise_the_student_is_the_baseline(labels, make_people, rng):
    sample = make_people(400)
    model = fit(sample, sigma=0.0, labels=labels)
    assert model.guarantee is None
    assert model.notes["pate_epsilon"] is None
    assert model.notes["pate_flip_probability"] == 0
    np.testing.assert_allclose(model.parameters, model.baseline.parameters, atol=1e-9)
    assert (model.draw_noise(3, rng) == 0).all()


def test_soft_labels_are_shares(make_people, rng):
    model = fit(make_people(400), labels="soft", sigma=20.0)
    noise = model.draw_noise(5, rng)
    soft, _ = model.targets(noise)
    noisy = model.votes + noise
    np.testing.assert_allclose(soft, 0.5 + (noisy[..., 1] - noisy[..., 0]) / 18)
    assert soft.min() < 0
    assert soft.max() > 1
    clipped, _ = fit(make_people(400), labels="soft-clipped", sigma=20.0).targets(noise)
    assert (clipped == soft.clip(0, 1)).all()
    assert model.fit_students(soft).shape == (5, 5)


@pytest.mark.parametrize(("teacher", "student"), [("mlp", "logistic"), ("logistic", "mlp"),
                                                  ("mlp", "mlp")])  # fmt: skip
def test_networks_teach_and_learn(teacher, student, make_people, rng):
    sample = make_people(400)
    given = {"teacher": teacher, "student": student, "labels": "soft-clipped", **QUICK_MLP}
    model = fit(sample, **given)
    assert (model.theta_star is None) == (student == "mlp")
    targets, weights = model.targets(model.draw_noise(3, rng))
    parameters = model.fit_students(targets, weights)
    design = model.design(sample.features)
    assert model.student_proba(parameters, design).shape == (3, 400)
    away = model.distances(parameters)
    assert away.shape == (3,)
    assert (away > 0).all()
    assert (model.distances(model.baseline.parameters) == 0).all()
    # Noise alone tells students apart: without any, they are the baseline, bit for bit.
    clean = vote_labels(model.votes, "soft-clipped", 9)
    same = model.student_proba(model.fit_students(clean[None]), design)[0]
    np.testing.assert_allclose(same, model.baseline.predict_proba(sample.features, rng)[:, 1])
    assert (fit(sample, **given).predict(sample.features, rng)
            == model.predict(sample.features, rng)).all()  # fmt: skip
    report = fpbench.auditing.excessive_risk(model, sample, sample, repetitions=2)
    people = report.people.query("on == 'test'")
    if student == "mlp":
        norms = model.baseline.parameters.gradient_norms(design, sample.labels)[0]
    else:
        norms = abs(model.baseline.predict_proba(sample.features, rng)[:, 1] - sample.labels)
        norms *= np.linalg.norm(design, axis=1)
    np.testing.assert_allclose(people["gradient_norm"], norms)


def test_confident_answers_only_where_teachers_agree(make_people, rng):
    sample = make_people(400)
    model = fit(sample, voting="confident", threshold=0.8, answers=20, ratio=1.5)
    noise = model.draw_noise(40, rng)
    _, weights = model.targets(noise)
    for row, drawn in zip(weights, noise, strict=True):
        told = 0
        for votes, answered, test in zip(model.votes, row, drawn[:, 2], strict=True):
            expected = votes.max() + test >= 0.8 * 9 and told < 20
            assert answered == expected
            told += expected
    assert 0 < weights.sum(axis=1).max() <= 20
    # Who is not answered teaches nothing.
    targets, _ = model.targets(noise)
    other = np.where(weights == 1, targets, 1 - targets)
    np.testing.assert_allclose(
        model.fit_students(targets, weights), model.fit_students(other, weights), atol=1e-9
    )
    assert model.notes["pate_answered"] <= 20
    # What would be without privacy is taught everything.
    everything = fit(sample)
    np.testing.assert_allclose(model.theta_star, everything.theta_star)
    with pytest.raises(InputError, match=r"noise must be \(R, 60, 3\), not \(4, 60, 2\)"):
        model.targets(np.zeros((4, 60, 2)))


@pytest.mark.slow
def test_confident_answers_survive_the_best_attack():
    """Likelihood ratios of all that is told, under two neighbours, keep to the guarantee."""
    m, sigma, draws, delta = 30, 4.0, 40_000, 1e-2
    confident = ConfidenceTest(threshold=8.0, ratio=1.5, answers=10)
    epsilon = VoteCost(10, m, 1.5).epsilon(sigma, delta)
    rng = np.random.default_rng(0)
    neighbours = np.tile([3, 8], (m, 1)), np.tile([4, 7], (m, 1))

    def chances(votes):
        """Of no answer, of label 0 and of label 1."""
        n0, n1 = votes[0]
        passed = NORMAL.cdf((max(n0, n1) - 8.0) / (1.5 * sigma))
        one = NORMAL.cdf((n1 - n0) / (2**0.5 * sigma))
        return np.array([1 - passed, passed * (1 - one), passed * one])

    ratios = np.log(chances(neighbours[0]) / chances(neighbours[1]))

    def score(votes):
        noise = draw_noise((draws, m), sigma, confident, rng)
        targets, told = derive_targets(votes, noise, "hard", 11, confident)
        outcome = np.where(told == 1, 1 + targets, 0).astype(int)
        asked = np.cumsum(told, axis=1) - told < 10  # what comes after the last answer says nothing
        return np.where(asked, ratios[outcome], 0.0).sum(axis=1)

    one, other = score(neighbours[0]), score(neighbours[1])
    reached = []
    for cut in np.linspace(-3, 3, 25):
        first, second = (one > cut).mean(), (other > cut).mean()
        assert first - np.exp(epsilon) * second <= delta + 4 * (1 + np.exp(epsilon)) / draws**0.5
        reached.append(first - second)
    assert max(reached) > 0.15  # the attack is one


def test_a_threshold_nobody_meets_leaves_the_student_at_zero(make_people, rng):
    model = fit(make_people(400), voting="confident", threshold=1.0, sigma=0.0, teachers=200)
    assert model.notes["pate_answered"] < 60
    weights = np.zeros((1, 60))
    assert (model.fit_students(np.ones((1, 60)), weights) == 0).all()


def test_guarantees(make_people):
    sample = make_people(400)
    one = fit(sample, public=200, sigma=50.0)
    assert one.guarantee == Guarantee(
        gaussian_epsilon(50.0, 1e-5, 20.0), 1e-5, "add-remove", rho=0.08
    )
    assert one.guarantee.epsilon == pytest.approx(1.555, abs=5e-4)
    assert one.notes["pate_epsilon"] == one.guarantee.epsilon
    assert one.notes["pate_epsilon_paper"] == pytest.approx(2.00, abs=5e-3)
    assert one.notes["pate_neighbours"] == "add-remove"
    equal = fit(sample, public=200, sigma=50.0, partition="equal")
    assert equal.guarantee.neighbours == "replace-one"
    assert equal.guarantee.epsilon == one.guarantee.epsilon
    # 100 answers and 200 tests of twice the noise: 2 * 100 + 200 / 4.
    some = fit(sample, public=200, sigma=50.0, voting="confident", answers=100, ratio=2.0)
    assert some.guarantee.epsilon == gaussian_epsilon(50.0, 1e-5, 250**0.5)
    assert some.guarantee.rho == pytest.approx(250 / 2 / 2500)
    assert fit(sample, sigma=1e9).guarantee.epsilon == fpbench.privacy.LEAST_EPSILON
    assert fit(sample, sigma=None, epsilon=1.5).guarantee.epsilon == 1.5


@given(st.floats(0.01, 30), st.sampled_from(["gnmax", "confident"]), st.integers(1, 500))
def test_epsilon_gives_the_sigma_that_gives_epsilon(epsilon, voting, public):
    learner = Pate(epsilon=epsilon, voting=voting, public=public)
    assert learner.cost().epsilon(learner.noise(), 1e-5) == pytest.approx(epsilon, rel=1e-6)
    again = Pate(sigma=learner.noise(), voting=voting, public=public)
    assert again.noise() == learner.noise()


@given(st.floats(1, 500), st.floats(1.01, 3), st.integers(1, 300))
def test_more_noise_or_fewer_questions_guarantee_more(sigma, more, public):
    def epsilon(sigma, public):
        return Pate(sigma=sigma, public=public)._compute_guarantee(sigma).epsilon

    assert epsilon(sigma * more, public) <= epsilon(sigma, public) <= epsilon(sigma, public + 1)


def test_all_votes_for_one_label_are_said(make_people, rng):
    sample = make_people(400)
    ones = sample.having(labels=np.ones(400, np.int8))
    model = fit(ones)
    assert model.notes["pate_warning"] == "all votes without noise are for label 1"
    assert model.baseline.predict(sample.features, rng).tolist() == [1] * 400
    assert np.isfinite(model.parameters).all()
    assert fit(sample).notes["pate_warning"] is None


@pytest.mark.parametrize(("teachers", "public"), [(341, 60), (9, 400), (9, 1000), (400, 1)])
def test_too_few_people(teachers, public, make_people):
    says = f"400 training people are too few for public = {public} and teachers = {teachers}"
    with pytest.raises(InputError, match=says):
        fit(make_people(400), teachers=teachers, public=public)


@pytest.mark.parametrize("more", [{}, {"teacher": "mlp", **QUICK_MLP}])
def test_teachers_without_people_vote_for_label_0(more, make_people):
    model = fit(make_people(100), teachers=40, sigma=1.0, **more)
    empty = model.notes["pate_teachers_empty"]
    assert empty > 0
    assert (model.votes[:, 0] >= empty).all()


@pytest.mark.slow
def test_a_teacher_whose_probability_is_one_half_votes_for_label_0():
    """Pairs (x, 1), (-x, 0): in exact arithmetic, an intercept is 0, and who is at the mean a tie."""
    rng = np.random.default_rng(0)
    public = np.array([[1, 2, 3, 5, 7, 9], [-1, -2, -3, -5, -7, -9], [0] * 6])

    class Symmetric(Pate):
        def _draw_public(self, n, rng):
            return np.arange(3), np.arange(3, n)

    learner = Symmetric(teachers=1, public=3, partition="equal", sigma=1.0)
    votes = []
    for seed in range(60):
        one = rng.integers(-9, 10, (3, 6))
        features = pd.DataFrame(np.vstack([public, one, -one]).astype(np.float32)).add_prefix("x")
        people = Sample((), features=features, labels=np.repeat([0, 1, 0], 3))
        votes.append(learner.fit(people, np.random.default_rng(seed)).votes[2])
    assert (np.array(votes) == [1, 0]).all()


def test_missing_numbers_are_refused(make_people):
    sample = make_people(100)
    features = sample.features.copy()
    features.loc[3, "income"] = np.nan
    with pytest.raises(DataError, match="feature 'income' has values that are missing"):
        fit(sample.having(features=features))


def test_features_may_be_categorical_only():
    job = pd.Categorical.from_codes(np.arange(200) % 3, categories=["a", "b", "c"])
    labels = (np.arange(200) % 3 == 0).astype(np.int8)
    sample = Sample(("x",), features=pd.DataFrame({"job": job}), labels=labels)
    model = fit(sample, sigma=0.0, penalty=1e-3, teacher_penalty=1e-3)
    assert model.public_design.shape == (60, 4)
    assert (model.predict(sample.features, np.random.default_rng()) == labels).all()
    model = fit(sample, sigma=0.0, penalty=1e-3, teacher_penalty=1e-3, encoding="ordinal")
    assert model.public_design.shape == (60, 2)
    assert len(np.unique(model.design(sample.features)[:, 0])) == 3
    assert model.notes["pate_encoding"] == "ordinal"


@pytest.mark.parametrize(("parameters", "says"), [
    ({"sigma": 0.0, "epsilon": 1.0}, "sigma = 0 gives no privacy, but epsilon = 1.0 claims some"),
    ({"sigma": 5.0, "epsilon": 1.0}, "sigma and epsilon are equivalent: give one of them"),
    ({"penalty": 0.0, "labels": "soft"}, "penalty = 0: with soft labels beyond 0 and 1"),
    ({"penalty": 0.0}, "penalty = 0: if a plane separates the labels"),
    ({"teacher_penalty": 0.0}, "teacher_penalty = 0: if a plane separates the labels"),
    ({"student": "mlp", "labels": "soft"}, 'a network diverges: use "soft-clipped"'),
    ({"penalty": 0.0, "labels": "equation-12"}, "penalty = 0: with soft labels beyond 0 and 1"),
    ({"student": "mlp", "labels": "equation-12"}, 'a network diverges: use "soft-clipped"'),
    ({"student": "least-squares", "labels": "equation-12"}, "may have no minimum by least squares"),
    ({"student": "least-squares", "penalty": 0.0}, "penalty = 0: fewer people than columns"),
    ({"voting": "confident", "labels": "equation-12"}, "needs an answer for everybody"),
    ({"threshold": 0.7}, 'threshold has an effect only with voting = "confident"'),
    ({"answers": 7}, 'answers has an effect only with voting = "confident"'),
    ({"epochs": 7}, "epochs has an effect only with an mlp"),
    ({"sigma": math.inf}, "sigma"),
    ({"sigma": 1e200}, "sigma"),
    ({"epsilon": math.inf, "sigma": None}, "epsilon"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(parameters, says):
    with pytest.raises(ValidationError, match=says):
        Pate(**parameters)


@pytest.mark.slow
def test_on_credit_cards_all_is_as_scikit_learn_has_it(credit):
    train, test = credit
    learner = Pate(teacher_penalty=0.01, penalty=0.1)
    model = learner.fit(train.only(Pate.needs), np.random.default_rng(4))
    design = model.design(train.features)
    # Teachers: dealt out again, and trained one by one.
    of_rows, of_parts, *_ = np.random.default_rng(4).spawn(4)
    public, private = learner._draw_public(len(train), of_rows)
    assert (public == model.public_rows).all()
    dealt = deal_parts("hash", encode(train.features), train.labels, private, 150, of_parts)
    ours = fit_logistic_apart(design, train.labels.astype(float), dealt, 0.01)
    votes = np.zeros((200, 2), int)
    for theta, rows in zip(ours, dealt, strict=True):
        theirs = LogisticRegression(
            C=1 / (2 * 0.01 * len(rows)), fit_intercept=False, solver="newton-cholesky",
            tol=1e-10, max_iter=1000,
        ).fit(design[rows], train.labels[rows])  # fmt: skip
        np.testing.assert_allclose(theta, theirs.coef_[0], atol=1e-6)
        votes[np.arange(200), theirs.predict(model.public_design)] += 1
    assert (votes == model.votes).all()
    # Students.
    targets, _ = model.targets(model.draw_noise(20, np.random.default_rng(1)))
    for theta, labels in zip(model.fit_students(targets), targets, strict=True):
        theirs = LogisticRegression(
            C=1 / (2 * 0.1 * 200), fit_intercept=False, solver="newton-cholesky", tol=1e-10,
        ).fit(model.public_design, labels)  # fmt: skip
        np.testing.assert_allclose(theta, theirs.coef_[0], atol=1e-6)
    right = model.baseline.predict(test.features, np.random.default_rng()) == test.labels
    assert right.mean() > 0.78


PAGE = Path(__file__).parents[3] / "docs" / "paper-pate.md"


def test_the_code_of_the_docs_runs():
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    found = {}
    with redirect_stdout(io.StringIO()) as out:
        exec(compile(code, str(PAGE), "exec"), found)
    guarantee, noise, accuracy = out.getvalue().splitlines()
    assert guarantee.startswith("Guarantee(epsilon=1.0, delta=1e-05, neighbours='add-remove'")
    sigma, paper = map(float, noise.split())
    assert f"# {sigma:.2f}..., and epsilon by the paper's formula: {paper:.2f}" in code
    assert float(accuracy) > 0.75
    assert found["chances"].shape == (1000, 5000)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(
    ("name", "parameters", "least"),
    [("adult", {"sensitive": "race"}, 0.79), ("bank", {}, 0.885), ("parkinsons", {}, 0.55)],
)
def test_real_data_teach(name, parameters, least):
    """Clean votes of 150 teachers are worth more than the label that most people have."""
    home = fpbench.plugin.DataHome.default()
    dataset = fpbench.component("dataset", name, **parameters)
    if reason := dataset.absent(home):
        pytest.skip(reason)
    everyone = dataset.load(home).sample()
    rows = np.random.default_rng(0).permutation(len(everyone))
    cut = int(0.75 * len(everyone)) + 200
    model = Pate(penalty=0.1).fit(everyone.take(rows[:cut]), np.random.default_rng(0))
    test = everyone.take(rows[cut:])
    right = model.baseline.predict(test.features, np.random.default_rng()) == test.labels
    assert right.mean() > least
    assert max(test.labels.mean(), 1 - test.labels.mean()) < least
    assert np.isfinite(model.public_design).all()
    assert model.guarantee.epsilon == pytest.approx(1.555, abs=5e-4)
