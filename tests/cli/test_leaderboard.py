"""`leaderboard`, `compare` and completion, as a user meets them."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from commands import bad, fine

import fpbench
from fpbench.cli import groups as completion
from fpbench.cli import main as cli
from fpbench.cli.screen import console
from fpbench.results import snapshot as views


@pytest.fixture
def command(capsys, monkeypatch):
    """The command line without a process of its own: it starts a hundred times faster."""

    def call(*arguments, **env):
        words = ["fpbench", *map(str, arguments)]
        with monkeypatch.context() as patch:
            patch.setattr("sys.argv", words)
            patch.setattr(console, "MODE", console.Mode())
            for name, value in env.items():
                patch.setenv(name, value)
            code = 0
            try:
                cli.main()
            except SystemExit as end:
                code = end.code or 0
        out, err = capsys.readouterr()
        return subprocess.CompletedProcess(words, code, out, err)

    return call


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A run of some of our own components on generated data, made once."""
    where = tmp_path_factory.mktemp("made")
    matrix = """
title = "Census <b>[red]"
seeds = 8
[[dataset]]
use = "census-synthetic"
rows = 600
[[learner]]
use = "plain"
[[learner]]
use = "threshold-optimizer"
[[disclosure]]
use = "published"
metric = "statistical-parity"
[[adversary]]
use = "a1"
[[adversary]]
use = "prior"
[[corrector]]
use = "exact"
[[corrector]]
use = "none"
"""
    (where / "m.toml").write_text(matrix)
    fpbench.run(where / "m.toml", out=where / "run")
    return where / "run"


@pytest.fixture
def run(made, tmp_path):
    """A copy of it, as other tests may write into theirs."""
    shutil.copytree(made, tmp_path / "copy")
    return tmp_path / "copy"


@pytest.mark.slow
def test_views_and_formats(command, run):
    for view, words in (
        ("combinations", "Naming the largest group is right for"),
        ("attacks", "averaged over 2 learners"),
        ("defences", "strongest"),
    ):
        shown = fine(command("leaderboard", run, "--view", view, COLUMNS="80")).stdout
        assert words in shown
        assert "Census <b>[red]" in shown
        lines = [line for line in shown.splitlines() if "(signed ranks, Holm" not in line]
        assert [
            line for line in lines if len(line) > 80 and "each level is the best" not in line
        ] == []
        for form, start in (
            ("markdown", "**Census"),
            ("latex", r"\begin{table}"),
            ("html", "<p>Naming" if view == "combinations" else "<table>"),
        ):
            text = fine(command("leaderboard", run, "--view", view, "--format", form)).stdout
            assert text.startswith(start)
            if form == "html":
                assert "<b>" not in text
        assert json.loads(fine(command("leaderboard", run, "--view", view, "--json")).stdout)


def test_the_message_comes_first_then_the_bars_then_the_table(command, run):
    shown = fine(command("leaderboard", run, COLUMNS="80")).stdout
    places = [shown.index(text) for text in (
        "Census <b>[red]", "Naming the largest", "known  ", "\ndataset census", "# adversary"
    )]  # fmt: skip
    assert places == sorted(places)
    assert [shown.count(text) for text in ("Census <b>", "Naming the")] == [1, 1]
    for plain in (
        command("leaderboard", run, "--columns", "gain"),
        command("--plain", "leaderboard", run),
    ):
        assert "% right" not in plain.stdout
        assert "Naming the largest" in plain.stdout


def test_json_says_all_that_a_line_knows(command, run):
    (board,) = json.loads(fine(command("leaderboard", run, "--json")).stdout)
    assert (board["rank_by"], board["least_first"], board["view"]) == (
        "with_accuracy",
        False,
        "combinations",
    )
    assert len(board["lines"]) == 8 and len(board["sentences"]) == 3
    assert board["reference"]["labels"]["adversary"] == "largest group"
    assert [level["name"] for level in board["waterfall"]["levels"]] == [
        "largest group", "features", "claim",
    ]  # fmt: skip
    assert board["waterfall"]["lacking"] == ["predictions", "scores"]
    line = board["lines"][0]
    assert set(line["measures"]["gain"]) == {"mean", "sd", "low", "high", "n"}
    assert line["measures"]["gain_over_best"]["mean"] <= line["measures"]["gain"]["mean"]
    assert (line["rank"], line["done"], line["failed"], line["p_above"]) == (1, 8, 0, None)


