"""What a person reads, letter by letter."""

import pytest

from fpbench import boards, console
from fpbench.kinds import KINDS
from fpbench.leaderboard import rank


def row(learner, seed, gain, corrector="exact", status="done", reason=None):
    labels = dict.fromkeys(KINDS, "") | {
        "dataset": "flock",
        "learner": learner,
        "disclosure": "published",
        "adversary": "a2",
        "corrector": corrector,
    }
    known = {"initial_accuracy": 0.7, "corrected_accuracy": 0.7 + gain, "gain": gain}
    return {"cell": "", **labels, "seed": seed, "status": status, "reason": reason, "seconds": 1.0,
            **(known if status == "done" else {})}  # fmt: skip


@pytest.fixture
def shown(capsys, monkeypatch):
    def show(rows, columns=80):
        monkeypatch.setenv("COLUMNS", str(columns))
        for board in rank(rows, "gain", "A [title] of [red]ours[/]"):
            boards.show_leaderboard(board)
        return "\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines())

    return show


BOARD = """\
A [title] of [red]ours[/]
dataset flock · disclosure published · adversary a2 · 2 seeds
# learner                corrector guess corrected   gain    sd             95 %
────────────────────────────────────────────────────────────────────────────────
1 plain                  exact     .7000     .8050  .1050 .0071   .1000 to .1100
2 plain                  none      .7000     .7000  .0000 .0000   .0000 to .0000
3 exponentiated-gradient exact     .7000     .6800 -.0200 .0000 -.0200 to -.0200
  tolerance=0.05"""


def test_a_leaderboard(shown):
    rows = [row("plain", seed, 0.1 + seed / 100) for seed in (0, 1)]
    rows += [row("exponentiated-gradient tolerance=0.05", seed, -0.02) for seed in (0, 1)]
    rows += [row("plain", seed, 0.0, corrector="none") for seed in (0, 1)]
    assert shown(rows) == BOARD


def test_failures_and_single_seeds_are_said(shown):
    rows = [row("plain", 0, 0.1), row("sick", 0, 0, status="failed", reason="it [broke]")]
    text = shown(rows, 100)
    assert "One seed gives no interval: run more seeds." in text
    assert "failed: it [broke]" in text
    assert "0 (1 failed)" in text


def test_durations_are_said_as_people_say_them():
    said = {5: "5 s", 59: "59 s", 90: "2 min", 3000: "50 min", 7200: "2.0 h"}
    assert {seconds: console.duration(seconds) for seconds in said} == said


def test_columns_of_a_listing_are_aligned(capsys):
    console.listing([("a", "long", "x"), ("longer", "b", "")])
    assert capsys.readouterr().out == "  a       long  x\n  longer  b\n"
    console.listing([])
    assert capsys.readouterr().out == ""
