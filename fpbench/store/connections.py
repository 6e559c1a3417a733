"""Connections to the files of stores, which may come from anybody.

SQLite changes what it opens for reading, too: it rolls a journal back, and deletes the files that
the journal names, wherever they are; it writes a log into the store, and an index beside the log.
So readers never let SQLite do any of this in the store's folder. A store without a log is opened
as one that cannot change; a store and its log are copied, and the copy is read.
"""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from fpbench.base.files import STORE_BYTES, check_file, identify, open_file
from fpbench.store.tables import check_content, is_empty

_LONGEST = 64 * 2**20
"""Bytes of a text or of a row: more than any run writes."""
_CACHE = 128 * 2**10
"""KiB of a file cached in memory: the keys of a million cells are read in random order."""
_ATTEMPTS = 20
"""Attempts to copy a store that is written to meanwhile."""
_HEAD = 32
"""Bytes at the start of a log that change each time it begins anew."""
_KEEPS = "; what was committed is kept"
_HINTS = {
    sqlite3.SQLITE_FULL: f"{_KEEPS}: make room, and run again",
    sqlite3.SQLITE_IOERR: f"{_KEEPS}: see that the disk is there and not full, and run again",
    sqlite3.SQLITE_READONLY: f"{_KEEPS}: choose a directory that can be written with --out",
}


def suggest_remedy(error: sqlite3.Error) -> str:
    """What to do about an error of writing, as the end of its message."""
    return _HINTS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, "")


class ReadConnection(sqlite3.Connection):
    """A connection that changes nothing: to a store in place, or to a copy of it."""

    _folder: tempfile.TemporaryDirectory[str] | None = None
    """Where the copy is."""
    _watched: Path | None = None
    _seen: tuple[int, ...] = ()

    def keep(self, folder: tempfile.TemporaryDirectory[str]) -> None:
        """Remove the folder of a copy together with the connection."""
        self._folder = folder

    def watch(self, file: Path, status: os.stat_result) -> None:
        """Notice if a file that is read in place is written to."""
        self._watched, self._seen = file, _read_state(status)

    def check(self) -> None:
        """Refuse what was read from a file that has changed since it was opened.

        Raises OSError if it has.
        """
        if self._watched is not None and _read_state(os.stat(self._watched)) != self._seen:
            why = "it was written to while it was read; read it again"
            raise OSError(errno.EBUSY, why, str(self._watched))

    def close(self) -> None:
        """Close it; a copy is gone then."""
        super().close()
        if self._folder is not None:
            self._folder.cleanup()


def check_store(file: Path) -> None:
    """Refuse a store that SQLite should not open: the author of the file may have set traps in it.

    Raises OSError if there is a journal beside it, which fpbench never writes; or if the store, its
    log or the index of the log is not a regular file of its own.
    """
    journal = name_companion(file, "-journal")
    if os.path.lexists(journal):
        why = (
            "fpbench never writes such a file, and SQLite would obey it and delete the files that "
            "it names; remove it if you know where it comes from"
        )
        raise OSError(errno.EINVAL, why, str(journal))
    for each in (file, name_companion(file, "-wal"), name_companion(file, "-shm")):
        if os.path.lexists(each):
            check_file(each, most=STORE_BYTES)


def connect_writer(file: Path) -> sqlite3.Connection:
    """Open a store for writing, or make one; the caller must hold the lock of its directory.

    Raises OSError if `check_store` refuses it; StoreError, sqlite3.Error if it is not a store.
    """
    check_store(file)
    db = sqlite3.connect(f"{file.absolute().as_uri()}?mode=rwc", isolation_level=None, uri=True)
    return _restrict(db, file, new=True)


def enable_log(db: sqlite3.Connection) -> None:
    """Let SQLite write commits to a log beside the store, never to a journal.

    Raises OSError if the file system cannot hold a log.
    """
    if db.execute("PRAGMA journal_mode").fetchone() != ("wal",):
        db.execute("PRAGMA journal_mode = MEMORY")  # the change itself would make a journal
        if db.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
            raise OSError(errno.ENOTSUP, "this file system cannot hold the log of a store")


