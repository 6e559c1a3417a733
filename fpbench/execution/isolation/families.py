"""Families of processes: who descends from whom, what memory they hold, how they are ended.

Linux only: elsewhere nobody descends from anybody here, and holds nothing.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Collection, Iterable, Iterator

MARK = "FPBENCH_FAMILY"
"""Names the run that a process belongs to, in the environment that it was started with.

Programs that a step starts have it, too, whoever adopts them.
"""
_PR_SET_CHILD_SUBREAPER = 36
_SECTOR = 512
"""Bytes of a block, as `stat` counts them."""
_MOST_ROUNDS = 100
"""So often processes are looked for, and ended, before it is believed that there is no end."""


def adopt_orphans() -> None:
    """Make descendants of this process its children when their parent dies."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def children(pid: int) -> list[int]:
    """Processes whose parent is this one."""
    numbers: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                numbers += map(int, file.read().split())
    return numbers


def descendants(pid: int) -> list[int]:
    """Children of a process, and theirs."""
    everyone: list[int] = []
    waiting = [pid]
    while waiting:
        waiting = [child for parent in waiting for child in children(parent)]
        everyone += waiting
    return everyone


@contextlib.contextmanager
def no_survivors() -> Iterator[None]:
    """End what this process has started meanwhile, and all that descends from it."""
    before = children(os.getpid())
    adopt_orphans()
    try:
        yield
    finally:
        # What cleans up after Python ends by itself, after this process.
        trackers = [pid for pid in children(os.getpid()) if b"resource_tracker" in _words(pid)]
        end_children({*before, *trackers})


def _words(pid: int) -> bytes:
    """The command of a process."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read()
    return b""


def end_children(spared: Collection[int] = ()) -> None:
    """Kill and bury children of this process; so, if it adopts orphans, all that descend from them.

    Parameters
    ----------
    spared
        Children that go on.
    """
    for _ in range(_MOST_ROUNDS):
        doomed = [pid for pid in children(os.getpid()) if pid not in spared]
        if not doomed:
            return
        for pid in doomed:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def end_marked(mark: str) -> None:
    """Kill all processes that were started with a mark, but this one."""
    for _ in range(_MOST_ROUNDS):
        doomed = list(_marked(f"{MARK}={mark}".encode()))
        if not doomed:
            return
        for pid in doomed:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _marked(mark: bytes) -> Iterator[int]:
    for name in os.listdir("/proc") if sys.platform == "linux" else ():
        with contextlib.suppress(OSError):  # others' processes, and those that have just ended
            if name.isdigit() and int(name) != os.getpid():
                with open(f"/proc/{name}/environ", "rb") as file:  # empty of those that are dead
                    if mark in file.read().split(b"\0"):
                        yield int(name)


def exceeds(pids: Iterable[int], size: int) -> bool:
    """Whether processes hold more than so many bytes of memory together.

    Counted is what they have written: their own memory, what they share and what is swapped out,
    and files in memory that they have open. What several of them share counts once.
    """
    pids = list(pids)
    files = _open_files_in_memory(pids)
    least = sum(_sizes(pid, "status", ("RssAnon", "RssShmem", "VmSwap")) for pid in pids)
    if least + files <= size:  # shared memory counts several times in this, and it is still little
        return False
    own = sum(_sizes(pid, "smaps_rollup", ("Pss_Anon", "SwapPss")) for pid in pids)
    shared = sum(_sizes(pid, "smaps_rollup", ("Pss_Shmem",)) for pid in pids)
    # A file that is mapped is in both.
    return own + max(shared, files) > size


def own_memory() -> int:
    """Bytes that this process has written and holds."""
    return _sizes(os.getpid(), "status", ("RssAnon",))


def _sizes(pid: int, file: str, names: tuple[str, ...]) -> int:
    """The sum of sizes that the operating system tells of a process; 0 of one that is gone."""
    total = 0
    with contextlib.suppress(OSError), open(f"/proc/{pid}/{file}") as lines:
        for line in lines:
            name, _, rest = line.partition(":")
            if name in names:
                total += int(rest.split()[0]) * 1024
    return total


def _open_files_in_memory(pids: Iterable[int]) -> int:
    """Bytes of files that processes have open and that are on no disk."""
    devices, sizes = _devices_in_memory(), {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for end in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    path = f"/proc/{pid}/fd/{end}"
                    about = os.stat(path)
                    if about.st_dev in devices or os.readlink(path).startswith("/memfd:"):
                        sizes[about.st_dev, about.st_ino] = about.st_blocks * _SECTOR
    return sum(sizes.values())


def _devices_in_memory() -> set[int]:
    """Devices of file systems that are kept in memory."""
    devices = set()
    with contextlib.suppress(OSError), open("/proc/self/mountinfo") as lines:
        for line in lines:
            words, _, kind = line.partition(" - ")
            if kind.split()[0] in ("tmpfs", "ramfs"):
                devices.add(os.makedev(*map(int, words.split()[2].split(":"))))
    return devices
