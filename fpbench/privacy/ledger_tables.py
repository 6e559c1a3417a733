"""The tables of a ledger's file, and the check that they are complete.

Every entry has a hash of its number, its values and the hash of the previous entry; the first entry
continues a hash of the budget's terms. The table `total` holds the number of entries, the last hash
and the sum of all costs. So an older or newer page, an edited or deleted entry and a changed total
contradict the rest. The hashes are not a signature: an edit that recomputes them goes unnoticed.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, NamedTuple

from fpbench.base.databases import find_damage, limit_steps
from fpbench.base.errors import InputError
from fpbench.components.guarantee import Guarantee
from fpbench.privacy.ledger_books import Amount, Spending, price_release

APPLICATION = 0x66706C67
"""Marks an SQLite file as a ledger: `fplg`."""
VERSION = 2
"""Version of the tables."""

_SCHEMA = {
    "terms": "CREATE TABLE terms (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "total": "CREATE TABLE total (first TEXT NOT NULL, second TEXT NOT NULL, "
    "entries INTEGER NOT NULL, chain TEXT NOT NULL)",
    "entries": "CREATE TABLE entries (id INTEGER PRIMARY KEY, epsilon REAL NOT NULL, "
    "delta REAL NOT NULL, neighbours TEXT NOT NULL, rho REAL, times INTEGER NOT NULL, "
    "note TEXT NOT NULL, at TEXT NOT NULL, chain TEXT NOT NULL)",
}
_COLUMNS = "id, epsilon, delta, neighbours, rho, times, note, at"
_NUMBER = re.compile(r"\d{1,2000}(/\d{1,2000})?", re.ASCII)
"""A fraction as text; no sum of 64-bit numbers needs so many digits."""


class Head(NamedTuple):
    """Total, number and last hash of all entries, as the file states them."""

    total: Amount
    entries: int
    chain: str


class DamagedError(sqlite3.DatabaseError):
    """A ledger's file is incomplete, or was edited."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"it is damaged: {what}; restore a whole copy, or what was spent is not known"
        )


def create(db: sqlite3.Connection, terms: dict[str, str]) -> None:
    """Fill an empty file with the tables of an unspent ledger."""
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    for statement in _SCHEMA.values():
        db.execute(statement)
    db.executemany("INSERT INTO terms VALUES (?, ?)", terms.items())
    db.execute("INSERT INTO total VALUES ('0', '0', 0, ?)", [_make_first_link(terms)])
    db.execute(f"PRAGMA user_version = {VERSION}")


