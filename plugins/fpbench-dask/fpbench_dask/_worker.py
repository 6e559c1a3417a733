"""What a worker of a dask cluster does."""

from __future__ import annotations

import pickle
from functools import cache
from typing import Any

import cloudpickle
from dask.sizeof import sizeof
from distributed import get_worker

from fpbench.execution import StepTask


class UnfitError(Exception):
    """A worker of other versions than the run requires: its address, and the differences."""


class Parcel:
    """A result: its value where it was made, and bytes on the way to another worker.

    Dask unpickles the inputs of a task before the task begins; a worker that lacks a plugin would
    fail then again and again, and never report it. So a result is unpickled only after the worker
    has compared its versions.
    """

    def __init__(self, result: Any, content: bytes | None = None) -> None:
        self._result, self._content = result, content

    def unpack(self) -> Any:
        """The result."""
        if self._result is None:
            self._result = pickle.loads(self._content or b"")
        return self._result

    def __reduce__(self) -> tuple[type[Parcel], tuple[None, bytes]]:
        if self._content is None:
            self._content = cloudpickle.dumps(self._result)
        return Parcel, (None, self._content)

    def __sizeof__(self) -> int:
        """Its size, as dask counts it."""
        return int(sizeof(self._result)) + len(self._content or b"")


@cache
def check_worker(check: bytes) -> str:
    """How this worker differs from what a run requires (a pickled `WorkerCheck`), or ""."""
    differences: str = pickle.loads(check).run()
    return differences


def do_step(order: bytes, check: bytes, *parents: Parcel) -> Parcel:
    """Do a step (a pickled `StepTask`); UnfitError if this worker must not."""
    if differences := check_worker(check):
        raise UnfitError(get_worker().address, differences)
    task: StepTask = pickle.loads(order)
    return Parcel(task.do(tuple(parent.unpack().value for parent in parents)))


def write_answer(order: bytes, parcel: Parcel) -> bytes:
    """What the coordinator needs of the result of a step."""
    task: StepTask = pickle.loads(order)
    return task.write(parcel.unpack())
