"""What a worker of a dask cluster does: one step, with what it has of its parents' results."""

from __future__ import annotations

import hashlib
import os
import pickle
import threading

from distributed import get_worker

from fpbench.alone import POSSIBLE, ForkServer, execute_alone, runs_alone
from fpbench.execution import execute
from fpbench.fitness import Needs, found, unlike
from fpbench.processes import ONE_THREAD
from fpbench.steps import Failure, Result, Step
from fpbench.warming import modules_of

_CHECKED: dict[bytes, str] = {}
"""What of a run's needs this worker lacks, by their checksum; empty if nothing."""
_SERVERS: list[ForkServer] = []
"""The one server of this worker, once there is one."""
_LOCK = threading.Lock()


class UnfitWorkerError(Exception):
    """A worker that has not what the run needs, and refuses its steps."""


def do(order: bytes, needs: bytes, *parents: Result) -> Result:
    """Do a step in a worker, and tell the coordinator."""
    worker = get_worker()
    lacking = _lacking(needs)
    if lacking:
        raise UnfitWorkerError(worker.address, f"worker {worker.address} has {lacking}")
    step, limits, topic, key, final, alone, address = pickle.loads(order)
    given = tuple(parent.value for parent in parents)
    if (alone and POSSIBLE) or runs_alone(step, limits, isolated=True):
        result = execute_alone(step, given, limits, address or _own_server(step, sure=alone))
    else:
        result = execute(step, given)
    worker.log_event(topic, (key, note_of(result, final)))
    return result


def _own_server(step: Step, *, sure: bool) -> str:
    """The address of this worker's server, on a cluster that the coordinator may not share."""
    with _LOCK:
        if not _SERVERS:
            _SERVERS.append(ForkServer(modules_of([step])))
        return _SERVERS[0].address(sure=sure)


def unpack(content: bytes) -> Result:
    """A table, out of the task that carried it."""
    return Result(pickle.loads(content), 0.0)


def note_of(result: Result, final: bool) -> bytes:
    """What the coordinator needs to know of a result."""
    wanted = final or isinstance(result.value, Failure)
    return pickle.dumps(result if wanted else Result(None, result.seconds))


def _lacking(needs: bytes) -> str:
    """How this worker differs from the coordinator; found out once."""
    digest = hashlib.sha256(needs).digest()
    if digest not in _CHECKED:
        _one_thread()
        wanted: Needs | None = pickle.loads(needs)
        said = unlike(wanted.here, found(wanted.uses)) if wanted else []
        _CHECKED[digest] = "; ".join(said)
    return _CHECKED[digest]


def _one_thread() -> None:
    """Limit native thread pools of this worker, for good."""
    from threadpoolctl import threadpool_limits

    os.environ.update(ONE_THREAD)
    threadpool_limits(1)


__all__ = ["UnfitWorkerError", "do", "note_of", "unpack"]
