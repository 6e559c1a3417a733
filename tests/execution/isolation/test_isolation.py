"""An adversary that looks everywhere finds no truth where the engine can hide it."""

import contextlib
import errno
import os
import pty
import pwd
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import fpbench
from fpbench.execution.isolation import confining, one_use, one_use_server
from fpbench.execution.isolation.confining import (
    USER,
    check_isolated_user,
    find_unreadable,
    is_private,
)

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


@pytest.mark.slow
@pytest.mark.usefixtures("new_interpreters")
@pytest.mark.parametrize("engine", ["loky", "dask"])
def test_the_truth_is_not_in_the_process_of_an_adversary(tmp_path, engine):
    if engine == "dask":
        pytest.importorskip("distributed")
    frame = fpbench.run(MATRIX, out=tmp_path / "run", engine=engine, jobs=2).frame()
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
def test_what_an_adversary_is_tuned_beside_is_not_there(tmp_path, engine):
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


def test_reading_an_answer_is_a_part_of_the_step(tmp_path, monkeypatch):
    """The clock stands an hour later when an answer has been read."""
    late, now, read = [0], time.monotonic, one_use.read_result

    def read_slowly(action, *arguments):
        late[0] += 3600 * (action == "guess")
        return read(action, *arguments)

    monkeypatch.setattr(one_use, "read_result", read_slowly)
    monkeypatch.setattr(one_use, "time", SimpleNamespace(monotonic=lambda: now() + late[0]))
    matrix = MATRIX | {"seeds": 1, "adversary": [{"use": "coin"}], "limits": {"timeout": 600}}
    (row,) = fpbench.run(matrix, out=tmp_path / "run").rows()
    assert row["reason"] == "guess coin: timed out after 600 s (timeout of [limits])"


FORGED = ["objects", "offset", "before", "uninitialised", "nested", "runs", "pointers", "lies",
          "bomb", "numbers", "mapping", "long", "huge", "nan", "below", "essay", "nothing", "flood"]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("jobs", "limits"),
    [(1, {"timeout": 120, "memory_limit": "256 MiB"}), (2, {}), (2, {"timeout": 120})],
    ids=["inline with limits", "loky", "loky with limits"],
)
def test_who_forges_its_answer_fails_alone(tmp_path, monkeypatch, jobs, limits):
    """Whatever bytes it sends: the run ends, and everybody else's cells are done and right."""
    monkeypatch.setenv("EVIL_MARK", str(tmp_path / "mark"))
    what = (
        FORGED if jobs == 1 else ["objects", "offset", "nested", "runs", "numbers", "nan", "flood"]
    )
    forger = {"use": "forger", "what": {"sweep": ["none", *what]}}
    matrix = MATRIX | {"seeds": 1, "adversary": [forger, {"use": "coin"}], "limits": limits}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rows = fpbench.run(matrix, out=tmp_path / "run", jobs=jobs).rows()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    said = {row["adversary"].removeprefix("forger "): row for row in rows}
    honest = fpbench.run(MATRIX | {"seeds": 1, "adversary": [{"use": "coin"}]}, out=tmp_path / "b")
    assert said["coin"]["initial_accuracy"] == honest.rows()[0]["initial_accuracy"]
    assert said["none"]["status"] == said["coin"]["status"] == "done"
    for name in what:
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
    what = ["none", "objects", "nested", "runs", "numbers", "nan", "flood"]
    cheat = {"use": "cheat", "what": {"sweep": what}}
    matrix = MATRIX | {"seeds": 1, "adversary": [{"use": "coin"}], "corrector": [cheat],
                       "limits": {"timeout": 120}}  # fmt: skip
    rows = fpbench.run(matrix, out=tmp_path / "run").rows()
    assert [row["status"] for row in rows] == ["done"] + ["failed"] * (len(what) - 1)
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
    monkeypatch.setenv("FPBENCH_CURATOR_TOKEN", "a token of somebody")
    monkeypatch.setenv("MY_PASSWORD", "hunter2")
    monkeypatch.setenv("HARMLESS", "yes")
    matrix = MATRIX | {"seeds": 1, "adversary": [{"use": "loader"}], "limits": limits}
    (row,) = fpbench.run(matrix, out=tmp_path / "run", jobs=jobs).rows()
    assert row["status"] == "done", row["reason"]
    ways = {name: said for name, said in row.items() if name.startswith("way_")}
    assert len(ways) >= 18
    for name, said in ways.items():
        assert "an adversary's process cannot load a data set" in said, (name, said)
        assert name in ("way_run", "way_started") or said.startswith("HiddenError: "), (name, said)
    assert row["found"] == 0
    assert row["has"] == "HOME PATH HARMLESS"
    assert row["hidden"] == "HOME PATH HARMLESS"


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


