"""Workers of a cluster that have fallen silent, as those whose cable is pulled: found and left."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from fpbench.execution.engines.dask_cluster import Cluster

_SILENCE = 20.0
"""Seconds without a word after which a worker counts as lost. They say one each second or so."""
_SELDOM = 20
"""So many workers more, and each is heard of so much less often that a second more is needed."""
_LISTEN_AGAIN = 1.0
_ABSENT = 5.0
"""Seconds without a look after which it is we who were not there."""
_LOG = logging.getLogger("fpbench.dask.workers")


class Silences:
    """How long workers have not been heard of, by a clock that is ours alone."""

    def __init__(self) -> None:
        self._heard: dict[str, tuple[float, float]] = {}
        """When the scheduler heard of each last, as it says, and since when it says so."""
        self._looked = 0.0

    def lost(self, last_seen: Mapping[str, float], now: float) -> list[str]:
        """Workers that have been silent for too long, each named once.

        Parameters
        ----------
        last_seen
            When the scheduler heard of each worker last, by its own clock.
        now
            Seconds, by ours.
        """
        if now - self._looked > _ABSENT:  # whatever was said meanwhile was not for us to hear
            self._heard.clear()
        self._looked = now
        self._heard = {
            worker: self._heard[worker]
            if self._heard.get(worker, (None,))[0] == seen
            else (seen, now)
            for worker, seen in last_seen.items()
        }
        longest = _SILENCE + len(last_seen) / _SELDOM
        return [worker for worker, (_, since) in self._heard.items() if now - since > longest]


class Lookout(threading.Thread):
    """Leaves workers that have fallen silent to themselves, and says so.

    The scheduler would wait five minutes. What it forgets of a worker, others do again; a worker
    that wakes up finds that it is not known any more, and ends without a result.

    Parameters
    ----------
    cluster
        Whose workers these are.
    on_lost
        Called with the address of each that is left.
    """

    def __init__(self, cluster: Cluster, on_lost: Callable[[str], None]) -> None:
        super().__init__(name="fpbench-lookout", daemon=True)
        self._cluster, self._on_lost = cluster, on_lost
        self._silences, self._ended = Silences(), threading.Event()
        self._spoiled: deque[str] = deque()

    def run(self) -> None:
        """Look, until it is ended."""
        while not self._ended.wait(_LISTEN_AGAIN):
            try:
                self._look()
            except Exception:  # the scheduler is lost, or is no place for code of ours
                _LOG.debug("looking", exc_info=True)

    def replace(self, worker: str) -> None:
        """Have a new process take the place of a worker, soon."""
        if worker not in self._spoiled:
            self._spoiled.append(worker)

    def end(self) -> None:
        """Look no more."""
        self._ended.set()

    def _look(self) -> None:
        client = self._cluster.client
        while self._spoiled:
            client.run_on_scheduler(_replace, workers=[self._spoiled[0]])
            self._spoiled.popleft()
        last_seen = client.run_on_scheduler(_last_seen)
        for worker in self._silences.lost(last_seen, time.monotonic()):
            client.run_on_scheduler(_forget, worker=worker)
            self._on_lost(worker)
            others = "others do its steps"
            if last_seen.keys() == {worker}:
                others = "no other is left, so the run waits until one comes"
            _LOG.warning("worker %s has not answered for %g s; %s", worker, _SILENCE, others)


def _last_seen(dask_scheduler: Any) -> dict[str, float]:
    """Called in the scheduler: when it last heard of each worker."""
    return {address: state.last_seen for address, state in dask_scheduler.workers.items()}


async def _forget(dask_scheduler: Any, worker: str) -> None:
    """Called in the scheduler: it counts on this worker no more."""
    await dask_scheduler.remove_worker(worker, stimulus_id="fpbench-silent")


async def _replace(dask_scheduler: Any, workers: list[str]) -> None:
    """Called in the scheduler: new processes take the place of these workers.

    One that nobody looks after (that has no nanny) only ends.
    """
    await dask_scheduler.restart_workers(
        workers, wait_for_workers=False, on_error="return", stimulus_id="fpbench-spoiled"
    )
