"""What a person reads, letter by letter. Snapshots are in data/boards; look at them when they move.

`FPBENCH_SNAPSHOTS=write pytest tests/test_console.py` writes them anew.
"""

import io
import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fpbench.base.sheet import Column, Sheet
from fpbench.cli.screen import console
from fpbench.cli.screen import results as boards
from fpbench.cli.screen.console import show_sheet
from fpbench.cli.screen.runs import format_duration
from fpbench.components.catalog import discover
from fpbench.components.names import KINDS
from fpbench.components.own_measures import GLOSSARY
from fpbench.results import leaderboard as board_columns
from fpbench.results.contrast import compare, contrast_sheet
from fpbench.results.ranking import rank
from fpbench.results.rows.beside_others import add_comparisons
from fpbench.results.rows.labels import ConfiguredComponent, name_parameters
from fpbench.results.snapshot import make_view_boards
from fpbench.store.results import Results

DECLARED = GLOSSARY.declaring(
    replace(measure, source="auditor pafer")
    for measure in discover().component("auditor", "pafer").measures
)
SETTINGS = name_parameters({
    "learner": {f"exponentiated-gradient tolerance={t}":
                ConfiguredComponent("exponentiated-gradient", {"tolerance": t})
                for t in (0.0, 0.02, 0.05, 0.1)},
    "auditor": {f"pafer epsilon={e}": ConfiguredComponent("pafer", {"epsilon": e})
                for e in (0.5, 1.0, 2.0)},
})  # fmt: skip
SNAPSHOTS = Path(__file__).parents[2] / "data" / "boards"


def row(learner, seed, gain, corrector="exact", status="done", reason=None, adversary="a2", **more):
    labels = dict.fromkeys(KINDS, "") | {
        "dataset": "flock",
        "learner": learner,
        "disclosure": "published",
        "adversary": adversary,
        "corrector": corrector,
    }
    known = {"initial_accuracy": 0.7, "corrected_accuracy": 0.7 + gain, "gain": gain,
             "majority_accuracy": 0.6, "test_accuracy": 0.85, "test_unfairness": 0.1,
             "model_epsilon": None}  # fmt: skip
    return {"cell": "", **labels, "seed": seed, "status": status, "reason": reason, "seconds": 1.0,
            **({**known, **more} if status == "done" else {})}  # fmt: skip


def test_notes_are_folded_between_words_on_a_terminal_and_nowhere_else(capsys, monkeypatch):
    note = "each level is the best attack that sees no more, calibrated; " * 3
    monkeypatch.setenv("COLUMNS", "80")
    for terminal in ("", "1"):
        monkeypatch.setenv("FORCE_COLOR", terminal)
        show_sheet(Sheet("", "", (Column("a"),), (("1",),), notes=(note.strip(),)))
        shown = re.sub("\x1b[^m]*m", "", capsys.readouterr().out).splitlines()[3:]
        assert len(shown) == (3 if terminal else 1)
        assert " ".join(" ".join(shown).split()) == note.strip()
        assert terminal == "" or max(map(len, shown)) <= 80


@pytest.fixture
def shown(capsys, monkeypatch):
    def show(rows, columns=80):
        monkeypatch.setenv("COLUMNS", str(columns))
        for board in rank(Results.of(rows), "gain", "A [title] of [red]ours[/]"):
            boards.show_leaderboard(board)
        return "\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines())

    return show


def test_failures_and_single_seeds_are_said(shown):
    rows = [row("plain", 0, 0.1), row("sick", 0, 0, status="failed", reason="it [broke]")]
    text = shown(rows, 100)
    assert "Fewer than 3 seeds give no interval: run more seeds." in text
    assert "failed: it [broke]" in text
    assert "0 (1 failed)" in text


def big_run():
    """Sweeps, two adversaries, a failing learner, a warning, an unproven optimum."""
    rng = np.random.default_rng(0)
    rows = []
    for seed in range(12):
        for adversary, base in (("a2", 0.02), ("boosting", 0.0)):
            for i, tolerance in enumerate((0.0, 0.02, 0.05, 0.1)):
                gain = base + 0.03 - 0.008 * i + rng.normal(0, 0.001)
                rows.append(row(f"exponentiated-gradient tolerance={tolerance}", seed, gain,
                                adversary=adversary))  # fmt: skip
            said = "all votes are alike" if adversary == "a2" else None
            rows.append(row("pate", seed, base + rng.normal(0, 0.001), adversary=adversary,
                            pate_warning=said, model_epsilon=2.5,
                            model_delta=1e-5, model_neighbours="add-remove"))  # fmt: skip
            rows.append(row("threshold-optimizer", seed, base + 0.1, adversary=adversary, proven=0))
        broken = seed % 4 == 0
        rows.append(row("sick [red]learner[/]", seed, 0.01, status="failed" if broken else "done",
                        reason="it\x1b[2J broke" if broken else None))  # fmt: skip
    return rows


def audits():
    return [
        {"cell": "", **dict.fromkeys(KINDS, ""), "dataset": data, "learner": "tree",
         "auditor": f"pafer epsilon={e}", "mechanism": m, "policy": p, "seed": s, "status": "done",
         "reason": None, "seconds": 1.0, "error": base / e + s / 1e4, "epsilon": e,
         "true_ratio": 0.8, "estimated_ratio": 0.8 + base / e, "coverage": 0.95,
         "invalid_ratio": 0.1, "delta": 1e-6 if m == "gaussian" else 0.0}
        for data in ("sex", "race") for e in (0.5, 1.0, 2.0) for s in range(8)
        for m, p, base in (("laplace", "uniform/uniform", 0.1), ("laplace", "0/uniform", 0.05),
                           ("exponential", "0/uniform", 0.15), ("gaussian", "uniform/uniform", 0.2))
    ]  # fmt: skip


