import json
import pickle

import numpy as np
import pytest
from pydantic import ValidationError
from threadpoolctl import threadpool_info, threadpool_limits

import fpbench
from fpbench import InputError, View
from fpbench.builtin.adversaries import _attack_model
from fpbench.builtin.adversaries._attack_model import SPACES, Range
from fpbench.builtin.adversaries.prior import Majority, Prior
from fpbench.builtin.ferry.adversaries import A1, A2, A1Ferry, A2Ferry, A2Proba
from fpbench.errors import DataError, HiddenError
from fpbench.models import FAMILIES

pytestmark = pytest.mark.numeric

LEARNED = [A1, A2, A2Proba, A1Ferry, A2Ferry]
FERRY = [A1Ferry, A2Ferry]
FLOORS = [Majority, Prior]
FOREST = {"family": "random-forest", "parameters": {"n_estimators": 8}}
TREE = {"family": "decision-tree"}
HGB = "hist-gradient-boosting"
EXTRA = "sklearn.ensemble:ExtraTreesClassifier"
BAYES = "sklearn.naive_bayes:GaussianNB"
SMALL = {
    "random-forest": {"n_estimators": 8},
    HGB: {"max_iter": 8, "min_samples_leaf": 5},
    EXTRA: {"n_estimators": 8, "max_depth": 5},
}
FAMILY = [*FAMILIES, EXTRA, BAYES]


@pytest.fixture
def make_view(make_people):
    """Makes what A2Proba is handed; predictions that give the group away, if asked for."""

    def make(n=120, m=200, k=2, predictions=True):
        target, attack = make_people(n, k, seed=1), make_people(m, k, seed=2)
        if predictions:
            target, attack = (
                part.having(
                    predictions=(part.sensitive > 0).astype(np.int8),
                    scores=part.sensitive / (2 * k) + np.linspace(0, 0.5, len(part)),
                )
                for part in (target, attack)
            )
        return View(target.only(A2Proba.sees), attack)

    return make


def same(one, other):
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in (
            "values",
            "confidence",
            "held_out",
            "held_out_values",
            "held_out_confidence",
        )
    )


def guess_of(adversary, view, seed=0):
    return adversary.guess(view, np.random.default_rng(seed))


def seen_without_model(view):
    return view.attack.only(frozenset({"features", "labels", "sensitive"}))


@pytest.mark.parametrize("kind", [*LEARNED, *FLOORS])
@pytest.mark.parametrize("k", [2, 5])
def test_shapes_and_bounds(kind, k, make_view, rng):
    adversary = kind(**FOREST) if kind in LEARNED else kind()
    guess = adversary.guess(make_view(k=k), rng)
    assert guess.values.shape == guess.confidence.shape == (120,)
    assert guess.held_out.shape == guess.held_out_values.shape == (60,)
    assert guess.held_out_confidence.shape == (60,)
    assert guess.values.dtype.kind == guess.held_out_values.dtype.kind == "i"
    assert guess.confidence.dtype == guess.held_out_confidence.dtype == np.float64
    assert np.isin(guess.values, range(k)).all()
    assert (np.diff(guess.held_out) > 0).all()
    assert 0 <= guess.held_out[0] <= guess.held_out[-1] < 200
    for confidence in (guess.confidence, guess.held_out_confidence):
        least = 0 if kind is Prior else 1 / k
        assert ((confidence >= least) & (confidence <= 1)).all()
    assert guess.notes == {}


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["one-hot", "ordinal"])
@pytest.mark.parametrize("class_weight", ["balanced", "none"])
@pytest.mark.parametrize("family", FAMILY)
def test_it_guesses_well_where_it_did_not_train(
    family, class_weight, encoding, make_people, make_view
):
    adversary = A1(
        family=family,
        class_weight=class_weight,
        encoding=encoding,
        parameters=SMALL.get(family, {}),
    )
    view = make_view(m=400)
    guess = guess_of(adversary, view)
    assert np.mean(guess.held_out_values == view.attack.sensitive[guess.held_out]) > 0.7
    assert np.mean(guess.values == make_people(120, 2, seed=1).sensitive) > 0.7


