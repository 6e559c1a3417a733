"""What is expected of rows, and whether they say so."""

import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fpbench.base.errors import MatrixError
from fpbench.components.names import KINDS
from fpbench.matrix.expectations import CHECKS, NumberRegion, parse_expectations
from fpbench.matrix.matrix import read
from fpbench.results.rows.selection import RowGroup
from fpbench.results.verdicts import (
    ExpectationOutcome,
    evaluate,
    evaluate_strongest,
    find_strongest,
    take_strongest,
)
from fpbench.store.results import Results

STATING = [path for path in sorted((Path(__file__).parents[2] / "benchmarks").glob("*.toml"))
           if "[[expect]]" in path.read_text()]  # fmt: skip
M, D, U, N = (
    ExpectationOutcome.MATCHED,
    ExpectationOutcome.DEVIATES,
    ExpectationOutcome.UNDECIDED,
    ExpectationOutcome.NOT_RUN,
)


def row(seed=0, status="done", reason=None, **columns):
    labels = dict.fromkeys(KINDS, "") | {
        "dataset": "d",
        "learner": "l",
        "disclosure": "published",
        "adversary": "a2",
        "corrector": "exact",
    }
    return {"cell": "c", **labels, "seed": seed, "status": status, "reason": reason,
            "seconds": 1.0, **columns}  # fmt: skip


def group(rows):
    return RowGroup(Results.of(rows))


def table(check, **keys):
    return {"check": check, "says": "the statement", "source": "section 1", **keys}


def expect(check, **keys):
    return parse_expectations([table(check, **keys)], "m.toml")


def judge(rows, check, **keys):
    """The only verdict."""
    (verdict,) = evaluate(expect(check, **keys), group(rows))
    return verdict


def seeds(values, name="gain", **columns):
    """One row a seed."""
    return [row(i, **{name: value}, **columns) for i, value in enumerate(values)]


# What a table may say


GOOD = {
    "value": {"measure": "gain", "expected": 0.1},
    "share": {"measure": "claim_metric", "equals": "x", "expected": 0.5},
    "at-least": {"measure": "gain", "than": 0},
    "at-most": {"measure": "gain", "than": "other"},
    "falls-with": {"measure": "gain", "parameter": "t"},
    "rises-with": {"measure": "gain", "parameter": "t"},
    "steady": {"measure": "gain", "parameter": "t", "tolerance": 0.1},
    "least": {"measure": "gain", "of": "asked_metric", "value": "x"},
    "most": {"measure": "gain", "of": "asked_metric", "value": "x"},
    "varies-more": {"measure": "gain", "of": "disclosure", "value": "x", "than": "y"},
    "lower": {"measure": "gain", "of": "mechanism", "value": "x", "than": "y"},
}


@pytest.mark.parametrize("check", CHECKS)
def test_every_check_can_be_written_down_and_says_what_it_is_about(check):
    where = {"adversary": ["a1", "a2"], "asked_tolerance": 0.0, "claim_holds": 1}
    (found,) = expect(check, **GOOD[check], where=where, per=["adversary"])
    assert found.check == check
    tested = {"gain_deviation", "repetitions"} if check == "lower" else set()
    assert set(found.columns) <= {*GOOD[check].values()} | tested
    assert "gain" in found.quantity or "claim_metric = x" in found.quantity
    with pytest.raises(ValueError, match="frozen"):
        found.says = "other"


@pytest.mark.parametrize(("check", "keys", "stated"), [
    ("value", {}, 0.1),
    ("share", {}, 0.5),
    ("share", {"expected": None, "at_least": 0.7}, ">= 0.7"),
    ("at-least", {}, ">= 0"),
    ("at-most", {"than": 0.3}, "<= 0.3"),
    ("falls-with", {}, "< 0"),
    ("rises-with", {}, "> 0"),
    ("steady", {}, "<= 0.1"),
    ("least", {}, "< 0"),
    ("most", {}, "> 0"),
    ("varies-more", {}, "> 0"),
    ("lower", {}, "< 0"),
])  # fmt: skip
def test_the_statement_is_shown_without_its_tolerance(check, keys, stated):
    (found,) = expect(check, **{**GOOD[check], "tolerance": 0.1, **keys})
    assert found.stated == stated


