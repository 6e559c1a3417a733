"""Connections to the files of stores, which may come from anybody."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

_LONGEST = 64 * 2**20
"""Bytes of a text or of a row: more than any run writes."""
_CACHE = 128 * 2**10
"""KiB of a file that are held: the keys of a million cells come in no order."""
_KEPT = "; what was committed is kept"
_HINTS = {
    sqlite3.SQLITE_FULL: f"{_KEPT}: make room, and run again",
    sqlite3.SQLITE_IOERR: f"{_KEPT}: see that the disk is there and not full, and run again",
    sqlite3.SQLITE_READONLY: f"{_KEPT}: choose a directory that can be written with --out",
}


def hint(error: sqlite3.Error) -> str:
    """What to do about an error of writing, as the end of its message."""
    return _HINTS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, "")


def connect(file: Path, *, write: bool) -> sqlite3.Connection:
    """Open a file from anybody: nothing in it is run, and no part of it may be without end."""
    # A file that cannot be written is read as it lies there: an archived run.
    archived = file.exists() and not os.access(file.parent, os.W_OK)
    if archived and not write and file.with_name(f"{file.name}-wal").exists():
        db = _with_log(file)
    else:
        uri = file.absolute().as_uri() + ("?immutable=1" if archived else "")
        db = sqlite3.connect(uri, isolation_level=None, uri=True)
    with _kept(db):
        db.execute("PRAGMA trusted_schema = OFF")
        db.execute("PRAGMA cell_size_check = ON")
        db.execute(f"PRAGMA cache_size = -{_CACHE}")
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
    return db


def copied(db: sqlite3.Connection) -> sqlite3.Connection:
    """A copy in a file that nobody else sees, and that is gone when it is closed."""
    copy = sqlite3.connect("", isolation_level=None)
    with _kept(copy):
        db.backup(copy)
    return copy


def _with_log(file: Path) -> sqlite3.Connection:
    """A copy of an archived run that was killed: its last cells are in the log beside it."""
    with tempfile.TemporaryDirectory() as place:
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{file}{suffix}", Path(place) / f"{file.name}{suffix}")
        with closing(sqlite3.connect(Path(place) / file.name)) as original:
            return copied(original)


@contextmanager
def _kept(db: sqlite3.Connection) -> Iterator[None]:
    """Close it if it cannot be made what it is to be; otherwise it goes to whoever asked."""
    try:
        yield
    except BaseException:
        db.close()
        raise


__all__ = ["connect", "copied", "hint"]
