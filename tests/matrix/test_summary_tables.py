"""Tables that a matrix asks for."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from fpbench.cli.screen import console
from fpbench.cli.screen.console import show_sheet
from fpbench.components.names import ATTACK, AUDIT, KINDS
from fpbench.errors import MatrixError
from fpbench.matrix.expectations import parse_summaries
from fpbench.matrix.matrix import read
from fpbench.results.judging import lay_out_summary as make_sheet
from fpbench.results.judging import summarise as summarise_rows
from fpbench.results.rows.selection import RowGroup
from fpbench.store.results import Results

ROOT = Path(__file__).parents[2]
MATRIX = {
    "dataset": [{"use": "census-synthetic"}],
    "learner": [{"use": "plain"}],
    "auditor": [{"use": "group-fairness"}],
}


def row(learner, seed, status="done", **more):
    return {**dict.fromkeys(KINDS, ""), "dataset": "d", "learner": learner, "seed": seed,
            "status": status, **more}  # fmt: skip


def summarise(table, rows):
    return summarise_rows(table, RowGroup(Results.of(rows)))


def asked(*columns, **more):
    return parse_summaries([{"columns": [*columns], **more}], "m.toml")[0]


def test_rows_of_attacks_and_of_audits_of_one_learner_make_one_line():
    rows = [
        row("a", 0, auditor="x", gap=0.1, accuracy=0.8), row("a", 1, auditor="x", gap=0.3, accuracy=0.6),
        row("a", 0, corrector="c", gain=0.01, accuracy=0.8), row("b", 0, auditor="x", gap=None),
        row("b", 0, corrector="c", gain=0.02), row("b", 1, "failed", corrector="c", gain=9.0),
    ]  # fmt: skip
    table = asked(
        {"measure": "accuracy"}, {"measure": "gap", "name": "unfairness"}, {"measure": "gain"}
    )
    first, second = summarise(table, rows)
    assert first.labels == {"learner": "a"} and second.labels == {"learner": "b"}
    assert [value.mean for value in first.values] == pytest.approx([0.7, 0.2, 0.01])
    assert [value.count for value in first.values] == [2, 2, 1]
    assert second.values[:2] == (None, None) and second.values[2].mean == 0.02


def test_where_narrows_tables_and_columns_down():
    rows = [row("a", 0, auditor=t, tau=t, pairs=p) for t, p in (("x", 0.9), ("y", 0.7), ("z", 0.5))]
    one, two = ({"measure": "pairs", "name": t, "where": {"auditor": t}} for t in ("x", "y"))
    (line,) = summarise(asked(one, two), rows)
    assert [value.mean for value in line.values] == [0.9, 0.7]
    (line,) = summarise(asked({"measure": "pairs"}, where={"tau": ["z"]}), rows)
    assert line.values[0].mean == 0.5
    assert summarise(asked(one, where={"tau": "z"}), rows) == []


def test_rows_of_a_seed_that_differ_have_no_mean():
    rows = [row("a", 0, auditor="x", pairs=0.9), row("a", 0, auditor="y", pairs=0.7)]
    (line,) = summarise(asked({"measure": "pairs"}), rows)
    assert line.values == (None,) and line.several == (True,)


def test_lines_are_of_all_kinds_that_are_asked_for():
    rows = [row("a", 0, auditor="x", v=1.0), row("a", 0, auditor="y", v=2.0), row("a", 0, v=3.0)]
    lines = summarise(asked({"measure": "v"}, rows=["learner", "auditor"]), rows)
    assert [line.labels["auditor"] for line in lines] == ["x", "y"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, "needs a value for 'columns'"), ({"columns": []}, "columns"),
        ({"columns": [{"measure": "x"}], "rows": ["learners"]}, "unknown kind 'learners'; did you mean 'learner'"),
        ({"columns": [{"measure": "x"}, {"measure": "x"}]}, "two columns are headed 'x'"),
        ({"columns": [{"measure": "x"}], "colums": 1}, "colums"),
        ({"columns": [{"measure": "x", "where": {"auditor": []}}]}, "where"),
        ({"columns": [{"name": "x"}]}, "measure"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_for_is_one_error(table, message):
    with pytest.raises(MatrixError) as caught:
        read({**MATRIX, "summary": [table]})
    assert "[[summary]] no. 1" in str(caught.value) and message in str(caught.value)


def test_a_matrix_keeps_them_and_is_the_same_matrix():
    given = read({**MATRIX, "summary": [{"columns": [{"measure": "x"}]}]})
    assert given.summaries[0].columns[0].heading == "x"
    assert given.canonical() == read(MATRIX).canonical()


def shown(monkeypatch, table, lines, width):
    out = Console(width=width, record=True, force_terminal=False)
    monkeypatch.setattr(console, "choose_terminal", lambda **_: out)
    show_sheet(make_sheet(table, lines))
    return out.export_text()


def test_a_narrow_terminal_names_what_it_leaves_out(monkeypatch, capsys):
    names = [f"measure {i}" for i in range(9)]
    table = asked(*({"measure": name} for name in names), title="Everything [of it]")
    lines = summarise(table, [row(f"learner {i}", 0, **dict.fromkeys(names, 0.25)) for i in (1, 2)])
    wide = shown(monkeypatch, table, lines, 120)
    assert "Everything [of it]" in wide and "one seed" in wide and "wider" not in wide
    assert all(f" {i}" in wide for i in range(9)) and wide.count(".2500") == 18
    narrow = shown(monkeypatch, table, lines, 60)
    assert "3 more columns on a wider terminal" in narrow and " 8" not in narrow
    spare = [table.columns[0].model_copy(update={"spare": True}), *table.columns[1:]]
    table = table.model_copy(update={"columns": spare})
    assert " 8" not in (narrow := shown(monkeypatch, table, lines, 60)) and " 0 " not in narrow
    assert all(len(line) <= 60 for line in narrow.splitlines())


def test_rows_may_be_what_learners_were_trained_for_and_audits_without_a_mechanism():
    rows = [
        row("a", 0, asked_metric=m, asked_tolerance=t, v=1.0) for m, t in (("x", 0.5), (None, None))
    ]
    rows.append(row("b", 0, auditor="c", v=2.0))
    lines = summarise(asked({"measure": "v"}, rows=["asked_metric", "asked_tolerance"]), rows[:2])
    assert [list(line.labels.values()) for line in lines] == [["x", "0.5"], ["", ""]]
    sheet = make_sheet(asked({"measure": "v"}, rows=["asked_metric"]), lines)
    assert sheet.rows == (("x", "1.0000"), ("none", "1.0000"))
    (line,) = summarise(asked({"measure": "v"}, rows=["auditor", "mechanism", "policy"]), rows)
    assert line.labels == {"auditor": "c", "mechanism": "", "policy": ""}


def test_deviations_seeds_and_the_strongest_adversary():
    rows = [row("a", s, adversary=a, initial_accuracy=g, v=g + s) for s in (0, 1)
            for a, g in (("weak", 0.5), ("strong", 0.75))]  # fmt: skip
    more = [{"measure": "v", "name": name, "statistic": name} for name in ("sd", "seeds")]
    table = asked({"measure": "v"}, *more, rows=["adversary"], strongest=True)
    assert make_sheet(table, summarise(table, rows)).rows == (("strong", "1.2500", ".7071", "2"),)


def test_nothing_and_several_are_said(monkeypatch, capsys):
    table = asked({"measure": "v"})
    assert "nothing of it has been run" in shown(monkeypatch, table, [], 80)
    lines = summarise(table, [row("a", 0, v=1.0), row("a", 0, v=2.0), row("b", 0, v=1.0)])
    said = shown(monkeypatch, table, lines, 80)
    assert "several" in said and "narrows them down" in said


@given(st.integers(0, 2**32))
@settings(max_examples=15)
def test_the_order_of_rows_changes_no_number(seed):
    rng = np.random.default_rng(seed)
    rows = [row(f"learner {i}", s, v=float(rng.normal())) for s in range(4) for i in range(3)]
    table = asked({"measure": "v"}, {"measure": "v", "name": "sd", "statistic": "sd"})
    other = [rows[i] for i in rng.permutation(len(rows))]
    one, two = (
        {line.labels["learner"]: line for line in summarise(table, r)} for r in (rows, other)
    )
    assert one == two


PARAMETERS = {
    "asked_tolerance": ("learner", "tolerance"),
    "asked_metric": ("learner", "metric"),
    "epsilon": ("auditor", "epsilon"),
}
"""Measures by which tables select rows, and the parameters that they repeat."""


def selects(matrix, where, kinds):
    """Whether rows of some kinds can meet a condition, each of its values for itself."""
    for column, values in where.items():
        kind, parameter = PARAMETERS.get(column, (column, None))
        choices = matrix.axes[kind] if kind in kinds else ()
        planned = {c.parameters.get(parameter) if parameter else c.label for c in choices}
        if not {*(values if isinstance(values, list) else [values])} <= planned:
            return False
    return True


def test_every_column_of_a_table_of_ours_selects_planned_cells():
    for file in (ROOT / "benchmarks").glob("*.toml"):
        matrix = read(file, max_cells=10**9)
        for table, column in ((t, c) for t in matrix.summaries for c in t.columns):
            where = {**table.where, **column.where}
            attacks = matrix.axes["adversary"] and selects(matrix, where, ATTACK)
            audits = matrix.axes["auditor"] and selects(matrix, where, AUDIT)
            assert attacks or audits, (file, table.title, column.heading, where)


def test_the_condition_on_a_value_that_is_not_planned_is_noticed():
    matrix = read({**MATRIX, "auditor": [{"use": "pafer", "epsilon": {"linspace": [0.1, 1.0, 4]}}]})
    assert selects(matrix, {"epsilon": [0.1, 0.4]}, AUDIT)
    assert not selects(matrix, {"epsilon": [0.1, 0.5]}, AUDIT)
    assert not selects(matrix, {"auditor": "paffer"}, AUDIT)


def test_lines_come_in_the_order_of_the_matrix():
    rows = [row(name, 0, auditor="x", asked_metric=metric, accuracy=0.5)
            for name, metric in (("plain", None), ("fair", "equalized-odds"), ("again", None))]  # fmt: skip
    lines = summarise(asked({"measure": "accuracy"}), rows)
    assert [line.labels["learner"] for line in lines] == ["plain", "fair", "again"]
