"""Steps in the workers of a dask cluster. Results stay there, and move between workers.

The coordinator hears of each step how long it took and whether it failed, and of the last ones
what they measured. Data is loaded on the coordinator, so that workers need none of its files.
"""

from __future__ import annotations

import itertools
import logging
import pickle
import signal
import threading
import time
import uuid
import warnings
from concurrent.futures import Future
from typing import Any

import dask
from distributed import (
    Client,
    KilledWorker,
    LocalCluster,
    Nanny,
    WorkerPlugin,
)
from distributed import Future as Remote
from distributed.comm import get_address_host_port, parse_address
from distributed.comm.registry import get_backend

from fpbench.dask_worker import UnfitWorkerError, do, note_of, unpack
from fpbench.engines import Engine, EngineError, InlineEngine
from fpbench.execution import LostError
from fpbench.fitness import Needs, found, unlike
from fpbench.home import DataHome
from fpbench.limits import Limits
from fpbench.processes import ONE_THREAD
from fpbench.steps import Failure, Result, Step

_MOST_REFUSALS = 3
"""So many unfit workers are met with a step before it fails."""
_LOOK_AGAIN = 2.0
"""Seconds after which the workers are counted again."""
_GRACE = 1.0
"""Seconds more than its timeout that a connection may take to give up by itself."""
_LAST_WORDS = 10.0
"""Seconds in which a cluster of ours is closed."""
_SETTINGS = {
    # The tables of a run travel with the first task that needs them.
    "distributed.admin.large-graph-warning-threshold": "1TB",
    # A step that was there when a worker died is tried again alone, so few need to die.
    "distributed.scheduler.allowed-failures": 1,
    # Dask would look at the stack of each step a hundred times a second, for its dashboard.
    "distributed.worker.profile.enabled": False,
}


class DaskEngine(Engine):
    """The workers of a cluster, as long as it has any."""

    def __init__(
        self,
        client: Client,
        cluster: LocalCluster | None,
        home: DataHome,
        limits: Limits,
        needs: Needs | None,
    ) -> None:
        super().__init__(home, limits)
        self._client, self._cluster = client, cluster
        self._needs = pickle.dumps(needs)
        self._loader = InlineEngine(home, limits)
        self._token = f"fpbench-{uuid.uuid4().hex[:12]}"
        self._notes: dict[str, bytes] = {}
        self._numbers = itertools.count()
        self._unfit: set[str] = set()
        self._workers, self._looked = 0, 0.0
        client.subscribe_topic(self._token, self._hear)

    @property
    def at_once(self) -> int:
        """Twice as many steps as threads, so that none waits for the next to be sent."""
        if time.monotonic() - self._looked > _LOOK_AGAIN:
            self._workers = sum(self._client.nthreads().values())
            self._looked = time.monotonic()
        return max(2 * self._workers, 1)

    def submit(
        self, step: Step, parents: tuple[Any, ...], *, final: bool = False, alone: bool = False
    ) -> Future[Result]:
        """Hand it to the cluster; data is loaded here."""
        if step.action == "load":
            return self._load(step, alone)
        lost = [parent for parent in parents if parent.status == "error"]
        if lost:  # workers died with them; they are tried again
            self._retry(lost)
        answer: Future[Result] = Future()
        self._send(answer, step, parents, (final, alone), 0)
        return answer

    def close(self, *, now: bool) -> None:
        """Leave the cluster; end it if it is ours."""
        self._loader.close(now=now)
        if self._cluster is not None and now:
            for nanny in self._cluster.workers.values():
                _kill(nanny)
        for closed in (self._client, self._cluster):
            if closed is not None:
                try:
                    closed.close(timeout=_LAST_WORDS)
                except Exception:  # a cluster that is dying says many things
                    _LOG.debug("closing", exc_info=True)

    def _load(self, step: Step, alone: bool) -> Future[Result]:
        """Load here; the table travels inside a task, so that no worker's death loses it."""
        done = self._loader.submit(step, (), alone=alone)
        if done.exception() is not None or isinstance(done.result().value, Failure):
            return done
        content = pickle.dumps(done.result().value, protocol=5)
        remote = self._task(self._new_key(), unpack, content)
        answer: Future[Result] = Future()
        answer.set_result(Result(remote, done.result().seconds))
        return answer

    def _retry(self, lost: list[Remote]) -> None:
        """`Client.retry`, which cannot do it if what is lost rests on what was let go."""
        scheduler, keys = self._client.scheduler, [remote.key for remote in lost]
        for key in self._client.sync(scheduler.retry, keys=keys, client=self._client.id):
            if key in self._client.futures:
                self._client.futures[key].retry()

    def _new_key(self) -> str:
        return f"{self._token}-{next(self._numbers)}"

    def _task(self, key: str, function: Any, *arguments: Any, **options: Any) -> Remote:
        return self._client.submit(function, *arguments, key=key, pure=False, **options)

    def _send(
        self,
        answer: Future[Result],
        step: Step,
        parents: tuple[Remote, ...],
        how: tuple[bool, bool],
        refusals: int,
    ) -> None:
        options: dict[str, Any] = {}
        if self._unfit:
            fit = [where for where in self._client.nthreads() if where not in self._unfit]
            if fit:  # others may come, and say themselves whether they are fit
                options = {"workers": fit, "allow_other_workers": True}
        key = self._new_key()
        order = pickle.dumps((step, self._limits, self._token, key, *how))
        remote = self._task(key, do, order, self._needs, *parents, **options)

        def done(remote: Remote) -> None:
            try:
                answer.set_result(self._result(remote, final=how[0]))
            except UnfitWorkerError as error:
                where, message = error.args
                self._unfit.add(where)
                if refusals < _MOST_REFUSALS:
                    self._send(answer, step, parents, how, refusals + 1)
                else:
                    answer.set_result(Result(Failure(f"{step}: {message}", "", False), 0.0))
            except Exception as error:
                answer.set_exception(error)

        remote.add_done_callback(done)

    def _hear(self, event: tuple[float, tuple[str, bytes]]) -> None:
        """What a worker says of a step, before its result is known to be there."""
        key, note = event[1]
        self._notes[key] = note

    def _result(self, remote: Remote, *, final: bool) -> Result:
        if remote.status == "error":
            error = remote.exception()
            if isinstance(error, KilledWorker):
                raise LostError(str(error))
            assert error is not None
            raise error
        if remote.status != "finished":
            raise EngineError("the scheduler was lost; what is done is kept")
        note = self._notes.pop(remote.key, None)
        if note is None:  # said to a connection that broke: ask
            note = self._task(self._new_key(), note_of, remote, final).result()
        told: Result = pickle.loads(note)
        if final or isinstance(told.value, Failure):
            return told
        return Result(remote, told.seconds)


