"""What engines do with their workers."""

import warnings

import pytest

import fpbench
from fpbench.execution.engines import local as engines


@pytest.mark.slow
def test_a_worker_that_grows_is_replaced_without_a_word(
    toys, install, tmp_path, monkeypatch, recwarn, new_interpreters
):  # loky reads from the environment, when it is imported, how far a worker may grow
    install("fpbench-troubles", "troubles")
    monkeypatch.setattr(engines, "_MEMORY", {"LOKY_MAX_MEMORY_LEAK_SIZE": str(32 * 2**20)})
    warnings.simplefilter("always")
    numbers = list(range(8))
    leaky = {"use": "leaky", "number": {"sweep": numbers}, "marks": str(tmp_path)}
    matrix = {
        "seeds": 1,
        "dataset": [{"use": "flock"}],
        "learner": [leaky],
        "disclosure": [{"use": "oracle"}],
        "adversary": [{"use": "coin"}],
        "corrector": [{"use": "flip"}],
    }
    run = fpbench.run(matrix, out=tmp_path / "run", jobs=2)
    assert [row["reason"] for row in run.rows()] == [None] * len(numbers)
    assert len({(tmp_path / str(number)).read_text() for number in numbers}) > 2
    assert not recwarn.list
