"""The package, as it is used: installed, by the kit, and its matrices."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import fpbench_membership
import numpy as np
import pytest

import fpbench
from fpbench import testing

HERE = Path(__file__).parent
README = (HERE / "README.md").read_text(encoding="utf-8")
MATRICES = sorted((HERE / "benchmarks").glob("*.toml"))


@pytest.mark.parametrize("check", testing.checks("fpbench-membership"), ids=str)
def test_they_keep_the_laws_of_their_kind(check):
    verdict = check()
    assert verdict.outcome is testing.Outcome.KEPT, verdict.reason


def test_importing_it_imports_nothing_heavy():
    """Every command that looks for plugins does."""
    script = (
        "import sys, fpbench_membership\n"
        "print(sorted({'numpy', 'pandas', 'pydantic', 'scipy'} & {*sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
    for name in fpbench_membership.__all__:
        assert getattr(fpbench_membership, name).__doc__


def test_the_python_of_the_readme_runs():
    (code,) = re.findall(r"^```python\n(.*?)^```", README, re.M | re.S)
    names = {}
    exec(code, names)
    assert np.isfinite(names["bound"])


def test_the_matrix_of_the_readme_runs(tmp_path):
    (text,) = re.findall(r"^```toml\n(.*?)^```", README, re.M | re.S)
    matrix = tomllib.loads(text)
    auditors = [{**one, "shadows": 4} for one in matrix["auditor"]]
    people = {"use": "census-synthetic", "rows": 300}
    matrix |= {
        "dataset": [people],
        "learner": [{"use": "threshold-optimizer"}],
        "auditor": auditors,
    }
    frame = fpbench.run({**matrix, "seeds": 1}, out=tmp_path / "run").frame()
    assert (frame["status"] == "done").all(), frame["reason"].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("path", MATRICES, ids=lambda path: path.stem)
@pytest.mark.parametrize("profile", [None, "quick"])
def test_the_matrices_of_the_benchmarks_can_be_planned_where_their_data_is(path, profile):
    text = tomllib.loads(path.read_text(encoding="utf-8"))
    assert text["expect"]
    if profile in (None, *text.get("profile", {})):
        try:
            planned = fpbench.plan(path, profile=profile)
        except fpbench.errors.DataError as error:
            pytest.skip(str(error))
        assert planned.runnable > 0
