"""The command `assess`, as a user meets it."""

import hashlib
import importlib.util
import json
import re

import numpy as np
import pandas as pd
import pytest
from commands import bad, fine
from pages import PAGES, blocks, joined
from reports import make_people, make_report
from sheets import write_xlsx

from fpbench import FairnessReport
from fpbench.base.text import hyphenate
from fpbench.reports import REPORT_METRICS
from fpbench.reports.reading.metric_names import READINGS


@pytest.fixture
def work(tmp_path, command):
    """A folder with people, others who are known, a report that tells much, and one that does not."""
    folder = tmp_path / "work"
    for name, seed in (("people", 0), ("known", 1)):
        X, predictions, groups = make_people(240, seed=seed)
        frame = X.assign(sex=groups, hired=predictions)
        frame.to_csv(folder / f"{name}.csv", index=False)
        if name == "people":
            make_report(X, predictions, groups, order=2).to_csv(folder / "much.csv")
            make_report(X, predictions, groups, order=0).to_csv(folder / "little.csv")
    return folder


COLUMNS = ("--group", "sex", "--prediction", "hired")
FAST = (*COLUMNS, "--people", "people.csv", "--no-search")


def change(file, row=None, **values):
    """A file of the folder with other values."""
    frame = pd.read_csv(file, dtype=str, keep_default_na=False)
    for name, value in values.items():
        frame.loc[slice(None) if row is None else row, name] = value
    frame.to_csv(file, index=False)


@pytest.mark.slow
def test_exit_codes_are_those_of_the_verdict(work, command):
    much = fine(command("assess", "much.csv", *FAST), 3)
    assert much.stdout.startswith("Do not publish: the group of ")
    assert much.stderr == ""
    little = fine(command("assess", "little.csv", *FAST))
    assert little.stdout.startswith("May be published within these limits: nobody's group")
    loose = ("--max-leak", "100%", "--max-proven", 240)
    fine(command("assess", "much.csv", *FAST, *loose))


@pytest.mark.slow
def test_suppressed_numbers_decide_where_they_are_to_be_protected(work, command):
    people = pd.read_csv(work / "people.csv", dtype=str)
    X, predictions = people.drop(columns=["sex", "hired"]), people["hired"].astype(int)
    make_report(X, predictions, people["sex"], order=1, by=["a"]).to_csv(work / "cut.csv")
    frame = pd.read_csv(work / "cut.csv", dtype=str)
    frame.loc[frame["a"] == "0", ["value", "n"]] = "*", ""
    frame.to_csv(work / "cut.csv", index=False)
    loose = ("--max-leak", "90%", "--max-proven", 240, "--json", "record.json")
    told = fine(command("assess", "cut.csv", *FAST, *loose))
    assert "4 numbers of people are suppressed; 4 are known exactly" in " ".join(
        told.stdout.split()
    )
    told = fine(command("assess", "cut.csv", *FAST, *loose, "--protect-hidden", "10%"), 3)
    assert "readers can tell 4 of 4 suppressed numbers too exactly" in " ".join(told.stdout.split())
    record = json.loads((work / "record.json").read_text())
    assert record["criteria"]["protect_hidden"] == 0.1
    assert record["measures"]["hidden_known"]["unprotected"] == 4
    bad(command("assess", "cut.csv", *FAST, "--protect-hidden", "ten"), "--protect-hidden", "10%")


