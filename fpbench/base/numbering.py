"""Whole numbers as places in their own order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_SPARSE = 4
"""Numbers this many times as far apart as there are of them are sorted, not looked up."""

_Whole = NDArray[np.int64]


def numbered(values: _Whole) -> tuple[_Whole, NDArray[np.intp]]:
    """The distinct values in ascending order, and the place of each value among them.

    What `numpy.unique` gives, in a tenth of the time where the numbers lie close together, as seeds
    and numbers of lines do.
    """
    if not len(values):
        return np.zeros(0, np.int64), np.zeros(0, np.intp)
    least, greatest = int(values.min()), int(values.max())
    if greatest - least > _SPARSE * len(values) + 1_000:
        found, places = np.unique(values, return_inverse=True)
        return found, places
    there = np.zeros(greatest - least + 1, np.bool_)
    there[values - least] = True
    place = np.cumsum(there) - 1
    return np.flatnonzero(there) + least, place[values - least]
