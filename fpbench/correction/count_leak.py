"""What exact counts of a group in disjoint cells of people add to the best guess: no simulation.

Every claim about parity is computed from such counts (cells of a prediction, or of a prediction and
a label), and cannot add more than they do, whatever it says of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.base.argument_types import check_arguments
from fpbench.base.arguments import to_array, to_floats
from fpbench.base.errors import InputError
from fpbench.correction.poisson_binomial import Side, Tilted

_Floats = NDArray[np.floating[Any]]

_BLOCK = 1 << 12
"""People whose recurrence runs at once: a few arrays of them fit into the cache."""
_MARGIN = 1.5
"""How much further than the law of all the others' may reach, in log-odds; 1 would nearly do."""
_NEGLIGIBLE = 1e-20
"""A count this much less probable than the likeliest one adds nothing that a float shows."""


@check_arguments
def compute_count_leak(beliefs: ArrayLike, cells: ArrayLike) -> float:
    """The expected rise of accuracy by the exact number of group 1 in every cell.

    Parameters
    ----------
    beliefs
        (n,) probability of belonging to group 1, of independent people.
    cells
        (n,) whole numbers: the cell that each person is counted in.

    Returns
    -------
    float
        A share of the n people; about .4 to .9 *persons* a count, however many people there are.

    Raises
    ------
    InputError
        If beliefs are no probabilities, or cells are of another length.

    Notes
    -----
    mean_i [sum_c max(p_i P_-i(c - 1), (1 - p_i) P_-i(c)) - m_i], where P_-i is the law of the count
    of all others in the cell. It follows from the law of everybody's by taking the person out, from
    the side where that only shrinks errors. Who can never be talked over is left out.
    """
    chances, members = to_floats("beliefs", beliefs), to_array("cells", cells, "biu")
    if chances.ndim != 1 or len(chances) == 0 or members.shape != chances.shape:
        raise InputError(
            f"beliefs and cells must be (n,) of the same people, not {chances.shape} and "
            f"{members.shape}"
        )
    if not ((chances >= 0) & (chances <= 1)).all():
        raise InputError("beliefs must be probabilities of group 1, in [0, 1]")
    people = sum(_count_gained(chances[members == cell]) for cell in np.unique(members))
    return people / len(chances)


def _count_gained(chances: _Floats) -> float:
    """Expected people of a cell put right by the count who were not before."""
    chances = chances[(chances > 0) & (chances < 1)]
    if len(chances) == 0:
        return 0.0
    odds = np.log(chances) - np.log1p(-chances)
    law = Tilted(Side(odds, np.ones(len(odds), np.bool_))).distribution
    counted = np.flatnonzero(law > _NEGLIGIBLE * law.max())
    shares = law[counted[0] : counted[-1] + 1]
    # People of group 1 with few odds, and those of group 0 with few odds, are each other's mirror.
    return _sum_gains(chances[chances <= 0.5], shares) + _sum_gains(
        1 - chances[chances > 0.5], shares[::-1]
    )


def _sum_gains(chances: _Floats, law: _Floats) -> float:
    """Expected people, of beliefs up to one half, whom the count puts into group 1 rightly."""
    steps = np.log(law[1:], where=law[1:] > 0, out=np.full(len(law) - 1, -np.inf)) - np.log(
        np.maximum(law[:-1], 1e-300)
    )
    least = _MARGIN * min(float(steps.min()), 0.0) if len(law) > 2 else -np.inf
    chances = chances[np.log(chances) - np.log1p(-chances) >= least]
    return sum(
        _gain_of(chances[start : start + _BLOCK], law) for start in range(0, len(chances), _BLOCK)
    )


def _gain_of(chances: _Floats, law: _Floats) -> float:
    ratio = chances / (1 - chances)
    # (1 - p) P_-i, one count after the other. Up to its mode, which is at most one below that of
    # everybody's law, no belief in group 1 passes one half.
    without, carried, gained = np.zeros((3, len(chances)))
    mode = int(law.argmax()) - 1
    for count, share in enumerate(law):
        np.multiply(ratio, without, out=carried)  # p P_-i(count - 1)
        np.subtract(share, carried, out=without)
        if count >= mode:
            carried -= without
            gained += np.maximum(carried, 0.0, out=carried)
    return float(gained.sum())
