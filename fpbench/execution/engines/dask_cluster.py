"""A dask cluster: one that is started here, or one whose scheduler runs already."""

from __future__ import annotations

import logging
import os
import signal
import threading
import warnings
from concurrent.futures import CancelledError, Future, wait
from contextlib import suppress
from typing import Any, NamedTuple

import dask
from distributed import Client, LocalCluster, WorkerPlugin
from distributed import Future as Remote
from distributed.comm import get_address_host_port, parse_address
from distributed.comm.registry import get_backend

from fpbench.base.distribution import DISTRIBUTION
from fpbench.base.threads import ONE_THREAD
from fpbench.execution.engines.local import EngineError
from fpbench.execution.engines.requirements import Requirements, list_mismatches, read_versions
from fpbench.execution.isolation.families import MARK
from fpbench.execution.isolation.one_use import ForkServer

_GRACE = 1.0
"""Seconds beyond its timeout that a connection may take to give up by itself."""
_LAST_WORDS = 10.0
"""Seconds within which a cluster that was started here closes."""
_COMPARING = 60.0
"""Least seconds that a worker gets to list its versions: it imports the packages first."""
_IN_TOUCH = ("running", "connecting")
_LOG = logging.getLogger("fpbench.dask")
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


class Cluster(NamedTuple):
    """A cluster, and the parts of it that this process started."""

    client: Client
    ours: LocalCluster | None = None
    server: ForkServer | None = None
    """Forks one-use processes for all workers that we started; others have a server each."""

    def threads(self) -> dict[str, int]:
        """The number of threads of each worker; EngineError if the scheduler is lost."""
        try:
            return dict(self.client.nthreads())
        except Exception as error:
            raise self.explain(error) from error

    def explain(self, error: Exception) -> Exception:
        """An `EngineError` if the scheduler is lost; otherwise the error itself."""
        if isinstance(error, OSError | CancelledError) or self.client.status not in _IN_TOUCH:
            return EngineError("the scheduler was lost; what is done is kept")
        return error

    def retry(self, lost: list[Remote]) -> None:
        """As `Client.retry`, which fails if a lost result depends on released futures."""
        client, keys = self.client, [remote.key for remote in lost]
        for key in client.sync(client.scheduler.retry, keys=keys, client=client.id):
            if key in client.futures:
                client.futures[key].retry()

    def close(self, *, now: bool) -> None:
        """Leave the cluster; end one that we started, with `now` without waiting for steps."""
        if self.ours is not None and now:
            for nanny in self.ours.workers.values():
                if nanny.pid is not None:
                    with suppress(OSError):
                        os.kill(nanny.pid, signal.SIGKILL)
        for closed in (self.client, self.ours):
            if closed is not None:
                try:
                    closed.close(timeout=_LAST_WORDS)
                except Exception:  # a dying cluster raises many things
                    _LOG.debug("closing", exc_info=True)
        if self.server is not None:
            self.server.close()