@pytest.mark.parametrize(("bad", "message"), [
    ({}, 'm\\.toml: \\[\\[expect\\]\\] no\\. 1: needs check = "NAME"'),
    (table("vlaue"), "no. 1: unknown check 'vlaue'; did you mean 'value'?"),
    (table(3), 'needs check = "NAME"; valid: at-least, at-most'),
    (table("value", expected=1.0), r"no\. 1 \(value\): needs a value for 'measure'"),
    (table("value", **GOOD["value"], tolerence=1),
     "unknown key 'tolerence'; did you mean 'tolerance'"),
    (table("value", measure="gain", expected="0.1"), r"\(value\): expected: .*number, not '0.1'"),
    (table("value", measure="gain", expected=float("nan")), "expected: .*finite"),
    (table("value", **GOOD["value"], tolerance=-0.1),
     "tolerance: .*greater than or equal to 0, not -0.1"),
    (table("value", **GOOD["value"], per="adversary"), "per: .*list, not 'adversary'"),
    (table("value", **GOOD["value"], where={"adversary": []}), "where.adversary"),
    (table("value", **GOOD["value"], where="a2"), "where: .*dictionary, not 'a2'"),
    (table("value", **GOOD["value"]) | {"says": ""}, "says: "),
    (table("share", measure="x", equals=1), "either expected or at_least"),
    (table("share", measure="x", equals=1, expected=0.1, at_least=0.1),
     "either expected or at_least"),
    (table("share", measure="x", equals=1, expected=68),
     "expected: .*less than or equal to 1, not 68"),
    (table("steady", measure="x", parameter="t"), r"\(steady\): needs a value for 'tolerance'"),
    (table("lower", measure="x", of="mechanism", than="y"), "of and value go together"),
    (table("lower", measure="x", value="x", than="y"), "of and value go together"),
    (table("lower", measure="x", than=0.5), "than must name another measure"),
])  # fmt: skip
def test_a_table_that_says_what_it_may_not_is_one_clear_error(bad, message):
    with pytest.raises(MatrixError, match=message) as caught:
        parse_expectations([bad], "m.toml")
    assert "\n" not in str(caught.value)


def test_the_error_says_which_table():
    with pytest.raises(MatrixError, match="no. 2"):
        parse_expectations([table("value", **GOOD["value"]), {}], "m.toml")


def test_matrices_with_expectations_are_found():
    names = ("example", "fig2", "fig3", "fig4", "fig5", "table3", "table4", "table5")
    assert {f"ferry-{name}" for name in names} <= {path.stem for path in STATING}


@pytest.mark.parametrize("path", STATING, ids=lambda path: path.stem)
def test_expectations_of_the_benchmarks_parse_and_are_about_what_is_there(path):
    profiles = tomllib.loads(path.read_text()).get("profile", {})
    variants = [read(path), *(read(path, profile) for profile in profiles)]
    for expectation in (each for variant in variants for each in variant.expect):
        # A profile with statements of its own is not about those of the matrix.
        about = [variant for variant in variants if expectation in variant.expect]
        for kind in KINDS:
            here = [{choice.label for choice in variant.axes[kind]} for variant in about]
            wanted = expectation.where.get(kind)
            named = [] if wanted is None else wanted if isinstance(wanted, list) else [wanted]
            if getattr(expectation, "of", None) == kind:
                named = [expectation.value, getattr(expectation, "than", expectation.value)]
            # The label of what a row does not use is empty.
            assert {*named} - {""} <= set().union(*here), expectation.says
            if named and kind != "dataset":  # a quick profile may do with one data set
                assert all({*named} & labels for labels in here), expectation.says


@pytest.mark.parametrize("path", STATING, ids=lambda path: path.stem)
def test_a_share_that_is_true_can_be_matched_by_a_full_run(path):
    """Also by one whose share is a standard deviation off: else a true one is seldom matched."""
    matrix = read(path)
    n = len(matrix.seeds)
    for share in (e for e in matrix.expect if e.check == "share" and e.expected is not None):
        deviation = np.sqrt(share.expected * (1 - share.expected) / n)
        for ours in (share.expected - deviation, share.expected, share.expected + deviation):
            ones = round(n * min(ours, 1.0))
            rows = seeds([share.equals] * ones + ["other"] * (n - ones), share.measure)
            (found,) = evaluate([share.model_copy(update={"where": {}})], group(rows))
            assert found.outcome is M, (share.says, ones)


# What rows say


@pytest.mark.parametrize(("values", "outcome"), [
    ([0.82, 0.83, 0.84], M),
    ([0.7, 0.71, 0.72], D),
    ([0.9, 0.91, 0.92], D),
    ([0.8, 0.83, 0.84], U),
    ([0.83] * 7, M),
    ([0.82], M),
    ([0.8], D),
    ([0.83, None, float("nan"), 0.83], M),
])  # fmt: skip
def test_a_value(values, outcome):
    found = judge(seeds(values), "value", measure="gain", expected=0.83, tolerance=0.01)
    numbers = [v for v in values if v is not None and v == v]
    assert found.outcome is outcome
    assert found.ours.mean == pytest.approx(np.mean(numbers))
    assert (found.ours.count, found.rows) == (len(numbers), len(numbers))
    assert ("one seed" in found.note) is (len(values) == 1)
    assert ("only 3 seeds" in found.note) is (len(values) == 3)
    assert ("2 of 4 rows lack a value" in found.note) is (None in values)
    assert found.stated == 0.83


def test_a_value_at_the_edge_of_its_tolerance_is_within():
    assert (
        judge(seeds([0.1 + 0.2] * 3), "value", measure="gain", expected=0.2, tolerance=0.1).outcome
        is M
    )


