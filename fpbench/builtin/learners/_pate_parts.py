"""Who teaches what: public rows, disjoint parts of the others, and columns scaled by the public."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from fpbench import Codes, DataError
from fpbench.models import encode

if TYPE_CHECKING:
    from pandas import DataFrame

Partition = Literal["hash", "equal"]


@dataclass(frozen=True)
class Design:
    """How features become numbers: one-hot, standardised on the public part, and a one."""

    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    kept: NDArray[np.intp]
    """Columns that vary in the public part; nothing public could scale the others."""

    @classmethod
    def of(cls, public: NDArray[np.float32]) -> Design:
        """From encoded public rows (m, columns)."""
        mean, scale = public.mean(axis=0, dtype=np.float64), public.std(axis=0, dtype=np.float64)
        # What should be 0 is a little more in floating point.
        kept = np.flatnonzero(np.ptp(public, axis=0) > 0)
        return cls(mean[kept], scale[kept], kept)

    def __call__(self, encoded: NDArray[np.float32]) -> NDArray[np.float64]:
        """(n, d), the last column of ones."""
        matrix = np.empty((len(encoded), len(self.kept) + 1))
        np.subtract(encoded[:, self.kept], self.mean, out=matrix[:, :-1])
        matrix[:, :-1] /= self.scale
        matrix[:, -1] = 1.0
        return matrix


def encoded(features: DataFrame, learner: str) -> NDArray[np.float32]:
    """Features as numbers.

    Raises
    ------
    DataError
        If a number is missing or infinite.
    """
    matrix = encode(features)
    if not np.isfinite(matrix).all():
        import pandas as pd

        for name, column in features.items():
            if pd.api.types.is_numeric_dtype(column) and not np.isfinite(
                column.to_numpy(np.float32)
            ).all():  # fmt: skip
                raise DataError(
                    f"learner {learner!r}: the feature {name!r} holds values that are missing or "
                    "not finite; fill or drop them before"
                )
    return matrix


def parts(
    partition: Partition,
    encoded: NDArray[np.float32],
    labels: Codes,
    private: NDArray[np.intp],
    teachers: int,
    rng: np.random.Generator,
) -> list[NDArray[np.intp]]:
    """Rows of each teacher: of the private rows, each in one part only.

    `hash`: by a hash of the own record and a public salt, so that it depends on nobody else where a
    record goes. Records that are the same spread by their number: one of them more or less is then
    one record of one part more or less. A part is in the order of the hashes, so that this is all
    that networks, which learn from batches, see of it. `equal`: shuffled, and cut into parts of
    like size.
    """
    if partition == "equal":
        return disjoint(np.array_split(rng.permutation(private), teachers), private)
    salt = rng.integers(1 << 63, dtype=np.uint64)
    hashes = record_hashes(encoded[private], labels[private], salt)
    teacher = mixed(hashes, occurrences(hashes)) % np.uint64(teachers)
    order = np.lexsort((hashes, teacher))
    ends = np.cumsum(np.bincount(teacher.astype(np.intp), minlength=teachers))
    return disjoint(np.split(private[order], ends[:-1]), private)


def disjoint(found: list[NDArray[np.intp]], private: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """The parts, if each private row is in exactly one of them: the guarantee rests on it."""
    together = np.concatenate(found)
    if len(together) != len(private) or not np.array_equal(np.sort(together), np.sort(private)):
        raise AssertionError("the parts of the teachers are not disjoint parts of the private rows")
    return found


def record_hashes(
    encoded: NDArray[np.float32], labels: Codes, salt: np.uint64
) -> NDArray[np.uint64]:
    """A 64-bit hash (n,) of every record, its label included."""
    bits = np.ascontiguousarray(encoded + np.float32(0)).view(np.uint32)  # -0 is 0
    found = np.full(len(encoded), salt, dtype=np.uint64)
    for column in (*bits.T, np.asarray(labels)):
        found = mixed(found, column)
    return found


def mixed(hashes: NDArray[np.uint64], column: NDArray[np.integer[Any]]) -> NDArray[np.uint64]:
    """Hashes with one more column of whole numbers in them.

    By the finaliser of splitmix64 (Steele, Lea & Flood, Fast Splittable Pseudorandom Number
    Generators, OOPSLA 2014).
    """
    found = hashes ^ column.astype(np.uint64)
    found += np.uint64(0x9E3779B97F4A7C15)
    found ^= found >> np.uint64(30)
    found *= np.uint64(0xBF58476D1CE4E5B9)
    found ^= found >> np.uint64(27)
    found *= np.uint64(0x94D049BB133111EB)
    found ^= found >> np.uint64(31)
    return found


def occurrences(values: NDArray[np.uint64]) -> NDArray[np.intp]:
    """How many equal values stand before each (n,)."""
    order = np.argsort(values, kind="stable")
    ranked, places = values[order], np.arange(len(values))
    first = np.ones(len(values), dtype=bool)
    first[1:] = ranked[1:] != ranked[:-1]
    found = np.empty(len(values), dtype=np.intp)
    found[order] = places - np.maximum.accumulate(np.where(first, places, 0))
    return found
