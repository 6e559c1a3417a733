"""Runs on a dask cluster: a real scheduler, and workers that are processes of their own."""

import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
import types
from concurrent.futures import CancelledError
from pathlib import Path

import pandas as pd
import pytest
from processes import eventually

import fpbench
from fpbench.execution.work.execute import LostError

distributed = pytest.importorskip("distributed")

MATRIX = {
    "seeds": 4,
    "dataset": [{"use": "flock"}],
    "learner": [{"use": "parrot", "number": {"sweep": [0, 1]}}],
    "disclosure": [{"use": "oracle"}],
    "adversary": [{"use": "coin"}, {"use": "keen"}],
    "corrector": [{"use": "flip"}, {"use": "none"}],
}
TIMES = ["seconds", "correct_seconds"]


def timeless(run):
    return [{name: v for name, v in row.items() if name not in TIMES} for row in run.rows()]


def begin(where, log, *arguments, **env):
    """A program of dask, in a place of its own."""
    (where / log).mkdir()
    with (where / f"{log}.log").open("w") as file:
        return subprocess.Popen(
            [sys.executable, "-m", *arguments], cwd=where / log, stdout=file, stderr=file,
            env={**os.environ, **env},
        )  # fmt: skip


def begin_scheduler(where):
    """A scheduler, and its address."""
    told = where / "scheduler.json"
    process = begin(
        where, "scheduler", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0",
        "--no-dashboard", "--scheduler-file", str(told),
    )  # fmt: skip
    until(told.exists)
    return process, json.loads(until(told.read_text))["address"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """The address of a scheduler that serves one test after another."""
    process, address = begin_scheduler(tmp_path_factory.mktemp("shared"))
    yield address
    process.kill()
    process.wait()


@pytest.fixture
def cluster(tmp_path, request):
    """A scheduler, and workers in a place of their own, without nannies."""
    started = []

    class Cluster:
        def __init__(self, *, mortal=False):
            if mortal:
                process, self.address = begin_scheduler(tmp_path)
                started.append(process)
            else:
                self.address = request.getfixturevalue("shared")
                with distributed.Client(self.address, set_as_default=False) as client:
                    until(lambda: not self.names(client))

        def worker(self, name, **env):
            done = begin(
                tmp_path, name, "distributed.cli.dask_worker", self.address, "--host", "127.0.0.1",
                "--nthreads", "1", "--no-nanny", "--no-dashboard", "--name", name,
                **{"FPBENCH_DATA": "", **env},
            )  # fmt: skip
            started.append(done)
            with distributed.Client(self.address, set_as_default=False) as client:
                until(lambda: name in self.names(client))
            return done

        @staticmethod
        def names(client):
            return {info["name"] for info in client.scheduler_info()["workers"].values()}

    yield Cluster
    for process in reversed(started):
        process.kill()
        process.wait()


def until(condition):
    met = eventually(condition)
    assert met, "it never came"
    return met


@pytest.fixture
def without_toys(monkeypatch):
    """The environment of a worker that has no toys."""
    return {"PYTHONPATH": ""}


@pytest.mark.slow
def test_two_workers_give_what_one_process_gives(tmp_path, toys, cluster, toy_trace, monkeypatch):
    """Results stay on the workers, and data that only the coordinator has gets there."""
    made = cluster()
    made.worker("one")
    made.worker("two")
    toy_trace()
    rows = pd.DataFrame({
        "x": [1, 2, 3, 4, 5] * 12, "y": [0, 1, 1] * 20, "group": ["a", "b"] * 30,
    })  # fmt: skip
    mine = {"mine": fpbench.table(rows, label="y", sensitive="group")}
    matrix = MATRIX | {"dataset": [*MATRIX["dataset"], {"use": "table", "table": "mine"}]}

    def refuse(*_, **__):
        raise AssertionError("a result was fetched")

    with monkeypatch.context() as patch:
        patch.setattr(distributed.Client, "gather", refuse)
        patch.setattr(distributed.Future, "result", refuse)
        far = fpbench.run(matrix, out=tmp_path / "far", scheduler=made.address, tables=mine)
    done = toy_trace()
    near = fpbench.run(matrix, out=tmp_path / "near", tables=mine)
    assert timeless(far) == timeless(near)
    assert {row["status"] for row in far.rows()} == {"done"}
    assert sorted(done) == sorted(toy_trace())  # and nothing is done twice


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_no_cell(tmp_path, toys, cluster):
    """Its steps, and the results it held, are made again by the other."""
    made = cluster()
    doomed = made.worker("doomed")
    made.worker("other")
    matrix = MATRIX | {"corrector": [{"use": "flip", "sleep": 0.1}]}
    seen = []

    def kill(cell):
        seen.append(cell)
        if len(seen) == 4:
            doomed.kill()

    far = fpbench.run(matrix, out=tmp_path / "far", scheduler=made.address, on_cell=kill)
    assert doomed.wait(10) != 0
    assert len(seen) == 16
    assert timeless(far) == timeless(fpbench.run(matrix, out=tmp_path / "near"))
    assert {row["status"] for row in far.rows()} == {"done"}


def test_results_are_not_opened_on_their_way(monkeypatch):
    """A worker that lacks a plugin can be handed them, and say what it lacks."""
    from fpbench.execution.engines.dask_worker import Parcel
    from fpbench.matrix.step import Result

    gone = types.ModuleType("gone")
    exec("class Model: pass", vars(gone))
    monkeypatch.setitem(sys.modules, "gone", gone)
    sent = pickle.dumps(Parcel(Result(gone.Model(), 1.0)))
    monkeypatch.delitem(sys.modules, "gone")
    there = pickle.loads(sent)
    assert pickle.dumps(there) == sent  # and on to the next one
    with pytest.raises(ModuleNotFoundError, match="gone"):
        there.unpack()
    monkeypatch.setitem(sys.modules, "gone", gone)
    result = pickle.loads(sent).unpack()
    assert isinstance(result.value, gone.Model)


@pytest.mark.slow
def test_a_worker_without_a_plugin_is_named_and_refused(tmp_path, toys, cluster, without_toys):
    made = cluster()
    made.worker("fit")
    made.worker("bare", **without_toys)
    with pytest.raises(fpbench.InputError) as error:
        fpbench.run(MATRIX, out=tmp_path / "run", scheduler=made.address)
    said = str(error.value)
    assert said.count("worker tcp://127.0.0.1:") == 1
    assert "no learner 'parrot', which is of fpbench-toys 1.0 here" in said
    assert "--allow-mismatch" in said
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_worker_that_is_stopped_before_it_is_compared_is_named(
    tmp_path, toys, cluster, monkeypatch
):
    from fpbench.execution.engines import dask_cluster

    monkeypatch.setattr(dask_cluster, "_COMPARING", 3.0)
    made = cluster()
    stopped = made.worker("stopped")
    stopped.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(
            fpbench.InputError, match=r"worker tcp://\S+ does not answer within 3 s"
        ):
            fpbench.run(MATRIX, out=tmp_path / "run", scheduler=made.address, connect_timeout=3.0)
    finally:
        stopped.send_signal(signal.SIGCONT)
    assert not (tmp_path / "run").exists()


def test_only_a_worker_that_is_gone_may_fail_to_answer(monkeypatch):
    from fpbench.execution.engines import dask_cluster
    from fpbench.execution.engines.local import EngineError
    from fpbench.execution.engines.requirements import Requirements, read_versions

    requirements = Requirements((), read_versions(()))
    client = types.SimpleNamespace(nthreads=lambda: {"there": 1})
    answers = {"there": requirements.here, "gone": OSError("lost")}
    monkeypatch.setattr(dask_cluster, "_ask_workers", lambda *_: answers)
    dask_cluster.compare(client, requirements, 1.0)
    answers["there"] = OSError("lost")
    with pytest.raises(EngineError, match=r"^worker there has no fpbench .*lost"):
        dask_cluster.compare(client, requirements, 1.0)


@pytest.mark.slow
def test_a_worker_with_another_version_is_refused_unless_allowed(tmp_path, toys, cluster):
    site = tmp_path / "other"
    info = site / "fpbench_toys-2.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fpbench-toys\nVersion: 2.0\n")
    (info / "entry_points.txt").write_text("[fpbench]\ntoys = toys\n")
    toys_folder = Path(__file__).parents[2] / "plugins"
    made = cluster()
    made.worker("newer", PYTHONPATH=os.pathsep.join([str(site), str(toys_folder)]))
    with pytest.raises(fpbench.InputError) as error:
        fpbench.run(MATRIX, out=tmp_path / "run", scheduler=made.address)
    assert "learner 'parrot' of fpbench-toys 2.0, not of fpbench-toys 1.0" in str(error.value)
    run = fpbench.run(MATRIX, out=tmp_path / "run", scheduler=made.address, allow_mismatch=True)
    assert {row["status"] for row in run.rows()} == {"done"}


