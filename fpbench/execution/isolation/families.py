"""Families of processes: workers that end with their parent, descendants, their memory and end.

Descendants and memory are known on Linux only.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Collection, Iterator

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 36, 38
_MEMORY = ("Pss_Anon", "Pss_Shmem", "SwapPss")
"""Memory that a process has written; shared memory counts as a part of each that shares it."""
_MOST_ROUNDS = 100
"""Greatest number of attempts to end all processes: they may start new ones meanwhile."""


def _apply_option(option: int, value: int) -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def die_with_parent(parent: int) -> None:
    """Have the operating system kill this process when its parent dies.

    `parent`: process id of the parent, as the parent itself sees it.
    """
    _apply_option(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if sys.platform != "linux":  # the system has no such service: check every second
        threading.Thread(target=_poll_parent, args=(parent,), daemon=True).start()
    if os.getppid() != parent:  # the parent died before this process could watch it
        os.kill(os.getpid(), signal.SIGKILL)


def _poll_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGKILL)


def start_worker(parent: int) -> None:
    """Set up a worker process: it ends with its parent, and leaves Ctrl-C to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent(parent)


def refuse_rights() -> None:
    """Give no program that this process starts more rights, as `sudo` has."""
    _apply_option(_PR_SET_NO_NEW_PRIVS, 1)


def adopt_orphans() -> None:
    """Make descendants of this process its children when their parent dies."""
    _apply_option(_PR_SET_CHILD_SUBREAPER, 1)


def list_children(pid: int) -> list[int]:
    """Process ids of the children of a process."""
    numbers: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                numbers += map(int, file.read().split())
    return numbers


def list_descendants(pid: int) -> list[int]:
    """Process ids of all descendants of a process."""
    everyone: list[int] = []
    waiting = [pid]
    while waiting:
        waiting = [child for parent in waiting for child in list_children(parent)]
        everyone += waiting
    return everyone


def measure_memory(pid: int) -> int:
    """Bytes of memory that a process and its descendants have written, files not included."""
    total = 0
    for member in (pid, *list_descendants(pid)):
        with contextlib.suppress(OSError), open(f"/proc/{member}/smaps_rollup") as lines:
            for line in lines:
                name, _, size = line.partition(":")
                total += int(size.split()[0]) * 1024 if name in _MEMORY else 0
    return total


@contextlib.contextmanager
def end_descendants() -> Iterator[None]:
    """End the processes that this one starts in a `with`, and all their descendants."""
    before = list_children(os.getpid())
    adopt_orphans()
    try:
        yield
    finally:
        # Python's resource trackers end by themselves after this process.
        trackers = [pid for pid in list_children(os.getpid()) if _is_tracker(pid)]
        end_children({*before, *trackers})


def _is_tracker(pid: int) -> bool:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        return b"resource_tracker" in file.read()
    return False


def end_children(spared: Collection[int] = ()) -> None:
    """Kill and reap children of this process; if it adopts orphans, all their descendants too.

    `spared`: children that are left alone.
    """
    for _ in range(_MOST_ROUNDS):
        doomed = [pid for pid in list_children(os.getpid()) if pid not in spared]
        if not doomed:
            return
        for pid in doomed:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
