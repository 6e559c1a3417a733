"""The notebooks run in an empty folder, from the first cell to the last, and say what their words say."""

import json
import os
from itertools import pairwise

import pytest
from pages import ROOT

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
SAID = {
    "attack_my_model": ["Publishing a true claim of stat", "{'f': 0.6", "guessed_right"],
    "publish_a_report": [
        "Do not publish: the group of",
        "May be published within these limits",
        "Guaranteed: epsilon 1",
    ],
    "tutorial": ["8 cells; 53 steps, 64 without sharing", "without_accuracy"],
    "write_a_plugin": ["kept: it cites no source", "majority: 0.5", "one-column: 0.7", "a2: 0.8"],
}
"""Of each, something that its results say."""
LEFT = {
    "attack_my_model": set(),
    "publish_a_report": {"report.csv", "released.csv"},
    "tutorial": {"runs"},
    "write_a_plugin": {"one_column.py"},
}
"""What it leaves in its folder."""


def test_the_notebooks_are_these():
    assert [path.stem for path in NOTEBOOKS] == sorted(SAID)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_results_and_explains_each_cell(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert [cell["cell_type"] for cell in cells[:2]] == ["markdown", "markdown"]
    for before, cell in pairwise(cells):
        if cell["cell_type"] == "code":
            assert before["cell_type"] == "markdown"
            assert (cell["outputs"], cell["execution_count"]) == ([], None)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "jupyter"))
    monkeypatch.setenv("FPBENCH_DATA", "")
    empty = tmp_path / "empty"
    empty.mkdir()
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, resources={"metadata": {"path": str(empty)}}).execute()
    results = json.dumps(
        [cell.outputs for cell in notebook.cells if cell.cell_type == "code"], ensure_ascii=False
    )
    for words in SAID[path.stem]:
        assert words in results
    assert "stderr" not in results  # no warning
    left = {name for name in os.listdir(empty) if not name.startswith((".", "__"))}
    assert left == LEFT[path.stem]
