"""The auditor `membership` on models that memorise and that do not; steps of shadow models."""

import numpy as np
import pandas as pd
import pytest
from fpbench_membership.membership import Membership
from pydantic import ValidationError

import fpbench
from fpbench import Sample
from fpbench.auditing import draw_halves
from fpbench.plugin import Shadows, Split, Subject

DecisionTree, ExponentiatedGradient, Plain = (
    fpbench.plugin.discover().component("learner", name)
    for name in ("decision-tree", "exponentiated-gradient", "plain")
)


def noisy_people(n=600, seed=0):
    """People whose labels are partly random, so that only memory explains them."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 6))
    labels = (rng.random(n) < 0.5 + 0.2 * np.sign(x[:, 0])).astype(np.int8)
    features = pd.DataFrame(x, columns=[f"x{i}" for i in range(6)])
    sensitive = rng.integers(0, 2, n).astype(np.int8)
    return Sample(("f", "m"), features=features, labels=labels, sensitive=sensitive)


def contrary_pairs(n=600, seed=0):
    """People in pairs who are alike and have opposite labels: to be right is to remember."""
    rng = np.random.default_rng(seed)
    x = np.repeat(rng.normal(size=(n // 2, 6)), 2, axis=0) + 0.2 * rng.normal(size=(n, 6))
    order = rng.permutation(n)
    labels = np.tile([0, 1], n // 2).astype(np.int8)[order]
    features = pd.DataFrame(x[order], columns=[f"x{i}" for i in range(6)])
    sensitive = rng.integers(0, 2, n).astype(np.int8)
    return Sample(("f", "m"), features=features, labels=labels, sensitive=sensitive)


def split_of(people):
    half = len(people) // 2
    parts = np.arange(half), np.arange(half, len(people)), np.arange(0)
    return Split(*(people.take(rows) for rows in parts))


def train_shadows(learner, split, number):
    """Scores of shadow models, as the step of a matrix trains them, and the model."""
    rng = np.random.default_rng(0)
    everyone = fpbench.Sample(
        split.train.groups,
        features=pd.concat([split.train.features, split.test.features], ignore_index=True),
        labels=np.concatenate([split.train.labels, split.test.labels]),
        sensitive=np.concatenate([split.train.sensitive, split.test.sensitive]),
    )
    model = learner.fit(split.train.only(learner.needs), rng)
    members, models = np.zeros((0, len(everyone)), bool), []
    if number:
        members = draw_halves(2 * everyone.labels + everyone.sensitive, number, rng)
        models = learner.fit_many(everyone.only(learner.needs), members, rng.spawn(number))
    columns = {"features", "sensitive"} if learner.predicts_with_sensitive else {"features"}
    scores = learner.score_many([*models, model], everyone.only(frozenset(columns)), rng)
    return Shadows(members, scores[:-1], scores[-1], learner.has_scores())


def audit(learner, split, auditor=None, twin=None):
    """The measures of an auditor, by shadow models of a learner and of its twin."""
    auditor = auditor or Membership(shadows=16)
    sees = frozenset({"labels", "sensitive"})
    number = auditor.shadow_models
    subject = Subject(
        split.train.only(sees), split.test.only(sees),
        shadows=train_shadows(learner, split, number),
        twin=train_shadows(twin, split, number) if twin else None,
    )  # fmt: skip
    return auditor.audit(subject, np.random.default_rng(0))


OVERFIT = [
    DecisionTree(depths=64, leaves=100_000, max_features="all"),
    Plain(
        base="sklearn.neural_network:MLPClassifier",
        base_parameters={"hidden_layer_sizes": [128], "alpha": 0.0, "solver": "lbfgs",
                         "max_iter": 1000},
    ),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:lbfgs failed to converge")
@pytest.mark.parametrize("learner", OVERFIT, ids=["deep tree", "network"])
def test_it_finds_most_members_of_a_model_that_memorises(learner):
    measures = audit(learner, split_of(contrary_pairs()))
    assert measures["membership_auc"] >= 0.8
    assert measures["membership_advantage"] > 0.3
    assert measures["membership_auc_error"] < 0.03
    assert measures["membership_soft"] == 1
    assert measures["audit_private"] == 0


CONSTANT = {"base": "sklearn.dummy:DummyClassifier", "base_parameters": {"strategy": "prior"}}


@pytest.mark.parametrize("attack", ["lira", "rmia", "loss"])
def test_of_a_constant_model_it_finds_nobody(attack):
    """The share of label 1 is the same in all halves, so that nothing depends on anybody."""
    people = noisy_people(2000)
    labels = np.tile([0, 1, 1, 0], 500).astype(np.int8)
    split = split_of(people.having(labels=labels, sensitive=labels * 0 + np.arange(2000) % 2))
    measures = audit(Plain(**CONSTANT), split, Membership(attack=attack, shadows=16))
    error = measures["membership_auc_error"]
    assert abs(measures["membership_auc"] - 0.5) <= 2 * error + 1e-12
    assert measures["membership_tpr_at_1_percent"] == pytest.approx(0.01, abs=0.011)


def test_a_shallow_tree_gives_away_less_than_a_deep_one():
    split = split_of(noisy_people())
    shallow = audit(Plain(base_parameters={"max_depth": 2}), split)["membership_auc"]
    assert shallow < 0.65


def test_models_without_probabilities_are_attacked_by_their_answers():
    base = {"base": "sklearn.svm:LinearSVC", "base_parameters": {}}
    learner = Plain(**base)
    assert not learner.has_scores()
    deep = Plain(base="sklearn.neighbors:KNeighborsClassifier", base_parameters={"n_neighbors": 1})
    split = split_of(noisy_people())
    measures = audit(learner, split)
    assert measures["membership_soft"] == 0
    assert 0.4 < measures["membership_auc"] < 0.7
    assert audit(deep, split)["membership_auc"] > 0.75


@pytest.mark.slow
def test_the_twin_is_attacked_together_with_the_fair_model():
    fair = ExponentiatedGradient(base_parameters={"max_depth": 6}, max_iter=2)
    twin = fair.twin()
    assert twin == Plain(base_parameters={"max_depth": 6})
    split, auditor = split_of(noisy_people(400)), Membership(attack="fd-mia", shadows=8)
    both = audit(fair, split, auditor, twin)
    alone = audit(fair, split, Membership(shadows=8))
    assert both["membership_auc"] > alone["membership_auc"] - 0.05
    with pytest.raises(fpbench.InputError, match="needs scores of the unfair twin"):
        audit(twin, split, auditor)


def test_one_group_that_is_memorised_has_the_gap():
    rng = np.random.default_rng(0)
    n, number = 3000, 32
    people = noisy_people(n)
    members = draw_halves(np.zeros(n), number, rng)
    weak = people.sensitive == 1
    inside = np.arange(n) < n // 2

    def answer(trained):
        odds = rng.normal(size=trained.shape) + 2 * (trained & weak)
        positive = 1 / (1 + np.exp(-odds))
        return np.where(people.labels == 1, positive, 1 - positive)

    shadows = Shadows(members, answer(members), answer(inside), True)
    split = split_of(people)
    sees = frozenset({"labels", "sensitive"})
    subject = Subject(split.train.only(sees), split.test.only(sees), shadows=shadows)
    measures = Membership(shadows=number).audit(subject, rng)
    assert measures["membership_auc_m"] == pytest.approx(0.92, abs=0.03)
    assert measures["membership_auc_f"] == pytest.approx(0.5, abs=0.05)
    assert measures["membership_auc_gap"] == pytest.approx(
        measures["membership_auc_m"] - measures["membership_auc_f"]
    )
    assert measures["membership_tpr_at_0p1_percent"] is not None
    assert measures["membership_tpr_at_0p1_percent_f"] is None
    assert "tpr_at_0p1_percent of f" in measures["membership_undefined"]


@pytest.mark.parametrize(
    "wrong",
    [{"shadows": 3}, {"shadows": 0}, {"attack": "loss", "mode": "offline"}, {"gamma": 2.0},
     {"attack": "fd-mia", "mode": "offline"}, {"attack": "rmia", "offline_factor": 0.5},
     {"attack": "shokri"}],
)  # fmt: skip
def test_wrong_parameters_are_refused(wrong):
    with pytest.raises(ValidationError):
        Membership(**wrong)
    assert Membership(attack="rmia", mode="offline", offline_factor=0.5, gamma=2.0).shadows == 64


MATRIX = {
    "seeds": 1,
    "split": {"train": 0.5, "test": 0.5, "attack": 0.0},
    "dataset": [{"use": "census-synthetic", "rows": 300}],
    "learner": [{"use": "plain"}, {"use": "threshold-optimizer"}],
    "auditor": [
        {"use": "membership", "shadows": 4},
        {"use": "membership", "label": "rmia", "attack": "rmia", "shadows": 4},
        {"use": "membership", "label": "fd", "attack": "fd-mia", "shadows": 4},
    ],
}


def test_shadow_models_are_steps_that_auditors_and_twins_share():
    plan = fpbench.plan(MATRIX)
    counts = plan.steps
    assert counts["shadow", "plain"] == 1  # the twin of threshold-optimizer is `plain`
    assert counts["shadow", "threshold-optimizer"] == 1
    assert counts["train", "plain"] == 1
    (reason,) = plan.skipped
    assert reason == (
        "auditor 'membership' compares a fair model with its unfair twin, and learner 'plain' has "
        "none"
    )


def test_five_settings_train_each_shadow_model_once(tmp_path, monkeypatch):
    """The model, and 6 shadow models: `loss` needs none of its own."""
    fits = []
    fit = Plain.fit
    monkeypatch.setattr(Plain, "fit", lambda *args: fits.append(args) or fit(*args))
    settings = [
        {"attack": "lira"}, {"attack": "lira", "mode": "offline"}, {"attack": "rmia"},
        {"attack": "rmia", "mode": "offline"}, {"attack": "loss"},
    ]  # fmt: skip
    auditors = [
        {"use": "membership", "label": str(i), "shadows": 6, **one}
        for i, one in enumerate(settings)
    ]
    matrix = MATRIX | {"learner": [{"use": "plain"}], "auditor": auditors}
    rows = fpbench.run(matrix, out=tmp_path / "run").rows()
    assert [row["status"] for row in rows] == ["done"] * 5
    assert [row["membership_shadows"] for row in rows] == [6, 6, 6, 6, 0]
    assert len(fits) == 1 + 6


@pytest.mark.slow
def test_serial_and_parallel_runs_say_the_same(tmp_path):
    serial = fpbench.run(MATRIX, out=tmp_path / "serial").rows()
    parallel = fpbench.run(MATRIX, out=tmp_path / "parallel", jobs=2, engine="loky").rows()
    assert [row["status"] for row in serial].count("done") == 5
    names = [name for name in serial[0] if name.startswith("membership_")]
    assert len(names) > 10
    for one, other in zip(serial, parallel, strict=True):
        assert {name: one.get(name) for name in names} == {name: other.get(name) for name in names}
