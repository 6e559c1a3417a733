"""Individual fairness of anybody's model: what the report says, and what is refused."""

import doctest
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_trees import any_rules, crowd
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from fpbench import InputError
from fpbench.auditing import individual_fairness
from fpbench.data import Domain
from fpbench.models import RuleList, Rules

pytestmark = pytest.mark.numeric

DOMAIN = {"a": [0, 4], "b": [-1, 6]}
TAUS = [0.0, 1 / 7, 0.25, 0.5, 0.9]


class Ruled:
    """A model that is its rules."""

    def __init__(self, rules):
        self.rules = rules

    def predict(self, features, rng=None, sensitive=None):
        return self.rules.predict(features)


@pytest.mark.slow
@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.sampled_from([(), ("a",), ("job", "b")]))
def test_shares_are_counted_from_the_definition(seed, free):
    rng = np.random.default_rng(seed)
    frame = crowd(rng, 15)
    model = Ruled(any_rules(rng, frame))
    report = individual_fairness(model, frame, tau=TAUS, domain=DOMAIN, free=free)
    labels = model.predict(frame)
    for i, tau in enumerate(TAUS):
        fine, met = [], []
        for x, label in zip(frame.itertuples(), labels, strict=True):
            alike = [
                label == other
                for y, other in zip(frame.itertuples(), labels, strict=True)
                if y.Index != x.Index and similar(x, y, tau, free)
            ]
            fine.append(all(alike))
            met.append(bool(alike))
        assert report.pair_consistency[i] == np.mean(fine)
        assert report.isolated[i] == pytest.approx(1 - np.mean(met))
        others = np.array(fine)[np.array(met)]
        expected = others.mean() if len(others) else np.nan
        assert report.pair_consistency_of_others[i] == pytest.approx(expected, nan_ok=True)
        assert report.certified_consistency[i] <= report.pair_consistency[i]


def similar(x, y, tau, free):
    """Of two people."""
    for name in {"a", "b", "job", "sex"} - {*free}:
        one, other = getattr(x, name), getattr(y, name)
        if name in DOMAIN:
            low, high = DOMAIN[name]
            if abs((one - low) / (high - low) - (other - low) / (high - low)) > tau:
                return False
        elif not (one == other or (pd.isna(one) and pd.isna(other))):
            return False
    return True


@pytest.mark.slow
@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_several_tau_are_each_by_itself_and_never_grow(seed):
    rng = np.random.default_rng(seed)
    frame = crowd(rng, 25)
    model = Ruled(any_rules(rng, frame))
    report = individual_fairness(model, frame, tau=TAUS, domain=DOMAIN)
    for i, tau in enumerate(TAUS):
        one = individual_fairness(model, frame, tau=tau, domain=DOMAIN)
        for name in ("pair_consistency", "certified_consistency", "isolated"):
            assert getattr(one, name) == [getattr(report, name)[i]]
    for name in ("pair_consistency", "certified_consistency", "isolated"):
        assert (np.diff(getattr(report, name)) <= 0).all()


FRAME = pd.DataFrame({"age": [20.0, 21.0, 40.0, 60.0], "job": pd.Categorical(["u", "u", "u", "u"])})
HIRED = np.array([0, 1, 1, 1])


def test_a_report_reads_well():
    report = individual_fairness(HIRED, FRAME, tau=[0.01, 0.1])
    assert str(report) == (
        "tau 0.01: pairs 1.0000, certified unknown, isolated 1.0000\n"
        "tau 0.1: pairs 0.5000, certified unknown, isolated 0.5000"
    )
    assert report.note == "the model has no rules"
    assert report.certified_consistency is None
    assert report.ranged == ("age",)
    table = report.table()
    assert table.columns.tolist() == ["tau", "pair_consistency", "pair_consistency_of_others",
                                      "certified_consistency", "isolated"]  # fmt: skip
    assert table["certified_consistency"].isna().all()
    assert table["pair_consistency_of_others"].tolist()[1] == 0
    declared = individual_fairness(HIRED, FRAME, tau=0.012, domain=Domain.of({"age": [0, 100]}))
    assert (declared.ranged, declared.pair_consistency.tolist()) == ((), [0.5])
    assert individual_fairness(HIRED, FRAME, tau=0.012).pair_consistency.tolist() == [1]


