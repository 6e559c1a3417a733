"""F1 scores, means and sums of groups: facts that allow the groups that enumeration allows."""

import time

import numpy as np
import pandas as pd
import pytest
from report_worlds import check_examples, list_vectors

from fpbench import FairnessReport, InputError, assess
from fpbench.claims import ContradictionError
from fpbench.correction import condition_beliefs, find_likeliest_groups, propagate
from fpbench.correction.facts import dual_ascent, exact_components
from fpbench.correction.facts.worlds import find_worlds
from fpbench.reports.assessments.evidence import check_evidence, pack_evidence

NAMES = "abc"


def share(people, counted, other):
    """What people add to the two sums of a score of true positives, and of other people."""
    right = people.good & people.hired
    return counted * right, counted * right + other * (people.good ^ people.hired)


def average(people, inside=1):
    return people.age * inside, np.ones(len(people)) * inside


STATISTICS = {
    "F1": lambda people: share(people, 2, 1),
    "Jaccard index": lambda people: share(people, 1, 1),
    "mean age": average,
    "total age": lambda people: (people.age, None),
    "Average age of hired": lambda people: average(people, people.hired),
    "selection rate weighted by age": lambda people: (people.age * people.hired, people.age),
    "mean age of true positives": lambda people: average(people, people.hired & people.good),
}
"""Two sums over people, of which the first is divided by the second."""


def draw_people(seed):
    """Few people, codes of their groups, and the number of these."""
    rng = np.random.default_rng(seed)
    k = int(rng.choice([2, 2, 3]))
    n = int(rng.integers(4, {2: 11, 3: 8}[k]))
    ages = [rng.integers(18, 70, n), rng.integers(18, 22, n), rng.random(n).round(3)]
    people = pd.DataFrame({
        "dept": rng.choice(["x", "y"], n), "age": ages[int(rng.integers(3))],
        "hired": rng.integers(0, 2, n), "good": rng.integers(0, 2, n),
    })  # fmt: skip
    groups = rng.integers(0, k, n)
    groups[:k] = np.arange(k)
    return rng, people, groups, k


def count(name, people, mine):
    """Statistics of those of people who are mine (V, n), and whether anybody counts."""
    top, bottom = STATISTICS[name](people)
    total = mine @ np.asarray(top, float)
    of = mine.any(axis=1) if bottom is None else mine @ np.asarray(bottom, float)
    return np.divide(
        total, of if bottom is not None else 1, where=of > 0, out=np.zeros(len(total))
    ), of > 0


def publish(name, people, groups, k, digits, sliced):
    """A row for each group that has a number, which is rounded to some digits or not at all."""
    rows = []
    for dept in "xy" if sliced else [""]:
        for group in range(k):
            mine = (groups == group) & ((people.dept == dept) | (not sliced))
            (value,), (of,) = count(name, people, mine.to_numpy()[None])
            if of or (mine.any() and "age" not in name):
                text = repr(float(value)) if digits is None else f"{value:.{digits}f}"
                rows.append({"dept": dept, "sex": NAMES[group], name: text})
    return pd.DataFrame(rows, columns=["dept", "sex", name][not sliced :])


def allow(name, table, people, vectors, digits):
    """(V,) which groups of people (V, n) may have the published numbers."""
    possible = np.ones(len(vectors), bool)
    half = 1e-9 if digits is None else 0.5 * 10.0**-digits + 1e-9
    for *dept, sex, text in table.itertuples(index=False, name=None):
        mine = vectors == NAMES.index(sex)
        if dept:
            mine &= (people.dept == dept[0]).to_numpy()
        value, of = count(name, people, mine)
        told = float(text)
        nobody = abs(told) <= half or ("age" not in name and 1 - told <= half)
        possible &= np.where(of, abs(value - told) <= half, nobody)
    return possible


def read(table, people, k, tmp_path):
    table.to_csv(tmp_path / "table.csv", index=False)
    return FairnessReport.read(
        tmp_path / "table.csv", X=people[["dept", "age"]], group="sex", groups=list(NAMES[:k]),
        names={"hired": "selected"},
    )  # fmt: skip


