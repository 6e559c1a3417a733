"""The engines of this machine: this process, and worker processes with caches of results.

A worker caches the results that it made or received, up to a number of bytes. The coordinator holds
each result as bytes, which it never unpickles, and sends a large one only to a worker that reports
it missing.
"""

from __future__ import annotations

import os
import pickle
import warnings
from collections import OrderedDict
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple

from fpbench.base.threads import ONE_THREAD
from fpbench.execution.answers import ROW, read_result
from fpbench.execution.engines.engine import Engine, EngineSetup
from fpbench.execution.engines.requirements import list_modules, warm
from fpbench.execution.isolation.families import start_worker
from fpbench.execution.isolation.one_use import (
    ForkServer,
    execute_alone,
    needs_process,
    split_by_process,
)
from fpbench.execution.work.execute import execute, execute_in_worker, write_row
from fpbench.matrix.limits import Limits
from fpbench.matrix.step import Failure, Result, Step

_MEMORY = {"LOKY_MAX_MEMORY_LEAK_SIZE": str(2**30)}
"""Bytes by which a worker may grow before loky replaces it: it caches results on purpose. Loky
before 3.7 ignores it."""


def _choose_inputs(setup: EngineSetup, step: Step, parents: tuple[Any, ...]) -> tuple[Any, ...]:
    """The parents; for a step that loads data, the data home, which is outside the graph."""
    return (setup.home,) if step.action == "load" else parents


class InlineEngine(Engine):
    """Runs a step when it is submitted: in this process, or in a process of its own if it must.

    Parameters
    ----------
    setup
        What it is started for.
    """

    summary = "in this process, one step after another"
    elsewhere = False

    def __init__(self, setup: EngineSetup) -> None:
        super().__init__(setup)
        self._server = ForkServer()

    @property
    def at_once(self) -> int:
        """One."""
        return 1

    def submit(
        self, step: Step, parents: tuple[Any, ...], *, final: bool = False, alone: bool = False
    ) -> Future[Result]:
        """Run the step and return a finished future."""
        future: Future[Result] = Future()
        limits, inputs = self.setup.limits, _choose_inputs(self.setup, step, parents)
        try:
            if step.spec is not None and (alone or limits):
                result = execute_alone(step, inputs, limits, self._server.address(sure=alone))
            else:
                result = execute(step, inputs)
            future.set_result(result)
        except Exception as error:  # a future carries whatever was raised
            future.set_exception(error)
        return future

    def close(self, *, now: bool) -> None:
        """End the process that forks the others."""
        self._server.close()


class LokyEngine(Engine):
    """Worker processes; those that die are replaced when the next step is submitted.

    While data is loaded, processes start and import what the steps of the plan need.
    """

    summary = "in worker processes of this machine"
    elsewhere = False

    def __init__(self, setup: EngineSetup) -> None:
        super().__init__(setup)
        self._jobs = setup.jobs
        alone, others = split_by_process(setup.steps, setup.limits)
        self._modules, self._server = list_modules(others), ForkServer(list_modules(alone))
        if alone:
            self._server.address()
        self._pool = self._make_pool()

    @property
    def at_once(self) -> int:
        """Twice as many steps as workers, so that no worker waits for its next step."""
        return 2 * self._jobs

    def submit(
        self, step: Step, parents: tuple[Any, ...], *, final: bool = False, alone: bool = False
    ) -> Future[Result]:
        """Hand the step to a worker."""
        address = None
        limits = self.setup.limits
        if needs_process(step, limits, alone=alone):
            address = self._server.address(sure=alone)
        answer: Future[Result] = Future()
        inputs = _choose_inputs(self.setup, step, parents)
        order = LocalOrder(step, inputs, final, limits, address)
        try:
            self._send(answer, order)
        except BrokenProcessPool:
            self._pool = self._make_pool()
            self._send(answer, order)
        if step.action == "load":  # one worker loads; the others have nothing to do yet
            for _ in range(self._jobs - 1):
                self._pool.submit(warm, self._modules)
        return answer

    def _send(
        self, answer: Future[Result], order: LocalOrder, missing: frozenset[str] = frozenset()
    ) -> None:
        def done(future: Future[bytes | Result | MissingResults]) -> None:
            try:
                reply = future.result()
                if isinstance(reply, MissingResults):
                    self._send(answer, order, missing | reply.keys)
                elif isinstance(reply, bytes):
                    answer.set_result(read_result(ROW, reply))
                else:
                    answer.set_result(reply)
            except Exception as error:  # a future carries whatever was raised
                answer.set_exception(error)

        sent = order._replace(parents=make_refs(order.parents, missing))
        self._pool.submit(carry_out, sent).add_done_callback(done)

    def close(self, *, now: bool) -> None:
        """End the workers; with `now`, kill them."""
        try:
            self._pool.shutdown(wait=True, kill_workers=now)
        finally:
            self._server.close()

    def _make_pool(self) -> Any:
        from loky import ProcessPoolExecutor

        # Loky restarts such a worker by itself, and nothing is lost.
        warnings.filterwarnings("ignore", "A worker was restarted while some jobs", UserWarning)
        return ProcessPoolExecutor(
            max_workers=self._jobs, env=ONE_THREAD | _MEMORY,
            initializer=start_worker, initargs=(os.getpid(),),
        )  # fmt: skip


