"""Steps in the workers of a dask cluster. Results stay there, and move between workers.

The coordinator hears of each step how long it took and whether it failed, and of the last ones
what they measured. Data is loaded on the coordinator, so that workers need none of its files.
"""

from __future__ import annotations

import itertools
import pickle
import threading
import time
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError, Future
from itertools import islice, takewhile
from typing import Any, NamedTuple

from distributed import Future as Remote
from distributed import KilledWorker

from fpbench.data.data_files import DataHome
from fpbench.execution.engines.dask_cluster import Cluster
from fpbench.execution.engines.dask_watch import Lookout
from fpbench.execution.engines.dask_worker import Job, UnfitWorkerError, check, do, note_of, unpack
from fpbench.execution.engines.fitness import Needs
from fpbench.execution.engines.local import Engine, InlineEngine
from fpbench.execution.engines.placing import Durations, Places
from fpbench.execution.engines.warming import warm
from fpbench.execution.isolation.one_use import POSSIBLE, runs_alone
from fpbench.execution.wire.answers import ROW, read_result
from fpbench.execution.work.execute import LostError, SpoiledError
from fpbench.matrix.limits import Limits
from fpbench.matrix.step import Failure, Result, Step

Note = Sequence[bytes | float]
"""What a worker says of the results of a task."""
_MOST_REFUSALS = 3
"""So many unfit workers are met with a step before it fails."""
_AT_ONCE = 8
"""So many steps for each thread are known, to choose from."""
_LOOK_AGAIN = 2.0
"""Seconds after which the workers are counted again."""


