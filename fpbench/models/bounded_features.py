"""Features as numbers in [0, 1], by declared bounds and categories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fpbench.base.errors import InputError
from fpbench.data.domain import Domain
from fpbench.models.encoding import encode

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class BoundedFeatures:
    """Features as a matrix: numbers scaled by their bounds, declared categories one-hot, and a one.

    Every possible row is in [0, 1]^d and sums to at most `norm`; two rows, or a row and a mean of
    rows, are at most `spread` apart in L1. Sensitivities follow from these two numbers.

    Attributes
    ----------
    domain
        Declared bounds and categories.
    numbers, words
        Names of the numeric and of the categorical features, in the order of the columns.
    """

    domain: Domain
    numbers: tuple[str, ...]
    words: tuple[str, ...]

    @classmethod
    def of(cls, features: DataFrame, domain: Domain, component: str) -> BoundedFeatures:
        """The encoding of these features; InputError if a feature is not declared."""
        domain.check(features, component)
        names = [str(name) for name in features.columns]
        return cls(
            domain,
            tuple(name for name in names if name in domain.bounds),
            tuple(name for name in names if name in domain.categories),
        )

    @property
    def blocks(self) -> NDArray[np.intp]:
        """(d,) number of the feature of each column; the column of ones has its own."""
        widths = [len(self.domain.categories[name]) for name in self.words]
        sizes = [*(1 for _ in self.numbers), *widths, 1]
        return np.repeat(np.arange(len(sizes)), sizes)

    @property
    def norm(self) -> int:
        """Greatest sum of a row: every feature and the constant add at most 1."""
        return len(self.numbers) + len(self.words) + 1

    @property
    def spread(self) -> int:
        """Greatest L1 distance of a row to a mean of rows.

        A number adds at most 1; a categorical at most 2: one category loses what others gain.
        """
        widths = [len(self.domain.categories[name]) for name in self.words]
        return len(self.numbers) + sum(min(width, 2) for width in widths)

    def __call__(self, features: DataFrame) -> NDArray[np.float64]:
        """The matrix (n, d); an undeclared category is encoded as zeros.

        Raises InputError if a feature of the training data is missing; DataError if a number is
        missing.
        """
        names = [*self.numbers, *self.words]
        missing = [name for name in names if name not in features]
        if missing:
            raise InputError(f"the model was trained on features that are missing here: {missing}")
        known = self.domain.fit(features[names])
        matrix = np.ones((len(features), len(self.blocks)))
        for column, name in enumerate(self.numbers):
            low, high = (end / 2 for end in self.domain.bounds[name])  # high - low cannot overflow
            scaled = (known[name].to_numpy(np.float64) / 2 - low) / (high - low)
            matrix[:, column] = np.clip(scaled, 0.0, 1.0)
        matrix[:, len(self.numbers) : -1] = encode(known[list(self.words)])
        return matrix
