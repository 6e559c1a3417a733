"""What readers can tell of suppressed numbers, against all groups of people that are possible."""

import math
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_worlds import COUNTED, list_worlds
from reports import make_people, make_report
from scipy.sparse import csr_array

from fpbench import FairnessReport, InputError, assess
from fpbench.correction import propagate
from fpbench.correction.facts.count_ranges import find_ranges
from fpbench.correction.facts.worlds import Worlds, find_worlds
from fpbench.reports.assessments.hidden_numbers import find_hidden, judge_ranges
from fpbench.reports.assessments.report_series import ReportSeries

HIDING = "min_group", "complementary", "series"


def list_hidden(reports, X, shown, labels, names):
    """Members and group of each suppressed number, read from the published frames."""
    numbers = set()
    for report, predictions in zip(reports, shown.T, strict=True):
        for row in report.to_frame().to_dict("records"):
            if not math.isnan(row["value"]) or row["n"] == 0:
                continue
            label, prediction = COUNTED[row["metric"]]
            inside = ~np.isnan(predictions)
            for name in X:
                if row.get(name):
                    inside = inside & (X[name] == row[name]).to_numpy()
            if label is not None:
                inside = inside & (labels == label)
            for p in (0, 1) if prediction is None else (prediction,):
                members = inside & (predictions == p)
                if members.any():
                    numbers.add((tuple(np.flatnonzero(members)), names.index(row["group"])))
    return numbers


def check_numbers(seeds, mode):
    """Ranges are those of enumeration, and so is what is known; how many numbers there were."""
    tried = 0
    for seed in seeds:
        try:
            reports, X, shown, labels, groups, names, worlds = list_worlds(seed, mode)
            series = ReportSeries.of(reports, shown[:, 0] if len(reports) == 1 else shown, len(X))
        except InputError:  # parameters that exclude each other, or a person who is in no report
            continue
        read, truth = series.read(X, labels), groups if seed % 2 else None
        possible, until = propagate(read.facts), time.perf_counter() + 600
        worlds_known = Worlds.know(possible, truth)
        if seed % 4 < 2:
            worlds_known = find_worlds(read.facts, possible, truth, until)
        found = find_hidden(read, worlds_known, truth, 0.1, until)
        own = list_hidden(reports, X, shown, labels, names)
        assert (0 if found is None else len(found)) == len(own), (seed, mode)
        if found is None:
            continue
        sets = np.zeros((len(own), len(X)), bool)
        for row, (members, _) in zip(sets, own, strict=True):
            row[list(members)] = True
        group = np.array([g for _, g in own])
        mine, k = list(zip(sets, group, strict=True)), len(names)
        counts = np.array([(worlds[:, row] == g).sum(axis=1) for row, g in mine])
        ends = counts.min(axis=1), counts.max(axis=1)
        ranges = find_ranges(
            read.facts, possible, csr_array(sets.astype(np.int8)),
            groups[None] if truth is not None else np.zeros((0, len(X)), int),
            lambda _, __, k=k: np.ones(k, bool), until,
        )  # fmt: skip
        at = np.arange(len(own)), group
        low, high, least, most = (
            end[at] for end in (ranges.low, ranges.high, ranges.least, ranges.most)
        )
        assert (low <= ends[0]).all() and (high >= ends[1]).all(), (seed, mode)
        if read.facts.loose:
            continue
        assert (low == ends[0]).all() and (least == ends[0]).all(), (seed, mode)
        assert (high == ends[1]).all() and (most == ends[1]).all(), (seed, mode)
        assert not found.undecided.any(), (seed, mode)
        true = None
        if truth is not None:
            true = np.array([(groups[row] == g).sum() for row, g in mine])
        known = judge_ranges(*(end.astype(float) for end in ends), true, sets.sum(axis=1), 0.1)
        assert found.judged.sum(axis=1).tolist() == known.sum(axis=1).tolist(), (seed, mode)
        tried += len(own)
    return tried


@pytest.mark.parametrize("mode", HIDING)
def test_suppressed_numbers_of_small_reports_are_known_as_enumeration_says(mode):
    assert check_numbers(range(12), mode) > 20


@pytest.mark.slow
@pytest.mark.parametrize("mode", HIDING)
def test_suppressed_numbers_of_many_small_reports_are_known_as_enumeration_says(mode):
    assert check_numbers(range(2000, 2240), mode) > 1000


@given(
    st.integers(1, 30), st.data(), st.one_of(st.none(), st.sampled_from([0.0, 0.05, 0.1, 0.5])),
    st.booleans(),
)  # fmt: skip
def test_what_is_known_of_a_range_is_as_defined(size, data, protect, given_truth):
    low = data.draw(st.integers(0, size))
    high = data.draw(st.integers(low, size))
    true = data.draw(st.integers(low, high)) if given_truth else (low + high) / 2
    judged = judge_ranges(
        np.array([low * 1.0]), np.array([high * 1.0]), np.array([true * 1.0]) if given_truth else None,
        np.array([size]), protect,
    )[:, 0].tolist()  # fmt: skip
    every = range(low, high + 1)
    unprotected = len(every) == 1 or not (
        min(every) <= (1 - (protect or 0)) * true + 1e-9
        and (max(every) >= (1 + (protect or 0)) * true - 1e-9 or max(every) == size)
    )
    assert judged == [
        len(every) == 1, all(abs(x - true) <= 1 for x in every),
        all(abs(x - true) <= true / 10 + 1e-9 for x in every), protect is not None and unprotected,
    ]  # fmt: skip
    inner = judge_ranges(np.array([np.inf]), np.array([-np.inf]), None, np.array([size]), protect)
    assert inner[:3].all() and inner[3, 0] == (protect is not None)


