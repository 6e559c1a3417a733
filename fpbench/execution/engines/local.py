"""The engines of this machine: this process, and worker processes."""

from __future__ import annotations

import os
import warnings
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from fpbench.base.threads import ONE_THREAD
from fpbench.execution.engines.engine import Engine, EngineSetup
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
from fpbench.matrix.step import Result, Step

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
