"""Runs on a dask cluster: a real scheduler, and workers that are processes of their own."""

import json
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
import types
from pathlib import Path

import distributed
import fpbench_dask._cluster
import pandas as pd
import pytest
from fpbench_dask._worker import Parcel
from fpbench_dask.engine import DaskEngine

import fpbench
from fpbench.execution import EngineError, LostError

FLOTSAM = """
import os, signal, time
from dataclasses import replace
from pathlib import Path
import numpy as np
from pydantic import Field
from fpbench import Adversary, Correction, Corrector, Guess, hookimpl
from fpbench.plugin import SolverStatus

class Telling(Adversary):
    name = "telling"
    summary = "tells in which process it is"
    sees = frozenset({"features"})
    def guess(self, view, rng):
        n, m, k = len(view.target), len(view.attack), len(view.target.groups)
        guess = Guess.from_beliefs(np.full((n, k), 1 / k), np.arange(m), np.full((m, k), 1 / k))
        return replace(guess, notes={"process": os.getpid()})

class Deadly(Telling):
    name = "deadly"
    summary = "kills its process"
    def guess(self, view, rng):
        os.kill(os.getpid(), signal.SIGKILL)

class Sleepy(Corrector):
    name = "sleepy"
    summary = "takes its time"
    seconds: float = Field(0.0, description="how long")
    mark: str = Field("", description="a file to make first")
    def correct(self, problem):
        if self.mark:
            Path(self.mark).touch()
        time.sleep(self.seconds)
        return Correction(problem.guess, SolverStatus.OPTIMAL, 0.0)

@hookimpl
def fpbench_adversaries():
    return [Telling, Deadly]

@hookimpl
def fpbench_correctors():
    return [Sleepy]
"""
MATRIX = {
    "seeds": 4,
    "dataset": [{"use": "census-synthetic", "rows": 300}],
    "learner": [{"use": "plain"}, {"use": "decision-tree"}],
    "disclosure": [{"use": "published", "metric": "statistical-parity"}],
    "adversary": [{"use": "prior"}],
    "corrector": [{"use": "exact"}, {"use": "none"}],
}
SLOW = MATRIX | {"corrector": [{"use": "sleepy", "seconds": 0.2}, {"use": "none"}]}
TIMES = ["seconds", "correct_seconds", "initial_seconds"]
PATIENCE = 120.0
"""Seconds that anything may take."""


def timeless(run):
    return [{name: v for name, v in row.items() if name not in TIMES} for row in run.rows()]


def until(condition):
    """What the condition comes to."""
    end = time.monotonic() + PATIENCE
    while not (met := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    assert met, "it never came"
    return met


def begin(where, log, *arguments, **env):
    """A program of dask, in a place of its own."""
    (where / log).mkdir()
    with (where / f"{log}.log").open("w") as file:
        return subprocess.Popen(
            [sys.executable, "-m", *arguments], cwd=where / log, stdout=file, stderr=file,
            env={**os.environ, **env},
        )  # fmt: skip


def names(client):
    """Names of the workers of a cluster."""
    return {worker["name"] for worker in client.scheduler_info(-1)["workers"].values()}


class Cluster:
    """A scheduler, and workers without nannies."""

    def __init__(self, where):
        self.where, told = where, where / "scheduler.json"
        self.started = [begin(
            where, "scheduler", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port",
            "0", "--no-dashboard", "--scheduler-file", str(told),
        )]  # fmt: skip
        until(told.exists)
        self.address = json.loads(until(told.read_text))["address"]

    def client(self):
        return distributed.Client(self.address, set_as_default=False)

    def worker(self, name, **env):
        """A worker, once the scheduler knows it."""
        done = begin(
            self.where, name, "distributed.cli.dask_worker", self.address, "--host", "127.0.0.1",
            "--nthreads", "1", "--no-nanny", "--no-dashboard", "--name", name,
            **{"FPBENCH_DATA": "", **env},
        )  # fmt: skip
        self.started.append(done)
        with self.client() as client:
            until(
                lambda: name in {w["name"] for w in client.scheduler_info(-1)["workers"].values()}
            )
        return done


@pytest.fixture
def cluster(tmp_path):
    made = Cluster(tmp_path)
    yield made
    for process in reversed(made.started):
        process.kill()
        process.wait()


def install(site, version="1.0", more=""):
    """Components of these tests, as a distribution would bring them."""
    info = site / f"flotsam-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: flotsam\nVersion: {version}\n")
    (info / "entry_points.txt").write_text("[fpbench]\nflotsam = flotsam\n")
    (site / "flotsam.py").write_text(FLOTSAM + more)
    return str(site)


