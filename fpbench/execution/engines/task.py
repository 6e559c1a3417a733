"""What an engine of a package hands to its workers: in any process, on any machine."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import Any

from fpbench.base.threads import ONE_THREAD
from fpbench.execution.answers import ROW, read_result
from fpbench.execution.engines.engine import EngineSetup
from fpbench.execution.engines.requirements import (
    Requirements,
    list_mismatches,
    list_modules,
    read_versions,
    warm,
)
from fpbench.execution.isolation.one_use import (
    ForkServer,
    execute_alone,
    needs_process,
    split_by_process,
)
from fpbench.execution.work.execute import execute_in_worker, write_row
from fpbench.matrix.limits import Limits
from fpbench.matrix.step import Result, Step

_LOCK = threading.Lock()


@dataclass(frozen=True)
class StepTask:
    """A step, for a worker in any process: a pickle of it is all that the worker needs.

    Parameters
    ----------
    step
        The step; not one that loads data.
    limits
        Its limits on time and memory.
    final
        Whether the coordinator needs the value, not only a handle.
    alone
        Whether it gets a process of its own, because it may have killed a worker.
    """

    step: Step
    limits: Limits
    final: bool
    alone: bool

    def do(self, parents: tuple[Any, ...]) -> Result:
        """Do the step in this process, or in a one-use process that this one starts.

        `parents`: the values of its parents' results. Raises LostError if no process can start.
        """
        if needs_process(self.step, self.limits, alone=self.alone):
            with _LOCK:
                address = _get_server(list_modules([self.step])).address(sure=self.alone)
            return execute_alone(self.step, parents, self.limits, address)
        return execute_in_worker(self.step, parents)

    def write(self, result: Result) -> bytes:
        """What the coordinator needs: a final or failed result, or the seconds of another."""
        whole = self.final or result.failed
        return write_row(self.step, result if whole else result._replace(value={}))

    def read(self, content: bytes, handle: Any) -> Result:
        """The result of `write`'s bytes; its value is the handle unless it is final or failed."""
        result = read_result(ROW, content)
        whole = self.final or result.failed
        return result if whole else result._replace(value=handle)


@dataclass(frozen=True)
class WorkerCheck:
    """What a worker does before its first step: a pickle of it is all that the worker needs.

    Attributes
    ----------
    requirements
        What the worker must have; None to compare nothing.
    modules, alone
        Modules to import in the worker and in its one-use processes; None if no step needs such a
        process.
    """

    requirements: Requirements | None
    modules: tuple[str, ...]
    alone: tuple[str, ...] | None

    @classmethod
    def from_setup(cls, setup: EngineSetup) -> WorkerCheck:
        """The check of an engine's workers."""
        alone, others = split_by_process(setup.steps, setup.limits)
        modules = list_modules(alone) if alone else None
        return cls(setup.requirements, list_modules(others), modules)

    def run(self) -> str:
        """Import what steps need; in which versions this process differs, or an empty text."""
        from threadpoolctl import threadpool_limits

        if self.requirements is not None:
            here = read_versions(self.requirements.uses)
            if mismatches := list_mismatches(self.requirements.here, here):
                return "; ".join(mismatches)
        warm(self.modules)
        os.environ.update(ONE_THREAD)
        threadpool_limits(1)  # for good: its other cores are other workers'
        if self.alone is not None:
            with _LOCK:
                _get_server(self.alone).address()
        return ""


_SERVERS: list[ForkServer] = []
"""The server of one-use processes of this worker, once there is one; it ends with the worker."""


def _get_server(modules: tuple[str, ...]) -> ForkServer:
    if not _SERVERS:
        _SERVERS.append(ForkServer(modules))
    return _SERVERS[0]
