"""Where steps are executed: engines, which the runner hands one step after another.

A result stays where the engine keeps it; the runner holds only a handle, and gives it back with
the steps that need it.
"""

from __future__ import annotations

import logging
import os
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from fpbench.base.errors import InputError
from fpbench.data.data_files import DataHome
from fpbench.execution.engines.local_worker import Lacking, Order, carry_out, tickets
from fpbench.execution.engines.warming import modules_of, warm
from fpbench.execution.isolation.confining import isolated_user
from fpbench.execution.isolation.families import MARK
from fpbench.execution.isolation.one_use import (
    POSSIBLE,
    ForkServer,
    execute_alone,
    runs_alone,
    split_by_process,
)
from fpbench.execution.isolation.processes import ONE_THREAD, start_worker
from fpbench.execution.wire.answers import ROW, read_result
from fpbench.execution.work.execute import SpoiledError, execute, watch
from fpbench.execution.work.process_watch import Changes, Watch
from fpbench.matrix.limits import NO_LIMITS, Limits
from fpbench.matrix.step import Result, Step

ENGINES = {
    "inline": "in this process, one step after another",
    "loky": "in worker processes of this machine",
    "dask": "in the workers of a dask cluster, on this machine or on many",
}
_MEMORY = {"LOKY_MAX_MEMORY_LEAK_SIZE": str(2**30)}
"""Bytes by which a worker may grow before loky replaces it: it keeps results on purpose. Loky of
before 3.7 does not hear it."""
_SHARE = 0.02
"""Of the time of steps that run in this process, what is spent on looking at what they change."""
_OF_THE_USER = ("signal handlers", "standard input and output", "sys.settrace", "threads", "timers")
"""What others than steps set in the process of a user."""
_LOG = logging.getLogger("fpbench")


class EngineError(InputError):
    """An engine that cannot be had as asked, or that was lost."""


class Engine(ABC):
    """Executes steps.

    Parameters
    ----------
    home
        Where data sets are loaded from.
    limits
        What a step may take.
    """

    def __init__(self, home: DataHome, limits: Limits = NO_LIMITS) -> None:
        self._home, self._limits = home, limits

    @property
    @abstractmethod
    def at_once(self) -> int:
        """How many steps are worth submitting at a time."""

    @abstractmethod
    def submit(
        self, step: Step, parents: tuple[Any, ...], *, final: bool = False, alone: bool = False
    ) -> Future[Result]:
        """Execute a step.

        Parameters
        ----------
        step
            What to do.
        parents
            Values of its parents' results, as this engine gave them.
        final
            Whether the value itself is wanted, and not a handle.
        alone
            Whether a process of its own is wanted: it may have killed a worker.

        Returns
        -------
        Future
            The `Result`; raises `LostError` or `BrokenProcessPool` if its process is gone.
        """

    @abstractmethod
    def close(self, *, now: bool) -> None:
        """End; if it is to be now, without waiting for what still runs."""

    def _given(self, step: Step, parents: tuple[Any, ...]) -> tuple[Any, ...]:
        """Data is all that comes from outside the graph, and is handed over like a parent."""
        return (self._home,) if step.action == "load" else parents


class InlineEngine(Engine):
    """Runs what is submitted at once, in this process; in one of its own, if it has limits."""

    def __init__(self, home: DataHome, limits: Limits = NO_LIMITS) -> None:
        super().__init__(home, limits)
        self._server = ForkServer()
        self._watch: Watch | None = None
        self._seen: dict[str, None] = {}
        """Steps since this process was looked at."""
        self._looked = self._due = 0.0

    @property
    def at_once(self) -> int:
        """One."""
        return 1

    def submit(
        self, step: Step, parents: tuple[Any, ...], *, final: bool = False, alone: bool = False
    ) -> Future[Result]:
        """Run it and return a finished future."""
        future: Future[Result] = Future()
        given = self._given(step, parents)
        try:
            isolated = isolated_user() is not None  # which no step of this process could be
            if alone or runs_alone(step, self._limits, isolated=isolated):
                result = execute_alone(step, given, self._limits, self._server.address(sure=alone))
            else:
                if self._watch is None:
                    self._watch, self._looked = watch(), time.perf_counter()
                result = execute(step, given)
                if step.spec is not None:
                    self._seen[str(step)] = None
                    self._look()
            future.set_result(result)
        except Exception as error:  # a future carries whatever was raised
            future.set_exception(error)
        return future

    def close(self, *, now: bool) -> None:
        """End the process that others are forked from."""
        self._server.close()
        if self._seen and not now:
            self._look(due=True)

    def _look(self, *, due: bool = False) -> None:
        """Find out, now and then, if steps have changed this process, which cannot be replaced.

        Raises
        ------
        EngineError
            If functions are others now, so that nothing is worth being run here.
        """
        begun = time.perf_counter()
        if self._watch is None or not (due or begun >= self._due):
            return
        changes = self._watch.look()
        ended = time.perf_counter()
        self._due, since = ended + (ended - begun) / _SHARE, begun - self._looked
        self._looked, steps, self._seen = ended, " or ".join(self._seen), {}
        if changes.replaced:
            raise EngineError(
                f"{steps}: changed {Changes(changes.replaced).words} of this process, in which all "
                f"steps run; what was measured in the last {since:.3f} s may be wrong. Run it anew "
                "in workers, with --jobs 2 --fresh, or with [limits]"
            )
        if settings := [name for name in changes.settings if name not in _OF_THE_USER]:
            _LOG.warning("%s: changed %s of this process, in which all steps run",
                         steps, ", ".join(settings))  # fmt: skip


