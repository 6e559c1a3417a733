"""The books of ledgers: in memory, and in an SQLite file that is checked for completeness.

In the file, the table `total` holds the sum of all costs and the number of entries, which have
numbers without a gap. So an older or newer page, a deleted entry and a changed total contradict the
rest. An edit of entries together with their total is not noticed: whoever may write to the file may
spend what it holds.
"""

from __future__ import annotations

import os
import re
import secrets
import sqlite3
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from fpbench.base.errors import InputError
from fpbench.base.files import find_damage, limit_steps
from fpbench.base.text import to_fraction
from fpbench.components.guarantee import Guarantee

PATIENCE = 60.0
"""Seconds to wait for other writers."""
_LONGEST = 1 << 20
"""Most bytes of a text or of a row."""
_ATTEMPTS = 10
"""Attempts to write to a file that another program keeps switching to a write-ahead log."""
APPLICATION = 0x66706C67
"""Marks an SQLite file as a ledger: `fplg`."""
VERSION = 3
"""Version of the tables."""

_SCHEMA = {
    "terms": "CREATE TABLE terms (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "total": "CREATE TABLE total (first TEXT NOT NULL, second TEXT NOT NULL, "
    "entries INTEGER NOT NULL)",
    "entries": "CREATE TABLE entries (id INTEGER PRIMARY KEY, epsilon REAL NOT NULL, "
    "delta REAL NOT NULL, neighbours TEXT NOT NULL, rho REAL, times INTEGER NOT NULL, "
    "note TEXT NOT NULL, at TEXT NOT NULL)",
}
_COLUMNS = "id, epsilon, delta, neighbours, rho, times, note, at"
_NUMBER = re.compile(r"\d{1,2000}(/\d{1,2000})?", re.ASCII)
"""A fraction as text; no sum of 64-bit numbers needs so many digits."""


Accounting: TypeAlias = Literal["basic", "zcdp"]
"""The unit of costs: epsilon and delta, or rho of zero-concentrated differential privacy."""

Amount: TypeAlias = tuple[Fraction, Fraction]
"""An exact sum: epsilon and delta, or rho and 0."""

Check: TypeAlias = Callable[[Amount], None]
"""Raises if nothing may be added to this total."""


@dataclass(frozen=True)
class Spending:
    """One entry of a ledger."""

    guarantee: Guarantee
    times: int
    """Number of equal releases."""
    note: str


def price_release(guarantee: Guarantee, accounting: str) -> Amount:
    """The cost of one release; InputError if `zcdp` accounting lacks a rho."""
    if accounting == "basic":
        return to_fraction(guarantee.epsilon), to_fraction(guarantee.delta)
    if guarantee.rho is None:
        raise InputError(
            "the budget is accounted for by zcdp, and the guarantee of this release has no rho"
        )
    return to_fraction(guarantee.rho), Fraction(0)


class Book(Protocol):
    """Storage of a ledger's entries."""

    def total(self) -> Amount:
        """The sum of all costs."""

    def add(self, cost: Amount, entries: list[Spending], check: Check) -> None:
        """Add entries, unless `check` raises."""

    def entries(self) -> list[Spending]:
        """All entries, in order."""


class MemoryBook:
    """A book that ends with its process; threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._total: Amount = (Fraction(0), Fraction(0))
        self._entries: list[Spending] = []

    def total(self) -> Amount:
        """The sum of all costs."""
        return self._total

    def add(self, cost: Amount, entries: list[Spending], check: Check) -> None:
        """Add entries, unless `check` raises."""
        with self._lock:
            check(self._total)
            self._total = (self._total[0] + cost[0], self._total[1] + cost[1])
            self._entries.extend(entries)

    def entries(self) -> list[Spending]:
        """All entries, in order."""
        with self._lock:
            return list(self._entries)


class FileBook:
    """A book that threads and processes share, and that survives a crash.

    A write is one exclusive transaction (BEGIN IMMEDIATE). When it returns, it is on disk, and so
    is the end of its rollback journal (synchronous = EXTRA). There is no write-ahead log: between
    writes the one file holds everything, and opening a copy that was taken during a write fails. If
    another program has switched a log on, a write switches it off, or fails. The threads of a
    process take turns on one connection; a forked process opens its own, as SQLite demands.

    A missing file is created. InputError if the file is no ledger, has other `terms` (the budget by
    name), is damaged, was put back to a state before the last that this book read, or cannot be
    written.
    """

    _last: tuple[Any, ...] | None = None
    """The last entry that this book read or wrote."""

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
                        last = append(db, head, cost, entries)
                if last is not None:
                    self._last = last
                    return
                _leave_wal(db)
            raise sqlite3.OperationalError("another program keeps switching its journal mode")

    def entries(self) -> list[Spending]:
        """All entries, in order."""
        with self._take_turn() as db, _hold_transaction(db, "DEFERRED"):
            self._read_head(db)
            return read_entries(db)

    def _read_head(self, db: sqlite3.Connection) -> Head:
        head = read_head(db, self._last)
        self._last = head.last
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
            check_tables(db, self.path)
            _leave_wal(db)
            with _hold_transaction(db, "DEFERRED"):
                self._check_terms(read_terms(db))
                check(db, self._terms)
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
            create_tables(db, terms)
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


class Head(NamedTuple):
    """Total and last entry of a ledger, as the file states them."""

    total: Amount
    last: tuple[Any, ...] | None
    """All its columns; None before the first entry."""

    @property
    def entries(self) -> int:
        """Number of entries."""
        return int(self.last[0]) if self.last else 0


class DamagedError(sqlite3.DatabaseError):
    """A ledger's file is incomplete, or was edited."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"it is damaged: {what}; restore a whole copy, or what was spent is not known"
        )


