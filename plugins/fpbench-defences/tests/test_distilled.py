"""A tree imitates any learner's model, and keeps a guarantee only where it may."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from fpbench_defences.distilled import Distilled

import fpbench
from fpbench import Guarantee, InputError, Learner, component


@dataclass
class Threshold:
    """Says 1 of whoever earns more, and who is public."""

    at: float
    public_rows: np.ndarray
    guarantee: Guarantee
    baseline: object = None
    notes: object = None

    def predict(self, features, rng, sensitive=None):
        assert list(features.columns) == ["skill", "income", "job"]
        return (features["income"].to_numpy() > self.at).astype(np.int8)


class Private(Learner):
    """A private model with a public part, whose labels are those of a threshold."""

    name = "private"
    summary = "toy"
    needs = frozenset({"features"})

    def fit(self, sample, rng):
        assert sample.seen == {"features"}
        public = np.sort(rng.choice(len(sample), 60, replace=False))
        clean = Threshold(0.0, public, Guarantee(9.0))
        notes = {"private_epsilon": 0.5, "private_delta": 1e-5, "private_epsilon_paper": 0.4,
                 "private_sigma": 9.0}  # fmt: skip
        return Threshold(700.0, public, Guarantee(0.5, 1e-5, "add-remove"), clean, notes)


@pytest.mark.slow
def test_a_deep_tree_says_what_its_teacher_says(make_people, rng):
    sample = make_people(300)
    model = Distilled(teacher=component("learner", "plain", base="random-forest"), depth=64).fit(
        sample, rng
    )
    forest = component("learner", "plain", base="random-forest").fit(
        sample, np.random.default_rng(7)
    )
    assert model.notes["fidelity"] == 1.0
    assert model.notes["distilled_on"] == "training"
    assert model.guarantee is None
    predictions = model.predict(sample.features, rng)
    # The generator is the same until the teacher is trained.
    assert (predictions == forest.predict(sample.features, rng)).all()
    assert (model.rules.predict(sample.features) == predictions).all()
    assert model.rules.n_favourable == model.notes["distilled_rules"]
    proba = model.predict_proba(sample.features, rng)
    assert (proba.argmax(axis=1) == predictions).all()
    again = pickle.loads(pickle.dumps(model))
    assert (again.rules.predict(sample.features) == predictions).all()


def test_the_guarantee_is_kept_on_public_people_only(make_people):
    sample = make_people(300)
    models = {
        people: Distilled(teacher=Private(), people=people).fit(sample, np.random.default_rng(3))
        for people in ("auto", "public", "training")
    }
    assert models["auto"].guarantee == Guarantee(0.5, 1e-5, "add-remove")
    assert models["public"].guarantee == models["auto"].guarantee
    assert models["training"].guarantee is None
    assert models["public"].notes["distilled_people"] == 60
    assert models["training"].notes["distilled_people"] == 300
    teachers = {"private_epsilon": 0.5, "private_delta": 1e-5, "private_epsilon_paper": 0.4}
    assert models["public"].notes.items() >= (teachers | {"private_sigma": 9.0}).items()
    # What is said of privacy is the teacher's, and this tree has none.
    assert models["training"].notes["private_sigma"] == 9.0
    assert not teachers.keys() & models["training"].notes.keys()
    assert models["training"].notes["fidelity"] == 1.0


def test_nothing_of_private_people_reaches_a_tree_on_public_ones(make_people):
    """Changing everyone who is not public changes nothing: the law that keeps the guarantee."""
    sample = make_people(300)
    public = np.sort(np.random.default_rng(3).choice(300, 60, replace=False))
    features = sample.features.copy()
    private = np.setdiff1d(np.arange(300), public)
    features.loc[private, ["skill", "income"]] = -7.0
    features.loc[private, "job"] = "job 0"
    learner = Distilled(teacher=Private(), artificial=500)
    one, other = (
        learner.fit(people, np.random.default_rng(3))
        for people in (sample, sample.having(features=features))
    )
    assert one.rules.texts == other.rules.texts
    assert one.notes | {"fidelity": 0} == other.notes | {"fidelity": 0}
    rng = np.random.default_rng(0)
    seen = [m.predict_proba(sample.features, rng) for m in (one, other)]
    np.testing.assert_array_equal(*seen)
    # The baseline too, which imitates another model on the same people.
    assert one.baseline.rules.texts == other.baseline.rules.texts != one.rules.texts


def test_made_up_people_are_mixed_of_those_there_are(make_people, monkeypatch):
    sample = make_people(200)
    seen = []

    def predict(self, features, rng, sensitive=None):
        seen.append(features)
        return (features["income"].to_numpy() > self.at).astype(np.int8)

    monkeypatch.setattr(Threshold, "predict", predict)
    model = Distilled(teacher=Private(), artificial=1000).fit(sample, np.random.default_rng(3))
    assert model.notes["distilled_people"] == 1060
    assert model.guarantee is not None
    people = seen[0]
    assert (people.dtypes == sample.features.dtypes).all()
    first = people.iloc[:60]
    for name in people:
        assert set(people[name]) == set(first[name])
    # They are new people, though, not copies.
    assert len(people.drop_duplicates()) > 500


def test_the_baseline_imitates_the_teachers(make_people):
    sample = make_people(300)
    model = Distilled(teacher=Private(), depth=2).fit(sample, np.random.default_rng(3))
    rng = np.random.default_rng(0)
    income = sample.features["income"].to_numpy()
    assert np.mean(model.predict(sample.features, rng) == (income > 700)) > 0.97
    assert np.mean(model.baseline.predict(sample.features, rng) == (income > 0)) > 0.97
    assert Distilled(teacher=component("learner", "plain")).fit(sample, rng).baseline is None
    assert not Distilled(teacher=component("learner", "plain")).gives_baseline


def test_a_teacher_that_knows_no_public_people_is_refused(make_people, rng):
    with pytest.raises(InputError, match=r"people: is 'public', but the model of 'plain' does not"):
        Distilled(teacher=component("learner", "plain"), people="public").fit(make_people(), rng)


def test_a_teacher_that_needs_groups_gets_them_and_the_tree_does_not(make_people, rng):
    sample = make_people(300)
    learner = Distilled(
        teacher=component("learner", "threshold-optimizer", metric="statistical-parity"),
        artificial=50,
    )
    assert learner.asked().metric == "statistical-parity"
    assert not learner.predicts_with_sensitive
    assert learner.fit(sample, rng).predict(sample.features, rng).shape == (300,)
    fair = Distilled(
        teacher=component("learner", "exponentiated-gradient", metric="equal-opportunity")
    )
    assert fair.asked().metric == "equal-opportunity"


def test_one_label_gives_one_rule(make_people, rng):
    sample = make_people(100)
    alike = sample.having(labels=np.ones(100, np.int8))
    model = Distilled(teacher=component("learner", "plain")).fit(alike, rng)
    assert (len(model.rules), model.notes["distilled_rules"], model.notes["distilled_leaves"]) == (
        1,
        1,
        1,
    )
    assert (model.predict_proba(sample.features, rng) == [0, 1]).all()


def test_a_matrix_gives_the_teacher_inline(tmp_path, make_people):
    sample = make_people(300)
    frame = sample.features.assign(paid=sample.labels, group=sample.sensitive.astype(str))
    table = fpbench.table(frame, label="paid", positive=1, sensitive="group")
    matrix = {
        "split": {"train": 0.5, "test": 0.5, "attack": 0.0},
        "dataset": [{"use": "table", "table": "people"}],
        "learner": [{"use": "distilled", "teacher": {"use": "plain", "base": "random-forest"}}],
        "auditor": [{"use": "pafer", "mode": "reference", "epsilon": 1.0,
                     "mechanism": {"use": "laplace"}, "policy": {"use": "uniform/uniform"}}],
    }  # fmt: skip
    (row,) = fpbench.run(matrix, tables={"people": table}, out=tmp_path / "run").rows()
    assert row["status"] == "done", row["reason"]
    assert row["distilled_on"] == "training"
    assert 0.8 < row["fidelity"] <= 1
    del matrix["learner"][0]["teacher"]
    with pytest.raises(
        fpbench.errors.MatrixError, match=r"takes a learner: name it with teacher = "
    ):
        fpbench.run(matrix, tables={"people": table}, out=tmp_path / "two")


@pytest.mark.slow
def test_a_tree_that_saw_training_people_is_shown_without_its_teachers_guarantee(tmp_path):
    people = {"teacher": {"use": "pate", "teachers": 10, "public": 60, "sigma": 20.0}}
    found = fpbench.run(
        {
            "dataset": [{"use": "census-synthetic", "rows": 500}],
            "learner": [
                {
                    "use": "distilled",
                    "teacher": {"use": "private-tree", "max_depth": 2},
                    "label": "t",
                },
                {"use": "distilled", **people, "people": "training", "label": "training"},
                {"use": "distilled", **people, "label": "public"},
            ],
            "disclosure": [{"use": "hidden"}],
            "adversary": [{"use": "majority"}],
            "corrector": [{"use": "none"}],
        },
        out=tmp_path / "run",
    )
    rows = {row["learner"]: row for row in found.rows()}
    assert [row["reason"] for row in rows.values()] == [None] * 3
    for name in ("t", "training"):
        said = [n for n in rows[name] if "epsilon" in n and rows[name][n] is not None]
        assert said == [], name
        assert rows[name]["distilled_on"] == "training"
    assert rows["public"]["model_epsilon"] == rows["public"]["pate_epsilon"] > 0
    (board,) = found.leaderboards(view="defences")
    shown = {line.labels["learner"]: line for line in board.lines}
    assert shown["t"].labels["guarantee"] == shown["training"].labels["guarantee"] == "none"
    assert "epsilon" not in shown["t"].measures
    assert shown["public"].labels["guarantee"].startswith("add-remove, delta ")
