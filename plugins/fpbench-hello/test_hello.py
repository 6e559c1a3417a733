"""The plugin, as it is used: installed, found by name, in a matrix."""

import re
import tomllib
from pathlib import Path

import fpbench_hello
import pytest

import fpbench
from fpbench.testing import Outcome, checks

HERE = Path(__file__).parent


def blocks(path, language):
    text = path.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_it_is_found():
    entry = fpbench.plugin.discover().entry("adversary", "majority-hello")
    assert entry.source.distribution == "fpbench-hello"
    assert fpbench.component("adversary", "majority-hello").summary


@pytest.mark.parametrize("check", checks("fpbench-hello"), ids=str)
def test_it_keeps_the_law(check):
    verdict = check()
    assert verdict.outcome is Outcome.KEPT, verdict.reason


def test_what_the_documentation_quotes_is_this_plugin():
    page = HERE.parents[1] / "docs" / "plugins.md"
    (quoted,) = blocks(page, "python")
    assert quoted == (HERE / "fpbench_hello.py").read_text(encoding="utf-8")
    assert quoted == Path(fpbench_hello.__file__).read_text(encoding="utf-8")
    assert len(quoted.splitlines()) == 25
    assert '`hello = "fpbench_hello"` under `[project.entry-points.fpbench]`' in page.read_text()
    written = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))
    assert written["project"]["entry-points"]["fpbench"] == {"hello": "fpbench_hello"}


def test_the_matrix_of_the_readme_runs(tmp_path):
    (block,) = blocks(HERE / "README.md", "toml")
    frame = fpbench.run({**tomllib.loads(block), "seeds": 1}, out=tmp_path / "run").frame()
    assert (frame["status"] == "done").all(), frame["reason"].tolist()
    (row,) = frame[frame["adversary"] == "majority-hello"].to_dict("records")
    assert row["initial_accuracy"] == row["majority_accuracy"]