@pytest.mark.slow
def test_the_record_says_all_that_matters(work, command):
    done = fine(
        command("assess", "much.csv", *FAST, "--known", "known.csv", "--json", "out.json"), 3
    )
    record = json.loads((work / "out.json").read_text())
    assert record["verdict"] in " ".join(done.stdout.split())
    assert record["passes"] is False
    limits = {
        "max_leak": 0.01, "max_proven": 0, "max_undecided": 0, "sure": 0.999, "protect_hidden": None
    }  # fmt: skip
    assert record["criteria"] == limits
    measures = record["measures"]
    measured = {
        "leak": measures["leak"],
        "proven": measures["proven"] + measures["sure"],
        "undecided": 0,
    }
    assert {each["name"]: each["measured"] for each in record["checks"]} == measured
    assert {each["name"]: each["threshold"] for each in record["checks"]} == {
        "leak": 0.01, "proven": 0, "undecided": 0
    }  # fmt: skip
    assert [each["outcome"] for each in record["checks"]] == ["not met", "not met", "met"]
    assert set(record["versions"]) >= {"fpbench", "python", "numpy", "scipy", "highspy"}
    assert set(record["inputs"]) == {"report", "people", "known"}
    for name in ("much", "people", "known"):
        entry = record["inputs"]["report" if name == "much" else name]
        content = (work / f"{name}.csv").read_bytes()
        assert entry == {"file": f"{name}.csv", "sha256": hashlib.sha256(content).hexdigest()}
    assert record["options"] == {
        "seconds": 120.0, "search": False, "decimals": None, "positive": None,
        "prediction": ["hired"], "label": None, "group": "sex",
        "beliefs": "learnt", "household": None, "placebo": False,
        "threshold": None, "unit": None, "map": {},
    }  # fmt: skip
    numbers = {"without", "with", "leak", "leak_expected", "limit", "bits", "error_bound"}
    assert all(isinstance(record["measures"][name], float) for name in numbers)
    assert record["measures"]["leak_is"] == "measured"
    assert "learnt from 5 columns of 240 people" in record["beliefs_before"]
    assert 0 < len(record["riskiest"]) <= 10
    assert record["change"] is None
    piped = fine(command("assess", "little.csv", *FAST, "--json", "-"))
    assert json.loads(piped.stdout)["passes"] is True


@pytest.mark.slow
def test_a_record_is_recounted_against_its_files(work, command):
    fine(command("assess", "much.csv", *FAST, "--json", "out.json", "--witnesses"), 3)
    told = fine(command("assess", "--check", "out.json")).stdout
    assert told.startswith("The record is right, by a recount of its worlds and proofs:")
    proven = json.loads((work / "out.json").read_text())["measures"]["proven"]
    assert f"  proven: {proven}" in told
    assert f"  not provable: {240 - proven}" in told
    # Beside the record, or named anew.
    away = work / "away"
    away.mkdir()
    for file in ("much.csv", "people.csv", "out.json"):
        (away / file).write_bytes((work / file).read_bytes())
    (work / "much.csv").rename(work / "else.csv")
    assert fine(command("assess", "--check", "away/out.json")).stdout == told
    anew = ("else.csv", "--people", "people.csv")
    assert fine(command("assess", "--check", "out.json", *anew)).stdout == told
    # Another file, another number, another world.
    other = fine(
        command("assess", "--check", "out.json", "little.csv", "--people", "people.csv"), 1
    )
    assert other.stdout.startswith("The record is not right:\n  little.csv is not the file that")
    record = json.loads((work / "out.json").read_text())
    record["measures"]["proven"] -= 1
    (work / "fewer.json").write_text(json.dumps(record))
    other = fine(command("assess", "--check", "fewer.json", *anew), 1)
    assert f"programs: {proven - 1} by the record, {proven} by its proofs" in other.stdout
    bad(command("assess", "--check", "little.csv"), "little.csv: is no record of `fpbench assess")
    bad(command("assess", "--check", "out.json", "--json", "x"), "--check writes no file")


@pytest.mark.slow
def test_a_record_of_several_reports_is_recounted(work, command):
    files = ("much.csv", "little.csv", *FAST, "--json", "out.json", "--witnesses")
    fine(command("assess", *files), 3)
    assert "The record is right" in fine(command("assess", "--check", "out.json")).stdout


@pytest.mark.slow
def test_a_change_that_passes_is_written_and_passes(work, command):
    people = (*COLUMNS, "--people", "people.csv")
    options = ("--protected", "mild.csv", "--json", "out.json", "--seconds", 600)
    done = fine(command("assess", "much.csv", *people, *options), 3)
    assert "The least change that passes: " in done.stdout
    assert "the changed report: mild.csv" in done.stdout
    record = json.loads((work / "out.json").read_text())["change"]
    assert record["cheapest"] == record["passing"][0]
    assert record["cheapest"]["proven"] == 0
    assert record["attacks"] > 5
    again = json.loads(
        fine(command("assess", "mild.csv", *FAST, "--max-leak", ".03", "--json", "-")).stdout
    )
    assert again["measures"]["proven"] == 0


