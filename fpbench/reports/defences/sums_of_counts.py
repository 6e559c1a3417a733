"""Which numbers of people are sums of which others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from fpbench.claims.set_counts import Floats, Mask
from fpbench.reports.defences.counts_with_noise import Counts
from fpbench.reports.slices import Codes, number_slices


@dataclass(frozen=True, eq=False)
class Sums:
    """E sums over A numbers: parts of a number, which together are it.

    The first numbers are those of `Counts`; then those of larger slices that nobody publishes, and
    of the people of a slice who are in none of its parts.
    """

    matrix: csr_array
    """(E, A): 1 for parts, -1 for the whole."""
    total: Floats
    """(A,) people of all groups."""
    phantom: Mask
    """(A,) whether a number is of the people in no part."""
    keys: Codes
    """(those that are no phantoms, columns) values of the columns, the label, and the prediction;
    -1 of a column that does not cut the slice."""

    @classmethod
    def of(cls, counts: Counts) -> Self:
        """All sums over numbers that are published, or might be."""
        keys = np.column_stack([counts.cells, counts.label, counts.prediction])
        total = counts.total.astype(np.float64)
        columns = counts.cells.shape[1] + 1  # labels are parts as values of a column are
        parts: list[tuple[NDArray[np.int64], NDArray[np.int64], int]] = []
        while True:  # until all larger slices are there
            parents, parts = [], []
            for c in range(columns):
                own = np.flatnonzero(keys[:, c] >= 0)
                above = keys[own].copy()
                above[:, c] = -1
                parents.append(above)
                parts.append((own, np.full(len(own), c), c))
            first, place = number_slices(np.concatenate([keys, *parents]))
            added = first[first >= len(keys)]
            wholes = np.split(place[len(keys) :], np.cumsum([len(p) for p in parents])[:-1])
            if not len(added):
                break
            own = np.concatenate([p[0] for p in parts])
            column = np.concatenate([p[1] for p in parts])
            sums = np.zeros((columns, len(first)))
            np.add.at(sums, (column, np.concatenate(wholes)), total[own])
            keys = np.concatenate([keys, np.concatenate(parents)[added - len(keys)]])
            total = np.append(total, sums.max(axis=0)[len(total) :])
        own = np.concatenate([p[0] for p in parts])
        column = np.concatenate([p[1] for p in parts])
        whole, equation = np.unique(np.concatenate(wholes) * columns + column, return_inverse=True)
        whole = whole // columns
        left = total[whole] - np.bincount(equation, weights=total[own], minlength=len(whole))
        short = np.flatnonzero(left > 0)
        e, a = len(whole), len(keys)
        rows = np.concatenate([equation, np.arange(e), short])
        places = np.concatenate([own, whole, a + np.arange(len(short))])
        signs = np.concatenate([np.ones(len(own)), -np.ones(e), np.ones(len(short))])
        matrix = csr_array((signs, (rows, places)), shape=(e, a + len(short)))
        phantom = np.arange(a + len(short)) >= a
        return cls(matrix, np.concatenate([total, left[short]]), phantom, keys)