def shares(ones, seeds_):
    return seeds(["PE"] * ones + ["EO"] * (seeds_ - ones), "claim_metric")


@pytest.mark.parametrize(("ones", "count", "keys", "outcome"), [
    (68, 100, {"expected": 0.68, "tolerance": 0.15}, M),
    (20, 100, {"expected": 0.68, "tolerance": 0.15}, D),
    (3, 3, {"expected": 0.68, "tolerance": 0.15}, U),  # as likely as not by chance
    (1, 1, {"expected": 0.68, "tolerance": 0.15}, U),
    (100, 100, {"expected": 1.0, "tolerance": 0.05}, M),
    (80, 100, {"at_least": 0.5}, M),
    (20, 100, {"at_least": 0.5}, D),
    (50, 100, {"at_least": 0.5}, U),
    (0, 3, {"expected": 0.0}, M),
    (0, 1, {"expected": 0.0}, M),
    (1, 100, {"expected": 0.0}, D),
    (100, 100, {"expected": 1.0}, M),
    (99, 100, {"expected": 1.0}, D),
    (99, 100, {"at_least": 1.0}, D),
])  # fmt: skip
def test_a_share(ones, count, keys, outcome):
    found = judge(shares(ones, count), "share", measure="claim_metric", equals="PE", **keys)
    assert found.outcome is outcome
    assert found.ours.mean == pytest.approx(ones / count)
    assert found.ours.count == count
    if outcome is D and "tolerance" not in keys and keys != {"at_least": 0.5}:
        assert found.note == f"1 of {count} rows are against it"


def test_shares_of_several_rows_a_seed_and_rows_without_a_claim():
    rows = [row(0, claim_metric=m) for m in ("PE", "EO", None)] + [row(1, claim_metric="PE")]
    found = judge(rows, "share", measure="claim_metric", equals="PE", expected=0.75, tolerance=0.7)
    assert found.ours.mean == 0.75
    assert "1 of 4 rows lack a value" in found.note
    # Rows of a seed stand and fall together: there are as many trials as seeds.
    again = judge(3 * rows, "share", measure="claim_metric", equals="PE", at_least=0.5)
    assert again.ours == found.ours
    assert found.ours.count == 2


@given(st.integers(1, 200), st.data())
def test_the_interval_of_a_share_holds_it_and_shrinks_with_seeds(count, data):
    ones = data.draw(st.integers(0, count))
    few, many = (
        judge(
            shares(k * ones, k * count), "share", measure="claim_metric", equals="PE", at_least=0.0
        ).ours
        for k in (1, 2)
    )
    assert 0 <= few.low <= few.mean <= few.high <= 1
    assert many.high - many.low < few.high - few.low


@pytest.mark.parametrize(("check", "values", "than", "tolerance", "outcome"), [
    ("at-least", [0.1, 0.2, 0.3], 0.0, 0.0, M),
    ("at-least", [0.0, 0.0, 0.0], 0.0, 0.0, M),
    ("at-least", [-0.1, -0.2, -0.3], 0.0, 0.0, D),
    ("at-least", [-0.1, 0.2, 0.3], 0.0, 0.0, U),
    ("at-least", [-0.1, 0.2, 0.3], 0.0, 0.2, M),
    ("at-least", [-0.1], 0.0, 0.0, D),
    ("at-least", [0.1], 0.0, 0.0, M),
    ("at-most", [0.1, 0.2, 0.3], 1, 0.0, M),
    ("at-most", [1.1, 1.2, 1.3], 1, 0.0, D),
    ("at-most", [0.9, 1.2, 1.3], 1, 0.0, U),
])  # fmt: skip
def test_a_bound(check, values, than, tolerance, outcome):
    found = judge(seeds(values), check, measure="gain", than=than, tolerance=tolerance)
    assert found.outcome is outcome
    assert found.ours.mean == pytest.approx(np.mean(values))


def test_another_measure_as_a_bound_is_paired_within_a_row():
    rng = np.random.default_rng(0)
    base = rng.uniform(0, 1, 20)
    rows = [row(i, initial=b, corrected=b + 0.01) for i, b in enumerate(base)]
    rows.append(row(20, initial=0.1, corrected=None))
    found = judge(rows, "at-least", measure="corrected", than="initial")
    assert found.outcome is M
    assert found.ours.mean == pytest.approx(0.01)
    assert found.ours.low is found.ours.high is None  # for nothing varies but by rounding
    assert found.note.startswith("the same at all 20 seeds: this value decides")
    assert found.rows == 20
    assert found.expectation.quantity == "mean corrected - initial"
    assert judge(rows, "at-least", measure="initial", than="corrected").outcome is D


def curves(slope, n=5, noise=0.0, **columns):
    rng = np.random.default_rng(1)
    return [
        row(seed, t=t, gain=slope * t + noise * rng.normal(), **columns)
        for seed in range(n)
        for t in (0.0, 0.01, 0.05, 0.1)
    ]


