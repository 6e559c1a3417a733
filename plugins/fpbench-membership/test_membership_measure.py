"""Measures of attacks against scikit-learn, and what small groups and ties do."""

import numpy as np
import pandas as pd
import pytest
from fpbench_membership import measure_membership
from fpbench_membership.measure import find_tpr
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score, roc_curve

from fpbench import InputError

LAWS = settings(max_examples=30, deadline=None)


def measure(scores, members, sensitive=None, groups=("a", "b"), seed=0):
    sensitive = np.arange(len(scores)) % 2 if sensitive is None else sensitive
    return measure_membership(scores, members, sensitive, groups, rng=np.random.default_rng(seed))


@LAWS
@given(st.integers(0, 2**32), st.integers(20, 300), st.booleans())
def test_area_and_rates_are_those_of_scikit_learn(seed, n, ties):
    rng = np.random.default_rng(seed)
    members = rng.random(n) < 0.5
    members[:2] = True, False
    scores = rng.normal(size=n) + members
    scores = np.rint(2 * scores) if ties else scores
    row = measure(scores, members).table.iloc[0]
    assert row["auc"] == pytest.approx(roc_auc_score(members, scores))
    false, true, _ = roc_curve(members, scores, drop_intermediate=False)
    highest = {rate: true[np.isclose(false, rate)].max() for rate in false.round(9)}
    for fpr in (0.1, 0.25, 0.5):
        if (~members).sum() * fpr >= 1:
            between = np.interp(fpr, sorted(highest), [highest[x] for x in sorted(highest)])
            mine = find_tpr(scores[members], scores[~members], fpr)
            assert mine == pytest.approx(between, abs=1e-6)


def test_constant_scores_find_nobody():
    members = np.arange(4000) < 2000
    table = measure(np.ones(4000), members).table
    assert (table["auc"] == 0.5).all()
    assert (table["advantage"] == 0).all()
    assert table["tpr_at_1_percent"].to_numpy() == pytest.approx(0.01)
    assert table["tpr_at_0p1_percent"].to_numpy() == pytest.approx(0.001)


def test_rates_of_too_few_people_are_unknown_and_not_0():
    members = np.arange(1500) % 2 == 0
    sensitive = (np.arange(1500) < 150).astype(int)
    rng = np.random.default_rng(0)
    report = measure(rng.normal(size=1500), members, sensitive)
    rare = report.table["tpr_at_0p1_percent"]
    assert rare.isna().all()  # 750 others, and .1 % of them is nobody
    assert report.table["tpr_at_1_percent"].isna().tolist() == [False, False, True]
    assert np.isnan(report.find_gap("tpr_at_1_percent"))  # of one group
    assert report.find_gap("auc") > 0
    with pytest.raises(InputError, match="there is no measure 'f1'"):
        report.find_gap("f1")


def test_a_group_that_is_memorised_stands_out():
    rng = np.random.default_rng(0)
    n = 8000
    members, sensitive = rng.random(n) < 0.5, rng.integers(0, 2, n)
    scores = rng.normal(size=n) + 2 * (members & (sensitive == 1))
    report = measure(scores, members, sensitive, ("free", "memorised"))
    table = report.table.set_index("group")
    # Two normal distributions two apart: the area is Phi(2 / sqrt 2).
    assert table.loc["memorised", "auc"] == pytest.approx(0.9214, abs=0.015)
    assert table.loc["free", "auc"] == pytest.approx(0.5, abs=0.03)
    assert report.find_gap("auc") == pytest.approx(0.42, abs=0.04)
    assert report.find_gap("advantage") > 0.4
    errors = table.loc[["free", "memorised"], "auc_error"]
    assert report.find_gap_error() == pytest.approx(np.hypot(*errors))


@pytest.mark.slow
def test_the_advantage_of_a_worthless_attack_is_0_on_average_however_few_people():
    rng = np.random.default_rng(0)
    advantages = []
    for seed in range(300):
        members = np.arange(40) < 20
        advantages.append(measure(rng.normal(size=40), members, seed=seed).table["advantage"][0])
    error = np.std(advantages) / np.sqrt(300)
    assert abs(np.mean(advantages)) < 4 * error
    assert error < 0.02


@pytest.mark.slow
def test_the_standard_error_of_the_area_is_that_of_repeated_draws():
    rng = np.random.default_rng(0)
    members = np.arange(300) < 100
    drawn = [measure(rng.normal(size=300) + members, members).table.iloc[0] for _ in range(400)]
    areas = np.array([row["auc"] for row in drawn])
    errors = np.array([row["auc_error"] for row in drawn])
    assert errors.mean() == pytest.approx(areas.std(ddof=1), rel=0.15)


@pytest.mark.parametrize(
    ("scores", "members", "words"),
    [
        (np.zeros(3), np.zeros(4, bool), "shapes do not agree"),
        (np.array([np.nan, 1.0]), np.array([True, False]), "scores: must be numbers"),
        (np.zeros(2), np.array([True, True]), "some people must be members, and some not"),
    ],
)
def test_bad_input_is_refused(scores, members, words):
    with pytest.raises(InputError, match=words):
        measure(scores, members)


def test_a_report_shows_itself_and_no_name_forges_a_line():
    members = np.arange(40) < 20
    report = measure(np.arange(40.0), members, groups=("a\n| forged", "b\x1b[31m"))
    assert str(report).splitlines()[1].split()[0] == "everybody"
    assert repr(report) == str(report)
    assert len(str(report).splitlines()) == 4
    assert "\x1b" not in str(report) + report._repr_html_()
    assert "<table" in report._repr_html_()


def test_names_and_codes_of_groups_are_the_same_and_rows_must_be_in_order():
    rng = np.random.default_rng(0)
    scores, members, codes = rng.normal(size=80), rng.random(80) < 0.5, rng.integers(0, 2, 80)
    names = np.where(codes == 1, "b", "a")
    tables = [measure(scores, members, who).table for who in (codes, names)]
    pd.testing.assert_frame_equal(*tables)
    pd.testing.assert_frame_equal(measure(scores, members, names, None).table, tables[0])
    with pytest.raises(InputError, match="there is no group 'b'"):
        measure(scores, members, names, ("a", "bee"))
    with pytest.raises(InputError, match="codes must be below 1"):
        measure(scores, members, codes, ("a",))
    people = pd.DataFrame({"score": scores, "in": members})
    with pytest.raises(InputError, match="named differently from those of scores"):
        measure(people["score"], people["in"].sample(frac=1, random_state=0), codes)
