"""Workers of a cluster that have fallen silent, as those whose cable is pulled: found and left."""

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
"""Seconds without a word after which a worker counts as lost. They say one each second or so."""
_SELDOM = 20
"""So many workers more, and each is heard of so much less often that a second more is needed."""
_LISTEN_AGAIN = 1.0
_START = 60.0
"""Seconds within which a worker has started."""
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
    on_replaced
        Called when spoiled workers have been replaced.
    """

    def __init__(
        self, cluster: Cluster, on_lost: Callable[[str], None], on_replaced: Callable[[], None]
    ) -> None:
        super().__init__(name="fpbench-lookout", daemon=True)
        self._cluster, self._on_lost, self._on_replaced = cluster, on_lost, on_replaced
        self._silences, self._ended, self._wake = Silences(), False, threading.Event()
        self._spoiled: deque[str] = deque()

    @property
    def replacing(self) -> bool:
        """Whether spoiled workers are still in the cluster, and would turn every step away."""
        return bool(self._spoiled)

    def run(self) -> None:
        """Look, until it is ended."""
        while not self._ended:
            self._wake.wait(_LISTEN_AGAIN)
            self._wake.clear()
            for duty in (self._replace_spoiled, self._leave_silent):
                try:
                    duty()
                except Exception:  # the scheduler is lost, or is no place for code of ours
                    _LOG.debug("looking", exc_info=True)

    def replace(self, worker: str) -> None:
        """Have a new process take the place of a worker, soon."""
        if worker not in self._spoiled:
            self._spoiled.append(worker)
        self._wake.set()

    def end(self) -> None:
        """Look no more."""
        self._ended = True
        self._wake.set()

    def _replace_spoiled(self) -> None:
        """Replace the spoiled workers; one that cannot be is not tried again."""
        while self._spoiled and not self._ended:
            try:
                self._cluster.client.run_on_scheduler(_replace, workers=[self._spoiled[0]])
            finally:
                self._spoiled.popleft()
                if not self._spoiled:
                    self._on_replaced()

    def _leave_silent(self) -> None:
        if self._ended:
            return
        client = self._cluster.client
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

    One that nobody looks after (that has no nanny) only ends. A nanny does not start a worker again
    that is killed while the nanny still starts it, so each is told to, which also waits for it.
    """
    known = dask_scheduler.workers
    nannies = [known[worker].nanny for worker in workers if worker in known]
    await dask_scheduler.restart_workers(
        workers, wait_for_workers=False, on_error="return", stimulus_id="fpbench-spoiled"
    )
    for nanny in filter(None, nannies):
        await asyncio.wait_for(dask_scheduler.rpc(nanny).instantiate(), _START)