@pytest.mark.parametrize(
    ("rows", "falls", "rises"),
    [
        (curves(-1.0), M, D),
        (curves(1.0), D, M),
        (curves(0.0), D, D),  # what does not change does not fall
        (curves(0.0, noise=1.0, n=8), U, U),
        (curves(-1.0, n=1), M, D),
    ],
)
def test_a_trend(rows, falls, rises):
    keys = {"measure": "gain", "parameter": "t"}
    assert judge(rows, "falls-with", **keys).outcome is falls
    assert judge(rows, "rises-with", **keys).outcome is rises


def test_a_trend_is_of_the_mean_at_each_value_of_the_parameter():
    rows = curves(-1.0) + [{**r, "gain": r["gain"] + 0.5} for r in curves(-1.0)]
    assert judge(rows, "falls-with", measure="gain", parameter="t").ours.mean == -1.0


def test_a_trend_needs_two_values_of_its_parameter():
    found = judge(
        [row(s, t=0.1, gain=0.1) for s in range(3)], "falls-with", measure="gain", parameter="t"
    )
    assert (found.outcome, found.ours) == (N, None)
    assert found.note == "no seed has two values of t"


def test_steady():
    keys = {"measure": "gain", "parameter": "t"}
    assert judge(curves(0.0), "steady", **keys, tolerance=0.0).outcome is M
    assert judge(curves(1.0), "steady", **keys, tolerance=0.01).outcome is D
    assert judge(curves(1.0, n=1), "steady", **keys, tolerance=0.01).outcome is D
    found = judge(curves(1.0), "steady", **keys, tolerance=1.0)
    assert found.outcome is M
    assert found.ours.mean == pytest.approx(np.std([0.0, 0.01, 0.05, 0.1], ddof=1))


def rivals(gains, n=6, noise=0.0, seed=2):
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=n)  # what a seed does to all of them is of no interest
    return [
        row(i, asked_metric=m, gain=g + shared[i] + noise * rng.normal())
        for m, g in gains.items()
        for i in range(n)
    ]


LEAST = {"measure": "gain", "of": "asked_metric", "value": "EO"}


@pytest.mark.parametrize(
    ("gains", "least", "most"),
    [
        ({"EO": 0.1, "SP": 0.2, "PE": 0.3}, M, D),
        ({"EO": 0.3, "SP": 0.2, "PE": 0.1}, D, M),
        ({"EO": 0.2, "SP": 0.1, "PE": 0.3}, D, D),
        ({"EO": 0.2, "SP": 0.2}, D, D),  # equal is not least
    ],
)
@pytest.mark.parametrize("n", [1, 6])
def test_the_least_and_the_most(gains, least, most, n):
    assert judge(rivals(gains, n), "least", **LEAST).outcome is least
    assert judge(rivals(gains, n), "most", **LEAST).outcome is most


def test_the_least_is_compared_with_the_next_best_over_all_seeds():
    found = judge(rivals({"EO": 0.1, "SP": 0.25, "PE": 0.3}), "least", **LEAST)
    assert found.ours.mean == pytest.approx(-0.15)
    assert found.note == "next best: SP; the same at all 6 seeds: this value decides"
    assert (
        judge(rivals({"EO": 0.1, "SP": 0.2}, noise=0.1), "least", **LEAST).note == "next best: SP"
    )
    assert judge(rivals({"EO": 0.1, "SP": 0.11}, noise=1.0), "least", **LEAST).outcome is U


def contest(rng, others, n, ahead=0.0):
    """How a statement that EO is least is judged, of one that truly is, by that much, and others."""
    values = rng.normal(size=(others + 1, n))
    values[0] -= ahead
    rows = [
        row(i, asked_metric="EO" if m == 0 else f"m{m}", gain=values[m, i])
        for m in range(others + 1)
        for i in range(n)
    ]
    return judge(rows, "least", **LEAST).outcome


@pytest.mark.slow
@pytest.mark.parametrize("ahead", [0.0, 0.2])
@pytest.mark.parametrize(
    ("others", "n", "runs"), [(1, 5, 200), (3, 5, 125), (10, 5, 75), (30, 5, 40), (30, 20, 40)]
)
def test_the_least_is_seldom_denied(others, n, runs, ahead):
    """The best of many others is better by chance: without a correction in up to 27 % of runs."""
    rng = np.random.default_rng([others, n])
    false = sum(contest(rng, others, n, ahead) is D for _ in range(runs))
    assert false / runs <= 0.025 + 2.5 * np.sqrt(0.025 * 0.975 / runs)


@pytest.mark.slow
@pytest.mark.parametrize("others", [1, 3, 10, 30])
@pytest.mark.parametrize("n", [5, 10, 20])
def test_what_is_wrong_or_right_by_far_is_still_found(others, n):
    rng = np.random.default_rng([others, n])
    apart = {5: 14.0, 10: 5.0, 20: 3.0}[n]
    assert {contest(rng, others, n, -apart) for _ in range(5)} == {D}
    assert {contest(rng, others, n, apart) for _ in range(5)} == {M}


