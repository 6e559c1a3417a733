"""Halves of people, on which shadow models are trained."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.base.argument_types import check_arguments
from fpbench.base.errors import InputError


@check_arguments
def draw_halves(cells: ArrayLike, number: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Random halves of n people (S, n), in disjoint pairs.

    So everybody is in exactly half of them. A half has half of each cell; of a cell of odd size
    the other half of the pair has one more or one less.

    Parameters
    ----------
    cells
        (n,) whole numbers: people whose share is kept, such as those of one label and group.
    number
        S, even.
    rng
        Draws them.

    Raises
    ------
    InputError
        If the number is odd or below 2.
    """
    if number < 2 or number % 2:
        raise InputError(f"number: must be even and at least 2, not {number}")
    own = np.asarray(cells)
    if own.ndim != 1:
        raise InputError(f"cells must be (n,), one a person, not {own.shape}")
    codes = np.unique(own, return_inverse=True)[1]
    members = np.empty((number, len(codes)), dtype=bool)
    for pair in range(0, number, 2):
        order = np.lexsort((rng.random(len(codes)), codes))  # a random order within each cell
        # Every second of that order: an odd cell shifts the turn of the next, so that the halves
        # as a whole differ by one person at most.
        first = np.arange(len(codes)) % 2 == rng.integers(2)
        members[pair, order], members[pair + 1, order] = first, ~first
    return members
