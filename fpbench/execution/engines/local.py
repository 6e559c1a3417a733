"""Where steps are executed: engines, to which the runner submits one step after another.

A result stays where the engine keeps it; the runner holds a handle, and passes it on with the steps
that need it.
"""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from fpbench.base.errors import InputError
from fpbench.base.threads import ONE_THREAD
from fpbench.data.data_files import DataHome
from fpbench.execution.engines.local_worker import LocalOrder, MissingResults, carry_out, make_refs
from fpbench.execution.engines.warming import list_modules, warm
from fpbench.execution.isolation.families import start_worker
from fpbench.execution.isolation.one_use import (
    ForkServer,
    execute_alone,
    needs_process,
    split_by_process,
)
from fpbench.execution.wire.answers import ROW, read_result
from fpbench.execution.work.execute import execute
from fpbench.matrix.limits import NO_LIMITS, Limits
from fpbench.matrix.step import Result, Step

ENGINES = {
    "inline": "in this process, one step after another",
    "loky": "in worker processes of this machine",
    "dask": "in the workers of a dask cluster, on this machine or on many",
}
_MEMORY = {"LOKY_MAX_MEMORY_LEAK_SIZE": str(2**30)}
"""Bytes by which a worker may grow before loky replaces it: it caches results on purpose. Loky
before 3.7 ignores it."""


class EngineError(InputError):
    """An engine that cannot be started as requested, or that was lost."""


class Engine(ABC):
    """Executes steps."""

    def __init__(self, home: DataHome, limits: Limits = NO_LIMITS) -> None:
        self._home, self._limits = home, limits

    @property
    @abstractmethod
    def at_once(self) -> int:
        """Number of steps that are worth submitting at a time."""

    @abstractmethod
    def submit(
        self, step: Step, parents: tuple[Any, ...], *, final: bool = False, alone: bool = False
    ) -> Future[Result]:
        """Execute a step.

        `parents`: values of its parents' results, as this engine returned them. `final`: whether
        the result has the value itself, and not a handle. `alone`: whether the step gets a process
        of its own, because it may have killed a worker.

        Returns: a future of the `Result`; it raises `LostError` or `BrokenProcessPool` if the
        step's process is gone.
        """

    @abstractmethod
    def close(self, *, now: bool) -> None:
        """End the engine; with `now`, without waiting for running steps."""

    def _inputs(self, step: Step, parents: tuple[Any, ...]) -> tuple[Any, ...]:
        """The parents; for a step that loads data, the data home, which is outside the graph."""
        return (self._home,) if step.action == "load" else parents


class InlineEngine(Engine):
    """Runs a step when it is submitted: in this process, or in a process of its own if it must."""

    def __init__(self, home: DataHome, limits: Limits = NO_LIMITS) -> None:
        super().__init__(home, limits)
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
        inputs = self._inputs(step, parents)
        try:
            if step.spec is not None and (alone or self._limits):
                result = execute_alone(step, inputs, self._limits, self._server.address(sure=alone))
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

    `steps`: the steps of the plan: while data is loaded, processes start and import what they need.
    """

    def __init__(
        self,
        jobs: int,
        home: DataHome,
        limits: Limits = NO_LIMITS,
        steps: Iterable[Step] = (),
    ) -> None:
        super().__init__(home, limits)
        self._jobs = jobs
        alone, others = split_by_process(steps, limits)
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
        if needs_process(step, self._limits, alone=alone):
            address = self._server.address(sure=alone)
        answer: Future[Result] = Future()
        order = LocalOrder(step, self._inputs(step, parents), final, self._limits, address)
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