@pytest.mark.slow
def test_an_unfit_worker_that_comes_later_gets_no_step_done(tmp_path, toys, cluster, without_toys):
    made = cluster()
    made.worker("fit")
    matrix = MATRIX | {"corrector": [{"use": "flip", "sleep": 0.1}]}
    late = threading.Thread(target=made.worker, args=("late",), kwargs=without_toys)
    seen = []

    def join(cell):
        seen.append(cell)
        if len(seen) == 1:
            late.start()
            late.join()

    run = fpbench.run(matrix, out=tmp_path / "run", scheduler=made.address, on_cell=join)
    assert [row["reason"] for row in run.rows()] == [None] * 16


def test_workers_with_other_code_are_refused(tmp_path, toys, cluster):
    """The same version, but somebody has edited it."""
    source = (Path(__file__).parents[2] / "plugins" / "toys.py").read_text()
    site = tmp_path / "edited-site"
    info = site / "fpbench_toys-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fpbench-toys\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[fpbench]\ntoys = toys\n")
    (site / "toys.py").write_text(source + "\nMORE = 1\n")
    made = cluster()
    made.worker("edited", PYTHONPATH=str(site))
    with pytest.raises(fpbench.InputError, match=r"fpbench-toys 1\.0 with other code than here"):
        fpbench.run(MATRIX, out=tmp_path / "run", scheduler=made.address)


