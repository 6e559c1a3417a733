"""Which worker of a cluster gets what next, and how many steps it is sent at once.

Left to itself, dask sends a task where its inputs are, and moves it only if that worker has long
been busy. A run has few steps to do at a time, some of seconds and many of milliseconds, so that
half of the workers would wait, and dask's own work would take as long as the short steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from math import inf
from threading import Lock

_TOGETHER = 0.05
"""Seconds of work that are sent at once; more, and another worker could have begun with it."""


class Places:
    """Workers, by address, and what they are doing; safe to use from several threads."""

    def __init__(self) -> None:
        self._threads: dict[str, int] = {}
        self._busy: Counter[str] = Counter()
        self._lock = Lock()

    def set_workers(self, threads: Mapping[str, int]) -> None:
        """Say which workers there are, and how many threads each has."""
        with self._lock:
            self._threads = dict(threads)
            self._busy = Counter({worker: self._busy[worker] for worker in threads})

    def drop(self, worker: str) -> None:
        """Say that a worker is not to be given anything more."""
        with self._lock:
            self._threads.pop(worker, None)

    @property
    def threads(self) -> int:
        """Threads of all workers."""
        with self._lock:
            return sum(self._threads.values())

    def take(self, near: Iterable[Collection[str]]) -> str | None:
        """Take a thread of a worker.

        Parameters
        ----------
        near
            For each result that is needed, the workers that have it.

        Returns
        -------
        str or None
            Of the workers with a free thread, the one that has most of what is needed; None if
            all are busy.
        """
        have = Counter(worker for places in near for worker in places)
        with self._lock:
            free = [worker for worker, most in self._threads.items() if self._busy[worker] < most]
            if not free:
                return None
            worker = max(free, key=lambda worker: (have[worker], -self._busy[worker]))
            self._busy[worker] += 1
        return worker

    def give_back(self, worker: str) -> None:
        """Say that a thread is free again."""
        with self._lock:
            if self._busy[worker]:
                self._busy[worker] -= 1


class Durations:
    """How long steps of a kind take, as far as it has been seen."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], tuple[int, float]] = {}

    def learn(self, kind: tuple[str, str], seconds: float) -> None:
        """Say how long a step took."""
        count, total = self._seen.get(kind, (0, 0.0))
        self._seen[kind] = (count + 1, total + seconds)

    def together(self, kinds: Iterable[tuple[str, str]]) -> int:
        """How many of the steps that wait, in this order, are sent at once: 1 or more."""
        total, number = 0.0, 0
        for kind in kinds:
            count, seconds = self._seen.get(kind, (1, inf))
            total += seconds / count
            if total > _TOGETHER:
                break
            number += 1
        return max(number, 1)
