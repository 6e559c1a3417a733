"""Verdicts about reports."""

import numpy as np
import pandas as pd
import pytest

import fpbench
from fpbench import DataHome, InputError
from fpbench.auditing import FairnessReport, assess


def make_people(n=400, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    X = pd.DataFrame({name: rng.integers(0, 3, n).astype(str) for name in "abcd"})
    X["likely"] = np.where(rng.random(n) < 0.7, group, rng.integers(0, 2, n)).astype(str)
    predictions = (rng.random(n) < 0.5).astype(int)
    return X, predictions, np.array(["f", "m"])[group]


def make_report(X, predictions, groups, **options):
    return FairnessReport.from_predictions(
        X, predictions, groups, **({"by": list(X), "order": 3, "min_cell": 0} | options)
    )


def test_a_report_that_tells_much_is_not_to_be_published():
    X, predictions, groups = make_people()
    result = assess(make_report(X, predictions, groups), X, predictions, groups=groups)
    truth = (groups == "m").astype(int)
    assert result.proven.sum() > 100
    assert (result.posterior.argmax(axis=1) == truth)[result.proven].all()
    assert result.without == max(truth.mean(), 1 - truth.mean())
    assert result.with_ == (result.posterior.argmax(axis=1) == truth).mean()
    assert result.leak == result.with_ - result.without > 0.2
    assert (result.proven_unsure == result.proven).all()
    assert not result.passes
    first, *rest = str(result).splitlines()
    assert first == result.verdict
    assert first.startswith(f"Do not publish: the group of {result.proven.sum()} of 400 people is")
    assert f"guesses get {100 * result.with_:.1f} % of all people right" in first
    assert "measured on their true groups" in rest[0]


def test_a_report_that_tells_little_is_within_the_limits():
    X, predictions, groups = make_people()
    report = make_report(X, predictions, groups, order=0)
    result = assess(report, X, predictions)
    assert result.passes
    assert not result.proven.any()
    assert result.verdict.startswith(
        "Within the limits (at most 0 proven, a leak of 1.0 points): nobody's"
    )
    assert "as the beliefs expect" in str(result)
    # The shares of the groups are in the report.
    assert result.posterior.mean(axis=0)[1] == pytest.approx((groups == "m").mean(), abs=0.001)


@pytest.mark.parametrize("metric", ["selection-rate", "selected"])
def test_a_report_of_no_cells_tells_nothing(metric):
    X, predictions, groups = make_people()
    report = make_report(X, predictions, groups, min_cell=401, metrics=[metric])
    assert len(report) == 0
    beliefs = np.tile([0.3, 0.7], (400, 1))
    result = assess(report, X, predictions, groups=groups, beliefs=beliefs)
    assert result.leak == 0
    assert result.passes
    assert np.allclose(result.posterior, beliefs)


def test_limits_decide():
    X, predictions, groups = make_people()
    report = make_report(X, predictions, groups, order=1, min_cell=10)
    tells = assess(report, X, predictions, groups=groups)
    assert tells.leak > 0.1
    assert not tells.passes
    loose = assess(report, X, predictions, groups=groups, max_leak=0.5, max_proven=400)
    assert loose.passes


def test_better_beliefs_leave_less_to_leak():
    X, predictions, groups = make_people()
    report = make_report(X, predictions, groups, order=1, min_cell=10)
    share = np.where(X["likely"] == "1", 0.85, 0.15)
    beliefs = np.stack([1 - share, share], axis=1)
    blind = assess(report, X, predictions, groups=groups)
    knowing = assess(report, X, predictions, groups=groups, beliefs=beliefs)
    assert knowing.without > blind.without + 0.2
    assert knowing.leak < blind.leak
    assert not knowing.proven_unsure[(share > 0.95) | (share < 0.05)].any()


def test_noise_is_assessed_too():
    X, predictions, groups = make_people()
    metrics = ("selected", "rejected")
    leaks = []
    for epsilon in (0.5, 1000.0):
        options = {"noise": "laplace", "epsilon": epsilon, "rng": 0, "min_cell": 5, "order": 2}
        report = make_report(X, predictions, groups, metrics=metrics, **options)
        result = assess(report, X, predictions, groups=groups)
        assert not result.proven.any()
        assert "noisy counts" in str(result)
        leaks.append(result.leak)
    assert leaks[0] < leaks[1] - 0.05


def test_groups_of_others_are_refused():
    X, predictions, groups = make_people()
    report = make_report(X, predictions, groups, order=1)
    with pytest.raises(
        InputError, match=r"groups, row 7: 'x' is no group of the report; valid: f, m"
    ):
        assess(report, X, predictions, groups=np.where(np.arange(400) == 7, "x", groups))
    with pytest.raises(InputError, match="the report is not of these groups: .* people are 'f'"):
        assess(report, X, predictions, groups=groups[::-1])
    with pytest.raises(InputError, match="groups must be 400 names"):
        assess(report, X, predictions, groups=groups[:9])
    with pytest.raises(InputError, match=r"a probability of each of f, m for each person of X"):
        assess(report, X, predictions, beliefs=np.full((400, 3), 1 / 3))


def test_husbands_and_wives_of_adult_are_proven_by_one_way_slices(adult_home: DataHome):
    """The numbers of a prototype: 6,853 of another third were proven by the same slices."""
    table = fpbench.dataset("adult", sensitive="sex")
    third = np.random.default_rng(0).permutation(len(table))[: len(table) // 3]
    X = table.features.iloc[third].reset_index(drop=True)
    truth = table.codes[third]
    groups = np.array(table.groups)[truth]
    labels = table.labels[third]
    metrics = ("selected", "rejected")
    report = FairnessReport.from_predictions(X, labels, groups, by=list(X), metrics=metrics)
    husbands = X["relationship"].isin(["Husband", "Wife"]).to_numpy()
    result = assess(report, X, labels, groups=groups, error=0.1, seconds=2)
    assert 6500 < result.proven.sum() < 7500
    assert husbands[result.proven].mean() > 0.95
    assert (result.posterior.argmax(axis=1) == truth)[result.proven].all()
    assert result.leak > 0.1
    assert "Do not publish" in str(result)
