"""Groups of rows, of any sizes, as arrays without ragged ends."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

_LEAST, _STEPS = 8, 8
"""Groups are filled up to one of at least `_STEPS` lengths between a power of 2 and the next, which
are multiples of `_LEAST`."""


def in_blocks(
    groups: list[NDArray[np.intp]], width: int, most: int
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]]:
    """Groups of rows of like size, as blocks without ragged ends.

    How far a group is filled up depends on its own size alone, and only groups of one length share
    a block. A matrix product may round a row otherwise if there are more rows, so that a group
    which was filled up to the longest of its block would depend, in its last bits, on the size of
    another. Lengths are even: groups of 8-byte numbers then begin at multiples of 16 bytes, as
    every array does, wherever in a block they stand; some dot products mind that.

    Parameters
    ----------
    groups
        Row numbers of each group; one without any is in no block.
    width
        Numbers that a row stands for.
    most
        Numbers that a block of several groups may stand for.

    Yields
    ------
    tuple
        Numbers (b,) of the groups in a block, by falling size; row numbers (b, n), those of a
        group filled up with one of its own; and (b, n) whether a row is of the group: 1, or 0 if
        it fills up.
    """
    sizes = np.array([len(rows) for rows in groups], dtype=np.intp)
    power = np.frexp(sizes / _STEPS)[1] - 1  # frexp is exact: 2**power <= size / 8 < 2**(power + 1)
    multiple = np.maximum(_LEAST, np.left_shift(1, np.maximum(power, 0)))
    lengths = -(-sizes // multiple) * multiple
    order = np.argsort(-sizes, kind="stable")
    first = 0
    while first < len(order) and sizes[order[first]]:
        length = int(lengths[order[first]])
        chosen = order[first : first + max(1, most // (length * width))]
        chosen = chosen[lengths[chosen] == length]
        first += len(chosen)
        rows = np.empty((len(chosen), length), dtype=np.intp)
        for row, group in zip(rows, chosen, strict=True):
            row[: sizes[group]] = groups[group]
            row[sizes[group] :] = groups[group][0]
        yield chosen, rows, (np.arange(length) < sizes[chosen][:, None]).astype(np.float64)
