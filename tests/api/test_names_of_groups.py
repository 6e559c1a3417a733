"""People's groups are names, columns or codes wherever they are asked for."""

from fractions import Fraction
from inspect import signature

import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import demographic_parity_difference, equalized_odds_difference
from sklearn.tree import DecisionTreeClassifier

import fpbench
from fpbench import FairnessReport, FpbenchError, InputError
from fpbench.models import tree_rules
from fpbench.privacy import Curator

RNG = np.random.default_rng(3)
SEX = RNG.choice(["f", "m"], 300, p=[0.3, 0.7])
CODES = (SEX == "m").astype(int)
SAID = RNG.integers(0, 2, 300)
TRUE = RNG.integers(0, 2, 300)

FORMS = {
    "codes": CODES,
    "names": SEX,
    "a list": SEX.tolist(),
    "a column": pd.Series(SEX, name="sex"),
    "a categorical": pd.Series(SEX, dtype="category"),
    "a frame": pd.DataFrame({"sex": SEX}),
}


@pytest.mark.parametrize("groups", FORMS.values(), ids=FORMS)
def test_unfairness_takes_groups_of_any_form(groups):
    assert fpbench.auditing.unfairness(groups, SAID, form="between-groups") == pytest.approx(
        demographic_parity_difference(TRUE, SAID, sensitive_features=SEX)
    )
    odds = fpbench.auditing.unfairness(
        groups, SAID.astype(bool), pd.Series(TRUE), metric="equalized_odds", form="between-groups"
    )
    assert isinstance(odds, Fraction)
    assert float(odds) == pytest.approx(
        equalized_odds_difference(TRUE, SAID, sensitive_features=SEX)
    )
    assert fpbench.audit(SAID, None, groups, resamples=0).by_group["people"].tolist() == [
        (SEX == "f").sum(), (SEX == "m").sum()
    ]  # fmt: skip


def test_several_attributes_are_crossed():
    both = pd.DataFrame({"sex": ["f", "f", "m", "m"], "old": ["y", "n", "y", "n"]})
    assert fpbench.auditing.unfairness(both, [1, 0, 0, 0], form="between-groups") == 1
    assert fpbench.auditing.unfairness(
        both["sex"], [1, 0, 0, 0], form="between-groups"
    ) == Fraction(1, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"predictions": np.where(SAID, "yes", "no")}, "they are 'no' and 'yes': say which counts as 1, positive='no' or positive='yes'"),
        ({"predictions": SAID + 1}, "they are 1 and 2: say which counts as 1, positive=1 or positive=2"),
        ({"predictions": SAID[:9]}, "predictions: has 9 values, and groups 300 people"),
        ({"metric": "equal-opportunity"}, "metric 'equal-opportunity' needs the labels"),
        ({"metric": "equal-oportunity"}, "did you mean 'equal-opportunity'?"),
        ({"groups": "sex"}, "if that is a column of X, pass X['sex']"),
        ({"groups": ["f"] * 300}, "has one group, f"),
        ({"groups": [None, *SEX[1:]]}, "1 values are missing"),
    ],
)  # fmt: skip
def test_wrong_people_are_one_error(arguments, message):
    with pytest.raises(InputError) as error:
        fpbench.auditing.unfairness(**{"groups": SEX, "predictions": SAID, **arguments})
    assert message in str(error.value)


class _Model:
    """Predicts what it was given."""

    def __init__(self, answer):
        self.answer = answer

    def predict(self, X):
        return self.answer


