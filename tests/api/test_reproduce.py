"""`fpbench reproduce`: a matrix that states what it expects, run and compared."""

import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from fpbench import InputError, component
from fpbench.api import reproduce
from fpbench.base.text import format_number
from fpbench.cli.screen import results as boards
from fpbench.components.own_measures import GLOSSARY
from fpbench.page.gathered import gather
from fpbench.results.intervals import estimate_interval
from fpbench.results.leaderboard import Leaderboard, Line

ROOT = Path(__file__).parents[2]
MATRIX = """
title = "Toys, [bold]not markup[/]"
seeds = 4
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
[leaderboard]
rank_by = "gain"
[[summary]]
title = "Toys, [bold]not markup[/]"
rows = ["adversary"]
columns = [{ measure = "initial_accuracy" }]
[[summary]]
title = "the strongest adversary of the run"
rows = ["adversary"]
strongest = true
columns = [{ measure = "initial_accuracy" }]
[[expect]]
check = "value"
says = "no correction, no gain"
source = "common sense"
measure = "gain"
expected = 0.0
[[expect]]
check = "at-least"
says = "everybody is guessed"
source = "nowhere"
measure = "initial_accuracy"
than = 1.0
where = { adversary = ["coin", "peek"] }
[[expect]]
check = "at-least"
says = "sheep too"
source = "nowhere"
measure = "gain"
than = 0.0
where = { dataset = "sheep" }
"""


@pytest.fixture
def file(tmp_path, toys):
    path = tmp_path / "toys.toml"
    path.write_text(MATRIX + "[profile.quick]\nseeds = 2\n[profile.tiny]\nseeds = 1\n")
    return path


@pytest.mark.slow
def test_statements_are_compared_with_the_rows_and_with_the_strongest_adversary(file, tmp_path):
    made = reproduce.reproduce(reproduce.find(str(file)), out=tmp_path / "run")
    assert [str(v.outcome) for v in made.verdicts] == ["matched", "deviates", "not run"]
    assert made.verdicts[0].ours.count == 2  # seeds of the quick profile, which is the default
    assert [row[0] for row in made.tables[0].rows] == ["coin", "peek"]
    rows = made.run.frame()
    best = rows.groupby("adversary")["initial_accuracy"].mean().idxmax()
    assert [row[0] for row in made.tables_of_strongest[0].rows] == [best]
    (verdict,) = made.verdicts_on_strongest  # the other two say nothing of adversaries
    assert verdict.rows == 2


@pytest.mark.parametrize(
    ("profile", "seeds", "expected"), [("full", None, 4), ("tiny", None, 1), (None, 3, 3)]
)
def test_profiles_and_seeds_are_those_asked_for(file, profile, seeds, expected):
    assert len(reproduce.find(str(file), profile, seeds).seeds) == expected


def test_cells_are_counted_of_what_is_run_only(file):
    """Two adversaries: 4 cells in the quick profile, 8 in all."""
    assert len(reproduce.find(str(file), max_cells=4).seeds) == 2
    with pytest.raises(InputError, match="4 combinations, more than 3"):
        reproduce.find(str(file), max_cells=3)
    with pytest.raises(InputError, match="8 combinations, more than 7"):
        reproduce.find(str(file), "full", max_cells=7)


def test_a_matrix_without_a_quick_profile_is_run_as_it_stands(tmp_path, toys):
    path = tmp_path / "toys.toml"
    path.write_text(MATRIX)
    assert len(reproduce.find(str(path)).seeds) == 4


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ferry-fig22", "no study 'ferry-fig22'; did you mean 'ferry-fig2'?"),
        (str(ROOT / "benchmarks" / "quickstart.toml"), "has nothing to compare with"),
        ("no/such.toml", "cannot be read"),
    ],
)
def test_what_cannot_be_reproduced_is_refused(name, message):
    with pytest.raises(InputError) as error:
        reproduce.find(name)
    assert message in str(error.value)


def test_all_matrices_that_state_something_are_known_and_packaged():
    stating = {p for p in (ROOT / "benchmarks").glob("*.toml") if "[[expect]]" in p.read_text()}
    assert set(reproduce.list_studies()) == {path.stem for path in stating}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packaged = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert packaged == {f"benchmarks/{p.name}": f"fpbench/benchmarks/{p.name}" for p in stating}