def create_tables(db: sqlite3.Connection, terms: dict[str, str]) -> None:
    """Fill an empty file with the tables of an unspent ledger."""
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    for statement in _SCHEMA.values():
        db.execute(statement)
    db.executemany("INSERT INTO terms VALUES (?, ?)", terms.items())
    db.execute("INSERT INTO total VALUES ('0', '0', 0)")
    db.execute(f"PRAGMA user_version = {VERSION}")


def check_tables(db: sqlite3.Connection, path: object) -> None:
    """Check that a file has the tables of a ledger.

    Raises InputError if it is no ledger of this version; DamagedError if its tables have other
    definitions, or its pages are damaged.
    """
    with limit_steps(db):
        ((mark,),) = db.execute("PRAGMA application_id").fetchall()
        schema = dict(db.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
    if not mark and not schema:
        raise InputError(
            f"{path} is empty: it was copied without the file {path}-wal beside it, or "
            "cut off. If nothing was ever spent, delete it, and a new ledger is made"
        )
    if mark != APPLICATION:
        raise InputError(f"{path} is an SQLite file, but not of a ledger")
    ((version,),) = db.execute("PRAGMA user_version").fetchall()
    if version != VERSION:
        raise InputError(
            f"{path} is a ledger of version {version}, and this fpbench reads {VERSION} only"
        )
    if schema != _SCHEMA:  # a trigger could undo what is written
        raise DamagedError("its tables are not those of a ledger")
    if damage := find_damage(db):
        raise DamagedError(damage)


def check(db: sqlite3.Connection, terms: dict[str, str]) -> None:
    """Check every entry of the file; DamagedError names the first one that does not fit."""
    total, counts = read_head(db).total, Counter[Guarantee]()
    for number, row in enumerate(db.execute(f"SELECT {_COLUMNS} FROM entries ORDER BY id"), 1):
        if row[0] != number:
            raise DamagedError(f"entry {number} is missing")
        entry = _read_entry(row)
        counts[entry.guarantee] += entry.times
    _check_total(total, counts, terms)


def read_terms(db: sqlite3.Connection) -> dict[str, str]:
    """The terms of the budget, by name."""
    terms = dict(db.execute("SELECT name, value FROM terms"))
    if not all(isinstance(text, str) for item in terms.items() for text in item):
        raise DamagedError("its terms are not text")
    return terms


def read_head(db: sqlite3.Connection, known: tuple[Any, ...] | None = None) -> Head:
    """Total and last entry; DamagedError if they contradict each other.

    `known`: an entry that was read earlier; it must still be there.
    """
    one = f"SELECT {_COLUMNS} FROM entries WHERE id = ?"
    if known is not None and db.execute(one, known[:1]).fetchone() != known:
        raise DamagedError(f"entry {known[0]} is gone: an earlier state of the file was put back")
    rows = db.execute("SELECT first, second, entries FROM total").fetchall()
    if len(rows) != 1:
        raise DamagedError("its total is missing" if not rows else "it has several totals")
    first, second, entries = rows[0]
    last = db.execute(f"SELECT {_COLUMNS} FROM entries ORDER BY id DESC LIMIT 1").fetchone()
    head = Head((_read_number(first), _read_number(second)), last)
    if head.entries != entries:
        raise DamagedError(
            f"its last entry is {head.entries}, and its total is of {entries} entries"
        )
    return head


def append(
    db: sqlite3.Connection, head: Head, cost: Amount, entries: Iterable[Spending]
) -> tuple[Any, ...]:
    """Append entries, and write the new total; return the last entry."""
    at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    rows = [
        (number, float(g.epsilon), float(g.delta), str(g.neighbours),
         None if g.rho is None else float(g.rho), int(entry.times), entry.note, at)
        for number, entry in enumerate(entries, head.entries + 1)
        for g in (entry.guarantee,)
    ]  # fmt: skip
    db.executemany(f"INSERT INTO entries ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
    sums = [str(spent + more) for spent, more in zip(head.total, cost, strict=True)]
    db.execute("UPDATE total SET first = ?, second = ?, entries = ?", [*sums, rows[-1][0]])
    return rows[-1]


def read_entries(db: sqlite3.Connection) -> list[Spending]:
    """All entries, in order."""
    return [_read_entry(row) for row in db.execute(f"SELECT {_COLUMNS} FROM entries ORDER BY id")]


def _check_total(total: Amount, counts: Counter[Guarantee], terms: dict[str, str]) -> None:
    """Compare the total with the costs of all entries; equal guarantees are priced once."""
    first = second = Fraction(0)
    for guarantee, times in counts.items():
        cost = price_release(guarantee, terms["accounting"])
        first, second = first + times * cost[0], second + times * cost[1]
    if total != (first, second):
        stated, summed = (
            " and ".join(f"{value!s:.40}" for value in amount)
            for amount in (total, (first, second))
        )
        raise DamagedError(f"its total is {stated}, and its entries cost {summed}")


def _read_entry(row: Iterable[Any]) -> Spending:
    number, epsilon, delta, neighbours, rho, times, note, at = row
    real = isinstance(epsilon, float) and isinstance(delta, float) and isinstance(rho, float | None)
    whole = isinstance(times, int) and times >= 1
    if not (real and whole and isinstance(note, str) and isinstance(at, str)):
        raise DamagedError(f"entry {number!r:.40} has values of the wrong type")
    try:
        return Spending(Guarantee(epsilon, delta, neighbours, rho), times, note)
    except InputError as error:
        raise DamagedError(f"entry {number!r:.40}: {error}") from error


def _read_number(text: object) -> Fraction:
    if isinstance(text, str) and _NUMBER.fullmatch(text):
        try:
            return Fraction(text)
        except ZeroDivisionError:
            pass
    raise DamagedError(f"its total is not a fraction: {text!r:.60}")