@pytest.mark.slow
def test_reports_and_people_may_be_in_other_formats(work, command):
    pytest.importorskip("pyarrow")
    frame = pd.read_csv(work / "much.csv", dtype=str, keep_default_na=False)
    frame.to_json(work / "much.json", orient="records")
    frame.astype({"value": float, "n": int}).to_parquet(work / "much.parquet")
    pd.read_csv(work / "people.csv").to_parquet(work / "people.parquet")
    told = [
        json.loads(fine(command(
            "assess", report, *COLUMNS, "--no-search", "--json", "-", "--people", people
        ), 3).stdout)["measures"]["proven"]
        for report, people in (
            ("much.csv", "people.csv"), ("much.json", "people.csv"), ("much.parquet", "people.parquet")
        )
    ]  # fmt: skip
    assert len(set(told)) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "share"), [("2%", 0.02), ("0.5 %", 0.005), ("0.02", 0.02), (".5", 0.5), ("100%", 1.0)]
)
def test_a_share_is_written_in_either_way(work, command, text, share):
    done = command("assess", "little.csv", *FAST, "--max-leak", text, "--json", "-")
    assert json.loads(fine(done).stdout)["criteria"]["max_leak"] == share


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(("arguments", "words"), [
    (("--max-leak", "5"), ["(--max-leak): '5' is no share of people: write 5% or 0.05"]),
    (("--max-leak", "much"), ["(--max-leak): 'much' is no share of people: write 1% or 0.01"]),
    (("--max-leak", "1%x"), ["(--max-leak): '1%x' is no share"]),
    (("--json", "no/out.json"), ["no/out.json: there is no directory no"]),
    (("--protected", "mild.csv"), ["leave out --no-search"]),
    (("--witnesses",), ["--witnesses are written into a record: name one by --json FILE"]),
    (("--group", "sxe"), ["people.csv: no column 'sxe'; did you mean 'sex'?"]),
    (("--prediction", "hierd"), ["people.csv: no column 'hierd'; did you mean 'hired'?"]),
    (("--label", "b0"), ["people.csv: no column 'b0'"]),
    (("--label", "hired"), ["--prediction and --label both name the column 'hired'"]),
    (("--group", "hired"), ["--prediction and --group both name the column 'hired'"]),
    (("--known", "people.csv"), ["people.csv: --known is the file of the people themselves"]),
    (("--known", "gone.csv"), ["gone.csv: cannot be read: No such file"]),
    (("--people", "gone.csv"), ["gone.csv: cannot be read: No such file"]),
    (("--people", "."), [".: cannot be read: it is a directory"]),
])  # fmt: skip
def test_a_wrong_option_is_one_clear_error(work, command, arguments, words):
    bad(command("assess", "much.csv", *FAST, *arguments), *words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--json", "people.csv"), "--json: people.csv is read here, and would be overwritten"),
        (("--json", "./much.csv"), "--json: much.csv is read here"),
        (("--protected", "known.csv"), "--protected: known.csv is read here"),
        (("--protected", "a.out", "--json", "a.out"), "--protected: a.out is named by --json"),
    ],
)
def test_no_output_ends_an_input(work, command, arguments, words):
    before = {file: file.read_bytes() for file in work.iterdir()}
    inputs = ("--people", "people.csv", "--known", "known.csv")
    bad(command("assess", "much.csv", *COLUMNS, *inputs, *arguments), words)
    assert {file: file.read_bytes() for file in work.iterdir()} == before


@pytest.mark.slow
def test_a_changed_report_is_written_in_the_format_of_its_name(work, command):
    options = (*COLUMNS, "--people", "people.csv", "--protected", "mild.json", "--seconds", 600)
    fine(command("assess", "much.csv", *options), 3)
    assert FairnessReport.from_file(work / "mild.json").groups == ("f", "m")


