"""A store that is open: to write, under the lock of its run directory, or to read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from fpbench.base.errors import RunLostError, StoreError
from fpbench.base.files import identify
from fpbench.store.connections import (
    Reader,
    beside,
    check_store,
    connect_reader,
    connect_writer,
    copied,
    hint,
    keep_log,
)
from fpbench.store.locks import STORE, Lock, holds
from fpbench.store.schema import VERSION, create, migrate, version_of

_DAMAGE = (sqlite3.Error, ValueError, TypeError, LookupError, OverflowError, RecursionError)


class OpenStore:
    """The file of a run on disk, and who may write to it; see `fpbench.store.store.Store`."""

    def __init__(self, directory: Path, *, create: bool = False) -> None:
        self.directory, self._lock = directory, None
        file = directory / STORE
        if not file.exists() and not create:
            raise StoreError(f"{directory}: not a run directory ({STORE} is not there)")
        if directory.exists() and not directory.is_dir():
            raise StoreError(f"{directory}: is not a directory; choose another with --out")
        self._db: sqlite3.Connection | None = None
        self._written: dict[Path, tuple[int, int] | None] = {}
        self._loose = 0
        try:
            if create:
                directory.mkdir(parents=True, exist_ok=True)
                check_store(file)  # before anything is written, the lock included
                self._lock = Lock(directory)
                self._db = connect_writer(file)
                self._prepare(file)
            else:
                self._db = connect_reader(file, own=holds(directory))
                self._look(file)
        except (OSError, *_DAMAGE) as error:
            self.close()
            if isinstance(error, StoreError):
                raise
            where, why = file, str(error)
            if isinstance(error, OSError):
                where, why = Path(error.filename or file), error.strerror or why
            raise StoreError(f"{where}: cannot be used: {why}") from error

    @property
    def _open(self) -> sqlite3.Connection:
        assert self._db is not None
        return self._db

    def _prepare(self, file: Path) -> None:
        """Make the tables, or bring them to this version."""
        db = self._open
        version = 0
        if db.execute("PRAGMA user_version").fetchone() != (0,):
            version = version_of(db, str(file))
        keep_log(db)
        if version == 0:
            with self.writing():
                create(db)
        elif version < VERSION:
            migrate(db, version)
        db.execute("PRAGMA synchronous = NORMAL")
        (self._loose,) = db.execute("SELECT COUNT(*) FROM result").fetchone()
        self._written = {each: identify(each) for each in (file, beside(file, "-wal"))}

    def check_there(self) -> None:
        """See that what is written is what the names of the run directory lead to.

        Raises
        ------
        RunLostError
            If the directory, the store or its log was deleted, moved or replaced.
        """
        for file, known in self._written.items():
            if identify(file) != known:
                raise RunLostError(
                    f"{file}: was deleted, moved or replaced while the run wrote to it, so its "
                    "results are not there; run again"
                )

    def _look(self, file: Path) -> None:
        """Read only: what an earlier version wrote is brought to this one in a private copy."""
        if (version := version_of(self._open, str(file))) < VERSION:
            copy = copied(self._open)
            self.close()
            self._db = copy
            migrate(copy, version)
        self._open.execute("PRAGMA query_only = ON")

    def close(self) -> None:
        """Close the file, and let others write."""
        if self._db is not None:
            self._db.close()
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, query: str, given: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        with self._reading():
            yield from self._open.execute(query, given)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """A damaged file is one clear error, and so is one that is changed meanwhile."""
        try:
            yield
            self._check_unchanged()
        except _DAMAGE as error:
            if isinstance(error, StoreError):
                raise
            self._check_unchanged()  # or the damage is that of two states in one
            raise StoreError(f"{self.directory / STORE}: cannot be read: {error}") from error

    def _check_unchanged(self) -> None:
        try:
            if isinstance(self._db, Reader):
                self._db.check()
        except OSError as error:
            raise StoreError(f"{error.filename}: cannot be read: {error.strerror}") from error

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction: all or nothing. A full disk or another writer is one clear error."""
        db = self._open
        try:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.check_there()
            except BaseException:
                if db.in_transaction:  # a full disk has ended it already
                    db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")
        except sqlite3.Error as error:
            self.check_there()  # or that is why
            file = self.directory / STORE
            raise StoreError(f"{file}: cannot be written: {error}{hint(error)}") from error