def test_sorting_filtering_grouping(command, run):
    def lines(*options):
        told = json.loads(fine(command("leaderboard", run, "--json", *options)).stdout)
        return [
            [line["labels"] | {"rank": line["rank"]} for line in board["lines"]] for board in told
        ]

    (few,) = lines("--where", "learner=thr*", "--where", "corrector=exact")
    assert {(x["learner"], x["corrector"]) for x in few} == {("threshold-optimizer", "exact")}
    (names,) = lines("--sort", "adversary")
    assert [x["adversary"] for x in names] == ["a1"] * 4 + ["prior"] * 4
    (ordered,) = lines("--sort", "initial_accuracy")
    (usual,) = lines()
    assert sorted(map(str, ordered)) == sorted(map(str, usual))
    one, other = lines("--group", "learner")
    assert {x["learner"] for x in one} == {"plain"}
    assert {x["learner"] for x in other} == {"threshold-optimizer"}
    assert [len(board) for board in lines("--group", "corrector", "--view", "attacks")] == [2, 2]
    told = json.loads(fine(command("leaderboard", run, "--sort", "adversary", "--json")).stdout)
    assert {line["p_above"] for line in told[0]["lines"]} == {None}  # of other neighbours
    (top,) = lines("--top", "3")
    assert len(top) == 3
    shown = fine(command("leaderboard", run, "--columns", "changes,people", "--top", "1")).stdout
    assert re.search(r"# .*changes people +with", shown)
    assert "7 more lines" in shown


@pytest.mark.parametrize(("options", "words"), [
    (["--by", "gian"], "did you mean 'gain'?"),
    (["--view", "defencess"], "did you mean 'defences'?"),
    (["--where", "leaner=x"], "did you mean 'learner'?"),
    (["--where", "learner"], "is not a filter"),
    (["--group", "leaner"], "did you mean 'learner'?"),
    (["--sort", "gian"], "did you mean 'gain'?"),
    (["--columns", "gian"], "did you mean 'gain'?"),
    (["--view", "audits"], "has no results for the view 'audits'"),
    (["--top", "3", "--all"], "contradict"),
])  # fmt: skip
def test_bad_input(command, run, options, words):
    bad(command("leaderboard", run, *options), words)


def test_files_are_written(command, run, tmp_path):
    fine(command("leaderboard", run, "-o", tmp_path / "b.tex", "--format", "latex"))
    assert (tmp_path / "b.tex").read_text().endswith("\\end{table}\n")
    bad(command("leaderboard", run, "-o", tmp_path / "no" / "b.tex"), "b.tex")


def test_compare(command, run, made):
    same = fine(command("compare", made, run, COLUMNS="140")).stdout
    assert "the same" in same
    told = json.loads(fine(command("compare", made, run, "--json")).stdout)
    assert {move["moved"] for move in told[0]["moves"]} == {"the same"}
    only = ["--where", "corrector=exact"]
    told = fine(
        command("compare", made, run, *only, "--by", "changes", "--format", "markdown")
    ).stdout
    assert "changes: the second run against the first" in told
    bad(command("compare", made, run, "--by", "gian"), "did you mean 'gain'?")
    bad(command("compare", made, run, "--pair", "a2=a1"), "no label 'a2'")
    bad(command("compare", made, "nowhere"), "not a run directory")


def test_long_tables_are_cut_unless_all_is_asked_for(command, run, monkeypatch):
    monkeypatch.setattr("fpbench.cli.screen.results.MOST", 5)
    monkeypatch.setattr("fpbench.cli.leaderboard._MOST_ROWS", 5)
    shown = fine(command("leaderboard", run, COLUMNS="200")).stdout
    assert "4 more lines" in shown  # of four groups the best
    assert shown.endswith("`fpbench leaderboard RUN --all` shows all lines\n")
    for options in (["--all"], ["--top", "8"], ["--format", "markdown"]):
        assert "more line" not in fine(command("leaderboard", run, *options)).stdout
    assert "--all" not in fine(command("leaderboard", run, "--top", "2")).stdout
    both = ("compare", run, run, "--by", "without")
    assert "3 more lines" in fine(command(*both)).stdout
    assert "more line" not in fine(command(*both, "--all")).stdout


