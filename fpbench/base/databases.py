"""Guarded reading of SQLite files, which may come from anybody.

SQLite reads a page as often as other pages point to it. So the tables of a small file may have no
end: SQLite finds that out only when it is asked.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

_MOST_STEPS = 10_000
"""Steps in which SQLite reads the definitions of hundreds of tables."""


@contextmanager
def limit_steps(db: sqlite3.Connection) -> Iterator[None]:
    """Stop SQLite if the definitions of tables, which it reads before all else, have no end.

    Raises sqlite3.DatabaseError.
    """
    db.set_progress_handler(lambda: True, _MOST_STEPS)
    try:
        yield
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_INTERRUPT:
            raise
        raise sqlite3.DatabaseError("its list of tables has no end") from error
    finally:
        db.set_progress_handler(None, 0)


def find_damage(db: sqlite3.Connection) -> str:
    """Why the pages of a file are not trees that share no page; empty if they are.

    The caller has checked the definitions: SQLite computes their constraints.
    """
    problem: str = db.execute("PRAGMA quick_check(1)").fetchone()[0]
    return "" if problem == "ok" else problem.splitlines()[-1]