class _WorkerSetup(WorkerPlugin):  # type: ignore[misc]
    """Sets up each worker of a cluster that we started: it leaves Ctrl-C to the coordinator."""

    name = "fpbench"

    def setup(self, worker: Any) -> None:
        """Ignore interrupts; called in the worker."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def join(scheduler: str, timeout: float) -> Cluster:
    """The cluster of a scheduler, which must answer in time and have a worker.

    Raises EngineError if the scheduler does not answer, has no worker, or has an invalid address.
    """
    _prepare()
    where = f"scheduler {scheduler}"
    try:
        scheme, place = parse_address(scheduler)
        if not place:
            raise ValueError("it is empty")
        get_backend(scheme)
        get_address_host_port(scheduler)
    except (ValueError, TypeError) as error:
        raise EngineError(f"{where}: not an address such as tcp://HOST:PORT: {error}") from error
    answer: Future[Client] = Future()

    def connect() -> None:
        client = Client.__new__(Client)
        try:
            client.__init__(scheduler, timeout=timeout, set_as_default=False)
            answer.set_result(client)
        except Exception as error:
            client.status = "closed"  # else it would try again when it is garbage-collected
            answer.set_exception(error)

    # Dask waits for a server that accepts and never answers without end, whatever the timeout.
    threading.Thread(target=connect, daemon=True).start()
    try:
        cluster = Cluster(answer.result(timeout + _GRACE))
    except (OSError, TimeoutError) as error:
        raise EngineError(
            f"{where}: does not answer within {timeout:g} s (--connect-timeout)"
        ) from error
    except Exception as error:  # an answer of another program may raise anything
        words = " ".join(f"{type(error).__name__}: {error}".split())
        raise EngineError(
            f"{where}: does not answer as a dask scheduler of this version: {words}"
        ) from error
    try:
        cluster.client.wait_for_workers(1, timeout=timeout)
    except BaseException as error:
        cluster.close(now=True)
        if not isinstance(error, TimeoutError):
            raise
        raise EngineError(
            f"{where}: has no workers after {timeout:g} s (--connect-timeout)"
        ) from error
    return cluster


def _ask_workers(client: Client, requirements: Requirements, timeout: float) -> dict[str, Any]:
    """The versions of each worker, or the error it answered with."""
    answers: dict[str, Future[dict[str, Any]]] = {}

    def ask(worker: str) -> None:
        try:
            answers[worker].set_result(
                client.run(read_versions, requirements.uses, workers=[worker], on_error="return")
            )
        except Exception as error:
            answers[worker].set_result({worker: error})

    # Dask waits for a stopped worker without end, whatever the timeout.
    for worker in client.nthreads():
        answers[worker] = Future()
        threading.Thread(target=ask, args=(worker,), daemon=True).start()
    timeout = max(timeout, _COMPARING)
    silent = wait(answers.values(), timeout).not_done
    if silent:
        names = ", ".join(sorted(name for name, answer in answers.items() if answer in silent))
        raise EngineError(
            f"worker {names} does not answer within {timeout:g} s: end it, or wait longer with "
            "--connect-timeout"
        )
    return {name: it for answer in answers.values() for name, it in answer.result().items()}


def start(jobs: int, modules: tuple[str, ...]) -> Cluster:
    """A cluster on this machine: processes of one thread each, which keep results in memory.

    `modules`: what their one-use processes import; empty if no step needs one.
    """
    _prepare()
    server = ForkServer(modules)
    if modules:
        server.address()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about ports in use
        cluster = LocalCluster(
            n_workers=jobs, threads_per_worker=1, processes=True, dashboard_address=None,
            memory_limit=0, silence_logs=logging.CRITICAL, host="127.0.0.1",
            env=ONE_THREAD | {MARK: server.mark},
        )  # fmt: skip
    client = Client(cluster, set_as_default=False)
    client.register_plugin(_WorkerSetup())
    return Cluster(client, cluster, server)


def _prepare() -> None:
    """Set dask up for runs, and silence its loggers."""
    for name in ("distributed", "tornado", "asyncio", "bokeh"):
        for logger in (name, *(n for n in logging.root.manager.loggerDict if n.startswith(name))):
            logging.getLogger(logger).setLevel(logging.CRITICAL)
    dask.config.set(_SETTINGS)


def compare(client: Client, requirements: Requirements, timeout: float) -> None:
    """Refuse workers that differ from the requirements, all in one message.

    Workers that end meanwhile are left out.

    Raises EngineError if a worker differs, or does not answer in time.
    """
    versions = _ask_workers(client, requirements, timeout)
    present = client.nthreads()
    workers: dict[str, list[str]] = {}
    for worker, there in sorted(versions.items()):
        if isinstance(there, OSError) and worker not in present:
            continue
        if isinstance(there, BaseException):
            here = requirements.here[DISTRIBUTION]
            words = f"no fpbench that says what it has (here {here}): {there!r}"
        else:
            words = "; ".join(list_mismatches(requirements.here, there))
        if words:
            workers.setdefault(words, []).append(worker)
    if workers:
        each = (f"worker {', '.join(where)} has {words}" for words, where in workers.items())
        raise EngineError(
            "; ".join(each) + "; install the same there, or let it pass with --allow-mismatch"
        )
