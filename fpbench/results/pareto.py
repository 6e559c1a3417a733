"""Lines of a board that no other line beats in several measures together."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.results.leaderboard import Leaderboard

PARETO = "pareto"
"""The column that marks lines on the front."""
ON_FRONT = "front"


def mark_front(
    board: Leaderboard,
    costs: ArrayLike,
    groups: Sequence[Hashable],
    comparable: NDArray[np.bool_] | None = None,
) -> Leaderboard:
    """A board with a column that marks the lines that no other line of their group beats.

    `costs`, `comparable`: as in `find_front`. `groups`: the group of each line.
    """
    number = {group: i for i, group in enumerate(dict.fromkeys(groups))}
    group = np.array([number[each] for each in groups], np.intp)
    alike = group[:, None] == group
    front = find_front(costs, alike if comparable is None else alike & comparable)
    lines = tuple(
        replace(line, labels={**line.labels, PARETO: ON_FRONT if ahead else ""})
        for line, ahead in zip(board.lines, front.tolist(), strict=True)
    )
    return replace(board, kinds=(*board.kinds, PARETO), lines=lines)


def find_front(costs: ArrayLike, comparable: NDArray[np.bool_] | None = None) -> NDArray[np.bool_]:
    """(n,) whether no other point costs at most as much in everything, and less in something.

    `costs`: (n, k); a point with NaN is not on the front. `comparable`: (n, n) whether the first of
    two points may beat the second; all may if None.
    """
    points = np.asarray(costs, np.float64)
    one, other = points[:, None], points[None]
    beats = (one <= other).all(axis=-1) & (one < other).any(axis=-1)
    if comparable is not None:
        beats &= comparable
    return np.asarray(~beats.any(axis=0) & ~np.isnan(points).any(axis=-1))