def make_margins(seed, women=3):
    """People of four jobs, with few women in the first, and many of each prediction elsewhere."""
    rng = np.random.default_rng(seed)
    person = np.arange(1200)
    groups = np.where(np.where(person < 300, person < women, person % 2), "f", "m")
    predictions = np.where(person < 300, rng.integers(0, 2, 1200), person // 2 % 2)
    flips = rng.random(1200) < 0.2
    return pd.DataFrame({"job": np.repeat(list("pqrs"), 300)}), predictions ^ flips, groups


def bound_hidden(report, X, predictions, groups, protect=0.1):
    read = ReportSeries.of(report, predictions, len(X)).read(X, None)
    truth = (groups == "m").astype(int)
    until = time.perf_counter() + 600
    worlds = Worlds.know(propagate(read.facts), truth)
    return find_hidden(read, worlds, truth, protect, until)


@given(st.integers(0, 2**32), st.sampled_from([["selected", "rejected"], ["selection-rate"]]))
def test_margins_give_a_lone_suppressed_slice_away_and_complements_hide_it(seed, metrics):
    X, predictions, groups = make_margins(seed)
    exact = make_report(X, predictions, groups, by=["job"], order=1, metrics=metrics)
    alone = bound_hidden(exact.protect(min_group=5), X, predictions, groups)
    assert len(alone) == 4
    assert alone.judged[0].all() and alone.unprotected == 4
    hidden = bound_hidden(exact.protect(min_group=5, complementary=True), X, predictions, groups)
    assert len(hidden) >= 8
    # Of nobody, or everybody, bounds may tell; sums and differences tell nothing.
    inside = (hidden.true > 0) & (hidden.true < hidden.sizes)
    assert not hidden.judged[0][inside].any()
    assert not hidden.undecided.any()


LIMITS = {"beliefs": "shares", "max_leak": "90%", "max_proven": 1200, "seconds": 600}


def test_a_report_passes_only_if_it_protects_what_it_suppresses():
    X, predictions, groups = make_margins(0, women=4)
    report = make_report(X, predictions, groups, by=["job"], order=1, min_group=5)
    told = assess(report, X, predictions, groups=groups, **LIMITS)
    assert told.passes
    assert "4 numbers of people are suppressed; 4 are known exactly, 4 within 1 person" in str(told)
    result = assess(report, X, predictions, groups=groups, protect_hidden="10%", **LIMITS)
    assert not result.passes
    assert "and readers can tell 4 of 4 suppressed numbers too exactly" in result.verdict
    assert "and suppressed numbers protected to 10 %)" in result.verdict
    record = result.to_json()
    assert record["criteria"]["protect_hidden"] == 0.1
    assert record["measures"]["hidden_known"] == {
        "suppressed": 4, "exactly": 4, "within_1": 4, "within_10_percent": 4, "undecided": 0,
        "unprotected": 4,
    }  # fmt: skip
    outcomes = {check["name"]: check["outcome"] for check in record["checks"]}
    assert outcomes == {"leak": "met", "proven": "met", "hidden": "not met", "undecided": "met"}


@pytest.mark.slow
def test_changes_that_pass_protect_what_they_suppress():
    X, predictions, groups = make_margins(0, women=4)
    report = make_report(X, predictions, groups, by=["job"], order=1, min_group=5)
    own = {"groups": groups, "protect_hidden": "5%", **LIMITS}
    result = assess(report, X, predictions, search=True, rng=0, **own)
    found = {tuple(change.arguments): change for change in result.change.passing}
    assert ("complementary",) in found
    for change in found.values():
        assert assess(change.report, X, predictions, **own).passes, change.words


def test_ranges_that_no_time_was_left_for_decide_nothing():
    X, predictions, groups = make_people()
    report = make_report(X, predictions, groups, min_group=20)
    read = ReportSeries.of(report, predictions, len(X)).read(X, None)
    worlds = Worlds.know(propagate(read.facts), None)
    hidden = find_hidden(read, worlds, None, 0.1, time.perf_counter())
    assert hidden.undecided.any()
    assert hidden.maybe_unprotected and "more may be known" in str(hidden)


@pytest.mark.parametrize("share", [1, "ten", "101%", -0.1])
def test_a_share_of_protection_is_a_share(share):
    X, predictions, groups = make_margins(0)
    report = make_report(X, predictions, groups, by=["job"], order=1, min_group=5)
    with pytest.raises(InputError, match=r"protect_hidden \(--protect-hidden\)"):
        assess(report, X, predictions, protect_hidden=share)


def test_a_report_without_suppression_hides_nothing():
    X, predictions, groups = make_margins(0)
    report = make_report(X, predictions, groups, by=["job"], order=1)
    assert assess(report, X, predictions, protect_hidden="20%", **LIMITS).hidden is None


def test_files_with_a_star_for_a_value_are_judged_alike():
    X, predictions, groups = make_margins(1)
    report = make_report(X, predictions, groups, by=["job"], order=1, min_group=5)
    frame = report.to_frame().drop(columns="below")
    frame["value"] = [("*" if math.isnan(v) else v) for v in frame["value"]]
    again = FairnessReport.from_frame(frame)
    hidden, whole = (bound_hidden(r, X, predictions, groups) for r in (again, report))
    assert hidden.to_dict() == whole.to_dict()