def test_the_least_is_below_every_other_and_not_only_the_next_best():
    """A rival with a great spread may be the least, and have been unlucky."""
    rng = np.random.default_rng(3)
    steady, wild = rng.normal(size=6) / 100, rng.normal(size=6) * 20
    rows = [row(i, asked_metric="EO", gain=steady[i]) for i in range(6)]
    rows += [row(i, asked_metric="SP", gain=1 + steady[i] ** 2) for i in range(6)]
    assert judge(rows, "least", **LEAST).outcome is M
    rows += [row(i, asked_metric="PE", gain=5 + wild[i] - wild.mean()) for i in range(6)]
    found = judge(rows, "least", **LEAST)
    assert found.outcome is U
    assert found.note == "next best: SP"
    assert found.ours.low < found.ours.mean < 0 < found.ours.high


def test_the_least_is_not_decided_by_a_rival_of_one_seed():
    rows = rivals({"EO": 0.1, "SP": 0.9}, noise=0.01)
    assert judge(rows, "least", **LEAST).outcome is M
    rows.append(row(0, asked_metric="PE", gain=9.0))
    found = judge(rows, "least", **LEAST)
    assert (found.outcome, found.note) == (U, "next best: SP; PE shares one seed only")
    rows += rivals({"DP": -5.0}, noise=0.01)
    assert judge(rows, "least", **LEAST).outcome is D
    assert judge(rows, "most", **LEAST).outcome is D


def test_the_least_of_nothing_is_not_run():
    found = judge(rivals({"SP": 0.1}), "least", **LEAST)
    assert (found.outcome, found.note) == (N, "no row with asked_metric = 'EO' has a value")
    found = judge(rivals({"EO": 0.1}), "least", **LEAST)
    assert (found.outcome, found.note) == (N, "no seed has another asked_metric to compare with")


def audits(mechanism, errors, repetitions=50, seed=0, **columns):
    """A row of repeated audits, a sample of whose errors is given."""
    return row(
        seed, mechanism=mechanism, error=float(np.mean(errors)), repetitions=repetitions,
        error_deviation=float(np.std(errors, ddof=1)) if len(errors) > 1 else None, **columns,
    )  # fmt: skip


LOWER = {"measure": "error", "of": "mechanism", "value": "laplace", "than": "exponential"}


@pytest.mark.parametrize(
    ("ours", "theirs", "outcome"), [(0.1, 0.2, M), (0.2, 0.1, D), (0.1, 0.1, U), (0.1, 0.11, U)]
)
def test_lower_is_welchs_test_of_the_audits_of_a_row(ours, theirs, outcome):
    rng = np.random.default_rng(0)
    one, other = rng.normal(ours, 0.1, 50), rng.normal(theirs, 0.2, 50)
    found = judge([audits("laplace", one), audits("exponential", other)], "lower", **LOWER)
    test = stats.ttest_ind(one, other, equal_var=False, alternative="less")
    low, high = stats.ttest_ind(one, other, equal_var=False).confidence_interval()
    assert found.outcome is outcome
    assert (found.ours.low, found.ours.high) == pytest.approx((low, high))
    assert found.ours.mean == pytest.approx(one.mean() - other.mean())
    p = f"p = {test.pvalue:.4f}".replace("0.", ".", 1) if test.pvalue >= 1e-4 else "p < .0001"
    assert found.note == p


def test_lower_than_what_is_known_is_students_test():
    rng = np.random.default_rng(1)
    errors = rng.normal(0.2, 0.1, 50)
    keys = {"measure": "error", "than": "random_guess_error"}
    found = judge([audits("laplace", errors, random_guess_error=0.3)], "lower", **keys)
    low, high = stats.ttest_1samp(errors, 0.3).confidence_interval()
    assert found.outcome is M
    assert (found.ours.low + 0.3, found.ours.high + 0.3) == pytest.approx((low, high))


def test_lower_needs_both_and_repeated_audits():
    one, other = audits("laplace", [0.1, 0.2]), audits("exponential", [0.3, 0.4], seed=1)
    found = judge([one], "lower", **LOWER)
    assert (found.outcome, found.note) == (N, "no row with mechanism = 'exponential' has a value")
    found = judge([one, other], "lower", **LOWER)
    assert (found.outcome, found.note) == (N, "no seed has both values of mechanism")
    found = judge([audits("laplace", [0.1], 1), {**other, "seed": 0}], "lower", **LOWER)
    assert (found.outcome, found.note[:27]) == (N, "no row with mechanism = 'la")
    several = [one, {**other, "seed": 0}, {**one, "seed": 2}, {**one, "seed": 3}]
    found = judge(several, "lower", **LOWER)
    assert found.ours.count == 1
    assert found.note.endswith("2 seeds have only one of both")
    assert found.ours == judge(several[:2], "lower", **LOWER).ours


