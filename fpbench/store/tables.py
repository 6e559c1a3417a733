"""The tables of a store: the check that a file has them, the plan, pages of results, and rows.

What a file holds is checked: it may come from anybody. Writes are within a caller's transaction.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fpbench.base.errors import StoreError
from fpbench.base.files import find_damage, limit_steps
from fpbench.base.toml_files import check_depth
from fpbench.components.names import FIXED, KINDS, Status
from fpbench.components.records import MeasureValues
from fpbench.matrix.plan import Cell
from fpbench.store.packing import Column, make_storable, read_plain
from fpbench.store.results import Block, Labels, Results, lay_out

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


class SessionRecord(NamedTuple):
    """One call of `fpbench run`."""

    number: int
    started: float
    """Seconds since 1970."""
    environment: dict[str, Any]


class CellRecord(NamedTuple):
    """The result of a cell."""

    key: str
    session: int
    status: Status
    seconds: float
    measures: MeasureValues
    reason: str | None = None
    trace: str | None = None


class _Page(NamedTuple):
    """Results of cells that have the same measures."""

    numbers: NDArray[np.int64]
    sessions: NDArray[np.int64]
    seconds: NDArray[np.float64]
    columns: dict[str, Column]


@contextmanager
def _hold_one_view(db: sqlite3.Connection) -> Iterator[None]:
    """Keep one view of the file for all queries, while another process may write."""
    if db.in_transaction:
        yield
        return
    db.execute("BEGIN")
    try:
        yield
    finally:
        db.execute("ROLLBACK")


def read_results(db: sqlite3.Connection, *, keys: bool = True) -> Results:
    """The rows of the planned cells, in the order of the plan.

    Raises sqlite3.Error, ValueError, TypeError, LookupError if the store is damaged.
    """
    import pandas as pd

    with _hold_one_view(db):
        numbers, chosen, seeds = _read_planned(db)
        labels, why = _read_combinations(db)
        cells = np.full(len(numbers), "", object)
        if keys:
            known = dict(db.execute("SELECT id, key FROM known"))
            cells[:] = [known[number] for number in numbers.tolist()]
        pages, loose = list(_read_pages(db)), list(_read_loose(db))
    combinations = dict.fromkeys(labels)
    place = {each: i for i, each in enumerate(combinations)}
    which, used = pd.factorize(chosen, sort=True)
    if len(used) and not 0 <= used[0] <= used[-1] < len(labels):
        raise ValueError("a cell of a combination that is not there")
    skips = np.array([why[i] for i in used.tolist()], object)[which]
    reasons = np.full(len(numbers), None, object)
    statuses = np.full(len(numbers), "", "U7")
    seconds = np.full(len(numbers), np.nan)
    blocks, index = [], pd.Index(numbers)
    first = np.flatnonzero(~index.duplicated())  # only a forged plan repeats a cell
    index, row_of = index[first], np.append(first, -1)  # the last: of cells that are not planned
    later = np.array([number for number, _ in loose], np.int64)
    loose_rows = row_of[index.get_indexer(later)]
    again = np.zeros(len(numbers) + 1, np.bool_)  # the last is the row -1
    again[loose_rows[loose_rows >= 0]] = again[-1] = True
    for page in pages:
        rows = row_of[index.get_indexer(page.numbers)]
        here = ~again[rows]
        rows, columns = rows[here], page.columns
        if not here.all():
            columns = {name: column.take(here) for name, column in columns.items()}
        seconds[rows], statuses[rows] = page.seconds[here], Status.DONE.value
        blocks.append(Block(rows, columns))
    for row, (_, record) in zip(loose_rows.tolist(), loose, strict=True):
        if row >= 0:
            seconds[row], statuses[row] = record.seconds, record.status.value
            reasons[row] = record.reason
    planned = loose_rows >= 0
    measured = [record.measures for (_, record), is_in in zip(loose, planned, strict=True) if is_in]
    for block in lay_out(measured):
        blocks.append(Block(loose_rows[planned][block.rows], block.columns))
    skipped = np.array([each is not None for each in skips.tolist()], np.bool_)
    statuses[skipped], reasons[skipped] = Status.SKIPPED.value, skips[skipped]
    return Results(
        combinations=list(combinations),
        combination=np.array([place[labels[i]] for i in used.tolist()], np.int64)[which],
        seeds=seeds,
        statuses=statuses,
        seconds=seconds,
        cells=cells,
        reasons=reasons,
        blocks=[block for block in blocks if block.columns and len(block.rows)],
    )


def _read_planned(db: sqlite3.Connection) -> NDArray[np.int64]:
    """(3, cells) number, combination and seed."""
    parts = [np.zeros((3, 0), np.int64)]
    for (data,) in db.execute("SELECT data FROM planned ORDER BY id"):
        parts.append(np.frombuffer(data, "<i8").astype(np.int64, copy=False).reshape(3, -1))
    return np.concatenate(parts, axis=1)


def _read_combinations(db: sqlite3.Connection) -> tuple[list[Labels], list[str | None]]:
    """The labels of each combination, and why it is skipped."""
    labels, reasons = [], []
    for i, (number, text, reason) in enumerate(db.execute("SELECT * FROM combination ORDER BY id")):
        known = json.loads(text)
        if number != i or not isinstance(known, dict) or not all(
            kind in KINDS and isinstance(label, str) for kind, label in known.items()
        ):  # fmt: skip
            raise ValueError(f"not labels: {text[:80]!r}")
        labels.append(tuple(make_storable(known.get(kind, "")) for kind in KINDS))
        reasons.append(None if reason is None else str(reason))
    return labels, reasons


def _read_pages(db: sqlite3.Connection) -> Iterator[_Page]:
    measures: dict[int, list[tuple[Any, ...]]] = {}
    for page, *measure in db.execute("SELECT page, name, kind, data, levels FROM measure"):
        measures.setdefault(page, []).append(tuple(measure))
    for page, count, data in db.execute("SELECT id, count, data FROM page"):
        if count < 1 or len(data) != 24 * count:
            raise ValueError(f"a page that is not one of {count} cells")
        numbers, sessions = np.frombuffer(data, "<i8", 2 * count).reshape(2, count)
        columns = {
            make_storable(str(name)): Column.read(count, kind, content, levels)
            for name, kind, content, levels in measures.get(page, ())
        }
        _check_names(columns)
        yield _Page(numbers, sessions, np.frombuffer(data, "<f8", count, 16 * count), columns)


def _check_names(names: dict[str, Any]) -> None:
    if not FIXED.isdisjoint(names):
        raise ValueError(f"reserved names of measures: {', '.join(FIXED & names.keys())}")


def _read_loose(db: sqlite3.Connection) -> Iterator[tuple[int, CellRecord]]:
    """Results that are in no page, by the number of their cells; the records have no keys."""
    for number, session, status, seconds, text, *why in db.execute("SELECT * FROM result"):
        measures = read_plain(text)
        if not isinstance(measures, dict):
            raise ValueError(f"not measures: {text[:80]!r}")
        _check_names(measures)
        done = Status(status), float(seconds), measures
        reasons = (None if each is None else str(each) for each in why)
        yield number, CellRecord("", int(session), *done, *reasons)


def read_cells(db: sqlite3.Connection) -> Iterator[Cell]:
    """The planned cells, in the order of the plan."""
    with _hold_one_view(db):
        known = dict(db.execute("SELECT id, key FROM known"))
        labels, reasons = _read_combinations(db)
        planned = _read_planned(db)
    for number, chosen, seed in planned.T.tolist():
        named = dict(zip(KINDS, labels[chosen], strict=True))
        named = {kind: label for kind, label in named.items() if label}
        yield Cell(known[number], named, seed, reasons[chosen])


def read_done(db: sqlite3.Connection) -> set[str]:
    """Keys of the cells that are done."""
    with _hold_one_view(db):
        loose = dict(db.execute("SELECT number, status FROM result"))
        done = set(read_page_numbers(db).tolist()) - loose.keys()
        done |= {number for number, status in loose.items() if status == Status.DONE}
        known = db.execute("SELECT id, key FROM known")
        return {key for number, key in known if number in done}


def read_records(db: sqlite3.Connection) -> Iterator[CellRecord]:
    """All results, including those of cells that are no longer planned."""
    with _hold_one_view(db):
        known, later = dict(db.execute("SELECT id, key FROM known")), set()
        for number, record in _read_loose(db):
            later.add(number)
            yield record._replace(key=known[number])
        for page in _read_pages(db):
            columns = [column.values() for column in page.columns.values()]
            measured = zip(*columns, strict=True) if columns else [()] * len(page.numbers)
            cells = page.numbers.tolist(), page.sessions.tolist(), page.seconds.tolist()
            for number, session, seconds, values in zip(*cells, measured, strict=True):
                if number not in later:
                    measures = dict(zip(page.columns, values, strict=True))
                    yield CellRecord(known[number], session, Status.DONE, seconds, measures)


def read_sessions(db: sqlite3.Connection) -> list[SessionRecord]:
    """The sessions, the latest last."""
    rows = db.execute("SELECT id, started, environment FROM session ORDER BY id")
    return [
        SessionRecord(int(i), float(started), _parse_environment(text)) for i, started, text in rows
    ]


def _parse_environment(text: str) -> dict[str, Any]:
    environment = json.loads(text)
    if not isinstance(environment, dict):
        raise ValueError(f"not an environment: {text[:80]!r}")
    check_depth(environment, "environment")
    return environment
