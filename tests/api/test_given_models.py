"""`fpbench.attack` on models of every sort, at the first try."""

import re
import sys

import numpy as np
import pandas as pd
import pytest
from fairlearn.postprocessing import ThresholdOptimizer
from sklearn.linear_model import LinearRegression, LogisticRegression

import fpbench
from fpbench import InputError
from fpbench.api.attack import bound_paired

N = 500
RNG = np.random.default_rng(3)
SEX = RNG.choice(["f", "m"], N)
X = pd.DataFrame({"hours": RNG.normal(40, 9, N), "age": RNG.normal(40, 10, N).round()})
PAID = (X["hours"] + 6 * (SEX == "m") + RNG.normal(0, 6, N) > 43).astype(int).to_numpy()
TEXTS = np.where(PAID, "yes", "no")
MODEL = LogisticRegression().fit(X, TEXTS)
SCORES = MODEL.predict_proba(X)[:, 1]
JOB = np.select([SEX == "f", X["hours"] > 40], ["nurse", "smith"], "cook")
RATED = 1.0 * (SEX == "f") + 2.0 * (X["hours"] > 40).to_numpy() + np.arange(N) / N / 10

CLAIM = {"use": "published", "metric": "statistical-parity"}


class Says:
    """Predicts what it is told to."""

    def __init__(self, answers, **known):
        self.answers = answers
        vars(self).update(known)

    def predict(self, people):
        return self.answers


def attack(model, labels=PAID, people=X, groups=SEX, **options):
    return fpbench.attack(model, people, labels, groups, **({"seeds": 1} | options))


def test_the_last_class_counts_as_1_and_is_said():
    result = attack(MODEL, TEXTS)
    named = attack(MODEL, TEXTS, positive="yes")
    assert str(result).splitlines()[-1] == "'yes' counts as 1, the last of the classes (positive=)."
    assert "counts as 1" not in str(named)
    assert result.people.equals(named.people)
    assert "counts as 1" not in str(attack(Says(PAID)))


@pytest.mark.parametrize(
    "given",
    [SCORES, MODEL.predict_proba(X), Says(SCORES), Says(SCORES[:, None]), Says(MODEL.predict_proba(X))],
    ids=["scores", "two columns", "Booster of lightgbm", "Keras", "softmax"],
)  # fmt: skip
def test_scores_are_as_good_as_predictions_and_an_adversary_may_see_them(given):
    plain, scored = (attack(model, TEXTS, adversary="a2") for model in (MODEL, given))
    assert plain.people.equals(scored.people)
    seen = [attack(model, TEXTS, adversary="a2-proba").people for model in (MODEL, given)]
    assert seen[0].equals(seen[1])


def test_a_threshold_cuts_scores():
    high = attack(SCORES, threshold=0.8)
    assert high.people.equals(attack((SCORES >= 0.8).astype(int)).people)
    assert "1 is predicted from 0.8 on" in str(high)
    wide = attack(4 * SCORES - 1, threshold=2.2)
    assert wide.people.equals(attack((4 * SCORES - 1 >= 2.2).astype(int)).people)
    with pytest.raises(InputError, match=r"scores must be in \[0, 1\]"):
        attack(4 * SCORES - 1, threshold=2.2, adversary="a2-proba")
    with pytest.raises(
        InputError, match="threshold: cuts scores of two classes, and labels have 3"
    ):
        attack(Says(JOB), JOB, threshold=0.5)


def test_a_model_that_predicts_with_groups_is_given_them():
    fair = ThresholdOptimizer(estimator=MODEL, prefit=True, predict_method="predict_proba")
    fair.fit(X, PAID, sensitive_features=SEX)
    expected = fair.predict(X, sensitive_features=SEX, random_state=0)
    for groups in (SEX, pd.Series(SEX)):
        assert attack(fair, groups=groups).people.equals(attack(expected).people)
    audited = fpbench.audit(fair, X, SEX, resamples=0).by_group
    assert audited.equals(fpbench.audit(expected, X, SEX, resamples=0).by_group)
    both = X.assign(sex=SEX)
    assert attack(fair, people=both, groups="sex").people.equals(attack(expected).people)


def test_three_classes_are_one_view_of_the_adversary():
    """The claim is about one class; the adversary sees all of them: here two tell the group."""
    labels = np.resize(["cook", "nurse", "smith"], N)
    result = attack(Says(JOB), labels)
    assert (result.frame()["without_accuracy"] > 0.97).all()
    assert (result.frame()["without_model_accuracy"] < 0.8).all()
    said = str(result)
    assert re.match(r"Your model adds \d\d\.\d\d points \(95 %: \+", said)
    assert "The adversary sees which of 3 classes is predicted; the claim is about the " in said
    # Of one class against the rest only that is known.
    rest = attack(Says((JOB == "smith").astype(int)), (labels == "smith").astype(int))
    assert (rest.frame()["without_accuracy"] < 0.97).all()
    chosen = attack(Says(JOB), labels, positive="smith")
    assert "of 3 classes" not in str(chosen)
    with pytest.raises(
        InputError, match="positive: 'smit' is not among labels; did you mean 'smith'"
    ):
        attack(Says(JOB), labels, positive="smit")
    with pytest.raises(InputError, match="of 3 classes it must see features"):
        attack(Says(JOB), labels, adversary="adapt-aia-hard")


