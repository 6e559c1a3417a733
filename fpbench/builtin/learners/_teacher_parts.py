"""Disjoint parts of the private people, one for each teacher of PATE."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fpbench import Codes

Partition = Literal["hash", "equal"]


def deal_parts(
    partition: Partition,
    encoded: NDArray[np.float32],
    labels: Codes,
    private: NDArray[np.intp],
    teachers: int,
    rng: np.random.Generator,
) -> list[NDArray[np.intp]]:
    """Rows of each teacher; each private row is in exactly one part.

    `hash`: a record's part depends only on a hash of the record and a public salt. Equal records
    are numbered before hashing, which spreads them: adding or removing one changes one part by one
    record. A part is ordered by hash, so that networks, which learn from batches, see no other
    order. `equal`: shuffled and cut into parts of about equal size.
    """
    if partition == "equal":
        return check_disjoint(np.array_split(rng.permutation(private), teachers), private)
    salt = rng.integers(1 << 63, dtype=np.uint64)
    hashes = hash_records(encoded[private], labels[private], salt)
    teacher = mix_column(hashes, count_earlier(hashes)) % np.uint64(teachers)
    order = np.lexsort((hashes, teacher))
    ends = np.cumsum(np.bincount(teacher.astype(np.intp), minlength=teachers))
    return check_disjoint(np.split(private[order], ends[:-1]), private)


def check_disjoint(
    parts: list[NDArray[np.intp]], private: NDArray[np.intp]
) -> list[NDArray[np.intp]]:
    """The parts, after checking that each private row is in exactly one, for the guarantee."""
    together = np.concatenate(parts)
    if len(together) != len(private) or not np.array_equal(np.sort(together), np.sort(private)):
        raise AssertionError("the parts of the teachers are not disjoint parts of the private rows")
    return parts


def hash_records(
    encoded: NDArray[np.float32], labels: Codes, salt: np.uint64
) -> NDArray[np.uint64]:
    """A 64-bit hash (n,) of every record with its label."""
    bits = np.ascontiguousarray(encoded + np.float32(0)).view(np.uint32)  # -0 is 0
    hashes = np.full(len(encoded), salt, dtype=np.uint64)
    for column in (*bits.T, np.asarray(labels)):
        hashes = mix_column(hashes, column)
    return hashes


def mix_column(hashes: NDArray[np.uint64], column: NDArray[np.integer[Any]]) -> NDArray[np.uint64]:
    """Hashes combined with one more column of integers.

    By the finaliser of splitmix64 (Steele, Lea & Flood, Fast Splittable Pseudorandom Number
    Generators, OOPSLA 2014).
    """
    mixed = hashes ^ column.astype(np.uint64)
    mixed += np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(30)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def count_earlier(values: NDArray[np.uint64]) -> NDArray[np.intp]:
    """Number of equal values before each value (n,)."""
    order = np.argsort(values, kind="stable")
    ranked, places = values[order], np.arange(len(values))
    first = np.ones(len(values), dtype=bool)
    first[1:] = ranked[1:] != ranked[:-1]
    earlier = np.empty(len(values), dtype=np.intp)
    earlier[order] = places - np.maximum.accumulate(np.where(first, places, 0))
    return earlier