class LokyEngine(Engine):
    """Worker processes; those that die are replaced when the next step is submitted.

    Parameters
    ----------
    jobs
        How many workers.
    home, limits
        As of any engine.
    steps
        What will be submitted, as far as it is known: processes are started and import what it
        needs while data is loaded.
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
        self._modules, self._server = modules_of(others), ForkServer(modules_of(alone))
        self._spoiled = False
        """Whether a worker has been changed by a step."""
        self._spoilers: set[str] = set()
        """Components that have changed a worker; they get no other that is shared."""
        self._pool = self._new()
        if alone:
            self._server.address()

    @property
    def at_once(self) -> int:
        """Twice as many steps as workers, so that none waits for the next to be sent."""
        return 2 * self._jobs

    def submit(
        self, step: Step, parents: tuple[Any, ...], *, final: bool = False, alone: bool = False
    ) -> Future[Result]:
        """Hand it to a worker."""
        given = self._given(step, parents)
        if self._spoiled:
            self._leave_pool()
        address = None
        alone = alone or (step.spec is not None and step.spec.use in self._spoilers)
        if (alone and POSSIBLE) or runs_alone(step, self._limits, isolated=True):
            address = self._server.address(sure=alone)
        answer: Future[Result] = Future()
        order = Order(step, given, final, self._limits, address)
        try:
            self._send(answer, order)
        except BrokenProcessPool:
            self._pool = self._new()
            self._send(answer, order)
        if step.action == "load":  # one loads; the others have nothing else to do yet
            for _ in range(self._jobs - 1):
                self._pool.submit(warm, self._modules)
        return answer

    def _send(
        self, answer: Future[Result], order: Order, lacking: frozenset[str] = frozenset()
    ) -> None:
        from loky.process_executor import ShutdownExecutorError

        pool = self._pool

        def done(future: Future[bytes | Result | Lacking]) -> None:
            try:
                try:
                    said = future.result()
                except ShutdownExecutorError:
                    if pool is self._pool:  # this is the end
                        raise
                    said = Lacking(frozenset())  # its worker was one of those that were left
                if isinstance(said, Lacking):
                    self._send(answer, order, lacking | said.keys)
                elif isinstance(said, bytes):
                    answer.set_result(read_result(ROW, said))
                else:
                    answer.set_result(said)
            except SpoiledError as error:
                self._spoiled = self._spoiled or pool is self._pool
                self._spoilers |= {error.component} - {""}
                answer.set_exception(error)
            except Exception as error:  # a future carries whatever was raised
                answer.set_exception(error)

        sent = order._replace(given=tickets(order.given, lacking))
        try:
            pool.submit(carry_out, sent).add_done_callback(done)
        except ShutdownExecutorError:
            if pool is self._pool:
                raise
            self._send(answer, order, lacking)

    def close(self, *, now: bool) -> None:
        """End the workers; at once if what they do is not wanted any more."""
        try:
            self._pool.shutdown(wait=True, kill_workers=now)
        finally:
            self._server.close()

    def _leave_pool(self) -> None:
        """Take other workers; what these have not finished is done again by those."""
        left, self._pool, self._spoiled = self._pool, self._new(), False
        left.shutdown(wait=False, kill_workers=True)

    def _new(self) -> Any:
        from loky import ProcessPoolExecutor

        # It restarts such a worker by itself, and nothing is lost by it.
        warnings.filterwarnings("ignore", "A worker was restarted while some jobs", UserWarning)
        return ProcessPoolExecutor(
            max_workers=self._jobs, env=ONE_THREAD | _MEMORY | {MARK: self._server.mark},
            initializer=start_worker, initargs=(os.getpid(),),
        )  # fmt: skip