def spreads(more, less, n):
    rng = np.random.default_rng(3)
    values = {"estimated": more * rng.normal(size=n), "published": less * rng.normal(size=n)}
    return [row(i, disclosure=d, learner=f"l{j}", gain=v + 100 * j)
            for d, vs in values.items() for j in range(2) for i, v in enumerate(vs)]  # fmt: skip


VARIES = {"measure": "gain", "of": "disclosure", "value": "estimated", "than": "published"}


@pytest.mark.parametrize(
    ("more", "less", "n", "outcome"),
    [
        (2.0, 0.1, 30, M),
        (0.1, 2.0, 30, D),
        (0.0, 0.0, 10, D),
        (2.0, 0.1, 4, U),
    ],
)
def test_varies_more(more, less, n, outcome):
    found = judge(spreads(more, less, n), "varies-more", **VARIES)
    assert found.outcome is outcome
    assert found.ours.count == n
    assert ("fewer than 5 seeds" in found.note) is (n < 5)
    rows = [r for r in spreads(more, less, n) if r["learner"] == "l0"]
    spread = {
        d: np.std([r["gain"] for r in rows if r["disclosure"] == d], ddof=1)
        for d in ("estimated", "published")
    }
    assert found.ours.mean == pytest.approx(spread["estimated"] - spread["published"], abs=1e-9)


@pytest.mark.slow
def test_equal_spreads_are_seldom_told_apart():
    rng = np.random.default_rng(4)
    decided = 0
    for _ in range(100):
        rows = [row(i, disclosure=d, gain=float(rng.normal()))
                for d in ("estimated", "published") for i in range(8)]  # fmt: skip
        decided += judge(rows, "varies-more", **VARIES).outcome is not U
    assert decided <= 16


def test_varies_more_resamples_the_same_seeds_for_both():
    """What is half as far from its mean at every seed varies less, however seeds are drawn."""
    values = np.append(np.linspace(-0.2, 0.2, 9), 10.0)  # a third of the draws lack the last
    rows = seeds(values, disclosure="estimated") + seeds(0.5 * values, disclosure="published")
    found = judge(rows, "varies-more", **VARIES)
    assert found.outcome is M
    spread = np.std(values, ddof=1)
    assert found.ours.mean == pytest.approx(0.5 * spread)
    assert 0 < found.ours.low < found.ours.mean < found.ours.high


def test_varies_more_needs_both_and_two_seeds():
    found = judge(seeds([1, 2, 3], disclosure="estimated"), "varies-more", **VARIES)
    assert (found.outcome, found.note) == (N, "no row with disclosure = 'published' has a value")
    found = judge(spreads(1, 1, 1), "varies-more", **VARIES)
    assert (found.outcome, found.note) == (N, "a standard deviation over seeds needs two of them")


def test_varies_more_counts_the_seeds_that_both_have():
    """Six seeds of one and two of the other are two; those of a third value are none."""
    rows = seeds([1.0, 9.0, -7.0, 3.0, 12.0, -5.0], disclosure="estimated")
    rows += seeds([1.0, 1.1], disclosure="published") + seeds([0.1] * 9, disclosure="hidden")
    found = judge(rows, "varies-more", **VARIES)
    assert (found.outcome, found.ours.count) == (U, 2)
    assert found.ours.mean == pytest.approx(np.std([1, 9], ddof=1) - np.std([1, 1.1], ddof=1))
    assert found.note == "fewer than 5 seeds; 4 seeds have only one of both"
    apart = [{**r, "seed": 9} if r["disclosure"] == "published" else r for r in rows]
    found = judge(apart, "varies-more", **VARIES)
    assert (found.outcome, found.note) == (N, "no seed has both values of disclosure")


def test_missing_seeds_change_no_other_seed():
    rows = spreads(2.0, 0.1, 30)
    holes = [
        {**r, "gain": None} if r["seed"] % 7 == 0 and r["disclosure"] == "estimated" else r
        for r in rows
    ]
    found = judge(holes, "varies-more", **VARIES)
    assert found.outcome is M
    assert "10 of 120 rows lack a value" in found.note


# Which rows


def test_one_verdict_for_each_combination():
    rows = [
        row(seed, dataset=d, adversary=a, asked_metric=m, gain=g)
        for seed in range(3)
        for d in ("x", "y")
        for a, g in (("a1", 0.1), ("a2", -0.1))
        for m in ("SP", "PE")
    ]
    (expectation,) = expect("at-least", measure="gain", than=0.0, per=["adversary", "asked_metric"])
    found = evaluate([expectation], group(rows))
    assert [tuple(v.per.values()) for v in found] == [
        (d, a, m) for d in ("x", "y") for a in ("a1", "a2") for m in ("SP", "PE")
    ]
    assert [v.outcome for v in found] == [M, M, D, D] * 2


