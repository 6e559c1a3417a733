"""A run on disk: one question opens its directory once."""

import sqlite3

import pytest

from fpbench.api import reproduce
from fpbench.api.saved_run import load
from fpbench.cli.leaderboard import compare, leaderboard
from fpbench.cli.report import figure, page

MATRIX = """
title = "toys"
seeds = 3
[[dataset]]
use = "flock"
[[learner]]
use = "parrot"
[[disclosure]]
use = "oracle"
[[adversary]]
use = "coin"
[[adversary]]
use = "peek"
[[corrector]]
use = "none"
[[expect]]
check = "value"
says = "no correction, no gain"
source = "common sense"
measure = "gain"
expected = 0.0
"""


@pytest.fixture
def run(tmp_path, toys):
    path = tmp_path / "toys.toml"
    path.write_text(MATRIX)
    return reproduce.reproduce(reproduce.find(str(path)), out=tmp_path / "run").run


@pytest.fixture
def opened(run, monkeypatch):
    """The files that are opened from now on."""
    files, connect = [], sqlite3.connect

    def counting(database, *arguments, **options):
        if database and database != ":memory:":
            files.append(str(database))
        return connect(database, *arguments, **options)

    monkeypatch.setattr(sqlite3, "connect", counting)
    return files


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("ask", [
    lambda run: leaderboard(run.path),
    lambda run: leaderboard(run.path, view="defences", where=["seed<2"], as_json=True),
    lambda run: leaderboard(run.path, group="adversary"),
    lambda run: page(run.path),
    lambda run: figure(run.path),
    lambda run: reproduce.judge(run, reproduce.find(str(run.path / "matrix.toml"))),
    lambda run: run.leaderboards(),
    lambda run: run.leaderboard("initial_accuracy"),
])  # fmt: skip
def test_a_question_opens_a_run_once(ask, run, opened, capsys):
    ask(run)
    assert len(opened) == 1


def test_a_comparison_opens_each_run_once(run, opened, capsys):
    compare(run.path, run.path)
    assert len(opened) == 2


def test_a_snapshot_answers_what_the_run_answers(run):
    snapshot = load(run.path).read()
    assert snapshot.results.rows() == run.rows()
    assert snapshot.rank_by == run.rank_by and snapshot.title == "toys"
    assert snapshot.labels("adversary", ["seed=1"]) == run.labels("adversary") == ["coin", "peek"]
    assert [board.frame().equals(other.frame()) for board, other in
            zip(snapshot.leaderboards(), run.leaderboards(), strict=True)] == [True]  # fmt: skip


def test_a_printed_run_says_how_much_is_done_where_nothing_was_disclosed(run, tmp_path):
    assert str(run) == f"toys ({run.path})\n6 of 6 cells done"
    assert "not a run directory" in str(type(run)(tmp_path / "nowhere"))
    assert repr(run).startswith("Run(path=")
