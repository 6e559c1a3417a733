"""The book of a ledger that is kept in an SQLite file."""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager
from os import PathLike
from pathlib import Path

from fpbench.base.errors import InputError
from fpbench.privacy import ledger_tables
from fpbench.privacy.ledger_books import Amount, Check, Spending

PATIENCE = 60.0
"""Seconds to wait for others who are writing."""
_LONGEST = 1 << 20
"""Bytes of a text or of a row, at most."""


class FileBook:
    """A book that threads and processes share, and that a crash does not shorten.

    A write is one transaction that nobody else can get between (BEGIN IMMEDIATE), and is on disk
    when it returns, as is the end of its rollback journal (synchronous = EXTRA). There is no
    write-ahead log: between writes, the one file holds everything, and a copy of it that was taken
    during a write is found out when it is opened (`ledger_tables`). The threads of a process take
    turns on one connection; a forked process opens its own, as SQLite demands.

    Parameters
    ----------
    path
        The file; made if it is not there.
    terms
        What the budget is; a file with others is refused.

    Raises
    ------
    InputError
        If the file is none of a ledger, of another budget, or not whole, or cannot be written.
    """

    def __init__(self, path: str | PathLike[str], terms: dict[str, str]) -> None:
        self.path, self._terms = Path(path).absolute(), terms
        self._forget()
        with self._turn(create=True):
            pass

    def total(self) -> Amount:
        """All that was spent."""
        with self._turn() as db, _transaction(db, "DEFERRED"):
            return ledger_tables.read_head(db).total

    def add(self, cost: Amount, entries: list[Spending], check: Check) -> None:
        """Write entries down if `check` does not raise."""
        with self._turn() as db, _transaction(db):
            head = ledger_tables.read_head(db)
            check(head.total)
            ledger_tables.append(db, head, cost, entries)

    def entries(self) -> list[Spending]:
        """What was written down, in order."""
        with self._turn() as db:
            return ledger_tables.read_entries(db)

    def __getstate__(self) -> tuple[Path, dict[str, str]]:
        return self.path, self._terms

    def __setstate__(self, state: tuple[Path, dict[str, str]]) -> None:
        self.path, self._terms = state
        self._forget()

    def _forget(self) -> None:
        self._pid, self._lock = os.getpid(), threading.Lock()
        self._db: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None

    @contextmanager
    def _turn(self, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        if self._pid != os.getpid():
            _OF_PARENTS.append(self._db)
            self._forget()
        try:
            with self._lock:
                if create and not self.path.exists():
                    _create(self.path, self._terms)
                if self._db is None:
                    self._db = self._open()
                elif self._file != self._identity():
                    raise InputError(f"the ledger {self.path} was moved, deleted or replaced")
                yield self._db
        except (sqlite3.Error, OSError) as error:
            raise InputError(f"the ledger {self.path} cannot be used: {error}") from error

    def _open(self) -> sqlite3.Connection:
        """Open the file; who leaves a write-ahead log must be alone, so others close and return."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return self._open_once()
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > end:
                    raise
            time.sleep(0.01 + 0.001 * secrets.randbelow(200))

    def _open_once(self) -> sqlite3.Connection:
        # Mode rw: a file that is not there any more is an error, not a budget that starts afresh.
        db = _connect(self.path, "rw")
        try:
            # The first entry to be read must be of the file whose identity is kept.
            identity = self._identity()
            if ledger_tables.is_old(db, self.path):
                _leave_wal(db)
                with _transaction(db):
                    if ledger_tables.is_old(db, self.path):  # unless another process was faster
                        self._check_terms(ledger_tables.read_terms(db))
                        ledger_tables.upgrade(db, self._terms)
            _leave_wal(db)
            with _transaction(db, "DEFERRED"):
                self._check_terms(ledger_tables.read_terms(db))
                ledger_tables.check(db, self._terms)
            if identity != self._identity():
                raise InputError(f"the ledger {self.path} was moved, deleted or replaced")
        except BaseException:
            db.close()
            raise
        weakref.finalize(self, _close, db, self._pid)
        self._file = identity
        return db

    def _check_terms(self, found: dict[str, str]) -> None:
        if found != self._terms:
            different = [name for name, value in self._terms.items() if found.get(name) != value]
            has, asked = (
                ", ".join(f"{name} = {of.get(name)}" for name in different)
                for of in (found, self._terms)
            )
            raise InputError(f"{self.path} is the ledger of another budget: {has}, not {asked}")

    def _identity(self) -> tuple[int, int]:
        status = self.path.stat()
        return status.st_dev, status.st_ino


_OF_PARENTS: list[sqlite3.Connection | None] = []
"""Connections that came with a fork: to use them, even to close them, may break the parent's."""


def _close(db: sqlite3.Connection, pid: int) -> None:
    if pid == os.getpid():
        db.close()


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    db = sqlite3.connect(
        f"{path.as_uri()}?mode={mode}", uri=True, timeout=PATIENCE, isolation_level=None,
        check_same_thread=False,
    )  # fmt: skip
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
    db.execute("PRAGMA trusted_schema = OFF")
    db.execute("PRAGMA cell_size_check = ON")
    # Of a rollback journal, FULL would leave the end to the file system: after a power failure
    # the last transaction, whose answer was given, could be rolled back.
    db.execute("PRAGMA synchronous = EXTRA")
    return db


def _create(path: Path, terms: dict[str, str]) -> None:
    """Make a ledger that appears under its name when it is whole, and never replaces another."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with closing(_connect(draft, "rwc")) as db, _transaction(db):
            ledger_tables.create(db, terms)
        try:
            os.link(draft, path)
        except FileExistsError:  # another process was faster
            return
    finally:
        draft.unlink(missing_ok=True)
    if os.name == "posix":  # elsewhere a directory cannot be opened, and needs not be
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


@contextmanager
def _transaction(db: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    db.execute(f"BEGIN {kind}")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _leave_wal(db: sqlite3.Connection) -> None:
    """Put a write-ahead log into the file, and keep none.

    Raises
    ------
    sqlite3.OperationalError
        If the file is locked: others have it open, too.
    """
    ((mode,),) = db.execute("PRAGMA journal_mode = DELETE").fetchall()
    if mode != "delete":
        raise sqlite3.OperationalError(f"its journal mode stays {mode}")