@pytest.mark.parametrize("family", FAMILY)
def test_beliefs_are_probabilities_of_all_groups(family, make_view):
    guess = guess_of(A2(family=family, parameters=SMALL.get(family, {})), make_view(k=4))
    for beliefs, values, confidence in (
        (guess.beliefs, guess.values, guess.confidence),
        (guess.held_out_beliefs, guess.held_out_values, guess.held_out_confidence),
    ):
        assert beliefs.shape == (len(values), 4)
        assert (beliefs >= 0).all()
        np.testing.assert_allclose(beliefs.sum(axis=1), 1, atol=1e-12)
        np.testing.assert_array_equal(beliefs.argmax(axis=1), values)
        np.testing.assert_array_equal(beliefs.max(axis=1), confidence)
    assert guess.abstains is None


def test_a_classifier_of_single_precision_gives_probabilities(rng):
    class Single:
        classes_ = np.arange(3)

        def predict_proba(self, matrix):
            return rng.dirichlet(np.ones(3), len(matrix)).astype(np.float32)

    beliefs = _attack_model.AttackModel(np.arange(3), Single(), 50).guess(np.zeros((999, 1)), 3)
    assert beliefs.dtype == np.float64
    np.testing.assert_allclose(beliefs.sum(axis=1), 1, atol=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("kind", LEARNED)
def test_it_abstains_about_people_of_whom_it_is_unsure(kind, make_people):
    target = make_people(300, 3, seed=1).having(
        predictions=np.zeros(300, np.int8), scores=np.zeros(300)
    )
    attack = make_people(300, 3, seed=2).having(
        predictions=np.zeros(300, np.int8), scores=np.zeros(300)
    )
    view = View(target.only(A2Proba.sees), attack)
    guess = guess_of(kind(abstain_below=0.9), view)
    np.testing.assert_array_equal(guess.abstains, guess.beliefs.max(axis=1) < 0.9)
    assert 0 < guess.abstains.sum() < 300
    assert guess_of(kind(), view).abstains is None  # by default of nobody
    assert same(guess, guess_of(kind(), view))  # and it still says what it would name


def test_boosted_trees_split_sets_of_categories():
    """The even of forty categories are of group 1: two leaves suffice for a set, not for codes."""
    import pandas as pd

    codes = np.arange(2000) % 40
    features = pd.DataFrame(
        {"word": pd.Categorical.from_codes(codes, [f"w{i}" for i in range(40)])}
    )
    sensitive = (codes % 2).astype(np.int8)
    people = fpbench.Sample(
        ("a", "b"), features=features, labels=np.zeros(2000, np.int8), sensitive=sensitive
    )
    view = View(people.only(A1.sees), people)
    few = {"max_iter": 1, "max_leaf_nodes": 2, "l2_regularization": 0, "max_features": 1.0}
    right = {
        encoding: np.mean(guess_of(A1(encoding=encoding, parameters=few), view).values == sensitive)
        for encoding in ("auto", "ordinal", "one-hot")
    }
    assert right["auto"] == 1
    assert max(right["ordinal"], right["one-hot"]) < 0.7


def test_a_column_of_many_categories_is_one_of_codes(make_people):
    """scikit-learn splits sets of 255 categories at most."""
    import pandas as pd

    rng = np.random.default_rng(0)
    codes = rng.integers(0, 300, 2000)
    words = pd.Categorical.from_codes(codes, [f"w{i}" for i in range(300)])
    few = pd.Categorical.from_codes(codes % 2, ["even", "odd"])
    features = pd.DataFrame({"words": words, "few": few, "number": rng.normal(size=2000)})
    people = fpbench.Sample(
        ("a", "b"), features=features, labels=np.zeros(2000, np.int8),
        sensitive=(codes > 150).astype(np.int8),
    )  # fmt: skip
    adversary = A1()
    assert adversary._find_recipe(people).parameters["categorical_features"] == [2]
    guess = guess_of(adversary, View(people.only(A1.sees), people))
    assert np.mean(guess.values == people.sensitive) > 0.99


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILY)
def test_threads_do_not_matter(family, make_view):
    view = make_view(m=600, k=3)
    small = {**SMALL, HGB: {"max_iter": 2}}  # two threads that wait for each other take long
    adversary = A2(family=family, parameters=small.get(family, {}))
    one = guess_of(adversary, view)
    with threadpool_limits(2):
        assert {info["num_threads"] for info in threadpool_info()} == {2}
        assert same(one, guess_of(adversary, view))