X = pd.DataFrame({"age": RNG.normal(SAID, 1.0), "hours": RNG.normal(SEX == "m", 1.0)})
WORDS = np.where(SAID, "yes", "no"), np.where(TRUE, "yes", "no")
LABELS = {
    "texts": (*WORDS, "yes"),
    "lists": (WORDS[0].tolist(), WORDS[1].tolist(), "yes"),
    "the other text": (np.where(SAID, "a", "b"), np.where(TRUE, "a", "b"), "a"),
    "strings": (pd.Series(WORDS[0], dtype="string"), pd.Series(WORDS[1], dtype="string"), "yes"),
    "categoricals": (pd.Categorical(WORDS[0]), pd.Series(WORDS[1], dtype="category"), "yes"),
    "numbers": (SAID + 1, TRUE + 1, 2),
    "nullable": (pd.array(SAID, "Int64"), pd.array(TRUE, "Int64"), None),
    "nullable truth": (pd.array(SAID == 1, "boolean"), pd.Series(TRUE == 1, dtype="boolean"), None),
    "truth values": (SAID == 1, (TRUE == 1).tolist(), None),
    "categorical truth": (pd.Categorical(SAID == 1), pd.Categorical(TRUE == 1), None),
}  # fmt: skip
MEASURES = {
    "unfairness": lambda said, true, options: fpbench.auditing.unfairness(
        SEX, said, true, metric="equalized-odds", **options),
    "audit": lambda said, true, options: fpbench.audit(
        said, None, SEX, labels=true, resamples=0, **options),
    "audit of a model": lambda said, true, options: fpbench.audit(
        _Model(said), X, SEX, labels=true, resamples=0, **options),
    "private audit": lambda said, true, options: fpbench.audit(
        said, None, SEX, labels=true, epsilon=1.0, metric="equal-opportunity", rng=0, **options),
    "individual": lambda said, true, options: fpbench.auditing.individual_fairness(
        _Model(said), X, tau=0.01, **options).table().to_dict(),
    "predictions of individuals": lambda said, true, options: fpbench.auditing.individual_fairness(
        _Model(said), X, tau=0.01, predictions=said, **options).table().to_dict(),
    "report": lambda said, true, options: FairnessReport.from_predictions(
        X, said, SEX, by=["age"], labels=true, metrics=["selection-rate", "true-positive-rate"],
        **options).to_frame().to_dict(),
    "attack": lambda said, true, options: fpbench.attack(
        _Model(said), X, true, SEX, seeds=1, **options).people.to_dict(),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
def test_labels_of_any_two_values_are_counted_alike(measure):
    expected = str(measure(SAID, TRUE, {}))
    for name, (said, true, positive) in LABELS.items():
        options = {} if positive is None else {"positive": positive}
        assert str(measure(said, true, options)) == expected, name


@pytest.mark.parametrize("name", MEASURES)
def test_which_label_is_positive_is_never_guessed_in_silence(name):
    measure = MEASURES[name]
    if name == "attack":  # which says so, and whose verdict does not depend on it
        assert "'yes' counts as 1" in str(fpbench.attack(WORDS[0], X, WORDS[1], SEX, seeds=1))
        return
    with pytest.raises(
        InputError, match=r"'no' and 'yes': say which counts as 1, positive='no' or positive='yes'"
    ):
        measure(*WORDS, {})


@pytest.mark.parametrize("name", MEASURES)
def test_wrong_labels_are_one_error(name):
    measure = MEASURES[name]
    with pytest.raises(InputError, match="positive: 'Yes' is not among .*did you mean 'yes'"):
        measure(*WORDS, {"positive": "Yes"})
    three = [*WORDS[0][1:], "maybe"], [*WORDS[1][1:], "maybe"], {"positive": "yes"}
    if name != "attack":  # which takes more classes than two
        with pytest.raises(InputError, match="two values, not "):
            measure(*three)
    with pytest.raises(InputError, match="row 0 is missing"):
        measure([None, *WORDS[0][1:]], [None, *WORDS[1][1:]], {"positive": "yes"})


@pytest.mark.parametrize(
    ("values", "positive", "message"),
    [
        ([1.0, np.nan], 1, "row 1 is missing"),
        (pd.array([1, None], "Int64"), 1, "row 1 is missing"),
        (pd.Categorical([None, 1, 1]), 1, "row 0 is missing"),
        (pd.to_datetime(["2020", None]), pd.Timestamp("2020"), "row 1 is missing"),
        ([1, 1], "1", "'1' is not among predictions"),
        (["1", "1"], 1, "1 is not among predictions"),
    ],
)  # fmt: skip
def test_neither_missing_nor_misread_values_count_as_the_other(values, positive, message):
    with pytest.raises(InputError, match=message):
        fpbench.auditing.unfairness(["f", "m", "f"][: len(values)], values, positive=positive)


def test_rules_of_a_tree_of_words_are_asked_about():
    trees = [
        DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y) for y in (SAID, WORDS[0])
    ]
    options = {"epsilon": 1.0, "per_rule": True, "rng": 0}
    plain, named = (
        fpbench.audit(tree, X, SEX, **options, **extra)
        for tree, extra in zip(trees, ({}, {"positive": "yes"}), strict=True)
    )
    assert str(plain) == str(named)
    similar = fpbench.auditing.individual_fairness(trees[1], X, tau=0.01, positive="yes")
    assert similar.certified_consistency is not None
    report = FairnessReport.per_rule(
        tree_rules(trees[1], positive="yes"), X, WORDS[0], SEX, by=[], positive="yes"
    )
    assert report.columns[0].rules is not None


