"""An adversary that looks everywhere finds no truth where the engine can hide it."""

import contextlib
import os
import pty
import resource
import subprocess
import sys

import pytest
from toy_runs import ATTACK

import fpbench

MATRIX = ATTACK | {
    "seeds": 3,
    "dataset": [{"use": "flock", "rows": 90}],
    "adversary": [{"use": "hunter"}],
    "corrector": [{"use": "none"}],
}


@pytest.fixture(autouse=True)
def _troubles(toys, install):
    install("fpbench-troubles", "troubles")


@pytest.mark.slow
@pytest.mark.usefixtures("new_interpreters")
def test_the_truth_is_not_in_the_process_of_an_adversary(tmp_path):
    frame = fpbench.run(MATRIX, out=tmp_path / "run", jobs=2).frame()
    assert set(frame["status"]) == {"done"}, frame["reason"].tolist()
    assert (frame["found"] == 0).all()
    assert len(set(frame["process"])) == 3  # more than workers: a process is used once


@pytest.mark.slow
def test_limits_hide_it_in_one_job_too(tmp_path):
    matrix = MATRIX | {"seeds": 1, "limits": {"timeout": 60}}
    frame = fpbench.run(matrix, out=tmp_path / "run").frame()
    assert (frame["found"] == 0).all()
    assert os.getpid() not in set(frame["process"])


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["inline", "loky"])
def test_an_adversary_is_tuned_without_the_other_parts(tmp_path, engine):
    """In one process there is no hiding: so the hunter can hunt, and all tests of it can fail."""
    matrix = MATRIX | {"seeds": 1, "adversary": [{"use": "tuned-hunter"}]}
    jobs = 1 if engine == "inline" else 2
    frame = fpbench.run(matrix, out=tmp_path / "run", engine=engine, jobs=jobs).frame()
    assert set(frame["status"]) == {"done"}, frame["reason"].tolist()
    assert (frame["before"] > 0).all() == (engine == "inline")
    assert (frame["found"] > 0).all() == (engine == "inline")


@pytest.mark.slow
def test_what_an_adversary_gives_back_runs_nowhere_else(tmp_path, monkeypatch):
    """Its objects are not even opened where the truth is."""
    monkeypatch.setenv("EVIL_MARK", str(tmp_path / "mark"))
    matrix = MATRIX | {"seeds": 1, "adversary": [{"use": "smuggler"}]}
    frame = fpbench.run(matrix, out=tmp_path / "run", jobs=2).frame()
    (reason,) = set(frame["reason"])
    assert reason.startswith("guess smuggler: measure 'gift' must be a text, None, or a number of")
    assert not (tmp_path / "mark").exists()


FORGED = ["nested", "runs", "numbers", "nan", "nothing", "flood"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("jobs", "limits"),
    [(1, {"timeout": 120, "memory_limit": "256 MiB"}), (2, {}), (2, {"timeout": 120})],
    ids=["inline with limits", "loky", "loky with limits"],
)
def test_a_forged_answer_fails_alone(tmp_path, monkeypatch, jobs, limits):
    """Whatever bytes it sends: the run ends, and everybody else's cells are done and right."""
    monkeypatch.setenv("EVIL_MARK", str(tmp_path / "mark"))
    forger = {"use": "forger", "what": {"sweep": ["none", *FORGED]}}
    matrix = MATRIX | {"seeds": 1, "adversary": [forger, {"use": "coin"}], "limits": limits}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rows = fpbench.run(matrix, out=tmp_path / "run", jobs=jobs).rows()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    said = {row["adversary"].removeprefix("forger "): row for row in rows}
    honest = fpbench.run(MATRIX | {"seeds": 1, "adversary": [{"use": "coin"}]}, out=tmp_path / "b")
    assert said["coin"]["initial_accuracy"] == honest.rows()[0]["initial_accuracy"]
    assert said["none"]["status"] == said["coin"]["status"] == "done"
    for name in FORGED:
        row = said[name]
        assert row["status"] == "failed", name
        assert row["reason"].startswith("guess forger: "), row["reason"]
        assert "Traceback" not in row["reason"]
        assert len(row["reason"]) < 300
        assert 0 <= row["seconds"] < 600
    assert "is longer than the" in said["flood"]["reason"]
    assert not (tmp_path / "mark").exists()
    assert grown < 256 * 1024  # kilobytes; the flood alone has no end