@pytest.mark.slow
def test_what_is_wrong_in_the_report_is_named_with_file_row_and_column(work, command):
    def refuse(*words, name="much.csv"):
        bad(command("assess", name, *FAST), *words)

    original = (work / "much.csv").read_text()

    def broken(row, **values):
        (work / "much.csv").write_text(original)
        change(work / "much.csv", row, **values)

    broken(4, n="500")
    refuse("much.csv: row 4, column 'n'", "the report is about other people")
    broken(3, value="many")
    refuse("much.csv: row 3, column 'value': 'many' is not a number")
    broken(3, metric="selection-rat")
    refuse("much.csv: row 3, column 'metric'", "did you mean 'selection-rate'?")
    broken(6, a="9")
    refuse("much.csv: row 6, column 'a': none of these people has '9' (valid: 0, 1, 2)")
    broken(5, group="fm")
    refuse("much.csv: row 5, column 'group': unknown group 'fm'; did you mean 'm'?")
    broken(0, value="0.123456789")
    refuse("much.csv: row 0, column 'value'", "is no whole number of people", "--decimals")
    broken(slice(None, None, 2), group="x")
    refuse("people.csv, column 'sex', row ", "is not a group of the report")
    (work / "much.csv").write_text(original.replace("likely", "unlikely", 1))
    refuse("much.csv: the people have no column 'unlikely'", "did you mean 'likely'?")
    (work / "odd.json").write_text('{"a": 1}')
    refuse("odd.json: cannot be read as a table in JSON", name="odd.json")
    (work / "odd.json").write_text("[")
    refuse("odd.json: cannot be read as a table in JSON", name="odd.json")
    refuse("gone.csv: cannot be read: No such file", name="gone.csv")


@pytest.mark.slow
def test_what_is_wrong_in_the_people_is_named_with_file_row_and_column(work, command):
    def refuse(*words, options=FAST):
        bad(command("assess", "much.csv", *options), *words)

    original = (work / "people.csv").read_text()
    for values, words in (
        (
            {"sex": "other"},
            ["people.csv, column 'sex', row 7: 'other' is not a group of the report"],
        ),
        ({"sex": ""}, ["people.csv, row 7, column 'sex': no group"]),
        ({"hired": "maybe"}, ["people.csv, row 7, column 'hired': 'maybe' is neither 0 nor 1"]),
        ({"hired": ""}, ["people.csv, row 7, column 'hired'", "neither 0 nor 1"]),
    ):
        (work / "people.csv").write_text(original)
        change(work / "people.csv", 7, **values)
        refuse(*words)
    (work / "people.csv").write_text(original + "1,2\n")
    refuse("people.csv, line 242: 2 columns, but the first line has 7")
    (work / "people.csv").write_text(original)
    refuse("people.csv: no column 'prediction'", "name the column by --prediction",
           options=("--people", "people.csv", "--no-search"))  # fmt: skip
    swapped = pd.read_csv(work / "people.csv")
    swapped["sex"] = np.where(swapped["sex"] == "f", "m", "f")
    swapped.to_csv(work / "people.csv", index=False)
    refuse("much.csv does not match these groups")


@pytest.mark.slow
def test_what_is_wrong_in_the_known_people_is_named(work, command):
    def refuse(*words, **values):
        (work / "known.csv").write_text(original)
        if values:
            change(work / "known.csv", 7, **values)
        bad(command("assess", "much.csv", *FAST, "--known", "known.csv"), *words)

    original = (work / "known.csv").read_text()
    refuse("known.csv, column 'sex', row 7: 'other' is not a group of the report", sex="other")
    refuse("known.csv, row 7, column 'hired': '2' is neither 0 nor 1", hired="2")
    original = original.replace("hired", "fired", 1)
    refuse("known.csv: no column 'hired'; did you mean 'fired'?")


