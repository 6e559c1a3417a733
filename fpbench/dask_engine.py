"""Steps in the workers of a dask cluster. Results stay there, and move between workers.

The coordinator hears of each step how long it took and whether it failed, and of the last ones
what they measured. Data is loaded on the coordinator, so that workers need none of its files.
"""

from __future__ import annotations

import itertools
import logging
import pickle
import threading
import time
import uuid
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any, NamedTuple

from distributed import Client, KilledWorker, LocalCluster
from distributed import Future as Remote

from fpbench import dask_cluster
from fpbench.alone import POSSIBLE, ForkServer, apart, runs_alone
from fpbench.dask_worker import UnfitWorkerError, do, note_of, unpack
from fpbench.engines import Engine, EngineError, InlineEngine
from fpbench.execution import LostError
from fpbench.fitness import Needs
from fpbench.home import DataHome
from fpbench.limits import Limits
from fpbench.placing import Load, Places
from fpbench.steps import Failure, Result, Step
from fpbench.warming import modules_of, warm

_LOG = logging.getLogger("fpbench.dask")
_MOST_REFUSALS = 3
"""So many unfit workers are met with a step before it fails."""
_AT_ONCE = 8
"""So many steps for each thread are known, to choose from."""
_LOOK_AGAIN = 2.0
"""Seconds after which the workers are counted again."""
_LAST_WORDS = 10.0
"""Seconds in which a cluster of ours is closed."""


class _Kept(NamedTuple):
    """A result that workers keep."""

    remote: Remote
    places: set[str]
    """Workers that have made it or were sent it, as far as is known here."""


class _Order(NamedTuple):
    """A step that waits for a worker."""

    answer: Future[Result]
    step: Step
    parents: tuple[_Kept, ...]
    final: bool
    alone: bool
    refusals: int = 0
    """How many unfit workers it has been sent to."""


