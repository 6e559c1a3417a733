"""Exports: what they cost, where they go, and what a terminal is shown of them."""

import io
import sys

import numpy as np
import pandas as pd
import pytest
import typer.main
from malformed import command
from toy_runs import ATTACK

import fpbench
from fpbench import InputError
from fpbench.cli.main import app
from fpbench.components.names import KINDS
from fpbench.store.export import export_rows
from fpbench.store.results import Results

MATRIX = ATTACK | {"seeds": 2}


def row(**measures):
    return {"cell": "k", **dict.fromkeys(KINDS, ""), "seed": 0, "status": "done",
            "reason": None, "seconds": 1.5, **measures}  # fmt: skip


@pytest.mark.slow
def test_every_output_file_may_be_standard_output(tmp_path, toys, monkeypatch):
    """And nothing is written into a file of that name."""
    fpbench.run(MATRIX, out=tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    calls = {
        "leaderboard": [["run", "--format", form] for form in ("markdown", "latex", "json")],
        "compare": [["run", "run", "--format", "markdown"]],
        "export": [["run"], ["run", "--long"], ["run", "--format", "jsonl"]],
        "page": [["run"]],
        "figure": [["run", "no-such-figure"]],
    }
    commands = typer.main.get_command(app).commands
    having = {n for n, c in commands.items() if any("--output" in p.opts for p in c.params)}
    having -= {"site"}  # a folder
    assert having == set(calls)
    for name, several in calls.items():
        for arguments in several:
            said = command(name, *arguments, "-o", "-")
            if name == "figure":  # these results are too few for it
                assert "no figure 'no-such-figure'; valid: waterfall" in said.error
            else:
                assert said.code == 0, said
                assert len(said.output) > 100
            if name in ("leaderboard", "compare", "export"):
                assert said.output == command(name, *arguments).output
            assert sorted(tmp_path.iterdir()) == before
    assert command("page", "run", "-o", "-").output.startswith("<!")
    refused = command("export", "run", "--format", "parquet", "-o", "-")
    assert refused.error == "error: Parquet is binary: name a file with --output\n"


def test_long_says_what_the_table_says():
    rows = [row(a=1, b="x", c=0.5), row(b=None, a=2), row(c=float("nan"), d=True, a=3)]
    results = Results.of(rows)
    frame = results.frame()
    kept = [name for name in ("cell", *KINDS, "seed", "status", "reason") if name in frame]
    melted = frame.melt(id_vars=kept, var_name="measure", value_name="value")
    expected, out = io.StringIO(), io.StringIO()
    melted.dropna(subset="value").to_csv(expected, index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", out)
        export_rows(results, "csv", None, long=True)
    assert out.getvalue() == expected.getvalue()


def test_a_table_that_is_next_to_empty_is_refused_and_long_costs_what_is_there(
    tmp_path, monkeypatch
):
    results = Results.of(row(**{f"m{i}": 0.5}) for i in range(4000))
    for form in ("csv", "jsonl"):
        with pytest.raises(InputError, match="4,000 values in 16,000,000 places; .* --long"):
            export_rows(results, form, tmp_path / "out", long=False)
    assert not (tmp_path / "out").exists()
    asked = []  # for each name, only the blocks that have it are looked at
    original = Results.columns

    def columns(self, name):
        asked.append(len(found := original(self, name)))
        return found

    monkeypatch.setattr(Results, "columns", columns)
    export_rows(results, "csv", tmp_path / "out", long=True)
    assert sum(asked) <= 2 * 4000
    assert len((tmp_path / "out").read_text().splitlines()) == 1 + 2 * 4000
    # A table of any size that is filled, and a small one that is not, are written as ever.
    assert Results.of(row(**{f"m{i}": 0.5}) for i in range(1000)).frame().shape == (1000, 1013)
    many = {f"m{i}": 0.5 for i in range(200)}
    assert np.isfinite(Results.of(row(**many) for _ in range(60)).frame()["m7"]).all()


class Terminal(io.StringIO):
    def isatty(self):
        return True


EVIL = "a\x1b]0;owned\x07\x1b[2J\r\x9b31m\u202eb"


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize("long", [False, True])
def test_a_terminal_obeys_nothing(form, long, monkeypatch):
    results = Results.of([row(m=EVIL, **{f"x{EVIL}": 1.0})])
    monkeypatch.setattr(sys, "stdout", shown := Terminal())
    export_rows(results, form, None, long=long)
    assert not {letter for letter in shown.getvalue() if letter < " " and letter != "\n"}
    assert not set("\x7f\x9b\u202e") & set(shown.getvalue())
    assert "owned" in shown.getvalue()


def test_a_file_has_the_texts_as_they_are(tmp_path):
    """Who reads data by a program gets them whole."""
    export_rows(Results.of([row(m=EVIL)]), "csv", tmp_path / "out.csv", long=False)
    assert EVIL in (tmp_path / "out.csv").read_bytes().decode()


def test_cells_that_were_not_run_say_so(tmp_path, toys):
    """Whoever counts rows by status finds them: not chosen, or not done yet."""
    learners = [{"use": "parrot"}, {"use": "parrot", "label": "other", "number": 2}]
    run = fpbench.run(
        {**MATRIX, "learner": learners}, settings=["learner=other"], out=tmp_path / "r"
    )
    rows = pd.read_csv(run.export(tmp_path / "rows.csv"))
    assert rows.groupby("learner")["status"].unique().map(list).to_dict() == {
        "other": ["done"], "parrot": ["not run"],
    }  # fmt: skip
    assert set(pd.read_csv(run.export(tmp_path / "l.csv", long=True))["learner"]) == {"other"}