def test_predictions_help_those_who_see_them(make_view):
    with_them, without = make_view(), make_view(predictions=False)
    a1 = A1(**FOREST)
    assert same(guess_of(a1, with_them), guess_of(a1, without))
    guess = guess_of(A2(**FOREST), with_them)
    assert np.array_equal(guess.values, with_them.target.predictions)


def test_scores_help_those_who_see_them(make_people):
    """Predictions say nothing here, and scores all."""
    target, attack = (
        part.having(
            predictions=np.zeros(len(part), dtype=np.int8), scores=0.1 + 0.2 * part.sensitive
        )
        for part in (make_people(120, 3, seed=1), make_people(200, 3, seed=2))
    )
    view = View(target.only(A2Proba.sees), attack)
    truth = target.sensitive
    assert np.array_equal(guess_of(A2Proba(**TREE), view).values, truth)
    assert not np.array_equal(guess_of(A2(**TREE), view).values, truth)


@pytest.mark.parametrize(("kind", "lacks"), [(A2, "predictions"), (A2Proba, "scores")])
def test_hidden_columns_raise_an_error(kind, lacks, make_view, rng):
    view = make_view()
    hidden = View(view.target.only(kind.sees - {lacks}), view.attack)
    with pytest.raises(HiddenError, match=lacks):
        kind(**FOREST).guess(hidden, rng)


@pytest.mark.slow
@pytest.mark.parametrize("trials", [0, 3])
@pytest.mark.parametrize("family", FAMILY)
def test_a_group_that_is_not_in_the_attack_set(family, trials, make_view, rng):
    view = make_view(k=3)
    here = view.attack.take(np.flatnonzero(view.attack.sensitive != 1))
    space = {} if family in FAMILIES else {"max_features": [1]} if family == EXTRA else None
    if space is None:
        space = {"var_smoothing": {"low": 1e-9, "high": 0.1, "log": True}}
    small = SMALL.get(family, {})
    adversary = A1(family=family, trials=trials, space=space, parameters=small)
    guess = adversary.guess(View(view.target, here), rng)
    assert set(guess.values) == {0, 2}
    assert set(guess.held_out_values) == {0, 2}
    people = len(here) - len(guess.held_out)
    for beliefs in (guess.beliefs, guess.held_out_beliefs):
        np.testing.assert_allclose(beliefs[:, 1], 1 / (people + 3))
        np.testing.assert_allclose(beliefs.sum(axis=1), 1)


@pytest.mark.parametrize("adversary", [A1(family=f) for f in FAMILIES] + [Majority(), Prior()])
def test_one_group_alone(adversary, make_view, rng):
    view = make_view()
    here = view.attack.take(np.flatnonzero(view.attack.sensitive == 1))
    guess = adversary.guess(View(view.target, here), rng)
    people = len(here) - len(guess.held_out)  # who show that the other group is rare, not more
    np.testing.assert_allclose(guess.beliefs, np.tile([1, people + 1], (120, 1)) / (people + 2))
    if not isinstance(adversary, Prior):
        assert (guess.values == 1).all()


@pytest.mark.parametrize("kind", [A1, Majority, Prior])
@pytest.mark.parametrize(
    ("held_out", "people", "kept"), [(0.3, 2, 1), (0.001, 50, 1), (0.999, 50, 49), (0.5, 50, 25)]
)
def test_how_many_are_held_out(kind, held_out, people, kept, make_view, rng):
    view = make_view(m=people)
    assert len(kind(held_out=held_out).guess(view, rng).held_out) == kept


@pytest.mark.parametrize("kind", [A1, Majority, Prior])
def test_one_person_is_too_few(kind, make_view, rng):
    with pytest.raises(DataError, match="has 1 people"):
        kind().guess(make_view(m=1), rng)


