"""Reports from fairlearn's frames, and about the rules of a model."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from fairlearn import metrics as fairlearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, confusion_matrix, recall_score, roc_auc_score
from sklearn.tree import DecisionTreeClassifier
from test_fairness_report import make_people
from test_protecting import assert_true_of

from fpbench import FairnessReport, InputError, assess
from fpbench.data.groups import group_codes
from fpbench.models import RuleList, tree_rules

METRICS = {
    name: getattr(fairlearn, name)
    for name in (
        "selection_rate", "true_positive_rate", "false_positive_rate", "false_negative_rate",
        "true_negative_rate", "count",
    )
}  # fmt: skip


def make_people_of_columns(n, seed, k=2):
    _, predictions, labels, groups = make_people(n, seed, k)
    rng = np.random.default_rng(seed + 1000)
    X = pd.DataFrame({"job": rng.choice(["a", "b", "c"], n), "child": rng.integers(0, 2, n)})
    return X, predictions, labels, groups


def make_frame(people, metrics=METRICS, by=("job",)):
    X, predictions, labels, groups = people
    return fairlearn.MetricFrame(
        metrics=metrics, y_true=labels, y_pred=predictions,
        sensitive_features=pd.Series(groups, name="who"),
        control_features=X[list(by)] if by else None,
    )  # fmt: skip


@pytest.mark.slow
@settings(max_examples=12)
@given(
    n=st.sampled_from([12, 40, 200]),
    seed=st.integers(0, 99),
    k=st.integers(2, 4),
    names=st.lists(st.sampled_from(list(METRICS)), min_size=1, max_size=4, unique=True),
)
@pytest.mark.filterwarnings("ignore")
def test_facts_of_metric_frames_are_true_of_the_people(n, seed, k, names):
    people = make_people_of_columns(n, seed, k)
    if len(set(people[3])) < 2 or names == ["count"]:
        return
    metrics = {name: METRICS[name] for name in names}
    tables = [(), ("job",), ("child",), ("job", "child")]
    frames = [make_frame(people, metrics, by) for by in tables]
    report = FairnessReport.read(frames)
    assert_true_of(report, people[:3], people[3])


@pytest.mark.slow
def test_a_metric_frame_is_the_report_that_it_prints():
    people = make_people_of_columns(300, 0)
    X, predictions, _, groups = people
    frames = [make_frame(people, by=by) for by in ((), ("job",), ("job", "child"))]
    report = FairnessReport.read(frames)
    assert {column.name for column in report.columns} == {"job", "child"}
    same = FairnessReport.from_predictions(
        X.astype(str), predictions, groups, by=["job", "child"], min_cell=0,
        tables=[[], ["job"], ["job", "child"]],
    )  # fmt: skip
    rates = report.protect(metrics=["selection-rate"]).to_frame()
    columns = list(rates.columns)
    one, other = (
        frame[columns].sort_values(columns[:4]).reset_index(drop=True)
        for frame in (rates, same.to_frame())
    )
    pd.testing.assert_frame_equal(one, other, check_dtype=False)
    selected = FairnessReport.read(make_frame(people, fairlearn.selection_rate))
    assert (selected.n < 0).all()
    assert not assess(selected, X, predictions, groups=groups).proven.all()


@pytest.mark.slow
def test_bad_metric_frames_are_refused():
    people = make_people_of_columns(100, 0)
    with pytest.raises(InputError, match="no number of it could be read: 'roc_auc_score' is no"):
        FairnessReport.read(make_frame(people, roc_auc_score))
    both = {"accuracy": accuracy_score, "mine": recall_score}
    names = {"mine": "true-positive-rate", "accuracy": "-"}
    read = FairnessReport.read(make_frame(people, both), names=names)
    assert set(read.metric) == {"true-positive-rate"}
    sizes = FairnessReport.read(make_frame(people, {"count": fairlearn.count}))
    assert set(sizes.metric) == {"people"}
    arrays = make_frame(people, {"cm": confusion_matrix, "TPR": recall_score})
    with pytest.raises(InputError, match="the metric 'cm' of the MetricFrame is an array"):
        FairnessReport.read(arrays)
    assert set(FairnessReport.read(arrays, names={"cm": "-"}).metric) == {"true-positive-rate"}
    renamed = (people[0].rename(columns={"job": "group"}), *people[1:])
    with pytest.raises(
        InputError, match="a control feature, is called 'group', as a column of rep"
    ):
        FairnessReport.read(make_frame(renamed, by=("group",)), group="who")
    nobody = SimpleNamespace(
        by_group=pd.DataFrame({"selection_rate": []}), control_levels=None, sensitive_levels=["sex"]
    )
    with pytest.raises(InputError, match="the MetricFrame has no rows"):
        FairnessReport.read(nobody)
    short = make_frame(people, {"TPR": recall_score, "Selection rate": fairlearn.selection_rate})
    read = FairnessReport.read(short)
    assert set(read.metric) == {"true-positive-rate", "selection-rate"}
    with pytest.raises(InputError, match="a table is a file, .* not list"):
        FairnessReport.read([])
    two = fairlearn.MetricFrame(
        metrics=fairlearn.selection_rate, y_true=people[2], y_pred=people[1],
        sensitive_features=people[0],
    )  # fmt: skip
    crossed = FairnessReport.read(two)
    assert crossed.groups[:2] == ("a x 0", "a x 1")
    with pytest.raises(InputError, match="by different sensitive features: job, child; who"):
        FairnessReport.read([two, make_frame(people)])
    other = (*people[:3], people[3][::-1])
    with pytest.raises(InputError, match="tell different numbers of the same people"):
        FairnessReport.read([make_frame(people), make_frame(other)])


def make_rules():
    return RuleList([([("job", "=", "a")], 1), ([("child", ">", 0)], 1)], default=0)


@pytest.mark.parametrize("k", [2, 3])
def test_rates_by_rule_are_those_of_the_people_who_meet_it(k, tmp_path):
    X, _, labels, groups = make_people_of_columns(300, 1, k)
    model = make_rules()
    predictions = model.predict(X)
    report = FairnessReport.per_rule(
        model, X, predictions, groups, labels=labels, metrics=["selection-rate", "true-positives"]
    )
    frame = report.to_frame()
    assert set(frame["rule"]) == {"", *model.rules.texts}
    mine = (X["job"] == "a") & (groups == "ann")
    row = frame[(frame["rule"] == "job = a") & (frame["group"] == "ann")].iloc[0]
    assert (row["value"], row["n"]) == (1.0, mine.sum())
    people = (X, predictions, labels)  # without a column of rules
    facts = assert_true_of(report, people, groups)
    assert (facts.low == facts.high).all()
    report.to_json(tmp_path / "report.json")
    again = FairnessReport.from_file(tmp_path / "report.json")
    with pytest.raises(InputError, match="no column 'rule', by which slices are cut"):
        again.facts(*people)
    known = again.with_rules(model).facts(*people)
    assert (known.low == facts.low).all()
    assert (known.membership != facts.membership).nnz == 0


def test_rules_are_crossed_with_columns_and_protected():
    X, _, labels, groups = make_people_of_columns(400, 2)
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(
        X[["child"]].assign(x=X.index), labels
    )
    rules = tree_rules(tree)
    people = X[["child"]].assign(x=X.index, job=X["job"])
    applied = rules.apply(people[["child", "x"]])
    named = make_rules()
    report = FairnessReport.per_rule(
        named, X, named.predict(X), groups, by=["job"], order=2, min_cell=0
    )
    assert (report.cells >= 0).all(axis=1).any()
    assert_true_of(report.protect(min_group=5), (X, named.predict(X), labels), groups)
    assert len(set(applied)) == len(rules)


def test_models_without_rules_are_refused():
    X, predictions, _, groups = make_people_of_columns(50, 0)
    with pytest.raises(InputError, match="DecisionTreeClassifier has no rules: give `Rules`"):
        FairnessReport.per_rule(DecisionTreeClassifier(), X, predictions, groups)
    with pytest.raises(InputError, match="a column 'rule' of their own: rename it"):
        FairnessReport.per_rule(make_rules(), X.assign(rule=1), predictions, groups)
    report = FairnessReport.per_rule(make_rules(), X, predictions, groups)
    other = RuleList([([("job", "=", "b")], 1)], default=0)
    with pytest.raises(InputError, match="unknown rule 'job = a'; valid: job = b"):
        report.with_rules(other)
    with pytest.raises(InputError, match="unknown column of the report 'rule'"):
        FairnessReport.from_predictions(X, predictions, groups, by=["job"]).with_rules(other)


@pytest.mark.parametrize(("text", "value"), [("25%", 0.25), ("0.25", 0.25)])
def test_a_metric_that_is_text_is_as_exact_as_it_is_written(text, value):
    frame = fairlearn.MetricFrame(
        metrics={"selection_rate": lambda *_: text},
        y_true=[0, 1], y_pred=[0, 1], sensitive_features=["f", "m"],
    )  # fmt: skip
    report = FairnessReport.read(frame)
    assert (report.value == value).all()
    assert np.allclose(report.within, 0.005)


@pytest.mark.parametrize("noise", [0.01, 0.5, 2.0])
def test_rates_with_weights_of_people_are_named_as_such(noise):
    """Not as rounded, which would invite to read them as rates of whole people."""
    X, predictions, labels, groups = make_people_of_columns(300, 0)
    weights = 1 + noise * np.random.default_rng(0).uniform(size=300)
    measured = {"selection_rate": fairlearn.selection_rate, "count": fairlearn.count}
    frame = fairlearn.MetricFrame(
        metrics=measured, y_true=labels, y_pred=predictions, sensitive_features=groups,
        control_features=X[["job"]], sample_params={"selection_rate": {"sample_weight": weights}},
    )  # fmt: skip
    with pytest.raises(InputError, match=r"row 0, .* weights of people\? Then --map HEADING="):
        FairnessReport.read(frame)
    assert FairnessReport.read(frame, decimals=1).within.all()
    equal = {"selection_rate": {"sample_weight": np.full(300, 2.5)}}
    alike = fairlearn.MetricFrame(
        metrics=measured, y_true=labels, y_pred=predictions, sensitive_features=groups,
        control_features=X[["job"]], sample_params=equal,
    )  # fmt: skip
    FairnessReport.read(alike).facts(X, predictions)


@pytest.mark.parametrize("metric", ["difference", "demographic_parity_difference", "Impact Ratio"])
def test_a_comparison_of_groups_is_named_as_such(metric):
    frame = pd.DataFrame({"group": ["f", "m"], "metric": metric, "value": 0.1})
    with pytest.raises(InputError, match="compares groups, .* give the rate of each group"):
        FairnessReport.from_frame(frame)


def test_two_attributes_are_crossed_as_an_attack_crosses_them():
    X, predictions, _, groups = make_people_of_columns(300, 0)
    two = pd.DataFrame({"sex": groups, "old": np.where(np.arange(300) % 3, "y", "n")})
    names = [f"{sex} x {old}" for sex, old in two.to_numpy()]
    report = FairnessReport.from_predictions(X, predictions, two, by=["job"])
    joined = FairnessReport.from_predictions(X, predictions, names, by=["job"])
    assert report.groups == joined.groups == group_codes(two)[1]
    pd.testing.assert_frame_equal(report.to_frame(), joined.to_frame())
    with pytest.raises(InputError, match=r"one name a person, not of shape \(300, 2\)$"):
        FairnessReport.from_predictions(X, predictions, two.to_numpy(), by=["job"])
    few = [part[:40] for part in (X, predictions, two, names)]
    report = FairnessReport.from_predictions(*few[:3], by=["job"], min_cell=1)
    first, second = (assess(report, *few[:2], groups=given) for given in few[2:])
    assert (first.proven == second.proven).all()
    assert first.leak == second.leak
