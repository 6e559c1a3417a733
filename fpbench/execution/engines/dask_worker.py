"""What a worker of a dask cluster does: one step, with what it has of its parents' results."""

from __future__ import annotations

import hashlib
import os
import pickle
import threading
from collections.abc import Sequence
from typing import NamedTuple

from dask.sizeof import sizeof
from distributed import get_worker

from fpbench.execution.engines.fitness import Needs, found, unlike
from fpbench.execution.engines.warming import modules_of
from fpbench.execution.isolation.one_use import POSSIBLE, ForkServer, execute_alone, runs_alone
from fpbench.execution.isolation.processes import ONE_THREAD
from fpbench.execution.work.execute import SpoiledError, check_unspoiled, execute_in_worker, told
from fpbench.matrix.limits import Limits
from fpbench.matrix.step import Failure, Result, Step

_CHECKED: dict[bytes, str] = {}
"""What of a run's needs this worker lacks, by their checksum; empty if nothing."""
_SERVERS: list[ForkServer] = []
"""The one server of this worker, once there is one."""
_LOCK = threading.Lock()


class UnfitWorkerError(Exception):
    """A worker that has not what the run needs, and refuses its steps."""


class Parcel:
    """Results of a task: values where they were made, and bytes on the way to another worker.

    Dask opens what a task needs before the task begins; a worker that lacks a plugin would fail
    at that again and again, and never say so. So nothing is opened before a worker is known to be
    fit.
    """

    def __init__(self, results: tuple[Result, ...] | None, content: bytes | None = None) -> None:
        self._results, self._content = results, content

    def opened(self) -> tuple[Result, ...]:
        """The results."""
        if self._results is None:
            assert self._content is not None
            self._results = pickle.loads(self._content)
        return self._results

    def __reduce__(self) -> tuple[type[Parcel], tuple[None, bytes]]:
        import cloudpickle

        if self._content is None:
            self._content = cloudpickle.dumps(self._results)
        return Parcel, (None, self._content)

    def __sizeof__(self) -> int:
        """What dask counts as its size."""
        return int(sizeof(self._results)) + len(self._content or b"")


class Job(NamedTuple):
    """One of the steps that a task does."""

    step: Step
    slots: tuple[tuple[int, int], ...]
    """Where its parents' results are: which argument of the task, which result of that."""
    final: bool
    alone: bool
    address: str | None
    """Where one-use processes are had; of this worker's own server if None."""


def check(needs: bytes) -> None:
    """Refuse to work here if something is lacking.

    Raises
    ------
    UnfitWorkerError
        With the worker's address, and what is wrong.
    """
    lacking = _lacking(needs)
    if lacking:
        where = get_worker().address
        raise UnfitWorkerError(where, f"worker {where} has {lacking}")


def do(order: bytes, needs: bytes, *parents: Parcel) -> Parcel:
    """Do steps in a worker, one after another, and tell the coordinator."""
    check(needs)
    jobs, limits, topic, key = pickle.loads(order)
    try:
        made = Parcel(tuple(_one(job, limits, parents) for job in jobs))
    except SpoiledError as error:
        raise SpoiledError(error.component, error.changes, get_worker().address) from None
    get_worker().log_event(topic, (key, note_of(made, [(job.step, job.final) for job in jobs])))
    return made


def _one(job: Job, limits: Limits, parents: tuple[Parcel, ...]) -> Result:
    given = tuple(parents[argument].opened()[number].value for argument, number in job.slots)
    if (job.alone and POSSIBLE) or runs_alone(job.step, limits, isolated=True):
        check_unspoiled()  # what is changed here may keep this worker from asking
        address = job.address or _own_server(job.step, sure=job.alone)
        return execute_alone(job.step, given, limits, address)
    return execute_in_worker(job.step, given)


def _own_server(step: Step, *, sure: bool) -> str:
    """The address of this worker's server, on a cluster that the coordinator may not share."""
    with _LOCK:
        if not _SERVERS:
            _SERVERS.append(ForkServer(modules_of([step])))
        return _SERVERS[0].address(sure=sure)


def unpack(content: bytes) -> Parcel:
    """A table, out of the task that carried it."""
    return Parcel(None, content)


def note_of(made: Parcel, steps: Sequence[tuple[Step, bool]]) -> list[bytes | float]:
    """What the coordinator needs to know of results.

    Parameters
    ----------
    made
        Results of a task.
    steps
        What made them, and whether the value itself is wanted.

    Returns
    -------
    list of bytes or float
        The result in plain words if it is wanted or a failure; otherwise its seconds.
    """
    return [
        told(step, result) if final or isinstance(result.value, Failure) else result.seconds
        for result, (step, final) in zip(made.opened(), steps, strict=True)
    ]


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