@pytest.mark.slow
def test_several_reports_are_assessed_together(work, command):
    X, predictions, groups = make_people(240)
    stay = np.arange(240) != 7
    reports = {"may": np.ones(240, bool), "june": stay}
    frame = X.assign(sex=groups)
    for name, inside in reports.items():
        rows = np.flatnonzero(inside)
        people = X.iloc[rows].reset_index(drop=True)
        report = make_report(people, predictions[rows], groups[rows], order=1, min_cell=10)
        report.to_csv(work / f"{name}.csv")
        frame[name] = pd.array(np.where(inside, predictions, -1), "Int64")
        frame.loc[~inside, name] = pd.NA
    frame.to_csv(work / "people.csv", index=False)
    names = ("--prediction", "may", "--prediction", "june")
    fast = ("--people", "people.csv", "--group", "sex", "--no-search")
    done = fine(command("assess", "may.csv", "june.csv", *fast, *names, "--json", "out.json"), 3)
    assert " ".join(done.stdout.split()).startswith(
        "Do not publish: the group of 1 of 240 people is proven by the 2 reports together (alone: "
        "0 by may.csv, 0 by june.csv), and guesses"
    )
    record = json.loads((work / "out.json").read_text())
    assert [one["people"] for one in record["reports"]] == [240, 239]
    assert set(record["inputs"]) == {"report 1", "report 2", "people"}

    def refuse(*words, reports=("may.csv", "june.csv"), names=names):
        bad(command("assess", *reports, *fast, *names), *words)

    refuse("--prediction: give one column, or one for each of the 2 reports, not 3",
           names=(*names, "--prediction", "may"))  # fmt: skip
    refuse("people.csv, row 7, column 'june': a blank is neither 0 nor 1",
           reports=("june.csv",), names=names[2:])  # fmt: skip
    refuse("may.csv: a report is named twice", reports=("may.csv", "may.csv"))
    more = pd.concat([frame, frame.iloc[:60].assign(may=pd.NA, june=pd.NA)])  # who are in neither
    more.to_csv(work / "people.csv", index=False)
    again = fine(command("assess", "may.csv", "june.csv", *fast, *names), 3)
    assert again.stdout.splitlines()[:3] == done.stdout.splitlines()[:3]


@pytest.mark.slow
def test_metrics_may_have_the_names_of_the_field(work, command):
    """Whatever the program that wrote the table calls them."""
    X, predictions, groups = make_people(240)
    labels = np.arange(240) % 2
    X.assign(sex=groups, hired=predictions, label=labels).to_csv(work / "people.csv", index=False)
    report = FairnessReport.from_predictions(
        X, predictions, groups, by=["a"], labels=labels,
        metrics=("selection-rate", "true-positive-rate", "false-positive-rate"),
    )  # fmt: skip
    report.to_csv(work / "ours.csv")
    written = {"selection-rate": "Selection rate", "true-positive-rate": "FNR",
               "false-positive-rate": "fpr"}  # fmt: skip
    frame = report.to_frame()
    frame["value"] = np.where(
        frame["metric"] == "true-positive-rate", 1 - frame["value"], frame["value"]
    )
    frame.assign(metric=frame["metric"].map(written)).to_csv(work / "theirs.csv", index=False)
    measures = [
        json.loads(command("assess", name, *FAST, "--json", "-").stdout)["measures"]
        for name in ("ours.csv", "theirs.csv")
    ]
    assert measures[0] == measures[1]
    frame.assign(metric="AUC").to_csv(work / "theirs.csv", index=False)
    bad(command("assess", "theirs.csv", *FAST),
        "theirs.csv: row 0, column 'metric': unknown metric 'AUC'; valid: selection-rate, true",
        "(leave out rows of other metrics; what they tell is not assessed)")  # fmt: skip


@pytest.mark.slow
def test_labels_and_predictions_may_be_any_two_values(work, command):
    labels = np.arange(240) % 2
    for name in ("people", "known"):
        frame = pd.read_csv(work / f"{name}.csv").assign(label=labels)
        frame.to_csv(work / f"{name}-bits.csv", index=False)
        frame["hired"] = frame["hired"].map({0: "no", 1: "yes"})
        frame["label"] = frame["label"].map({0: "no", 1: "yes"})
        frame.to_csv(work / f"{name}.csv", index=False)
    shown = [
        fine(command("--plain", "assess", "much.csv", *COLUMNS, "--no-search", *options), 3).stdout
        for options in (
            ("--people", "people-bits.csv", "--known", "known-bits.csv"),
            ("--people", "people.csv", "--known", "known.csv", "--positive", "yes"),
        )
    ]
    assert shown[0] == shown[1]
    bad(command("assess", "much.csv", *FAST),
        "people.csv, row 0, column 'label': 'no' is neither 0 nor 1; values are 'no' and 'yes': "
        "name what counts as 1, --positive yes")  # fmt: skip

    def refuse(*words, positive="yes"):
        bad(command("assess", "much.csv", *FAST, "--positive", positive), *words)

    refuse("people.csv, column 'label': none is 'yse' (--positive); did you mean 'yes'?",
           positive="yse")  # fmt: skip
    change(work / "people.csv", 7, hired="maybe")
    refuse("row 7, column 'hired': 'maybe' is a third value beside 'yes', which counts as 1")
    change(work / "people.csv", 7, hired="")
    refuse("row 7, column 'hired': a blank is neither 0 nor 1")
    (work / "people-bits.csv").replace(work / "people.csv")
    refuse("people.csv: --positive 'yes' is no value of label or hired")