def show(made, most=None):
    boards.show_leaderboards([replace(board, settings=SETTINGS) for board in made], most=most)


def show_combinations():
    show(rank(add_comparisons(Results.of(big_run())), "gain", "Attacks, <b>bold</b>"))


def show_audits():
    show(rank(Results.of(audits(), DECLARED), "gain", "Audits"), most=4)


def show_views():
    results = add_comparisons(Results.of([*big_run(), *audits()], DECLARED))
    for name in ("attacks", "defences", "audits"):
        by = "advantage" if name == "defences" else "gain"
        show(make_view_boards(results, name, by, name))


def show_comparison():
    old = big_run()
    new = [
        {**r, "gain": r["gain"] + 0.001 * (r["adversary"] == "a2")} if "gain" in r else r
        for r in old
    ]
    for found in compare(Results.of(old), Results.of(new), "gain"):
        show_sheet(contrast_sheet(found))


SHOWS = {
    "combinations": show_combinations,
    "audits": show_audits,
    "views": show_views,
    "comparison": show_comparison,
}


@pytest.mark.parametrize("width", [80, 140])
@pytest.mark.parametrize("name", SHOWS)
def test_snapshots(name, width, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    SHOWS[name]()
    told = "".join(f"{line.rstrip()}\n" for line in capsys.readouterr().out.splitlines())
    file = SNAPSHOTS / f"{name}-{width}.txt"
    if os.environ.get("FPBENCH_SNAPSHOTS") == "write":
        file.write_text(told, encoding="utf-8")
    assert told == file.read_text(encoding="utf-8")
    tables = [line for line in told.splitlines() if "(signed ranks, Holm" not in line]
    assert max(map(len, tables)) <= width
    assert "\x1b" not in told


@pytest.mark.parametrize("width", range(48, 150, 7))
def test_nothing_is_cut_at_any_width(width, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    show_combinations()
    told = capsys.readouterr().out
    assert "…" not in told
    assert all(len(line.rstrip()) <= width for line in told.splitlines() if "warning" not in line)
    assert told.count("(3 failed)") == 1
    if width >= 69:
        assert sum(" to " in line and line.lstrip()[:1] in "=1" for line in told.splitlines()) >= 3


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "90")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)

    def use():  # within the test: pytest captures anew between its phases
        out, err = Terminal(), Terminal()
        monkeypatch.setattr("sys.stdout", out)
        monkeypatch.setattr("sys.stderr", err)
        return out, err

    return use


def test_colours_are_for_terminals_that_want_them(terminal, monkeypatch):
    out, err = terminal()
    show_combinations()
    assert "\x1b[31m" in out.getvalue()  # what failed is red
    monkeypatch.setenv("NO_COLOR", "1")
    out, err = terminal()
    show_combinations()
    console.warn(["odd"])
    assert not any(f"[{code}m" in out.getvalue() + err.getvalue() for code in range(30, 50))
    assert "warning: " in err.getvalue()


def test_plain_is_letters_and_numbers_only(terminal, monkeypatch):
    out, err = terminal()
    monkeypatch.setattr(console, "MODE", console.Mode(plain=True))
    show_combinations()
    console.show_error("this; do that")
    console.show_heading("A heading")
    said = out.getvalue() + err.getvalue()
    assert "\x1b" not in said
    assert said.isascii()
    assert "error: this; do that" in err.getvalue()


def test_errors_have_a_frame_with_the_fix_on_a_terminal(terminal):
    _, err = terminal()
    console.show_error("m.toml: unknown [key] 'x\x1b[2J'; did you mean 'y'?")
    said = err.getvalue()
    assert "\x1b[2J" not in said
    lines = [line.strip("│ \n") for line in said.replace("\x1b[0m", "").splitlines()]
    assert any("unknown [key] 'x\\x1b[2J'" in line for line in lines)
    assert any("→ did you mean 'y'?" in line for line in lines)
    assert "error" in lines[0]


def test_quiet_and_plain_show_no_progress(terminal, monkeypatch):
    _, err = terminal()
    for mode in (console.Mode(quiet=True), console.Mode(plain=True)):
        monkeypatch.setattr(console, "MODE", mode)
        with console.RunProgress():
            pass
        assert err.getvalue() == ""
    monkeypatch.setattr(console, "MODE", console.Mode())
    with console.RunProgress():
        pass
    assert err.getvalue() != ""


def test_columns_may_be_chosen():
    (board,) = rank(Results.of([row("a", s, 0.1) for s in range(3)]), "gain")
    made = board_columns.make_sheet(board, ["test_accuracy", "gain", "test_unfairness"])
    assert [c.heading for c in made.columns] == [
        "#",
        "accuracy",
        "unfairness",
        "gain",
        "sd",
        "95 %",
    ]


def test_durations_are_said_as_people_say_them():
    said = {5: "5 s", 59: "59 s", 90: "2 min", 3000: "50 min", 7200: "2.0 h"}
    assert {seconds: format_duration(seconds) for seconds in said} == said


def test_columns_of_a_listing_are_aligned(capsys):
    console.show_listing([("a", "long", "x"), ("longer", "b", "")])
    assert capsys.readouterr().out == "  a       long  x\n  longer  b\n"
    console.show_listing([])
    assert capsys.readouterr().out == ""
