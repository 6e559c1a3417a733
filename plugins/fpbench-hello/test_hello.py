"""The plugin, as it is used: installed, found by name, in a matrix."""

import fpbench


def test_it_is_found():
    entry = fpbench.discover().entry("adversary", "majority-hello")
    assert entry.source.distribution == "fpbench-hello"
    assert fpbench.component("adversary", "majority-hello").summary


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