def check_tables(db: sqlite3.Connection, path: object) -> None:
    """Check that a file has the tables of a ledger.

    Raises InputError if it is no ledger of this version; DamagedError if its tables have other
    definitions, or its pages are damaged.
    """
    with limit_steps(db):
        ((mark,),) = db.execute("PRAGMA application_id").fetchall()
        schema = dict(db.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
    if not mark and not schema:
        raise InputError(
            f"{path} is empty: it was copied without the file {path}-wal beside it, or "
            "cut off. If nothing was ever spent, delete it, and a new ledger is made"
        )
    if mark != APPLICATION:
        raise InputError(f"{path} is an SQLite file, but not of a ledger")
    ((version,),) = db.execute("PRAGMA user_version").fetchall()
    if version != VERSION:
        raise InputError(
            f"{path} is a ledger of version {version}, and this fpbench reads {VERSION} only"
        )
    if schema != _SCHEMA:  # a trigger could undo what is written
        raise DamagedError("its tables are not those of a ledger")
    if damage := find_damage(db):
        raise DamagedError(damage)


def check(db: sqlite3.Connection, terms: dict[str, str]) -> None:
    """Check every entry of the file; DamagedError names the first one that does not fit."""
    head, chain, counts = read_head(db), _make_first_link(terms), Counter[Guarantee]()
    number = 0
    rows = db.execute(f"SELECT {_COLUMNS}, chain FROM entries ORDER BY id")
    for number, (*row, link) in enumerate(rows, 1):
        if row[0] != number:
            raise DamagedError(f"entry {number} is missing")
        chain = _make_next_link(chain, row)
        if link != chain:
            raise DamagedError(f"entry {number} is not the one that was written")
        entry = _read_entry(row)
        counts[entry.guarantee] += entry.times
    _check_total(head.total, counts, terms)
    if (head.entries, head.chain) != (number, chain):
        raise DamagedError(f"it has {number} entries, and its total is of {head.entries}")


def read_terms(db: sqlite3.Connection) -> dict[str, str]:
    """The terms of the budget, by name."""
    terms = dict(db.execute("SELECT name, value FROM terms"))
    if not all(isinstance(text, str) for item in terms.items() for text in item):
        raise DamagedError("its terms are not text")
    return terms


def read_head(db: sqlite3.Connection, known: tuple[int, str] = (0, "")) -> Head:
    """Total, number and last hash of all entries; DamagedError if the last entry contradicts.

    `known`: number and hash of the last entry that was read earlier; it must still be there.
    """
    query = "SELECT id, chain FROM entries WHERE id = ?"
    if known[0] and db.execute(query, known[:1]).fetchone() != known:
        raise DamagedError(f"entry {known[0]} is gone: an earlier state of the file was put back")
    rows = db.execute("SELECT first, second, entries, chain FROM total").fetchall()
    if len(rows) != 1:
        raise DamagedError("its total is missing" if not rows else "it has several totals")
    first, second, entries, chain = rows[0]
    last = db.execute("SELECT id, chain FROM entries ORDER BY id DESC LIMIT 1").fetchall()
    if last != ([(entries, chain)] if entries else []):
        number = last[0][0] if last else 0
        raise DamagedError(f"its last entry is {number}, and its total is of {entries} entries")
    return Head((_read_number(first), _read_number(second)), entries, chain)


def append(
    db: sqlite3.Connection, head: Head, cost: Amount, entries: Iterable[Spending]
) -> tuple[int, str]:
    """Append entries, and write the new total; return number and hash of the last entry."""
    at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    rows = [
        # Zero is added because SQLite keeps no sign of zero, and the hash would.
        (number, float(g.epsilon), float(g.delta) + 0.0, str(g.neighbours),
         None if g.rho is None else float(g.rho), int(entry.times), entry.note, at)
        for number, entry in enumerate(entries, head.entries + 1)
        for g in (entry.guarantee,)
    ]  # fmt: skip
    chain, linked = head.chain, []
    for row in rows:
        chain = _make_next_link(chain, row)
        linked.append((*row, chain))
    db.executemany(
        f"INSERT INTO entries ({_COLUMNS}, chain) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", linked
    )
    sums = [str(spent + more) for spent, more in zip(head.total, cost, strict=True)]
    last = head.entries + len(rows), chain
    db.execute("UPDATE total SET first = ?, second = ?, entries = ?, chain = ?", [*sums, *last])
    return last


def read_entries(db: sqlite3.Connection) -> list[Spending]:
    """All entries, in order."""
    return [_read_entry(row) for row in db.execute(f"SELECT {_COLUMNS} FROM entries ORDER BY id")]


def _make_first_link(terms: dict[str, str]) -> str:
    return _compute_digest(["fpbench ledger", VERSION, sorted(terms.items())])


def _make_next_link(chain: str, row: Iterable[Any]) -> str:
    return _compute_digest([chain, *row])


def _compute_digest(values: list[Any]) -> str:
    try:
        return hashlib.sha256(json.dumps(values).encode()).hexdigest()
    except (TypeError, ValueError):  # bytes, in a column of text or numbers
        raise DamagedError("an entry has values that no ledger writes") from None


def _check_total(total: Amount, counts: Counter[Guarantee], terms: dict[str, str]) -> None:
    """Compare the total with the costs of all entries; equal guarantees are priced once."""
    first = second = Fraction(0)
    for guarantee, times in counts.items():
        cost = price_release(guarantee, terms["accounting"])
        first, second = first + times * cost[0], second + times * cost[1]
    if total != (first, second):
        stated, summed = (
            " and ".join(f"{value!s:.40}" for value in amount)
            for amount in (total, (first, second))
        )
        raise DamagedError(f"its total is {stated}, and its entries cost {summed}")


def _read_entry(row: Iterable[Any]) -> Spending:
    number, epsilon, delta, neighbours, rho, times, note, at = row
    real = isinstance(epsilon, float) and isinstance(delta, float) and isinstance(rho, float | None)
    whole = isinstance(times, int) and times >= 1
    if not (real and whole and isinstance(note, str) and isinstance(at, str)):
        raise DamagedError(f"entry {number!r:.40} has values of the wrong type")
    try:
        return Spending(Guarantee(epsilon, delta, neighbours, rho), times, note)
    except InputError as error:
        raise DamagedError(f"entry {number!r:.40}: {error}") from error


def _read_number(text: object) -> Fraction:
    if isinstance(text, str) and _NUMBER.fullmatch(text):
        try:
            return Fraction(text)
        except ZeroDivisionError:
            pass
    raise DamagedError(f"its total is not a fraction: {text!r:.60}")