def toml(matrix=MATRIX):
    lines = [f"seeds = {matrix['seeds']}"]
    for kind in ("dataset", "learner", "disclosure", "adversary", "corrector"):
        for choice in matrix[kind]:
            lines += [f"[[{kind}]]", f'use = "{choice["use"]}"']
    return "\n".join(lines)


def greet(listener):
    """Answer as a web server does to what it does not understand."""
    held = []
    while True:
        try:
            held.append(listener.accept()[0])
            held[-1].sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n" + b" " * 4096)
        except OSError:  # the test is over
            return


@pytest.mark.slow
@pytest.mark.parametrize(
    ("address", "word"),
    [
        ("nobody", "does not answer within 2 s (--connect-timeout)"),
        ("silent", "does not answer within 2 s (--connect-timeout)"),
        ("stranger", "does not answer as a dask scheduler of this version: "),
        ("nonsense://x", "not an address such as tcp://HOST:PORT"),
        ("empty", "has no workers after 2 s (--connect-timeout)"),
    ],
)
def test_a_scheduler_that_does_not_answer_is_one_clear_error(
    tmp_path, toys, cluster, command, address, word
):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        if address in ("silent", "stranger"):
            silent.listen()
        if address == "stranger":
            threading.Thread(target=greet, args=(silent,), daemon=True).start()
        if address == "empty":
            address = cluster().address
        elif address in ("nobody", "silent", "stranger"):
            address = f"tcp://127.0.0.1:{port}"
        (tmp_path / "work" / "m.toml").write_text(toml())
        done = command("run", "m.toml", "--scheduler", address, "--connect-timeout", "2")
    assert done.returncode == 2, done.stderr
    assert (
        done.stderr
        == f"error: scheduler {address}: {word}"
        + (done.stderr[done.stderr.index(word) + len(word) :])
    )
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "work" / "runs").exists()


