"""Families of processes: their descendants, their memory, and their end.

Linux only: elsewhere these functions find no descendants and no memory.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Collection, Iterable, Iterator

MARK = "FPBENCH_FAMILY"
"""Environment variable that names the run a process belongs to.

Programs that a step starts inherit it, even if another process adopts them.
"""
_PR_SET_CHILD_SUBREAPER = 36
_SECTOR = 512
"""Bytes of a block in the counts of `stat`."""
_MOST_ROUNDS = 100
"""Greatest number of attempts to end all processes: they may start new ones meanwhile."""


def adopt_orphans() -> None:
    """Make descendants of this process its children when their parent dies."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


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


@contextlib.contextmanager
def end_descendants() -> Iterator[None]:
    """End the processes that this one starts in a `with`, and all their descendants."""
    before = list_children(os.getpid())
    adopt_orphans()
    try:
        yield
    finally:
        # Python's resource trackers end by themselves after this process.
        trackers = [
            pid
            for pid in list_children(os.getpid())
            if b"resource_tracker" in _read_command_line(pid)
        ]
        end_children({*before, *trackers})


def _read_command_line(pid: int) -> bytes:
    """The command line of a process."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read()
    return b""


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


def end_marked(mark: str) -> None:
    """Kill all other processes that were started with a mark."""
    for _ in range(_MOST_ROUNDS):
        doomed = list(_find_marked(f"{MARK}={mark}".encode()))
        if not doomed:
            return
        for pid in doomed:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _find_marked(mark: bytes) -> Iterator[int]:
    for name in os.listdir("/proc") if sys.platform == "linux" else ():
        with contextlib.suppress(
            OSError
        ):  # processes of other users, and those that have just ended
            if name.isdigit() and int(name) != os.getpid():
                with open(f"/proc/{name}/environ", "rb") as file:  # empty if it is dead
                    if mark in file.read().split(b"\0"):
                        yield int(name)


def exceeds(pids: Iterable[int], size: int) -> bool:
    """Whether processes together hold more than `size` bytes of memory.

    Memory that they have written (private, shared and swapped out) and open files in memory count.
    Memory that several processes share counts once.
    """
    pids = list(pids)
    files = _open_files_in_memory(pids)
    least = sum(_sum_sizes(pid, "status", ("RssAnon", "RssShmem", "VmSwap")) for pid in pids)
    if least + files <= size:  # although shared memory counts several times here
        return False
    own = sum(_sum_sizes(pid, "smaps_rollup", ("Pss_Anon", "SwapPss")) for pid in pids)
    shared = sum(_sum_sizes(pid, "smaps_rollup", ("Pss_Shmem",)) for pid in pids)
    # A mapped file is in both.
    return own + max(shared, files) > size


def measure_own_memory() -> int:
    """Bytes of private memory that this process has written."""
    return _sum_sizes(os.getpid(), "status", ("RssAnon",))


def _sum_sizes(pid: int, file: str, names: tuple[str, ...]) -> int:
    """The sum of these sizes in a file of /proc, in bytes; 0 if the process is gone."""
    total = 0
    with contextlib.suppress(OSError), open(f"/proc/{pid}/{file}") as lines:
        for line in lines:
            name, _, rest = line.partition(":")
            if name in names:
                total += int(rest.split()[0]) * 1024
    return total


def _open_files_in_memory(pids: Iterable[int]) -> int:
    """Bytes of the open files of processes that exist in memory only."""
    devices, sizes = _list_memory_devices(), {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for end in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    path = f"/proc/{pid}/fd/{end}"
                    status = os.stat(path)
                    if status.st_dev in devices or os.readlink(path).startswith("/memfd:"):
                        sizes[status.st_dev, status.st_ino] = status.st_blocks * _SECTOR
    return sum(sizes.values())


def _list_memory_devices() -> set[int]:
    """Devices of file systems in memory."""
    devices = set()
    with contextlib.suppress(OSError), open("/proc/self/mountinfo") as lines:
        for line in lines:
            words, _, kind = line.partition(" - ")
            if kind.split()[0] in ("tmpfs", "ramfs"):
                devices.add(os.makedev(*map(int, words.split()[2].split(":"))))
    return devices