class _OfOurs(WorkerPlugin):  # type: ignore[misc]
    """Sets up each worker of a cluster of ours: a terminal's Ctrl-C is the coordinator's."""

    name = "fpbench"

    def setup(self, worker: Any) -> None:
        """Called in the worker."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)


_LOG = logging.getLogger("fpbench.dask")


def connect(
    scheduler: str | None,
    jobs: int,
    timeout: float,
    home: DataHome,
    limits: Limits,
    needs: Needs | None,
) -> DaskEngine:
    """An engine on the cluster of a scheduler, or on one that is started here.

    Raises
    ------
    EngineError
        If the scheduler does not answer in time, has no workers, or one that lacks what is needed.
    """
    for name in ("distributed", "tornado", "asyncio", "bokeh"):
        for logger in (name, *(n for n in logging.root.manager.loggerDict if n.startswith(name))):
            logging.getLogger(logger).setLevel(logging.CRITICAL)
    dask.config.set(_SETTINGS)
    where = scheduler or "the local cluster"
    cluster = None if scheduler else _start(jobs)
    client = _client(scheduler, timeout) if scheduler else Client(cluster, set_as_default=False)
    engine = DaskEngine(client, cluster, home, limits, needs)
    try:
        try:
            client.wait_for_workers(1, timeout=timeout)
        except TimeoutError as error:
            said = f"scheduler {where}: has no workers after {timeout:g} s (--connect-timeout)"
            raise EngineError(said) from error
        if cluster is not None:
            client.register_plugin(_OfOurs())
        if needs is not None:
            _compare(client, needs)
    except BaseException:
        engine.close(now=True)
        raise
    return engine


def _client(scheduler: str, timeout: float) -> Client:
    """A client of a scheduler that must answer in time."""
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
        return made.result(timeout + _GRACE)
    except (OSError, TimeoutError) as error:
        said = f"scheduler {scheduler}: does not answer within {timeout:g} s (--connect-timeout)"
        raise EngineError(said) from error
    except Exception as error:  # what a stranger says may be read as anything
        said = " ".join(f"{type(error).__name__}: {error}".split())
        said = f"scheduler {scheduler}: does not answer as a dask scheduler of this version: {said}"
        raise EngineError(said) from error


def _start(jobs: int) -> LocalCluster:
    """A cluster on this machine: processes of one thread each, which keep results in memory."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of ports that are taken
        return LocalCluster(
            n_workers=jobs, threads_per_worker=1, processes=True, dashboard_address=None,
            memory_limit=0, silence_logs=logging.CRITICAL, env=ONE_THREAD, host="127.0.0.1",
        )  # fmt: skip


def _compare(client: Client, needs: Needs) -> None:
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


__all__ = ["DaskEngine", "connect"]
