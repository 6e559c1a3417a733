"""What a worker of a dask cluster does: one step, with what it has of its parents' results."""

from __future__ import annotations

import hashlib
import os
import pickle
import threading
from collections.abc import Sequence
from typing import NamedTuple

from distributed import get_worker

from fpbench.alone import POSSIBLE, ForkServer, execute_alone, runs_alone
from fpbench.execution import execute
from fpbench.fitness import Needs, found, unlike
from fpbench.limits import Limits
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


class Job(NamedTuple):
    """One of the steps that a task does."""

    step: Step
    slots: tuple[tuple[int, int], ...]
    """Where its parents' results are: which argument of the task, which result of that."""
    final: bool
    alone: bool
    address: str | None
    """Where one-use processes are had; of this worker's own server if None."""


def do(order: bytes, needs: bytes, *parents: tuple[Result, ...]) -> tuple[Result, ...]:
    """Do steps in a worker, one after another, and tell the coordinator."""
    worker = get_worker()
    lacking = _lacking(needs)
    if lacking:
        raise UnfitWorkerError(worker.address, f"worker {worker.address} has {lacking}")
    jobs, limits, topic, key = pickle.loads(order)
    results = tuple(_one(job, limits, parents) for job in jobs)
    worker.log_event(topic, (key, note_of(results, [job.final for job in jobs])))
    return results


def _one(job: Job, limits: Limits, parents: tuple[tuple[Result, ...], ...]) -> Result:
    given = tuple(parents[argument][index].value for argument, index in job.slots)
    if (job.alone and POSSIBLE) or runs_alone(job.step, limits, isolated=True):
        address = job.address or _own_server(job.step, sure=job.alone)
        return execute_alone(job.step, given, limits, address)
    return execute(job.step, given)


def _own_server(step: Step, *, sure: bool) -> str:
    """The address of this worker's server, on a cluster that the coordinator may not share."""
    with _LOCK:
        if not _SERVERS:
            _SERVERS.append(ForkServer(modules_of([step])))
        return _SERVERS[0].address(sure=sure)


def unpack(content: bytes) -> tuple[Result]:
    """A table, out of the task that carried it."""
    return (Result(pickle.loads(content), 0.0),)


def note_of(results: tuple[Result, ...], final: Sequence[bool]) -> bytes:
    """What the coordinator needs to know of results."""
    wanted = (f or isinstance(r.value, Failure) for r, f in zip(results, final, strict=True))
    return pickle.dumps(
        [r if w else r._replace(value=None) for r, w in zip(results, wanted, strict=True)]
    )


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


__all__ = ["Job", "UnfitWorkerError", "do", "note_of", "unpack"]
