"""The tables of a store, and the check that a file is one."""

from __future__ import annotations

import sqlite3
from functools import cache

from fpbench.base.databases import find_damage, limit_steps
from fpbench.base.errors import StoreError

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