@pytest.mark.slow
def test_every_paper_matrix_has_a_quick_profile_a_header_and_tables():
    for name in reproduce.list_studies():
        matrix, full = reproduce.find(name), reproduce.find(name, "full")
        assert matrix.profile == "quick", name
        assert len(matrix.seeds) <= 20 <= len(full.seeds), name
        assert re.match("# (.|\n)*# Expected", matrix.text.split("title")[0]), name
        assert full.summaries, name


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [name for name in sorted(reproduce.list_studies()) if name.startswith(("ferry-f", "ferry-t"))],
)
def test_figures_and_tables_of_the_paper_have_their_size(name):
    full, quick = reproduce.find(name, "full"), reproduce.find(name)
    assert len(full.seeds) == 100
    for matrix, trials in ((full, 100), (quick, 0)):
        adversaries = {choice.label: choice.parameters for choice in matrix.axes["adversary"]}
        for label in ("a1-ferry", "a2-ferry"):
            assert adversaries[label].get("trials", 0) == trials
            assert not trials or adversaries[label]["scope"] == "dataset"
    if name.startswith("ferry-fig"):
        tolerances = sorted({choice.parameters["tolerance"] for choice in full.axes["learner"]})
        steps = {round(b - a, 9) for a, b in pairwise(tolerances)}
        assert (len(tolerances), tolerances[0]) == (49, 0.0)
        assert len(steps) > 1  # tight ones lie closer
    if name in ("ferry-fig2", "ferry-fig3", "ferry-fig4", "ferry-table3", "ferry-table4"):
        metrics = {choice.parameters["metric"] for choice in full.axes["learner"]}
        assert len(metrics) == 4


