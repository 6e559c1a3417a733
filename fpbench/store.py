"""The run store: one SQLite file in a run directory. A finished cell is committed, then counted.

A run directory holds the matrix (as it was given), `environment.json` (of the latest session) and
`store.sqlite`. Rows are data: JSON and text, never pickles.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fpbench.errors import StoreError
from fpbench.kinds import KINDS, Status
from fpbench.plan import Cell
from fpbench.records import Measures

VERSION = 1
_FILE = "store.sqlite"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS about (
    name TEXT PRIMARY KEY, value TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS session (
    id INTEGER PRIMARY KEY, started REAL NOT NULL, environment TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS cell (
    position INTEGER PRIMARY KEY, key TEXT NOT NULL, labels TEXT NOT NULL, seed INTEGER NOT NULL,
    reason TEXT
);
CREATE TABLE IF NOT EXISTS result (
    key TEXT PRIMARY KEY, session INTEGER NOT NULL REFERENCES session, status TEXT NOT NULL,
    reason TEXT, trace TEXT, seconds REAL NOT NULL, measures TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS timing (
    action TEXT, component TEXT, count INTEGER NOT NULL, seconds REAL NOT NULL,
    PRIMARY KEY (action, component)
) WITHOUT ROWID;
"""


class Store:
    """A run on disk.

    Parameters
    ----------
    directory
        The run directory.
    create
        Whether to make one if there is none.

    Raises
    ------
    StoreError
        If the directory holds no run, or one that cannot be used.
    """

    def __init__(self, directory: Path, *, create: bool = False) -> None:
        self.directory = directory
        file = directory / _FILE
        if not file.exists() and not create:
            raise StoreError(f"{directory}: not a run directory ({_FILE} is not there)")
        try:
            if create:
                directory.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(self._uri(file), isolation_level=None, uri=True)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"{file}: cannot be used: {error}") from error
        try:
            self._open(file, create)
        except sqlite3.Error as error:
            self.close()
            raise StoreError(f"{file}: cannot be used: {error}") from error
        except StoreError:
            self.close()
            raise

    @staticmethod
    def _uri(file: Path) -> str:
        """A file that cannot be written is read as it lies there: an archived run."""
        archived = file.exists() and not os.access(file.parent, os.W_OK)
        return file.absolute().as_uri() + ("?immutable=1" if archived else "")

    def _open(self, file: Path, create: bool) -> None:
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version == 0 and create:
            self._db.execute("PRAGMA journal_mode = WAL")
            with self._transaction():
                for statement in _SCHEMA.split(";"):
                    self._db.execute(statement)
                self._db.execute(f"PRAGMA user_version = {VERSION}")
        elif version != VERSION:
            raise StoreError(f"{file}: has format {version}; this fpbench reads {VERSION}")
        self._db.execute("PRAGMA synchronous = NORMAL")

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def matrix(self) -> str | None:
        """Canonical JSON of the matrix that made this run; None if it is new."""
        return self._about().get("matrix")

    @property
    def title(self) -> str:
        """Title of the matrix."""
        return self._about().get("title", "")

    @property
    def rank_by(self) -> str:
        """The measure that its leaderboard ranks by."""
        return self._about().get("rank_by", "gain")

    def _about(self) -> dict[str, str]:
        return dict(self._db.execute("SELECT name, value FROM about"))

    def begin(
        self, about: Mapping[str, str], environment: Mapping[str, Any], cells: Iterable[Cell]
    ) -> int:
        """Start a session: write down what is planned. Results that are here stay.

        Returns
        -------
        int
            The session, which results are recorded under.
        """
        rows = (
            (i, cell.key, json.dumps(dict(cell.labels)), cell.seed, cell.reason)
            for i, cell in enumerate(cells)
        )
        with self._transaction():
            self._db.execute("DELETE FROM cell")
            self._db.executemany("INSERT INTO cell VALUES (?, ?, ?, ?, ?)", rows)
            self._db.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", about.items())
            cursor = self._db.execute(
                "INSERT INTO session (started, environment) VALUES (?, ?)",
                (time.time(), json.dumps(environment)),
            )
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def done(self) -> set[str]:
        """Keys of the cells that are done; failed ones are tried again."""
        found = self._db.execute("SELECT key FROM result WHERE status = ?", (Status.DONE,))
        return {key for (key,) in found}

    def add(
        self,
        session: int,
        key: str,
        status: Status,
        seconds: float,
        measures: Measures,
        reason: str | None = None,
        trace: str | None = None,
    ) -> None:
        """Commit the result of one cell."""
        row = (key, session, status.value, reason, trace, seconds, json.dumps(measures))
        with self._transaction():
            self._db.execute("INSERT OR REPLACE INTO result VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def add_timings(self, timings: Mapping[tuple[str, str], tuple[int, float]]) -> None:
        """Add to the number and seconds of steps done, by action and component."""
        rows = [(*name, count, seconds) for name, (count, seconds) in timings.items()]
        with self._transaction():
            self._db.executemany(
                "INSERT INTO timing VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
                "count = count + excluded.count, seconds = seconds + excluded.seconds",
                rows,
            )

    def timings(self) -> dict[tuple[str, str], float]:
        """Mean seconds of a step, by action and component."""
        found = self._db.execute("SELECT action, component, seconds / count FROM timing")
        return {(action, component): mean for action, component, mean in found}

    def rows(self) -> Iterator[dict[str, Any]]:
        """One dictionary a planned cell, in the order of the plan.

        `cell`, a label for every kind (empty where not used), `seed`, `status`, `reason`,
        `seconds`, then the measures. A cell that is neither done, failed nor skipped yet has an
        empty status.
        """
        found = self._db.execute(
            "SELECT cell.key, labels, seed, cell.reason, status, result.reason, seconds, measures "
            "FROM cell LEFT JOIN result USING (key) ORDER BY position"
        )
        for key, labels, seed, skipped, status, reason, seconds, measures in found:
            yield {
                "cell": key,
                **dict.fromkeys(KINDS, ""),
                **json.loads(labels),
                "seed": seed,
                "status": Status.SKIPPED.value if skipped else status or "",
                "reason": skipped or reason,
                "seconds": seconds,
                **json.loads(measures or "{}"),
            }

    def trace(self, key: str) -> str | None:
        """The traceback of a failed cell."""
        row = self._db.execute("SELECT trace FROM result WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def environment(self) -> dict[str, Any]:
        """The environment of the latest session."""
        row = self._db.execute(
            "SELECT environment FROM session ORDER BY id DESC LIMIT 1"
        ).fetchone()
        return json.loads(row[0]) if row else {}

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing. A full disk or another writer is one clear error."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            raise StoreError(f"{self.directory / _FILE}: cannot be written: {error}") from error
