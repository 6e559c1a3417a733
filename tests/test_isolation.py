"""An adversary that looks everywhere finds no truth where the engine can hide it."""

import os

import pytest

import fpbench

MATRIX = {
    "seeds": 3,
    "dataset": [{"use": "flock", "rows": 90}],
    "learner": [{"use": "parrot"}],
    "disclosure": [{"use": "oracle"}],
    "adversary": [{"use": "hunter"}],
    "corrector": [{"use": "none"}],
}


@pytest.fixture(autouse=True)
def _troubles(toys, install):
    install("fpbench-troubles", "troubles")


def found(tmp_path, **options):
    frame = fpbench.run(MATRIX, out=tmp_path / "run", **options).frame()
    assert set(frame["status"]) == {"done"}, frame["reason"].tolist()
    return frame


def test_in_one_process_there_is_no_hiding(tmp_path):
    """So the hunter can hunt, and the tests below can fail."""
    assert (found(tmp_path)["found"] > 0).all()


@pytest.mark.parametrize("engine", ["loky", "dask"])
def test_the_truth_is_not_in_the_process_of_an_adversary(tmp_path, engine):
    if engine == "dask":
        pytest.importorskip("distributed")
    frame = found(tmp_path, engine=engine, jobs=2)
    assert (frame["found"] == 0).all()
    assert len(set(frame["process"])) == 3  # a process is used once


def test_limits_hide_it_in_one_job_too(tmp_path):
    matrix = MATRIX | {"limits": {"timeout": 60}}
    frame = fpbench.run(matrix, out=tmp_path / "run").frame()
    assert (frame["found"] == 0).all()
    assert os.getpid() not in set(frame["process"])


@pytest.mark.parametrize("engine", ["inline", "loky"])
def test_what_an_adversary_is_tuned_beside_is_not_there(tmp_path, engine):
    matrix = MATRIX | {"adversary": [{"use": "tuned-hunter"}]}
    jobs = 1 if engine == "inline" else 2
    frame = fpbench.run(matrix, out=tmp_path / "run", engine=engine, jobs=jobs).frame()
    assert set(frame["status"]) == {"done"}, frame["reason"].tolist()
    assert (frame["before"] > 0).all() == (engine == "inline")
    assert (frame["found"] > 0).all() == (engine == "inline")


def test_what_an_adversary_gives_back_runs_nowhere_else(tmp_path, monkeypatch):
    """Its objects are not even opened where the truth is."""
    monkeypatch.setenv("EVIL_MARK", str(tmp_path / "mark"))
    matrix = MATRIX | {"adversary": [{"use": "smuggler"}]}
    frame = fpbench.run(matrix, out=tmp_path / "run", jobs=2).frame()
    (reason,) = set(frame["reason"])
    assert reason.startswith("guess smuggler: measure 'gift' must be a text, None, or a number of")
    assert not (tmp_path / "mark").exists()
