"""The plugin, as it is used: installed, found by name, in a matrix."""

import pytest

import fpbench
from fpbench.testing import Outcome, checks


def test_it_is_found():
    entry = fpbench.discover().entry("adversary", "majority-hello")
    assert entry.source.distribution == "fpbench-hello"
    assert fpbench.component("adversary", "majority-hello").summary


@pytest.mark.parametrize("check", checks("fpbench-hello"), ids=str)
def test_it_keeps_the_law(check):
    verdict = check()
    assert verdict.outcome is Outcome.KEPT, verdict.reason


def test_it_runs_in_a_matrix(tmp_path):
    matrix = {
        "dataset": [{"use": "census-synthetic", "rows": 600}],
        "learner": [{"use": "plain"}],
        "disclosure": [{"use": "hidden"}],
        "adversary": [{"use": "majority-hello"}],
        "corrector": [{"use": "none"}],
    }
    (row,) = fpbench.run(matrix, out=tmp_path / "run").frame().to_dict("records")
    assert row["status"] == "done"
    assert row["initial_accuracy"] == row["majority_accuracy"]