@pytest.mark.slow
def test_a_column_that_numbers_people_is_no_feature(work, command):
    for name in ("people", "known"):
        pd.read_csv(work / f"{name}.csv").reset_index().to_csv(work / f"{name}.csv", index=False)
    bad(command("assess", "little.csv", *FAST, "--known", "known.csv"),
        "known.csv: column 'index' numbers the rows: leave it out")  # fmt: skip
    fine(command("assess", "little.csv", *FAST))


@pytest.mark.slow
def test_labels_are_found_by_their_name(work, command):
    X, predictions, groups = make_people(240)
    labels = np.arange(240) % 2
    report = FairnessReport.from_predictions(
        X, predictions, groups, by=["a"], labels=labels, metrics=("true-positive-rate",)
    )
    report.to_csv(work / "tpr.csv")
    bad(command("assess", "tpr.csv", *FAST), "tpr.csv: row 0, column 'metric'", "--label")
    frame = X.assign(sex=groups, hired=predictions, label=labels)
    frame.to_csv(work / "people.csv", index=False)
    assert command("assess", "tpr.csv", *FAST).returncode in {0, 3}
    frame.rename(columns={"label": "y"}).to_csv(work / "people.csv", index=False)
    assert command("assess", "tpr.csv", *FAST, "--label", "y").returncode in {0, 3}


@pytest.mark.slow
@pytest.mark.parametrize("width", ["80", "140"])
def test_it_is_readable_on_a_terminal_of_any_width(work, command, width):
    done = fine(command("--plain", "assess", "much.csv", *FAST, COLUMNS=width), 3)
    assert max(map(len, done.stdout.splitlines())) <= int(width)


@pytest.mark.slow
def test_what_the_page_tells_to_type_does_what_it_says(tmp_path, command, monkeypatch):
    """Its Python runs in `test_docs.py`."""
    monkeypatch.chdir(tmp_path / "work")
    page = PAGES["docs/assess.md"]
    names = {}
    for block in blocks(page, "python")[:2]:
        exec(compile(block.text, str(page), "exec"), names)
    for name, block in zip(("rates.csv", "staff.csv"), blocks(page, "csv"), strict=True):
        (tmp_path / "work" / name).write_text(block.text)
    (search, series, record, small) = [
        words for block in blocks(page, "sh") for words in joined(block.text)
    ]
    done = fine(command(*small[1:], "--no-search"), 3)
    assert done.stdout.startswith("Do not publish: the group of 4 of 10 people is proven by it")
    done = fine(command(*search[1:], "--no-search", COLUMNS="100"), 3)
    (shown,) = blocks(page, "text")
    attack, _, changes = shown.text.partition("\nThe least change")
    assert changes  # of noise drawn anew
    printed = iter(done.stdout.splitlines())
    for line in attack.splitlines():
        assert line.strip() == "..." or line in printed, line
    both = fine(command(*series[1:], "--no-search"), 3)
    assert " ".join(both.stdout.split()).startswith(
        "Do not publish: the group of 3 of 2,000 people is proven by the 2 reports together (alone: "
        "0 by may.csv, 0 by june.csv)"
    )
    fine(command(*record[1:]), 3)
    told = json.loads((tmp_path / "work" / "assessment.json").read_text())
    text = page.read_text(encoding="utf-8")
    reference = PAGES["docs/api-reports.md"].read_text(encoding="utf-8")
    metrics = reference.partition("| metric |")[2].partition("\n\n")[0]
    rows = [line.split(" | ") for line in metrics.splitlines()[2:]]
    assert set(REPORT_METRICS) <= set(re.findall(r"`([\w-]+)`", metrics))
    others = [name for row in rows for name in re.split(r"[,;] ", row[1])]
    assert len(others) > 20 and {hyphenate(name) for name in others} <= set(READINGS)
    named = {"criteria", "checks", "gate", "versions", "inputs", "options", "verdict", "passes", "measures",
             "riskiest", "riskiest_alone", "change"}  # fmt: skip
    assert named <= set(told)
    assert all(f"`{name}`" in text for name in named)