def test_one_person_is_too_few_to_search_with(make_view, rng):
    view = make_view(m=2)
    A1(**TREE).guess(view, rng)
    with pytest.raises(DataError, match="training part of the attack set has 1 people"):
        A1(**TREE, trials=2).guess(view, rng)


class TestParameters:
    def test_they_reach_the_classifier(self):
        given = {"n_estimators": 3, "max_depth": "none", "min_samples_leaf": 5}
        got = A1Ferry(parameters=given, class_weight="none").recipe.defaults()
        assert (got["n_estimators"], got["min_samples_leaf"]) == (3, 5)
        assert got["max_depth"] is None
        assert got["class_weight"] is None
        assert got["n_jobs"] == 1

    @pytest.mark.parametrize("kind", [A1, A2, A2Proba])
    def test_the_default_is_strong_and_not_skewed(self, kind):
        adversary = kind()
        defaults = adversary.recipe.defaults()
        assert (adversary.family, adversary.encoding) == (HGB, "auto")
        assert defaults["class_weight"] is None
        assert (defaults["max_leaf_nodes"], defaults["l2_regularization"]) == (7, 20)
        assert (defaults["learning_rate"], defaults["max_features"]) == (0.1, 0.5)
        assert (adversary.held_out, adversary.trials, adversary.abstain_below) == (0.3, 0, 0)
        assert kind(parameters={"max_leaf_nodes": 4}).recipe.defaults()["l2_regularization"] == 20
        # They are of boosted trees only.
        assert kind(family="decision-tree").recipe.parameters == {}

    @pytest.mark.parametrize("kind", FERRY)
    def test_the_default_is_the_forest_of_the_authors(self, kind):
        defaults = kind().recipe.defaults()
        assert (kind().family, kind().encoding) == ("random-forest", "one-hot")
        assert defaults["class_weight"] == "balanced"
        assert (defaults["n_estimators"], defaults["max_depth"]) == (100, 6)
        assert defaults["min_samples_split"] == 10
        assert kind().held_out == 0.3
        assert kind().trials == 0

    @pytest.mark.parametrize("wrong", [
        {"parameters": {"n_estimators": 0}},
        {"parameters": {"trees": 10}},
        {"parameters": {"random_state": 1}},
        {"parameters": {"class_weight": "balanced"}},
        {"parameters": {"max_depth": {1, 2}}},
        {"family": "forest"},
        {"family": "os:system"},
        {"family": "sklearn.ensemble:RandomForestRegressor"},
        {"family": "sklearn.linear_model:Perceptron"},
        {"family": "sklearn.neighbors:KNeighborsClassifier"},
        {"family": EXTRA, "trials": 1},
        {"family": EXTRA, "space": {"depth": [1, 2]}},
        {"space": {"max_depth": []}},
        {"space": {"max_depth": {"low": 3, "high": 3}}},
        {"space": {"max_depth": {"low": 0, "high": 3, "log": True}}},
        {"space": {"max_depth": {"low": 1, "high": 3, "step": 2}}},
        {"space": {"ccp_alpha": {"low": 0.0, "high": float("inf")}}},
        {"space": {"max_depth": [3, "deep"]}},
        {"space": {"max_depth": {"low": 0, "high": 3}}},
        {"space": {"n_jobs": [1, 2]}},
        {"space": {"class_weight": ["balanced", "none"]}},
        {"held_out": 0.0},
        {"held_out": 1.0},
    ])  # fmt: skip
    def test_wrong_ones_are_refused(self, wrong):
        with pytest.raises(ValidationError):
            A1Ferry(**wrong)
        with pytest.raises(InputError, match="adversary 'a1-ferry': "):
            fpbench.component("adversary", "a1-ferry", **wrong)

    def test_classifiers_without_class_weights_are_refused(self):
        neighbors = "sklearn.neighbors:KNeighborsClassifier"
        with pytest.raises(
            InputError, match='neither .* nor sample_weight; class_weight = "none" '
        ):
            fpbench.component("adversary", "a1-ferry", family=neighbors)
        assert A1(family=neighbors, class_weight="none").recipe.balanced is False