@pytest.fixture
def flotsam(tmp_path, monkeypatch):
    site = install(tmp_path / "site")
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("PYTHONPATH", site)
    fpbench.plugin.discover.cache_clear()
    yield
    fpbench.plugin.discover.cache_clear()
    sys.modules.pop("flotsam", None)


def test_a_cluster_of_this_machine_gives_what_one_process_gives(tmp_path):
    near = fpbench.run(MATRIX, out=tmp_path / "near")
    assert {row["status"] for row in near.rows()} == {"done"}
    far = fpbench.run(MATRIX, out=tmp_path / "far", engine="dask", jobs=2)
    assert timeless(far) == timeless(near)


@pytest.mark.slow
def test_two_workers_give_what_one_process_gives(tmp_path, flotsam, cluster, monkeypatch):
    """Results stay on the workers, and data that only the coordinator has gets there."""
    cluster.worker("one")
    cluster.worker("two")
    rows = pd.DataFrame({
        "x": [1, 2, 3, 4, 5] * 12, "y": [0, 1, 1] * 20, "group": ["a", "b"] * 30,
    })  # fmt: skip
    mine = {"mine": fpbench.table(rows, label="y", sensitive="group")}
    matrix = MATRIX | {"dataset": [*MATRIX["dataset"], {"use": "table", "table": "mine"}]}
    matrix["learner"] = [{"use": "plain"}]
    fetched = []
    result = distributed.Future.result

    def watch(future, *arguments):
        answer = result(future, *arguments)
        fetched.append(len(pickle.dumps(answer)))
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(distributed.Future, "result", watch)
        far = fpbench.run(matrix, out=tmp_path / "far", scheduler=cluster.address, tables=mine)
    assert timeless(far) == timeless(fpbench.run(matrix, out=tmp_path / "near", tables=mine))
    assert {row["status"] for row in far.rows()} == {"done"}
    assert max(fetched) < 10_000  # rows of measures, seconds: nothing of the people


@pytest.mark.slow
def test_a_lost_worker_in_a_thousand_cells_loses_nothing(tmp_path, cluster):
    """Its steps, and the results it held, are made again by the other."""
    doomed = cluster.worker("doomed")
    cluster.worker("other")
    sweep = [{"use": "exact", "time_limit": {"sweep": [float(s) for s in range(100, 200)]}}]
    matrix = MATRIX | {"seeds": 5, "corrector": sweep}
    seen = []

    def kill(cell):
        seen.append(cell.cell.key)
        if len(seen) == 300:
            doomed.kill()

    far = fpbench.run(matrix, out=tmp_path / "far", scheduler=cluster.address, on_cell=kill)
    assert doomed.wait(10) != 0
    assert len(seen) == len(set(seen)) == 1000
    assert timeless(far) == timeless(fpbench.run(matrix, out=tmp_path / "near"))
    assert {row["status"] for row in far.rows()} == {"done"}


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_no_cell(tmp_path, flotsam, cluster):
    doomed = cluster.worker("doomed")
    cluster.worker("other")
    seen = []

    def kill(cell):
        seen.append(cell)
        if len(seen) == 4:
            doomed.kill()

    far = fpbench.run(SLOW, out=tmp_path / "far", scheduler=cluster.address, on_cell=kill)
    assert doomed.wait(10) != 0
    assert len(seen) == 16
    assert {(row["status"], row["reason"]) for row in far.rows()} == {("done", None)}


def test_results_are_not_opened_on_their_way(monkeypatch):
    """A worker that lacks a plugin can be handed them, and say what it lacks."""
    gone = types.ModuleType("gone")
    exec("class Model: pass", vars(gone))
    monkeypatch.setitem(sys.modules, "gone", gone)
    sent = pickle.dumps(Parcel(gone.Model()))
    monkeypatch.delitem(sys.modules, "gone")
    there = pickle.loads(sent)
    assert pickle.dumps(there) == sent  # and on to the next one
    with pytest.raises(ModuleNotFoundError, match="gone"):
        there.unpack()
    monkeypatch.setitem(sys.modules, "gone", gone)
    assert isinstance(pickle.loads(sent).unpack(), gone.Model)


