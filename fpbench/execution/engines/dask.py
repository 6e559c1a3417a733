"""Steps in the workers of a dask cluster. Results stay there, and move between workers.

Dask's scheduler chooses the worker of a step. The coordinator learns how long a step took, whether
it failed, and what the last steps measured. It loads the data, so workers need none of its files.
"""

from __future__ import annotations

import itertools
import pickle
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from functools import partial
from typing import Any, NamedTuple

from distributed import Future as Remote
from distributed import KilledWorker

from fpbench.data.data_files import DataHome
from fpbench.execution.engines.dask_cluster import Cluster
from fpbench.execution.engines.dask_watch import Lookout
from fpbench.execution.engines.dask_worker import (
    DaskOrder,
    Note,
    Parcel,
    WorkerMismatchError,
    carry_out,
    write_note,
)
from fpbench.execution.engines.local import Engine, InlineEngine
from fpbench.execution.engines.requirements import Requirements
from fpbench.execution.engines.warming import warm
from fpbench.execution.isolation.one_use import needs_process
from fpbench.execution.wire.answers import ROW, read_result
from fpbench.execution.work.execute import LostError
from fpbench.matrix.limits import Limits
from fpbench.matrix.step import Failure, Result, Step

_MOST_REFUSALS = 3
"""Number of workers whose refusal, because of other versions, makes a step fail."""
_AT_ONCE = 8
"""Steps submitted per thread, so that no worker waits for the next step."""
_COUNT_AGAIN = 2.0
"""Seconds after which the workers are counted again."""


class _Task(NamedTuple):
    """A step, and the future of its result."""

    answer: Future[Result]
    step: Step
    parents: tuple[Remote, ...]
    final: bool
    alone: bool
    refusals: int = 0
    """Number of workers that refused the step."""


