"""Reports in files: every format gives equal facts back, and whatever is wrong is told."""

import html
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_fairness_report import RATES, make_people, make_report
from test_protecting import make_exact

from fpbench import FairnessReport, InputError

FORMATS = ("csv", "json", "parquet")
PROTECTED = [
    {},
    {"min_group": 6},
    {"min_cell": 25, "complementary": True},
    {"decimals": 2, "sizes": False},
    {"round_to": 5},
    {"noise": "discrete-gaussian", "epsilon": 2.0, "consistent": True},
    {"noise": {"use": "exponential", "utility": "squared"}, "epsilon": 2.0},
    {"bins": {"age": 3}, "order": 1},
]


def write_and_read(report, kind, path, **options):
    getattr(report, f"to_{kind}")(path)
    return FairnessReport.from_file(path, **options)


def list_facts(facts):
    """Sets of people with what is known of each, in an order that does not depend on codes."""
    sets = facts.membership.toarray().T.astype(int)
    kind, width, rounded = facts.laws
    known = np.column_stack(
        [facts.low, facts.high, kind, width, np.nan_to_num(rounded, nan=-1), facts.derived]
    )
    return sorted(zip(map(tuple, sets), map(tuple, known), strict=True))


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("defences", PROTECTED)
def test_every_format_gives_equal_facts_back(kind, defences, tmp_path):
    metrics = ["selection-rate", "true-positive-rate", "selected", "rejected"]
    report, people, _ = make_exact(k=3, metrics=metrics)
    report = report.protect(**defences, rng=1)
    again = write_and_read(report, kind, tmp_path / f"report.{kind}")
    pd.testing.assert_frame_equal(again.to_frame(), report.to_frame(), check_dtype=False)
    if kind != "csv" or defences.get("sizes", True):  # else a rate of 0 may be nobody's
        assert list_facts(again.facts(*people)) == list_facts(report.facts(*people))
    if kind != "csv":
        assert again.columns == report.columns
        assert again.groups == report.groups
        assert dict(again.defences) == dict(report.defences)


def test_described_formats_keep_the_order_of_groups_and_bins_that_are_not_shown(tmp_path):
    X, predictions, _, groups = make_people(k=3)
    ordered = pd.Categorical(groups, categories=["cat", "ann", "bob"])
    report = FairnessReport.from_predictions(
        X, predictions, ordered, by=["age"], bins={"age": [20, 30, 31, 50]}
    )
    for kind in ("json", "parquet"):
        again = write_and_read(report, kind, tmp_path / f"report.{kind}")
        assert again.groups == ("cat", "ann", "bob")
        assert again.columns[0].edges == (20, 30, 31, 50)
    described = json.loads((tmp_path / "report.json").read_text())
    assert described["format"] == "fpbench-report 1"
    assert described["defences"] == {"min_cell": 10}
    assert set(described["rows"]) == {"age", "group", "metric", "value", "n"}
    report.to_frame().to_parquet(tmp_path / "plain.pq")  # of somebody else
    report.to_frame().to_json(tmp_path / "plain.json", orient="records")
    report.to_csv(tmp_path / "plain")
    for name in ("plain.pq", "plain.json", "plain"):
        plain = FairnessReport.from_file(tmp_path / name)
        assert plain.groups == ("ann", "bob", "cat")
        same = FairnessReport.from_file(tmp_path / name, groups=("cat", "ann", "bob"), decimals=1)
        assert same.groups == report.groups
        assert same.within.all()


BAD_JSON = [
    (lambda d: d.clear(), "a report in JSON is a list of rows, or has an object"),
    (lambda d: d.update(format="fpbench-report 9"), ", not 'fpbench-report 9'"),
    (lambda d: d.update(groups=["ann", "ann"]), "`groups` must be a list of names"),
    (lambda d: d.update(groups=["ann", "eve"]), "unknown group 'bob'"),
    (lambda d: d.update(columns=[]), "`columns` must name each column of slices once"),
    (lambda d: d["columns"][0].update(edges=[3, 2]), "a column needs a name, and values that"),
    (lambda d: d["columns"][1].update(values=["clerk"]), "'farmer' is none of the values that"),
    (lambda d: d["rows"].update(n=[1]), "the columns of `rows` are of different lengths"),
    (lambda d: d["rows"].update(n={"a": 1}), "column 'n' must be a list of texts and numbers"),
    (lambda d: d["rows"]["value"].__setitem__(3, "x"), "row 3, column 'value': 'x'"),
]


