"""`fpbench.attack`: anybody's fitted model, attacked in one call."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from threadpoolctl import threadpool_info, threadpool_limits

import fpbench
from fpbench import InputError


class Copies:
    """Predicts the group, which stands in a column that the adversary does not see as such."""

    def __init__(self, answers):
        self.answers = answers

    def predict(self, X):
        return self.answers


class Scored(Copies):
    """Gives scores beside the answers."""

    def predict_proba(self, X):
        return np.full((len(self.answers), 2), 0.5)


VIEWS = []


class Watches(fpbench.component("adversary", "prior").__class__):
    """Keeps what it is shown."""

    name = "watches"
    sees = frozenset({"features", "labels", "predictions", "scores"})

    def guess(self, view, rng):
        assert {pool["num_threads"] for pool in threadpool_info()} == {1}
        VIEWS.append(view)
        return super().guess(view, rng)


@pytest.fixture(scope="module")
def world():
    """People with words, gaps, dates and a constant; and a pipeline that takes the words only."""
    rng = np.random.default_rng(0)
    n = 600
    sex = rng.choice(["f", "m"], n, p=[0.4, 0.6])
    job = np.where((sex == "m") ^ (rng.random(n) < 0.2), "smith", "nurse").astype(object)
    job[rng.random(n) < 0.2] = None
    age = rng.normal(40, 10, n)
    age[rng.random(n) < 0.1] = np.nan
    since = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D")
    X = pd.DataFrame(
        {"job": job, "age": age, "since": since, "one": 1}, index=[f"p{i}" for i in range(n)]
    )
    y = np.where(rng.random(n) < 0.3 + 0.3 * (sex == "m"), "yes", "no")
    encoder = make_column_transformer((OneHotEncoder(), ["job"]))
    return make_pipeline(encoder, LogisticRegression()).fit(X, y), X, y, sex


def test_a_pipeline_of_words_gaps_and_dates_is_attacked(world):
    model, X, y, sex = world
    result = fpbench.attack(model, X, y, sex, positive="yes", seeds=2)
    frame, people = result.frame(), result.people
    assert frame["without_accuracy"].mean() > frame["majority_accuracy"].mean() + 0.03
    assert list(frame["seed"]) == [0, 1]
    attacked = people["attacks"]
    assert attacked.sum() == len(X)  # half of them at each seed
    assert set(people.index) <= set(X.index)
    assert (people["group"] == pd.Series(sex, X.index).loc[people.index]).all()
    right = (people["guessed_right"] * attacked).sum() / attacked.sum()
    assert right == pytest.approx(frame["with_accuracy"].mean(), abs=0.01)
    assert people["risk"].between(0, 1).all()
    assert people["risk"].mean() > 0.5
    sentences = result.sentences
    assert len(sentences) == 3
    assert re.fullmatch(
        r"Your model adds nothing that [\d,]+ people can tell \([-+.\d]+ points, 95 %: [-+.\d]+ "
        r"to [-+.\d]+\) to what anybody guesses from the same "
        r"people's features and labels\.",
        sentences[0],
    )
    assert re.fullmatch(
        r"From features and labels the attack guesses [\d.]+ % \(a2\), and with the model's "
        r"predictions [\d.]+ %; naming the largest group is right for [\d.]+ %\.",
        sentences[1],
    )
    assert sentences[2].startswith("Publishing a true claim of statistical-parity")
    assert str(result.leaderboard()).splitlines()[-4].split()[:2] == ["1", "a2"]
    assert "<table>" in result._repr_html_()


@pytest.mark.slow
def test_a_model_that_tells_the_group_is_found_out(world):
    _, X, y, sex = world
    told = np.where(sex == "m", "yes", "no")
    options = {"disclosure": None, "positive": "yes"}
    result = fpbench.attack(Copies(told), X, y, sex, seeds=4, **options)
    assert (result.people["risk"] > 0.8).all()
    assert len(result.sentences) == 2
    assert str(result).startswith("Your model adds ")
    assert "and with the model's predictions 100.0 %;" in str(result)
    frame = result.frame()
    assert (frame["without_model_accuracy"] < 0.9).all()
    assert (frame["without_accuracy"] == 1).all()
    # What is known without the model does not depend on it.
    silent = fpbench.attack(np.full(len(X), "no"), X, y, sex, seeds=4, **options).frame()
    assert silent["without_model_accuracy"].tolist() == silent["without_accuracy"].tolist()
    assert silent["without_accuracy"].tolist() == frame["without_model_accuracy"].tolist()
    # The same predictions without a model, and people whose groups are known by name.
    mask = np.arange(len(X)) % 3 > 0
    other = fpbench.attack(told, X, y, sex, seeds=[7], known=mask, **options)
    assert set(other.people.index) == set(X.index[~mask])


@pytest.mark.slow
def test_features_that_say_nothing_give_nothing_away():
    rng = np.random.default_rng(1)
    X, sex = rng.normal(size=(800, 2)), rng.choice(["f", "m"], 800)
    y = X[:, 0] > 0
    model = LogisticRegression().fit(X, y)
    result = fpbench.attack(model, X, y, sex, seeds=2)
    assert abs(result.frame()["without_accuracy"].mean() - 0.5) < 0.08
    assert result.people["risk"].between(0.3, 0.7).all()


def test_scores_are_shown_to_those_who_see_them(world):
    model, X, y, sex = world
    mask = np.arange(len(X)) % 2 == 0
    for positive, column in (("no", 0), ("yes", 1)):
        VIEWS.clear()
        with threadpool_limits(2):  # of which an adversary uses one
            fpbench.attack(
                model, X, y, sex, seeds=1, adversary=Watches(), positive=positive, known=mask
            )
        view, silent = VIEWS
        assert silent.target.predictions.max() == 0
        assert set(silent.attack.scores) == set(silent.target.scores) == {0.5}
        probabilities = model.predict_proba(X)[:, column]
        np.testing.assert_array_equal(view.target.scores, probabilities[~mask])
        np.testing.assert_array_equal(view.attack.scores, probabilities[mask])
        decided = (model.predict(X) == model.classes_[column]).astype(int)
        np.testing.assert_array_equal(view.target.predictions, decided[~mask])
        assert (np.array(view.attack.groups)[view.attack.sensitive] == sex[mask]).all()
        assert "sensitive" not in view.target.seen


def test_a_corrector_without_beliefs_is_judged_by_what_it_names(world):
    model, X, y, sex = world
    result = fpbench.attack(model, X, y, sex, positive="yes", seeds=1, corrector="exact")
    right = result.people["guessed_right"].mean()
    assert right == pytest.approx(result.frame()["corrected_accuracy"][0])


@pytest.mark.parametrize(("change", "message"), [
    ({"labels": ["yes"] * 600}, "labels must have two values or more, as the model has .'no', 'yes'., not 'yes'"),
    ({"labels": ["yes", "no", "maybe"] * 200}, "labels must have two values or more, as the model"),
    ({"labels": [0, 1]}, "labels: has 2 values, but X has 600 rows"),
    ({"groups": ["f"] * 600}, "groups has one group, f; at least two are needed"),
    ({"groups": ["f", "m"]}, "groups: has 2 people, but X has 600 rows"),
    ({"known": 0.001}, "1 of 600 people are too few to learn from; use 10 or more"),
    ({"known": [True, False]}, "known: must be a share, or True or False for each of 600 people"),
    ({"seeds": 0}, "seeds must be"),
    ({"seeds": []}, "seeds must be their number, such as 6, or a list"),
    ({"positive": "yess"}, "positive: 'yess' is not among labels; did you mean 'yes'?"),
    ({"adversary": "a3"}, "unknown adversary 'a3'"),
    ({"adversary": "twin-none"}, "unknown adversary"),
    ({"corrector": "exactly"}, "did you mean 'exact'"),
    ({"disclosure": "structure"}, "is read from a model that a matrix trains"),
    ({"model": LogisticRegression}, "model must be fitted, not the class"),
    ({"model": ["maybe"] * 600}, "'maybe' is among them, but labels are 'no', 'yes'"),
    ({"model": ["yes"]}, "X: has 600 rows"),
    ({"X": None}, "X must be a data frame"),
    ({"X": [[1.0]] * 600, "model": ["yes"] * 600}, "none of its 1 columns has two values"),
    ({"X": np.array([[np.inf], [0.0]] * 300), "model": ["yes"] * 600}, "infinite"),
])  # fmt: skip
def test_what_is_wrong_is_said(world, change, message):
    names = ("model", "X", "labels", "groups")
    arguments = dict(zip(names, world, strict=True)) | {"positive": "yes"} | change
    positional = [arguments.pop(name) for name in names]
    with pytest.raises(InputError, match=message):
        fpbench.attack(*positional, **arguments)


def test_the_risk_of_a_person_is_that_of_the_true_group(world):
    model, X, y, sex = world
    people = fpbench.attack(model, X, y, sex, positive="yes", seeds=1).people
    wrong = people["guessed_right"] == 0
    assert wrong.any()
    assert (people["risk"][wrong] <= 0.5).all()
    assert (people["risk"][~wrong] >= 0.5).all()
    assert not people["proven"].any()  # one claim of rates proves nobody's group


def test_a_report_of_pure_slices_proves_everybody():
    """Where nothing is said, that is a value of its own: here it tells the group."""
    sex = np.array(["f", "m"] * 60)
    X = pd.DataFrame({"job": np.where(sex == "f", "smith", None), "age": np.arange(120) % 7})
    y = np.arange(120) % 3 > 0
    report = {"use": "report", "by": ["job"], "min_cell": 0}
    result = fpbench.attack(y, X, y, sex, seeds=1, disclosure=report)
    assert result.people["proven"].all()
    assert (result.people["risk"] == 1).all()


def say(*arguments, **options):
    return str(fpbench.attack(*arguments, positive="yes", **options))


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(
    ("column", "told"),
    [
        (lambda sex: sex, True),
        (lambda sex: np.where(sex == "f", 1.0, np.nan), True),
        (lambda sex: np.where(sex == "f", np.resize(["Ms", "Mrs"], len(sex)), "Mr"), True),
        (lambda sex: np.where(np.arange(len(sex)) == 7, "f", sex), False),
        (lambda sex: np.arange(len(sex)), False),  # who somebody is, and no group
    ],
)
def test_a_column_that_tells_the_group_is_warned_of(world, column, told):
    model, X, y, sex = world
    X = X.assign(sex=column(sex))
    said = say(model, X, y, sex, seeds=1)
    assert said.startswith("Your model ")
    assert ("\nwarning: column 'sex' of X reveals everybody's group" in said) is told
    if told:
        assert "fpbench.attack(model.predict(X), X.drop(columns=['sex']), labels, groups)" in said
        left = say(model.predict(X), X.drop(columns=["sex"]), y, sex, seeds=1)
        assert "warning" not in left
        result = fpbench.attack(model, X, y, sex, seeds=1, positive="yes")
        assert result.warnings[0][:20] in result._repr_html_().replace("&#x27;", "'")
    # Of an adversary that does not see it, nothing is to be said.
    assert "warning" not in say(model, X, y, sex, seeds=1, adversary="adapt-aia-hard")


@pytest.mark.slow
def test_arrays_crossed_groups_and_labels_that_tell_are_warned_of(world):
    model, X, y, sex = world
    said = model.predict(X)
    matrix = np.column_stack([X["age"], sex == "f"])
    assert "warning: column 1 of X reveals everybody's group" in say(said, matrix, y, sex, seeds=1)
    assert "numpy.delete(X, [1], axis=1)" in say(said, matrix, y, sex, seeds=1)
    both = pd.DataFrame({"sex": sex, "old": np.arange(600) % 2}, X.index)
    X = X.assign(woman=sex == "f", late=both["old"].to_numpy())
    assert "warning: columns 'woman' and 'late' of X reveal a part of everybody's group" in say(
        said, X, y, both, seeds=1
    )
    again = np.where(sex == "f", "yes", "no")
    assert "warning: labels reveal everybody's group" in say(said, X[["age"]], again, sex, seeds=1)


@pytest.mark.slow
def test_one_or_two_seeds_tell_nothing_of_others(world):
    _, X, y, sex = world
    said = np.where((sex == "m") & (np.arange(600) % 5 > 0), "yes", "no")
    for seeds in (1, 2):
        result = fpbench.attack(said, X, y, sex, seeds=seeds, positive="yes")
        assert re.match(r"Your model adds [\d.]+ points \(95 %: \+", result.sentences[0])
        assert "95 %" not in result.sentences[-1]
        board = result.leaderboard()
        assert board.lines[0].measures["without_accuracy"].low is None
        assert "Fewer than 3 seeds give no interval: run more seeds." in str(board)
    three = fpbench.attack(said, X, y, sex, seeds=3, positive="yes")
    assert three.leaderboard().lines[0].measures["without_accuracy"].low is not None


def test_steps_stand_in_the_frame_and_in_the_waterfall(world):
    model, X, y, sex = world
    result = fpbench.attack(model, X, y, sex, seeds=3, positive="yes", adversary="a2-proba")
    frame, waterfall = result.frame(), result.leaderboard().waterfall
    steps = ["majority_accuracy", "without_model_accuracy", "without_accuracy", "with_accuracy"]
    assert [level.right.mean for level in waterfall.levels] == pytest.approx(frame[steps].mean())
    assert [level.name for level in waterfall.levels] == [
        "largest group", "features", "scores", "claim"
    ]  # fmt: skip
    assert waterfall.levels[1].attack == "a2-proba without the model"
    assert "with the model's predictions and scores" in result.sentences[1]
    for adversary, sentence in (
        ("a1", "The attack does not look at your model: from features and labels it guesses"),
        ("adapt-aia", "Your model .* to what naming the largest group gets right"),
    ):
        one = fpbench.attack(model, X, y, sex, seeds=1, positive="yes", adversary=adversary)
        assert re.match(sentence, one.sentences[0])
        assert "without_model_accuracy" not in one.frame()


def test_an_array_of_numbers_and_texts_has_numbers_in_it(world):
    model, X, y, sex = world
    mixed = X[["job", "age"]]
    said = model.predict(X)
    for people in (mixed, mixed.to_numpy(), mixed.to_numpy().tolist()):
        VIEWS.clear()
        fpbench.attack(Scored(said), people, y, sex, seeds=1, positive="yes", adversary=Watches())
        kinds = [str(kind) for kind in VIEWS[0].target.features.dtypes]
        assert kinds == ["category", "float64"]