def test_other_components_have_the_whole_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("FPBENCH_DATA", str(tmp_path))
    monkeypatch.setenv("MY_PASSWORD", "hunter2")
    matrix = MATRIX | {"seeds": 1, "adversary": [{"use": "coin"}], "corrector": [{"use": "reader"}],
                       "limits": {"timeout": 300}}  # fmt: skip
    (row,) = fpbench.run(matrix, out=tmp_path / "run").rows()
    assert row["read"] == f"hunter2 {tmp_path}"


@pytest.mark.parametrize(
    ("name", "value", "private"),
    [
        ("FPBENCH_DATA", "/data", True), ("FPBENCH_CURATOR_TOKEN", "x", True),
        ("XDG_DATA_HOME", "/d", True), ("AWS_SECRET_ACCESS_KEY", "x", True),
        ("AWS_ACCESS_KEY_ID", "x", True), ("PGPASSWORD", "x", True), ("MYSQL_PWD", "x", True),
        ("SSH_AUTH_SOCK", "/s", True), ("GITHUB_TOKEN", "x", True), ("my_api_key", "x", True),
        ("DB", "postgres://me:secret@host/x", True), ("HOME", "/root", False), ("PWD", "/", False),
        ("PATH", "/bin", False), ("TOKENIZERS_PARALLELISM", "false", False),
        ("FPBENCH_IMPORTS", "mine", False), ("HTTP_PROXY", "http://proxy:3128", False),
        ("KEYBOARD", "us", False), ("FPBENCH_ISOLATED_USER", "nobody", False),
    ],
)  # fmt: skip
def test_what_of_the_environment_is_private(name, value, private):
    assert is_private(name, value) == private


@pytest.mark.parametrize(
    ("name", "words"), [("no-such-user", "there is no user 'no-such-user' here"),
                        ("root", "must be a user other than root")]
)  # fmt: skip
def test_a_user_who_cannot_be_is_one_error_at_the_start(tmp_path, monkeypatch, name, words):
    monkeypatch.setenv(USER, name)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(fpbench.InputError, match=words):
        fpbench.run(MATRIX | {"limits": {"timeout": 60}}, out=tmp_path / "run")


def test_only_root_starts_processes_of_another_user(tmp_path, monkeypatch):
    monkeypatch.setenv(USER, "nobody")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(fpbench.InputError, match="only root can start processes as 'nobody'"):
        fpbench.run(MATRIX | {"limits": {"timeout": 60}}, out=tmp_path / "run")


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def package():
    """A folder with a module that everybody can read, where everybody comes in."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        package = Path(folder, "package")
        package.mkdir()
        package.chmod(0o755)
        (package / "module.py").touch(0o644)
        (package / "module.py").chmod(0o644)
        yield package
        package.chmod(0o755)


@pytest.fixture
def identity(monkeypatch):
    """The user who reads: another one if this is root, who can read everything."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    identity = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    if find_unreadable([], **identity) is not None:  # ours lies below /root, for one
        monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
        if not os.path.exists("/usr/bin/python3") or find_unreadable([], **identity) is not None:
            pytest.skip("there is no Python here that another user can start")
    return identity


