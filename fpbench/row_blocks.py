"""Groups of rows, of any sizes, as arrays without ragged ends."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray


def in_blocks(
    groups: list[NDArray[np.intp]], width: int, most: int
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]]:
    """Groups of rows of like size, as blocks without ragged ends.

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
        Numbers (b,) of the groups in a block; row numbers (b, n), those of a short group filled
        up with one of its own; and (b, n) whether a row is of the group: 1, or 0 if it fills up.
    """
    sizes = np.array([len(rows) for rows in groups], dtype=np.intp)
    order = np.argsort(-sizes, kind="stable")
    first = 0
    while first < len(order) and sizes[order[first]]:
        longest = int(sizes[order[first]])
        chosen = order[first : first + max(1, most // (longest * width))]
        chosen = chosen[sizes[chosen] > 0]
        first += len(chosen)
        rows = np.empty((len(chosen), longest), dtype=np.intp)
        for row, group in zip(rows, chosen, strict=True):
            row[: sizes[group]] = groups[group]
            row[sizes[group] :] = groups[group][0]
        yield chosen, rows, (np.arange(longest) < sizes[chosen][:, None]).astype(np.float64)
