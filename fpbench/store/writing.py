"""Writes to a store: numbers for texts, and pages, all within a caller's transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpbench.store.packing import CellPage, pack, split

PAGE = 4_096
"""Cells of a page, if they have no more measures than usual."""
_PLANNED = 65_536
"""Cells of a page of the plan."""
_MOST = 16 * 2**20
"""Bytes of a page."""
_Row = tuple[int, int, float, bytes]
"""Number of a cell, session, seconds, and its measures as a blob."""
_FINAL = """
SELECT number, session, seconds, data FROM result WHERE layout = ? AND number > ?
AND status = 'done' AND reason IS NULL AND trace IS NULL ORDER BY number LIMIT ?
"""


def pack_measures(db: sqlite3.Connection, measures: Mapping[str, Any]) -> tuple[int, bytes]:
    """The number of the layout of measures, and their values as a blob.

    Raises PluginError if a value is not a number, a text or None.
    """
    layout = number_text(db, "layout", "names", json.dumps(list(measures)))
    return layout, pack(measures, lambda text: number_text(db, "word", "text", make_storable(text)))


def number_text(db: sqlite3.Connection, table: str, column: str, text: str) -> int:
    """The number of a text in one of the tables that number texts; a new one for a new text."""
    row = db.execute(f"SELECT id FROM {table} WHERE {column} = ?", (text,)).fetchone()
    if row is not None:
        return int(row[0])
    new = db.execute(f"INSERT INTO {table} ({column}) VALUES (?)", (text,)).lastrowid
    assert new is not None
    return new


def make_storable(text: str) -> str:
    """A text that UTF-8 can encode: file names may hold bytes that are not letters."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def write_plan(db: sqlite3.Connection, cells: Iterable[tuple[str, str, int, str | None]]) -> None:
    """Write a plan, replacing the earlier one.

    `cells`: key, JSON of labels, seed and the reason why it is skipped, for each cell.
    """
    combinations: dict[str, int] = {}
    reasons: dict[str | None, int] = {None: 0}

    def numbered() -> Iterable[tuple[int, int, int, int]]:
        for key, labels, seed, reason in cells:
            if labels not in combinations:
                combinations[labels] = number_text(db, "combination", "labels", labels)
            if reason not in reasons:
                reasons[reason] = number_text(db, "word", "text", make_storable(reason or ""))
            yield number_text(db, "known", "key", key), combinations[labels], seed, reasons[reason]

    db.execute("DELETE FROM planned")
    rows = iter(numbered())
    while page := list(islice(rows, _PLANNED)):
        data = np.array(page, "<i8").T.tobytes()
        db.execute("INSERT INTO planned (data) VALUES (?)", (data,))


def write_pages(db: sqlite3.Connection) -> None:
    """Move final results to pages: the results of cells that are done.

    A new result of a cell that is in a page already stays outside: the later one counts.
    """
    paged = read_page_numbers(db)
    layouts = db.execute(
        "SELECT DISTINCT layout, names FROM result JOIN layout ON layout.id = layout"
    ).fetchall()
    for layout, names in layouts:
        width, last = len(json.loads(names)), -(2**63)
        while rows := db.execute(_FINAL, (layout, last, _compute_page_size(width))).fetchall():
            last = rows[-1][0]
            fresh = ~np.isin([row[0] for row in rows], paged)
            rows = [row for row, new in zip(rows, fresh.tolist(), strict=True) if new]
            if rows:
                _write_page(db, layout, width, rows)
                db.executemany("DELETE FROM result WHERE number = ?", ((row[0],) for row in rows))


def _compute_page_size(width: int) -> int:
    """Number of cells of a page, with `width` measures each."""
    return max(min(PAGE, _MOST // (24 + 9 * width)), 1)


def _write_page(db: sqlite3.Connection, layout: int, width: int, rows: list[_Row]) -> None:
    numbers, sessions, seconds, blobs = zip(*rows, strict=True)
    page = CellPage(
        np.array(numbers, np.int64), np.array(sessions, np.int64), np.array(seconds, np.float64),
        *split(blobs, width),
    )  # fmt: skip
    row = layout, len(rows), page.to_bytes()
    db.execute("INSERT INTO page (layout, count, data) VALUES (?, ?, ?)", row)


class Pages:
    """Writes final results straight into pages, one per cell, for cells without a result.

    Within a caller's transaction, and in a `with`, whose end writes the rest.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._known: dict[tuple[str, str], int] = {}
        self._waiting: dict[int, list[_Row]] = {}
        self._widths: dict[int, int] = {}

    def add(self, key: str, session: int, seconds: float, measures: Mapping[str, Any]) -> None:
        """Write the measures of a cell, at once or with others."""
        layout = self._number("layout", "names", json.dumps(list(measures)))
        blob = pack(measures, lambda text: self._number("word", "text", make_storable(text)))
        rows = self._waiting.setdefault(layout, [])
        rows.append((number_text(self._db, "known", "key", key), session, seconds, blob))
        self._widths[layout] = len(measures)
        if len(rows) >= _compute_page_size(len(measures)):
            self._write(layout)

    def __enter__(self) -> Pages:
        return self

    def __exit__(self, failed: type | None, *_: object) -> None:
        if failed is None:
            for layout in list(self._waiting):
                self._write(layout)

    def _write(self, layout: int) -> None:
        _write_page(self._db, layout, self._widths[layout], self._waiting.pop(layout))

    def _number(self, table: str, column: str, text: str) -> int:
        """The number of a text; a text that many cells share is looked up once."""
        if (table, text) not in self._known:
            self._known[table, text] = number_text(self._db, table, column, text)
        return self._known[table, text]


def read_page_numbers(db: sqlite3.Connection) -> NDArray[np.int64]:
    """The numbers of the cells whose results are in pages; ValueError if a page is not one."""
    parts = [np.zeros(0, np.int64)]
    for count, data in db.execute("SELECT count, substr(data, 1, 8 * count) FROM page"):
        parts.append(np.frombuffer(data, "<i8", count))
    return np.concatenate(parts)
