"""What a data scientist gets wrong with models and people: one sentence that says the mend."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import LinearSVC

import fpbench
from fpbench import FairnessReport, InputError
from fpbench.privacy import Curator

N = 300
RNG = np.random.default_rng(5)
SEX = RNG.choice(["f", "m"], N)
Y = (RNG.random(N) < 0.3 + 0.3 * (SEX == "m")).astype(int)
HIRED = np.where(Y, "yes", "no")
X = pd.DataFrame(
    {
        "job": np.where(RNG.random(N) < 0.1, None, RNG.choice(["cook", "nurse"], N)),
        "age": np.where(RNG.random(N) < 0.1, np.nan, RNG.normal(40, 9, N).round()),
        "hours": RNG.normal(36, 8, N) + 3 * Y,
    }
)
HOURS = X[["hours"]]
COLUMNS = make_column_transformer((OneHotEncoder(), ["job"]), (SimpleImputer(), ["age", "hours"]))
PIPELINE = make_pipeline(COLUMNS, LogisticRegression()).fit(X, HIRED)
MODEL = LogisticRegression().fit(HOURS, Y)
SCORES = MODEL.predict_proba(HOURS)[:, 1]
THREE = LogisticRegression().fit(HOURS, np.resize(["a", "b", "c"], N))
SPARSE = sparse.csr_matrix(HOURS.to_numpy())


class Keras:
    """Gives scores (n, columns) as predictions."""

    def __init__(self, columns=1):
        self.columns = columns

    def predict(self, people):
        return np.stack([SCORES, 1 - SCORES], axis=1)[:, : self.columns]


class Decides:
    """Has no predict."""

    def decision_function(self, people):
        return SCORES - 0.5


def attack(model=MODEL, people=HOURS, y=Y, groups=SEX, **options):
    return fpbench.attack(model, people, y, groups, **({"seeds": 1} | options))


def audit(model=MODEL, people=HOURS, groups=SEX, **options):
    return fpbench.audit(model, people, groups, resamples=0, **options)


def report(predictions=Y, groups=SEX, people=X, **options):
    return FairnessReport.from_predictions(
        people, predictions, groups, **({"by": ["job"]} | options)
    )


def similar(model=MODEL, people=HOURS, **options):
    return fpbench.auditing.individual_fairness(model, people, **({"tau": 0.1} | options))


unfair = fpbench.auditing.unfairness
THRESHOLD = "to turn scores into predictions, give threshold=0.5"
FIRST = r"turn scores into predictions first: \(scores >= 0.5\)"
COMES_FIRST = "the model comes first"
NO_PREDICT = "model: .* has no predict; "
WHICH = "say which counts as 1, positive='no' or positive='yes'"


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        # Scores for predictions.
        (lambda: audit(SCORES), THRESHOLD),
        (lambda: audit(SCORES, epsilon=1.0), THRESHOLD),
        (lambda: unfair(SEX, SCORES), FIRST),
        (lambda: report(SCORES), THRESHOLD),
        (lambda: similar(SCORES), FIRST),
        (lambda: fpbench.correct(SEX, SCORES), FIRST),
        (lambda: fpbench.assess(report(), X, SCORES, groups=SEX), THRESHOLD),
        (lambda: audit(Keras()), THRESHOLD),
        (lambda: audit(LinearRegression().fit(HOURS, Y)), THRESHOLD),
        (lambda: audit(Keras(2)), r"two columns of scores.*\(scores\[:, 1\] >= 0.5\)"),
        (lambda: attack(2 * MODEL.predict_proba(HOURS)), "must have one dimension"),
        (lambda: unfair(SEX, MODEL.predict_proba(HOURS)), "two columns of scores"),
        # No model.
        (lambda: attack(Decides()), r"a Decides has no predict.*\(model.decision_function\(X\) > 0"),
        (lambda: audit(Decides()), NO_PREDICT),
        (lambda: similar(Decides()), NO_PREDICT),
        (lambda: attack(MODEL.predict), f"{NO_PREDICT}of a function, give what it predicts"),
        (lambda: audit(lambda people: Y), f"{NO_PREDICT}of a function"),
        (lambda: audit("model.pkl"), "model: 'model.pkl' has no predict; give a fitted model"),
        (lambda: attack(None), "model: None has no predict"),
        (lambda: attack(SimpleImputer()), "a SimpleImputer has no predict"),
        (lambda: attack(LinearSVC().fit(HOURS, Y), adversary="a2-proba"), "has no predict_proba"),
        (lambda: attack(LogisticRegression()), "NotFittedError"),
        # Arguments in another order.
        (lambda: attack(HOURS, MODEL), COMES_FIRST),
        (lambda: audit(HOURS, MODEL), COMES_FIRST),
        (lambda: similar(HOURS, MODEL), COMES_FIRST),
        (lambda: attack(y=SEX, groups=Y), "are labels and groups swapped"),
        (lambda: attack(Y, y=SEX, groups=Y), "among them, but labels are 'f', 'm'; both need"),
        (lambda: unfair(Y, SEX), "are groups and predictions swapped"),
        (lambda: attack(people=Y, y=HOURS.assign(b=1)), "labels: must have one dimension"),
        # Labels.
        (lambda: audit(PIPELINE, X), WHICH),
        (lambda: audit(THREE), "to look at one of . values, pass"),
        (lambda: unfair(SEX, np.arange(N) % 3), "pass .values == 2. for instance"),
        (lambda: attack(PIPELINE, X, Y), "as the model has .'no', 'yes'., not [01], [01]"),
        (lambda: attack(HIRED, y=Y), "labels are .*; both need the same values"),
        (lambda: attack(y=np.where(np.arange(N) == 3, np.nan, Y)), "labels: row 3 is missing"),
        (lambda: audit(labels=np.where(np.arange(N) == 3, np.nan, Y)), "labels: row 3 is missing"),
        (lambda: attack(y="hired"), r"not 'hired'; if that is a column of X, pass X\['hired'\]"),
        (lambda: audit(labels="hired"), r"if that is a column of X, pass X\['hired'\]"),
        (lambda: attack(y=Y[:-1]), "labels: has 299 values, but X has 300 rows"),
        *[
            (lambda ask=ask, wrong=wrong: ask(wrong), "positive: must be one of the values of")
            for ask in (
                lambda positive: attack(PIPELINE, X, HIRED, positive=positive),
                lambda positive: audit(PIPELINE, X, positive=positive),
                lambda positive: unfair(SEX, HIRED, positive=positive),
            )
            for wrong in (pd.NA, np.nan, ["yes"])
        ],
        (lambda: audit(positive=np.int64(474)), "positive: 474 is not among predictions of the"),
        # Groups.
        (lambda: attack(groups=np.where(SEX == "f", None, SEX)), r"groups: .* fillna\('unknown'\)"),
        (lambda: report(groups=[None, *SEX[1:]]), r"groups, row 0.* fillna\('unknown'"),
        (lambda: attack(groups="sex"), "groups: X has no column 'sex'; valid: hours"),
        (lambda: report(groups="jobs"), "groups: X has no column 'jobs'; did you mean 'job'?"),
        (lambda: report(groups=["job", "sex"]), "groups: X has no column 'sex'"),
        (lambda: audit(Y, HOURS.to_numpy(), "sex"), "'sex' names a column, but X is no data frame"),
        (lambda: attack(groups=RNG.random(N)), "groups holds 300 different numbers.*pandas.cut"),
        (lambda: attack(groups=None), "groups must be one value per person"),
        (lambda: attack(groups=pd.get_dummies(SEX).to_numpy()), r"not of shape \(300, 2\)"),
        # People.
        (lambda: attack(PIPELINE, X.to_numpy(), HIRED, positive="yes"), "give one with its columns"),
        (lambda: audit(PIPELINE, X.to_numpy()), "fitted to a data frame: give one with its columns"),
        (lambda: attack(people=SPARSE), r"not csr_matrix: give X.toarray\(\)"),
        (lambda: similar(Y, SPARSE), r"give X.toarray\(\)"),
        (lambda: similar(Y, X), "missing values, first in row .*; fill them, or leave"),
        (lambda: attack(Y, pd.DataFrame({1: Y, "1": Y})), "X has more than one column '1': rename"),
        # Whom the adversary knows, seeds, components.
        (lambda: attack(known=50), "known: must be a share between 0 and 1, not 50; 50 people are 0.167"),
        (lambda: attack(known=np.arange(50)), r"give numpy.isin\(range\(300\), rows\)"),
        (lambda: attack(known=np.arange(N) % 2), r"give \(known == 1\)"),
        (lambda: attack(known=[True] * N), "nobody is left to attack"),
        (lambda: attack(known=0.01), "3 of 300 people are too few to learn from; use 10"),
        (lambda: attack(seeds="3"), "seeds must be their number, such as 6, or a list of them"),
        (lambda: attack(adversary=MODEL), "must be a name or an adversary, not LogisticRegression"),
        (lambda: attack(disclosure="equal_opportunity"), "is a metric; to publish it, give"),
        (lambda: audit(metric="statistical-partiy"), "did you mean 'statistical-parity'"),
        (lambda: audit(metric="equalized-odds"), "a plain audit has all: leave it out, or give an"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:X has feature names|X does not have valid")
def test_a_mistake_is_answered_with_its_mend(mistake, message):
    with pytest.raises(InputError, match=message) as error:
        mistake()
    assert "np." not in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: attack(MODEL, HOURS[:0], Y[:0], SEX[:0]),
        lambda: attack(Y[:0], [], [], []),
        lambda: audit(MODEL, HOURS[:0], SEX[:0]),
        lambda: audit(Y[:0], None, SEX[:0], epsilon=1.0),
        lambda: unfair([], []),
        lambda: unfair(pd.DataFrame({"sex": []}), []),
        lambda: similar(MODEL, HOURS[:0]),
        lambda: similar(Y[:0], np.zeros((0, 2))),
        lambda: report(Y[:0], SEX[:0], X[:0]),
        lambda: fpbench.assess(report(), X[:0], Y[:0], groups=SEX[:0]),
        lambda: fpbench.correct([], []),
        lambda: Curator([]),
    ],
)
def test_nobody_is_one_error(ask):
    with pytest.raises(InputError, match="is empty: there must be people"):
        ask()


@pytest.mark.filterwarnings("ignore:X does not have valid")
def test_one_column_is_as_good_as_its_values():
    column = pd.DataFrame({"y": Y})
    expected = attack().frame()["without_accuracy"][0]
    for y, groups in ((column, SEX[:, None]), (Y[:, None], pd.DataFrame({"sex": SEX}))):
        assert attack(y=y, groups=groups).frame()["without_accuracy"][0] == expected
    assert unfair(SEX[:, None], column) == unfair(SEX, Y)
    one = report(column, pd.DataFrame({"sex": SEX}))
    assert (one.value == report().value).all()
    plain = audit(labels=Y).by_group
    assert audit(labels=column).by_group.equals(plain)
    assert audit(MODEL, SPARSE, SEX, labels=Y).by_group.equals(plain)


def test_a_column_that_cuts_no_slice_is_named():
    people = X.assign(name=[f"n{i}" for i in range(N)], one=1)
    some = report(people=people, by=["name", "one", "job"], order=1)
    assert dict(some.left_out) == {
        "one": "has one value", "name": "no value has min_cell = 10 people"
    }  # fmt: skip
    assert str(some).endswith(
        "left out: one (has one value), name (no value has min_cell = 10 people)"
    )
    assert not report(people=people, by=["name", "job"], min_cell=1).left_out
    assert not report(people=people, by=["name", "job"], tables=[["job"]]).left_out
    assert "left out" not in str(report())
