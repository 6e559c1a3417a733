"""The script of the GitHub Action, as the action calls it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from reports import make_people, make_report
from warm_start import FPBENCH

GATE = Path(__file__).parents[2] / ".ci" / "gate.sh"
MATRIX = """
title = "A gate"
seeds = 2
[[dataset]]
use = "flock"
[[learner]]
use = "parrot"
[[disclosure]]
use = "oracle"
[[adversary]]
use = "coin"
[[corrector]]
use = "none"
[[expect]]
check = "value"
says = "no correction, no gain"
source = "common sense"
measure = "gain"
expected = {expected}
"""

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="the action runs bash")


@pytest.fixture
def gate(tmp_path, toys):
    """Runs the gate with inputs; its exit code, output, and what it wrote on the summary page."""

    def run(**inputs):
        summary = tmp_path / "summary.md"
        summary.write_text("")
        named = {f"INPUT_{name.upper()}": str(value) for name, value in inputs.items()}
        path = os.pathsep.join([str(Path(FPBENCH).parent), os.environ["PATH"]])
        done = subprocess.run(
            [str(GATE)], cwd=tmp_path, capture_output=True, text=True, check=False,
            env={**os.environ, "PATH": path, "GITHUB_STEP_SUMMARY": str(summary), **named},
        )  # fmt: skip
        assert "Traceback" not in done.stdout + done.stderr
        return done.returncode, done.stdout, summary.read_text()

    return run


@pytest.mark.slow
def test_a_report_is_assessed(gate, tmp_path):
    X, predictions, groups = make_people(240, seed=0)
    X.assign(sex=groups, hired=predictions).to_csv(tmp_path / "people.csv", index=False)
    make_report(X, predictions, groups, order=2).to_csv(tmp_path / "much.csv")
    make_report(X, predictions, groups, order=0).to_csv(tmp_path / "little.csv")
    about = {"people": "people.csv", "group": "sex", "prediction": "hired", "json": "record.json"}
    code, output, summary = gate(report="little.csv", **about)
    assert code == 0
    assert "    May be published" in summary
    assert (tmp_path / "record.json").is_file()
    code, output, summary = gate(report="much.csv", **about, max_leak="50%", max_proven=0)
    assert code == 3
    start, shown, end = output.partition("Do not publish")
    assert start.startswith("::stop-commands::")
    assert end.endswith(f"::{start.removeprefix('::stop-commands::').split()[0]}::\n")
    assert shown in summary
    assert gate(report="none.csv", **about)[0] == 2


@pytest.mark.slow
def test_a_matrix_is_compared_with_what_it_states(gate, tmp_path):
    for name, expected in (("holds", 0.0), ("deviates", 1.0)):
        (tmp_path / f"{name}.toml").write_text(MATRIX.format(expected=expected))
    assert gate(matrix="holds.toml")[0] == 0
    code, output, summary = gate(matrix="deviates.toml", json="record.json")
    assert code == 1
    assert '"outcome": "deviates"' in (tmp_path / "record.json").read_text()
    assert "no correction, no gain" in output
    assert "deviate from what the matrix states" in summary


@pytest.mark.slow
def test_inputs_are_data(gate, tmp_path):
    """Neither the shell nor the workflow reads them as commands."""
    name = "$(touch evil)`touch evil`;touch evil\n::set-output name=x::y.csv"
    code, output, _ = gate(report=name, people="people.csv")
    assert code == 2
    assert not (tmp_path / "evil").exists()
    assert output.startswith("::stop-commands::")
    for inputs in ({}, {"report": "a.csv", "matrix": "b.toml"}):
        assert gate(**inputs)[0] == 2