@pytest.mark.slow
def test_a_worker_with_other_versions_is_named_and_refused(tmp_path, flotsam, cluster):
    """It lacks a plugin; it has another version; its code is another."""
    out = tmp_path / "run"
    bare = cluster.worker("bare", PYTHONPATH="")
    with pytest.raises(EngineError) as error:
        fpbench.run(SLOW, out=out, scheduler=cluster.address)
    said = str(error.value)
    assert said.count("worker tcp://127.0.0.1:") == 1
    assert "corrector 'sleepy': missing there, flotsam 1.0/" in said
    assert "--allow-mismatch" in said
    assert not out.exists()
    bare.kill()
    bare.wait()
    edited = cluster.worker(
        "edited", PYTHONPATH=install(tmp_path / "edited-site", more="\nX = 1\n")
    )
    with pytest.raises(EngineError, match=r"flotsam 1\.0/\S+ there, flotsam 1\.0/\S+ here"):
        fpbench.run(SLOW, out=out, scheduler=cluster.address)
    edited.kill()
    edited.wait()
    cluster.worker("newer", PYTHONPATH=install(tmp_path / "newer-site", "2.0"))
    with pytest.raises(EngineError, match=r"'sleepy': flotsam 2\.0/\S+ there, flotsam 1\.0"):
        fpbench.run(SLOW, out=out, scheduler=cluster.address)
    run = fpbench.run(SLOW, out=out, scheduler=cluster.address, allow_mismatch=True)
    assert {row["status"] for row in run.rows()} == {"done"}


@pytest.mark.slow
def test_an_unfit_worker_that_comes_later_gets_no_step_done(tmp_path, flotsam, cluster):
    cluster.worker("fit")
    seen = []

    def join(cell):
        seen.append(cell)
        if len(seen) == 1:
            cluster.worker("late", PYTHONPATH="")

    run = fpbench.run(
        SLOW | {"seeds": 8}, out=tmp_path / "run", scheduler=cluster.address, on_cell=join
    )
    assert [row["reason"] for row in run.rows()] == [None] * 32


@pytest.mark.slow
def test_a_worker_that_is_stopped_before_it_is_compared_is_named(tmp_path, cluster, monkeypatch):
    monkeypatch.setattr(fpbench_dask._cluster, "_COMPARING", 3.0)
    stopped = cluster.worker("stopped")
    stopped.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(EngineError, match=r"worker tcp://\S+ does not answer within 3 s"):
            fpbench.run(
                MATRIX, out=tmp_path / "run", scheduler=cluster.address, connect_timeout=3.0
            )
    finally:
        stopped.send_signal(signal.SIGCONT)
    assert not (tmp_path / "run").exists()


def greet(listener):
    """Answer as a web server does to what it does not understand."""
    held = []
    while True:
        try:
            held.append(listener.accept()[0])
            held[-1].sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n" + b" " * 4096)
        except OSError:  # the test is over
            return


@pytest.mark.parametrize(
    ("address", "word"),
    [
        pytest.param(
            "nobody", "does not answer within 2 s (--connect-timeout)", marks=pytest.mark.slow
        ),
        pytest.param(
            "silent", "does not answer within 2 s (--connect-timeout)", marks=pytest.mark.slow
        ),
        pytest.param(
            "stranger",
            "does not answer as a dask scheduler of this version: ",
            marks=pytest.mark.slow,
        ),
        ("nonsense://x", "not an address such as tcp://HOST:PORT"),
        pytest.param(
            "empty", "has no workers after 2 s (--connect-timeout)", marks=pytest.mark.slow
        ),
    ],
)
def test_a_scheduler_that_does_not_answer_is_one_clear_error(tmp_path, request, address, word):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        if address in ("silent", "stranger"):
            silent.listen()
        if address == "stranger":
            threading.Thread(target=greet, args=(silent,), daemon=True).start()
        if address == "empty":
            address = request.getfixturevalue("cluster").address
        elif address in ("nobody", "silent", "stranger"):
            address = f"tcp://127.0.0.1:{port}"
        out = tmp_path / "run"
        with pytest.raises(EngineError) as error:
            fpbench.run(MATRIX, out=out, scheduler=address, connect_timeout=2.0)
    assert str(error.value).startswith(f"scheduler {address}: {word}")
    assert not out.exists()


