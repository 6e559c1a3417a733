"""Slices named by intervals of a number: the people whom they name, or a question."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpbench import InputError
from fpbench.reports.fairness_report import FairnessReport
from fpbench.reports.intervals import read_interval
from fpbench.reports.reading.grids import parse_table
from fpbench.reports.reading.known_names import KnownNames
from fpbench.reports.reading.tables import read_tables
from fpbench.reports.slices import SliceColumn


def code(numbers, *texts):
    """The text of each number's slice; None of those in none."""
    column = SliceColumn.parse("x", texts)
    codes = column.code(pd.DataFrame({"x": numbers}))
    return [column.values[c] if c >= 0 and column.values[c] in texts else None for c in codes]


@pytest.mark.parametrize(("text", "inside", "outside"), [
    ("(0.2, 0.4]", [0.21, 0.4], [0.2, 0.41]), ("[0,0.1)", [0, 0.09], [0.1, -1]),
    ("]0.2; 0.4]", [0.4], [0.2]), ("[18, inf)", [18, 1e9], [17]), ("(-inf, 18.0]", [18, -9], [19]),
    ("< 18", [17.9, -3], [18]), ("\u226418", [18], [18.1]), (">= 0.5", [0.5], [0.4]),
    ("10+", [10, 11], [9]), ("over 65", [66], [65]), ("65 and over", [65], [64]),
    ("17 and under", [17, -1], [18]), ("18 to 25 years", [18, 25], [17, 26]),
    ("\u00a320,000 - \u00a329,999", [20000, 29999], [30000]), ("-5 to -1", [-5, -1], [0]),
    ("(-0.001, 0.2]", [0, 0.2], [-0.001]), ("18-25", [18, 25], [26]), ("18\u201325", [25], [17]),
])  # fmt: skip
def test_an_interval_is_read_as_written(text, inside, outside):
    numbers = np.array([*inside, *outside], float)
    assert code(numbers, text) == [text] * len(inside) + [None] * len(outside)


@pytest.mark.parametrize("text", ["", "medium", "25-18", "2020-01-05", "1,5-2", "10%-20%", "a 3"])
def test_other_texts_are_no_intervals(text):
    assert read_interval(text) is None


WHOLE, PARTS = st.integers(0, 40), st.integers(0, 400).map(lambda tenth: tenth / 10)


@given(
    edges=st.lists(WHOLE, min_size=2, max_size=6, unique=True).map(sorted),
    numbers=st.lists(st.one_of(WHOLE, PARTS), min_size=1, max_size=30),
    right=st.booleans(),
)
@settings(deadline=None, max_examples=200)
def test_pandas_bins_are_the_peoples_numbers(edges, numbers, right):
    numbers = np.array(numbers, float)
    bins = pd.cut(numbers, edges, right=right)
    texts = [str(one) for one in bins.categories]
    assert code(numbers, *texts) == [texts[c] if c >= 0 else None for c in bins.codes]


@given(
    edges=st.lists(WHOLE, min_size=2, max_size=6, unique=True).map(sorted),
    numbers=st.lists(st.one_of(WHOLE, PARTS), min_size=1, max_size=30),
    mark=st.sampled_from(["-", " to ", "\u2013"]), ends=st.booleans(),
)  # fmt: skip
@settings(deadline=None, max_examples=200)
def test_ends_that_may_be_in_or_not_are_asked_for(edges, numbers, mark, ends):
    numbers = np.array(numbers, float)
    texts = [f"{low}{mark}{high}" for low, high in pairwise(edges)]
    if ends:  # which say whose the ends are
        texts += [f"<{edges[0]}", f"{edges[-1]}+"]
    at = np.isin(numbers, edges[1:-1]).any()
    if at and not ends:
        with pytest.raises(InputError, match=r"may be in or not: say which, --map .*=.*, or --map"):
            code(numbers, *texts)
        return
    true = np.searchsorted(edges, numbers, side="right")
    names = [f"<{edges[0]}" if ends else None, *texts[: len(edges) - 1]]
    names.append(f"{edges[-1]}+" if ends else None)
    expected = [names[place] for place in true]
    if not ends:  # the greatest end is in
        expected = [
            texts[-1] if x == edges[-1] else n for x, n in zip(numbers, expected, strict=True)
        ]
    assert code(numbers, *texts) == expected


def test_ages_in_whole_years_have_both_ends():
    ages = np.arange(15, 70)
    texts = ["<18", "18-24", "25-34", "35 to 64", "65+"]
    expected = pd.cut(ages, [0, 17, 24, 34, 64, 99], labels=texts)
    assert code(ages, *texts) == list(expected)
    assert code([17, 18, 24, 25, 30], "18-24", "<18", "25") == ["<18", "18-24", "18-24", "25", None]


