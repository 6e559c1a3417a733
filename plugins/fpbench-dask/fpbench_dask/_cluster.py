"""Clusters: one that is started here, or one whose scheduler runs already."""

from __future__ import annotations

import logging
import os
import pickle
import signal
import threading
import warnings
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import dask
from distributed import Client, LocalCluster, WorkerPlugin, wait

from fpbench.execution import EngineError, EngineSetup, WorkerCheck
from fpbench_dask._worker import check_worker

_GRACE = 1.0
"""Seconds beyond its timeout that a connection may take to give up by itself."""
_COMPARING = 120.0
"""Least seconds that a worker gets to list its versions: it imports the packages first."""
_SETTINGS = {
    # The tables of a run travel with the first task that needs them.
    "distributed.admin.large-graph-warning-threshold": "1TB",
    # A step that a worker held when it died is tried again alone, so few deaths are enough.
    "distributed.scheduler.allowed-failures": 1,
    # For its dashboard, dask would sample the stack of each step a hundred times a second, and
    # wake each process fifty times a second.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
    # Dask gives up the nanny of a worker that is gone for longer. On a busy machine, a new process
    # may take longer to start than the usual 15 seconds.
    "distributed.deploy.lost-worker-timeout": "1h",
}


def prepare() -> None:
    """Set dask up for runs, and silence its loggers."""
    for name in ("distributed", "tornado", "asyncio", "bokeh"):
        for logger in (name, *(n for n in logging.root.manager.loggerDict if n.startswith(name))):
            logging.getLogger(logger).setLevel(logging.CRITICAL)
    dask.config.set(_SETTINGS)


class _LeaveInterrupts(WorkerPlugin):
    """A worker that leaves Ctrl-C to the coordinator."""

    def setup(self, worker: Any) -> None:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def start(jobs: int) -> tuple[LocalCluster, Client]:
    """A cluster on this machine: processes of one thread each, which keep results in memory."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about ports in use
        cluster = LocalCluster(
            n_workers=jobs, threads_per_worker=1, processes=True, dashboard_address=None,
            memory_limit=0, silence_logs=logging.CRITICAL, host="127.0.0.1",
        )  # fmt: skip
    client = Client(cluster, set_as_default=False)
    client.register_plugin(_LeaveInterrupts())
    return cluster, client


def kill(cluster: LocalCluster) -> None:
    """Kill the workers of a cluster on this machine; their one-use processes end with them."""
    for nanny in cluster.workers.values():
        if nanny.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(nanny.pid, signal.SIGKILL)


def join(scheduler: str, timeout: float) -> Client:
    """A client of a scheduler; EngineError if it does not answer in time, or has no worker."""
    answer: Future[Client] = Future()

    def connect() -> None:
        try:
            answer.set_result(Client(scheduler, timeout=timeout, set_as_default=False))
        except Exception as error:
            answer.set_exception(error)

    # Dask waits for a server that accepts and never answers without end, whatever the timeout.
    threading.Thread(target=connect, daemon=True).start()
    where, within = f"scheduler {scheduler}", f"{timeout:g} s (--connect-timeout)"
    try:
        client = answer.result(timeout + _GRACE)
    except (OSError, TimeoutError) as error:
        raise EngineError(f"{where}: does not answer within {within}") from error
    except ValueError as error:
        raise EngineError(f"{where}: not an address such as tcp://HOST:PORT: {error}") from error
    except Exception as error:  # an answer of another program may raise anything
        words = " ".join(f"{type(error).__name__}: {error}".split())
        raise EngineError(
            f"{where}: does not answer as a dask scheduler of this version: {words}"
        ) from error
    try:
        client.wait_for_workers(1, timeout=timeout)
    except BaseException as error:
        with suppress(Exception):
            client.close()
        if not isinstance(error, TimeoutError):
            raise
        raise EngineError(f"{where}: has no workers after {within}") from error
    return client


def compare(client: Client, setup: EngineSetup) -> bytes:
    """The check of each worker, pickled, after all workers have passed it.

    Raises EngineError with all workers that differ, or that do not answer in time.
    """
    check = pickle.dumps(WorkerCheck.from_setup(setup))
    answers = {
        worker: client.submit(check_worker, check, workers=[worker], pure=False)
        for worker in client.nthreads()
    }
    timeout = max(setup.connect_timeout, _COMPARING)
    with suppress(TimeoutError), client.as_current():
        wait(list(answers.values()), timeout)
    there = client.nthreads()
    workers: dict[str, list[str]] = {}
    for worker, answer in sorted(answers.items()):
        if worker not in there:  # it has ended meanwhile
            continue
        if not answer.done():
            raise EngineError(
                f"worker {worker} does not answer within {timeout:g} s: end it, or wait longer "
                "with --connect-timeout"
            )
        failed = answer.status == "error"
        words = f"no fpbench that says what it has: {answer.exception()!r}" if failed else ""
        if words := words or answer.result():
            workers.setdefault(words, []).append(worker)
    if workers:
        each = (f"worker {', '.join(where)} has {words}" for words, where in workers.items())
        raise EngineError(
            "; ".join(each) + "; install the same there, or let it pass with --allow-mismatch"
        )
    return check