@pytest.mark.slow
def test_a_table_of_two_attributes_is_judged_for_each_and_for_both(work, command):
    people = pd.read_csv(work / "people.csv")
    people["race"] = np.where(np.arange(len(people)) % 3 == 0, "b", "w")
    people.to_csv(work / "people.csv", index=False)
    table = people.groupby(["race", "sex"]).hired.agg(["size", "sum"]).reset_index()
    table.columns = ["Race", "Sex", "# of Applicants", "Einladungen"]
    table.to_csv(work / "audit.csv", index=False, sep=";")
    options = ("--group", "sex", "--group", "race", "--prediction", "hired", "--no-search")
    files = ("assess", "audit.csv", "--people", "people.csv", *options)
    told = fine(command(*files, "--map", "Einladungen=selected", "--explain")).stdout
    assert "Einladungen=selected" in told and "# of Applicants=people" in told
    (work / "names.txt").write_text(told)
    loose = (
        "--max-leak",
        "90%",
        "--max-proven",
        240,
        "--beliefs",
        "shares",
        "--json",
        "record.json",
    )
    done = command(*files, *loose, "--map", "names.txt", "--seconds", 20)
    first = done.stdout.partition("\n\n")[0].replace("\n", " ")
    assert first.endswith("judged for sex, race, sex x race.")
    assert done.returncode == (0 if first.startswith("May be published") else 3)
    record = json.loads((work / "record.json").read_text())
    assert list(record["assessments"]) == ["sex", "race", "sex x race"]
    assert record["passes"] is (done.returncode == 0)
    unread = command(*files, *loose[:6], "--seconds", 20)
    assert "not read: 1 of 4 columns (Einladungen" in " ".join(unread.stdout.split())
    bad(command(*files, "--strict"), "Einladungen", "strict")


def test_a_mapping_is_texts_and_meanings(work, command):
    bad(command("assess", "much.csv", *FAST, "--map", "nothing"), "--map nothing", "TEXT=MEANING")
    bad(command("assess", "much.csv", *FAST, "--map", "a="), "--map a=", "TEXT=MEANING")
    bad(command("assess", "much.csv", *FAST, "--group", "sex"), "--group names 'sex' twice")
    bad(command("assess", "much.csv", *FAST, "--unit", "feet"), "unit", "percent")


def test_people_of_a_spreadsheet_and_scores(work, command):
    """Sheets and scores: the verdict is that of the plain file."""
    people = pd.read_csv(work / "people.csv")
    X = people.drop(columns=["sex", "hired"])
    make_report(X, people["hired"], people["sex"], order=1).to_csv(work / "both.csv")
    people.to_csv(work / "plain.csv", index=False)
    scored = people.assign(hired=0.2 + 0.5 * people["hired"])
    scored.to_csv(work / "scored.csv", index=False)
    ask = ("assess", "both.csv", "--no-search", "--prediction", "hired", "--beliefs", "shares")
    expected = command(*ask, "--people", "plain.csv", "--group", "sex")
    files = ["scored.csv"]
    if importlib.util.find_spec("python_calamine"):
        rows = [["Our people"], [*scored], *scored.astype(object).to_numpy().tolist()]
        write_xlsx(work / "scored.xlsx", {"people": rows})
        files.append("scored.xlsx")
    for file in files:
        got = command(*ask, "--people", file, "--group", "sex", "--threshold", "0.5")
        assert (got.returncode, got.stdout) == (expected.returncode, expected.stdout)
    wrong = bad(command(*ask, "--people", "scored.csv", "--group", "sexx"))
    assert "no column 'sexx'" in wrong.stderr
    wrong = bad(command(*ask, "--people", "both.csv", "--group", "sex"))
    assert "both.csv: is a report, and no file of people: are REPORT and --people" in wrong.stderr
    wrong = bad(command(*ask[:3], "--people", "people.csv", "--group", "sex"))
    assert "no column 'prediction': name the column by --prediction; those of two" in wrong.stderr
