"""How numbers of people are rounded, or perturbed, before they are published: what readers know."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from fpbench.base.errors import InputError
from fpbench.claims.cell_keys import MOST_AWAY
from fpbench.claims.count_laws import CELL_KEY, ROUNDING, Floats

ROUNDINGS: Final = ("random", "nearest", "midpoint", "controlled")
"""Ways of rounding to multiples: at random to a neighbour, keeping the mean; to the nearest, halves
up; to the middle of the block of numbers (1 to m, m + 1 to 2 m, ...), 0 staying 0; at random so
that published parts sum up to published wholes."""
_CELL_KEY = "cell-key"


class Rounding(NamedTuple):
    """A way of rounding, and its multiple; or cell keys, and the bound and variance of their noise.

    The published text is `5` for multiples of 5 at random, else `nearest 5`, `cell-key 5 3.0`.
    """

    way: str
    base: int
    variance: float = 0.0

    @classmethod
    def by_keys(cls, bound: float, variance: float) -> Rounding:
        """Perturbation by cell keys; InputError if the numbers are out of range."""
        if not isinstance(bound, float | int | np.integer) or bound not in range(1, MOST_AWAY + 1):
            raise InputError(
                f"cell_keys: bound must be a whole number from 1 to {MOST_AWAY}, not {bound!r}"
            )
        if not isinstance(variance, float | int) or not 1e-9 <= variance <= 1e9:
            raise InputError(f"cell_keys: variance must be above 0, not {variance!r}")
        return cls(_CELL_KEY, int(bound), float(variance))

    @classmethod
    def parse(cls, text: str) -> Rounding | None:
        """The rounding of a text as `str` gives it; None for any other."""
        way, *numbers = text.split() if " " in text else ["random", text]
        try:
            base, *more = map(float, numbers)
            if way == _CELL_KEY:
                return cls.by_keys(base, *more)
            good = way in ROUNDINGS and 2 <= base <= 1e15 and base == int(base) and not more
        except (ValueError, TypeError, OverflowError, InputError):
            return None
        return cls(way, int(base)) if good else None

    def __str__(self) -> str:
        if self.way == _CELL_KEY:
            return f"{self.way} {self.base} {self.variance!r}"
        return str(self.base) if self.way == "random" else f"{self.way} {self.base}"

    @property
    def reach(self) -> int:
        """How far a published number may be from the true one."""
        if self.way in ("nearest", "midpoint"):
            return self.base // 2
        return self.base if self.way == _CELL_KEY else self.base - 1

    @property
    def law(self) -> tuple[int, float] | None:
        """Place in `LAWS`, and width; None where all true numbers of a range are as likely."""
        if self.way == _CELL_KEY:
            return CELL_KEY + self.base - 1, self.variance
        return (ROUNDING, float(self.base)) if self.way in ("random", "controlled") else None

    @property
    def is_independent(self) -> bool:
        """Whether each number is rounded on a grid set beforehand, independently of all numbers."""
        return self.way in ("random", "nearest")

    def find_values(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """The least and greatest numbers from `low` to `high` that may be published."""
        if self.way == _CELL_KEY:
            return np.maximum(np.ceil(low), 0), np.floor(high)
        step = self.base
        shift = step // 2 if self.way == "midpoint" else 0
        first, last = np.ceil((low + shift) / step), np.floor((high + shift) / step)
        least, most = step * np.maximum(first, 0) - shift, step * last - shift
        if shift:  # 0 is published as such, and no middle is below it
            least = np.where(low <= 0, 0.0, np.maximum(least, step - shift))
            most = np.where((most <= 0) & (high >= 0), 0.0, most)
        return least, most

    def find_ranges(self, values: Floats) -> tuple[Floats, Floats]:
        """The least and greatest true numbers of published ones."""
        if self.way == "nearest":
            low, high = values - self.base // 2, values + (self.base - 1) // 2
        elif self.way == "midpoint":
            high = np.where(values > 0, values + self.base // 2, 0.0)
            low = np.where(values > 0, high - self.base + 1, 0.0)
        else:
            low, high = values - self.reach, values + self.reach
            if self.way == _CELL_KEY:  # 0 stays 0
                low = np.where(values > 0, np.maximum(low, 1), 0.0)
        return np.maximum(low, 0), high

    def round(self, numbers: Floats) -> Floats:
        """Numbers rounded to the nearest multiple, or the middle of their block."""
        base = self.base
        if self.way == "nearest":
            return np.asarray(base * ((numbers + base // 2) // base))
        return np.where(numbers > 0, base * -(-numbers // base) - base // 2, 0.0)
