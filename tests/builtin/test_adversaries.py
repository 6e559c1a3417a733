import numpy as np
import pytest
from pydantic import ValidationError
from sklearn.ensemble import RandomForestClassifier

from fpbench import DataError, HiddenError, View
from fpbench.builtin.adversaries.a1 import A1
from fpbench.builtin.adversaries.a2 import A2

FAST = {"n_estimators": 8}


@pytest.fixture
def make_view(make_people):
    """Makes what an adversary is handed; predictions that give the group away, if asked for."""

    def make(n=120, m=200, k=2, predictions=True):
        target, attack = make_people(n, k, seed=1), make_people(m, k, seed=2)
        if predictions:
            target, attack = (
                part.having(predictions=(part.sensitive > 0).astype(np.int8))
                for part in (target, attack)
            )
        return View(target.only(frozenset({"features", "labels", "predictions"})), attack)

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


@pytest.mark.parametrize("adversary", [A1(**FAST), A2(**FAST)])
@pytest.mark.parametrize("k", [2, 4])
def test_shapes_and_bounds(adversary, k, make_view, rng):
    guess = adversary.guess(make_view(k=k), rng)
    assert guess.values.shape == guess.confidence.shape == (120,)
    assert guess.held_out.shape == guess.held_out_values.shape == (60,)
    assert guess.held_out_confidence.shape == (60,)
    assert guess.values.dtype == guess.held_out_values.dtype == np.int8
    assert guess.confidence.dtype == guess.held_out_confidence.dtype == np.float64
    assert np.isin(guess.values, range(k)).all()
    assert (np.diff(guess.held_out) > 0).all()
    assert 0 <= guess.held_out[0] <= guess.held_out[-1] < 200
    for confidence in (guess.confidence, guess.held_out_confidence):
        assert ((confidence >= 1 / k) & (confidence <= 1)).all()


@pytest.mark.parametrize("kind", [A1, A2])
def test_the_seed_decides(kind, make_view):
    view, adversary = make_view(), kind(**FAST)
    one, same_seed, other = (adversary.guess(view, np.random.default_rng(s)) for s in (1, 1, 2))
    assert same(one, same_seed)
    assert not np.array_equal(one.held_out, other.held_out)


def test_it_guesses_well_where_it_did_not_train(make_view, rng):
    view = make_view(m=400)
    guess = A1().guess(view, rng)
    truth = view.attack.sensitive[guess.held_out]
    assert np.mean(guess.held_out_values == truth) > 0.7


def test_predictions_help_a2_only(make_view):
    with_them, without = make_view(), make_view(predictions=False)
    a1 = A1(**FAST)
    assert same(
        a1.guess(with_them, np.random.default_rng(0)), a1.guess(without, np.random.default_rng(0))
    )
    guess = A2(**FAST).guess(with_them, np.random.default_rng(0))
    assert np.array_equal(guess.values, with_them.target.predictions)


def test_a2_needs_predictions(make_view, rng):
    with pytest.raises(HiddenError, match="predictions"):
        A2(**FAST).guess(make_view(predictions=False), rng)


def test_confidence_is_the_greatest_probability(make_view, monkeypatch):
    answers = []
    ask = RandomForestClassifier.predict_proba
    monkeypatch.setattr(
        RandomForestClassifier,
        "predict_proba",
        lambda *args: answers.append(ask(*args)) or answers[-1],
    )
    guess = A1(**FAST).guess(make_view(k=3), np.random.default_rng(0))
    found = {len(answer): answer for answer in answers}
    np.testing.assert_array_equal(guess.confidence, found[120].max(axis=1))
    np.testing.assert_array_equal(guess.values, found[120].argmax(axis=1))
    np.testing.assert_array_equal(guess.held_out_confidence, found[60].max(axis=1))


def test_a_group_that_is_not_in_the_attack_set(make_view, rng):
    view = make_view(k=3)
    here = view.attack.take(np.flatnonzero(view.attack.sensitive != 1))
    guess = A1(**FAST).guess(View(view.target, here), rng)
    assert set(guess.values) == {0, 2}


def test_one_group_alone(make_view, rng):
    view = make_view()
    here = view.attack.take(np.flatnonzero(view.attack.sensitive == 1))
    guess = A1(**FAST).guess(View(view.target, here), rng)
    assert (guess.values == 1).all()
    assert (guess.confidence == 1).all()


@pytest.mark.parametrize(
    ("held_out", "people", "kept"), [(0.3, 2, 1), (0.001, 50, 1), (0.999, 50, 49), (0.5, 50, 25)]
)
def test_how_many_are_held_out(held_out, people, kept, make_view, rng):
    view = make_view(m=people)
    guess = A1(n_estimators=2, held_out=held_out).guess(view, rng)
    assert len(guess.held_out) == kept


def test_one_person_is_too_few(make_view, rng):
    with pytest.raises(DataError, match="has 1 people"):
        A1(**FAST).guess(make_view(m=1), rng)


def test_parameters_reach_the_forest(rng):
    forest = A1(
        n_estimators=3,
        max_depth=17,
        min_samples_split=4,
        min_samples_leaf=5,
        class_weight="none",
    )._forest(rng)
    got = forest.get_params()
    assert got["n_estimators"] == 3
    assert got["max_depth"] == 17
    assert got["min_samples_split"] == 4
    assert got["min_samples_leaf"] == 5
    assert got["class_weight"] is None
    defaults = A2()._forest(rng).get_params()
    assert defaults["class_weight"] == "balanced"
    assert (defaults["n_estimators"], defaults["max_depth"]) == (100, 6)
    assert defaults["min_samples_split"] == 10


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_estimators": 0},
        {"max_depth": 0},
        {"min_samples_split": 1},
        {"min_samples_leaf": 0},
        {"class_weight": None},
        {"held_out": 0.0},
        {"held_out": 1.0},
        {"trees": 10},
    ],
)
def test_wrong_parameters_are_refused(wrong):
    with pytest.raises(ValidationError):
        A1(**wrong)
