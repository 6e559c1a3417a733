"""What a plugin declares of its measures: a run ranks, shows and keeps it, with the plugin and without."""

import sqlite3

import pytest

import fpbench
from fpbench.components.catalog import discover
from fpbench.page.gathered import gather
from fpbench.page.ideas import make_figures
from fpbench.results.leaderboard import list_columns, make_sheet

LEAKS = """
from fpbench import Measure, hookimpl
from fpbench.plugin import MeasureFigure
from toys import Counter, Parrot

class Leaky(Counter):
    name = "leaky"
    measures = (
        Measure(
            "leak_bits", "bits leaked", "less", "bits", "what the model tells",
            figure=MeasureFigure(
                "leak", "Leak", "Bits of a group.", "bits told",
                (("leak_bits", "told"), ("recall", "recalled")),
            ),
        ),
        Measure("recall", better="greater", column="asked"),
        Measure("leak_private", better="greater", column="asked", if_no="Bits are not private."),
    )
    def audit(self, subject, rng):
        return super().audit(subject, rng) | {
            "leak_bits": 1.0 + rng.random(), "recall": 0.5, "leak_private": 0}

class Tight(Leaky):
    name = "tight"
    def audit(self, subject, rng):
        return super().audit(subject, rng) | {"leak_bits": rng.random()}

class Contrary(Counter):
    name = "contrary"
    measures = (Measure("leak_bits", "bits leaked", "greater", "bits", "what the model tells"),)

class Thief(Counter):
    name = "thief"
    measures = (Measure("my_gain", "Over best"),)

@hookimpl
def fpbench_auditors():
    return [Leaky, Tight, Contrary, Thief]
"""


def matrix(*auditors):
    return {
        "seeds": 6, "dataset": [{"use": "flock"}],
        "learner": [{"use": "parrot", "number": {"sweep": [0, 1]}}],
        "auditor": [{"use": name, "mechanism": {"use": "hiss"}} for name in auditors],
    }  # fmt: skip


@pytest.fixture
def leaks(toys, install, tmp_path):
    install("leaks", "leaks", LEAKS)
    return fpbench.run(matrix("leaky", "tight"), out=tmp_path / "r")


def check(board):
    assert (board.rank_by, board.least_first) == ("leak_bits", True)
    assert [line.labels["auditor"] for line in board.lines] == ["tight"] * 2 + ["leaky"] * 2
    assert list_columns(board)[-1] == "leak_bits"
    assert "recall" not in list_columns(board)
    assert board.glossary.heading("leak_bits") == "bits leaked"


def test_a_third_partys_measure_ranks_its_way_and_has_a_column(leaks):
    check(leaks.leaderboard())  # though the matrix ranks by gain, which audits have not
    check(leaks.leaderboard("Bits Leaked"))
    assert len(leaks.results(["bits leaked<1"])) == 12


def check_figure_and_note(run):
    (drawn,) = [one for one in make_figures(gather(run)) if one.name == "leak-number"]
    assert (drawn.title, drawn.caption) == ("Leak against number", "Bits of a group.")
    assert drawn.y.title == "bits told"
    series = {one.name.partition(",")[0]: one.dashed for one in drawn.panels[0].series}
    assert series == {"told": False, "recalled": True}
    board = run.leaderboard()
    assert "Bits are not private." in make_sheet(board).notes


def test_a_third_partys_figure_and_note_are_shown(leaks):
    check_figure_and_note(leaks)
    assert "leak_bits-number" not in {
        one.name for one in make_figures(gather(leaks))
    }  # drawn in it


def test_a_run_is_ranked_the_same_without_the_plugin(leaks, install, monkeypatch):
    site = leaks.path.parent / "site"
    for info in site.glob("leaks-*"):
        for file in info.iterdir():
            file.unlink()
        info.rmdir()
    discover.cache_clear()
    assert ("auditor", "leaky") not in discover().entries
    check(fpbench.load(leaks.path).leaderboard())
    check_figure_and_note(fpbench.load(leaks.path))


def test_two_components_that_declare_a_measure_differently_are_refused(leaks, tmp_path):
    with pytest.raises(
        fpbench.errors.MatrixError,
        match=r"auditor leaky and auditor contrary declare the measure 'leak_bits' differently",
    ):
        fpbench.run(matrix("leaky", "contrary"), out=tmp_path / "other")


def test_a_heading_of_fpbenchs_own_is_refused(leaks, tmp_path):
    with pytest.raises(
        fpbench.errors.MatrixError,
        match=r"auditor 'thief' of leaks 1.0: measures: 'my_gain': 'Over best' is a measure of fpbench itself, 'gain_over_best'",
    ):
        fpbench.run(matrix("thief"), out=tmp_path / "other")


def test_a_record_of_measures_that_is_none_is_an_error_with_the_file(leaks):
    with sqlite3.connect(leaks.path / "store.sqlite") as db:
        db.execute("UPDATE about SET value = '[3]' WHERE name = 'measures'")
    db.close()
    with pytest.raises(
        fpbench.errors.StoreError, match=r"store.sqlite: cannot be read: not a table of measures"
    ):
        fpbench.load(leaks.path).leaderboard()