class TestSearch:
    @pytest.mark.parametrize("family", FAMILIES)
    def test_usual_spaces_are_valid(self, family):
        assert A1(family=family, trials=1, space=SPACES[family]).space == SPACES[family]
        for where in SPACES[family].values():
            for choice in where if isinstance(where, list) else [where.low, where.high]:
                assert choice is not None

    @pytest.mark.slow
    @pytest.mark.parametrize("family", [*FAMILIES])
    def test_never_worse_than_no_search(self, family, make_view):
        view = make_view(m=150, k=3)
        small = SMALL.get(family, {})
        guess = guess_of(A2(family=family, trials=6, parameters=small), view)
        notes = guess.notes
        assert notes["attack_trials"] == 6
        assert notes["attack_validation_accuracy"] >= notes["attack_validation_untuned"]
        assert set(json.loads(notes["attack_parameters"])) == set(SPACES[family])

    def test_one_trial_is_no_search(self, make_view):
        view = make_view()
        searched = guess_of(A1(**TREE, trials=1), view)
        assert same(searched, guess_of(A1(**TREE), view))
        notes = searched.notes
        assert notes["attack_validation_accuracy"] == notes["attack_validation_untuned"]
        assert json.loads(notes["attack_parameters"])["max_depth"] == 8

    def test_what_is_no_better_changes_nothing(self, make_view):
        view = make_view()
        space = {"ccp_alpha": {"low": 0.0, "high": 1e-12}}  # all as good as the default
        searched = guess_of(A1(**TREE, trials=6, space=space), view)
        assert json.loads(searched.notes["attack_parameters"]) == {"ccp_alpha": 0.0}
        assert same(searched, guess_of(A1(**TREE), view))

    def test_it_finds_what_helps_and_trains_again_with_it(self, make_view):
        view = make_view(m=400)
        bad, space = {"max_depth": 1, "max_features": 1}, {"max_depth": [1, 5], "max_features": [4]}
        searched = guess_of(A2(**TREE, parameters=bad, trials=8, space=space), view)
        assert json.loads(searched.notes["attack_parameters"]) == {
            "max_depth": 5,
            "max_features": 4,
        }
        best = guess_of(A2(**TREE, parameters={"max_depth": 5, "max_features": 4}), view)
        assert same(searched, best)
        assert best.notes == {}

    def test_the_held_out_people_have_no_part_in_it(self, make_view, rng):
        view = make_view(m=300)
        adversary = A2(**TREE, trials=8)
        guess = guess_of(adversary, view)
        truth = view.attack.sensitive.copy()
        truth[guess.held_out] = 1 - truth[guess.held_out]
        other = guess_of(adversary, View(view.target, view.attack.having(sensitive=truth)))
        assert same(guess, other)
        assert guess.notes == other.notes

    def test_the_sample_it_trains_on_does(self, make_view):
        view = make_view(m=300)
        adversary = A1(**TREE, trials=8)
        truth = 1 - view.attack.sensitive
        other = guess_of(adversary, View(view.target, view.attack.having(sensitive=truth)))
        assert not same(guess_of(adversary, view), other)

    def test_validation_people_are_not_trained_on(self, make_view, monkeypatch):
        sizes = []
        train = _attack_model.train
        monkeypatch.setattr(
            _attack_model, "train", lambda r, m, t, s: sizes.append(len(m)) or train(r, m, t, s)
        )
        guess_of(A1(**TREE, trials=5), make_view(m=200))
        assert set(sizes) == {112}  # of 200 people 140 are trained on, and 28 of them validate

    def test_ranges_and_choices_are_kept(self, make_view, monkeypatch):
        tried = []
        train = _attack_model.train
        monkeypatch.setattr(
            _attack_model, "train", lambda r, *args: tried.append(r.parameters) or train(r, *args)
        )
        space = {
            "max_depth": {"low": 2, "high": 4},
            "ccp_alpha": {"low": 0.001, "high": 0.1, "log": True},
            "max_features": ["none", "sqrt", 2],
        }
        found = guess_of(A1(**TREE, trials=40, space=space), make_view())
        first, *others = tried
        assert first == {}
        assert {t["max_depth"] for t in others} == {2, 3, 4}
        assert all(type(t["max_depth"]) is int for t in others)
        assert all(0.001 <= t["ccp_alpha"] <= 0.1 for t in others)
        assert {t["max_features"] for t in others} == {None, "sqrt", 2}
        assert json.loads(found.notes["attack_parameters"]).keys() == space.keys()

    @pytest.mark.parametrize(("where", "says"), [
        (["gini", "guess"], "decision-tree cannot be created: .*'criterion'.*'guess'"),
        ([], "criterion: must be a list of choices, or a table of low, high and log"),
        ("gini", "criterion: must be a list of choices, or a table of low, high and log"),
    ])  # fmt: skip
    def test_bad_search_spaces_are_refused(self, where, says):
        with pytest.raises(InputError, match=f"space.*{says}"):
            fpbench.component("adversary", "a1", **TREE, trials=5, space={"criterion": where})

    def test_without_optuna_nothing_is_searched(self, monkeypatch):
        monkeypatch.setattr(
            "fpbench.builtin.adversaries._learned_adversary.find_spec", lambda _: None
        )
        corrector = fpbench.component("corrector", "none")
        assert A1(**TREE).incompatible(corrector) is None
        reason = A1(**TREE, trials=3).incompatible(corrector)
        assert "pip install 'fpbench-toolkit[search]', or trials = 0" in reason

    @pytest.mark.parametrize(("where", "value", "inside"), [
        (Range(low=1, high=3), 1, True),
        (Range(low=1, high=3), 3, True),
        (Range(low=1, high=3), 4, False),
        (Range(low=1, high=3), 2.0, False),
        (Range(low=1.0, high=3), 2, True),
        (Range(low=0, high=3), True, False),
        (Range(low=0.0, high=3), None, False),
        (Range(low=0.0, high=3), "sqrt", False),
        (Range(low=0.0, high=3), float("nan"), False),
    ])  # fmt: skip
    def test_values_in_ranges(self, where, value, inside):
        assert (value in where) is inside


