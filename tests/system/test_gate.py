"""The script of the GitHub Action, as the action calls it."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml
from reports import make_people, make_report
from warm_start import FPBENCH

ROOT = Path(__file__).parents[2]
GATE = ROOT / ".ci" / "gate.sh"
MARKED = ("secrets", "venv", "ensurepip", "pip/__init__", "pip/__main__", "sitecustomize",
          "usercustomize", "fpbench/__init__", "fpbench/__main__", "numpy", "setup")  # fmt: skip
"""Modules of the judged folder, each of which leaves a mark if it is run."""
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
    # A run that came with the matrix is neither believed nor continued.
    (tmp_path / "runs" / "deviates").mkdir(parents=True)
    (tmp_path / "runs" / "deviates" / "store.sqlite").write_bytes(b"forged")
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


@pytest.mark.slow
def test_a_name_is_no_option(gate, tmp_path):
    X, predictions, groups = make_people(240, seed=0)
    X.assign(sex=groups, hired=predictions).to_csv(tmp_path / "--json=x", index=False)
    report = make_report(X, predictions, groups, order=2)
    about = {"people": "--json=x", "group": "sex", "prediction": "hired", "max_leak": "50%"}
    for name in ("--help", "-o", "--max-leak=100%", "--max-proven=999999"):
        report.to_csv(tmp_path / name)
        assert gate(report=name, **about)[0] == 3
    (tmp_path / "--help").write_text(MATRIX.format(expected=1.0))
    assert gate(matrix="--help")[0] == 1
    assert sorted(file.name for file in tmp_path.iterdir() if file.name.endswith("x")) == [
        "--json=x"
    ]


@pytest.mark.slow
def test_nothing_of_the_judged_folder_is_run(tmp_path):
    """The steps of action.yml, word by word, where a stranger's files lie."""
    folder, scratch = tmp_path / "checkout", tmp_path / "scratch"
    for name in MARKED:
        module = folder / f"{name}.py"
        module.parent.mkdir(parents=True, exist_ok=True)
        module.write_text(f"open({str(tmp_path)!r} + '/ran-{Path(name).name}', 'w')\n")
    for name in ("setup.cfg", "pip.conf", "pip.ini"):
        (folder / name).write_text(f"[global]\ntarget = {tmp_path}/ran-{name}\n[install]\n"
                                   f"prefix = {tmp_path}/ran-{name}\n")  # fmt: skip
    (folder / "pyproject.toml").write_text("[project]\nname = 'stranger'\nversion = '0'\n")
    for name in ("report.csv", "people.csv"):
        (folder / name).write_text("a,b\n1,2\n")
    install, judge = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"][1:]
    plain = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    python = tmp_path / "python"
    python.mkdir()
    for name in ("python", "python3"):
        (python / name).symlink_to(sys._base_executable)
    plain["PATH"] = f"{python}{os.pathsep}{plain['PATH']}"

    def run(step, **env):
        inputs = {
            name: re.sub(r"\$\{\{.*\}\}", "", value) for name, value in step.get("env", {}).items()
        }
        return subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", step["run"]], cwd=folder, check=False, text=True,
            capture_output=True, env={**plain, "PYTHONPATH": str(folder), **inputs, **env},
        )  # fmt: skip

    package = tmp_path / "fpbench-0-py3-none-any.whl"
    with zipfile.ZipFile(package, "w") as wheel:
        about = "fpbench-0.dist-info/"
        wheel.writestr("installed.py", "")
        wheel.writestr(about + "METADATA", "Metadata-Version: 2.1\nName: fpbench\nVersion: 0\n")
        wheel.writestr(
            about + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(
            about + "RECORD",
            f"installed.py,,\n{about}METADATA,,\n{about}WHEEL,,\n{about}RECORD,,\n",
        )
    done = run(install, RUNNER_TEMP=str(scratch), GITHUB_ACTION_PATH=str(package), PIP_NO_INDEX="1")
    assert not done.returncode, done.stderr
    assert list(scratch.glob("fpbench/lib/*/site-packages/installed.py"))

    shutil.rmtree(scratch)
    (scratch / "fpbench").mkdir(parents=True)
    (scratch / "fpbench" / "bin").symlink_to(Path(FPBENCH).parent)
    done = run(judge, RUNNER_TEMP=str(scratch), GITHUB_ACTION_PATH=str(ROOT),
               INPUT_REPORT="report.csv", INPUT_PEOPLE="people.csv")  # fmt: skip
    assert done.returncode == 2
    assert "no column 'prediction'" in done.stdout
    assert not list(tmp_path.glob("ran-*"))