SMALL = 16 * 2**10
"""Greatest size in bytes of a result that is always sent."""
_MOST = 256 * 2**20
"""Bytes of pickled results that a worker caches; the least recently used is dropped first."""


class Packed(NamedTuple):
    """A result, as the coordinator holds it."""

    key: str
    """Key of the step that made it."""
    content: bytes


class ResultRef(NamedTuple):
    """A result that the worker may have in its cache."""

    key: str


class MissingResults(NamedTuple):
    """The answer of a worker that lacks results it was sent references to."""

    keys: frozenset[str]


class LocalOrder(NamedTuple):
    """An order for a worker."""

    step: Step
    parents: tuple[Any, ...]
    """The results of its parents: `Packed`, `ResultRef`, or the values themselves."""
    final: bool
    """Whether the coordinator reads the value."""
    limits: Limits
    address: str | None
    """Address of the server of one-use processes, if the step must run in one."""


class ResultCache:
    """Results by key, the most recently used last."""

    def __init__(self, most: int) -> None:
        self._most, self._size = most, 0
        self._entries: OrderedDict[str, tuple[Any, int]] = OrderedDict()

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def __getitem__(self, key: str) -> Any:
        self._entries.move_to_end(key)
        return self._entries[key][0]

    def add(self, key: str, value: Any, size: int) -> None:
        """Cache a value of `size` bytes, unless it is small or larger than the cache."""
        if key in self._entries or not SMALL < size <= self._most:
            return
        self._entries[key] = (value, size)
        self._size += size
        while self._size > self._most:
            self._size -= self._entries.popitem(last=False)[1][1]


_CACHE = ResultCache(_MOST)


def carry_out(order: LocalOrder) -> bytes | Result | MissingResults:
    """Do a step in a worker.

    Returns: the result as bytes of plain data if it is final or a `Failure`, otherwise with its
    value `Packed`; or the results that are missing.
    """
    missing = {p.key for p in order.parents if isinstance(p, ResultRef) and p.key not in _CACHE}
    if missing:
        return MissingResults(frozenset(missing))
    step, values = order.step, tuple(map(_read_parent, order.parents))
    if order.address is None:
        result = execute_in_worker(step, values)
    else:
        result = execute_alone(step, values, order.limits, order.address)
    if order.final or isinstance(result.value, Failure):
        return write_row(step, result)
    import cloudpickle

    content = cloudpickle.dumps(result.value)
    _CACHE.add(step.key, result.value, len(content))
    return Result(Packed(step.key, content), result.seconds)


def _read_parent(parent: Any) -> Any:
    if isinstance(parent, ResultRef):
        return _CACHE[parent.key]
    if not isinstance(parent, Packed):
        return parent
    value = _CACHE[parent.key] if parent.key in _CACHE else pickle.loads(parent.content)
    _CACHE.add(parent.key, value, len(parent.content))
    return value


def make_refs(parents: tuple[Any, ...], missing: frozenset[str] = frozenset()) -> tuple[Any, ...]:
    """The inputs to send to a worker: references instead of large results, except missing ones."""
    return tuple(
        ResultRef(parent.key)
        if isinstance(parent, Packed) and len(parent.content) > SMALL and parent.key not in missing
        else parent
        for parent in parents
    )
