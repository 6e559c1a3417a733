"""The matrix of the private and fair tree: what its header says is so."""

import json

import pytest

import fpbench
from fpbench.api import reproduce
from fpbench.plugin import DataHome
from fpbench.results.judging import summarise
from fpbench.results.rows.selection import RowGroup

NAME = "private-fair-tree"


def learners(matrix):
    return {choice.label: choice.parameters for choice in matrix.axes["learner"]}


@pytest.mark.parametrize("profile", ["quick", "full"])
def test_statements_and_tables_are_about_what_is_there(profile):
    matrix = reproduce.find(NAME, profile)
    there = {kind: {choice.label for choice in axis} for kind, axis in matrix.axes.items()}
    asked = [column.where for summary in matrix.summaries for column in summary.columns]
    said = [{**e.where, **({e.of + " ": e.value} if getattr(e, "of", None) else {})}
            for e in matrix.expect]  # fmt: skip
    for where in (*asked, *said, *(summary.where for summary in matrix.summaries)):
        for kind, values in where.items():
            named = {values} if isinstance(values, str) else set(values)
            assert named <= there[kind.strip()], where


def test_the_announced_experiments_are_all_there():
    matrix = reproduce.find(NAME, "full")
    assert [choice.use for choice in matrix.axes["dataset"]] == ["adult", "compas"]
    given = learners(matrix)
    for name in ("tree", "grid", "ball"):
        assert {f"{name} epsilon={e}" for e in ("0.1", "1.0", "10.0", "inf")} <= set(given)
    swept = {key: {repr(p.get(key)) for p in given.values()} for key in
             ("tau", "max_depth", "similarity", "selection", "criterion")}  # fmt: skip
    assert all(len(values) >= 2 for values in swept.values()), swept
    assert {choice.use for choice in matrix.axes["learner"]} >= {
        "private-tree", "private-fair-tree", "pflr", "exponentiated-gradient",
        "threshold-optimizer", "correlation-remover",
    }  # fmt: skip
    wanted = {"test_accuracy", "pair_consistency", "certified_consistency", "independence_gap",
              "separation_gap", "sufficiency_gap", "risk_gap_test", "gain"}  # fmt: skip
    for summary in matrix.summaries:
        assert wanted <= {column.measure for column in summary.columns}
        assert not summary.where.keys() - {"dataset"}  # every learner has a line


@pytest.mark.slow
def test_a_part_of_it_runs_and_fills_its_table(tmp_path):
    matrix = reproduce.find(NAME, "full")
    for choice in matrix.axes["dataset"]:
        if missing := fpbench.component("dataset", choice.use).absent(DataHome.default()):
            pytest.skip(missing)
    kept = ["tree epsilon=1.0", "grid epsilon=1.0"]
    part = {
        kind: [{"use": c.use, "label": c.label, **c.parameters} for c in axis]
        for kind, axis in matrix.axes.items() if axis
    }  # fmt: skip
    part["learner"] = [table for table in part["learner"] if table["label"] in kept]
    part["dataset"] = [table for table in part["dataset"] if table["use"] == "compas"]
    part["auditor"] = [a for a in part["auditor"] if a["label"] != "race free"]
    split = json.loads(matrix.shares.model_dump_json())
    run = fpbench.run({**part, "split": split}, out=tmp_path / "run")
    lines = summarise(matrix.summaries[1], RowGroup(run.results()))
    assert [line.labels["learner"] for line in lines] == kept
    for line in lines:
        found = dict(
            zip([c.heading for c in matrix.summaries[1].columns], line.values, strict=True)
        )
        assert None not in found.values()
        assert not any(line.several)
