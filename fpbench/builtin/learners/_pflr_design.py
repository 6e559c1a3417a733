"""Features as numbers in [0, 1], by what is publicly known of them and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fpbench import InputError
from fpbench.data import Domain
from fpbench.models import encode

if TYPE_CHECKING:
    from pandas import DataFrame

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Design:
    """A column for each number, scaled by its bounds, one for each declared category, and a one.

    Whoever somebody is, the row is in [0, 1]^d and sums to at most `norm`; two rows, or a row and
    a mean of rows, are at most `spread` apart in L1. Sensitivities rest on these two numbers.
    """

    domain: Domain
    numbers: tuple[str, ...]
    words: tuple[str, ...]
    """Names of the categorical features."""

    @classmethod
    def of(cls, features: DataFrame, domain: Domain, who: str) -> Design:
        """From the names and types of the features.

        Raises
        ------
        InputError
            If one is not declared.
        """
        domain.check(features, who)
        names = [str(name) for name in features.columns]
        return cls(
            domain,
            tuple(name for name in names if name in domain.bounds),
            tuple(name for name in names if name in domain.categories),
        )

    @property
    def blocks(self) -> NDArray[np.intp]:
        """(d,) which feature a column is of; the column of ones is of none other."""
        widths = [len(self.domain.categories[name]) for name in self.words]
        sizes = [*(1 for _ in self.numbers), *widths, 1]
        return np.repeat(np.arange(len(sizes)), sizes)

    @property
    def norm(self) -> int:
        """Greatest sum of a row: every feature gives at most 1, and so does the one."""
        return len(self.numbers) + len(self.words) + 1

    @property
    def spread(self) -> int:
        """Greatest L1 distance of a row to a mean of rows.

        A number gives at most 1; a categorical at most 2, as what one category lacks, others have.
        """
        widths = [len(self.domain.categories[name]) for name in self.words]
        return len(self.numbers) + sum(min(width, 2) for width in widths)

    def __call__(self, features: DataFrame) -> Floats:
        """(n, d); a category that is not declared is a row of zeros.

        Raises
        ------
        InputError
            If a feature is not there.
        DataError
            If a number is missing.
        """
        names = [*self.numbers, *self.words]
        missing = [name for name in names if name not in features]
        if missing:
            raise InputError(f"the model was trained on features that are not here: {missing}")
        known = self.domain.fit(features[names])
        matrix = np.ones((len(features), len(self.blocks)))
        for place, name in enumerate(self.numbers):
            low, high = (end / 2 for end in self.domain.bounds[name])  # no overflow of high - low
            scaled = (known[name].to_numpy(np.float64) / 2 - low) / (high - low)
            matrix[:, place] = np.clip(scaled, 0.0, 1.0)
        matrix[:, len(self.numbers) : -1] = encode(known[list(self.words)])
        return matrix