class DaskEngine(Engine):
    """The workers of a cluster, as long as it has any.

    Parameters
    ----------
    client
        Of the cluster's scheduler.
    home, limits
        As of any engine.
    needs
        What workers must have; None if that is not to be compared.
    modules
        What workers may import while data is loaded.
    cluster, server
        The cluster if it is ours, to be ended with the engine, and what forks its one-use
        processes; workers of other clusters each have a server of their own.
    """

    def __init__(
        self,
        client: Client,
        home: DataHome,
        limits: Limits,
        needs: Needs | None,
        modules: tuple[str, ...] = (),
        cluster: LocalCluster | None = None,
        server: ForkServer | None = None,
    ) -> None:
        super().__init__(home, limits)
        self._client, self._cluster, self._server = client, cluster, server
        self._modules = modules
        self._warming: list[Remote] = []
        self._needs = pickle.dumps(needs)
        self._loader = InlineEngine(home, limits)
        self._token = f"fpbench-{uuid.uuid4().hex[:12]}"
        self._notes: dict[str, bytes] = {}
        self._numbers = itertools.count()
        self._unfit: set[str] = set()
        self._places, self._looked, self._threads = Places(), 0.0, 0
        self._waiting: deque[_Order] = deque()
        self._sent = 0
        self._lock = threading.RLock()
        client.subscribe_topic(self._token, self._hear)

    @property
    def at_once(self) -> int:
        """More steps than threads: what waits for one worker must not keep others from working."""
        if time.monotonic() - self._looked > _LOOK_AGAIN:
            threads = self._client.nthreads()
            self._places.set_workers(threads)
            self._threads = sum(threads.values())
            self._looked = time.monotonic()
        return max(_AT_ONCE * self._threads, 1)

    def submit(
        self, step: Step, parents: tuple[Any, ...], *, final: bool = False, alone: bool = False
    ) -> Future[Result]:
        """Hand it to the cluster; data is loaded here."""
        if step.action == "load":
            return self._load(step, alone)
        answer: Future[Result] = Future()
        self._waiting.append(_Order(answer, step, parents, final, alone))
        self._send_waiting()
        return answer

    def close(self, *, now: bool) -> None:
        """Leave the cluster; end it if it is ours."""
        self._loader.close(now=now)
        if self._cluster is not None and now:
            for nanny in self._cluster.workers.values():
                dask_cluster.kill(nanny)
        for closed in (self._client, self._cluster):
            if closed is not None:
                try:
                    closed.close(timeout=_LAST_WORDS)
                except Exception:  # a cluster that is dying says many things
                    _LOG.debug("closing", exc_info=True)
        if self._server is not None:
            self._server.close()

    def _load(self, step: Step, alone: bool) -> Future[Result]:
        """Load here; the table travels inside a task, so that no worker's death loses it."""
        self._warming = [
            self._task(self._new_key("warm"), warm, self._modules, workers=[worker])
            for worker in self._client.nthreads()
        ]
        done = self._loader.submit(step, (), alone=alone)
        if done.exception() is not None or isinstance(done.result().value, Failure):
            return done
        content = pickle.dumps(done.result().value, protocol=5)
        remote = self._task(self._new_key("load"), unpack, content)
        answer: Future[Result] = Future()
        answer.set_result(Result(_Kept(remote, set()), done.result().seconds))
        return answer

    def _retry(self, lost: list[Remote]) -> None:
        """`Client.retry`, which cannot do it if what is lost rests on what was let go."""
        scheduler, keys = self._client.scheduler, [remote.key for remote in lost]
        for key in self._client.sync(scheduler.retry, keys=keys, client=self._client.id):
            if key in self._client.futures:
                self._client.futures[key].retry()

    def _new_key(self, kind: str) -> str:
        """Dask learns by the first word how long tasks of a kind take, and shares them out so."""
        return f"{kind.replace('-', '_')}-{self._token}-{next(self._numbers)}"

    def _task(self, key: str, function: Any, *arguments: Any, **options: Any) -> Remote:
        return self._client.submit(function, *arguments, key=key, pure=False, **options)

    def _send_waiting(self) -> None:
        """Send what waits to workers that are free; without any that is known, to whoever comes."""
        with self._lock:
            while self._waiting:
                order = self._waiting[0]
                near = [kept.places for kept in order.parents]
                load = self._places.take(order.step.name, near, self._unfit)
                if load is None and self._sent:
                    return
                self._waiting.popleft()
                self._sent += 1
                try:
                    self._send(order, load)
                except Exception as error:  # a future carries whatever was raised
                    self._sent -= 1
                    order.answer.set_exception(error)

    def _send(self, order: _Order, load: Load | None) -> None:
        lost = [kept.remote for kept in order.parents if kept.remote.status == "error"]
        if lost:  # workers died with them; they are tried again
            self._retry(lost)
        options: dict[str, Any] = {}
        places = set()
        if load is not None:  # should it die, any other will do
            options = {"workers": [load.worker], "allow_other_workers": True}
            places.add(load.worker)
            for kept in order.parents:
                kept.places.add(load.worker)
        key = self._new_key(":".join(order.step.name))
        address = None
        if self._server is not None and (
            (order.alone and POSSIBLE) or runs_alone(order.step, self._limits, isolated=True)
        ):
            address = self._server.address(sure=order.alone)
        how = (order.step, self._limits, self._token, key, order.final, order.alone, address)
        given = [kept.remote for kept in order.parents]
        remote = self._task(key, do, pickle.dumps(how), self._needs, *given, **options)

        def done(remote: Remote) -> None:
            result: Result | Exception
            try:
                result = self._result(_Kept(remote, places), final=order.final)
            except Exception as error:
                result = error
            with self._lock:
                self._sent -= 1
                if load is not None:
                    seconds = result.seconds if isinstance(result, Result) else None
                    self._places.give_back(load, seconds)
                self._answer(order, result)
            self._send_waiting()

        remote.add_done_callback(done)

    def _answer(self, order: _Order, result: Result | Exception) -> None:
        """Say what came of a step, unless it is tried again."""
        if isinstance(result, Result):
            order.answer.set_result(result)
        elif not isinstance(result, UnfitWorkerError):
            order.answer.set_exception(result)
        else:
            where, message = result.args
            self._unfit.add(where)
            if order.refusals < _MOST_REFUSALS:
                self._waiting.appendleft(order._replace(refusals=order.refusals + 1))
            else:
                failure = Failure(f"{order.step}: {message}", "", False)
                order.answer.set_result(Result(failure, 0.0))

    def _hear(self, event: tuple[float, tuple[str, bytes]]) -> None:
        """What a worker says of a step, before its result is known to be there."""
        key, note = event[1]
        self._notes[key] = note

    def _result(self, kept: _Kept, *, final: bool) -> Result:
        remote = kept.remote
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
            note = self._task(self._new_key("note"), note_of, remote, final).result()
        told: Result = pickle.loads(note)
        if final or isinstance(told.value, Failure):
            return told
        return Result(kept, told.seconds)


def connect(
    scheduler: str | None,
    jobs: int,
    timeout: float,
    home: DataHome,
    limits: Limits,
    needs: Needs | None,
    steps: Iterable[Step],
) -> DaskEngine:
    """An engine on the cluster of a scheduler, or on one that is started here.

    Raises
    ------
    EngineError
        If the scheduler does not answer in time, has no workers, or one that lacks what is needed.
    """
    dask_cluster.prepare()
    alone, others = apart(steps, limits)
    modules, cluster, server = modules_of(others), None, None
    if scheduler:
        client = dask_cluster.join(scheduler, timeout)
    else:
        server = ForkServer(modules_of(alone))
        if alone:
            server.address()
        cluster = dask_cluster.start(jobs)
        client = Client(cluster, set_as_default=False)
    engine = DaskEngine(client, home, limits, needs, modules, cluster, server)
    try:
        try:
            client.wait_for_workers(1, timeout=timeout)
        except TimeoutError as error:
            where = scheduler or "the local cluster"
            said = f"scheduler {where}: has no workers after {timeout:g} s (--connect-timeout)"
            raise EngineError(said) from error
        if cluster is not None:
            client.register_plugin(dask_cluster.OfOurs())
        if needs is not None:
            dask_cluster.compare(client, needs)
    except BaseException:
        engine.close(now=True)
        raise
    return engine


__all__ = ["DaskEngine", "connect"]
