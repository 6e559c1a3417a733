"""Groups of rows of different sizes, padded to rectangular arrays."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

_LEAST, _STEPS = 8, 8
"""Groups are padded to one of at least `_STEPS` lengths between a power of 2 and the next, all of
them multiples of `_LEAST`."""


def pad_groups(
    groups: list[NDArray[np.intp]], width: int, most: int
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]]:
    """Blocks of groups padded to one length: group numbers, row numbers and a mask.

    The padded length of a group depends on its own size alone, and only groups of one length share
    a block. A matrix product may round a row differently if there are more rows; padding a group to
    the longest of its block would make its last bits depend on other groups. Lengths are even:
    groups of 8-byte numbers then begin at multiples of 16 bytes wherever they stand in a block, on
    which the last bits of some dot products depend.

    `groups`: row numbers of each group; empty groups are in no block. `width`: numbers that a row
    stands for; a block of several groups stands for at most `most`.

    Yields numbers (b,) of the groups in a block, by falling size; row numbers (b, n), padded with a
    row of the same group; and (b, n) a mask: 1 for rows of the group, 0 for padding.
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
