"""The rows of a store as columns. What the file holds is checked: it may come from anybody."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fpbench.base.arrays import find_unique
from fpbench.base.toml_files import check_depth
from fpbench.components.names import FIXED, KINDS, Status
from fpbench.components.records import MeasureValues
from fpbench.matrix.plan import Cell
from fpbench.store import packing
from fpbench.store.packing import ValueKind, read_page
from fpbench.store.results import Block, Labels, Results
from fpbench.store.writing import make_storable, read_page_numbers

_AT_ONCE = 10_000
"""Rows that are fetched at a time."""


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


def read_results(db: sqlite3.Connection, *, keys: bool = True) -> Results:
    """The rows of the planned cells, in the order of the plan.

    Raises sqlite3.Error, ValueError, TypeError, LookupError if the store is damaged.
    """
    with _hold_one_view(db):
        return _Reader(db).results(keys)


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


class _Reader:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._words = _read_words(db)
        self._layouts = _read_layouts(db)
        self._numbers, self._chosen, self._seeds, self._reason = _read_planned(db)
        self._order = np.argsort(self._numbers, kind="stable")
        self._statuses = np.full(len(self._numbers), "", object)
        self._seconds = np.full(len(self._numbers), np.nan)
        self._reasons: dict[int, str] = {}
        self._blocks: list[Block] = []

    def results(self, keys: bool) -> Results:
        combinations, place = _read_combinations(self._db)
        numbers, which = find_unique(self._chosen)
        self._read_pages(self._read_loose())
        for row in np.flatnonzero(self._reason).tolist():
            self._statuses[row] = Status.SKIPPED.value
            self._reasons[row] = self._words[int(self._reason[row])]
        return Results(
            combinations=combinations,
            combination=np.array([place[i] for i in numbers.tolist()], np.int64)[which],
            seeds=self._seeds,
            statuses=self._statuses.tolist(),
            seconds=self._seconds,
            cells=self._read_keys() if keys else [""] * len(self._numbers),
            reasons=self._reasons,
            blocks=self._blocks,
            words=self._words,
        )

    def _read_keys(self) -> list[str]:
        known = dict(self._db.execute("SELECT id, key FROM known"))
        return [known[number] for number in self._numbers.tolist()]

    def _find_rows(self, numbers: NDArray[np.int64]) -> NDArray[np.intp]:
        """The row of each cell; -1 for cells that are not planned."""
        if not len(self._order):
            return np.full(len(numbers), -1)
        places = np.searchsorted(self._numbers, numbers, sorter=self._order)
        rows = self._order[np.minimum(places, len(self._order) - 1)]
        return np.where(self._numbers[rows] == numbers, rows, -1)

    def _read_pages(self, loose: NDArray[np.bool_]) -> None:
        """Read done cells, many at a time, but for those that were measured again since."""
        for layout, count, data in self._db.execute("SELECT layout, count, data FROM page"):
            names = self._layouts[layout]
            page = read_page(data, count, len(names))
            rows = self._find_rows(page.numbers)
            here = (rows >= 0) & ~loose[rows]
            if here.all():
                kinds, bits, seconds = page.kinds, page.bits, page.seconds
            else:
                rows, seconds = rows[here], page.seconds[here]
                kinds, bits = page.kinds[:, here], page.bits[:, here]
            self._seconds[rows] = seconds
            self._statuses[rows] = Status.DONE.value
            self._add_block(names, rows, kinds, bits)

    def _read_loose(self) -> NDArray[np.bool_]:
        """Read cells that failed or are not in a page yet; return whether a row is one of them."""
        # One more row: the row -1 of cells that are not planned points to it.
        loose = np.zeros(len(self._numbers) + 1, np.bool_)
        cursor = self._db.execute(
            "SELECT number, status, seconds, layout, data, reason FROM result ORDER BY number"
        )
        while part := cursor.fetchmany(_AT_ONCE):
            numbers = np.array([row[0] for row in part], np.int64)
            rows = self._find_rows(numbers)
            loose[rows[rows >= 0]] = True
            layouts: dict[int, tuple[list[int], list[bytes]]] = {}
            for row, (_, status, seconds, layout, data, reason) in zip(
                rows.tolist(), part, strict=True
            ):
                if row < 0:
                    continue
                self._statuses[row] = Status(status).value
                self._seconds[row] = seconds
                if reason:
                    self._reasons[row] = str(reason)
                mine, blobs = layouts.setdefault(layout, ([], []))
                mine.append(row)
                blobs.append(data)
            for layout, (mine, blobs) in layouts.items():
                names = self._layouts[layout]
                self._add_block(names, np.array(mine), *packing.split(blobs, len(names)))
        return loose

    def _add_block(
        self,
        names: tuple[str, ...],
        rows: NDArray[np.intp],
        kinds: packing.Kinds,
        bits: packing.Bits,
    ) -> None:
        chosen = bits[kinds >= ValueKind.WORD]
        if len(chosen) and not (chosen.min() >= 0 and chosen.max() < len(self._words)):
            raise ValueError("a measure refers to a missing text")
        for number in set(bits[kinds == ValueKind.BIG].tolist()):
            int(self._words[number])
        if names and len(rows):
            self._blocks.append(Block(names, rows, kinds, bits))


def _read_planned(db: sqlite3.Connection) -> NDArray[np.int64]:
    """(4, cells) number, combination, seed, and the word with the reason for a skip, or 0."""
    parts = [np.zeros((4, 0), np.int64)]
    for (data,) in db.execute("SELECT data FROM planned ORDER BY id"):
        parts.append(np.frombuffer(data, "<i8").astype(np.int64, copy=False).reshape(4, -1))
    return np.concatenate(parts, axis=1)


def _read_layouts(db: sqlite3.Connection) -> dict[int, tuple[str, ...]]:
    return {
        number: _parse_names(text) for number, text in db.execute("SELECT id, names FROM layout")
    }


def _read_combinations(db: sqlite3.Connection) -> tuple[list[Labels], dict[int, int]]:
    """Combinations of labels, and the position of each by its number."""
    seen: dict[Labels, int] = {}
    place = {}
    for number, text in db.execute("SELECT id, labels FROM combination ORDER BY id"):
        labels = _parse_labels(text)
        named = tuple(labels.get(kind, "") for kind in KINDS)
        place[number] = seen.setdefault(named, len(seen))
    return list(seen), place


def _parse_labels(text: str) -> dict[str, str]:
    labels = json.loads(text)
    if not isinstance(labels, dict) or not all(
        kind in KINDS and isinstance(label, str) for kind, label in labels.items()
    ):
        raise ValueError(f"not labels: {text[:80]!r}")
    return {kind: make_storable(label) for kind, label in labels.items()}


def _parse_names(text: str) -> tuple[str, ...]:
    names = json.loads(text)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"names of not a table of measures: {text[:80]!r}")
    if len(set(names)) < len(names):
        raise ValueError(f"repeated names of measures: {text[:80]!r}")
    if not FIXED.isdisjoint(names):
        raise ValueError(f"reserved names of measures: {text[:80]!r}")
    return tuple(map(make_storable, names))


def _read_words(db: sqlite3.Connection) -> list[str]:
    """Texts by their number; numbers without one are empty."""
    rows = db.execute("SELECT id, text FROM word ORDER BY id").fetchall()
    words = [""] * (len(rows) + 1)
    for number, text in rows:
        words[number] = str(text)
    return words


def read_cells(db: sqlite3.Connection) -> Iterator[Cell]:
    """The planned cells, in the order of the plan."""
    with _hold_one_view(db):
        words, known = _read_words(db), dict(db.execute("SELECT id, key FROM known"))
        rows = db.execute("SELECT id, labels FROM combination")
        labels = {number: _parse_labels(text) for number, text in rows}
        planned = _read_planned(db)
    for number, chosen, seed, reason in planned.T.tolist():
        yield Cell(known[number], labels[chosen], seed, words[reason] if reason else None)


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
        words, layouts = _read_words(db), _read_layouts(db)
        known = dict(db.execute("SELECT id, key FROM known"))
        later = set()
        for number, session, status, seconds, layout, data, *texts in db.execute(
            "SELECT number, session, status, seconds, layout, data, reason, trace FROM result"
        ):
            later.add(number)
            names = layouts[layout]
            (measures,) = _unpack_measures(names, *packing.split([data], len(names)), words)
            done = Status(status), float(seconds), measures
            yield CellRecord(known[number], int(session), *done, *texts)
        for layout, count, data in db.execute("SELECT layout, count, data FROM page"):
            names = layouts[layout]
            page = read_page(data, count, len(names))
            columns = page.numbers.tolist(), page.sessions.tolist(), page.seconds.tolist()
            measured = _unpack_measures(names, page.kinds, page.bits, words)
            for number, session, seconds, measures in zip(*columns, measured, strict=True):
                if number not in later:
                    yield CellRecord(known[number], session, Status.DONE, seconds, measures)


def _unpack_measures(
    names: tuple[str, ...], kinds: packing.Kinds, bits: packing.Bits, words: list[str]
) -> list[MeasureValues]:
    columns = [
        packing.unpack_values(kinds[i], bits[i], words.__getitem__) for i in range(len(names))
    ]  # fmt: skip
    if not names:
        return [{} for _ in range(kinds.shape[1])]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


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