class TestTuning:
    @pytest.mark.parametrize("kind", LEARNED)
    def test_adversaries_that_tune_once(self, kind, make_view, rng):
        assert kind(trials=2, scope="dataset").tunes_once
        for other in (kind(), kind(scope="dataset"), kind(trials=2)):
            assert not other.tunes_once
            assert other.tune(seen_without_model(make_view()), rng) is other

    @pytest.mark.parametrize("kind", LEARNED)
    def test_it_sees_nothing_of_the_model(self, kind, make_view):
        adversary = kind(**TREE, trials=6, scope="dataset")
        view = make_view()
        one = adversary.tune(seen_without_model(view), np.random.default_rng(3))
        other = adversary.tune(view.attack, np.random.default_rng(3))
        assert one == other
        assert one.recipe == other.recipe

    @pytest.mark.slow
    @pytest.mark.parametrize("kind", LEARNED)
    def test_the_tuned_one_does_not_search(self, kind, make_view, rng, monkeypatch):
        view = make_view(m=400, k=4)
        given = {"max_depth": 1, "min_samples_leaf": 3}
        adversary = kind(**TREE, parameters=given, trials=10, scope="dataset")
        tuned = adversary.tune(seen_without_model(view), rng)
        tuned = pickle.loads(pickle.dumps(tuned))
        assert isinstance(tuned, kind)
        assert (tuned.trials, tuned.tunes_once) == (0, False)
        assert tuned.parameters["max_depth"] > 1
        monkeypatch.setattr(_attack_model, "search", None)
        monkeypatch.setattr("fpbench.builtin.adversaries._learned_adversary.search", None)
        guess = guess_of(tuned, view)
        assert guess.notes["attack_trials"] == 10
        assert json.loads(guess.notes["attack_parameters"])["max_depth"] > 1
        plain = kind(**TREE, parameters=tuned.parameters)
        assert same(guess, guess_of(plain, view))
        assert adversary.parameters == given  # and the one that was tuned is what it was

    def test_one_that_nobody_tuned_does_so_itself(self, make_view):
        view, adversary = make_view(), A2(**TREE, trials=4, scope="dataset")
        rng = np.random.default_rng(0)
        expected = adversary.tune(seen_without_model(view), rng).guess(view, rng)
        found = guess_of(adversary, view)
        assert same(found, expected)
        assert found.notes == expected.notes