@pytest.mark.parametrize(("numbers", "texts", "told"), [
    ([19.5], ["10-19", "20-29"], r"19.5, between '10-19' and '20-29': .*'\[10, 19\]', .*'\[10, 20\)'"),
    ([0.195], ["0.00-0.19", "0.20-0.39"], "0.195, between"),
    ([3], ["(0, 4]", "(2, 5]"], r"3 is in '\(0, 4\]' and in '\(2, 5\]'"),
    ([0.41837], ["(0.1, 0.418]", "(0.418, 0.9]"], "0.41837, and the end 0.418 .* may be rounded"),
    ([25], ["18-25", "25-35"], r"25, an end of '18-25', .*'\[18, 25\)', or .*'\(18, 25\]'"),
    ([0.4], ["0.0-0.2", "0.2-0.4", "0.6-0.8"], "0.4, an end of '0.2-0.4'"),
])  # fmt: skip
def test_a_number_of_two_slices_is_asked_for(numbers, texts, told):
    with pytest.raises(InputError, match=told):
        code(np.array(numbers, float), *texts)


def test_what_settles_a_question_is_read():
    assert code([18.0, 25, 30], "[18, 25)", "25-35") == ["[18, 25)", "25-35", "25-35"]
    assert code([0.41837], "(0.1, 0.4180000]", "(0.418, 0.9]") == ["(0.418, 0.9]"]
    assert code([0.05, 0.1], "[0.0, 0.10)", "[0.10, 0.2)") == ["[0.0, 0.10)", "[0.10, 0.2)"]


RNG = np.random.default_rng(5)
N = 600
PEOPLE = pd.DataFrame({
    "sex": RNG.choice(["F", "M"], N), "score": RNG.random(N).round(3), "age": RNG.integers(16, 70, N),
    "pay": RNG.permutation(N) * 7.5 + 20_000,
})  # fmt: skip
PEOPLE["good"] = (RNG.random(N) < PEOPLE.score).astype(int)
PEOPLE["hired"] = (PEOPLE.score >= 0.5).astype(int)
X = PEOPLE[["score", "age", "pay"]]


def read(table, **mapping):
    text = table if isinstance(table, str) else table.to_csv(index=False)
    names = KnownNames({"sex": ("F", "M")}, X, ("hired",), "good", mapping=mapping)
    reading = read_tables(parse_table(text.encode(), "t"), names, ("sex",))
    return FairnessReport._of(reading.report), reading


def check_facts(report):
    """The sets of the facts, and their counts, of which the true ones are checked."""
    facts = report.facts(X, PEOPLE.hired, PEOPLE.good)
    true = facts.membership.T @ np.eye(2)[(PEOPLE.sex == "M").astype(int)]
    assert (facts.low <= true).all()
    assert (true <= facts.high).all()
    return facts, true


BINS = [0, 0.2, 0.4, 0.6, 0.8, 1]


def test_histograms_and_calibration_bins_are_counts():
    binned = PEOPLE.assign(score=pd.cut(PEOPLE.score, BINS, include_lowest=True))
    by = binned.groupby(["score", "sex"], observed=True)
    sizes, own = by.size(), by.good.agg(["mean", "size"])
    for table in (
        sizes.rename("count").reset_index(),
        sizes.unstack().rename_axis("score band").reset_index().rename(columns=lambda c: c),
    ):
        report, _ = read(table, value="people")
        facts, true = check_facts(report)
        assert len(facts) == 5
        assert (facts.low == true).all()
    calibration = own.set_axis(["prevalence", "n"], axis=1).reset_index()
    facts, true = check_facts(read(calibration)[0])
    assert len(facts) == 10  # of both labels
    assert (facts.low == true).all()


def write_roc(thresholds, above=False, sizes=False, digits=3):
    """TPR, FPR and selection rate of each group at each threshold."""
    rows = []
    for least in thresholds:
        predicted = PEOPLE.score > least if above else PEOPLE.score >= least
        for sex, own in PEOPLE.assign(p=predicted).groupby("sex"):
            rates = [own.p[own.good == 1].mean(), own.p[own.good == 0].mean(), own.p.mean()]
            sized = [own.p.sum(), len(own)] if sizes else []
            rows.append([least, sex, *(np.round(rates, digits)), *sized])
    names = ["threshold", "sex", "tpr", "fpr", "selection rate", *(["selected", "n"] * sizes)]
    return pd.DataFrame(rows, columns=names)


