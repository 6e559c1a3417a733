"""People about whom a report makes the reader as good as certain, though it proves nothing."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reports import make_people, make_report

from fpbench import FairnessReport, InputError, assess
from fpbench.reports.assessments.least_change import _EPSILONS


def make_telling(seed=0):
    """People of whom an exact report by two columns proves some."""
    X, predictions, groups = make_people(60, seed=seed)
    return X, predictions, groups, make_report(X, predictions, groups, order=2, by=["a", "b"])


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_a_label_of_noise_does_not_turn_the_verdict(noise):
    """The exact table, called noisy: nothing is proven, and as much is known."""
    X, predictions, groups, report = make_telling()
    limits = {"groups": groups, "beliefs": "shares", "max_leak": "100%", "seconds": 600}
    exact = assess(report, X, predictions, **limits)
    assert exact.proven.sum() > 5
    frame = report.to_frame().assign(noise=f"{noise} 0.0001")
    same = assess(FairnessReport.from_frame(frame), X, predictions, **limits)
    assert not same.proven.any()
    assert (same.sure | ~exact.proven).all()
    assert not same.passes
    assert same.verdict.startswith("Do not publish: nobody's group is proven by it, that of ")
    assert "is sure (a belief above 99.9 %)" in same.verdict
    measures = same.to_json()["measures"]
    assert (measures["proven"], measures["sure"]) == (0, same.sure.sum())
    check = next(c for c in same.to_json()["checks"] if c["name"] == "proven")
    assert (check["outcome"], check["measured"]) == ("not met", same.sure.sum())
    assert assess(
        FairnessReport.from_frame(frame), X, predictions, max_proven=int(same.sure.sum()), **limits
    ).passes


@pytest.mark.slow
@settings(max_examples=5)
@given(st.integers(0, 1000))
def test_a_change_is_another_table(seed):
    """Of those that are refused none is recommended under another name."""
    X, predictions, groups, report = make_telling(seed)
    result = assess(
        report, X, predictions, groups=groups, beliefs="shares", max_leak="100%", search=True,
        seconds=600, rng=seed,
    )  # fmt: skip
    if result.passes:
        return
    for change in result.change.passing:
        changed = change.report
        same = len(changed) == len(report)
        assert (
            not same
            or not np.array_equal(changed.value, report.value, equal_nan=True)
            or (changed.suppressed != report.suppressed).any()
        )
        again = assess(
            changed, X, predictions, groups=groups, beliefs="shares", max_leak="100%", seconds=600
        )
        assert again.proven.sum() + again.sure.sum() == 0
    assert max(_EPSILONS) == 10


def test_people_with_sure_beliefs_are_not_counted_as_made_sure():
    X, groups = pd.DataFrame({"a": list("xxyy")}), np.array(list("mmff"))
    report = make_report(X, [1, 1, 1, 1], groups, order=1).to_frame().assign(noise="laplace 0.01")
    for share, sure in ((0.9, 4), (0.9995, 0)):
        beliefs = [[1 - share, share]] * 2 + [[share, 1 - share]] * 2
        result = assess(
            FairnessReport.from_frame(report), X, [1, 1, 1, 1], groups=groups, beliefs=beliefs
        )
        assert result.sure.sum() == sure
        assert result.to_frame()["sure"].sum() == sure


@pytest.mark.parametrize("sure", [1, "0.3", "101%", "much", 0.2])
def test_a_belief_that_counts_is_a_share(sure):
    X, predictions, _, report = make_telling()
    with pytest.raises(InputError, match=r"sure \(--sure\)"):
        assess(report, X, predictions, sure=sure)
