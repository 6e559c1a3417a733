"""Removes silent workers, such as those without a network; replaces spoiled workers."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from fpbench.execution.engines.dask_cluster import Cluster

_SILENCE = 20.0
"""Seconds without a heartbeat after which a worker counts as lost; one comes about each second."""
_SELDOM = 20
"""For this many more workers, heartbeats are rarer, and one more second is allowed."""
_INTERVAL = 1.0
_START = 60.0
"""Seconds within which a worker has started."""
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
    """Removes silent workers, and logs it; replaces spoiled workers.

    The scheduler itself would wait five minutes. Other workers do the steps of a removed worker,
    which ends without a result if it wakes up.

    `on_lost`: called with the address of each removed worker. `on_replaced`: called when spoiled
    workers have been replaced.
    """

    def __init__(
        self, cluster: Cluster, on_lost: Callable[[str], None], on_replaced: Callable[[], None]
    ) -> None:
        super().__init__(name="fpbench-lookout", daemon=True)
        self._client, self._on_lost, self._on_replaced = cluster.client, on_lost, on_replaced
        self._silences, self._ended, self._wake = Silences(), False, threading.Event()
        self._spoiled: deque[str] = deque()

    @property
    def replacing(self) -> bool:
        """Whether spoiled workers are still in the cluster, and would refuse every step."""
        return bool(self._spoiled)

    def run(self) -> None:
        """Look each second, until `end` is called."""
        while not self._ended:
            self._wake.wait(_INTERVAL)
            self._wake.clear()
            for duty in (self._replace_spoiled, self._remove_silent):
                try:
                    duty()
                except Exception:  # the scheduler is lost, or runs no code of ours
                    _LOG.debug("looking", exc_info=True)

    def replace(self, worker: str) -> None:
        """Replace the process of a worker, soon."""
        if worker not in self._spoiled:
            self._spoiled.append(worker)
        self._wake.set()

    def end(self) -> None:
        """Stop looking."""
        self._ended = True
        self._wake.set()

    def _replace_spoiled(self) -> None:
        """Replace the spoiled workers, with one attempt each."""
        while self._spoiled and not self._ended:
            try:
                self._client.run_on_scheduler(_replace, worker=self._spoiled[0])
            finally:
                self._spoiled.popleft()
                if not self._spoiled:
                    self._on_replaced()

    def _remove_silent(self) -> None:
        if self._ended:
            return
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


async def _replace(dask_scheduler: Any, worker: str) -> None:
    """Replace the process of a worker; without a nanny, the worker only ends.

    A nanny does not restart a worker that is killed while the nanny still starts it. So the nanny
    gets a request to start a worker, and this function waits for the answer.
    """
    state = dask_scheduler.workers.get(worker)
    await dask_scheduler.restart_workers(
        [worker], wait_for_workers=False, on_error="return", stimulus_id="fpbench-spoiled"
    )
    if state is not None and state.nanny:
        await asyncio.wait_for(dask_scheduler.rpc(state.nanny).instantiate(), _START)
