"""`fpbench reproduce`: a matrix that states what it expects, run and compared."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fpbench import InputError, boards, reproduce

ROOT = Path(__file__).parents[1]
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


def test_statements_are_compared_with_the_rows_and_with_the_strongest_adversary(file, tmp_path):
    made = reproduce.reproduce(reproduce.find(str(file)), out=tmp_path / "run")
    assert [str(v.outcome) for v in made.verdicts] == ["matched", "deviates", "not run"]
    assert made.verdicts[0].ours.count == 2  # seeds of the quick profile, which is the default
    assert {line.labels["adversary"] for line in made.table} == {"coin", "peek"}
    rows = made.run.frame()
    best = rows.groupby("adversary")["initial_accuracy"].mean().idxmax()
    assert {line.labels["adversary"] for line in made.table_of_strongest} == {best}
    (verdict,) = made.verdicts_on_strongest  # the other two say nothing of adversaries
    assert verdict.rows == 2


@pytest.mark.parametrize(
    ("profile", "seeds", "expected"), [("full", None, 4), ("tiny", None, 1), (None, 3, 3)]
)
def test_profiles_and_seeds_are_those_asked_for(file, profile, seeds, expected):
    assert len(reproduce.find(str(file), profile, seeds).seeds) == expected


def test_a_matrix_without_a_quick_profile_is_run_as_it_stands(tmp_path, toys):
    path = tmp_path / "toys.toml"
    path.write_text(MATRIX)
    assert len(reproduce.find(str(path)).seeds) == 4


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ferry-fig22", "nothing to reproduce named 'ferry-fig22'; did you mean 'ferry-fig2'?"),
        (str(ROOT / "benchmarks" / "quickstart.toml"), "states nothing to compare with"),
        ("no/such.toml", "cannot be read"),
    ],
)
def test_what_cannot_be_reproduced_is_refused(name, message):
    with pytest.raises(InputError) as error:
        reproduce.find(name)
    assert message in str(error.value)


def test_all_matrices_that_state_something_are_known_and_packaged():
    stating = {p for p in (ROOT / "benchmarks").glob("*.toml") if "[[expect]]" in p.read_text()}
    assert set(reproduce.known()) == {path.stem for path in stating}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packaged = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert packaged == {f"benchmarks/{p.name}": f"fpbench/benchmarks/{p.name}" for p in stating}


@pytest.mark.parametrize("name", sorted(reproduce.known()))
def test_every_paper_matrix_has_a_quick_profile_and_a_header(name):
    matrix = reproduce.find(name)
    assert matrix.profile == "quick"
    assert len(matrix.seeds) <= 20
    assert len(reproduce.find(name, "full").seeds) >= 20
    header = matrix.text.split("title")[0]
    assert header.startswith("# ")
    assert "# Expected" in header


def test_the_tables_say_it_all(file, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    made = reproduce.reproduce(reproduce.find(str(file)), out=tmp_path / "run")
    boards.show_reproduction(made, "Toys, [bold]not markup[/]")
    shown = capsys.readouterr().out
    for words in (
        "Toys, [bold]not markup[/]",
        "the strongest adversary of the run",
        "everybody is guessed (nowhere)",
        "matched",
        "sheep too",
        "no row with dataset = 'sheep'",
        "as stated  1 matched, 1 deviates, 1 not run",
        "strongest adversary  1 deviates",
    ):
        assert words in shown
    assert max(map(len, shown.splitlines())) <= 100


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
    assert out.stderr.startswith("error: nothing to reproduce named 'ferry-fig22'")