def find_digits(name, texts):
    """The decimals that numbers were rounded to, as far as their texts tell; None if they were not.

    Of means and sums that all end with 0, fewer.
    """
    digits = max(len(text.partition(".")[2]) for text in texts)
    while (
        "age" in name
        and any(map(float, texts))
        and all(float(x) % 10 ** (1 - digits) == 0 for x in texts)
    ):
        digits -= 1
    return digits if digits < 10 else None


def compare(name, people, mine):
    """Impact ratios (V, K), or one comparison of all (V, 1), of groups (K, V, n) in a slice."""
    sizes, selected = mine.sum(axis=2).T, (mine @ people.hired.to_numpy()).T
    rates = np.divide(selected, sizes, where=sizes > 0, out=np.full(sizes.shape, np.nan))
    most, least = np.nanmax(rates, axis=1), np.nanmin(rates, axis=1)
    if name == "Impact ratio":
        return sizes, rates / most[:, None]
    return sizes, (most - least if "difference" in name else least / most)[:, None]


COMPARISONS = ["Impact ratio", "demographic parity difference", "selection_rate_ratio"]


def check_comparison(seed, name, tmp_path):
    rng, people, groups, k = draw_people(seed)
    digits, sliced = int(rng.integers(1, 4)), bool(rng.integers(2))
    vectors = list_vectors(k, len(people))
    own, rows, texts = np.ones(len(vectors), bool), [], []
    slices = (
        [(d, (people.dept == d).to_numpy()) for d in "xy"]
        if sliced
        else [("", np.ones(len(people), bool))]
    )
    told = []
    for dept, inside in slices:
        if not people.hired[inside].any():
            continue
        shown = (groups == np.arange(k)[:, None, None]) & inside
        (sizes,), (values,) = compare(name, people, shown)
        told.append((inside, sizes, values))
        for group in range(k):
            rows.append(
                {"dept": dept, "sex": NAMES[group], "metric": "count", "value": str(sizes[group])}
            )
        for group, value in zip([*NAMES] if name == "Impact ratio" else [""], values, strict=False):
            if not np.isnan(value):
                texts.append(f"{value:.{digits}f}")
                rows.append({"dept": dept, "sex": group, "metric": name, "value": texts[-1]})
    if not rows:
        return False
    half = 0.5 * 10.0 ** -find_digits("age", texts) + 1e-9
    for inside, sizes, values in told:
        many, theirs = compare(name, people, (vectors == np.arange(k)[:, None, None]) & inside)
        shown = np.array([float(f"{value:.{digits}f}") for value in values])
        own &= (many == sizes).all(axis=1) & ((abs(theirs - shown) <= half) | np.isnan(shown)).all(
            axis=1
        )
    check_table(
        pd.DataFrame(rows).drop(columns=[] if sliced else "dept"),
        people,
        groups,
        k,
        own,
        seed,
        tmp_path,
    )
    return True


def check_world(seed, name, tmp_path):
    """Facts allow what enumeration allows, and everybody is decided as it says."""
    rng, people, groups, k = draw_people(seed)
    digits, sliced = rng.choice([None, 0, 1, 2, 3]), bool(rng.integers(2))
    table = publish(name, people, groups, k, digits, sliced)
    if not len(table):
        return False
    digits = find_digits(name, table[name])
    own = allow(name, table, people, list_vectors(k, len(people)), digits)
    check_table(table, people, groups, k, own, seed, tmp_path)
    return True