class DaskEngine(Engine):
    """The workers of a cluster, as long as it has any.

    `cluster`: the cluster; closed with the engine, and ended if it is ours. `requirements`: what
    workers must have; None to compare nothing. `modules`: what workers may import while data is
    loaded.
    """

    def __init__(
        self,
        cluster: Cluster,
        home: DataHome,
        limits: Limits,
        requirements: Requirements | None,
        modules: tuple[str, ...],
    ) -> None:
        super().__init__(home, limits)
        self._cluster, self._client, self._modules = cluster, cluster.client, modules
        self._requirements = pickle.dumps(requirements)
        self._loader = InlineEngine(home, limits)
        self._preloads: list[Remote] = []
        self._topic = f"fpbench-{uuid.uuid4().hex[:12]}"
        self._notes: dict[str, Note] = {}
        self._numbers = itertools.count()
        self._threads: dict[str, int] = {}
        self._counted = 0.0
        self._excluded: set[str] = set()
        """Workers that get no more steps: silent, or of other versions."""
        self._lock = threading.RLock()
        self._client.subscribe_topic(self._topic, self._receive_note)
        self._lookout = Lookout(cluster, self._exclude)

    @property
    def at_once(self) -> int:
        """More steps than threads, so that no worker waits."""
        if time.monotonic() - self._counted > _COUNT_AGAIN:
            self._threads, self._counted = self._cluster.threads(), time.monotonic()
        return max(_AT_ONCE * sum(self._threads[worker] for worker in self._usable()), 1)

    def _usable(self) -> list[str]:
        return [worker for worker in self._threads if worker not in self._excluded]

    def submit(
        self, step: Step, parents: tuple[Any, ...], *, final: bool = False, alone: bool = False
    ) -> Future[Result]:
        """Hand the step to the cluster; data is loaded here."""
        if self._lookout.ident is None:  # before, workers are busy with the comparison of versions
            self._lookout.start()
        if step.action == "load":
            return self._load(step, alone)
        answer: Future[Result] = Future()
        self._send(_Task(answer, step, parents, final, alone))
        return answer

    def close(self, *, now: bool) -> None:
        """Leave the cluster; end it if this process started it."""
        self._lookout.end()
        self._loader.close(now=now)
        self._cluster.close(now=now)

    def _load(self, step: Step, alone: bool) -> Future[Result]:
        """Load here; the table travels inside a task, so that no worker's death loses it."""
        self._preloads += [
            self._submit_task(self._new_key("warm"), warm, self._modules, workers=[worker])
            for worker in self._cluster.threads()
        ]
        alone = needs_process(step, self._limits, alone=alone)
        loaded = self._loader.submit(step, (), alone=alone)
        if loaded.exception() is not None or isinstance(loaded.result().value, Failure):
            return loaded
        seconds = loaded.result().seconds
        content = pickle.dumps(loaded.result()._replace(seconds=0.0))
        answer: Future[Result] = Future()
        remote = self._submit_task(self._new_key("load"), Parcel, None, content)
        answer.set_result(Result(remote, seconds))
        return answer

    def _new_key(self, kind: str) -> str:
        """A key of a task; dask learns durations of kinds of tasks by the key's first word."""
        return f"{kind.replace('-', '_')}-{self._topic}-{next(self._numbers)}"

    def _submit_task(
        self, key: str, function: Callable[..., Any], *arguments: Any, **options: Any
    ) -> Remote:
        priority = -next(self._numbers)
        return self._client.submit(
            function, *arguments, key=key, pure=False, priority=priority, **options
        )

    def _send(self, task: _Task) -> None:
        """Send a step to the cluster."""
        with self._lock:
            usable = self._usable()
            options: dict[str, Any] = {}
            if self._excluded and usable:  # if these are gone, any other worker may do the step
                options = {"workers": usable, "allow_other_workers": True}
            try:
                # Workers died with these results, which other steps need.
                lost = [parent for parent in task.parents if parent.status == "error"]
                if lost:
                    self._cluster.retry(lost)
                key = self._new_key(":".join(task.step.name))
                order = pickle.dumps(self._make_order(task, key))
                remote = self._submit_task(
                    key, carry_out, order, self._requirements, *task.parents, **options
                )
            except Exception as error:  # a future carries whatever was raised
                task.answer.set_exception(self._cluster.explain(error))
                return
        remote.add_done_callback(partial(self._finish, task))

    def _make_order(self, task: _Task, key: str) -> DaskOrder:
        address, server = None, self._cluster.server
        alone = needs_process(task.step, self._limits, alone=task.alone)
        if server is not None and alone:
            address = server.address(sure=task.alone)
        return DaskOrder(task.step, self._limits, task.final, task.alone, address, self._topic, key)

    def _finish(self, task: _Task, remote: Remote) -> None:
        """Set the result of a step, or send the step to another worker."""
        try:
            result = self._read_result(task, remote)
        except WorkerMismatchError as error:
            worker, message = error.args
            self._exclude(worker)
            if task.refusals < _MOST_REFUSALS:
                self._send(task._replace(refusals=task.refusals + 1))
            else:
                failure = Failure(f"{task.step}: {message}", "", False)
                task.answer.set_result(Result(failure, 0.0))
        except Exception as error:
            raised = remote.status == "error"
            task.answer.set_exception(error if raised else self._cluster.explain(error))
        else:
            task.answer.set_result(result)

    def _exclude(self, worker: str) -> None:
        """Send no more steps to a worker."""
        with self._lock:
            self._excluded.add(worker)

    def _receive_note(self, event: tuple[float, tuple[str, Note]]) -> None:
        """Keep a worker's note on a step until the step's result arrives."""
        key, note = event[1]
        self._notes[key] = note

    def _read_result(self, task: _Task, remote: Remote) -> Result:
        """The result of a step: its value if it is final or failed, else where the value is."""
        if remote.status == "error":
            error = remote.exception()
            raise LostError(str(error)) if isinstance(error, KilledWorker) else error
        if remote.status == "cancelled":
            raise CancelledError
        if remote.status != "finished":  # its worker is gone
            raise LostError("its result was lost with its worker")
        note = self._notes.pop(remote.key, None)
        if note is None:  # the worker sent it to a connection that broke
            key = self._new_key("note")
            note = self._submit_task(key, write_note, remote, task.step, task.final).result()
        return Result(remote, note) if isinstance(note, float) else read_result(ROW, note)
