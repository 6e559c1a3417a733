"""Where a ledger writes down what was spent: in memory, or in an SQLite file."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Protocol, TypeAlias

from fpbench.errors import InputError
from fpbench.privacy import Guarantee

Amount: TypeAlias = tuple[Fraction, Fraction]
"""What is added up exactly: epsilon and delta, or rho and nothing."""

Check: TypeAlias = Callable[[Amount], None]
"""Is told the total so far, and raises if no more may be added."""

APPLICATION = 0x66706C67
"""Marks an SQLite file as a ledger: `fplg`."""
PATIENCE = 60.0
"""Seconds to wait for others who are writing."""

_TABLES = (
    f"PRAGMA application_id = {APPLICATION}",
    "CREATE TABLE terms (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE total (first TEXT NOT NULL, second TEXT NOT NULL)",
    "INSERT INTO total VALUES ('0', '0')",
    "CREATE TABLE entries (id INTEGER PRIMARY KEY, epsilon REAL NOT NULL, delta REAL NOT NULL, "
    "neighbours TEXT NOT NULL, rho REAL, times INTEGER NOT NULL, note TEXT NOT NULL, "
    "at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')))",
)


@dataclass(frozen=True)
class Spending:
    """One entry of a ledger."""

    guarantee: Guarantee
    times: int
    """How many releases alike."""
    note: str


class Book(Protocol):
    """Where a ledger writes."""

    def total(self) -> Amount:
        """All that was spent."""

    def add(self, cost: Amount, entries: list[Spending], check: Check) -> None:
        """Write entries down if `check` does not raise."""

    def entries(self) -> list[Spending]:
        """What was written down, in order."""


class MemoryBook:
    """A book that is forgotten with its process; threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._total: Amount = (Fraction(0), Fraction(0))
        self._entries: list[Spending] = []

    def total(self) -> Amount:
        """All that was spent."""
        return self._total

    def add(self, cost: Amount, entries: list[Spending], check: Check) -> None:
        """Write entries down if `check` does not raise."""
        with self._lock:
            check(self._total)
            self._total = (self._total[0] + cost[0], self._total[1] + cost[1])
            self._entries.extend(entries)

    def entries(self) -> list[Spending]:
        """What was written down, in order."""
        with self._lock:
            return list(self._entries)


class FileBook:
    """A book that threads and processes share, and that a crash does not shorten.

    A write is one transaction that nobody else can get between (BEGIN IMMEDIATE), and is on disk
    when it returns (synchronous = FULL). The threads of a process take turns on one connection; a
    forked process opens its own, as SQLite demands.

    Parameters
    ----------
    path
        The file; made if it is not there.
    terms
        What the budget is; a file with others is refused.

    Raises
    ------
    InputError
        If the file is none of a ledger, or of another budget, or cannot be written.
    """

    def __init__(self, path: str | PathLike[str], terms: dict[str, str]) -> None:
        self.path = Path(path).absolute()
        self._forget()
        with self._turn("rwc") as db:
            if self._is_new(db):
                _patiently(db, "PRAGMA journal_mode = WAL")
                with _transaction(db):
                    if self._is_new(db):  # another process may have made it meanwhile
                        for statement in _TABLES:
                            db.execute(statement)
                        db.executemany("INSERT INTO terms VALUES (?, ?)", terms.items())
            found = dict(db.execute("SELECT name, value FROM terms"))
        if found != terms:
            different = [name for name in terms if found.get(name) != terms[name]]
            has, asked = (
                ", ".join(f"{name} = {of.get(name)}" for name in different) for of in (found, terms)
            )
            raise InputError(f"{self.path} is the ledger of another budget: {has}, not {asked}")

    def total(self) -> Amount:
        """All that was spent."""
        with self._turn() as db:
            return _total(db)

    def add(self, cost: Amount, entries: list[Spending], check: Check) -> None:
        """Write entries down if `check` does not raise."""
        with self._turn() as db, _transaction(db):
            total = _total(db)
            check(total)
            db.execute(
                "UPDATE total SET first = ?, second = ?",
                [str(spent + more) for spent, more in zip(total, cost, strict=True)],
            )
            db.executemany(
                "INSERT INTO entries (epsilon, delta, neighbours, rho, times, note) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (g.epsilon, g.delta, g.neighbours, g.rho, entry.times, entry.note)
                    for entry in entries
                    for g in (entry.guarantee,)
                ],
            )

    def entries(self) -> list[Spending]:
        """What was written down, in order."""
        with self._turn() as db:
            rows = db.execute(
                "SELECT epsilon, delta, neighbours, rho, times, note FROM entries ORDER BY id"
            ).fetchall()
        return [Spending(Guarantee(*row[:4]), *row[4:]) for row in rows]

    def __getstate__(self) -> Path:
        return self.path

    def __setstate__(self, path: Path) -> None:
        self.path = path
        self._forget()

    def _is_new(self, db: sqlite3.Connection) -> bool:
        # In this order: another process may make it in between, tables and mark at once.
        ((tables,),) = db.execute("SELECT count(*) FROM sqlite_master").fetchall()
        ((mark,),) = db.execute("PRAGMA application_id").fetchall()
        if mark == APPLICATION:
            return False
        if mark or tables:
            raise InputError(f"{self.path} is an SQLite file, but not of a ledger")
        return True

    def _forget(self) -> None:
        self._pid, self._lock = os.getpid(), threading.Lock()
        self._db: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None

    @contextmanager
    def _turn(self, mode: str = "rw") -> Iterator[sqlite3.Connection]:
        if self._pid != os.getpid():
            _OF_PARENTS.append(self._db)
            self._forget()
        try:
            with self._lock:
                if self._db is None:
                    self._db = self._open(mode)
                elif self._file != self._identity():
                    raise InputError(f"the ledger {self.path} was moved, deleted or replaced")
                yield self._db
        except (sqlite3.Error, OSError) as error:
            raise InputError(f"the ledger {self.path} cannot be used: {error}") from error

    def _open(self, mode: str) -> sqlite3.Connection:
        # Mode rw: a file that is not there any more is an error, not a budget that starts afresh.
        address = f"{self.path.as_uri()}?mode={mode}"
        db = sqlite3.connect(
            address, uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False
        )
        weakref.finalize(self, _close, db, self._pid)
        db.execute("PRAGMA synchronous = FULL")
        self._file = self._identity()
        return db

    def _identity(self) -> tuple[int, int]:
        found = self.path.stat()
        return found.st_dev, found.st_ino


_OF_PARENTS: list[sqlite3.Connection | None] = []
"""Connections that came with a fork: to use them, even to close them, may break the parent's."""


def _close(db: sqlite3.Connection, pid: int) -> None:
    if pid == os.getpid():
        db.close()


@contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _total(db: sqlite3.Connection) -> Amount:
    rows = db.execute("SELECT first, second FROM total").fetchall()
    if len(rows) != 1:
        raise sqlite3.DatabaseError("it is damaged: its total is missing")
    try:
        first, second = (Fraction(number) for number in rows[0])
    except (ValueError, TypeError, ZeroDivisionError) as error:
        raise sqlite3.DatabaseError(f"it is damaged: its total is {rows[0]!r}") from error
    return first, second


def _patiently(db: sqlite3.Connection, statement: str) -> None:
    """Execute what SQLite does not wait for by itself while others hold the file."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            db.execute(statement)
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            return