def check_table(table, people, groups, k, own, seed, tmp_path):
    """`own`: (V,) which groups of people are possible."""
    report = read(table, people, k, tmp_path)
    facts = report.facts(people[["dept", "age"]], people.hired, people.good)
    vectors = list_vectors(k, len(people))
    assert own[(vectors == groups).all(axis=1)].all()
    assert [facts.allows(vector) for vector in vectors] == own.tolist(), seed
    left = vectors[own]
    possible = np.stack([(left == group).any(axis=0) for group in range(k)], axis=1)
    found = find_worlds(
        facts, propagate(facts), groups if seed % 2 else None, time.perf_counter() + 600
    )
    assert (found.possible | ~possible).all(), seed
    assert (possible | ~found.seen).all(), seed
    assert not found.undecided.any(), seed
    check_examples(facts, found, groups if seed % 2 else None)
    proven = int((found.possible.sum(axis=1) == 1).sum())
    measures = {"proven": proven, "proven_by_solver": proven, "undecided": 0}
    evidence = pack_evidence(found, facts)
    assert check_evidence({"measures": measures, "evidence": evidence}, facts).passes
    report.to_csv(tmp_path / "again.csv")
    again = FairnessReport.from_file(tmp_path / "again.csv", groups=list(NAMES[:k]))
    assert set(again.statistics) == set(report.statistics)


@pytest.mark.parametrize("name", STATISTICS)
def test_a_statistic_allows_the_groups_that_enumeration_allows(name, tmp_path):
    assert sum(check_world(seed, name, tmp_path) for seed in range(8)) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("name", STATISTICS)
def test_many_statistics_allow_the_groups_that_enumeration_allows(name, tmp_path):
    assert sum(check_world(seed, name, tmp_path) for seed in range(1000, 1120)) >= 50


@pytest.mark.parametrize("name", COMPARISONS)
def test_a_comparison_beside_sizes_allows_the_groups_that_enumeration_allows(name, tmp_path):
    assert sum(check_comparison(seed, name, tmp_path) for seed in range(8)) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPARISONS)
def test_many_comparisons_allow_the_groups_that_enumeration_allows(name, tmp_path):
    assert sum(check_comparison(seed, name, tmp_path) for seed in range(1000, 1120)) >= 50


def enumerate_beliefs(facts, beliefs, vectors):
    """(n, K) beliefs given facts, by all vectors of groups."""
    logs = np.log(beliefs)[np.arange(len(beliefs)), vectors].sum(axis=1)
    mass = np.exp(logs) * [facts.allows(vector) for vector in vectors]
    return np.einsum("a,ang->ng", mass, vectors[:, :, None] == np.arange(facts.groups)) / mass.sum()


