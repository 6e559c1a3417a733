"""Guarded reading and atomic writing of files in directories of unknown origin.

A run directory may come from anybody. Its files must be regular files of its own: a link may lead
to any file of this user, opening a pipe blocks, and opening a device may do anything. No other
module opens a file of a run directory by itself (`tests/base/test_files.py` holds this).

SQLite reads a page as often as other pages point to it. So the tables of a small file may have no
end: SQLite finds that out only when it is asked.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fpbench.base.errors import InputError, StoreError

if TYPE_CHECKING:
    import sqlite3

MATRIX_BYTES = 2**24
"""Greatest size of a matrix in bytes; one that lists a million seeds is smaller."""
STORE_BYTES = 2**34
"""Greatest size of a store or its log in bytes; a million cells of 24 measures take 1/40 of it."""
MATRIX_NAMES = ("matrix.toml", "matrix.json")
"""Names of the copy of the matrix in a run directory."""

_RUN_FILES = frozenset({
    *MATRIX_NAMES, "environment.json", "store.lock", "store.sqlite", "store.sqlite-wal",
    "store.sqlite-shm", "store.sqlite-journal",
})  # fmt: skip
"""The files of a run directory."""

# Follow no link, do not wait for a pipe, and translate no bytes (Windows).
_GUARDED = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def open_file(file: Path, *, most: int, flags: int = os.O_RDONLY, named: bool = False) -> int:
    """The descriptor of an opened regular file that has no other name (hard link).

    `flags` are those of `os.open`. With `named`, the user named this very file: links are followed
    and hard links allowed. OSError if the file is of another kind, or larger than `most` bytes.
    """
    if os.path.lexists(file):  # before opening it, which has effects on some devices
        check_file(file, most=most, named=named)
    elif not flags & os.O_CREAT:
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), str(file))
    links = getattr(os, "O_NOFOLLOW", 0) if named else 0
    descriptor = os.open(file, flags | _GUARDED & ~links, 0o644)
    try:  # once more: it may have been replaced in between
        _check(os.fstat(descriptor), file, most, named)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def check_file(file: Path, *, most: int, named: bool = False) -> os.stat_result:
    """The status of a file; OSError if `open_file` refuses it. It is not opened."""
    status = os.stat(file, follow_symlinks=named)
    _check(status, file, most, named)
    return status


def _check(status: os.stat_result, file: Path, most: int, named: bool) -> None:
    why = "" if stat.S_ISREG(status.st_mode) else "it is not a regular file"
    if stat.S_ISLNK(status.st_mode):
        why = "it is a link; a run directory holds its own files"
    elif stat.S_ISDIR(status.st_mode):
        why = "it is a directory, not a file"
    if not why and status.st_nlink > 1 and not named:
        why = "it has another name (a hard link); copy the directory, and use the copy"
    if not why and status.st_size > most:
        why = f"it is larger than {most // 2**20:,} MiB"
    if why:
        raise OSError(errno.EINVAL, why, str(file))


def read_file(file: Path, *, most: int, named: bool = False) -> bytes:
    """The content of a file that `open_file` opens; OSError if it cannot, or is too large."""
    with os.fdopen(open_file(file, most=most, named=named), "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        content = stream.read(size + 1)
    if len(content) > size:
        raise OSError(errno.EFBIG, "it has grown, or does not tell its size", str(file))
    return content


def read_matrix(directory: Path) -> tuple[Path, bytes] | None:
    """The matrix file of a run directory, and its content; StoreError if it is refused.

    None if there is no matrix file.
    """
    for name in MATRIX_NAMES:
        if os.path.lexists(file := directory / name):
            try:
                return file, read_file(file, most=MATRIX_BYTES)
            except OSError as error:
                why = error.strerror or error
                raise StoreError(f"{file}: cannot be read: {why}") from error
    return None


def check_output(file: Path) -> Path:
    """The file that the user names to write to, unchanged.

    InputError if it is a directory or a file of a run, or may be such a file under another name (a
    hard link): a report written over a store would destroy the run.
    """
    if "\0" in str(file):
        raise InputError(f"{str(file)!r} is not a name of a file: it holds a zero byte")
    place = Path(os.path.realpath(file))  # which a circle of links does not stop
    if place.is_dir():
        raise InputError(f"{file}: is a directory; name a file")
    if place.is_file() and place.stat().st_nlink > 1:
        raise InputError(f"{file}: has another name (a hard link); remove it, or name another file")
    folder = place.parent
    if place.name.casefold() in _RUN_FILES and (folder / "store.sqlite").exists():
        raise InputError(
            f"{file}: is a file of the run in {folder}, which it would overwrite; name another file"
        )
    return file


def write_file(file: Path, content: str | bytes) -> None:
    """Write a file whole or not at all; a link is replaced, not followed.

    A file that is replaced hands on its permissions. OSError names the file.
    """
    part = file.with_name(f".fpbench-{uuid.uuid4().hex}")
    try:
        with part.open("xb") as stream:
            if file.is_file() and not file.is_symlink():
                part.chmod(stat.S_IMODE(file.stat().st_mode))
            stream.write(content.encode() if isinstance(content, str) else content)
        part.replace(file)
    except BaseException as error:
        with contextlib.suppress(OSError):
            part.unlink()
        if isinstance(error, OSError):  # which may name the temporary file
            raise OSError(error.errno, error.strerror or str(error), str(file)) from None
        raise


def write_output(file: Path, content: str | bytes) -> None:
    """Write a file that the user names, whole or not at all; a link is followed.

    A device or a pipe is written to. InputError as `check_output`, or if it cannot be written.
    """
    try:
        check_output(file)
        if file.exists() and not file.is_file():
            file.write_bytes(content.encode() if isinstance(content, str) else content)
        else:
            write_file(Path(os.path.realpath(file)), content)
    except (OSError, UnicodeEncodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"{file}: cannot be written: {why}") from error


def identify(file: Path) -> tuple[int, int] | None:
    """Device and inode, which identify a file even if it is replaced; None if it is missing."""
    try:
        status = os.stat(file, follow_symlinks=False)
    except OSError:
        return None
    return status.st_dev, status.st_ino


_MOST_STEPS = 10_000
"""Steps in which SQLite reads the definitions of hundreds of tables."""


@contextmanager
def limit_steps(db: sqlite3.Connection) -> Iterator[None]:
    """Stop SQLite if the definitions of tables, which it reads before all else, have no end.

    Raises sqlite3.DatabaseError.
    """
    import sqlite3

    db.set_progress_handler(lambda: True, _MOST_STEPS)
    try:
        yield
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_INTERRUPT:
            raise
        raise sqlite3.DatabaseError("its list of tables has no end") from error
    finally:
        db.set_progress_handler(None, 0)


def find_damage(db: sqlite3.Connection) -> str:
    """Why the pages of a file are not trees that share no page; empty if they are.

    The caller has checked the definitions: SQLite computes their constraints.
    """
    problem: str = db.execute("PRAGMA quick_check(1)").fetchone()[0]
    return "" if problem == "ok" else problem.splitlines()[-1]
