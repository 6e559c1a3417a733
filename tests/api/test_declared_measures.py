"""What a plugin declares of its measures: a run ranks, shows and keeps it, with the plugin and without."""

import sqlite3

import pytest

import fpbench
from fpbench.components.catalog import discover
from fpbench.results.leaderboard import columns

LEAKS = """
from fpbench import Measure, hookimpl
from toys import Counter, Parrot

class Leaky(Counter):
    name = "leaky"
    measures = (
        Measure("leak_bits", "bits leaked", "less", "bits", "what the model tells"),
        Measure("recall", better="greater", column="asked"),
    )
    def audit(self, subject, rng):
        return super().audit(subject, rng) | {"leak_bits": 1.0 + rng.random(), "recall": 0.5}

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
        "seeds": 6, "dataset": [{"use": "flock"}], "learner": [{"use": "parrot"}],
        "auditor": [{"use": name, "mechanism": {"use": "hiss"}} for name in auditors],
    }  # fmt: skip


@pytest.fixture
def leaks(toys, install, tmp_path):
    install("leaks", "leaks", LEAKS)
    return fpbench.run(matrix("leaky", "tight"), out=tmp_path / "r")


def check(board):
    assert (board.rank_by, board.least_first) == ("leak_bits", True)
    assert [line.labels["auditor"] for line in board.lines] == ["tight", "leaky"]
    assert columns(board)[-1] == "leak_bits"
    assert "recall" not in columns(board)
    assert board.glossary.heading("leak_bits") == "bits leaked"


def test_a_third_partys_measure_ranks_its_way_and_has_a_column(leaks):
    check(leaks.leaderboard())  # though the matrix ranks by gain, which audits have not
    check(leaks.leaderboard("Bits Leaked"))
    assert len(leaks.results(["bits leaked<1"])) == 6


def test_a_run_is_ranked_the_same_without_the_plugin(leaks, install, monkeypatch):
    site = leaks.path.parent / "site"
    for info in site.glob("leaks-*"):
        for file in info.iterdir():
            file.unlink()
        info.rmdir()
    discover.cache_clear()
    assert ("auditor", "leaky") not in discover().entries
    check(fpbench.load(leaks.path).leaderboard())


def test_a_run_that_recorded_nothing_asks_the_component_that_is_installed(leaks):
    with sqlite3.connect(leaks.path / "store.sqlite") as db:
        db.execute("DELETE FROM about WHERE name = 'measures'")
    db.close()
    check(fpbench.load(leaks.path).leaderboard())


def test_two_components_that_declare_a_measure_differently_are_refused(leaks, tmp_path):
    with pytest.raises(
        fpbench.MatrixError,
        match=r"auditor leaky and auditor contrary declare the measure 'leak_bits' differently",
    ):
        fpbench.run(matrix("leaky", "contrary"), out=tmp_path / "other")


def test_a_heading_of_fpbenchs_own_is_refused(leaks, tmp_path):
    with pytest.raises(
        fpbench.MatrixError,
        match=r"auditor 'thief' of leaks 1.0: measures: 'my_gain': 'Over best' is a measure of fpbench itself, 'gain_over_best'",
    ):
        fpbench.run(matrix("thief"), out=tmp_path / "other")


def test_a_record_of_measures_that_is_none_is_an_error_with_the_file(leaks):
    with sqlite3.connect(leaks.path / "store.sqlite") as db:
        db.execute("UPDATE about SET value = '[3]' WHERE name = 'measures'")
    db.close()
    with pytest.raises(
        fpbench.StoreError, match=r"store.sqlite: cannot be read: measures that are none"
    ):
        fpbench.load(leaks.path).leaderboard()
