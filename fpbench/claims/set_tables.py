"""Tables of sets of people: the sets of one table are disjoint, so that a person has one code.

A person in T tables is stored as T small whole numbers, of a byte or two where tables have fewer
than 128 or 32,768 sets; of a table with few people, only those are stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Integers: TypeAlias = NDArray[np.signedinteger[Any]]

CHUNK = 1 << 15
"""People per block: as many as fit into the processor's cache."""
_OPEN = 4
"""Most tables that are tried for a set."""
_SPARSE = 4
"""A table stores its members only, if people are this many times as many."""


@dataclass(frozen=True, eq=False)
class SetTable:
    """Disjoint sets; make it by `of`."""

    member: Integers
    """(r,) index of each person's set in `numbers`; -1 for people in none."""
    numbers: NDArray[np.intp]
    """(sets,) number of each set among all."""
    rows: NDArray[np.int32] | None = None
    """(r,) rows of the people, ascending; None if they are all."""

    @classmethod
    def of(
        cls, member: Integers, numbers: NDArray[np.intp], rows: NDArray[np.int32] | None = None
    ) -> SetTable:
        """The table in its smallest form."""
        inside = np.flatnonzero(member >= 0)
        if len(inside) * _SPARSE < len(member):
            rows = inside.astype(np.int32) if rows is None else rows[inside]
            member = member[inside]
        return cls(shorten(member, len(numbers)), numbers, rows)

    def split(self) -> Iterator[tuple[slice | NDArray[np.int32], NDArray[np.intp]]]:
        """Rows of some people after others, and their sets' places counted from 1; 0 for none."""
        for at in range(0, len(self.member), CHUNK):
            part = slice(at, min(at + CHUNK, len(self.member)))
            codes = self.member[part].astype(np.intp)
            codes += 1
            yield part if self.rows is None else self.rows[part], codes

    def add_up(self, weights: NDArray[Any] | None = None) -> NDArray[np.float64]:
        """(sets,) sums of (n,) weights over the members of each set; sizes by default."""
        total = np.zeros(len(self.numbers) + 1)
        for people, codes in self.split():
            own = None if weights is None else weights[people]
            total += np.bincount(codes, own, minlength=len(total))
        return total[1:]

    def renumber(self, new: NDArray[np.intp]) -> SetTable | None:
        """The table of the sets whose new number is not -1; None if there is none."""
        numbers = new[self.numbers]
        kept = numbers >= 0
        if kept.all():
            return SetTable(self.member, numbers, self.rows)
        if not kept.any():
            return None
        place = np.full(len(kept) + 1, -1)
        place[:-1][kept] = np.arange(kept.sum())
        place = shorten(place, int(kept.sum()))
        return SetTable.of(place[self.member], numbers[kept], self.rows)

    def take_people(self, people: NDArray[np.intp], n: int) -> SetTable:
        """The table of these of n people, in their order (ascending)."""
        if self.rows is None:
            return SetTable.of(self.member[people], self.numbers)
        place = np.full(n, -1, np.int32)
        place[people] = np.arange(len(people))
        rows = place[self.rows]
        kept = rows >= 0
        return SetTable(self.member[kept], self.numbers, rows[kept])

    def put_among(self, place: NDArray[np.intp], n: int) -> SetTable:
        """The table of n people; these people have the rows `place`."""
        wide = np.full(n, -1, self.member.dtype)
        wide[place if self.rows is None else place[self.rows]] = self.member
        return SetTable.of(wide, self.numbers)


def shorten(codes: Integers, size: int) -> Integers:
    """Codes of -1 to size - 1 in the shortest signed type that holds them."""
    return codes.astype(np.min_scalar_type(-size - 1), copy=False)


def pack_sets(matrix: csr_array) -> tuple[SetTable, ...]:
    """Tables of the sets of a sparse (n, M) matrix; each set is put into a late table that fits."""
    n, m = matrix.shape
    columns = matrix.tocsc()
    members: list[NDArray[np.intp]] = []
    numbers: list[list[int]] = []
    for number in range(m):
        people = columns.indices[columns.indptr[number] : columns.indptr[number + 1]]
        last = range(max(0, len(members) - _OPEN), len(members))
        table = next((t for t in reversed(last) if (members[t][people] < 0).all()), -1)
        if table < 0:
            members.append(np.full(n, -1, np.int32))
            numbers.append([])
        members[table][people] = len(numbers[table])
        numbers[table].append(number)
    return tuple(
        SetTable.of(member, np.array(own)) for member, own in zip(members, numbers, strict=True)
    )


def list_members(tables: Sequence[SetTable], people: int, m: int) -> csr_array:
    """Sparse (M, n): the members of each set."""
    from scipy.sparse import csr_array

    sizes = np.zeros(m, np.intp)
    for table in tables:
        sizes[table.numbers] = table.add_up()
    starts = np.concatenate([[0], np.cumsum(sizes)])
    where = np.empty(starts[-1], np.int32)
    for table in tables:
        inside = np.flatnonzero(table.member >= 0).astype(np.int32)
        # A stable order of codes is quick (by radix), and keeps people ascending in each set.
        inside = inside[np.argsort(table.member[inside], kind="stable")]
        if table.rows is not None:
            inside = table.rows[inside]
        own = sizes[table.numbers]
        shift = starts[table.numbers] - np.cumsum(own) + own
        where[np.repeat(shift, own) + np.arange(len(inside))] = inside
    short = np.int32 if starts[-1] < 2**31 else np.int64
    ones = np.ones(len(where), np.int8)
    return csr_array((ones, where.astype(short, copy=False), starts.astype(short)), (m, people))
