"""The grid search finds what scikit-learn's finds, and the tree of the paper."""

import pickle

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier

import fpbench
from fpbench.builtin.learners.decision_tree import DecisionTree
from fpbench.builtin.learners.plain import Plain
from fpbench.claims import RateConstraint
from fpbench.errors import DataError
from fpbench.models import encode


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("minleaf", [None, 0.05])
def test_the_search_agrees_with_scikit_learn(seed, minleaf, make_people):
    sample = make_people(400, 3, seed)
    learner = DecisionTree(random_state=seed, minleaf=minleaf, leaves=(3, 5, 8, 20), depths=(2, 6))
    model = learner.fit(sample, np.random.default_rng(0))
    tree = DecisionTreeClassifier(
        random_state=seed, min_samples_leaf=1 if minleaf is None else minleaf
    )
    grid = {
        "max_depth": [2, 6],
        "max_leaf_nodes": [3, 5, 8, 20],
        "max_features": ["sqrt", None, "log2"],
    }
    matrix = encode(sample.features)
    search = GridSearchCV(tree, grid, scoring="balanced_accuracy", cv=3).fit(matrix, sample.labels)
    assert model.notes["cv_balanced_accuracy"] == pytest.approx(search.best_score_, abs=1e-12)
    # Every point of the grid, not just the best.
    for at, given in enumerate(search.cv_results_["params"]):
        one = DecisionTree(
            random_state=seed, minleaf=minleaf, depths=given["max_depth"],
            leaves=given["max_leaf_nodes"], max_features=given["max_features"] or "all",
        )  # fmt: skip
        found = one.fit(sample, np.random.default_rng(0)).notes["cv_balanced_accuracy"]
        assert found == pytest.approx(search.cv_results_["mean_test_score"][at], abs=1e-12)
    chosen = model.estimator.get_params()
    assert {name: chosen[name] for name in grid} == search.best_params_
    assert (model.predict(sample.features, None) == search.predict(matrix)).all()


def test_a_search_over_many_leaves_scores_each_as_if_alone(make_people):
    sample, rng = make_people(300), np.random.default_rng(0)
    together = DecisionTree(random_state=1, depths=5, max_features="sqrt").fit(sample, rng)
    alone = [
        DecisionTree(random_state=1, depths=5, max_features="sqrt", leaves=n).fit(sample, rng)
        for n in range(3, 13)
    ]
    best = max(range(10), key=lambda i: (alone[i].notes["cv_balanced_accuracy"], -i))
    assert together.notes == alone[best].notes


def test_it_says_what_it_chose_and_travels(make_people, rng):
    sample = make_people(300)
    model = DecisionTree().fit(sample, rng)
    assert set(model.notes) == {
        "depth", "leaves", "max_features", "cv_balanced_accuracy", "rules", "rules_unpruned",
    }  # fmt: skip
    assert model.rules.n_favourable == model.notes["rules"]
    predictions = model.predict(sample.features, rng)
    assert (model.rules.predict(sample.features) == predictions).all()
    assert model.predict_proba(sample.features, rng).shape == (300, 2)
    again = pickle.loads(pickle.dumps(model))
    assert (again.rules.predict(sample.features) == predictions).all()


@pytest.mark.slow
def test_its_seed_is_drawn_unless_given(make_people):
    sample = make_people(300)

    def states(**given):
        return [
            DecisionTree(**given).fit(sample, np.random.default_rng(s)).estimator.random_state
            for s in (1, 1, 2)
        ]

    assert states(random_state=5) == [5, 5, 5]
    first, again, other = states()
    assert first == again != other


def test_too_few_people_of_a_label(make_people, rng):
    sample = make_people(50)
    labels = np.zeros(50, dtype=np.int8)
    labels[:2] = 1
    with pytest.raises(DataError, match="2 of the training people have label 1"):
        DecisionTree().fit(sample.having(labels=labels), rng)


def test_learners_with_rules(make_people, rng):
    assert DecisionTree().gives_rules
    assert Plain().gives_rules
    assert Plain(base="sklearn.tree:ExtraTreeClassifier").gives_rules
    assert not Plain(base="logistic-regression").gives_rules
    assert not Plain(base="sklearn.ensemble:ExtraTreesClassifier").gives_rules
    sample = make_people(80)
    model = Plain(base_parameters={"max_depth": 3}).fit(sample, rng)
    assert (model.rules.predict(sample.features) == model.predict(sample.features, rng)).all()
    assert "x0" not in " ".join(model.rules.texts)
    assert Plain(base="logistic-regression").fit(sample, rng).rules is None


@pytest.mark.slow
def test_the_tree_of_the_paper(adult_home, monkeypatch):
    """Table 4: .65, .30 and .23 of the test file, for ethnicity, sex and both."""
    white = {"column": "race", "one_of": ["White"]}
    monkeypatch.setattr(fpbench.plugin.DataHome, "default", lambda: adult_home)
    sample = fpbench.dataset("adult", sensitive=[white, "sex"], drop="fnlwgt").sample()
    train, test = sample.take(np.arange(30_162)), sample.take(np.arange(30_162, 45_222))
    model = DecisionTree(random_state=0).fit(train, np.random.default_rng(0))
    assert (model.notes["depth"], model.notes["leaves"], model.notes["max_features"]) == (
        4, 11, "all",
    )  # fmt: skip
    assert (model.notes["rules"], model.notes["rules_unpruned"]) == (3, 5)
    predictions = model.predict(test.features, None)
    ratio, found = RateConstraint(form="ratio"), []
    for groups in (test.sensitive // 2, test.sensitive % 2, test.sensitive):
        k = int(groups.max()) + 1
        found.append(float(1 - ratio.unfairness(groups, predictions, None, k)))
    assert [round(value, 3) for value in found] == [0.646, 0.302, 0.228]


@pytest.mark.parametrize("bins", [1, 3, 7])
def test_numbers_are_split_at_few_cuts(bins, make_people):
    """The tree of cut numbers, told in the numbers themselves."""
    sample = make_people(400, 2, 5)
    learner = DecisionTree(bins=bins, depths=12, leaves=200, max_features="all", random_state=1)
    matrix = encode(sample.features)
    cuts = learner._find_cuts(sample, matrix, np.random.default_rng(0))
    assert cuts and all(1 <= len(own) <= bins for own in cuts.values())
    model = learner.fit(sample, np.random.default_rng(0))
    coded = matrix.copy()
    for column, own in cuts.items():
        coded[:, column] = (matrix[:, [column]] > own).sum(axis=1)
    tree = DecisionTreeClassifier(max_depth=12, max_leaf_nodes=200, random_state=1)
    guesses = tree.fit(coded, sample.labels).predict(coded)
    np.testing.assert_array_equal(model.predict(sample.features, None), guesses)
    split = model.estimator.tree_
    for column, own in cuts.items():
        assert np.isin(split.threshold[split.feature == column], own).all()
    assert learner.model_copy(update={"bins": None})._find_cuts(sample, matrix, None) == {}
