"""Having a dask cluster: one that is started here, or one whose scheduler runs already."""

from __future__ import annotations

import logging
import signal
import threading
import warnings
from concurrent.futures import CancelledError, Future
from typing import Any, NamedTuple

import dask
from distributed import Client, LocalCluster, Nanny, WorkerPlugin
from distributed import Future as Remote
from distributed.comm import get_address_host_port, parse_address
from distributed.comm.registry import get_backend

from fpbench.execution.engines.fitness import Needs, found, unlike
from fpbench.execution.engines.local import EngineError
from fpbench.execution.isolation.families import MARK
from fpbench.execution.isolation.one_use import ForkServer
from fpbench.execution.isolation.processes import ONE_THREAD

_GRACE = 1.0
"""Seconds more than its timeout that a connection may take to give up by itself."""
_LAST_WORDS = 10.0
"""Seconds in which a cluster of ours is closed."""
_IN_TOUCH = ("running", "connecting")
_LOG = logging.getLogger("fpbench.dask")
_SETTINGS = {
    # The tables of a run travel with the first task that needs them.
    "distributed.admin.large-graph-warning-threshold": "1TB",
    # A step that was there when a worker died is tried again alone, so few need to die.
    "distributed.scheduler.allowed-failures": 1,
    # For its dashboard, dask would look at the stack of each step a hundred times a second, and
    # wake each process fifty times a second.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
    # A cluster of ours gives up whoever looks after a worker that is gone for so long. On a busy
    # machine, a new process in its place may take longer to start than the usual 15 seconds.
    "distributed.deploy.lost-worker-timeout": "1h",
}


class Cluster(NamedTuple):
    """A cluster, and what of it ends with us."""

    client: Client
    ours: LocalCluster | None = None
    server: ForkServer | None = None
    """What forks one-use processes for all workers of ours; others have a server each."""

    def threads(self) -> dict[str, int]:
        """How many threads each worker has.

        Raises
        ------
        EngineError
            If the scheduler is lost.
        """
        try:
            return dict(self.client.nthreads())
        except Exception as error:
            raise self.explain(error) from error

    def explain(self, error: Exception) -> Exception:
        """What an error in speaking to the scheduler means: that it is lost, or what it says."""
        if isinstance(error, OSError | CancelledError) or self.client.status not in _IN_TOUCH:
            return EngineError("the scheduler was lost; what is done is kept")
        return error

    def retry(self, lost: list[Remote]) -> None:
        """`Client.retry`, which cannot do it if what is lost rests on what was let go."""
        client, keys = self.client, [remote.key for remote in lost]
        for key in client.sync(client.scheduler.retry, keys=keys, client=client.id):
            if key in client.futures:
                client.futures[key].retry()

    def close(self, *, now: bool) -> None:
        """Leave it; end it if it is ours, without waiting for what still runs if it is now."""
        if self.ours is not None and now:
            for nanny in self.ours.workers.values():
                _kill(nanny)
        for closed in (self.client, self.ours):
            if closed is not None:
                try:
                    closed.close(timeout=_LAST_WORDS)
                except Exception:  # a cluster that is dying says many things
                    _LOG.debug("closing", exc_info=True)
        if self.server is not None:
            self.server.close()


class _OfOurs(WorkerPlugin):  # type: ignore[misc]
    """Sets up each worker of a cluster of ours: a terminal's Ctrl-C is the coordinator's."""

    name = "fpbench"

    def setup(self, worker: Any) -> None:
        """Called in the worker."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def join(scheduler: str, timeout: float) -> Cluster:
    """The cluster of a scheduler, which must answer in time and have a worker.

    Raises
    ------
    EngineError
        If it does not, or has none, or if there cannot be one at such an address.
    """
    _prepare()
    try:
        scheme, place = parse_address(scheduler)
        if not place:
            raise ValueError("it is empty")
        get_backend(scheme)
        get_address_host_port(scheduler)
    except (ValueError, TypeError) as error:
        said = f"scheduler {scheduler}: not an address such as tcp://HOST:PORT: {error}"
        raise EngineError(said) from error
    made: Future[Client] = Future()

    def make() -> None:
        client = Client.__new__(Client)
        try:
            client.__init__(scheduler, timeout=timeout, set_as_default=False)
            made.set_result(client)
        except Exception as error:
            client.status = "closed"  # or it would try again to be, when it is forgotten
            made.set_exception(error)

    # A server that accepts and says nothing is waited for without end, whatever the timeout.
    threading.Thread(target=make, daemon=True).start()
    try:
        cluster = Cluster(made.result(timeout + _GRACE))
    except (OSError, TimeoutError) as error:
        said = f"scheduler {scheduler}: does not answer within {timeout:g} s (--connect-timeout)"
        raise EngineError(said) from error
    except Exception as error:  # what a stranger says may be read as anything
        said = " ".join(f"{type(error).__name__}: {error}".split())
        said = f"scheduler {scheduler}: does not answer as a dask scheduler of this version: {said}"
        raise EngineError(said) from error
    try:
        cluster.client.wait_for_workers(1, timeout=timeout)
    except BaseException as error:
        cluster.close(now=True)
        if not isinstance(error, TimeoutError):
            raise
        said = f"scheduler {scheduler}: has no workers after {timeout:g} s (--connect-timeout)"
        raise EngineError(said) from error
    return cluster


def start(jobs: int, modules: tuple[str, ...]) -> Cluster:
    """A cluster on this machine: processes of one thread each, which keep results in memory.

    Parameters
    ----------
    jobs
        How many processes.
    modules
        What their one-use processes need, if any have been seen to be needed.
    """
    _prepare()
    server = ForkServer(modules)
    if modules:
        server.address()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of ports that are taken
        cluster = LocalCluster(
            n_workers=jobs, threads_per_worker=1, processes=True, dashboard_address=None,
            memory_limit=0, silence_logs=logging.CRITICAL, host="127.0.0.1",
            env=ONE_THREAD | {MARK: server.mark},
        )  # fmt: skip
    client = Client(cluster, set_as_default=False)
    client.register_plugin(_OfOurs())
    return Cluster(client, cluster, server)


def _prepare() -> None:
    """Set dask up for runs, and keep it from talking into a terminal."""
    for name in ("distributed", "tornado", "asyncio", "bokeh"):
        for logger in (name, *(n for n in logging.root.manager.loggerDict if n.startswith(name))):
            logging.getLogger(logger).setLevel(logging.CRITICAL)
    dask.config.set(_SETTINGS)


def compare(client: Client, needs: Needs) -> None:
    """Refuse workers that have not what is needed, all in one message."""
    there = client.run(found, needs.uses, on_error="return")
    wrong: dict[str, list[str]] = {}
    for where, has in sorted(there.items()):
        if isinstance(has, BaseException):
            said = f"no fpbench that says what it has (here {needs.here['fpbench']}): {has!r}"
        else:
            said = "; ".join(unlike(needs.here, has))
        if said:
            wrong.setdefault(said, []).append(where)
    if wrong:
        each = (f"worker {', '.join(where)} has {said}" for said, where in wrong.items())
        raise EngineError(
            "; ".join(each) + "; install the same there, or let it pass with --allow-mismatch"
        )


def _kill(nanny: Any) -> None:
    """Kill a worker at once, whatever it does."""
    process = nanny.process.process if isinstance(nanny, Nanny) and nanny.process else None
    if process is not None and process.pid is not None:
        try:
            process._process.kill()
        except (OSError, ValueError):
            return
