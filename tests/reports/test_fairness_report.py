"""Reports: what they publish is true, survives files, and becomes true facts about the people."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpbench import FairnessReport, InputError
from fpbench.claims import ContradictionError
from fpbench.correction import propagate
from fpbench.reports import REPORT_METRICS
from fpbench.reports.slices import SliceColumn

RATES = ("selection-rate", "true-positive-rate", "false-positive-rate")
JOBS = ("clerk", "farmer", "smith")
NUMBERS = tuple(
    name
    for name, counted in REPORT_METRICS.items()
    if not counted.is_rate and counted.view == "prediction"
)


def make_people(n=300, seed=0, k=2):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, k, n)
    X = pd.DataFrame(
        {
            "age": rng.integers(17, 90, n),
            "job": pd.Categorical(rng.choice(JOBS, n)),
            "hours": rng.normal(40, 9, n),
            "same": 1,
        }
    )
    predictions = (rng.random(n) < 0.3 + 0.3 * group / k).astype(int)
    labels = (rng.random(n) < 0.5).astype(int)
    return X, predictions, labels, np.array(["ann", "bob", "cat", "dan"])[group]


def make_report(n=300, seed=0, k=2, **options):
    X, predictions, labels, groups = make_people(n, seed, k)
    options = {"by": list(X), "order": 2, "labels": labels} | options
    report = FairnessReport.from_predictions(X, predictions, groups, **options)
    return report, (X, predictions, labels), groups


def count_true(facts, report, groups):
    codes = np.array([report.groups.index(group) for group in groups])
    return facts.count(np.eye(len(report.groups))[codes])


def test_rates_are_those_of_the_people():
    report, (X, predictions, labels), groups = make_report(metrics=RATES)
    frame = report.to_frame()
    assert list(frame.columns) == ["age", "job", "hours", "group", "metric", "value", "n"]
    assert set(frame["metric"]) == set(RATES)
    row = frame[(frame["job"] == "smith") & (frame["age"] == "") & (frame["hours"] == "")]
    for metric, part in (("selection-rate", labels >= 0), ("true-positive-rate", labels == 1)):
        for group in ("ann", "bob"):
            mine = row[(row["metric"] == metric) & (row["group"] == group)].iloc[0]
            who = part & (X["job"] == "smith").to_numpy() & (groups == group)
            assert (mine["value"], mine["n"]) == (predictions[who].mean(), who.sum())
    sizes = frame.groupby(["age", "job", "hours", "metric"])["n"].sum()
    assert sizes.min() >= 10
    assert (sizes == 300).sum() == 1  # everybody together


def test_groups_have_the_order_of_their_categories_or_of_the_alphabet(tmp_path):
    X, predictions, _, groups = make_people(k=3)
    ordered = pd.Categorical(groups, categories=["cat", "nobody", "ann", "bob"])
    report = FairnessReport.from_predictions(X, predictions, ordered, by=["job"])
    assert report.groups == ("cat", "ann", "bob")
    report.to_csv(tmp_path / "report.csv")
    assert FairnessReport.from_file(tmp_path / "report.csv").groups == ("ann", "bob", "cat")
    same = FairnessReport.from_file(tmp_path / "report.csv", groups=("cat", "ann", "bob"))
    assert (same.facts(X, predictions).low == report.facts(X, predictions).low).all()
    assert (count_true(report.facts(X, predictions), report, groups)[:, 0] > 0).any()
    with pytest.raises(InputError, match="groups must be 300 names"):
        FairnessReport.from_predictions(X, predictions, groups[:5], by=["job"])


def test_slices_of_numbers_say_where_they_begin_and_end():
    report, (X, _, _), _ = make_report(order=1, bins={"age": [30, 50], "hours": 4})
    frame = report.to_frame()
    assert set(frame["age"]) == {"", "<30", "[30, 50)", ">=50"}
    young = frame[(frame["age"] == "[30, 50)")]
    assert young["n"].sum() == X["age"].between(30, 49).sum()
    assert len(set(frame["hours"])) == 5


@settings(max_examples=15)
@given(
    seed=st.integers(0, 99),
    k=st.integers(2, 3),
    metrics=st.lists(st.sampled_from(list(REPORT_METRICS)), min_size=1, max_size=4, unique=True),
    defence=st.sampled_from(
        [{}, {"decimals": 1}, {"decimals": 2}, {"round_to": 5}, {"min_group": 2}]
    ),
)
def test_facts_of_a_report_are_true_of_its_people(seed, k, metrics, defence):
    if "decimals" in defence:
        metrics = [name for name in metrics if REPORT_METRICS[name].is_rate] or ["selection-rate"]
    if "round_to" in defence:
        metrics = [name for name in metrics if name in NUMBERS] or ["selected"]
    report, people, groups = make_report(120, seed, k, metrics=metrics, rng=seed, **defence)
    facts = report.facts(*people)
    counts = count_true(facts, report, groups)
    assert (facts.low <= counts).all()
    assert (counts <= facts.high).all()
    if not defence:
        assert (facts.low == facts.high).all()
    possible = propagate(facts)
    codes = [report.groups.index(group) for group in groups]
    assert possible[np.arange(len(groups)), codes].all()


@pytest.mark.slow
@pytest.mark.parametrize("options", [
    {},
    {"metrics": RATES, "min_cell": 3},
    {"metrics": RATES, "decimals": 2},
    {"metrics": NUMBERS},
    {"metrics": ("selected", "rejected"), "round_to": 5, "rng": 1},
    {"metrics": ("selected", "rejected"), "noise": "laplace", "epsilon": 2.0, "rng": 1},
    {"metrics": ("selected",), "noise": "gaussian", "epsilon": 2.0, "rng": 1},
])  # fmt: skip
def test_a_report_survives_a_file(options, tmp_path):
    report, people, _ = make_report(k=3, **options)
    report.to_csv(tmp_path / "report.csv")
    again = FairnessReport.from_file(tmp_path / "report.csv")
    pd.testing.assert_frame_equal(again.to_frame(), report.to_frame())
    one, other = report.facts(*people), again.facts(*people)
    for name in ("low", "high", "sigma", "scale", "derived"):
        assert (getattr(one, name) == getattr(other, name)).all()
    assert (one.membership != other.membership).nnz == 0


def test_suppressed_cells_are_not_published_and_their_remainders_follow():
    report, people, groups = make_report(metrics=["selected"], min_cell=40)
    frame = report.to_frame()
    assert frame["n"].min() >= 40
    facts = report.facts(*people)
    assert facts.derived.any()
    counts = count_true(facts, report, groups)
    assert (facts.low[facts.derived] == counts[facts.derived]).all()
    assert "the rest of [" in facts.name(int(np.flatnonzero(facts.derived)[0]))
    apart, _, _ = make_report(metrics=["selected"], min_cell=0, min_group=8)
    assert np.nanmin(apart.value) >= 8
    assert (apart.below[apart.suppressed] == 8).all()
    assert apart.suppressed.any()


def test_noise_spends_the_epsilon_over_all_tables():
    # 7 tables: everybody, 3 columns, 3 pairs; another group changes two counts of each.
    options = {"noise": "laplace", "epsilon": 2.0, "consistent": False, "rng": 0}
    report, people, groups = make_report(metrics=["selected", "rejected"], **options)
    assert set(report.scale) == {14 / 2.0}
    assert not report.sigma.any()
    both, _, _ = make_report(metrics=["selected", "true-positives"], min_cell=0, **options)
    assert set(both.scale) == {28 / 2.0}
    facts = report.facts(*people)
    assert facts.noisy.all()
    off = facts.low - count_true(facts, report, groups)
    assert np.abs(off).mean() == pytest.approx(7, rel=0.25)
    gauss, _, _ = make_report(metrics=["selected"], **{**options, "noise": "gaussian"})
    assert 4 < gauss.sigma[0] < 12
    assert not gauss.scale.any()


@pytest.mark.slow
def test_random_rounding_keeps_the_mean():
    values = [
        make_report(60, metrics=["selected"], order=0, round_to=5, rng=seed)[0].value
        for seed in range(300)
    ]
    exact = make_report(60, metrics=["selected"], order=0)[0].value
    assert set(np.ravel(values) % 5) == {0}
    assert np.mean(values, axis=0) == pytest.approx(exact, abs=0.5)


def change(frame, row, column, value):
    frame = frame.copy()
    frame[column] = frame[column].astype(object)
    frame.loc[row, column] = value
    return frame


@pytest.mark.parametrize(("row", "column", "value", "message"), [
    (4, "value", "much", "row 4, column 'value': 'much'"),
    (4, "value", 1.5, "row 4, column 'value': 1.5 is not a rate"),
    (4, "value", "54.1%", "row 4, column 'value': '54.1%' .* divide percentages by 100"),
    (4, "value", "0,54", "row 4, column 'value': '0,54' .* decimal point"),
    (4, "value", "inf", "row 4, column 'value': inf"),
    (4, "group", " ", "row 4, column 'group': is blank"),
    (4, "group", "an", "row 4, column 'group': unknown group 'an'; did you mean 'ann'"),
    (5, "group", "ann", "rows 4 and 5 are both the selection-rate of 'ann' for age"),
    (4, "n", -3, "row 4, column 'n': -3"),
    (4, "n", 2.5, "row 4, column 'n': 2.5"),
    (4, "metric", "selection-rat", "row 4, column 'metric': unknown metric 'selection-rat'; did"),
    (4, "age", "[0, 99)", r"column 'age': the bin '<\d+' overlaps others: .*\[0, 99\)"),
    (2, "noise", "laplac 3", "row 2, column 'noise': 'laplac 3'"),
])  # fmt: skip
def test_a_bad_row_is_named_with_its_column(row, column, value, message):
    own = {"metrics": ["selected"], "noise": "laplace", "epsilon": 1.0} if column == "noise" else {}
    frame = change(make_report(order=1, rng=0, **own)[0].to_frame(), row, column, value)
    with pytest.raises(InputError, match=message):
        FairnessReport.from_frame(frame, groups=("ann", "bob"))


@pytest.mark.parametrize(("edit", "options", "message"), [
    (lambda frame: frame.drop(columns="value"), {}, "no column 'value'"),
    (lambda frame: frame[:0], {}, "the report has no rows"),
    (lambda frame: frame[frame["group"] == "ann"], {}, "every row is of the group 'ann'"),
    (lambda frame: frame, {"groups": "fm"}, "groups must be"),
    (lambda frame: frame, {"groups": ["ann"]}, "groups must be"),
    (lambda frame: frame, {"decimals": -1}, "decimals must be"),
    (lambda frame: frame, {"decimals": "2"}, "decimals must be"),
])  # fmt: skip
def test_bad_frames_and_options_are_refused(edit, options, message):
    frame = make_report(order=1)[0].to_frame()
    with pytest.raises(InputError, match=message):
        FairnessReport.from_frame(edit(frame), **options)


@pytest.mark.parametrize("wrong", ["bobb", "Bob", "x"])
@pytest.mark.parametrize("form", ["frame", "csv", "json", "rows.json", "parquet"])
def test_a_mistyped_group_is_named_and_no_contradiction(wrong, form, tmp_path):
    report, (X, predictions, _), _ = make_report(order=1)
    frame = change(report.to_frame(), 5, "group", wrong)
    file = tmp_path / f"report.{form}"
    if form == "csv":
        frame.to_csv(file, index=False)
    elif form == "rows.json":
        frame.to_json(file, orient="records")
    elif form == "json":
        report.to_json(file)
        whole = json.loads(file.read_text())
        whole["rows"]["group"][5] = wrong
        file.write_text(json.dumps(whole))
    elif form == "parquet":
        pytest.importorskip("pyarrow")
        frame.astype({"value": float, "n": int}).to_parquet(file)
    mend = "valid: ann, bob" if (wrong, form) == ("x", "json") else "did you mean 'bob'?"
    read, source = FairnessReport.from_file, file
    if form == "frame":
        read, source = FairnessReport.from_frame, frame
    with pytest.raises(InputError) as raised:
        read(source)
    assert f"row 5, column 'group': unknown group {wrong!r}; {mend}" in str(raised.value)
    both = FairnessReport.from_frame(frame, groups=("ann", "bob", wrong))  # if it is none mistyped
    with pytest.raises(InputError):
        both.facts(X, predictions)


def test_groups_of_similar_names_and_rare_ones_are_no_mistakes():
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"town": rng.choice(["a", "b", "c"], 400)})
    groups = np.where(people["town"] == "c", "aged 25", "aged 26")
    groups[:2] = "x"
    predictions = rng.integers(0, 2, 400)
    report = FairnessReport.from_predictions(people, predictions, groups, by=["town"], min_cell=0)
    frame = report.to_frame()
    there = FairnessReport.from_frame(frame[frame["n"] > 0])
    assert there.groups == ("aged 25", "aged 26", "x")


def test_a_noisy_rate_has_a_size():
    """Else nothing would be measured of what it tells, and the report would look harmless."""
    exact, _, _ = make_report(order=1)
    frame = exact.protect(noise="laplace", epsilon=1.0, rng=0).to_frame()
    row = int(np.flatnonzero(frame["value"].notna())[2])
    with pytest.raises(InputError, match=f"row {row}, .* is a noisy rate, and 'n' is missing"):
        FairnessReport.from_frame(change(frame.astype(object), row, "n", None))


def test_a_slice_that_holds_nobody_is_named_with_its_column():
    report, (X, predictions, _), _ = make_report(order=1)
    frame = report.to_frame()
    row = int(np.flatnonzero(frame["job"] == "clerk")[0])
    other = FairnessReport.from_frame(frame.replace({"job": {"clerk": "clark"}}))
    words = f"row {row}, column 'job': none of these people has 'clark' .did you mean 'clerk'?"
    with pytest.raises(InputError, match=words):
        other.facts(X, predictions)
    with pytest.raises(
        InputError, match="slices are cut; valid: age, hours, job.* .in a report all columns but"
    ):
        FairnessReport.from_frame(frame.assign(size=1)).facts(X, predictions)


@pytest.mark.parametrize("metrics", [("selection-rate",), ("selected", "rejected")])
def test_other_predictions_and_a_wrong_value_are_no_contradiction_of_cells(metrics):
    report, (X, predictions, _), _ = make_report(order=1, metrics=metrics)
    words = "row 0, column 'value': .* for everybody makes .* people over the groups, but of"
    sized = "row 0, column 'n': selected for everybody: n is .* other people, predictions"
    with pytest.raises(InputError, match=words if len(metrics) == 1 else sized):
        report.facts(X, 1 - predictions)
    frame = report.to_frame()
    frame.loc[0, "value"] += 1 / frame.loc[0, "n"] if len(metrics) == 1 else 1
    with pytest.raises(InputError, match=words):
        FairnessReport.from_frame(frame).facts(X, predictions)


def test_a_column_that_is_named_twice_cuts_once():
    once, _, _ = make_report(by=["job", "same", "hours"])
    twice, _, _ = make_report(by=["job", "same", "job", "hours", "hours"])
    pd.testing.assert_frame_equal(twice.to_frame(), once.to_frame())


def test_two_metrics_of_one_group_do_not_stand_for_those_of_both():
    metrics = ("selected", "selection-rate")
    report, (X, predictions, _), groups = make_report(order=1, metrics=metrics)
    frame = report.to_frame()
    of_one = frame[frame["group"] == "ann"]
    facts = FairnessReport.from_frame(of_one, groups=report.groups).facts(X, predictions)
    counts = count_true(facts, report, groups)
    assert ((facts.low <= counts) & (counts <= facts.high)).all()
    wrong = frame["value"].where(frame["metric"] != "selected", frame["value"] + 1)
    with pytest.raises(ContradictionError, match="contradict"):
        FairnessReport.from_frame(frame.assign(value=wrong)).facts(X, predictions)


def test_rounded_numbers_of_one_group_alone_are_read_by_their_law():
    report, (X, predictions, _), _ = make_report(metrics=["selected"], round_to=5, rng=1)
    frame = report.to_frame()
    one = FairnessReport.from_frame(frame[frame["group"] == "ann"], groups=report.groups)
    _, width, rounded = one.facts(X, predictions).laws
    known = np.isfinite(rounded).any(axis=1)
    assert known.any() and not np.isfinite(rounded).all(axis=1).any()
    assert (width == 5 * known).all()


def test_whole_numbers_are_the_same_with_and_without_zeros():
    X, predictions, _, groups = make_people()
    X["job"] = np.arange(len(X)) % 3
    texts = X.assign(job=X["job"].astype(str))
    report = FairnessReport.from_predictions(texts, predictions, groups, by=["job"])
    floats = X.assign(job=X["job"].astype(float))
    assert (report.facts(floats, predictions).low == report.facts(X, predictions).low).all()


@pytest.mark.parametrize("dtype", ["float32", "Float32", "float16"])
@pytest.mark.parametrize("bins", [3, {"hours": [0.1, 0.3, 0.7]}])
def test_short_floats_are_in_the_bins_that_a_file_of_them_is_in(dtype, bins, tmp_path):
    X, predictions, _, groups = make_people(60)
    X = pd.DataFrame({"hours": np.round(X["hours"] % 1, 1).astype(dtype)})
    report = FairnessReport.from_predictions(
        X, predictions, groups, by=["hours"], bins=bins, min_cell=0
    )
    X.to_csv(tmp_path / "people.csv", index=False)
    report.to_csv(tmp_path / "report.csv")
    read = FairnessReport.from_file(tmp_path / "report.csv")
    facts = read.facts(pd.read_csv(tmp_path / "people.csv"), predictions)
    assert (facts.low == report.facts(X, predictions).low).all()
    assert (facts.low == count_true(facts, read, groups)).all()


def test_reports_that_hold_nothing_tell_no_counts():
    report, people, _ = make_report(order=1)
    assert not len(report.protect(min_cell=1000).facts(*people))


@pytest.mark.parametrize("hour", [None, 9])
def test_slices_by_dates_are_found_again_in_files(hour, tmp_path):
    X, predictions, _, groups = make_people(60)
    X = pd.DataFrame({"since": pd.to_datetime("2024-01-31") + pd.to_timedelta(X["age"] % 3, "D")})
    if hour is not None:
        X.loc[0, "since"] += pd.Timedelta(hours=hour)
    X.loc[1, "since"] = None
    report = FairnessReport.from_predictions(X, predictions, groups, by=["since"], min_cell=0)
    X.to_csv(tmp_path / "people.csv", index=False)
    report.to_csv(tmp_path / "report.csv")
    facts = FairnessReport.from_file(tmp_path / "report.csv").facts(
        pd.read_csv(tmp_path / "people.csv"), predictions
    )
    assert (facts.low == count_true(facts, report, groups)).all()
    assert len(facts) == len(report.facts(X, predictions))


def test_a_value_that_files_of_people_read_as_missing_is_told(tmp_path):
    X, predictions, _, groups = make_people(60)
    X = pd.DataFrame({"region": np.where(X["age"] % 2, "NA", "EU")})
    report = FairnessReport.from_predictions(X, predictions, groups, by=["region"])
    X.to_csv(tmp_path / "people.csv", index=False)
    with pytest.raises(InputError, match=r"has 'NA' .* read as a missing value: give it another"):
        report.facts(pd.read_csv(tmp_path / "people.csv"), predictions)


def test_columns_are_found_by_their_names_as_text():
    X, predictions, _, groups = make_people()
    X.columns = [1, "job", "hours", "n"]
    report = FairnessReport.from_predictions(X, predictions, groups, by=[1, "job"])
    assert [column.name for column in report.columns] == ["1", "job"]
    assert len(report.facts(X, predictions))
    with pytest.raises(InputError, match="cannot be called 'n': rename it"):
        FairnessReport.from_predictions(X, predictions, groups, by=["n"])
    X.columns = ["job", "job", "hours", "n"]
    with pytest.raises(InputError, match="more than one column 'job', by which slices are cut"):
        FairnessReport.from_predictions(X, predictions, groups, by=["job"])


def test_a_file_that_is_no_table_is_refused(tmp_path):
    make_report()[0].to_csv(tmp_path / "report.csv")
    text = (tmp_path / "report.csv").read_text()
    for name, content, message in (
        ("empty", b"", "empty.csv: is empty"),
        ("wide", text.encode("utf-16"), "is not UTF-8 text .*save it as UTF-8"),
        ("semicolons", text.replace(",", ";").encode(), "not ','. Save it with commas"),
        ("short", f"{text}clerk,3\n".encode(), r"short.csv, line \d+: 2 columns, but the first"),
        ("quote", f'{text}"'.encode(), "quote.csv: cannot be read"),
        (
            "twice",
            text.replace("hours", "age", 1).encode(),
            "line 1: 2 columns have the name 'age'",
        ),
    ):
        (tmp_path / f"{name}.csv").write_bytes(content)
        with pytest.raises(InputError, match=message):
            FairnessReport.from_file(tmp_path / f"{name}.csv")
    with pytest.raises(InputError, match="cannot be read: No such file"):
        FairnessReport.from_file(tmp_path / "missing.csv")
    (tmp_path / "mark.csv").write_bytes(text.encode("utf-8-sig"))
    assert FairnessReport.from_file(tmp_path / "mark.csv").groups == ("ann", "bob")


def test_blanks_around_names_are_those_of_a_file_only(tmp_path):
    """Files are read without them, so that frames with them are about the same people."""
    X, predictions, _, groups = make_people()
    X["job"] = [f" {job} " for job in X["job"]]
    groups = np.array([f"{group} " for group in groups])
    report = FairnessReport.from_predictions(X, predictions, groups, by=["job"])
    assert report.groups == ("ann", "bob")
    report.to_csv(tmp_path / "report.csv")
    again = FairnessReport.from_file(tmp_path / "report.csv")
    plain = X.assign(job=X["job"].str.strip())
    for people in (X, plain):
        assert (again.facts(people, predictions).low == report.facts(X, predictions).low).all()
    odd = X.assign(job=[{1}] * 300)
    with pytest.raises(InputError, match="column 'job' must hold one value a person"):
        FairnessReport.from_predictions(odd, predictions, groups, by=["job"])
    for wrong in (["a", "a "], ["a", " "]):
        with pytest.raises(InputError, match="a name is empty, or two have the same text"):
            FairnessReport.from_predictions(X, predictions, np.tile(wrong, 150), by=["job"])
    missing = np.where(np.arange(300) == 3, None, groups)
    with pytest.raises(InputError, match="groups, row 3: no group"):
        FairnessReport.from_predictions(X, predictions, missing, by=["job"])


def test_a_report_about_others_is_refused():
    report, (X, predictions, _), _ = make_report()
    with pytest.raises(InputError, match=r"row \d+, column 'n': .* is about other people"):
        report.facts(X[:200], predictions[:200])
    with pytest.raises(InputError, match=r"column 'n': selection-rate for .* other people"):
        report.facts(X.assign(age=X["age"] + 3), predictions)
    with pytest.raises(InputError, match="no column 'age', by which slices are cut; did you mean"):
        report.facts(X.rename(columns={"age": "ages"}), predictions)
    hours = X["hours"].astype(object).where(X.index != 7, "many").where(X.index != 3, None)
    for wrong, message in ((hours, "row 7: 'many'"), (X["hours"] > 40, "row 0: ")):
        with pytest.raises(InputError, match=f"'hours' has bins of numbers in the .* {message}"):
            report.facts(X.assign(hours=wrong), predictions)
    with pytest.raises(InputError, match="predictions: must be 0 or 1, not 2 at "):
        report.facts(X, predictions * 2)
    with pytest.raises(InputError, match="X must be a data frame, not "):
        report.facts(X.to_numpy(), predictions)
    more = change(report.to_frame(), 6, "n", 290)
    more = change(more, 6, "value", 0)
    with pytest.raises(InputError, match=r"row 6, column 'n': .* n sums to \d+ over the groups"):
        FairnessReport.from_frame(more).facts(X, predictions)
    fewer = change(change(report.to_frame(), 6, "n", 1), 6, "value", 0)
    with pytest.raises(InputError, match=r"row \d+, column 'n': .* n sums to \d+ over the groups"):
        FairnessReport.from_frame(fewer).facts(X, predictions)
    rates, _, _ = make_report(metrics=["true-positive-rate"])
    with pytest.raises(InputError, match=r"row 0, column 'metric': 'true-pos.* give labels"):
        rates.facts(X, predictions)
    numbers, _, _ = make_report(metrics=["selected"])
    with pytest.raises(
        InputError, match=r"column 'n': selected for .*: n is \d+, but \d+ of these"
    ):
        numbers.facts(X, 1 - predictions)


def test_rounded_rates_must_be_said_to_be():
    report, people, _ = make_report(metrics=["selection-rate"], decimals=2)
    frame = report.to_frame().drop(columns="within")
    with pytest.raises(InputError, match=r"row \d+, column 'value': .* say so by `decimals`"):
        FairnessReport.from_frame(frame).facts(*people)
    told = FairnessReport.from_frame(frame, decimals=2).facts(*people)
    assert (told.low == report.facts(*people).low).all()
    # Sizes are exact, whatever becomes of the rates.
    sizes = told.take(told.low.sum(axis=1) == told.sizes)
    assert (sizes.sizes.max(), sizes.low[np.argmax(sizes.sizes)].sum()) == (300, 300)


def test_cells_that_disagree_are_named():
    report, people, _ = make_report(metrics=["selected"], order=1, min_cell=0)
    frame = report.to_frame()
    rows = frame.index[frame["job"] == "clerk"]
    frame.loc[rows[0], "value"] += 1
    frame.loc[rows[1], "value"] -= 1
    with pytest.raises(ContradictionError) as raised:
        propagate(FairnessReport.from_frame(frame).facts(*people))
    assert raised.value.names == (
        "everybody, predicted 1 (row 0)",
        *(f"job {job}, predicted 1 (row {rows[0] + 2 * i})" for i, job in enumerate(JOBS)),
    )


@pytest.mark.parametrize(("options", "message"), [
    ({"metrics": ["selected-rate"]}, "unknown metric 'selected-rate'; valid: selection-rate"),
    ({"metrics": ["true-positives"], "labels": None}, "'true-positives' looks at labels"),
    ({"by": ["agee"]}, "no column 'agee', by which slices are cut; did you mean 'age'"),
    ({"bins": {"agee": 3}}, "unknown column of bins 'agee'"),
    ({"bins": {"age": [3, 2]}}, "edges of column 'age' must be ascending"),
    ({"order": -1}, "order must be a whole number"),
    ({"min_cell": 2.5}, "min_cell must be a whole number"),
    ({"metrics": ["selected"], "decimals": 2}, "decimals round rates"),
    ({"metrics": ["selected"], "noise": "cauchy", "epsilon": 1.0}, "unknown mechanism 'cauchy'"),
    ({"metrics": ["selected"], "round_to": 1}, "round_to must be a whole number of at least 2"),
    ({"metrics": ["selected"], "noise": "laplace", "epsilon": 1.0, "min_group": 3},
     "min_group and complementary suppress cells by their true counts"),
])  # fmt: skip
def test_bad_parameters_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        make_report(**options)


@given(st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=1, max_size=6, unique=True))
def test_bins_read_back_as_they_were(edges):
    column = SliceColumn.with_edges("x", sorted(edges))
    assert SliceColumn.parse("x", column.values) == column
    people = pd.DataFrame({"x": [*edges, -1e7, 1e7, np.nan]})
    codes = column.code(people)
    assert codes[-3:].tolist() == [0, len(edges), -1]
    assert codes[:-3].tolist() == [sorted(edges).index(edge) + 1 for edge in edges]


def test_a_report_from_elsewhere_needs_no_class():
    """A frame as somebody may type it, of a slice column that the people have as texts."""
    X = pd.DataFrame({"job": ["a"] * 4 + ["b"] * 4})
    frame = pd.DataFrame(
        {"job": ["a", "a"], "group": ["f", "m"], "metric": "selection-rate", "value": [0.5, 1.0],
         "n": [2, 2]}
    )  # fmt: skip
    facts = FairnessReport.from_frame(frame).facts(X, [1, 1, 1, 0] * 2)
    assert propagate(facts)[3].tolist() == [True, False]
    assert propagate(facts)[4:].all()