class _Kept(NamedTuple):
    """A result that workers keep: one of those of a task."""

    remote: Remote
    number: int
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
    cluster
        The cluster; it is left, or ended if it is ours, with the engine.
    home, limits
        As of any engine.
    needs
        What workers must have; None if that is not to be compared.
    modules
        What workers may import while data is loaded.
    """

    def __init__(
        self,
        cluster: Cluster,
        home: DataHome,
        limits: Limits,
        needs: Needs | None,
        modules: tuple[str, ...],
    ) -> None:
        super().__init__(home, limits)
        self._cluster, self._client, self._modules = cluster, cluster.client, modules
        self._trials: list[Remote] = []
        self._needs = pickle.dumps(needs)
        self._loader = InlineEngine(home, limits)
        self._token = f"fpbench-{uuid.uuid4().hex[:12]}"
        self._notes: dict[str, Note] = {}
        self._numbers = itertools.count()
        self._fit: dict[str, bool] = {}
        self._places, self._durations = Places(), Durations()
        self._looked = 0.0
        self._waiting: deque[_Order] = deque()
        self._sent = 0
        self._lock = threading.RLock()
        self._spoilers: set[str] = set()
        """Components that have changed a worker; they get no other that is shared."""
        self._client.subscribe_topic(self._token, self._hear)
        self._lookout = Lookout(cluster, self._leave, self._send_waiting)

    @property
    def at_once(self) -> int:
        """More steps than threads: what waits for one worker must not keep others from working."""
        if time.monotonic() - self._looked > _LOOK_AGAIN:
            self._look()
        return max(_AT_ONCE * self._places.threads, 1)

    def _look(self) -> None:
        """Find out which workers there are; those that have come since the start are tried."""
        with self._lock:
            there = self._cluster.threads()
            if not self._looked:  # these have been compared, or it was not wanted
                self._fit = dict.fromkeys(there, True)
            for worker in there.keys() - self._fit.keys():
                self._try(worker)
            self._places.set_workers({w: count for w, count in there.items() if self._fit[w]})
            self._looked = time.monotonic()

    def _try(self, worker: str) -> None:
        """Find out if a worker is fit, without having to wait for it."""

        def done(remote: Remote) -> None:
            self._fit[worker] = remote.status == "finished"

        self._fit[worker] = False
        remote = self._task(self._new_key("check"), check, self._needs, workers=[worker])
        self._trials.append(remote)
        remote.add_done_callback(done)

    def submit(
        self, step: Step, parents: tuple[Any, ...], *, final: bool = False, alone: bool = False
    ) -> Future[Result]:
        """Hand it to the cluster; data is loaded here."""
        if self._lookout.ident is None:  # before, workers are busy with being compared
            self._lookout.start()
        if step.action == "load":
            return self._load(step, alone)
        answer: Future[Result] = Future()
        alone = alone or (step.spec is not None and step.spec.use in self._spoilers)
        self._waiting.append(_Order(answer, step, parents, final, alone))
        self._send_waiting()
        return answer

    def close(self, *, now: bool) -> None:
        """Leave the cluster; end it if it is ours."""
        self._lookout.end()
        self._loader.close(now=now)
        self._cluster.close(now=now)

    def _load(self, step: Step, alone: bool) -> Future[Result]:
        """Load here; the table travels inside a task, so that no worker's death loses it."""
        self._trials += [
            self._task(self._new_key("warm"), warm, self._modules, workers=[worker])
            for worker in self._cluster.threads()
        ]
        done = self._loader.submit(step, (), alone=alone)
        if done.exception() is not None or isinstance(done.result().value, Failure):
            return done
        content = pickle.dumps((done.result()._replace(seconds=0.0),))
        remote = self._task(self._new_key("load"), unpack, content)
        answer: Future[Result] = Future()
        answer.set_result(Result(_Kept(remote, 0, set()), done.result().seconds))
        return answer

    def _new_key(self, kind: str) -> str:
        """Dask learns by the first word how long tasks of a kind take, and shares them out so."""
        return f"{kind.replace('-', '_')}-{self._token}-{next(self._numbers)}"

    def _task(self, key: str, function: Any, *arguments: Any, **options: Any) -> Remote:
        return self._client.submit(function, *arguments, key=key, pure=False, **options)

    def _send_waiting(self) -> None:
        """Send what waits to workers that are free; without any that is known, to whoever comes."""
        with self._lock:
            while self._waiting:
                orders = self._next()
                worker = self._places.take(k.places for order in orders for k in order.parents)
                if worker is None and (self._sent or self._lookout.replacing):
                    return
                for _ in orders:
                    self._waiting.popleft()
                self._sent += 1
                try:
                    self._send(orders, worker)
                except Exception as error:  # a future carries whatever was raised
                    self._back(orders, worker, self._cluster.explain(error))

    def _next(self) -> list[_Order]:
        """Of what waits, the first, and what is short enough to be done with it."""
        if self._waiting[0].alone:
            return [self._waiting[0]]
        others = takewhile(lambda order: not order.alone, self._waiting)
        number = self._durations.together(order.step.name for order in others)
        return list(islice(self._waiting, number))

    def _send(self, orders: list[_Order], worker: str | None) -> None:
        parents = {kept.remote.key: kept for order in orders for kept in order.parents}
        given = [kept.remote for kept in parents.values()]
        lost = [remote for remote in given if remote.status == "error"]
        if lost:  # workers died with them; they are tried again
            self._cluster.retry(lost)
        options: dict[str, Any] = {}
        places = set()
        if worker is not None:  # should it die, any other will do
            options = {"workers": [worker], "allow_other_workers": True}
            places.add(worker)
            for kept in parents.values():
                kept.places.add(worker)
        key = self._new_key(":".join(orders[0].step.name))
        numbers = {name: number for number, name in enumerate(parents)}
        jobs = [self._job(order, numbers) for order in orders]
        content = pickle.dumps((jobs, self._limits, self._token, key))
        remote = self._task(key, do, content, self._needs, *given, **options)

        def done(remote: Remote) -> None:
            came: list[Result] | Exception
            try:
                came = self._results(remote, orders, places)
            except Exception as error:
                came = error if remote.status == "error" else self._cluster.explain(error)
            with self._lock:
                self._back(orders, worker, came)
            self._send_waiting()

        remote.add_done_callback(done)

    def _job(self, order: _Order, numbers: Mapping[str, int]) -> Job:
        """A step as its worker is told of it."""
        address, server = None, self._cluster.server
        alone = (order.alone and POSSIBLE) or runs_alone(order.step, self._limits, isolated=True)
        if server is not None and alone:
            address = server.address(sure=order.alone)
        slots = tuple((numbers[kept.remote.key], kept.number) for kept in order.parents)
        return Job(order.step, slots, order.final, order.alone, address)

    def _back(
        self, orders: list[_Order], worker: str | None, came: list[Result] | Exception
    ) -> None:
        """Say what came of steps, unless they are tried again."""
        self._sent -= 1
        if worker is not None:
            self._places.give_back(worker)
        if isinstance(came, list):
            for order, result in zip(orders, came, strict=True):
                self._durations.learn(order.step.name, result.seconds)
                order.answer.set_result(result)
        elif isinstance(came, UnfitWorkerError):
            where, message = came.args
            self._leave(where)
            for order in reversed(orders):
                self._refused(order, message)
        else:
            if isinstance(came, SpoiledError):
                self._spoilers |= {came.component} - {""}
                self._leave(came.where)
                self._lookout.replace(came.where)
            for order in orders:
                order.answer.set_exception(came)

    def _leave(self, worker: str) -> None:
        """Send a worker nothing more."""
        with self._lock:
            self._fit[worker] = False
            self._places.drop(worker)

    def _refused(self, order: _Order, message: str) -> None:
        """Try a step elsewhere, if it has not been tried too often."""
        if order.refusals < _MOST_REFUSALS:
            self._waiting.appendleft(order._replace(refusals=order.refusals + 1))
        else:
            order.answer.set_result(Result(Failure(f"{order.step}: {message}", "", False), 0.0))

    def _hear(self, event: tuple[float, tuple[str, Note]]) -> None:
        """What a worker says of a step, before its result is known to be there."""
        key, note = event[1]
        self._notes[key] = note

    def _results(self, remote: Remote, orders: list[_Order], places: set[str]) -> list[Result]:
        """What a task gave: values where these are wanted, otherwise where they are kept."""
        if remote.status == "error":
            error = remote.exception()
            if isinstance(error, KilledWorker):
                raise LostError(str(error))
            assert error is not None
            raise error
        if remote.status != "finished":
            raise CancelledError
        note = self._notes.pop(remote.key, None)
        if note is None:  # said to a connection that broke: ask
            steps = [(order.step, order.final) for order in orders]
            note = self._task(self._new_key("note"), note_of, remote, steps).result()
        return [
            Result(_Kept(remote, number, places), said)
            if isinstance(said, float)
            else read_result(ROW, said)
            for number, (said, order) in enumerate(zip(note, orders, strict=True))
        ]
