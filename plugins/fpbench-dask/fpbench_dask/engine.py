"""Steps in the workers of a dask cluster. Results stay there, and move between workers.

Dask's scheduler chooses the worker of a step. The coordinator learns how long a step took, whether
it failed, and what the last steps measured. It loads the data, so workers need none of its files.
"""

from __future__ import annotations

import itertools
import pickle
import time
import uuid
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from distributed import Future as Remote
from distributed import KilledWorker

from fpbench.execution import (
    Engine,
    EngineError,
    EngineSetup,
    InlineEngine,
    LostError,
    StepTask,
)
from fpbench_dask import _cluster
from fpbench_dask._worker import Parcel, UnfitError, do_step, write_answer

_AT_ONCE = 8
"""Steps submitted per thread, so that no worker waits for the next step."""
_COUNT_AGAIN = 2.0
"""Seconds after which the workers are counted again."""
_LAST_WORDS = 10.0
"""Seconds within which a cluster that was started here closes."""
_IN_TOUCH = ("running", "connecting")


class _Sent(NamedTuple):
    """A step, and the future of its result."""

    answer: Future[Any]
    task: StepTask
    parents: tuple[Remote, ...]


class DaskEngine(Engine):
    """The workers of a cluster that has a scheduler, or of one that is started on this machine."""

    summary = "in the workers of a dask cluster, on this machine or on many"

    def __init__(self, setup: EngineSetup) -> None:
        super().__init__(setup)
        self._loader = InlineEngine(setup)
        self._name, self._numbers = uuid.uuid4().hex[:12], itertools.count()
        self._threads: dict[str, int] = {}
        self._counted = 0.0
        self._unfit: set[str] = set()
        """Workers of other versions, which get no more steps."""
        _cluster.prepare()
        self._ours = None
        if setup.scheduler:
            self._client = _cluster.join(setup.scheduler, setup.connect_timeout)
        else:
            self._ours, self._client = _cluster.start(setup.jobs)
        try:
            self._check = _cluster.compare(self._client, setup)
        except BaseException:
            self.close(now=True)
            raise

    @property
    def at_once(self) -> int:
        """More steps than threads, so that no worker waits."""
        if time.monotonic() - self._counted > _COUNT_AGAIN:
            try:
                self._threads, self._counted = self._client.nthreads(), time.monotonic()
            except Exception as error:
                raise self._explain(error) from error
        return max(_AT_ONCE * sum(self._threads[worker] for worker in self._list_fit()), 1)

    def submit(
        self, step: Any, parents: tuple[Any, ...], *, final: bool = False, alone: bool = False
    ) -> Future[Any]:
        """Hand the step to the cluster; data is loaded here."""
        answer: Future[Any] = Future()
        if step.action == "load":
            loaded = self._loader.submit(step, (), alone=alone or step.third_party)
            if loaded.exception() is not None or loaded.result().failed:
                return loaded
            # The table travels inside a task, so that no worker's death loses it.
            content = pickle.dumps(loaded.result())
            remote = self._call("load", Parcel, None, content)
            answer.set_result(loaded.result()._replace(value=remote))
        else:
            self._send(_Sent(answer, StepTask(step, self.setup.limits, final, alone), parents))
        return answer

    def close(self, *, now: bool) -> None:
        """Leave the cluster; end it if this process started it."""
        self._loader.close(now=now)
        if now and self._ours is not None:
            _cluster.kill(self._ours)
        for closed in (self._client, self._ours):
            if closed is not None:
                with suppress(Exception):  # a dying cluster raises many things
                    closed.close(timeout=_LAST_WORDS)

    def _list_fit(self) -> list[str]:
        return [worker for worker in self._threads if worker not in self._unfit]

    def _call(
        self, name: str, function: Callable[..., Any], *arguments: Any, **options: Any
    ) -> Remote:
        """Call a function in a worker; dask learns durations of tasks by the name."""
        number = next(self._numbers)
        key = f"{name.replace('-', '_')}-{self._name}-{number}"
        return self._client.submit(
            function, *arguments, key=key, pure=False, priority=-number, **options
        )

    def _send(self, sent: _Sent) -> None:
        """Send a step to the cluster."""
        fit = self._list_fit()
        # If these are gone, any other worker may do the step, or refuse it.
        options = {"workers": fit, "allow_other_workers": True} if self._unfit and fit else {}
        order = pickle.dumps(sent.task)
        try:
            # Workers died with these results, which other steps need.
            if lost := [parent for parent in sent.parents if parent.status == "error"]:
                with suppress(KeyError):  # they depend on results that are released here
                    self._client.retry(lost)
            name = ":".join(sent.task.step.name)
            remote = self._call(name, do_step, order, self._check, *sent.parents, **options)
            told = self._call("answer", write_answer, order, remote)
        except Exception as error:  # a future carries whatever was raised
            sent.answer.set_exception(self._explain(error))
            return
        told.add_done_callback(partial(self._finish, sent, remote))

    def _finish(self, sent: _Sent, remote: Remote, told: Remote) -> None:
        """Set the result of a step, or send the step to another worker."""
        try:
            sent.answer.set_result(sent.task.read(self._fetch(told), remote))
        except UnfitError as error:
            worker, differences = error.args
            self._unfit.add(worker)
            if self._list_fit():
                self._send(sent)
            else:
                words = f"no other worker is left than {worker}, which has {differences}"
                sent.answer.set_exception(EngineError(f"{words}; what is done is kept"))
        except Exception as error:
            sent.answer.set_exception(error)

    def _fetch(self, told: Remote) -> bytes:
        """What a worker tells of a step; LostError if its worker died with it."""
        if told.status == "error":
            error = told.exception()
            raise LostError(str(error)) if isinstance(error, KilledWorker) else error
        try:
            if told.status == "cancelled":
                raise CancelledError
            if told.status != "finished":
                raise LostError("its result was lost with its worker")
            answer: bytes = told.result()
        except Exception as error:
            raise self._explain(error) from error
        return answer

    def _explain(self, error: Exception) -> Exception:
        """An `EngineError` if the scheduler is lost; otherwise the error itself."""
        if isinstance(error, OSError | CancelledError) or self._client.status not in _IN_TOUCH:
            return EngineError("the scheduler was lost; what is done is kept")
        return error