def test_rows_are_chosen_by_labels_and_by_measures():
    rows = seeds([0.1] * 3, adversary="a1", t=0.0) + seeds([-0.1] * 3, adversary="a2", t=0.0)
    rows += seeds([-0.1] * 3, adversary="a1", t=0.5) + seeds([0.1] * 3, adversary="a3", t=0.0)
    where = {"adversary": ["a1", "a3"], "t": 0}
    assert judge(rows, "at-least", measure="gain", than=0.0, where=where).outcome is M
    assert judge(rows, "at-most", measure="gain", than=0.0, where={"t": 0.5}).outcome is M


@pytest.mark.parametrize(("rows", "keys", "note"), [
    ([], {}, "there are no rows"),
    (seeds([0.1]), {"where": {"adversary": "a22"}},
     "no row with adversary = 'a22'; did you mean 'a2'?"),
    (seeds([0.1], t=0.5), {"where": {"t": 0.0}}, "no row with t = 0.0; there is 0.5"),
    (seeds([0.1]), {"where": {"asked": 0.0}}, "no row has a column 'asked'"),
    (seeds([0.1], t=1, u=1) + seeds([0.1], t=2, u=2), {"where": {"t": 1, "u": 2}},
     "no row with all of t, u as stated"),
    (seeds([0.1], "gian"), {}, "no row has a column 'gain'; did you mean 'gian'?"),
    (seeds([None, None]), {}, "no row has a value in 'gain'"),
    (seeds(["text"]), {}, "no row has a number in gain"),
    ([row(i, "skipped", "no data") for i in range(2)], {}, "2 rows skipped: no data"),
    ([row(0, "failed", "why"), row(1, ""), row(2, "")], {},
     "2 rows not yet run; 1 row failed: why"),
    ([row(0, "failed", x) for x in "abc"], {},
     "1 row failed: a; 1 row failed: b; further reasons: 1"),
])  # fmt: skip
def test_an_expectation_without_rows_says_why(rows, keys, note):
    found = judge(rows, "at-least", measure="gain", than=-9.0, **keys)
    assert (found.outcome, found.ours, found.rows) == (N, None, 0)
    assert found.note.startswith(note)


def test_a_data_set_that_is_skipped_has_a_verdict_of_its_own():
    rows = seeds([0.1, 0.2, 0.3]) + [row(i, "skipped", "no data", dataset="acs") for i in range(3)]
    found = evaluate(
        expect("at-least", measure="gain", than=0.0, per=["asked_metric"]), group(rows)
    )
    assert [(v.per["dataset"], v.outcome, v.note) for v in found] == [
        ("d", M, "only 3 seeds"),
        ("acs", N, "3 rows skipped: no data"),
    ]


def test_failures_are_told_beside_what_is_done():
    rows = [
        *seeds([0.1, 0.2, 0.3]),
        row(3, "failed", "why"),
        row(4, "failed", "why", adversary="a1"),
    ]
    found = evaluate(expect("at-least", measure="gain", than=0.0, per=["adversary"]), group(rows))
    assert [(v.per["adversary"], v.outcome, v.note) for v in found] == [
        ("a2", M, "only 3 seeds; 1 row failed: why"),
        ("a1", N, "1 row failed: why"),
    ]


# The strongest adversary


def test_the_strongest_adversary_per_dataset_and_learner():
    accuracy = {("x", "l"): (0.7, 0.8), ("x", "m"): (0.9, 0.8), ("y", "l"): (0.6, 0.6)}
    rows = [
        row(seed, dataset=d, learner=lr, adversary=a, initial_accuracy=acc + 0.01 * seed)
        for seed in range(2)
        for (d, lr), both in accuracy.items()
        for a, acc in zip(("a1", "boosting"), both, strict=True)
    ]
    rows.append(row(0, "skipped", "no data", dataset="z", adversary="a1"))
    rows.append(row(2, "failed", "why", dataset="x", adversary="boosting"))
    assert find_strongest(group(rows)) == {
        ("x", "l"): "boosting",
        ("x", "m"): "a1",
        ("y", "l"): "a1",
    }
    strongest = take_strongest(group(rows))
    names = ("dataset", "learner", "adversary", "status")
    columns = zip(*map(strongest.values, names), strict=True)
    kept = [dict(zip(names, values, strict=True)) for values in columns]
    assert [r["adversary"] for r in kept if r["dataset"] == "x" and r["learner"] == "l"] == [
        "boosting"
    ] * 3
    assert [r["status"] for r in kept if r["dataset"] == "z"] == ["skipped"]
    assert len(kept) == 3 + 2 + 2 + 1


