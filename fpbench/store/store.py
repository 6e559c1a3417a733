"""The run store: one SQLite file in a run directory. A finished cell is committed, then counted.

A run directory holds the matrix file, `environment.json` (of the latest session),
`store.sqlite` and `store.lock`. Rows are data: numbers and text, never pickles.
"""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from fpbench.base.errors import RunLostError, StoreError
from fpbench.base.files import MATRIX_NAMES, identify, write_file
from fpbench.components.measures import Glossary, read_measures
from fpbench.components.names import Status
from fpbench.components.own_measures import GLOSSARY
from fpbench.components.records import MeasureValues
from fpbench.matrix.plan import Cell
from fpbench.store.connections import (
    ReadConnection,
    check_store,
    connect_reader,
    connect_writer,
    enable_log,
    name_companion,
    suggest_remedy,
)
from fpbench.store.locks import STORE, Lock, is_locked_here
from fpbench.store.packing import make_storable, to_plain
from fpbench.store.results import Results
from fpbench.store.tables import (
    PAGE,
    CellRecord,
    SessionRecord,
    create,
    is_empty,
    number_key,
    read_cells,
    read_done,
    read_records,
    read_results,
    read_sessions,
    write_pages,
    write_plan,
)

_DAMAGE = (sqlite3.Error, ValueError, TypeError, LookupError, OverflowError, RecursionError)

UNSHOWN_SEEDS = "unshown_seeds"
"""Name of a text about a run: seeds that the latest session did not plan, with commas between."""


