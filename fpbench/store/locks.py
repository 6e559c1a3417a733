"""A run directory is written by one process at a time."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

from fpbench.base.errors import StoreError
from fpbench.base.files import identify, open_file

STORE = "store.sqlite"
"""The file that makes a directory a run directory."""
LOCK_FILE = "store.lock"
"""The file that names the writing process and its machine."""
_MOST = 4096
"""Bytes of that file."""
_held: set[int] = set()


class Lock:
    """The right to write to a run directory, until it is released or this process ends.

    The operating system's own lock: it ends with the process that held it, however that died, and
    no file has to be removed.

    `directory`: the run directory; it must be there.

    Raises StoreError if another process, or another part of this one, holds it, or if locking
    fails.
    """

    def __init__(self, directory: Path) -> None:
        file = directory / LOCK_FILE
        try:
            self._descriptor = open_file(file, most=_MOST, flags=os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise StoreError(f"{file}: cannot be written: {error.strerror}") from error
        try:
            _take(self._descriptor)
        except BlockingIOError as error:
            holder = self._read_holder()
            os.close(self._descriptor)
            raise StoreError(
                f"{directory}: is in use by another run{holder}; wait until it ends, or choose "
                "another directory with --out"
            ) from error
        except OSError as error:
            os.close(self._descriptor)
            raise StoreError(f"{file}: cannot be locked: {error.strerror}") from error
        _held.add(self._descriptor)
        self._write_holder()

    def _write_holder(self) -> None:
        """Write the holder into the file, for people; only the lock itself decides."""
        since = time.strftime("%Y-%m-%d %H:%M:%S")
        text = f"process {os.getpid()} on {socket.gethostname()}, since {since}"
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, text.encode(), 0)
        except (OSError, AttributeError):  # a full disk is reported where it matters
            pass

    def _read_holder(self) -> str:
        try:
            text = os.read(self._descriptor, 200).decode(errors="replace")
        except OSError:
            return ""
        return f" ({text})" if text and text.isprintable() else ""

    def release(self) -> None:
        """Let others write; to release twice is fine."""
        if self._descriptor in _held:
            _held.discard(self._descriptor)
            os.close(self._descriptor)


def _take(descriptor: int) -> None:
    try:
        from fcntl import LOCK_EX, LOCK_NB, flock
    except ImportError:  # Windows
        import msvcrt

        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        except PermissionError as error:
            raise BlockingIOError(str(error)) from error
    else:
        flock(descriptor, LOCK_EX | LOCK_NB)


def _forget() -> None:
    """A forked process holds no lock: it may outlive the one that does."""
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def is_locked_here(directory: Path) -> bool:
    """Whether this process itself is writing to a run directory."""
    here = identify(directory / LOCK_FILE)
    owned = (os.fstat(descriptor) for descriptor in _held)
    return here is not None and here in {(status.st_dev, status.st_ino) for status in owned}


def move_aside(directory: Path) -> Path | None:
    """Rename a run directory to the first free name: RUN.1, RUN.2 ... Nothing is ever deleted.

    Returns: the new path; None if there was nothing.

    Raises StoreError if another run is using it, or if the directory does not hold a run.
    """
    directory = directory.absolute()
    if not directory.exists() or not any(directory.iterdir()):
        return None
    if not (directory / STORE).exists():
        raise StoreError(
            f"{directory}: has files, but no run ({STORE} is not there): nothing was renamed; "
            "choose another directory with --out"
        )
    lock = Lock(directory)
    try:
        number = 1
        while os.path.lexists(aside := directory.with_name(f"{directory.name}.{number}")):
            number += 1
        if os.name == "nt":  # Windows does not rename open files
            lock.release()
        directory.rename(aside)  # and never copied and deleted, as a move may
    except OSError as error:
        raise StoreError(
            f"{directory}: cannot be renamed: {error.strerror or error}; choose another "
            "directory with --out"
        ) from error
    finally:
        lock.release()
    return aside
