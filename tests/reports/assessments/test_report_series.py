"""Reports that are assessed together."""

import numpy as np
import pandas as pd
import pytest
from reports import make_people, make_report

from fpbench import InputError, assess
from fpbench.claims import combine_facts
from fpbench.correction import propagate
from fpbench.reports.assessments.input_files import ColumnNames

STAY = ~np.isin(np.arange(300), (5, 17))


def publish(**options):
    """May's report, June's without two people, and everything else that is assessed."""
    X, predictions, groups = make_people(300)
    options = {"order": 1, "min_cell": 10} | options
    may = make_report(X, predictions, groups, **options)
    left = X[STAY].reset_index(drop=True)
    june = make_report(left, predictions[STAY], groups[STAY], **options)
    both = np.column_stack([predictions, np.where(STAY, predictions, np.nan)])
    return may, june, X, predictions, both, groups


@pytest.mark.slow
def test_two_reports_prove_who_left_and_the_verdict_says_that_neither_does_alone():
    may, june, X, predictions, both, groups = publish()
    result = assess({"May": may, "June": june}, X, both, groups=groups)
    assert np.flatnonzero(result.proven).tolist() == [5, 17]
    assert (result.posterior.argmax(axis=1) == (groups == "m"))[~STAY].all()
    assert [(one.name, one.people, one.proven) for one in result.reports] == [
        ("May", 300, 0), ("June", 298, 0)
    ]  # fmt: skip
    for name, report, X_, p, own in (
        ("May", may, X, predictions, groups),
        ("June", june, X[STAY], predictions[STAY], groups[STAY]),
    ):
        alone = assess(report, X_.reset_index(drop=True), p, groups=own)
        listed = next(one for one in result.reports if one.name == name)
        assert alone.proven.sum() == listed.proven
    assert result.verdict.startswith(
        "Do not publish: the group of 2 of 300 people is proven by the 2 reports together (alone: "
        "0 by May, 0 by June), and guesses"
    )
    assert {cell.name.partition(":")[0] for cell in result.riskiest} <= {"May", "June"}
    record = result.to_json()
    assert [one["name"] for one in record["reports"]] == ["May", "June"]
    for cell, told in zip(result.riskiest, record["riskiest"], strict=True):
        name = told["report"]
        assert cell.name.startswith(f"{name}: ")
        report = {"May": may, "June": june}[name]
        assert report.describe_slice(cell.row) == cell.name.partition(": ")[2].rpartition(",")[0]


def test_it_reads_what_combined_facts_tell():
    may, june, X, predictions, both, groups = publish(order=2)
    left = X[STAY].reset_index(drop=True)
    told = [(may.facts(X, predictions), np.arange(300))]
    told.append((june.facts(left, predictions[STAY]), np.flatnonzero(STAY)))
    expected = propagate(combine_facts(told).facts)
    result = assess([may, june], X, both, groups=groups)
    assert (propagate(result.facts) == expected).all()
    assert result.facts.name(0).startswith("report 1: ")


@pytest.mark.parametrize("as_frames", [True, False])
@pytest.mark.parametrize("given", [False, True])
def test_people_in_no_report_do_not_count(as_frames, given):
    """Of a series with people who left before, all rows may be given: these dilute no leak."""
    may, june, X, _, both, groups = publish(by=["a", "likely"])
    away = np.arange(400) % 4 == 3
    rows = np.cumsum(~away) - 1
    people, predictions = X.iloc[rows].reset_index(drop=True), np.where(
        away[:, None], np.nan, both[rows]
    )  # fmt: skip
    beliefs = np.random.default_rng(0).dirichlet((9, 9), 400) if given else None
    options = {"groups": groups[rows], "beliefs": beliefs, "seconds": 600}
    if as_frames:
        options["groups"] = pd.Series(groups[rows], index=range(9, 409))
        predictions = pd.DataFrame(predictions, index=range(9, 409))
        people.index = range(9, 409)
    result = assess([may, june], people, predictions, **options)
    own = {} if beliefs is None else {"beliefs": beliefs[~away]}
    alone = assess([may, june], X, both, groups=groups, seconds=600, **own)
    assert (result.verdict, result.limit) == (alone.verdict, alone.limit)
    assert "of 300 people" in result.verdict
    assert result.to_json()["people"] == 300
    for name in ("proven", "proven_unsure", "prior", "posterior"):
        assert (getattr(result, name)[~away] == getattr(alone, name)).all()
    assert not result.proven[away].any()
    assert (result.posterior[away] == result.prior[away]).all()
    assert beliefs is None or (result.prior == beliefs).all()
    assert result.facts.people == len(result.to_frame()) == 400