@pytest.mark.parametrize("above", [False, True])
def test_points_of_a_roc_are_predictions_at_thresholds(above):
    thresholds = PEOPLE.score.iloc[[3, 40]].tolist()  # whose sign decides
    table = write_roc([*thresholds, 0.55555], above, sizes=True)
    with pytest.raises(InputError, match="='score at least', or --map 'threshold'='score above'"):
        read(table)
    report, _ = read(table, threshold=f"score {'above' if above else 'at least'}")
    facts, _ = check_facts(report)
    exact = {facts.name(i) for i in np.flatnonzero((facts.low == facts.high).all(axis=1))}
    assert len(exact) >= 2 * 3  # people selected and rejected at each threshold
    assert any(f"score {'above' if above else 'at least'} 0.55555, predicted 1" in e for e in exact)
    taken = X.assign(**{f"score {'above' if above else 'at least'}": "a"})
    with pytest.raises(InputError, match="the people have a column of this name: rename"):
        report.facts(taken, PEOPLE.hired, PEOPLE.good)
    other, _ = read(table, threshold=f"score {'at least' if above else 'above'}")
    with pytest.raises(InputError, match="the report is about other people"):
        check_facts(other)


def test_a_roc_of_scores_that_nobody_has_is_read_at_once(tmp_path):
    table = write_roc([0.25005, 0.5])
    assert not (PEOPLE.score == 0.5).any()
    report, reading = read(table)
    assert "by score at least" in reading.told
    facts, _ = check_facts(report)
    report.to_csv(tmp_path / "roc.csv")
    again = FairnessReport.from_file(tmp_path / "roc.csv")
    same = again.facts(X, PEOPLE.hired, PEOPLE.good)
    assert (same.low == facts.low).all()
    assert (same.high == facts.high).all()
    with pytest.raises(InputError, match="whose people overlap"):
        report.protect(round_to=5)


def test_thresholds_need_scores():
    table = write_roc([0.25005, 0.5])
    names = KnownNames({"sex": ("F", "M")}, X.drop(columns="score"), ("hired",), "good")
    grids = parse_table(table.to_csv(index=False).encode(), "t")
    with pytest.raises(InputError, match="of which column.*='COLUMN at least'"):
        read_tables(grids, names, ("sex",))
    report, _ = read(table)
    with pytest.raises(InputError, match="scores of 'score' are missing"):
        report.facts(X.assign(score=X.score.where(X.score > 0.1)), PEOPLE.hired, PEOPLE.good)


@pytest.mark.parametrize("digits", [1, 6])
def test_shares_of_women_in_each_quartile_of_pay_are_counts(digits):
    quartile = pd.qcut(PEOPLE.pay, 4)
    shares = pd.crosstab(quartile, PEOPLE.sex, normalize="index").mul(100).round(digits)
    table = (
        shares.set_axis(["Women %", "Men (%)"], axis=1).rename_axis("pay quartile").reset_index()
    )
    with pytest.raises(InputError, match="metric that is not named"):
        read(table)
    report, _ = read(table, value="people")
    facts, true = check_facts(report)
    assert len(facts) == 4
    assert (facts.low == true).all()
    assert (facts.high == true).all()
    wrong = table.assign(**{"Men (%)": table["Men (%)"] + 1})
    with pytest.raises(InputError, match="unless shares of groups add up to 100 % of each slice"):
        read(wrong, value="people")


@pytest.mark.parametrize(("pay", "n"), [("20000-21492.5", 200), ("20,000.5-20,003.5", 0)])
def test_shares_that_no_people_make_are_refused(pay, n):
    with pytest.raises(InputError, match=f"'50.01' of {n} people, who are there, is no whole"):
        read(f'pay,Women %,Men %\n"{pay}",50.01,49.99\n', value="people")


def median_by_sex(people, digits=6, **more):
    by = people.groupby("sex").pay
    table = pd.DataFrame({"median pay": by.median().round(digits), **more})
    return table.reset_index()


@given(pay=st.lists(st.integers(0, 12), min_size=2, max_size=6), sexes=st.randoms(use_true_random=False),
       sized=st.booleans())  # fmt: skip