def test_against_the_strongest_the_adversary_is_not_asked_for():
    rows = [
        row(seed, adversary=a, initial_accuracy=acc, gain=gain)
        for seed in range(3)
        for a, acc, gain in (("a1", 0.7, 0.1), ("a2", 0.75, 0.05), ("boosting", 0.85, -0.01))
    ]
    expectations = expect(
        "at-least", measure="gain", than=0.001, where={"adversary": ["a1", "a2"]}, per=["adversary"]
    )
    assert [v.outcome for v in evaluate(expectations, group(rows))] == [M, M]
    (against,) = evaluate_strongest(expectations, group(rows))
    assert (against.outcome, dict(against.per)) == (D, {"dataset": "d"})


@pytest.mark.parametrize("keys", [{}, {"where": {"adversary": "a2"}, "strongest": False}])
def test_what_is_not_of_any_adversary_is_not_checked_on_the_strongest(keys):
    expectations = expect("at-least", measure="gain", than=0.0, **keys)
    rows = seeds([0.1, 0.2], initial_accuracy=0.7)
    assert [v.outcome for v in evaluate(expectations, group(rows))] == [M]
    assert evaluate_strongest(expectations, group(rows)) == []


# Laws


CASES = {
    "value": (GOOD["value"] | {"tolerance": 0.05}),
    "share": {"measure": "claim_metric", "equals": "PE", "expected": 0.5, "tolerance": 0.2},
    "at-least": {"measure": "gain", "than": "other"},
    "at-most": {"measure": "gain", "than": 0.3},
    "falls-with": GOOD["falls-with"],
    "rises-with": GOOD["rises-with"],
    "steady": GOOD["steady"],
    "least": LEAST,
    "most": LEAST,
    "varies-more": VARIES,
    "lower": {**VARIES, "measure": "error"},
}


def random_rows(rng, n):
    return [
        row(
            int(rng.integers(8)),
            status=str(rng.choice(["done", "failed"], p=[0.9, 0.1])),
            dataset=str(rng.choice(["x", "y"])),
            disclosure=str(rng.choice(["estimated", "published"])),
            gain=None if rng.random() < 0.1 else round(float(rng.normal()), 2),
            other=round(float(rng.normal()), 2),
            error=round(float(rng.normal()), 2),
            error_deviation=None if rng.random() < 0.1 else round(float(rng.random()), 2),
            repetitions=int(rng.integers(2, 9)),
            t=float(rng.choice([0.0, 0.1, 0.2])),
            asked_metric=str(rng.choice(["EO", "SP", "PE"])),
            claim_metric=str(rng.choice(["PE", "EO"])),
        )
        for _ in range(n)
    ]


def by_group(verdicts):
    return {tuple(v.per.items()): v for v in verdicts}


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("check", CASES)
@given(seed=st.integers(0, 2**32), n=st.integers(1, 80))
@settings(max_examples=20)
def test_the_order_of_rows_does_not_matter(check, seed, n):
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, n)
    other = [rows[i] for i in rng.permutation(n)]
    expectations = expect(check, **CASES[check], per=["t"] if check == "value" else [])
    found = evaluate(expectations, group(rows))
    assert by_group(found) == by_group(evaluate(expectations, group(other)))
    assert found
    for verdict in found:  # never matched without a number of ours
        assert (verdict.ours is None) is (verdict.outcome is N)
        assert verdict.note or verdict.outcome is not N


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=12), st.floats(0, 1), st.floats(0, 0.2))
def test_more_accurate_corrections_never_turn_a_bound_worse(values, shift, tolerance):
    rank = {D: 0, U: 1, M: 2}
    low, high = (
        judge(
            seeds([v + by for v in values]),
            "at-least",
            measure="gain",
            than=0.0,
            tolerance=tolerance,
        )
        for by in (0.0, shift)
    )
    assert rank[low.outcome] <= rank[high.outcome]


@given(
    st.lists(st.floats(-1, 1), min_size=1, max_size=12),
    st.floats(-1, 1),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_a_wider_tolerance_never_takes_a_match_away(values, expected, tolerance, more):
    narrow, wide = (
        judge(seeds(values), "value", measure="gain", expected=expected, tolerance=t).outcome
        for t in (tolerance, tolerance + more)
    )
    assert narrow is not M or wide is M
    assert wide is not D or narrow is D


@given(st.floats(-1, 1), st.floats(0, 1), st.floats(-1, 1), st.floats(0, 1), st.booleans())
def test_no_interval_both_holds_and_misses(low, width, start, length, strict):
    region = NumberRegion(low, low + width, strict)
    ends = start, start + length
    assert not (all(map(region.holds, ends)) and region.misses(*ends))
    if strict and width:
        assert not region.holds(low) and region.misses(low - 1, low)


@given(st.integers(0, 2**32))
@settings(max_examples=20)
def test_a_true_statement_is_hardly_ever_refuted(seed):
    """The mean is 0.5; 30 seeds: 95 % intervals miss a region around it far less often."""
    values = np.random.default_rng(seed).normal(0.5, 0.1, 30)
    found = judge(seeds(values), "value", measure="gain", expected=0.5, tolerance=0.1)
    assert found.outcome is not D
