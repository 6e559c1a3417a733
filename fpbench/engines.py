"""Where steps are executed: engines, which the runner hands one step after another.

A result stays where the engine keeps it; the runner holds only a handle, and gives it back with
the steps that need it.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from fpbench.alone import POSSIBLE, ForkServer, execute_alone, runs_alone
from fpbench.errors import InputError
from fpbench.execution import execute
from fpbench.home import DataHome
from fpbench.limits import NO_LIMITS, Limits
from fpbench.processes import ONE_THREAD, start_worker
from fpbench.steps import Result, Step

ENGINES = {
    "inline": "in this process, one step after another",
    "loky": "in worker processes of this machine",
    "dask": "in the workers of a dask cluster, on this machine or on many",
}


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
            if alone or runs_alone(step, self._limits, isolated=False):
                result = execute_alone(step, given, self._limits, self._server.address(sure=alone))
            else:
                result = execute(step, given)
            future.set_result(result)
        except Exception as error:  # a future carries whatever was raised
            future.set_exception(error)
        return future

    def close(self, *, now: bool) -> None:
        """End the process that others are forked from."""
        self._server.close()


class LokyEngine(Engine):
    """Worker processes; those that die are replaced when the next step is submitted."""

    def __init__(self, jobs: int, home: DataHome, limits: Limits = NO_LIMITS) -> None:
        super().__init__(home, limits)
        self._jobs = jobs
        self._server = ForkServer()
        self._pool = self._new()

    @property
    def at_once(self) -> int:
        """Twice as many steps as workers, so that none waits for the next to be sent."""
        return 2 * self._jobs

    def submit(
        self, step: Step, parents: tuple[Any, ...], *, final: bool = False, alone: bool = False
    ) -> Future[Result]:
        """Hand it to a worker."""
        given = self._given(step, parents)
        if (alone and POSSIBLE) or runs_alone(step, self._limits, isolated=True):
            where = self._server.address(sure=alone)
            call: tuple[Any, ...] = (execute_alone, step, given, self._limits, where)
        else:
            call = (execute, step, given)
        try:
            future: Future[Result] = self._pool.submit(*call)
        except BrokenProcessPool:
            self._pool = self._new()
            future = self._pool.submit(*call)
        return future

    def close(self, *, now: bool) -> None:
        """End the workers; at once if what they do is not wanted any more."""
        try:
            self._pool.shutdown(wait=True, kill_workers=now)
        finally:
            self._server.close()

    def _new(self) -> Any:
        from loky import ProcessPoolExecutor

        return ProcessPoolExecutor(
            max_workers=self._jobs, env=ONE_THREAD, initializer=start_worker,
            initargs=(os.getpid(),),
        )  # fmt: skip


__all__ = ["ENGINES", "Engine", "EngineError", "InlineEngine", "LokyEngine"]