@settings(deadline=None, max_examples=50)
def test_a_median_is_half_of_its_group_on_either_side(pay, sexes, sized):
    own = pd.DataFrame({"pay": [one / 2 for one in pay]})
    own["sex"] = ["F", "M", *(sexes.choice("FM") for _ in pay[2:])]
    size = {"count": own.groupby("sex").size()} if sized else {}
    text = median_by_sex(own, **size).to_csv(index=False)
    names = KnownNames({"sex": ("F", "M")}, own[["pay"]], ("hired",))
    report = FairnessReport._of(
        read_tables(parse_table(text.encode(), "t"), names, ("sex",)).report
    )
    facts = report.facts(own[["pay"]], np.zeros(len(own), int))
    half = max(one.within for one in report.statistics)
    allowed = 0
    for worlds in range(2 ** len(own)):  # every assignment of groups
        groups = np.array([worlds >> i & 1 for i in range(len(own))])
        if not 0 < groups.sum() < len(own):
            continue
        sizes_agree = not sized or groups.sum() == (own.sex == "M").sum()
        odd, near = True, True
        for number, sex in enumerate("FM"):
            mine, median = own.pay[groups == number], own.pay[own.sex == sex].median()
            odd &= len(mine) % 2 == 1
            near &= bool(
                (mine <= median + half).mean() >= 0.5 and (mine >= median - half).mean() >= 0.5
            )
        assert facts.allows(groups) == (near and sizes_agree)
        if sizes_agree and odd:  # then it is the median itself
            medians = own.pay.groupby(groups).median().to_numpy()
            true = own.groupby("sex").pay.median().to_numpy()
            assert near == (np.abs(medians - true) <= half).all()
        allowed += near and sizes_agree
    assert allowed


METHODS = [
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf",
    "hazen", "weibull", "linear", "median_unbiased", "normal_unbiased", "lower", "higher",
    "midpoint", "nearest",
]  # fmt: skip


@pytest.mark.parametrize("share", [0.1, 0.25, 0.75, 0.9])
def test_quantiles_by_any_definition_are_true_of_the_people(share):
    rng, count = np.random.default_rng(int(100 * share)), 0
    for method in METHODS:
        for _ in range(12):
            n = int(rng.integers(2, 40))
            people = pd.DataFrame(
                {"pay": rng.integers(0, int(rng.choice([3, 50, 10**6])), n) + 0.5}
            )
            groups = pd.Series(rng.permutation(np.arange(n) % 2)).map({0: "F", 1: "M"})
            quantile = people.pay.groupby(groups).agg(np.quantile, q=share, method=method)
            table = quantile.rename_axis("sex").rename(f"p{100 * share:.0f} pay").reset_index()
            report = FairnessReport.read(table, X=people, group="sex")
            assert report.statistics[0].metric == f"quantile {share:g} of pay"
            facts = report.facts(people, np.zeros(n, int))
            assert facts.allows((groups == "M").to_numpy().astype(int)), (method, people, groups)
            count += facts.allows(rng.integers(0, 2, n))
    assert count < 12 * len(METHODS)


def test_least_and_greatest_numbers_allow_the_groups_that_enumeration_allows():
    rng = np.random.default_rng(0)
    for _ in range(40):
        n = int(rng.integers(2, 9))
        people = pd.DataFrame({"pay": rng.integers(1, 9, n) + 0.25})
        groups = rng.permutation(np.arange(n) % 2)
        by = people.pay.groupby(np.array(["F", "M"])[groups]).agg(["min", "max"])
        table = by.rename_axis("sex").add_suffix(" pay").reset_index()
        report = FairnessReport.read(table, X=people, group="sex")
        facts = report.facts(people, np.zeros(n, int))
        for world in range(2**n):
            own = np.array([world >> i & 1 for i in range(n)])
            same = 0 < own.sum() < n and all(
                people.pay[own == number].agg(["min", "max"]).tolist() == by.iloc[number].tolist()
                for number in (0, 1)
            )
            assert facts.allows(own) == same


def test_what_pandas_describes_is_read():
    report, reading = read(PEOPLE.groupby("sex")[["pay"]].describe().to_csv())
    check_facts(report)
    assert {one.metric for one in report.statistics} == {
        "mean of pay", "minimum of pay", "quantile 0.25 of pay", "median of pay",
        "quantile 0.75 of pay", "maximum of pay",
    }  # fmt: skip
    assert "not read: 1 of 9 columns (pay std" in reading.warning


def test_medians_beside_sizes_are_read_in_every_form():
    true = median_by_sex(PEOPLE, count=PEOPLE.groupby("sex").size())
    report, reading = read(true)
    check_facts(report)
    assert reading.mapping["median pay"] == "median of pay"
    long = true.drop(columns="count").rename(columns={"median pay": "median"})
    check_facts(read(long, median="median pay")[0])
    with pytest.raises(InputError, match="is no number of people"):
        read(long)
    with pytest.raises(InputError, match="'mean hours' is no number of people"):
        read("sex,mean hours\nF,21000\nM,22313\n")
    rounded = "sex,median pay\nF,{}\nM,{}\n".format(*true["median pay"].round(-3).astype(int))
    ranges = {str(m): f"{m - 500}-{m + 500}" for m in true["median pay"].round(-3).astype(int)}
    check_facts(read(rounded, **ranges)[0])
