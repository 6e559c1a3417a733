"""The screen after a run: whose group, what gives it away, whether that is bad, what next."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from fpbench.cli.screen import console
from fpbench.cli.screen.results import show_answer
from fpbench.results.findings import Findings, PublishedThing
from fpbench.results.intervals import Interval
from fpbench.results.leaderboard import Leaderboard, Line


def make_thing(i):
    added = Interval(i / 50, 0.01, i / 50 - 0.005, i / 50 + 0.005, 10)
    return PublishedThing(f"table number {i} of a fair model", {}, 0.7, added, proven=i / 8)


THINGS = tuple(map(make_thing, range(6)))
LABELS = {"dataset": "flock", "learner": "fair", "disclosure": "table", "adversary": "a2"}
LINE = Line(1, LABELS, {"leak": THINGS[0].added}, 10, 1, ("it broke",))
SCENE = "The group (ewe or ram) of 2,000 people of flock is secret. " * 3
BOARD = Leaderboard("A run", "with_accuracy", tuple(LABELS), (LINE,),
                    findings=Findings(SCENE, 0.6, THINGS, 3))  # fmt: skip


@pytest.fixture
def show(capsys, monkeypatch):
    def show(*boards, width=80, **options):
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("FORCE_COLOR", "1")
        show_answer(boards, Path("runs/my run"), **options)
        return capsys.readouterr().out

    return show


@pytest.mark.parametrize("width", [80, 140])
def test_it_fits_a_terminal_whatever_is_published(show, width):
    out = re.sub("\x1b[^m]*m", "", show(BOARD, width=width))
    lines = [line for line in out.splitlines() if not line.startswith("failed: ")]
    assert len(lines) <= 24
    assert max(map(len, lines)) <= width
    for thing in THINGS:
        assert f"{100 * (thing.without + thing.added.mean):.1f} % right" in out
        assert f"{thing.verdict}: {thing.words}" in " ".join(out.split())
    assert "failed: it broke" in out
    assert "3 more give away less" in out
    assert "next: fpbench leaderboard 'runs/my run'" in out


def test_colours_have_a_meaning(show):
    out = show(BOARD)
    for verdict, colour in (("may be published", 32), ("do not publish", 31)):
        assert f"\x1b[1;{colour}m{verdict}" in out


def test_bars_grow_with_what_is_added(show):
    shown = re.sub("\x1b[^m]*m", "", show(BOARD))
    dark = [line.count("█") for line in shown.splitlines() if "% right" in line]
    assert dark == sorted(dark) and dark[-1] > dark[0]


def test_plain_has_letters_only(show, monkeypatch):
    monkeypatch.setattr(console, "MODE", console.Mode(plain=True))
    out = show(BOARD)
    assert out.isascii() and "\x1b" not in out


def test_several_data_sets_have_a_sentence_each(show):
    other = Leaderboard("A run", "with_accuracy", tuple(LABELS), (LINE,), scope="audits")
    overall = replace(BOARD, findings=None, scope="overall: means over 2 data sets")
    out = re.sub("\x1b[^m]*m", "", show(overall, BOARD, BOARD))
    said = " ".join(out.split())
    assert (
        said.count(
            "2,000 people of flock: of 9 things published, table number 5 of a fair "
            "model gives most away: do not publish, 62.5 % of people proven, "
        )
        == 2
    )
    assert len(out.splitlines()) <= 24 and "failed: it broke" in out and "95 % of leak" not in out
    alone = replace(BOARD.findings, things=BOARD.findings.things[:1], unshown=0).summary
    assert "things published" not in alone and f": {BOARD.findings.things[0].name}: " in alone
    assert "95 % of leak" in show(overall, BOARD, BOARD, long=True)
    assert "secret" in show(other, BOARD)
    assert "95 % of leak" in show(other, BOARD)
    assert "95 % of leak" not in show(BOARD)
