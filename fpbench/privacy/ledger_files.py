"""The book of a ledger in an SQLite file."""

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

from fpbench.base.databases import limit_steps
from fpbench.base.errors import InputError
from fpbench.privacy import ledger_tables
from fpbench.privacy.ledger_books import Amount, Check, Spending

PATIENCE = 60.0
"""Seconds to wait for other writers."""
_LONGEST = 1 << 20
"""Most bytes of a text or of a row."""
_ATTEMPTS = 10
"""Attempts to write to a file that another program keeps switching to a write-ahead log."""


class FileBook:
    """A book that threads and processes share, and that survives a crash.

    A write is one exclusive transaction (BEGIN IMMEDIATE). When it returns, it is on disk, and so
    is the end of its rollback journal (synchronous = EXTRA). There is no write-ahead log: between
    writes the one file holds everything, and opening a copy that was taken during a write fails
    (`ledger_tables`). If another program has switched a log on, a write switches it off, or fails.
    The threads of a process take turns on one connection; a forked process opens its own, as SQLite
    demands.

    A missing file is created. InputError if the file is no ledger, has other `terms` (the budget by
    name), is damaged, was put back to a state before the last that this book read, or cannot be
    written.
    """

    _last = 0, ""
    """Number and hash of the last entry that this book read or wrote."""

    def __init__(self, path: str | PathLike[str], terms: dict[str, str]) -> None:
        self.path, self._terms = Path(path).absolute(), terms
        self._forget()
        with self._take_turn(create=True):
            pass

    def total(self) -> Amount:
        """The sum of all costs."""
        with self._take_turn() as db, _hold_transaction(db, "DEFERRED"):
            return self._read_head(db).total

    def add(self, cost: Amount, entries: list[Spending], check: Check) -> None:
        """Add entries, unless `check` raises."""
        with self._take_turn() as db:
            for _ in range(_ATTEMPTS):
                last = None
                with _hold_transaction(db):
                    if not _has_wal(db):
                        head = self._read_head(db)
                        check(head.total)
                        last = ledger_tables.append(db, head, cost, entries)
                if last is not None:
                    self._last = last
                    return
                _leave_wal(db)
            raise sqlite3.OperationalError("another program keeps switching its journal mode")

    def entries(self) -> list[Spending]:
        """All entries, in order."""
        with self._take_turn() as db, _hold_transaction(db, "DEFERRED"):
            self._read_head(db)
            return ledger_tables.read_entries(db)

    def _read_head(self, db: sqlite3.Connection) -> ledger_tables.Head:
        head = ledger_tables.read_head(db, self._last)
        self._last = head.entries, head.chain
        return head

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
    def _take_turn(self, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        if self._pid != os.getpid():
            _OF_PARENTS.append(self._db)
            self._forget()
        try:
            with self._lock:
                if create and not self.path.exists():
                    _create(self.path, self._terms)
                if self._db is None:
                    self._db = self._open()
                elif self._file != self._read_identity():
                    raise InputError(f"the ledger {self.path} was moved, deleted or replaced")
                yield self._db
        except (sqlite3.Error, OSError) as error:
            raise InputError(f"the ledger {self.path} cannot be used: {error}") from error
        except UnicodeDecodeError as error:  # of a message of SQLite that repeats what is damaged
            raise InputError(f"the ledger {self.path} cannot be used: it is damaged") from error

    def _open(self) -> sqlite3.Connection:
        """Open the file, and retry: leaving a write-ahead log needs a process to be alone."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return self._open_once()
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > end:
                    raise
            time.sleep(0.01 + 0.001 * secrets.randbelow(200))

    def _open_once(self) -> sqlite3.Connection:
        # Mode rw: a missing file is an error, not a new budget.
        db = _connect(self.path, "rw")
        try:
            # Read first, so that entries are of the file with this identity.
            identity = self._read_identity()
            ledger_tables.check_tables(db, self.path)
            _leave_wal(db)
            with _hold_transaction(db, "DEFERRED"):
                self._check_terms(ledger_tables.read_terms(db))
                ledger_tables.check(db, self._terms)
            if identity != self._read_identity():
                raise InputError(f"the ledger {self.path} was moved, deleted or replaced")
        except BaseException:
            db.close()
            raise
        weakref.finalize(self, _close, db, self._pid)
        self._file = identity
        return db

    def _check_terms(self, stored: dict[str, str]) -> None:
        if stored != self._terms:
            different = [name for name, value in self._terms.items() if stored.get(name) != value]
            actual, expected = (
                ", ".join(f"{name} = {terms.get(name)}" for name in different)
                for terms in (stored, self._terms)
            )
            raise InputError(
                f"{self.path} is the ledger of another budget: {actual}, not {expected}"
            )

    def _read_identity(self) -> tuple[int, int]:
        status = self.path.stat()
        return status.st_dev, status.st_ino


_OF_PARENTS: list[sqlite3.Connection | None] = []
"""Connections inherited by a fork: using or closing them may break the parent's."""


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
    # the last transaction could be rolled back, though its answer was sent.
    with limit_steps(db):  # reads the definitions of tables
        db.execute("PRAGMA synchronous = EXTRA")
    return db


def _create(path: Path, terms: dict[str, str]) -> None:
    """Create a ledger that appears under its name when it is whole, and never replaces another."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with closing(_connect(draft, "rwc")) as db, _hold_transaction(db):
            ledger_tables.create(db, terms)
        try:
            os.link(draft, path)
        except FileExistsError:  # another process was faster
            return
    finally:
        draft.unlink(missing_ok=True)
    if os.name == "posix":  # elsewhere a directory cannot be opened
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


@contextmanager
def _hold_transaction(db: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    db.execute(f"BEGIN {kind}")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _has_wal(db: sqlite3.Connection) -> bool:
    """Whether a write would go to a write-ahead log, as SQLite knows within a transaction only."""
    mode: str = db.execute("PRAGMA journal_mode").fetchone()[0]
    return mode == "wal"


def _leave_wal(db: sqlite3.Connection) -> None:
    """Merge a write-ahead log into the file; OperationalError while others have the file open."""
    ((mode,),) = db.execute("PRAGMA journal_mode = DELETE").fetchall()
    if mode != "delete":
        raise sqlite3.OperationalError(f"its journal mode stays {mode}")
