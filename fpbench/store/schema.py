"""The tables of a store in every version, and the migration from each version to the next."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from functools import cache

from fpbench.base.errors import StoreError
from fpbench.store.writing import number_text, pack_measures, write_pages, write_plan

VERSION = 2
"""The version that this fpbench writes."""

_COMMON = """
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
"""
_OWN = {
    # Measures as JSON: simple, and too slow to read a million of.
    1: """
CREATE TABLE cell (
    position INTEGER PRIMARY KEY, key TEXT NOT NULL, labels TEXT NOT NULL, seed INTEGER NOT NULL,
    reason TEXT
);
CREATE TABLE result (
    key TEXT PRIMARY KEY, session INTEGER NOT NULL REFERENCES session, status TEXT NOT NULL,
    reason TEXT, trace TEXT, seconds REAL NOT NULL, measures TEXT NOT NULL
) WITHOUT ROWID;
""",
    # Keys, labels, names and texts are numbered; measures are packed, the plan and what is done
    # in pages (`packing.py`).
    2: """
CREATE TABLE known (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE);
CREATE TABLE combination (id INTEGER PRIMARY KEY, labels TEXT NOT NULL UNIQUE);
CREATE TABLE layout (id INTEGER PRIMARY KEY, names TEXT NOT NULL UNIQUE);
CREATE TABLE word (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE planned (id INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE result (
    number INTEGER PRIMARY KEY REFERENCES known, session INTEGER NOT NULL REFERENCES session,
    status TEXT NOT NULL, seconds REAL NOT NULL, layout INTEGER NOT NULL REFERENCES layout,
    data BLOB NOT NULL, reason TEXT, trace TEXT
);
CREATE TABLE page (
    id INTEGER PRIMARY KEY, layout INTEGER NOT NULL REFERENCES layout, count INTEGER NOT NULL,
    data BLOB NOT NULL
);
""",
}


def create(db: sqlite3.Connection, version: int = VERSION) -> None:
    """Make the tables of a version in an empty file; within the caller's transaction."""
    _execute(db, _COMMON + _OWN[version])
    db.execute(f"PRAGMA user_version = {version}")


def _execute(db: sqlite3.Connection, script: str) -> None:
    for statement in script.split(";"):  # executescript would commit
        db.execute(statement)


def read_version(db: sqlite3.Connection, name: str) -> int:
    """The version of a store, after a check that it holds its tables and nothing else.

    A store may come from anybody: a view or a trigger in it would be code.

    Raises StoreError if its version is not known here, or it holds other tables than that version
    has.
    """
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version not in _OWN:
        newer = ": a newer one made it" if version > VERSION else ""
        raise StoreError(f"{name}: has format {version}; this fpbench reads 1 to {VERSION}{newer}")
    if (tables := _read_tables(db)) != _make_expected(version):
        odd = sorted({row[1] for row in tables ^ _make_expected(version)})
        raise StoreError(f"{name}: is not a store of fpbench: see {', '.join(odd)}")
    return int(version)


@cache
def _make_expected(version: int) -> frozenset[tuple[str, str, str]]:
    db = sqlite3.connect(":memory:", isolation_level=None)
    create(db, version)
    tables = _read_tables(db)
    db.close()
    return tables


def _read_tables(db: sqlite3.Connection) -> frozenset[tuple[str, str, str]]:
    """Type, name and text of all definitions, except those that SQLite adds by itself."""
    rows = db.execute("SELECT type, name, sql FROM sqlite_master")
    return frozenset(
        # Version 1 was made with IF NOT EXISTS, which SQLite leaves out, too.
        (kind, name, " ".join((sql or "").split()))
        for kind, name, sql in rows
        if not (kind in ("table", "index") and name.startswith("sqlite_"))
    )


def migrate(db: sqlite3.Connection, version: int) -> None:
    """Migrate a store to the version that is written here; all or nothing.

    Raises sqlite3.Error, ValueError if it cannot be written, or holds what no fpbench wrote.
    """
    db.execute("BEGIN IMMEDIATE")
    try:
        for number in range(version, VERSION):
            _MIGRATIONS[number](db)
            db.execute(f"PRAGMA user_version = {number + 1}")
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


def _migrate_to_2(db: sqlite3.Connection) -> None:
    for table in ("cell", "result"):
        db.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
    _execute(db, _OWN[2])
    old = db.execute("SELECT key, labels, seed, reason FROM old_cell ORDER BY position")
    write_plan(db, ((key, labels, seed, reason) for key, labels, seed, reason in old))
    rows = db.execute(
        "SELECT key, session, status, seconds, measures, reason, trace FROM old_result"
    )
    for key, session, status, seconds, text, *texts in rows:
        number = number_text(db, "known", "key", key)
        row = (number, session, status, seconds, *_pack_json(db, text))
        db.execute("INSERT INTO result VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*row, *texts))
    write_pages(db)
    for table in ("cell", "result"):
        db.execute(f"DROP TABLE old_{table}")


def _pack_json(db: sqlite3.Connection, text: str) -> tuple[int, bytes]:
    measures = json.loads(text)
    if not isinstance(measures, dict):
        raise ValueError("measures must be a JSON object")
    # Version 1 took any JSON; only numbers and texts were documented.
    return pack_measures(db, {
        name: json.dumps(value) if isinstance(value, (list, dict)) else value
        for name, value in measures.items()
    })  # fmt: skip


_MIGRATIONS: dict[int, Callable[[sqlite3.Connection], None]] = {1: _migrate_to_2}