def test_trees_of_scikit_learn_are_certified():
    matrix = np.array([[0.0, 0], [4, 0], [6, 0], [10, 0]])
    tree = DecisionTreeClassifier(random_state=0).fit(matrix, [0, 0, 1, 1])
    report = individual_fairness(tree, matrix, tau=[0.05, 0.15, 0.45, 0.6], free=["x1"])
    assert report.certified_consistency.tolist() == [1, 0.5, 0.5, 0]
    assert report.pair_consistency.tolist() == [1, 1, 0.5, 0]
    assert str(report).startswith("tau 0.05: pairs 1.0000, certified 1.0000, isolated 1.0000")
    frame = pd.DataFrame(matrix, columns=["age", "zero"])
    named = DecisionTreeClassifier(random_state=0).fit(frame, [0, 0, 1, 1])
    again = individual_fairness(named, frame, tau=0.15, free=["zero"])
    assert again.certified_consistency.tolist() == [0.5]


def test_rules_of_a_model_come_before_its_tree():
    """A tree may know columns only, and the model features."""
    model = Ruled(any_rules(np.random.default_rng(0), crowd(np.random.default_rng(1), 20)))
    model.tree_, model.classes_ = None, np.array([0, 1])
    frame = crowd(np.random.default_rng(2), 20)
    assert individual_fairness(model, frame, tau=0.1, domain=DOMAIN).region is not None


def test_models_without_certificates_have_a_note():
    matrix = FRAME[["age"]].to_numpy()
    logistic = LogisticRegression().fit(matrix, HIRED)
    assert individual_fairness(logistic, matrix, tau=0.1).note == "the model has no rules"
    listed = individual_fairness(RuleList([([("age", "<", 21)], 0)], 1), FRAME, tau=0.1)
    assert listed.note == "the rules of the model do not come from a tree"
    assert listed.pair_consistency.tolist() == [0.5]
    tree = DecisionTreeClassifier(random_state=0).fit(matrix, HIRED)
    assert individual_fairness(tree, matrix, tau=0.1, predictions=HIRED).note is None


def test_a_model_that_draws_is_asked_once():
    class Coin:
        def predict(self, features, rng):
            return rng.integers(0, 2, len(features))

    report = individual_fairness(Coin(), FRAME, tau=0.9, rng=3)
    expected = np.random.default_rng(3).integers(0, 2, 4)
    assert (report.predictions == expected).all()


def test_models_that_use_the_group_are_inconsistent():
    people = pd.concat([FRAME, FRAME], ignore_index=True)
    group = np.repeat([0, 1], 4)
    assert individual_fairness(group, people, tau=0).pair_consistency.tolist() == [0]


@pytest.mark.parametrize(("more", "message"), [
    ({"tau": 1.0}, "tau: must be at least 0 and below 1, .* not 1.0"),
    ({"tau": [0.1, float("nan")]}, "not nan"),
    ({"tau": []}, "tau: is empty"),
    ({"free": "age"}, "free: must be a list of features, not 'age'"),
    ({"free": None}, "free: must be a list of features, not None"),
    ({"domain": {"agee": [0, 9]}}, "domain: no column 'agee'; did you mean 'age'"),
    ({"domain": ["age"]}, "domain: must be lists by feature"),
    ({"free": ["jobb"]}, "no feature 'jobb'; did you mean 'job'"),
    ({"domain": {"age": [3, 1]}}, "domain: 'age': bounds must be two finite numbers"),
    ({"X": FRAME.assign(age=1.0)}, "'age' is 1 for everybody"),
    ({"X": sparse.eye_array(4)}, "a data frame, or a matrix of numbers"),
    ({"X": FRAME["age"]}, "a data frame, or a matrix of numbers"),
    ({"X": FRAME[:3]}, "X: has 3 rows, and there are 4 predictions"),
    ({"predictions": [0, 1]}, "predictions: has 2 values, and X 4 rows"),
    ({"predictions": [0, 1, 2, 1]}, "predictions: must be 0 or 1, not 2 at 2"),
    ({"model": [[0, 1]]}, "must have one dimension, one value a person, not"),
    ({"model": []}, "is empty"),
    ({"model": ["a", "b", "a", "b"]}, "must be 0 or 1, not .*a.* at 0"),
    ({"model": [0.0, 0.5, 1, 1]}, "must be 0 or 1, not 0.5 at 1"),
])  # fmt: skip
def test_what_is_refused(more, message):
    given = {"model": HIRED, "X": FRAME, "tau": 0.1, **more}
    with pytest.raises(InputError, match=message):
        individual_fairness(**given)


def test_rules_must_predict_what_the_model_predicts():
    model = Ruled(Rules(np.array([0]), ("everyone",), lambda x: np.zeros(len(x), int)))
    assert individual_fairness(model, FRAME, tau=0.1).note is not None
    with pytest.raises(InputError, match="do not predict what it predicts"):
        individual_fairness(model, FRAME, tau=0.1, predictions=HIRED)


def test_the_example_is_true():
    assert doctest.testmod(
        sys.modules["fpbench.builtin.private_tree.individual_fairness.measure"]
    ) == (0, 4)