class TestFloors:
    def test_majority(self, make_people):
        attack = make_people(500, 3)
        rare = np.where(attack.sensitive == 2, 1, attack.sensitive).astype(np.int8)
        attack = attack.having(sensitive=rare)
        guess = guess_of(Majority(), View(make_people(70, 3).only(Majority.sees), attack))
        others = np.setdiff1d(np.arange(500), guess.held_out)
        assert (guess.values == 1).all()
        assert (guess.held_out_values == 1).all()
        share = (np.sum(rare[others] == 1) + 1) / (len(others) + 3)
        assert (guess.confidence == share).all()
        assert (guess.held_out_confidence == share).all()
        assert (guess.beliefs[:, 1] == share).all()
        assert (guess.beliefs[:, 2] == 1 / (len(others) + 3)).all()  # of whom there was nobody

    def test_prior(self, make_people):
        attack = make_people(500, 3)
        target = make_people(20_000, 3, seed=4).only(Prior.sees)
        guess = guess_of(Prior(), View(target, attack))
        others = np.setdiff1d(np.arange(500), guess.held_out)
        shares = (np.bincount(attack.sensitive[others]) + 1) / (len(others) + 3)
        drawn = np.bincount(guess.values) / len(guess.values)
        np.testing.assert_allclose(drawn, shares, atol=0.02)
        np.testing.assert_allclose(guess.confidence, shares[guess.values])
        np.testing.assert_allclose(guess.held_out_confidence, shares[guess.held_out_values])
        np.testing.assert_allclose(guess.beliefs, np.tile(shares, (len(target), 1)))
        np.testing.assert_allclose(
            guess.held_out_beliefs, np.tile(shares, (len(guess.held_out), 1))
        )


@pytest.fixture(scope="module")
def adult(adult_home):
    """Adult, sex: the people attacked, and their groups, with what a fair model says of them."""
    table = fpbench.dataset("adult", sensitive="sex")
    everyone = table.sample()
    parts = np.array_split(np.random.default_rng(0).permutation(len(table)), 3)
    train, attack = everyone.take(parts[0]), everyone.take(parts[2])
    learner = fpbench.component("learner", "exponentiated-gradient", tolerance=0.0)
    model = learner.fit(train, np.random.default_rng(1))
    rng = np.random.default_rng(2)
    train, attack = (
        part.having(predictions=model.predict(part.features, rng)) for part in (train, attack)
    )
    return View(train.only(A2.sees), attack.only(A2.sees | {"sensitive"})), train.sensitive


class TestAdult:
    def accuracy(self, adult, kind=A2, **given):
        view, truth = adult
        return np.mean(guess_of(kind(**given), view, 3).values == truth)

    @pytest.mark.slow
    def test_accuracies_on_adult(self, adult):
        forest = self.accuracy(adult, A2Ferry)
        ordinal = self.accuracy(adult, A2Ferry, encoding="ordinal")
        boosted = self.accuracy(adult)
        floor = np.mean(guess_of(Majority(), adult[0]).values == adult[1])
        assert 0.66 < floor < 0.69
        assert floor + 0.08 < ordinal < forest < boosted - 0.04
        assert boosted == pytest.approx(0.851, abs=0.006)
        # The authors' script prints .7655 for its own split.
        assert ordinal == pytest.approx(0.7655, abs=0.015)

    @pytest.mark.slow
    def test_tuning_does_no_harm(self, adult):
        given = {"family": "decision-tree", "class_weight": "none"}
        assert self.accuracy(adult, trials=8, **given) > self.accuracy(adult, **given) - 0.005
        space = {"max_depth": [12], "max_features": [0.3]}
        small = {"n_estimators": 30}
        tuned = self.accuracy(adult, A2Ferry, trials=2, space=space, parameters=small)
        assert tuned > self.accuracy(adult, A2Ferry, parameters=small) + 0.02
