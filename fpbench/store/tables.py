"""The tables of a store: the check that a file has them, the plan, and pages of results.

All writes are within a caller's transaction.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from functools import cache
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from fpbench.base.databases import find_damage, limit_steps
from fpbench.base.errors import StoreError
from fpbench.matrix.plan import Cell
from fpbench.store.packing import make_storable
from fpbench.store.results import lay_out

PAGE = 4_096
"""Cells of a page; results that are done wait as JSON until there are as many."""
_PLANNED = 65_536
"""Cells of a page of the plan."""
APPLICATION = 0x66707374
"""Marks an SQLite file as a store: `fpst`."""
VERSION = 3
"""Version of the tables."""

_TABLES = """
CREATE TABLE about (
    name TEXT PRIMARY KEY, value TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE session (
    id INTEGER PRIMARY KEY, started REAL NOT NULL, environment TEXT NOT NULL
);
CREATE TABLE timing (
    action TEXT, component TEXT, count INTEGER NOT NULL, seconds REAL NOT NULL,
    PRIMARY KEY (action, component)
) WITHOUT ROWID;
CREATE TABLE known (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE);
CREATE TABLE combination (id INTEGER PRIMARY KEY, labels TEXT NOT NULL, reason TEXT);
CREATE TABLE planned (id INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE result (
    number INTEGER PRIMARY KEY REFERENCES known, session INTEGER NOT NULL REFERENCES session,
    status TEXT NOT NULL, seconds REAL NOT NULL, measures TEXT NOT NULL, reason TEXT, trace TEXT
);
CREATE TABLE page (id INTEGER PRIMARY KEY, count INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE measure (
    page INTEGER NOT NULL REFERENCES page, name TEXT NOT NULL, kind TEXT NOT NULL,
    data BLOB NOT NULL, levels TEXT, PRIMARY KEY (page, name)
);
"""
"""Cells are numbered by their keys. Results are written as JSON; final ones are moved to pages."""


def create(db: sqlite3.Connection) -> None:
    """Make the tables in an empty file; within the caller's transaction."""
    for statement in _TABLES.split(";"):  # executescript would commit
        db.execute(statement)
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    db.execute(f"PRAGMA user_version = {VERSION}")


def is_empty(db: sqlite3.Connection) -> bool:
    """Whether a file holds nothing yet; the run that made it may have been killed."""
    with limit_steps(db):
        return db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None


def check_content(db: sqlite3.Connection, name: str) -> None:
    """Check that a file is an undamaged store, before anything else is read of it.

    A store may come from anybody: a view or a trigger in it would be code.

    Raises StoreError if it is not a store of this version, or holds other tables; sqlite3.Error if
    it is damaged.
    """
    with limit_steps(db):
        (application,) = db.execute("PRAGMA application_id").fetchone()
        (version,) = db.execute("PRAGMA user_version").fetchone()
        tables = _read_tables(db)
    if (application, version) != (APPLICATION, VERSION):
        raise StoreError(f"{name}: another version of fpbench made it: run its matrix again")
    if tables != _make_expected():
        odd = sorted({row[1] for row in tables ^ _make_expected()})
        raise StoreError(f"{name}: is not a store of fpbench: see {', '.join(odd)}")
    if damage := find_damage(db):
        raise sqlite3.DatabaseError(damage)


@cache
def _make_expected() -> frozenset[tuple[str, str, str]]:
    db = sqlite3.connect(":memory:", isolation_level=None)
    create(db)
    tables = _read_tables(db)
    db.close()
    return tables


def _read_tables(db: sqlite3.Connection) -> frozenset[tuple[str, str, str]]:
    """Type, name and text of all definitions; the indexes that SQLite adds by itself have none."""
    return frozenset(db.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL"))


def number_key(db: sqlite3.Connection, key: str) -> int:
    """The number of a cell's key; a new one for a new key."""
    row = db.execute("SELECT id FROM known WHERE key = ?", (key,)).fetchone()
    if row is not None:
        return int(row[0])
    new = db.execute("INSERT INTO known (key) VALUES (?)", (key,)).lastrowid
    assert new is not None
    return new


def write_plan(db: sqlite3.Connection, cells: Iterable[Cell]) -> None:
    """Write a plan, replacing the earlier one."""
    db.execute("DELETE FROM planned")
    db.execute("DELETE FROM combination")
    combinations: dict[tuple[str, str | None], int] = {}

    def number(cell: Cell) -> tuple[int, int, int]:
        reason = None if cell.reason is None else make_storable(cell.reason)
        combination = json.dumps(dict(cell.labels)), reason
        place = combinations.setdefault(combination, len(combinations))
        return number_key(db, cell.key), place, cell.seed

    rows = map(number, cells)
    while page := list(islice(rows, _PLANNED)):
        data = np.array(page, "<i8").T.tobytes()
        db.execute("INSERT INTO planned (data) VALUES (?)", (data,))
    entries = [(place, *combination) for combination, place in combinations.items()]
    db.executemany("INSERT INTO combination VALUES (?, ?, ?)", entries)


def write_pages(db: sqlite3.Connection) -> None:
    """Move the results of cells that are done to pages, where a measure of many is read at once.

    A new result of a cell that is in a page already stays outside: the later one counts.
    """
    paged = set(read_page_numbers(db).tolist())
    query = "SELECT number, session, seconds, measures FROM result WHERE status = 'done'"
    rows = [row for row in db.execute(query) if row[0] not in paged]
    numbers, sessions, times = (np.array([row[i] for row in rows]) for i in range(3))
    for block in lay_out([json.loads(row[3]) for row in rows]):
        whole = np.array([numbers[block.rows], sessions[block.rows]], "<i8").tobytes()
        data = whole + times[block.rows].astype("<f8").tobytes()
        page = db.execute("INSERT INTO page (count, data) VALUES (?, ?)", (len(block.rows), data))
        columns = [
            (page.lastrowid, name, *column.write()) for name, column in block.columns.items()
        ]
        db.executemany("INSERT INTO measure VALUES (?, ?, ?, ?, ?)", columns)
    db.executemany("DELETE FROM result WHERE number = ?", ((row[0],) for row in rows))


def read_page_numbers(db: sqlite3.Connection) -> NDArray[np.int64]:
    """The numbers of the cells whose results are in pages; ValueError if a page is not one."""
    parts = [np.zeros(0, np.int64)]
    for count, data in db.execute("SELECT count, substr(data, 1, 8 * count) FROM page"):
        parts.append(np.frombuffer(data, "<i8", count))
    return np.concatenate(parts)