class Store:
    """A run on disk.

    `create`: whether to write to it, and to make one if there is none. One process at a time may.
    Without `create`, nothing is ever written, and reads return what had been committed when the
    store was opened.

    Raises StoreError if the directory holds no run, or one that cannot be used, or another run is
    writing to it.
    """

    def __init__(self, directory: Path, *, create: bool = False) -> None:
        self.directory, self._lock = directory, None
        file = directory / STORE
        if not file.exists() and not create:
            hint = ""
            if directory.suffix == ".toml" and directory.is_file():
                hint = f"; it is a matrix: run it first, fpbench run {directory}"
            raise StoreError(f"{directory}: not a run directory ({STORE} is not there){hint}")
        if directory.exists() and not directory.is_dir():
            raise StoreError(f"{directory}: is not a directory; choose another with --out")
        self._db: sqlite3.Connection | None = None
        self._written: dict[Path, tuple[int, int] | None] = {}
        self._loose = 0
        try:
            if create:
                directory.mkdir(parents=True, exist_ok=True)
                check_store(file)  # before anything is written, the lock included
                self._lock = Lock(directory)
                self._db = connect_writer(file)
                self._prepare(file)
            else:
                self._db = connect_reader(file, own=is_locked_here(directory))
                self._db.execute("PRAGMA query_only = ON")
        except (OSError, *_DAMAGE) as error:
            self.close()
            if isinstance(error, StoreError):
                raise
            where, why = file, str(error)
            if isinstance(error, OSError):
                where, why = Path(error.filename or file), error.strerror or why
            hint = "; choose another directory with --out" if create else ""
            raise StoreError(f"{where}: cannot be used: {why}{hint}") from error

    @property
    def _open(self) -> sqlite3.Connection:
        assert self._db is not None
        return self._db

    def _prepare(self, file: Path) -> None:
        """Make the tables if there are none."""
        db = self._open
        enable_log(db)
        if is_empty(db):
            with self.writing():
                create(db)
        db.execute("PRAGMA synchronous = NORMAL")
        (self._loose,) = db.execute("SELECT COUNT(*) FROM result").fetchone()
        self._written = {each: identify(each) for each in (file, name_companion(file, "-wal"))}

    def check_there(self) -> None:
        """Check that the files of the run directory are still those that this store writes to.

        Raises RunLostError if the directory, the store or its log was deleted, moved or replaced.
        """
        for file, known in self._written.items():
            if identify(file) != known:
                raise RunLostError(
                    f"{file}: was deleted, moved or replaced while the run wrote to it, so its "
                    "results are not there; run again"
                )

    def close(self) -> None:
        """Close the file, and let others write."""
        if self._db is not None:
            self._db.close()
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, query: str, values: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        with self._guard_reading():
            yield from self._open.execute(query, values)

    @contextmanager
    def _guard_reading(self) -> Iterator[None]:
        """Raise one clear error if the file is damaged, or changed meanwhile."""
        try:
            yield
            self._check_unchanged()
        except _DAMAGE as error:
            if isinstance(error, StoreError):
                raise
            self._check_unchanged()  # a mix of two states would look like damage
            raise StoreError(f"{self.directory / STORE}: cannot be read: {error}") from error

    def _check_unchanged(self) -> None:
        try:
            if isinstance(self._db, ReadConnection):
                self._db.check()
        except OSError as error:
            raise StoreError(f"{error.filename}: cannot be read: {error.strerror}") from error

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction: all or nothing. A full disk or another writer is one clear error."""
        db = self._open
        try:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.check_there()
            except BaseException:
                if db.in_transaction:  # a full disk has ended it already
                    db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")
        except sqlite3.Error as error:
            self.check_there()  # a missing file would be the cause
            file = self.directory / STORE
            raise StoreError(
                f"{file}: cannot be written: {error}{suggest_remedy(error)}"
            ) from error

    @property
    def matrix(self) -> str | None:
        """Canonical JSON of the matrix that made this run; None if it is new."""
        return self.about().get("matrix")

    @property
    def title(self) -> str:
        """Title of the matrix."""
        return self.about().get("title", "")

    @property
    def rank_by(self) -> str:
        """The measure that its leaderboard ranks by."""
        return self.about().get("rank_by", "gain")

    @property
    def glossary(self) -> Glossary:
        """Headings and meanings of its measures."""
        try:
            declared = json.loads(self.about().get("measures", "[]"))
            return GLOSSARY.declaring(read_measures(declared))
        except (ValueError, RecursionError) as error:
            raise StoreError(f"{self.directory / STORE}: cannot be read: {error}") from error

    @property
    def unshown_seeds(self) -> tuple[int, ...]:
        """Seeds with results that the latest session did not plan."""
        words = self.about().get(UNSHOWN_SEEDS, "").split(",")
        return tuple(int(word) for word in words if re.fullmatch(r"[0-9]{1,19}", word))

    def find_done_seeds(self) -> set[int]:
        """Seeds with results, whether or not the latest session planned them."""
        results = self.results(keys=False)
        done, _ = results.finished()
        return {*self.unshown_seeds, *np.unique(results.seeds[done]).tolist()}

    def about(self) -> dict[str, str]:
        """Texts about the matrix by name, as `begin` wrote them."""
        rows = self._read("SELECT name, value FROM about")
        return {str(name): str(value) for name, value in rows}

    def write(self, name: str, content: str | bytes) -> None:
        """Write a file beside the store, whole or not at all."""
        self.check_there()
        write_file(self.directory / name, content)

    def write_matrix(self, name: str, content: str) -> None:
        """Write the matrix file beside the store, instead of one of another name."""
        self.write(name, content)
        for other in set(MATRIX_NAMES) - {name}:
            (self.directory / other).unlink(missing_ok=True)

    def begin(
        self, about: Mapping[str, str], environment: Mapping[str, Any], cells: Iterable[Cell]
    ) -> int:
        """Start a session: write the plan. Existing results stay.

        Returns: the number of the session, under which results are recorded.
        """
        with self.writing():
            self.plan(about, cells)
            return self.add_session(time.time(), environment)

    def plan(self, about: Mapping[str, str], cells: Iterable[Cell]) -> None:
        """Write the plan; within a transaction."""
        write_plan(self._open, cells)
        entries = [(name, make_storable(value)) for name, value in about.items()]
        self._open.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", entries)

    def add_session(self, started: float, environment: Mapping[str, Any]) -> int:
        """Write a session and return its number; within a transaction."""
        cursor = self._open.execute(
            "INSERT INTO session (started, environment) VALUES (?, ?)",
            (started, json.dumps(environment)),
        )
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def done(self) -> set[str]:
        """Keys of the cells that are done; failed ones are tried again."""
        with self._guard_reading():
            return read_done(self._open)

    def add(
        self,
        session: int,
        key: str,
        status: Status,
        seconds: float,
        measures: MeasureValues,
        reason: str | None = None,
        trace: str | None = None,
    ) -> None:
        """Commit the result of one cell.

        Raises StoreError if it cannot be written as a whole; PluginError if a measure is not a
        number, a text or None.
        """
        with self.writing():
            self.put(CellRecord(key, session, status, seconds, measures, reason, trace))
        self._loose += 1
        if self._loose >= PAGE:
            with self.writing():
                self.tidy()

    def put(self, record: CellRecord) -> None:
        """Write a result, replacing an earlier one of this cell; within a transaction."""
        key, session, status, seconds, measures, *reasons = record
        text = json.dumps(to_plain(measures))
        texts = (None if text is None else make_storable(text) for text in reasons)
        row = (number_key(self._open, key), session, status.value, seconds, text, *texts)
        self._open.execute("INSERT OR REPLACE INTO result VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def tidy(self) -> None:
        """Move final results to pages, which are read at once; within a transaction."""
        try:
            write_pages(self._open)
        except (ValueError, TypeError, LookupError) as error:  # somebody changed the run
            raise StoreError(f"{self.directory / STORE}: cannot be read: {error}") from error
        self._loose = 0

    def add_timings(self, timings: Mapping[tuple[str, str], tuple[int, float]]) -> None:
        """Add to the number and seconds of steps done, by action and component."""
        rows = [(*name, count, seconds) for name, (count, seconds) in timings.items()]
        with self.writing():
            self._open.executemany(
                "INSERT INTO timing VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
                "count = count + excluded.count, seconds = seconds + excluded.seconds",
                rows,
            )

    def timings(self) -> dict[tuple[str, str], float]:
        """Mean seconds of a step, by action and component."""
        return {name: seconds / count for name, (count, seconds) in self.spent().items()}

    def spent(self) -> dict[tuple[str, str], tuple[int, float]]:
        """Number and seconds of steps done, by action and component."""
        rows = self._read("SELECT action, component, count, seconds FROM timing WHERE count > 0")
        return {(action, name): (count, seconds) for action, name, count, seconds in rows}

    def results(self, *, keys: bool = True) -> Results:
        """The rows of the planned cells, in the order of the plan.

        A cell that is neither done, failed nor skipped yet has an empty status. Reading is faster
        without keys.
        """
        with self._guard_reading():
            results = read_results(self._open, keys=keys)
        return replace(results, glossary=self.glossary)

    def rows(self) -> list[dict[str, Any]]:
        """The results as dictionaries; see `Results.rows`."""
        return self.results().rows()

    def cells(self) -> Iterator[Cell]:
        """The planned cells, in the order of the plan."""
        with self._guard_reading():
            yield from read_cells(self._open)

    def records(self) -> Iterator[CellRecord]:
        """All results, including those of cells that are no longer planned."""
        with self._guard_reading():
            yield from read_records(self._open)

    def sessions(self) -> list[SessionRecord]:
        """Its sessions, the latest last."""
        with self._guard_reading():
            return read_sessions(self._open)

    def environment(self) -> dict[str, Any]:
        """The environment of the latest session."""
        sessions = self.sessions()
        return sessions[-1].environment if sessions else {}

    def trace(self, key: str) -> str | None:
        """The traceback of a failed cell."""
        query = "SELECT trace FROM result JOIN known ON known.id = number WHERE key = ?"
        (trace,) = next(self._read(query, (key,)), (None,))
        return None if trace is None else str(trace)