def test_one_report_in_a_list_may_leave_people_out():
    may, _, X, _, both, groups = publish(order=0)
    row = [0, *range(300)]
    again = np.r_[np.nan, both[:, 0]][:, None]
    result = assess([may], X.iloc[row], again, groups=groups[row])
    assert result.people == 300
    assert result.verdict == assess(may, X, both[:, 0], groups=groups).verdict


@pytest.mark.slow
def test_a_model_that_was_trained_again_has_other_predictions_of_the_same_people():
    X, predictions, groups = make_people(300)
    again = np.where(np.arange(300) % 7 == 0, 1 - predictions, predictions)
    reports = [make_report(X, p, groups, order=1) for p in (predictions, again)]
    both = pd.DataFrame({"first": predictions, "second": again})
    result = assess(reports, X, both, groups=groups)
    assert result.with_ >= max(
        assess(report, X, p, groups=groups).with_
        for report, p in zip(reports, (predictions, again), strict=True)
    )


@pytest.mark.slow
def test_only_the_last_report_is_changed_and_only_if_that_can_help():
    may, june, X, _, both, groups = publish(by=["likely"])
    limits = {"max_leak": "100%", "max_proven": 0, "search": True, "seconds": 30, "rng": 0}
    limits["beliefs"] = "shares"
    result = assess({"May": may, "June": june}, X, both, groups=groups, **limits)
    assert result.change.cheapest is not None
    assert f"The least change of June that passes: {result.change.cheapest.words}" in " ".join(
        str(result).split()
    )
    mild = {"May": may, "June": result.change.cheapest.report}
    assert assess(mild, X, both, groups=groups, beliefs="shares", max_leak="100%").passes
    never = assess([may, june], X, both, groups=groups, **{**limits, "max_leak": 0.0})
    assert never.change.attacks == 0
    assert "an earlier report alone exceeds the limits" in str(never)


def test_noise_of_all_reports_adds_up():
    noise = {"noise": "discrete-laplace", "epsilon": 0.2, "rng": 0, "min_cell": 0}
    may, june, X, predictions, both, groups = publish(**noise)
    shares = {"groups": groups, "beliefs": "shares"}
    result = assess([may, june], X, both, **shares)
    alone = assess(may, X, predictions, **shares)
    assert not result.proven.any()
    assert result.private_limit > alone.private_limit


def test_known_people_have_one_column_of_predictions_by_either_name():
    names = ColumnNames(predictions=("may", "june"))
    for column in ("june", "prediction"):
        assert names.find("prediction", pd.DataFrame(columns=["a", column])) == column
    assert names.find("prediction", pd.DataFrame(columns=["a"])) == "may"  # named as missing


@pytest.mark.parametrize(("predictions", "words"), [
    (lambda both: both[:5], r"predictions of 2 reports must be \(300,\), if everybody"),
    (lambda both: both.T, r"or \(300, 2\), missing where a person is not in a report"),
    (lambda both: np.add(both, [0, 1]), "predictions of report 2, row .*: 2.0 is neither 0 nor 1"),
    (lambda both: np.where(np.arange(300)[:, None] == 3, np.nan, both), "other people"),
    (lambda both: both * [1, np.nan], "predictions: nobody is in report 2"),
    (lambda both: both[:, ::-1], "report 1: row 0, column 'n': .* other people"),
])  # fmt: skip
def test_predictions_that_do_not_fit_are_refused(predictions, words):
    may, june, X, _, both, _ = publish()
    with pytest.raises(InputError, match=words):
        assess([may, june], X, predictions(both))


def test_reports_of_other_groups_or_nothing_are_refused():
    may, _, X, _, both, groups = publish()
    named = {"m": "man", "f": "woman"}
    other = make_report(X, np.nan_to_num(both[:, 1]).astype(int), [named[g] for g in groups])
    with pytest.raises(InputError, match="report 2 is by the groups man, woman, and report 1 by f"):
        assess([may, other], X, both)
    with pytest.raises(InputError, match="a FairnessReport, not int"):
        assess([may, 3], X, both)
    with pytest.raises(InputError, match="there is no report to assess"):
        assess([], X, both)
