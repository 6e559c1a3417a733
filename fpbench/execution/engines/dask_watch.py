"""Removes silent workers, such as those without a network."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from fpbench.execution.engines.dask_cluster import Cluster

_SILENCE = 20.0
"""Seconds without a heartbeat after which a worker counts as lost; one comes about each second."""
_SELDOM = 20
"""For this many more workers, heartbeats are rarer, and one more second is allowed."""
_INTERVAL = 1.0
_ABSENT = 5.0
"""Seconds between two looks that mean that this process itself was suspended."""
_LOG = logging.getLogger("fpbench.dask.workers")


class Silences:
    """Durations of the silence of each worker, by the clock of this process."""

    def __init__(self) -> None:
        self._heard: dict[str, tuple[float, float]] = {}
        """The scheduler's time of each worker's last heartbeat, and our time when it changed."""
        self._looked = 0.0

    def find_lost(self, last_seen: Mapping[str, float], now: float) -> list[str]:
        """Workers that have been silent for too long.

        `last_seen`: when the scheduler received the last heartbeat of each worker, by its own
        clock. `now`: seconds, by our clock.
        """
        if now - self._looked > _ABSENT:  # heartbeats may have come meanwhile
            self._heard.clear()
        self._looked = now
        before = self._heard
        self._heard = {
            worker: before[worker]
            if worker in before and before[worker][0] == seen
            else (seen, now)
            for worker, seen in last_seen.items()
        }
        longest = _SILENCE + len(last_seen) / _SELDOM
        return [worker for worker, (_, since) in self._heard.items() if now - since > longest]


class Lookout(threading.Thread):
    """Removes silent workers, and logs it.

    The scheduler itself would wait five minutes. Other workers do the steps of a removed worker,
    which ends without a result if it wakes up.

    `on_lost`: called with the address of each removed worker.
    """

    def __init__(self, cluster: Cluster, on_lost: Callable[[str], None]) -> None:
        super().__init__(name="fpbench-lookout", daemon=True)
        self._client, self._on_lost = cluster.client, on_lost
        self._silences, self._ended = Silences(), threading.Event()

    def run(self) -> None:
        """Look each second, until `end` is called."""
        while not self._ended.wait(_INTERVAL):
            try:
                self._remove_silent()
            except Exception:  # the scheduler is lost, or runs no code of ours
                _LOG.debug("looking", exc_info=True)

    def end(self) -> None:
        """Stop looking."""
        self._ended.set()

    def _remove_silent(self) -> None:
        last_seen = self._client.run_on_scheduler(_read_last_seen)
        for worker in self._silences.find_lost(last_seen, time.monotonic()):
            self._client.run_on_scheduler(_remove, worker=worker)
            self._on_lost(worker)
            others = "others do its steps"
            if last_seen.keys() == {worker}:
                others = "no other is left, so the run waits until one comes"
            _LOG.warning("worker %s has not answered for %g s; %s", worker, _SILENCE, others)


# The functions below run in the scheduler.


def _read_last_seen(dask_scheduler: Any) -> dict[str, float]:
    return {address: state.last_seen for address, state in dask_scheduler.workers.items()}


async def _remove(dask_scheduler: Any, worker: str) -> None:
    await dask_scheduler.remove_worker(worker, stimulus_id="fpbench-silent")