def connect_reader(file: Path, *, own: bool = False) -> sqlite3.Connection:
    """Open a store to read what is committed at this moment; nothing is changed.

    `own`: whether this process itself is writing to it. Then SQLite's own locks are used: closing
    another descriptor of the file would release the writer's locks.

    Raises OSError if `check_store` refuses it, or it cannot be copied; StoreError, sqlite3.Error if
    it is not a store.
    """
    check_store(file)
    if own:
        return _restrict(_open(file, "mode=ro"), file)
    for _ in range(_ATTEMPTS):
        db = (
            _open_copy(file)
            if os.path.lexists(name_companion(file, "-wal"))
            else _open_in_place(file)
        )
        if db is not None:
            return _restrict(db, file)
    raise OSError(errno.EBUSY, "it is written to faster than it can be copied", str(file))


def _open(file: Path, how: str) -> ReadConnection:
    return sqlite3.connect(
        f"{file.absolute().as_uri()}?{how}", isolation_level=None, uri=True, factory=ReadConnection
    )


def _restrict(db: sqlite3.Connection, file: Path, *, new: bool = False) -> sqlite3.Connection:
    """The connection, which now runs no code of the file and reads no values beyond a length.

    `new`: whether the file may be empty.
    """
    with _close_on_error(db):
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
        db.execute("PRAGMA trusted_schema = OFF")
        db.execute("PRAGMA cell_size_check = ON")
        if not (new and is_empty(db)):
            check_content(db, str(file))
        db.execute(f"PRAGMA cache_size = -{_CACHE}")
    return db


def _open_in_place(file: Path) -> ReadConnection | None:
    """A store that nobody writes to, opened in place; None if somebody has begun to write."""
    descriptor = open_file(file, most=STORE_BYTES)
    try:
        status = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    db = _open(file, "mode=ro&immutable=1")
    with _close_on_error(db):
        db.execute("PRAGMA schema_version")  # which opens the file
        if _read_state(os.stat(file)) != _read_state(status) or os.path.lexists(
            name_companion(file, "-wal")
        ):
            db.close()
            return None
    db.watch(file, status)
    return db


def _open_copy(file: Path) -> ReadConnection | None:
    """A copy of a store and its log at one moment, in a private folder; None if they changed."""
    folder = tempfile.TemporaryDirectory(prefix="fpbench-", ignore_cleanup_errors=True)
    copy = Path(folder.name) / file.name
    try:
        if _copy_both(file, copy):
            db = _open(copy, "mode=ro")
            db.keep(folder)
            return db
    except BaseException:
        folder.cleanup()
        raise
    folder.cleanup()
    return None


def _copy_both(file: Path, copy: Path) -> bool:
    """Copy a store and its log; return whether the two belong together.

    A writer changes only pages of the store that are in the log as well, until the log begins
    anew. So a log that is copied after the store, and has not begun anew, repairs all that changed
    meanwhile; and SQLite takes only whole commits from it.
    """
    with ExitStack() as stack:
        try:
            store = stack.enter_context(_open_stream(file))
            log = stack.enter_context(_open_stream(name_companion(file, "-wal")))
        except FileNotFoundError:  # the writer has just closed it
            return False
        before = _read_generation(store, log)
        _copy(store, copy)
        _copy(log, name_companion(copy, "-wal"))
        same = all(
            _read_identity(os.fstat(stream.fileno())) == identify(each)
            for stream, each in ((store, file), (log, name_companion(file, "-wal")))
        )
        return same and _read_generation(store, log) == before


def _open_stream(file: Path) -> BinaryIO:
    return os.fdopen(open_file(file, most=STORE_BYTES), "rb", buffering=0)


def _read_generation(store: BinaryIO, log: BinaryIO) -> object:
    """A value that changes when a log begins anew or, if the log is empty, when the store does."""
    log.seek(0)
    return log.read(_HEAD) or _read_state(os.fstat(store.fileno()))


def _copy(stream: BinaryIO, target: Path) -> None:
    stream.seek(0)
    with target.open("wb") as copy:
        shutil.copyfileobj(stream, copy)


def _read_state(status: os.stat_result) -> tuple[int, ...]:
    return *_read_identity(status), status.st_size, status.st_mtime_ns


def _read_identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def name_companion(file: Path, suffix: str) -> Path:
    """The path of a file that SQLite keeps beside a store: `-wal`, `-shm` or `-journal`."""
    return file.with_name(f"{file.name}{suffix}")


@contextmanager
def _close_on_error(db: sqlite3.Connection) -> Iterator[None]:
    """Close the connection if the block raises; otherwise the caller owns it."""
    try:
        yield
    except BaseException:
        db.close()
        raise