def test_a_guess_of_names_is_corrected_to_names():
    guess, said, costs = ["f", "f", "f", "m", "m", "m"], [1, 1, 0, 1, 0, 0], [3, 2, 1, 1, 1, 2]
    options = {"weights": costs, "tolerance": 0.1}
    assert fpbench.correct(guess, said, **options).values.tolist() == list("fffmfm")
    column = pd.Series(guess, dtype="category")
    assert fpbench.correct(column, said, groups=["m", "f"], **options).values.tolist() == list(
        "fffmfm"
    )
    with pytest.raises(InputError, match="guess: sensitive: there is no group 'f'; valid: d, m"):
        fpbench.correct(guess, said, groups=["m", "d"])
    with pytest.raises(InputError, match="groups: must be names, as the guess has names"):
        fpbench.correct(guess, said, groups=2)
    with pytest.raises(
        InputError, match=r"labels: must be whole numbers.*pass \(values == 'yes'\)"
    ):
        fpbench.correct(CODES, SAID, labels=np.where(TRUE, "yes", "no"), metric="equal-opportunity")


def test_curators_take_names():
    named = Curator(SEX, groups=["m", "f", "d"])
    assert named.groups == ("m", "f", "d")
    with pytest.raises(InputError, match="there is no group 'm'; did you mean 'me'"):
        Curator(SEX, groups=["me", "f"])


def _make_report(X, predictions, groups):
    return fpbench.FairnessReport.from_predictions(X, predictions, groups, by=["age"])


PEOPLE_TWICE = {
    "attack": lambda X, model, labels, groups, known: fpbench.attack(
        model, X, labels, groups, known=known
    ),
    "audit": lambda X, model, groups: fpbench.audit(model, X, groups),
    "audit of labels": lambda model, groups, labels: fpbench.audit(
        model, None, groups, labels=labels
    ),
    "unfairness": lambda groups, predictions, labels: fpbench.auditing.unfairness(
        groups, predictions, labels, metric="equalized-odds"
    ),
    "individual_fairness": lambda X, predictions: fpbench.auditing.individual_fairness(
        None, X, tau=0.1, predictions=predictions
    ),
    "correct": lambda guess, predictions, labels, weights: fpbench.correct(
        guess, predictions, labels=labels, weights=weights, metric="equal-opportunity",
        tolerance=0.5,
    ),
    "report": lambda X, predictions, groups, labels: fpbench.FairnessReport.from_predictions(
        X, predictions, groups, by=["age"], labels=labels
    ),
    "facts": lambda X, predictions, labels: _make_report(X, predictions, X["sex"]).facts(
        X, predictions, labels
    ),
    "assess": lambda X, predictions, labels, groups, beliefs: fpbench.assess(
        REPORT, X, predictions, labels, groups, beliefs, search=False
    ),
    "data set": lambda features, labels, sensitive: fpbench.Table(
        "mine", features, labels, sensitive.astype("category").to_frame()
    ),
}  # fmt: skip
"""Functions that take what belongs to the same people more than once."""
ADULTS = pd.DataFrame({"age": RNG.choice([20.0, 40.0, 60.0], 300), "sex": SEX})
REPORT = _make_report(ADULTS, SAID, SEX)
SERIES = {
    **dict.fromkeys(("labels", "predictions", "model"), pd.Series(SAID)),
    **dict.fromkeys(("groups", "sensitive", "guess"), ADULTS["sex"]),
    **dict.fromkeys(("known", "members"), pd.Series(RNG.random(300) < 0.5)),
    **dict.fromkeys(("weights", "scores"), pd.Series(RNG.uniform(1, 2, 300))),
    "beliefs": pd.DataFrame(np.full((300, 2), 0.5), columns=["f", "m"]),
    "X": ADULTS,
    "features": ADULTS[["age"]],
}
NAMED = [
    (name, other) for name, call in PEOPLE_TWICE.items() for other in signature(call).parameters
]


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize(("name", "moved"), NAMED)
def test_rows_of_pandas_in_another_order_are_refused(name, moved):
    """By position, a model that decides by sex alone would pass as fair."""
    call = PEOPLE_TWICE[name]
    people = {one: SERIES[one] for one in signature(call).parameters}
    call(**people)
    shuffled = people[moved].sample(frac=1, random_state=1)
    renamed = people[moved].set_axis(np.arange(300) + 5, axis=0)
    for other in (shuffled, renamed, renamed.set_axis(renamed.index.astype(str), axis=0)):
        with pytest.raises(
            FpbenchError, match=r"rows are named differently from those of .*row \d+ is"
        ):
            call(**{**people, moved: other})
