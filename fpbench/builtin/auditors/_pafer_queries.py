"""What PAFER asks the curator: which public cell everyone is in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fpbench import Codes, HistogramSource, Mechanism


@dataclass(frozen=True)
class Query:
    """A histogram of groups in each of S x M cells: S labels that a metric looks at, M parts."""

    cells: Codes
    """(n,) the cell of each person, or -1 for none."""
    people: NDArray[np.int64]
    """(S, M) public number of people in each cell."""

    def ask(
        self, curator: HistogramSource, epsilon: float, mechanism: Mechanism, repetitions: int
    ) -> NDArray[np.float64]:
        """Noisy numbers of people (R, S, M, K)."""
        shape = (repetitions, *self.people.shape, len(curator.groups))
        if not self.people.size:  # no rule predicts 1: there is nothing to ask
            return np.zeros(shape)
        found = curator.histogram(
            self.cells, self.people.size, epsilon=epsilon, mechanism=mechanism,
            repetitions=repetitions,
        )  # fmt: skip
        return np.asarray(found, dtype=np.float64).reshape(shape)


def query(
    parts: Codes, n_parts: int, strata: Codes | None, n_strata: int, *, but_first: bool = False
) -> Query:
    """Cells of people: every part in every stratum.

    Parameters
    ----------
    parts
        (n,) codes in 0..n_parts-1.
    n_parts
        Number of codes.
    strata
        (n,) codes in 0..n_strata-1, or -1 for people whom nobody asks about; None: all are 0.
    n_strata
        S.
    but_first
        Whether nobody asks about part 0.
    """
    width = n_parts - but_first
    # Ten million people: bytes where they fit, and no pass that is not needed.
    small = np.dtype(np.int8 if n_strata * n_parts <= np.iinfo(np.int8).max else np.int64)
    cells: Codes = parts.astype(small, copy=False)
    if but_first:
        cells = cells - small.type(1)
    if strata is not None:
        there = (strata >= 0) & (cells >= 0)
        cells = np.where(there, cells + strata.astype(small) * small.type(width), small.type(-1))
    if strata is None and not but_first and n_parts == 2:
        ones = int(np.count_nonzero(cells))
        sizes = np.array([len(cells) - ones, ones])
    else:
        sizes = np.bincount(cells[cells >= 0], minlength=n_strata * width)
    return Query(cells, sizes.reshape(n_strata, width).astype(np.int64))