@pytest.mark.slow
def test_probabilities_of_three_classes_are_seen():
    labels, table = np.resize(["cook", "nurse", "smith"], N), np.full((N, 3), 0.1)
    table[np.arange(N), np.searchsorted(["cook", "nurse", "smith"], JOB)] = 0.8
    told = attack(table, labels)
    assert told.people.equals(attack(Says(JOB), labels).people)
    # Scores alone tell the group, where all predictions are alike.
    alike = np.stack([np.full(N, 0.6), 0.1 + 0.2 * (SEX == "f"), 0.3 - 0.2 * (SEX == "f")], axis=1)
    assert (attack(alike, labels).frame()["without_accuracy"] < 0.8).all()
    seen = attack(alike, labels, adversary="a2-proba").frame()
    assert (seen["without_accuracy"] > 0.97).all()
    assert (seen["without_model_accuracy"] < 0.8).all()


def test_numbers_are_seen_as_numbers_and_nothing_is_claimed_of_them():
    labels = X["hours"].to_numpy()
    result = attack(Says(RATED), labels)
    assert (result.frame()["without_accuracy"] > 0.97).all()
    assert (result.frame()["without_model_accuracy"] < 0.8).all()
    assert not result.disclosed
    assert "The model predicts numbers, which the adversary sees" in str(result)
    assert "Publishing" not in str(result)
    fitted = LinearRegression().fit(X, labels)
    assert not attack(fitted, labels).disclosed
    assert attack(Says(RATED), labels, disclosure=CLAIM).disclosed
    for adversary, message in (("adapt-aia-hard", "features"), ("a2-proba", "sees scores")):
        with pytest.raises(InputError, match=message):
            attack(Says(RATED), labels, adversary=adversary)


class Booster:
    """As that of xgboost."""

    inplace_predict = None

    def predict(self, people):
        raise TypeError("Expecting data to be a DMatrix object")


def make_module(monkeypatch):
    """A module of PyTorch, as far as its type tells."""
    kind = type("Net", (), {"__module__": "torch.nn", "__call__": lambda self, x: x})
    monkeypatch.setitem(sys.modules, "torch", None)
    return kind()


def test_models_of_other_libraries_name_their_scores(monkeypatch):
    with pytest.raises(InputError, match=r"give what it predicts, model.inplace_predict\(X\)"):
        attack(Booster())
    with pytest.raises(InputError, match=r"of a module of PyTorch, give its scores, torch.sigmoid"):
        attack(make_module(monkeypatch))


def test_few_people_are_said_to_be_few():
    few = attack(Says(PAID[:60]), PAID[:60], X[:60], SEX[:60], seeds=3)
    low, high = few.added[1:]
    assert high - low > 0.04  # though all guesses may be alike
    assert re.search(
        r"\nOnly \d\d people are attacked: so few tell of great leaks only\.", str(few)
    )
    assert "Only" not in str(attack(Says(PAID)))


def test_the_verdict_is_the_difference_of_the_accuracies():
    told = np.where(SEX == "m", 1, 0)
    result = attack(Says(told))
    frame = result.frame()
    rise = (frame["without_accuracy"] - frame["without_model_accuracy"]).mean()
    assert result.added[0] == pytest.approx(rise)
    assert result.added[1] < rise < result.added[2]
    assert re.match(
        rf"Your model adds {100 * rise:.2f} points \(95 %: \+\d\d\.\d\d to \+\d\d\.\d\d\) to what "
        r"anybody guesses from the same people's features and labels\.\nFrom features and labels "
        r"the attack guesses [\d.]+ % \(a2\), and with the model's predictions 100\.0 %; naming the "
        r"largest group is right for [\d.]+ %\.\nPublishing a true claim",
        str(result),
    )
    alone = attack(Says(told), adversary="adapt-aia-hard")
    right = alone.frame()["without_accuracy"] - alone.frame()["majority_accuracy"]
    assert alone.added[0] == pytest.approx(right.mean(), abs=0.02)  # the naming is balanced
    assert attack(Says(told), adversary="a1").added is None


@pytest.mark.parametrize("people", [20, 100, 1000])
@pytest.mark.parametrize("chances", [(0.0, 0.0), (0.01, 0.0), (0.1, 0.05), (0.3, 0.3), (0.02, 0.3)])
def test_the_interval_covers_the_mean(people, chances):
    rng = np.random.default_rng(people)
    gained, lost = chances
    counts = rng.multinomial(people, [gained, lost, 1 - gained - lost], size=2000)
    covered, once = 0, np.ones(people, int)
    for more, less, alike in counts:
        low, high = bound_paired(np.repeat([1.0, -1.0, 0.0], [more, less, alike]), once)
        covered += low <= gained - lost <= high
    assert covered >= 0.93 * len(counts)


def test_who_is_attacked_more_often_counts_more_and_no_surer():
    rng = np.random.default_rng(0)
    times = rng.integers(1, 7, 300)
    sums = np.where(rng.random(300) < 0.2, times, 0).astype(float)  # alike at each attack
    low, high = bound_paired(sums, times)
    assert low < sums.sum() / times.sum() < high
    once = bound_paired(np.sign(sums), np.ones(300, int))
    assert high - low > 0.95 * (once[1] - once[0])
    assert bound_paired(3 * np.sign(sums), np.full(300, 3)) == pytest.approx(once)
