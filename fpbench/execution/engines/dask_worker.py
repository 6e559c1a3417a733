"""The task of a worker of a dask cluster: one step, with its parents' results."""

from __future__ import annotations

import hashlib
import os
import pickle
import threading
from typing import NamedTuple

from dask.sizeof import sizeof
from distributed import get_worker

from fpbench.base.threads import ONE_THREAD
from fpbench.execution.engines.requirements import Requirements, list_mismatches, read_versions
from fpbench.execution.engines.warming import list_modules
from fpbench.execution.isolation.one_use import ForkServer, execute_alone, needs_process
from fpbench.execution.work.execute import execute_in_worker, write_row
from fpbench.matrix.limits import Limits
from fpbench.matrix.step import Failure, Result, Step

Note = bytes | float
"""The bytes of a result that is final or a failure; the seconds of any other."""
_CHECKED: dict[bytes, str] = {}
"""Mismatches of this worker with the requirements of a run, by their checksum."""
_SERVERS: list[ForkServer] = []
"""The one server of this worker, once there is one."""
_LOCK = threading.Lock()


class WorkerMismatchError(Exception):
    """A worker of other versions than the run requires; it refuses the run's steps."""


class Parcel:
    """A result: its value where it was made, and bytes on the way to another worker.

    Dask unpickles the inputs of a task before the task begins; a worker that lacks a plugin would
    fail then again and again, and never report it. So a result is unpickled only after the worker
    has compared its versions.
    """

    def __init__(self, result: Result | None, content: bytes | None = None) -> None:
        self._result, self._content = result, content

    def unpack(self) -> Result:
        """The result."""
        if self._result is None:
            assert self._content is not None
            self._result = pickle.loads(self._content)
        return self._result

    def __reduce__(self) -> tuple[type[Parcel], tuple[None, bytes]]:
        import cloudpickle

        if self._content is None:
            self._content = cloudpickle.dumps(self._result)
        return Parcel, (None, self._content)

    def __sizeof__(self) -> int:
        """Its size, as dask counts it."""
        return int(sizeof(self._result)) + len(self._content or b"")


class DaskOrder(NamedTuple):
    """An order for a worker."""

    step: Step
    limits: Limits
    final: bool
    alone: bool
    """Whether the step needs a one-use process, because it may have killed a worker."""
    address: str | None
    """Address of the server that starts one-use processes; None: this worker's own server."""
    topic: str
    key: str
    """The place and name under which the coordinator expects the note."""


def carry_out(content: bytes, requirements: bytes, *parents: Parcel) -> Parcel:
    """Do a step in a worker, and tell the coordinator.

    Raises WorkerMismatchError with the worker's address and the mismatches.
    """
    worker = get_worker()
    if mismatches := _compare_versions(requirements):
        raise WorkerMismatchError(worker.address, f"worker {worker.address} has {mismatches}")
    order: DaskOrder = pickle.loads(content)
    step, values = order.step, tuple(parent.unpack().value for parent in parents)
    if needs_process(step, order.limits, alone=order.alone):
        address = order.address or _start_server(step, sure=order.alone)
        result = execute_alone(step, values, order.limits, address)
    else:
        result = execute_in_worker(step, values)
    parcel = Parcel(result)
    worker.log_event(order.topic, (order.key, write_note(parcel, step, order.final)))
    return parcel


def _start_server(step: Step, *, sure: bool) -> str:
    """The address of this worker's own server, on a cluster without a server of the coordinator."""
    with _LOCK:
        if not _SERVERS:
            _SERVERS.append(ForkServer(list_modules([step])))
        return _SERVERS[0].address(sure=sure)


def write_note(parcel: Parcel, step: Step, final: bool) -> Note:
    """The coordinator's note on a result; see `Note`."""
    result = parcel.unpack()
    if final or isinstance(result.value, Failure):
        return write_row(step, result)
    return result.seconds


def _compare_versions(requirements: bytes) -> str:
    """The mismatches of this worker with the coordinator; compared once for each run."""
    digest = hashlib.sha256(requirements).digest()
    if digest not in _CHECKED:
        _use_one_thread()
        required: Requirements | None = pickle.loads(requirements)
        versions = read_versions(required.uses) if required else {}
        _CHECKED[digest] = "; ".join(list_mismatches(required.here, versions)) if required else ""
    return _CHECKED[digest]


def _use_one_thread() -> None:
    """Limit native thread pools of this worker, for good."""
    from threadpoolctl import threadpool_limits

    os.environ.update(ONE_THREAD)
    threadpool_limits(1)
