"""`fpbench.audit` without epsilon: a table by group, as fairlearn's MetricFrame has it."""

import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import (
    MetricFrame,
    demographic_parity_difference,
    equalized_odds_difference,
    false_positive_rate,
    selection_rate,
    true_positive_rate,
)
from sklearn.linear_model import LogisticRegression

import fpbench
from fpbench import InputError


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    n = 400
    sex = rng.choice(["a man", "a woman", "not said"], n, p=[0.5, 0.4, 0.1])
    X = rng.normal(size=(n, 2)) + (sex == "a man")[:, None]
    y = (X.sum(axis=1) + rng.normal(size=n) > 0.5).astype(int)
    return LogisticRegression().fit(X, y), X, y, sex


def test_the_rates_are_those_of_fairlearn(people):
    model, X, y, sex = people
    audited = fpbench.audit(model, X, sex, labels=y, rng=0)
    predicted = model.predict(X)
    metrics = {"selection_rate": selection_rate, "true_positive_rate": true_positive_rate,
               "false_positive_rate": false_positive_rate}  # fmt: skip
    theirs = MetricFrame(metrics=metrics, y_true=y, y_pred=predicted, sensitive_features=sex)
    pd.testing.assert_frame_equal(
        audited.by_group[[*metrics]], theirs.by_group, check_names=False, check_index_type=False
    )
    assert audited.by_group["people"].sum() == len(y)
    about = {"y_true": y, "y_pred": predicted, "sensitive_features": sex}
    assert audited.gaps["gap"]["independence"] == demographic_parity_difference(**about)
    assert audited.gaps["gap"]["separation"] == equalized_odds_difference(**about)
    for frame, name in ((audited.by_group, "selection_rate"), (audited.gaps, "ratio")):
        assert (frame[f"{name}_low"] <= frame[name]).all()
        assert (frame[name] <= frame[f"{name}_high"]).all()
    shown = str(audited)
    assert shown.splitlines()[0].split() == ["rate", "a", "man", "a", "woman", "not", "said"]
    assert "95 % intervals, by bootstrap of the people" in shown
    assert "<table>" in audited._repr_html_()


def test_without_labels_only_predictions_are_compared(people):
    model, X, _, sex = people
    audited = fpbench.audit(model.predict(X), None, sex, resamples=0)
    assert [*audited.by_group] == [
        "people", "selection_rate", "selection_rate_low", "selection_rate_high",
    ]  # fmt: skip
    assert [*audited.gaps.index] == ["independence"]
    assert audited.gaps["gap_low"].isna().all()
    assert " to " not in str(audited).partition("intervals")[0]


@pytest.mark.parametrize(("change", "message"), [
    ({"mechanism": "gaussian"},
     "mechanism: is for private audits only: leave it out, or give an epsilon"),
    ({"policy": "clip"}, "policy: is for private audits only"),
    ({"per_rule": True}, "per_rule: is for private audits only"),
    ({"labels": [0, 1]}, "labels: has 2 people, but the model predicts for 400"),
    ({"confidence": 2.0}, "confidence"),
    ({"resamples": -1}, "resamples"),
    ({"groups": ["f", "m"]}, "groups: has 2 people, but the model predicts for 400"),
    ({"groups": ["f"] * 400}, "group"),
    ({"groups": fpbench.privacy.Curator(["f", "m"])}, "epsilon: is missing, but a curator"),
])  # fmt: skip
def test_what_is_wrong_is_said(people, change, message):
    model, X, _, sex = people
    groups = change.pop("groups", sex) if "groups" in change else sex
    with pytest.raises(InputError, match=message):
        fpbench.audit(model, X, groups, **change)


def test_without_noise_the_same_is_said_each_time(people):
    model, X, _, sex = people
    assert str(fpbench.audit(model, X, sex)) == str(fpbench.audit(model, X, sex))
    assert str(fpbench.audit(model, X, sex)) != str(fpbench.audit(model, X, sex, rng=1))
    private = [str(fpbench.audit(model, X, sex, epsilon=1.0)) for _ in range(2)]
    assert private[0] != private[1]