def test_what_is_missing_is_said(tmp_path, made):
    matrix = (made.parent / "m.toml").read_text().replace('metric = "statistical-parity"\n', "")
    (tmp_path / "m.toml").write_text(matrix.replace("seeds = 8", "seeds = 1"))
    run = fpbench.run(tmp_path / "m.toml", out=tmp_path / "run")
    assert run.leaderboard().notes[-1] == "4 of 8 cells skipped"


def test_notebooks(made):
    run = fpbench.load(made)
    shown = run._repr_html_()
    assert shown.count("<table>") == 1
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown
    assert run.leaderboard()._repr_html_() == shown


def test_quiet_and_plain(command, made, tmp_path):
    matrix = made.parent / "m.toml"
    quiet = fine(command("-q", "run", matrix, "--out", made))
    assert quiet.stdout == f"run directory: {made}\n"
    assert quiet.stderr == ""
    plain = fine(command("--plain", "leaderboard", made)).stdout
    assert plain.isascii()
    assert not set("─│·") & set(plain)


COMPLETED = {
    "fpbench le": ["leaderboard"],
    "fpbench leaderboard r --view def": ["defences"],
    "fpbench leaderboard r --group lear": ["learner"],
    "fpbench leaderboard r --js": ["--json"],
    "fpbench leaderboard r --toge": ["--together"],
    "fpbench leaderboard r --format h": ["html"],
    "fpbench data ve": ["verify"],
    "fpbench data fetch ad": ["adult"],
    "fpbench describe mech": ["mechanism"],
    "fpbench describe learner pla": ["plain"],
    "fpbench export r --format p": ["parquet"],
    "fpbench run m.toml --engine l": ["loky"],
    "fpbench run ": [],  # files, of which the shell knows
}


@pytest.mark.parametrize("line", COMPLETED)
def test_a_tab_completes(command, line):
    number = str(len(line.split(" ")) - 1)
    asked = {"COMP_WORDS": line, "COMP_CWORD": number, "_FPBENCH_COMPLETE": "complete_bash"}
    assert fine(command(**asked)).stdout.split() == COMPLETED[line]


def test_a_tab_completes_the_last_measure_of_a_list(command):
    for line, answer in (
        ("fpbench leaderboard run --by initial_a", "initial_accuracy"),
        ("fpbench leaderboard run --columns gain,initial_a", "gain,initial_accuracy"),
    ):
        asked = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
        done = command(**asked, _FPBENCH_COMPLETE="complete_bash")
        assert fine(done).stdout.split() == [answer]


def test_a_tab_after_a_value_imports_nothing_heavy():
    done = subprocess.run(
        [sys.executable, "-X", "importtime", Path(sys.executable).parent / "fpbench"],
        capture_output=True, text=True, check=True,
        env={**os.environ, "_TYPER_COMPLETE_ARGS": "fpbench describe learner pla",
             "_FPBENCH_COMPLETE": "complete_zsh"},
    )  # fmt: skip
    for name in ("numpy", "pandas"):
        assert not re.search(rf"\| +{name}$", done.stderr, re.MULTILINE)


def test_the_views_that_a_tab_knows_are_all():
    assert tuple(views.VIEWS) == completion.VIEWS


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_typers_script_completes_in_bash(command):
    program = Path(sys.executable).parent / "fpbench"
    script = subprocess.run(
        ["bash", "-c", f'"{program}" --show-completion'], capture_output=True, text=True, check=True
    ).stdout
    asked = f'COMP_WORDS=(fpbench data ve); COMP_CWORD=2; _fpbench_completion "{program}"'
    done = subprocess.run(
        ["bash", "-c", f'{script}\n{asked}\nprintf "%s\\n" "${{COMPREPLY[@]}}"'],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("verify\n", "")


def test_an_empty_run(command, tmp_path):
    """A run that was interrupted before its first cell was done."""
    matrix = tmp_path / "m.toml"
    matrix.write_text(
        '[[dataset]]\nuse = "census-synthetic"\nrows = 300\n[[learner]]\nuse = "plain"\n'
        '[[disclosure]]\nuse = "hidden"\n[[adversary]]\nuse = "prior"\n[[corrector]]\nuse = "none"\n'
    )
    with pytest.raises(KeyboardInterrupt):
        fpbench.run(matrix, out=tmp_path / "run", stop=lambda: True)
    bad(command("leaderboard", tmp_path / "run"), "no cell has been run yet")
    assert "no cell has been run yet" in fpbench.load(tmp_path / "run")._repr_html_()