def publish_rates(people, groups, k):
    rows = [
        {"dept": dept, "sex": NAMES[group], "selection rate": f"{people.hired[mine].mean():.3f}"}
        for dept in "xy"
        for group in range(k)
        if (mine := (people.dept == dept) & (groups == group)).any()
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize("name", [*STATISTICS, "rates without sizes"])
def test_beliefs_given_a_statistic_are_those_of_enumeration(name, tmp_path, monkeypatch):
    """Where tables are listed; those of maximum entropy are nearer to them than beliefs before."""
    near, before = [], []
    for seed in range(12):
        rng, people, groups, k = draw_people(seed)
        if name in STATISTICS:
            table = publish(name, people, groups, k, int(rng.integers(3)), bool(rng.integers(2)))
        else:
            table = publish_rates(people, groups, k)
        if not len(table):
            continue
        facts = read(table, people, k, tmp_path).facts(
            people[["dept", "age"]], people.hired, people.good
        )
        beliefs = rng.dirichlet(np.full(k, 2.0), len(people)).clip(1e-3)
        beliefs /= beliefs.sum(axis=1, keepdims=True)
        wanted = enumerate_beliefs(facts, beliefs, list_vectors(k, len(people)))
        possible = propagate(facts)
        found = condition_beliefs(facts, beliefs, possible)
        assert found.exact.all()
        np.testing.assert_allclose(found.beliefs, wanted, atol=1e-9)
        vectors = list_vectors(k, len(people))
        kept = vectors[[facts.allows(vector) for vector in vectors]]
        best = np.log(np.maximum(beliefs, 1e-9))[np.arange(len(people)), kept].sum(axis=1).max()
        likeliest = find_likeliest_groups(facts, beliefs, possible)
        assert facts.allows(likeliest.groups)
        assert likeliest.log_likelihood == pytest.approx(best)
        with monkeypatch.context() as patch:
            patch.setattr(exact_components, "_MOST_STEPS", -1)
            other = condition_beliefs(facts, beliefs, possible, error=1e-3)
        near.append(np.abs(other.beliefs - wanted).mean())
        before.append(np.abs(beliefs - wanted).mean())
    assert np.mean(near) < 0.85 * np.mean(before)


def test_many_people_are_guessed_by_means(monkeypatch):
    """Those of 400 people, by maximum entropy and by sweeps; beliefs expect what they get."""
    rng = np.random.default_rng(3)
    people = pd.DataFrame({"site": rng.choice([*"uvwxyz"], 400), "age": rng.integers(18, 70, 400)})
    groups = (rng.random(400) < people.age / 90).astype(int)
    table = people.groupby(["site", np.array(["f", "m"])[groups]]).age.mean().round(2)
    table = table.rename_axis(["site", "sex"]).rename("mean age").reset_index()
    report = FairnessReport.read(table, X=people, group="sex")
    facts, prior = report.facts(people, np.zeros(400)), np.full((400, 2), 0.5)
    found = condition_beliefs(facts, prior, error=1e-3)
    right = (found.beliefs.argmax(axis=1) == groups).mean()
    assert right > 0.6
    assert found.beliefs.max(axis=1).mean() == pytest.approx(right, abs=0.05)
    monkeypatch.setattr(dual_ascent, "_MANY", 1)
    swept = condition_beliefs(facts, prior, error=1e-3)
    np.testing.assert_allclose(swept.beliefs, found.beliefs, atol=0.02)


def test_survey_weights_are_read_by_the_name_of_their_column():
    """Many different ones, too: of neighbours, least and greatest are used."""
    rng = np.random.default_rng(0)
    people = pd.DataFrame(
        {"pwgtp": rng.random(3000).round(5) + 0.1, "age": rng.integers(18, 70, 3000)}
    )
    hired, sex = rng.integers(0, 2, 3000), np.array(["f", "m"])[rng.permutation(3000) % 2]
    by = (people.pwgtp * hired).groupby(sex).sum() / people.pwgtp.groupby(sex).sum()
    table = pd.DataFrame({
        "Unweighted n": people.groupby(sex).size(), "Weighted n": people.pwgtp.groupby(sex).sum().round(1),
        "Weighted hires (%)": (100 * by).round(2),
    }).rename_axis("sex").reset_index()  # fmt: skip
    report = FairnessReport.read(table, X=people, group="sex")
    assert {one.metric for one in report.statistics} == {
        "sum of pwgtp", "selection-rate weighted by pwgtp"
    }  # fmt: skip
    assert set(report.metric) == {"people"}
    facts = report.facts(people, hired)
    assert facts.allows((sex == "m").astype(int))
    assert not facts.allows((sex == "f").astype(int))
    with pytest.raises(InputError, match="--map HEADING='selection-rate weighted by COLUMN'"):
        FairnessReport.read(
            pd.DataFrame({"sex": ["f", "m"], "n": [1500, 1500], "rate": ["0.51234", "0.5"]}),
            X=people, group="sex",
        )  # fmt: skip
    with pytest.raises(InputError, match="'pwgtp': somebody's weight is below 0"):
        report.facts(people.assign(pwgtp=-people.pwgtp), hired)


def make_many(n=60):
    rng = np.random.default_rng(1)
    people = pd.DataFrame({"pay": rng.random(n), "sex": rng.choice(["f", "m"], n)})
    return people, rng.integers(0, 2, n)


def test_means_of_many_different_numbers_are_true_of_the_people():
    people, hired = make_many(4000)
    table = people.groupby("sex").pay.agg(["mean", "size"]).round(4).reset_index()
    report = FairnessReport.read(
        table.rename(columns={"mean": "mean pay"}), X=people[["pay"]], group="sex"
    )
    facts = report.facts(people[["pay"]], hired)
    assert len(facts.clauses) == 6
    assert len(facts) <= 1001  # neighbours count alike
    groups = (people.sex == "m").astype(int).to_numpy()
    assert facts.allows(groups)
    assert not facts.allows(groups[np.argsort(-people.pay)])


@pytest.mark.parametrize(
    ("texts", "numbers", "within"),
    [
        (["52,100", "61,550"], [52100, 61550], 5.0),
        (["4.50", "31.0"], [4.5, 31], 0.05),
        (["38.4", "40.07"], [38.4, 40.07], 0.005),
    ],
    ids=["thousands", "significant digits", "zeros left out"],
)
def test_means_are_rounded_as_they_are_written(texts, numbers, within, tmp_path):
    file = tmp_path / "means.csv"
    pd.DataFrame({"sex": ["f", "m"], "mean age": texts}).to_csv(file, index=False)
    X = pd.DataFrame({"age": np.arange(20.0)})
    report = FairnessReport.read(file, X=X, group="sex", groups=["f", "m"])
    assert [one.value for one in report.statistics] == numbers
    assert [one.within for one in report.statistics] == pytest.approx([within] * 2)


@pytest.mark.parametrize(("heading", "cells", "metric", "values"), [
    ("Age, mean (SD)", ["41.6 (13.6)", "40.2 (2.5)"], "mean of age", [41.6, 40.2]),
    ("age (mean (SD))", ["41.6 (13.6)", "40.2 (2.5)"], "mean of age", [41.6, 40.2]),
    ("age", ["41.6 \u00b1 13.6", "40.2 \u00b1 2.5"], "mean of age", [41.6, 40.2]),
    ("Age, median [IQR]", ["41.5 [30, 50]", "40.2 [35, 46]"], "median of age", [41.5, 40.2]),
    ("Average age", ["$41.6", "\u22121,040.2"], "mean of age", [41.6, -1040.2]),
    ("9th decile of age", ["60", "61.5"], "quantile 0.9 of age", [60, 61.5]),
    ("Lowest age", ["18", "19"], "minimum of age", [18, 19]),
    ("AVG(age)", ["41.6", "40.2"], "mean of age", [41.6, 40.2]),
])  # fmt: skip
def test_means_and_quantiles_as_people_write_them(heading, cells, metric, values):
    table = pd.DataFrame({"sex": ["f", "m"], "n": [9, 11], heading: cells})
    X = pd.DataFrame({"age": np.arange(20.0)})
    report = FairnessReport.read(table, X=X, group="sex", groups=["f", "m"])
    assert [one.metric for one in report.statistics] == [metric] * 2
    assert [one.value for one in report.statistics] == values
    assert bool(report.unread) == any(mark in cells[0] for mark in "([\u00b1")


@pytest.mark.parametrize("known", [True, False])
def test_counts_of_numbers_are_of_people_if_nobody_s_is_missing(known, tmp_path):
    people = pd.DataFrame({"age": np.arange(20.0), "sex": ["f", "m"] * 10})
    people.loc[0, "age"] = 0 if known else np.nan
    table = people.groupby("sex").describe()
    titled = "Summary of age\n\n" + table["age"].to_csv()
    for form in (table.to_csv(), table.T.to_csv(), titled):
        (tmp_path / "table.csv").write_text(form)
        report = FairnessReport.read(
            tmp_path / "table.csv", X=people[["age"]], group="sex", groups=["f", "m"]
        )
        assert len(report.statistics) == 12
        assert report.value.tolist() == [10] * 2 * known
        assert ("count: counts those whose 'age' is known" in report.unread) == (not known)
        assert report.facts(people[["age"]], np.zeros(20)).allows([0, 1] * 10)


@pytest.mark.parametrize(("unit", "value"), [("percent", 0.009), ("share", 0.9)])
def test_percent_of_weighted_rates_is_asked_for(unit, value):
    X = pd.DataFrame({"wt": np.arange(1.0, 21)})
    table = pd.DataFrame({"sex": ["f", "m"], "Weighted hires (%)": ["0.9", "0.8"]})
    with pytest.raises(InputError, match="may be 0.9 percent, or a share of 0.9: say which"):
        FairnessReport.read(table, X=X, group="sex")
    read = FairnessReport.read(table, X=X, group="sex", unit=unit)
    assert read.statistics[0].value == pytest.approx(value)


def test_a_mean_with_something_in_brackets_is_not_read(tmp_path):
    file = tmp_path / "means.csv"
    table = {"sex": ["f", "m"], "n": [9, 11], "mean age (hired)": [4.5, 9.5]}
    pd.DataFrame(table).to_csv(file, index=False)
    X = pd.DataFrame({"age": np.arange(20.0)})
    report = FairnessReport.read(file, X=X, group="sex", groups=["f", "m"])
    assert not report.statistics
    assert "mean age (hired): is no number" in report.unread


def test_means_stand_in_an_assessment():
    people, hired = make_many()
    table = people.groupby("sex").pay.mean().round(1).rename("Average pay").reset_index()
    told = assess(table, people[["pay"]], hired, groups=people.sex, beliefs="shares", seconds=20)
    assert "mean of pay \u00b10.05 of 2 groups" in told.read_as[0]
    assert check_evidence(told.to_json(witnesses=True), told.facts).passes
    wrong = table.assign(**{"Average pay": ["7.5", "0.4"]})
    with pytest.raises(ContradictionError, match="people: mean of pay for everybody$"):
        assess(wrong, people[["pay"]], hired, seconds=20)
    read = FairnessReport.read(table, X=people[["pay"]], group="sex")
    assert "mean of pay for everybody" in read.to_html()
    assert not read.protect().statistics


@pytest.mark.parametrize(("heading", "value", "told"), [
    ("mean pay", "7.5", "the report does not match these groups: .* in mean of pay for everybody"),
    ("mean pay", "none of it", "'none of it' is not a number"),
    ("F1", "0.5", "'f1-score' looks at labels: give labels"),
    ("mean age", "0.5", "'mean age' is no number of people"),
    ("Impact ratio", "0.5", "'Impact ratio' compares groups"),
    ("mean pay of denied", "0.5%", "'0.4' and '0.5%' are in different units"),
])  # fmt: skip
def test_statistics_of_others_or_unreadable_ones_are_one_clear_error(heading, value, told):
    people, hired = make_many()
    table = pd.DataFrame({"sex": ["f", "m"], heading: [value, "0.4"]})
    with pytest.raises(InputError, match=told):
        assess(table, people[["pay"]], hired, groups=people.sex, beliefs="shares", seconds=20)


@pytest.mark.parametrize(("column", "value"), [("noise", "laplace 2"), ("round_to", "5")])
def test_statistics_with_noise_are_refused_in_the_long_form(column, value):
    frame = pd.DataFrame({
        "group": ["f", "m"], "metric": "mean of pay", "value": [0.5, 0.4], column: value,
    })  # fmt: skip
    with pytest.raises(
        InputError, match="row 0, .*mean of pay of numbers that are rounded or noisy"
    ):
        FairnessReport.from_frame(frame)


def test_scores_beside_rounded_numbers_are_not_used():
    names = [*"abcdefgh"]
    table = pd.DataFrame({"sex": names, "n": 10 * np.arange(1, 9), "F1": 0.5})
    people = pd.DataFrame({"pay": np.zeros(360)})
    report = FairnessReport.read(table, X=people, group="sex", groups=names)
    assert not report.statistics
    assert "`f1-score` = not used, as of rounded numbers" in report.read_as


def test_slices_of_a_crafted_file_are_checked(tmp_path):
    frame = pd.DataFrame(
        {"dept": ["x", "x"], "group": ["f", "m"], "metric": "f1", "value": [0.5, 0.4]}
    )
    FairnessReport.from_frame(frame).to_json(tmp_path / "report.json")
    text = (tmp_path / "report.json").read_text()
    FairnessReport.from_file(tmp_path / "report.json")
    (tmp_path / "report.json").write_text(text.replace('"x",', '"y",', 1).replace('"x"\n', '"z"\n'))
    with pytest.raises(InputError, match="unknown value of column 'dept' '.'"):
        FairnessReport.from_file(tmp_path / "report.json")
