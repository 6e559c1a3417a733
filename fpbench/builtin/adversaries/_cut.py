"""What all adversaries here share: which people of the attack set they keep from training."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fpbench import Adversary, DataError


class HoldingOut(Adversary):
    """An adversary that keeps a part of the attack set from training, to check itself on."""

    held_out: float = Field(
        0.3, gt=0, lt=1, description="share of the attack set that is kept from training"
    )


def cut(
    people: int, share: float, rng: np.random.Generator, what: str = "the attack set"
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows that are kept, and the other rows, ascending; at least one of each.

    Raises
    ------
    DataError
        If there are fewer than two people.
    """
    if people < 2:
        raise DataError(
            f"{what} has {people} people: too few to train an adversary on some and keep others; "
            "take a larger data set, or a larger attack part"
        )
    kept = int(np.clip(round(share * people), 1, people - 1))
    order = rng.permutation(people)
    return np.sort(order[:kept]), np.sort(order[kept:])