@pytest.mark.parametrize(
    ("mode", "file_mode", "unreadable"),
    [(0o755, 0o644, None), (0o000, 0o644, "."), (0o111, 0o644, "."), (0o755, 0o000, "module.py")],
)
def test_what_a_user_cannot_read_is_found(package, identity, mode, file_mode, unreadable):
    module = package / "module.py"
    module.chmod(file_mode)
    package.chmod(mode)
    wanted = None if unreadable is None else str(package / unreadable)
    assert find_unreadable([str(package), str(module)], **identity) == wanted


def test_a_python_that_a_user_cannot_start_is_found(package, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(package / "module.py"))
    assert find_unreadable([]) == os.path.realpath(package / "module.py")


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_user_who_cannot_read_python_is_one_error_at_the_start(tmp_path, monkeypatch, jobs):
    """Of the user and the file, before anything is done."""
    looked_at = []

    def find(paths, **identity):
        looked_at.extend(paths)
        assert identity["user"] == pwd.getpwnam("nobody").pw_uid
        return "/opt/secret/os.py"

    monkeypatch.setenv(USER, "nobody")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(confining, "find_unreadable", find)
    with pytest.raises(fpbench.InputError, match="'nobody' cannot read /opt/secret/os.py, which"):
        fpbench.run(MATRIX, out=tmp_path / "run", jobs=jobs)
    assert {os.__file__, os.path.dirname(os.__file__), fpbench.__file__} <= set(looked_at)
    assert not (tmp_path / "run").exists()


def test_who_may_not_change_its_user_is_told_so(monkeypatch):
    """A container that takes all rights from root."""

    def refuse(*_, **__):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setenv(USER, "nobody")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(subprocess, "run", refuse)
    with pytest.raises(fpbench.InputError, match="may not become 'nobody'.*SETUID and SETGID"):
        check_isolated_user()


@pytest.mark.slow
@pytest.mark.usefixtures("new_interpreters")  # the other user may not read the standard library
@needs_root
def test_adversaries_run_as_another_user(tmp_path, monkeypatch):
    """Who can neither open the data nor read the memory of the processes that hold it."""
    # Python may lie below /root here; all that this adversary needs is imported before.
    monkeypatch.setattr(confining, "find_unreadable", lambda paths, **identity: None)
    secret = tmp_path / "secret"
    secret.write_text("the truth")
    secret.chmod(0o600)
    monkeypatch.setenv(USER, "nobody")
    monkeypatch.setenv("EVIL_MARK", str(secret))
    matrix = MATRIX | {"seeds": 1, "adversary": [{"use": "stranger", "coordinator": os.getpid()}],
                       "limits": {"timeout": 300}}  # fmt: skip
    (row,) = fpbench.run(matrix, out=tmp_path / "run").rows()
    assert row["status"] == "done", row["reason"]
    assert row["user"] == pwd.getpwnam("nobody").pw_uid
    assert row["groups"] == ""
    assert row["secret"] == row["memory"] == row["back"] == "PermissionError"
    monkeypatch.delenv(USER)
    (row,) = fpbench.run(matrix, out=tmp_path / "other").rows()
    assert (row["user"], row["secret"], row["memory"]) == (0, "opened", "opened")


@pytest.mark.parametrize(
    ("name", "imported"),
    [
        ("fpbench.claims.rates", True), ("sklearn.tree._classes", True), ("numpy", True),
        ("fpbench.__main__", False), ("sklearn.conftest", False), ("scipy.stats.tests.a", False),
        ("os", False), ("fpbench_evil", False), ("fpbench..rates", False), ("", False),
        ("fpbench.testing", False), ("numpy.x;y", False), ("fpbench.cli.pytest_plugin", False),
    ],
)  # fmt: skip
def test_what_a_child_names_is_imported_only_if_it_does_nothing(name, imported):
    """The pipe in which a child names modules is the child's to write in."""
    assert one_use_server._may_be_preloaded(name) == imported