def test_the_tables_say_it_all(file, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    made = reproduce.reproduce(reproduce.find(str(file)), out=tmp_path / "run")
    boards.show_reproduction(made)
    shown = capsys.readouterr().out
    lines = shown.splitlines()
    assert lines[:5] == [
        "Toys, [bold]not markup[/]",
        "Of 3 statements, 1 holds, 1 does not hold and 1 was not run. Of 3 checks, 1 matched what is stated, ",
        "1 deviated and 1 could not be run.",
        "With the strongest adversary only: Of 1 statement, 1 does not hold.",
        "Not the whole matrix: profile quick, 2 seeds instead of 4.",
    ]
    assert lines[7].split() == ["holds", "no", "correction,", "no", "gain", "1", "of", "1",
                                ".0000", "mean"]  # fmt: skip
    assert lines[10].startswith("not run: no row with dataset = 'sheep'")
    assert shown.count("Toys, ") == shown.count("the strongest adversary of the run") == 1
    assert "everybody is guessed (nowhere)" not in shown  # which is for those who ask
    assert lines[-1].startswith("`fpbench reproduce --long`")
    boards.show_reproduction(made, long=True)
    long = capsys.readouterr().out
    assert long.count("everybody is guessed (nowhere)") == 2  # with the strongest adversary, too
    assert "reproduce --long" not in long
    assert max(map(len, (shown + long).splitlines())) <= 100


def test_a_saved_run_is_judged_by_the_profile_that_it_was_run_with(file, tmp_path):
    made = reproduce.reproduce(reproduce.find(str(file)), out=tmp_path / "run")
    saved = gather(made.run, judge=True).judgement
    assert (saved.verdicts, saved.sentences) == (made.verdicts, made.sentences)
    assert "profile quick, 2 seeds instead of 4" in saved.scale
    (made.run.path / "matrix.toml").unlink()
    assert gather(made.run, judge=True).judgement is None


def test_a_whole_matrix_needs_no_word_on_its_size(file, tmp_path):
    made = reproduce.reproduce(reproduce.find(str(file), "full"), out=tmp_path / "run")
    assert made.scale == ""


AUDITS = """
title = "Audits, [bold]not markup[/]"
seeds = 2
[[dataset]]
use = "flock"
rows = 90
[[learner]]
use = "parrot"
[[auditor]]
use = "pafer"
epsilon = { sweep = [0.5, 1.0] }
repetitions = 20
resamples = 20
[[auditor]]
use = "group-fairness"
resamples = 0
[[mechanism]]
use = "laplace"
[[policy]]
use = "clip"
[[policy]]
use = "project"
[[summary]]
title = "Audits, [bold]not markup[/]"
rows = ["dataset", "learner", "auditor", "mechanism", "policy"]
columns = [{ measure = "true_ratio" }, { measure = "error" }, { measure = "uar" },
           { measure = "independence_gap" }]
[[expect]]
check = "lower"
says = "better than guessing"
source = "here"
measure = "error"
than = "random_guess_error"
per = ["auditor"]
[[expect]]
check = "lower"
says = "projecting helps"
source = "there"
measure = "error"
of = "policy"
value = "project"
than = "clip"
"""


def test_audits_have_a_table_and_no_strongest_adversary(toys, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    path = tmp_path / "audits.toml"
    path.write_text(AUDITS)
    made = reproduce.reproduce(reproduce.find(str(path)), out=tmp_path / "run")
    assert made.tables_of_strongest == made.verdicts_on_strongest == []
    (table,) = made.tables
    assert [row[:3] for row in table.rows] == [  # in the order of the matrix
        *((f"pafer epsilon={e}", "laplace", p) for e in (0.5, 1.0) for p in ("clip", "project")),
        ("group-fairness", "", ""),
    ]
    rows = made.run.frame()
    for line in table.rows[:4]:
        mine = rows
        for kind, label in zip(("auditor", "mechanism", "policy"), line, strict=False):
            mine = mine[mine[kind] == label]
        assert len(mine) == 2
        means = [mine[name].mean() for name in ("true_ratio", "error", "uar")]
        assert line[3:6] == tuple(map(format_number, means))
    assert table.rows[4][4] == "-"
    boards.show_reproduction(made, long=True)
    shown = capsys.readouterr().out
    for words in ("Audits, [bold]not markup[/]", "dataset flock · learner parrot · means over 2",
                  "pafer epsilon=0.5", "better than guessing (here)",
                  "mean error of project minus that of clip; stated: < 0", "Of 4 checks, 1 matched"):  # fmt: skip
        assert words in shown
    assert "strongest" not in shown
    assert max(map(len, shown.splitlines())) <= 120
    (board,) = made.run.leaderboards()
    assert board.rank_by == "error"
    boards.show_leaderboard(board)
    shown = capsys.readouterr().out
    for words in ("epsilon", "truth", "estimate", "coverage", "invalid", "error", "95 %"):
        assert words in shown
    assert "test_accuracy" not in shown


def test_a_matrix_that_asks_for_no_table_shows_the_leaderboard(file, tmp_path, capsys):
    text = file.read_text()
    file.write_text(text[: text.index("[[summary]]")] + text[text.index("[[expect]]") :])
    made = reproduce.reproduce(reproduce.find(str(file)), out=tmp_path / "run")
    boards.show_reproduction(made)
    assert made.tables == [] and "guess corrected" in capsys.readouterr().out


def test_wide_headings_leave_the_interval_whole(capsys, monkeypatch):
    names = ("model_epsilon", "flip_probability", "sensitivity", "baseline_loss_test", "loss_test",
             "expected_accuracy_test", "risk_gap_test", "risk_gap_train")  # fmt: skip
    measures = {name: estimate_interval(np.array([0.11, 0.12]), name) for name in names}
    kinds = ("dataset", "learner", "auditor")
    lines = tuple(
        Line(i, dict(zip(kinds, ("d", f"pate sigma={i}0.0", "a"), strict=True)), measures, 2, 0, ())
        for i in (1, 2)
    )
    for width in range(60, 121, 5):
        monkeypatch.setenv("COLUMNS", str(width))
        boards.show_leaderboard(Leaderboard("", "risk_gap_train", kinds, lines))
        assert capsys.readouterr().out.count(".1100 to .1200") == 2


def test_what_is_not_private_is_called_so(capsys):
    kinds = ("dataset", "learner", "auditor")
    labels = {"dataset": "d", "learner": "l", "auditor": "a"}
    declared = GLOSSARY.declaring(component("auditor", "excessive-risk").declared_measures())
    for private, said in ((0.0, True), (1.0, False), (None, False)):
        found = {} if private is None else {"audit_private": private}
        measures = {
            name: estimate_interval(np.array([value, value]), name)
            for name, value in {**found, "risk_gap_train": 0.1}.items()
        }
        line = Line(1, labels, measures, 2, 0, ())
        board = Leaderboard("", "risk_gap_train", kinds, (line,), glossary=declared)
        boards.show_leaderboard(board)
        assert ("not a private output" in capsys.readouterr().out) is said


def test_on_a_narrow_terminal_audits_show_what_fits(capsys, monkeypatch):
    kinds = ("dataset", "learner", "auditor")
    names = ("epsilon", "true_ratio", "estimated_ratio", "coverage", "invalid_ratio", "error")
    measures = {name: estimate_interval(np.array([0.11, 0.12]), name) for name in names}
    lines = tuple(
        Line(
            i,
            {"dataset": "d", "learner": "l", "auditor": f"auditor number {i}"},
            measures,
            2,
            0,
            (),
        )
        for i in (1, 2)
    )
    for width, absent in (
        (120, ()),
        (80, ()),
        (60, ("invalid", "epsilon")),
    ):
        monkeypatch.setenv("COLUMNS", str(width))
        boards.show_leaderboard(Leaderboard("", "error", kinds, lines))
        shown = capsys.readouterr().out
        assert max(map(len, shown.splitlines())) <= width
        assert ".1100 to .1200" in shown
        assert not [word for word in absent if word in shown]
        assert "estimate" in shown


def fpbench(*arguments, toys_path):
    command = [sys.executable, "-m", "fpbench", *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(toys_path)}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_the_command(file, tmp_path, monkeypatch):
    paths = [path for path in sys.path if path]
    out = fpbench("reproduce", toys_path=paths)
    assert (out.returncode, out.stderr) == (0, "")
    assert "ferry-table3" in out.stdout
    out = fpbench("reproduce", str(file), "--out", str(tmp_path / "run"), toys_path=paths)
    assert (out.returncode, out.stderr) == (0, "")
    assert f"run directory: {tmp_path / 'run'}" in out.stdout
    out = fpbench("reproduce", "ferry-fig22", toys_path=paths)
    assert out.returncode == 2
    assert out.stderr.startswith("error: no study 'ferry-fig22'")


@pytest.mark.slow
@pytest.mark.parametrize("command", ["run", "reproduce"])
def test_strictly_a_deviation_is_an_exit_code(file, tmp_path, command):
    """Half of the coins are wrong, so not everybody is guessed."""
    paths = [path for path in sys.path if path]
    words = [command, str(file), "--out", str(tmp_path / "run")]
    assert fpbench(*words, toys_path=paths).returncode == 0
    record = tmp_path / "record.json"
    out = fpbench(*words, "--strict", "--json", str(record), toys_path=paths)
    assert out.returncode == 1
    assert "deviate from what the matrix states" in out.stderr
    assert "everybody is guessed" in out.stdout
    told = json.loads(record.read_text())
    assert told["passes"] is False
    assert {"fpbench", "python", "numpy"} <= told["versions"].keys()
    stored = (tmp_path / "run" / "matrix.toml").read_bytes()
    assert told["matrix_sha256"] == hashlib.sha256(stored).hexdigest()
    wrong = [each for each in told["checks"] if each["outcome"] == "deviates"]
    assert "everybody is guessed" in {each["statement"] for each in wrong}
    assert all({"threshold", "measured", "low", "high", "source"} <= each.keys() for each in wrong)
    assert all(isinstance(each["measured"], float) for each in wrong)
    kept = MATRIX.partition('[[expect]]\ncheck = "at-least"')[0]
    file.write_text(kept)
    out = fpbench(*words, "--strict", "--json", "-", toys_path=paths)
    assert (out.returncode, out.stderr) == (0, "")
    assert json.loads(out.stdout)["passes"] is True  # and nothing else is printed
    file.write_text(kept.partition("[[expect]]")[0])
    out = fpbench(*words, "--strict", toys_path=paths)
    assert out.returncode == 2
    assert "no [[expect]]" in out.stderr


def test_excessive_risks_have_their_columns_where_they_fit(capsys, monkeypatch):
    names = ("model_epsilon", "flip_probability", "sensitivity", "baseline_loss_test", "loss_test",
             "expected_accuracy_test", "risk_gap_test", "risk_gap_train")  # fmt: skip
    measures = {name: estimate_interval(np.array([0.11, 0.12]), name) for name in names}
    declared = GLOSSARY.declaring(
        measure
        for kind, name in (("auditor", "excessive-risk"), ("learner", "pate"))
        for measure in component(kind, name).declared_measures()
    )
    labels = {"dataset": "d", "learner": "a learner", "auditor": "excessive-risk"}
    lines = tuple(Line(i, {**labels, "learner": f"{i}"}, measures, 2, 0, ()) for i in (1, 2))
    for width, absent in ((130, ()), (80, ("clean", "flips")), (60, ("accuracy", "flips"))):
        monkeypatch.setenv("COLUMNS", str(width))
        board = Leaderboard("", "risk_gap_train", tuple(labels), lines, glossary=declared)
        boards.show_leaderboard(board)
        shown = capsys.readouterr().out
        assert max(map(len, shown.splitlines())) <= width
        assert not [word for word in absent if word in shown]
        assert "train gap" in shown


@pytest.mark.parametrize("gate", ["run", "reproduce"])
def test_a_record_does_not_overwrite_the_matrix(tmp_path, gate):
    file = tmp_path / "toys.toml"
    file.write_text(MATRIX)
    done = subprocess.run(
        [sys.executable, "-m", "fpbench", gate, str(file), "--json", str(file)],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "toys.toml is read here, and would be overwritten" in " ".join(done.stderr.split())
    assert file.read_text() == MATRIX
