"""Adversaries that train on a part of the attack set and are calibrated on the rest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fpbench import Adversary
from fpbench.errors import DataError
from fpbench.plugin import Codes


class HoldingOut(Adversary):
    """An adversary that holds out a part of the attack set from training."""

    held_out: float = Field(
        0.3, gt=0, lt=1, description="share of the attack set that is held out from training"
    )


def split_rows(
    people: int, share: float, rng: np.random.Generator, what: str = "the attack set"
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows held out and rows to train on, at random, each ascending and at least one.

    Raises DataError if there are fewer than two people.
    """
    if people < 2:
        raise DataError(
            f"{what} has {people} people: too few to train an adversary on some and hold out "
            "others; take a larger data set, or a larger attack part"
        )
    held_out = int(np.clip(round(share * people), 1, people - 1))
    order = rng.permutation(people)
    return np.sort(order[:held_out]), np.sort(order[held_out:])


def estimate_shares(codes: Codes, groups: int) -> NDArray[np.float64]:
    """Estimated probability of each group, (K,), from m people of these groups.

    By Laplace's rule of succession, (count + 1) / (m + K): a group without people is rare, not
    impossible.
    """
    counts = np.bincount(codes, minlength=groups)
    shares: NDArray[np.float64] = (counts + 1) / (len(codes) + groups)
    return shares
