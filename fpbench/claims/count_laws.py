"""Laws of published numbers of people: how likely each is, given the true number.

A number is exact, or in a range; has noise; was rounded at random to a neighbouring multiple; was
chosen by the exponential mechanism among 0 to the size of its set; or was perturbed by cell keys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fpbench.base.errors import InputError
from fpbench.claims.cell_keys import MOST_AWAY, find_transitions

Floats: TypeAlias = NDArray[np.float64]

LOSSES: Final[dict[str, Callable[[Floats], Floats]]] = {
    "absolute": lambda d: d,
    "squared": np.square,
    "root": np.sqrt,
    "indicator": lambda d: (d > 0).astype(np.float64),
}
"""Losses of the exponential mechanism, of distances (D,) from the true number."""
LAWS: Final = (
    "exact", "gaussian", "laplace", "rounding", *(f"exponential-{name}" for name in LOSSES),
    *(f"cell-key-{most}" for most in range(1, MOST_AWAY + 1)),
)  # fmt: skip
"""Names of laws. The width of a law is: of `gaussian` noise, its standard deviation; of `laplace`
noise, its scale b, probabilities falling as exp(-d / b); of `rounding`, the number to whose
multiples the true one is rounded, up with the probability that keeps the mean; of `exponential-*`
mechanisms w, probabilities being proportional to exp(-loss / w); of `cell-key-*`, whose noise is at
most the number in the name, its greatest variance (`find_transitions`)."""
EXACT, GAUSSIAN, LAPLACE, ROUNDING, EXPONENTIAL = range(5)
CELL_KEY = EXPONENTIAL + len(LOSSES)
"""Places in `LAWS`; those of the exponential mechanism, and of cell keys, are the last ones."""


def is_bounded(kind: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Whether laws leave a range of true numbers, on which proofs may rest, though not exact."""
    return np.asarray((kind == ROUNDING) | (kind >= CELL_KEY))


class CountLaws(NamedTuple):
    """The laws of the published numbers of K groups in M sets."""

    kind: NDArray[np.int8]
    """(M,) place in `LAWS`; a range is `exact`."""
    width: Floats
    """(M,) 0 of exact ones."""
    rounded: Floats
    """(M, K) published numbers that were rounded at random, or perturbed by cell keys; NaN where
    there is none, or it is not published."""

    @classmethod
    def of(cls, kind: NDArray[np.integer], width: Floats, groups: int) -> CountLaws:
        """Laws without rounded numbers."""
        nothing = np.full((len(kind), groups), np.nan)
        return cls(kind.astype(np.int8), np.where(kind > 0, width, 0.0), nothing)

    def check(self, m: int, groups: int) -> None:
        """Raise InputError if they are not of M sets and K groups, or no laws."""
        width = np.where(self.kind == EXACT, 1.0, self.width)
        if (
            [part.shape for part in self] != [(m,), (m,), (m, groups)]
            or not ((self.kind >= EXACT) & (self.kind < len(LAWS))).all()
            or not ((width > 0) & np.isfinite(width)).all()
        ):
            raise InputError(
                f"laws must be ({m},) places in LAWS, ({m},) widths above 0 and ({m}, {groups}) "
                "rounded numbers"
            )

    @classmethod
    def join(cls, parts: Sequence[CountLaws]) -> CountLaws:
        """The laws of several parts' sets."""
        return cls(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    def take(self, numbers: NDArray[np.intp]) -> CountLaws:
        """The laws of some sets."""
        return CountLaws(self.kind[numbers], self.width[numbers], self.rounded[numbers])


def find_stand_ins(kind: int, width: Floats, sizes: NDArray[np.integer]) -> Floats:
    """(M,) scales of the Laplace laws that stand for one of the exponential mechanism.

    They are as likely as it at a distance of half of a set's size, and less likely nearer by.
    """
    away = np.maximum(sizes / 2, 1.0)
    return np.asarray(width * away / _list_losses(kind)(away))


def weigh_number(
    kind: int, width: float, published: float, counts: NDArray[np.integer], size: int
) -> Floats:
    """(T,) log-likelihoods of a published number, up to a constant, if the true one is `counts`."""
    away = np.abs(published - counts)
    if kind == ROUNDING:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.maximum(1 - away / width, 0)))
    if kind == GAUSSIAN:
        return np.asarray(-((away / width) ** 2) / 2)
    if kind == LAPLACE:
        return np.asarray(-away / width)
    if kind >= CELL_KEY:
        most = kind - CELL_KEY + 1
        with np.errstate(divide="ignore"):
            logs = np.log(find_transitions(most, width))
        step = np.clip(np.rint(published - counts).astype(np.int64), -most, most)
        return np.where(away > most, -np.inf, logs[np.minimum(counts, most), step + most])
    loss = _list_losses(kind)
    # What all numbers of 0 to size weigh: those from a true number down to 0, and up to size.
    total = np.cumsum(np.exp(-loss(np.arange(size + 1.0)) / width))
    return np.asarray(-loss(away) / width - np.log(total[counts] + total[size - counts] - 1))


def _list_losses(kind: int) -> Callable[[Floats], Floats]:
    return list(LOSSES.values())[kind - EXPONENTIAL]