@pytest.mark.slow
def test_with_limits_what_any_component_answers_is_read_as_data(tmp_path, monkeypatch):
    monkeypatch.setenv("EVIL_MARK", str(tmp_path / "mark"))
    cheat = {"use": "cheat", "what": {"sweep": ["none", *FORGED]}}
    matrix = MATRIX | {"seeds": 1, "adversary": [{"use": "coin"}], "corrector": [cheat],
                       "limits": {"timeout": 120}}  # fmt: skip
    rows = fpbench.run(matrix, out=tmp_path / "run").rows()
    assert [row["status"] for row in rows] == ["done"] + ["failed"] * len(FORGED)
    assert all(row["reason"].startswith("correct cheat: ") for row in rows[1:])
    assert not (tmp_path / "mark").exists()


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_with_limits_no_component_forges_what_is_measured_of_it(tmp_path, jobs):
    """Its process has other functions of fpbench than the one in which the truth is."""
    forges = {"forges": {"sweep": [False, True]}}
    auditors = [
        {"use": "forging-auditor", "label": label, "releases": label == "release", **forges}
        for label in ("release", "measures")
    ]
    matrix = MATRIX | {"seeds": 1, "adversary": [{"use": "coin"}], "auditor": auditors,
                       "corrector": [{"use": "forging-corrector", **forges}],
                       "limits": {"timeout": 300}}  # fmt: skip
    rows = fpbench.run(matrix, out=tmp_path / "run", jobs=jobs).rows()
    assert [row["status"] for row in rows] == ["done"] * 6, [row["reason"] for row in rows]
    names = {"cell", "auditor", "corrector", "seconds", "correct_seconds"}
    measured = [
        {name: value for name, value in row.items() if name not in names and value is not None}
        for row in rows
    ]
    for honest, forging in zip(measured[::2], measured[1::2], strict=True):
        assert forging == honest
    audits = [row for row in rows if row.get("audit_metric") is not None]
    assert [row["epsilon"] for row in audits] == [2.0, 2.0]
    assert 0.0123 not in {value for row in measured for value in row.values()}
    assert all(row["error"] > 0 for row in audits)
    attacks = [row for row in rows if row["corrector"]]
    assert len(attacks) == 2
    for row in attacks:
        # Everybody is said to be of group 0, which is the smaller one.
        assert row["reconsidered_accuracy"] == pytest.approx(1 - row["majority_accuracy"])
        assert 0 < row["correct_seconds"] <= 300  # a part of a step takes no longer than the step


@pytest.mark.slow
@pytest.mark.parametrize(("jobs", "limits"), [(1, {"timeout": 300}), (2, {})])
def test_an_adversary_is_loaded_no_data_set(tmp_path, monkeypatch, jobs, limits):
    monkeypatch.setenv("FPBENCH_DATA", str(tmp_path))
    matrix = MATRIX | {"seeds": 1, "adversary": [{"use": "loader"}], "limits": limits}
    (row,) = fpbench.run(matrix, out=tmp_path / "run", jobs=jobs).rows()
    assert row["status"] == "done", row["reason"]
    ways = {name: said for name, said in row.items() if name.startswith("way_")}
    assert len(ways) == 9
    for name, said in ways.items():
        assert "an adversary's process cannot load a data set" in said, (name, said)
        assert name in ("way_run", "way_started") or said.startswith("HiddenError: "), (name, said)
    assert row["found"] == 0


@pytest.mark.slow
@pytest.mark.parametrize(("jobs", "limits"), [(1, {"timeout": 300}), (2, {})])
def test_an_adversary_has_no_terminal(tmp_path, jobs, limits):
    """What it prints is printed escaped; nothing that is typed is its own."""
    matrix = MATRIX | {"seeds": 1, "adversary": [{"use": "talker"}], "limits": limits}
    code = f"import fpbench; fpbench.run({matrix}, out='run', jobs={jobs})"
    typed, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=terminal, stdout=terminal, stderr=terminal, cwd=tmp_path,
    )  # fmt: skip
    os.close(terminal)
    os.write(typed, b"hunter2\n")
    shown = b""
    with contextlib.suppress(OSError):  # the terminal is closed at the end
        while piece := os.read(typed, 1 << 16):
            shown += piece
    os.close(typed)
    assert process.wait() == 0, shown.decode(errors="replace")
    (row,) = fpbench.load(tmp_path / "run").rows()
    assert [row[f"terminal_{end}"] for end in range(3)] == [False] * 3
    assert [row[f"read_{end}"] for end in range(3)] == ["", "OSError", "OSError"]
    assert row["no_new_rights"] == "1"
    lines = shown.decode().split("\r\n")
    assert r"| \x1b]0;title\x07\u202eolleh	tab" in lines
    assert any(
        line.startswith("| ") and line.endswith(r"\x1b[2Jpassword: \x1b[31mred") for line in lines
    )
    assert b"\x1b" not in shown
