"""Which worker of a cluster gets the next step: one that is free, best with what the step needs.

Left to itself, dask sends a task where its inputs are, and moves it only if that worker has long
been busy. A run has few steps to do at a time, some of seconds and many of milliseconds, so that
half of the workers would wait.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from math import inf
from threading import Lock
from typing import NamedTuple

_SHORT = 0.05
"""Seconds of work that a worker may have before it; more, and another may be free sooner."""


class Load(NamedTuple):
    """What a step is expected to be to the worker that it is sent to."""

    worker: str
    kind: tuple[str, str]
    seconds: float


class Places:
    """Workers, what each of them has to do, and how long steps of a kind take."""

    def __init__(self) -> None:
        self._threads: dict[str, int] = {}
        self._loads: dict[str, list[Load]] = {}
        self._known: dict[tuple[str, str], tuple[int, float]] = {}
        self._lock = Lock()

    def set_workers(self, threads: Mapping[str, int]) -> None:
        """Say which workers there are, by address, and how many threads each has."""
        with self._lock:
            self._threads = dict(threads)
            self._loads = {worker: self._loads.get(worker, []) for worker in threads}

    def take(
        self, kind: tuple[str, str], near: Iterable[Collection[str]], unfit: Collection[str]
    ) -> Load | None:
        """Choose a worker for a step.

        Parameters
        ----------
        kind
            What steps of about the same duration have in common.
        near
            For each result that the step needs, the workers that have it.
        unfit
            Workers that are not asked.

        Returns
        -------
        Load or None
            To be given back when the step is done; None if no worker is free.
        """
        count, seconds = self._known.get(kind, (0, inf))
        near = tuple(near)
        with self._lock:
            free = [
                worker for worker in self._threads if worker not in unfit and self._free(worker)
            ]
            if not free:
                return None

            def distance(worker: str) -> tuple[int, float]:
                here = sum(worker in places for places in near)
                return -here, self._backlog(worker)

            load = Load(min(free, key=distance), kind, seconds / max(count, 1))
            self._loads[load.worker].append(load)
        return load

    def _free(self, worker: str) -> bool:
        return len(self._loads[worker]) < self._threads[worker] or self._backlog(worker) < _SHORT

    def _backlog(self, worker: str) -> float:
        """Seconds of work that each of its threads has."""
        return sum(load.seconds for load in self._loads[worker]) / self._threads[worker]

    def give_back(self, load: Load, seconds: float | None) -> None:
        """Say that a step is done, and what it took, if that is known."""
        with self._lock:
            loads = self._loads.get(load.worker, [])
            if load in loads:
                loads.remove(load)
            if seconds is not None:
                count, total = self._known.get(load.kind, (0, 0.0))
                self._known[load.kind] = (count + 1, total + seconds)


__all__ = ["Load", "Places"]