@pytest.mark.slow
def test_a_scheduler_that_is_lost_ends_the_run_with_one_error(tmp_path, flotsam, cluster):
    cluster.worker("one")
    seen = []

    def lose(cell):
        seen.append(cell)
        if len(seen) == 2:
            with cluster.client() as client:
                client.shutdown()

    options = {"scheduler": cluster.address, "connect_timeout": 3.0, "on_cell": lose}
    with pytest.raises(EngineError, match="scheduler was lost; what is done is kept"):
        fpbench.run(SLOW, out=tmp_path / "run", **options)
    rest = fpbench.run(SLOW, out=tmp_path / "run")
    assert {row["status"] for row in rest.rows()} == {"done"}
    assert len(rest.finished) <= 14


@pytest.mark.slow
def test_who_kills_its_process_fails_alone_and_adversaries_are_apart(tmp_path, flotsam):
    adversaries = [{"use": "telling"}, {"use": "deadly"}]
    matrix = MATRIX | {"adversary": adversaries, "corrector": [{"use": "none"}]}
    run = fpbench.run(matrix, out=tmp_path / "run", engine="dask", jobs=2)
    told = [row["process"] for row in run.rows() if row["adversary"] == "telling"]
    assert len(told) == 8  # of two learners, who share each guess
    assert len(set(told)) == 4  # more than workers: a process is used once
    reasons = {row["reason"] for row in run.rows() if row["adversary"] == "deadly"}
    assert reasons == {"guess deadly: its process was killed by SIGKILL (signal 9)"}


@pytest.mark.parametrize("status", ["lost", "pending"])
def test_a_result_that_goes_with_its_worker_is_no_lost_scheduler(status):
    """Between the news that a step is done and the look at its result, the worker is replaced."""
    engine = object.__new__(DaskEngine)
    engine._client = types.SimpleNamespace(status="running")
    with pytest.raises(LostError):
        engine._fetch(types.SimpleNamespace(status=status))


def family(pid):
    """All descendants of a process, and it."""
    found = {pid}
    while True:
        more = set()
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(fields[1]) in found and fields[0] != "Z":
                more.add(int(stat.parent.name))
        if more <= found:
            return found
        found |= more


def gone(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("end", ["interrupted twice", "killed"])
def test_nothing_is_left_of_a_run_that_ends_early(tmp_path, flotsam, end):
    matrix = SLOW | {"corrector": [{"use": "sleepy", "seconds": 9999.0, "mark": "mark"}]}
    lines = ["seeds = 4"]
    for kind in ("dataset", "learner", "disclosure", "adversary", "corrector"):
        for one in matrix[kind]:
            lines += [f"[[{kind}]]", *(f"{name} = {json.dumps(v)}" for name, v in one.items())]
    (tmp_path / "m.toml").write_text("\n".join(lines))
    process = subprocess.Popen(
        [sys.executable, "-m", "fpbench", "run", "m.toml", "--engine", "dask"],
        cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    until(lambda: (tmp_path / "mark").exists() or process.poll() is not None)
    relatives = family(process.pid)
    assert process.poll() is None, process.stderr.read()
    assert len(relatives) > 3  # a worker, the server of one-use processes, and the step's own
    if end == "killed":
        process.kill()
    else:
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        until(lambda: "finishing what runs" in process.stderr.readline())
        os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == (-signal.SIGKILL if end == "killed" else 130)
    assert until(lambda: all(map(gone, relatives)))


def test_the_commands_for_two_machines_are_understood_by_dask():
    text = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
    lines = re.findall(r"^dask (\w+) (.*)$", text, re.MULTILINE)
    assert {name for name, _ in lines} == {"scheduler", "worker"}
    for name, words in lines:
        module = __import__(f"distributed.cli.dask_{name}", fromlist=["main"])
        module.main.make_context("dask", words.split())


def test_the_matrix_of_the_readme_runs(tmp_path):
    text = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    matrix = {**tomllib.loads(block), "seeds": 1}
    frame = fpbench.run(matrix, out=tmp_path / "run", engine="dask", jobs=2).frame()
    assert (frame["status"] == "done").all(), frame["reason"].tolist()