@pytest.mark.slow
@pytest.mark.parametrize("unnoticed", [0.0, 3.0])
def test_a_scheduler_that_is_lost_ends_the_run_with_one_error(tmp_path, toys, cluster, unnoticed):
    made = cluster(mortal=True)
    made.worker("one")
    matrix = MATRIX | {"corrector": [{"use": "flip", "sleep": 0.2}]}
    seen = []

    def lose(cell):
        seen.append(cell)
        if len(seen) == 2:
            with distributed.Client(made.address, set_as_default=False) as client:
                client.shutdown()
            time.sleep(unnoticed)  # then workers are counted before a result is missed

    with pytest.raises(fpbench.InputError, match="scheduler was lost"):
        fpbench.run(
            matrix, out=tmp_path / "run", scheduler=made.address, connect_timeout=3, on_cell=lose
        )
    rest = fpbench.run(matrix, out=tmp_path / "run")
    assert {row["status"] for row in rest.rows()} == {"done"}
    assert len(rest.finished) <= 14


@pytest.mark.slow
def test_who_kills_every_worker_it_meets_fails_alone(tmp_path, toys, install):
    install("fpbench-troubles", "troubles")
    matrix = MATRIX | {"learner": [{"use": "deadly"}, {"use": "parrot"}], "seeds": 1}
    run = fpbench.run(matrix, out=tmp_path / "run", engine="dask", jobs=2)
    reasons = {(row["learner"], row["reason"]) for row in run.rows()}
    assert reasons == {
        ("deadly", "train deadly: its process was killed by SIGKILL (signal 9)"),
        ("parrot", None),
        ("deadly", "adversary 'keen' sees scores, and learner 'deadly' gives none"),
    }


def test_silence_is_measured_by_our_own_clock():
    from fpbench.execution.engines.dask_watch import Silences

    silences = Silences()
    seen = {"a": 5.0, "b": 9.0}
    assert [silences.find_lost(seen | {"b": 9.0 + now}, float(now)) for now in range(21)] == [
        []
    ] * 21
    assert silences.find_lost(seen, 22.0) == ["a"]
    # We were not there ourselves: nobody is to blame.
    assert silences.find_lost(seen, 100.0) == []
    # Clocks of schedulers may go backwards.
    assert silences.find_lost({"a": 1.0}, 101.0) == []


@pytest.mark.slow
def test_a_worker_that_stops_answering_is_named_and_its_steps_go_elsewhere(
    tmp_path, toys, cluster, caplog, monkeypatch
):
    from fpbench.execution.engines import dask_watch

    monkeypatch.setattr(dask_watch, "_SILENCE", 8.0)
    made = cluster(mortal=True)
    stopped = made.worker("stopped")
    made.worker("other")
    matrix = MATRIX | {"corrector": [{"use": "flip", "sleep": 0.1}]}
    seen = []

    def stop(cell):
        seen.append(cell)
        if len(seen) == 4:
            stopped.send_signal(signal.SIGSTOP)
        if words():  # it was given up
            stopped.send_signal(signal.SIGCONT)

    def words():
        return [r.getMessage() for r in caplog.records if r.name == "fpbench.dask.workers"]

    far = fpbench.run(matrix, out=tmp_path / "far", scheduler=made.address, on_cell=stop)
    assert len(seen) == len({cell.cell.key for cell in seen}) == 16
    assert timeless(far) == timeless(fpbench.run(matrix, out=tmp_path / "near"))
    (said,) = words()
    assert "has not answered for 8 s; others do its steps" in said
    assert stopped.wait(120) is not None  # it finds that nobody counts on it any more


@pytest.mark.parametrize(
    ("status", "kind"),
    [("lost", LostError), ("pending", LostError), ("cancelled", CancelledError)],
)
def test_a_result_that_goes_with_its_worker_is_no_lost_scheduler(status, kind):
    """Between the news that a step is done and the look at its result, the worker is replaced."""
    pytest.importorskip("distributed")
    from fpbench.execution.engines.dask import DaskEngine

    engine = object.__new__(DaskEngine)
    with pytest.raises(kind):
        engine._read_result(None, types.SimpleNamespace(status=status))