@pytest.mark.parametrize(("change", "message"), BAD_JSON)
def test_what_is_wrong_in_json_is_told(change, message, tmp_path):
    make_report(order=1)[0].to_json(tmp_path / "report.json")
    whole = json.loads((tmp_path / "report.json").read_text())
    change(whole)
    (tmp_path / "report.json").write_text(json.dumps(whole))
    with pytest.raises(InputError) as raised:
        FairnessReport.from_file(tmp_path / "report.json")
    assert message in str(raised.value)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(
    "content",
    [b"", b"\0", b"[" * 100_000, b"\xff\xfe", b"PAR1" + b"\0" * 50 + b"PAR1", b'{"rows": NaN}'],
)
def test_what_is_no_report_is_refused(kind, content, tmp_path):
    (tmp_path / f"file.{kind}").write_bytes(content)
    for name in ("file", "missing", "a\0b"):
        with pytest.raises(InputError):
            FairnessReport.from_file(tmp_path / f"{name}.{kind}")


JUNK = ["", "nan", "inf", "-1", "1e999", "0.5", "7", "9" * 400, "x", "ann", "bob", "<3", "[2, 1)",
        "[1, 2)", "\0", "é", " ", "None", "selected", "true-positive-rate", "laplace 2",
        "gaussian -1", "1e300", "-0.0", "True", ">=inf", "job", "0x10", "1_000"]  # fmt: skip


def corrupt(frame, rng):
    """A frame with one to three things wrong with it, or not."""
    for _ in range(rng.integers(1, 4)):
        what, n = rng.integers(9), len(frame)
        column = frame.columns[rng.integers(len(frame.columns))] if len(frame.columns) else None
        if what <= 3 and n and column is not None:
            frame.iloc[rng.integers(n), list(frame.columns).index(column)] = rng.choice(JUNK)
        elif what == 4 and column is not None:
            frame = frame.drop(columns=column)
        elif what == 5 and n:
            frame = pd.concat([frame, frame.iloc[[rng.integers(n)]]], ignore_index=True)
        elif what == 6 and n:
            frame = frame.drop(index=rng.integers(n)).reset_index(drop=True)
        elif what == 7 and column is not None:
            name = rng.choice(["group", "n", "within", "noise", "below", "round_to", "job", "new"])
            frame = frame.rename(columns={column: name})
        elif n and column is not None:
            frame[column] = rng.permutation(frame[column].to_numpy())
        frame = frame.loc[:, ~frame.columns.duplicated()] if rng.random() < 0.5 else frame
        if frame.columns.duplicated().any():
            break
    return frame


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2))
def test_a_corrupted_report_is_refused_or_valid(part, tmp_path):
    """500 of them: whatever is read can be published again, and gives facts or one error."""
    rng = np.random.default_rng(part)
    reports = [
        make_exact(60, metrics=["selection-rate", "selected"], order=1)[0].protect(**d, rng=0)
        for d in PROTECTED[:6]
    ]
    texts = [report.to_frame().astype(object).where(lambda f: f.notna(), "") for report in reports]
    people = make_people(60)[:3]
    read = refused = 0
    for _ in range(250):
        frame = corrupt(texts[rng.integers(len(texts))].astype(str).copy(), rng)
        frame.to_csv(tmp_path / "bad.csv", index=False)
        try:
            report = FairnessReport.from_file(tmp_path / "bad.csv")
            read += 1
            again = FairnessReport.from_frame(report.to_frame(), groups=report.groups)
            pd.testing.assert_frame_equal(again.to_frame(), report.to_frame(), check_dtype=False)
            report.facts(*people)
        except InputError:
            refused += 1
    assert refused > 25
    assert read > 25


@pytest.mark.slow
@settings(max_examples=20)
@given(*[st.text(st.characters(codec="ascii", exclude_categories=["C"]), min_size=1)] * 2)
def test_a_page_escapes_what_others_wrote(job, group):
    X = pd.DataFrame({"<b>": [job + "1", job + "2"] * 20})
    groups = np.array([group + "1"] * 20 + [group + "2"] * 20)
    report = FairnessReport.from_predictions(X, [0, 1] * 20, groups, by=["<b>"])
    page = report.to_html(title="<script>")
    assert "<script>" not in page
    assert "<b>" not in page
    assert html.escape((job + "1").strip()) in page
    assert html.escape((group + "2").strip()) in page


def test_a_page_has_every_table(tmp_path):
    report, _, _ = make_exact(metrics=RATES)
    report = report.protect(min_group=5)
    page = report.to_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text() == page
    for what in ("Everybody", "By age", "By age and job", "By job and hours"):
        assert f"<summary>{what}</summary>" in page
    assert page.count("<tr>") == len(report) // 2 + page.count("<thead>")
    assert page.count("a group has fewer than 5") == report.suppressed.sum()
    assert "Defences: min_group 5." in page
