"""A statement as a whole: it holds if all verdicts match, under conditions if half of them do."""

from dataclasses import replace

import pytest

from fpbench.base.text import format_number
from fpbench.cli.screen.console import show_sheet
from fpbench.matrix.expectations import parse_expectations
from fpbench.results.judging import (
    Standing,
    judge_statements,
    list_verdict_sheets,
    make_standings_sheet,
)
from fpbench.results.rows.selection import RowGroup
from fpbench.results.verdicts import ExpectationOutcome, evaluate
from fpbench.store.results import Results


def rows(measure, **by_dataset):
    """One row for each data set and seed."""
    return [
        {"dataset": name, "seed": seed, "status": "done", "learner": "l", measure: value}
        for name, values in by_dataset.items()
        for seed, value in enumerate(values)
    ]


def stated(**more):
    table = {"check": "at-least", "says": "[it] is positive", "source": "here", "measure": "x",
             "than": 0.0}  # fmt: skip
    return parse_expectations([{**table, **more}], "here.toml")


def verdicts(expectations, rows):
    return evaluate(expectations, RowGroup(Results.of(rows)))


YES, NO, PERHAPS = [1.0] * 5, [-2.0] * 5, [-1.0, 1.0] * 3


@pytest.mark.parametrize(("found", "standing", "matched"), [
    ({"a": YES, "b": YES}, Standing.HOLDS, 2),
    ({"a": YES, "b": NO}, Standing.CONDITIONS, 1),
    ({"a": YES, "b": PERHAPS}, Standing.CONDITIONS, 1),
    ({"a": YES, "b": PERHAPS, "c": NO}, Standing.RARELY, 1),
    ({"a": NO, "b": NO}, Standing.FAILS, 0),
    ({"a": NO, "b": PERHAPS}, Standing.FAILS, 0),
    ({"a": PERHAPS}, Standing.UNDECIDED, 0),
])  # fmt: skip
def test_the_standing_of_a_statement(found, standing, matched):
    (one,) = judge_statements(verdicts(stated(), rows("x", **found)))
    assert one.standing is standing
    assert one.counts.get("matched", 0) == matched
    assert sum(one.counts.values()) == len(found)
    means = [sum(values) / len(values) for values in found.values()]
    assert (one.least, one.greatest) == (min(means), max(means))


@pytest.mark.parametrize(("found", "standing"), [
    ({"l": YES, "m": YES}, Standing.HOLDS),
    ({"l": NO, "m": NO}, Standing.FAILS),
    ({"l": YES, "m": NO}, Standing.UNDECIDED),
    ({"l": NO, "m": PERHAPS}, Standing.UNDECIDED),
])  # fmt: skip
def test_what_readings_of_the_source_decide_differently_is_undecided(found, standing):
    """Of one data set; another, where readings agree, is judged by itself. Both are shown."""
    cells = [
        row | {"learner": learner}
        for learner, values in found.items()
        for row in rows("x", a=values, b=YES)
    ]
    (one,) = judge_statements(verdicts(stated(readings=["learner"], where={"dataset": "a"}), cells))
    assert one.standing is standing
    by_each = verdicts(stated(readings=["learner"]), cells)
    assert [v.per["learner"] for v in by_each] == ["l", "m"] * 2
    assert {v.outcome for v in by_each if v.per["dataset"] == "b"} == {ExpectationOutcome.MATCHED}
    told = any("by this reading, and not by every other" in v.note for v in by_each)
    assert told == (standing is Standing.UNDECIDED)


def test_what_measures_that_the_source_may_mean_decide_differently_is_undecided():
    cells = [row | {"y": -2.0} for row in rows("x", a=YES)]
    one, other = judge_statements(verdicts(stated(other_measures=["y"]), cells))
    assert [j.standing for j in (one, other)] == [Standing.UNDECIDED] * 2
    assert (one.expectation.measure, other.expectation.measure) == ("x", "y")
    assert other.expectation.says.endswith("(y)")
    one, other = judge_statements(verdicts(stated(other_measures=["x"]), cells))
    assert [j.standing for j in (one, other)] == [Standing.HOLDS] * 2


def test_skipped_cells_do_not_count():
    skipped = [{"dataset": "c", "seed": 0, "status": "skipped", "learner": "l", "reason": "gone"}]
    (one,) = judge_statements(verdicts(stated(), rows("x", a=YES) + skipped))
    assert (one.standing, one.counts) == (Standing.HOLDS, {"matched": 1})
    (one,) = judge_statements(verdicts(stated(), skipped))
    assert (one.standing, one.counts, one.least) == (Standing.NOT_RUN, {}, None)


def test_conditions_are_named():
    found = rows("x", a=YES, b=NO, c=YES)
    (one,) = judge_statements(verdicts(stated(per=["learner"]), found))
    assert one.where == {"matched": ("a, l", "c, l"), "deviates": ("b, l",)}
    (one,) = judge_statements(verdicts(stated(per=["learner"]), found[:5]))
    assert one.where == {}


def test_the_table_has_a_line_for_each_statement(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "90")
    said = stated() + stated(says="never run", where={"dataset": "z"})
    show_sheet(make_standings_sheet(verdicts(said, rows("x", a=YES, b=NO))))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["verdict", "statement", "matched", "ours", "statistic"]
    assert " ".join(lines[2].split()) == (
        "holds under conditions [it] is positive (not b) 1 of 2 -2.0000 to 1.0000 mean"
    )
    assert " ".join(lines[3].split()) == "not run never run - - mean"
    assert lines[4].startswith("not run: no row with dataset = 'z'")
    assert format_number(0.25) == ".2500"


def test_only_few_exceptions_are_named(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "90")
    many = {f"d{i}": NO for i in range(5)}
    show_sheet(make_standings_sheet(verdicts(stated(), rows("x", a=YES, **many))))
    assert "not d0" not in capsys.readouterr().out


def test_verdicts_on_a_statement_are_one_table_that_says_once_what_they_share():
    found = rows("x", a=YES, b=[1.0, -1.0] * 3)
    (sheet,) = list_verdict_sheets(verdicts(stated(per=["learner"], tolerance=0.5), found))
    assert sheet.title == "[it] is positive (here)"
    assert sheet.about == "mean x; stated: >= 0, tolerance 0.5 · learner l"
    assert [column.heading for column in sheet.columns][:3] == ["", "dataset", "ours"]
    assert [row[:3] for row in sheet.rows] == [
        ("matched", "a", "1.0000"),
        ("undecided", "b", ".0000"),
    ]


def test_a_statement_that_holds_in_few_cases_says_where():
    few = verdicts(stated(), rows("x", a=YES, b=NO, c=NO))
    (judged,) = judge_statements(few)
    assert judged.standing is Standing.RARELY
    assert judged.where == {"matched": ("a",), "deviates": ("b", "c")}


def test_only_the_first_reasons_are_listed():
    (one,) = verdicts(stated(), rows("x", a=YES))
    lost = [
        replace(one, outcome=ExpectationOutcome.NOT_RUN, note=f"reason {i}")
        for i in (1, 1, 2, 3, 4, 5)
    ]
    assert make_standings_sheet(lost).notes == (
        *(f"not run: reason {i}" for i in (1, 2, 3, 4)), "further reasons: 1"
    )  # fmt: skip
