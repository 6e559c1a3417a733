"""Runs that are sent to a leaderboard, and what a forger does to them."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from fpbench_board.checking import CheckOptions

import fpbench

HOSTILE = "<img src=x onerror=alert(1)>"
MATRIX = {
    "title": f"Small </title><script>alert(2)</script>{HOSTILE}",
    "seeds": 2,
    "dataset": [{"use": "census-synthetic", "rows": 300}],
    "learner": [{"use": "decision-tree", "label": HOSTILE}],
    "disclosure": [{"use": "published", "metric": "statistical-parity"}],
    "adversary": [{"use": "majority"}, {"use": "prior", "label": "the best of all"}],
    "corrector": [{"use": "posterior"}],
}


def copy(run: Path, target: Path) -> Path:
    """A run that may be changed."""
    return Path(shutil.copytree(run, target, ignore=shutil.ignore_patterns("store.lock")))


def edit(run: Path, statement: str, values: tuple[object, ...] = ()) -> None:
    """Change the store of a run, as anybody can who has SQLite."""
    with closing(sqlite3.connect(run / "store.sqlite")) as store, store:
        store.execute(statement, values)


def forge(run: Path, measure: str, added: float) -> None:
    """Add to what a run says that it measured, in every cell."""
    with closing(sqlite3.connect(run / "store.sqlite")) as store, store:
        own = store.execute("SELECT page, data FROM measure WHERE name = ?", (measure,))
        for page, data in own.fetchall():
            changed = (np.frombuffer(data, "<f8") + added).tobytes()
            where = "UPDATE measure SET data = ? WHERE page = ? AND name = ?"
            store.execute(where, (changed, page, measure))


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """The directory of an honest run."""
    return fpbench.run(MATRIX, out=tmp_path_factory.mktemp("runs") / "honest").path


@pytest.fixture(scope="session")
def quick():
    """One cell is run again, the same each time, in this process."""
    return CheckOptions(sample=1, seed=0, timeout=None, memory=None)


@pytest.fixture(scope="session")
def unrun():
    """No cell is run again."""
    return CheckOptions(sample=0)


@pytest.fixture(scope="session")
def hands():
    """What changes a run: `copy`, `edit`, `forge`; and its matrix."""

    class Hands:
        matrix, hostile = MATRIX, HOSTILE
        copy, edit, forge = staticmethod(copy), staticmethod(edit), staticmethod(forge)

    return Hands
