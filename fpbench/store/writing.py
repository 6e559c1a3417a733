"""Writes to a store: the plan, and pages of results; within a caller's transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from fpbench.matrix.plan import Cell
from fpbench.store.packing import Column, make_storable

PAGE = 4_096
"""Cells of a page; results that are done wait as JSON until there are as many."""
_PLANNED = 65_536
"""Cells of a page of the plan."""


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
    layouts: dict[tuple[str, ...], list[tuple[int, int, float, list[object]]]] = {}
    query = "SELECT number, session, seconds, measures FROM result WHERE status = 'done'"
    for number, session, seconds, text in db.execute(query):
        if number not in paged:
            measures = json.loads(text)
            rows = layouts.setdefault(tuple(measures), [])
            rows.append((number, session, seconds, list(measures.values())))
    for names, rows in layouts.items():
        numbers, sessions, times, values = zip(*rows, strict=True)
        whole = np.array([numbers, sessions], "<i8").tobytes()
        data = whole + np.array(times, "<f8").tobytes()
        page = db.execute("INSERT INTO page (count, data) VALUES (?, ?)", (len(rows), data))
        columns = [
            (page.lastrowid, name, *Column.of(column).write())
            for name, column in zip(names, zip(*values, strict=True), strict=True)
        ]
        db.executemany("INSERT INTO measure VALUES (?, ?, ?, ?, ?)", columns)
        db.executemany("DELETE FROM result WHERE number = ?", ((number,) for number in numbers))


def read_page_numbers(db: sqlite3.Connection) -> NDArray[np.int64]:
    """The numbers of the cells whose results are in pages; ValueError if a page is not one."""
    parts = [np.zeros(0, np.int64)]
    for count, data in db.execute("SELECT count, substr(data, 1, 8 * count) FROM page"):
        parts.append(np.frombuffer(data, "<i8", count))
    return np.concatenate(parts)
