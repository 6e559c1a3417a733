"""Public candidates for splits: regular thresholds between declared bounds, declared categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fpbench import InputError
from fpbench.builtin.private_tree.recipe import TreeRecipe

if TYPE_CHECKING:
    from pandas import DataFrame

    from fpbench.data import Domain

Floats: TypeAlias = NDArray[np.float64]
Bins: TypeAlias = NDArray[np.int64]


class NumberFeature(NamedTuple):
    """A column of numbers; bin b holds values above b thresholds and no more."""

    column: int
    low: float
    high: float
    thresholds: Floats
    """(t,) ascending and different, at least low and below high."""


class CategoryFeature(NamedTuple):
    """One-hot columns of a matrix; the last bin is for people without a category."""

    column: int
    size: int


class BinMass(NamedTuple):
    """People's mass of 1 in the bins of a feature, K of them at most."""

    bins: Bins
    """(n, K), or (n, 1) if all of it is in one bin."""
    mass: Floats | None
    """(n, K), rows sum to 1; None if it is all in one bin."""


class CandidateTable(NamedTuple):
    """The c candidates, as arrays (c,)."""

    feature: NDArray[np.intp]
    """Number of the feature that it tests."""
    rank: NDArray[np.intp]
    """Number of its threshold, or of its category."""
    number: NDArray[np.bool_]
    above: Bins
    upto: Bins
    """People in bins b with above < b <= upto go right."""
    column: NDArray[np.intp]
    threshold: Floats
    """The same people: those with a value above the threshold in this column of the matrix."""


@dataclass(frozen=True, eq=False)
class SplitCandidates:
    """All splits that a private tree may choose from; they depend on no data.

    A number has `recipe.thresholds` regular thresholds strictly between its bounds. Under `grid`
    they are rounded to borders of cells (k tau, (k + 1) tau] of the number scaled to [0, 1], so
    that people of one cell always follow one path. A category is a candidate of its own.

    Attributes
    ----------
    features
        What each feature may be split by.
    recipe
        How a tree is grown from them.
    n_columns
        Of the matrix that trees take.
    """

    features: tuple[NumberFeature | CategoryFeature, ...]
    recipe: TreeRecipe
    n_columns: int

    @classmethod
    def of_bounds(cls, low: Floats, high: Floats, recipe: TreeRecipe) -> SplitCandidates:
        """Of a matrix of d numbers between bounds (d,).

        Raises
        ------
        InputError
            If bounds are beyond the numbers of single precision.
        """
        numbers = [
            _make_number(i, a, b, recipe) for i, (a, b) in enumerate(zip(low, high, strict=True))
        ]
        return cls(tuple(numbers), recipe, len(numbers))

    @classmethod
    def of_domain(cls, features: DataFrame, domain: Domain, recipe: TreeRecipe) -> SplitCandidates:
        """Of `fpbench.models.encode(domain.fit(features))`; only the names of features are read.

        Raises
        ------
        InputError
            If bounds are beyond the numbers of single precision.
        """
        names = [str(name) for name in features.columns]
        known: list[NumberFeature | CategoryFeature] = []
        column = 0
        for name in [n for n in names if n in domain.bounds]:
            known.append(_make_number(column, *domain.bounds[name], recipe, f"{name!r}: "))
            column += 1
        for name in [n for n in names if n in domain.categories]:
            known.append(CategoryFeature(column, len(domain.categories[name])))
            column += known[-1].size  # type: ignore[union-attr]
        return cls(tuple(known), recipe, column)

    def __len__(self) -> int:
        return len(self.table.feature)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of bins of each feature."""
        return tuple(
            len(f.thresholds) + 1 if isinstance(f, NumberFeature) else f.size + 1
            for f in self.features
        )

    @cached_property
    def table(self) -> CandidateTable:
        """All candidates, feature by feature."""
        rows: list[tuple[Any, ...]] = []
        for i, feature in enumerate(self.features):
            if isinstance(feature, NumberFeature):
                last = len(feature.thresholds)
                rows += [
                    (i, k, True, k, last, feature.column, t)
                    for k, t in enumerate(feature.thresholds)
                ]
            else:
                rows += [
                    (i, k, False, k - 1, k, feature.column + k, 0.5) for k in range(feature.size)
                ]
        columns = list(zip(*rows, strict=True)) or [()] * len(CandidateTable._fields)
        types: Sequence[Any] = (np.intp, np.intp, bool, np.int64, np.int64, np.intp, np.float64)
        return CandidateTable(*(np.array(c, dtype=t) for c, t in zip(columns, types, strict=True)))

    def possible_at_first(self) -> NDArray[np.bool_]:
        """(c,) which candidates a root may choose: all but the only category of a feature."""
        sizes = np.array([2 if isinstance(f, NumberFeature) else f.size for f in self.features])
        return np.asarray(sizes.astype(np.intp)[self.table.feature] > 1)

    def possible_below(
        self, possible: NDArray[np.bool_], chosen: NDArray[np.intp]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Candidates (g, c) left and right of nodes with candidates (g, c) that chose (g,).

        Below x <= t no greater threshold of x splits anybody, and below x > t no smaller one.
        People have one category each, so that a category is tested once, and the last one never.
        """
        table = self.table
        leaf, candidate = (chosen < 0)[:, None], np.maximum(chosen, 0)
        same = table.feature == table.feature[candidate][:, None]
        rank, number = table.rank[candidate][:, None], table.number[candidate][:, None]
        lower, upper = table.rank <= rank, table.rank >= rank
        left = possible & ~(same & upper & (number | lower)) & ~leaf
        right = possible & ~(same & (lower | ~number)) & ~leaf
        single = ~number[:, 0] & ((left & same).sum(axis=1) <= 1)
        left &= ~(same & single[:, None])
        return left, right

    def count_rivals(self, possible: NDArray[np.bool_]) -> Floats:
        """Logarithms (g, c) of how many possible candidates (g, c) test the same feature."""
        own = self.table.feature[:, None] == np.arange(len(self.features))
        rivals: Floats = np.maximum(possible @ own.astype(np.float64), 1.0)
        return np.asarray(np.log(rivals)[:, self.table.feature])

    def bins(self, matrix: NDArray[Any]) -> Bins:
        """The bin (features, n) of each of n people, given a matrix (n, columns)."""
        bins = np.empty((len(self.features), len(matrix)), dtype=np.int64)
        for i, feature in enumerate(self.features):
            if isinstance(feature, NumberFeature):
                values = matrix[:, feature.column].astype(np.float64)
                bins[i] = np.searchsorted(feature.thresholds, values, side="left")
            else:
                bins[i] = _find_category(matrix, feature)
        return bins

    def spreads(self, matrix: NDArray[Any], bins: Bins) -> list[BinMass]:
        """The mass of each person in the bins of every feature.

        Under `ball` it is spread evenly over [z - tau, z + tau], z the number scaled to [0, 1];
        what is beyond the ends is in the bins at the ends.
        """
        tau = self.recipe.tau if self.recipe.similarity == "ball" else 0.0
        masses = []
        for feature, own in zip(self.features, bins, strict=True):
            if tau > 0 and isinstance(feature, NumberFeature):
                masses.append(_spread_ball(feature, matrix[:, feature.column], tau))
            else:
                masses.append(BinMass(own[:, None], None))
        return masses

    def cells(self, matrix: NDArray[Any]) -> Bins:
        """Which cell (n, features) each person is in: in every number and category.

        People of one cell get one label by every tree that is grown by this recipe.

        Raises
        ------
        InputError
            If there are no cells: similarity is not `grid`, or tau is 0.
        """
        tau = self.recipe.tau
        if self.recipe.similarity != "grid" or tau == 0:
            raise InputError('cells exist only with similarity = "grid" and tau above 0')
        cells = np.empty((len(matrix), len(self.features)), dtype=np.int64)
        for i, feature in enumerate(self.features):
            if isinstance(feature, NumberFeature):
                cells[:, i] = _find_cell(feature, matrix[:, feature.column], tau)
            else:
                cells[:, i] = _find_category(matrix, feature)
        return cells


def _make_number(
    column: int, low: float, high: float, recipe: TreeRecipe, who: str = ""
) -> NumberFeature:
    low, high = float(low), float(high)
    if max(-low, high) > float(np.finfo(np.float32).max):
        raise InputError(
            f"bounds: {who}{low:g} to {high:g} is beyond the numbers of single precision, which is "
            "what trees take"
        )
    shares = np.arange(1, recipe.thresholds + 1) / (recipe.thresholds + 1)
    if recipe.similarity == "grid" and recipe.tau > 0:
        border = np.maximum(np.round(shares / recipe.tau), 1.0)
        values = _find_border(border[border * recipe.tau < 1], low, high, recipe.tau)
    else:
        values = low + shares * (high - low)
    # Bounds may be too close for all thresholds. In single precision, which values have, people
    # beyond a bound must be on the same side as people on it.
    values = np.unique(values)
    least, most = max(low, float(np.float32(low))), min(high, float(np.float32(high)))
    return NumberFeature(column, low, high, values[(values >= least) & (values < most)])


def _find_border(k: Floats, low: float, high: float, tau: float) -> Floats:
    """The lower border of cell k, always by the same floating-point operations."""
    return np.asarray(low + (k * tau) * (high - low))


def _find_cell(feature: NumberFeature, values: NDArray[Any], tau: float) -> Floats:
    """The cell k with border(k) < x <= border(k + 1); the first holds the lower bound too."""
    low, high = feature.low, feature.high
    x = np.clip(values.astype(np.float64), low, high)
    k = np.ceil((x - low) / (high - low) / tau) - 1
    for _ in range(2):  # rounding may be off by one
        k += x > _find_border(k + 1, low, high, tau)
        k -= x <= _find_border(k, low, high, tau)
    return np.asarray(np.maximum(k, 0.0))


def _find_category(matrix: NDArray[Any], feature: CategoryFeature) -> NDArray[np.intp]:
    block = matrix[:, feature.column : feature.column + feature.size]
    return np.where(block.any(axis=1), block.argmax(axis=1), feature.size)


def _spread_ball(feature: NumberFeature, values: NDArray[Any], tau: float) -> BinMass:
    width = feature.high - feature.low
    cuts = (feature.thresholds - feature.low) / width
    z = (np.clip(values.astype(np.float64), feature.low, feature.high) - feature.low) / width
    first = np.searchsorted(cuts, z - tau, side="right")
    last = np.searchsorted(cuts, z + tau, side="left")
    most = int((last - first).max(initial=0)) + 1
    bins = np.minimum(first[:, None] + np.arange(most), len(cuts))
    upto = np.append(cuts, np.inf)[bins]
    share = np.clip((upto - z[:, None] + tau) / (2 * tau), 0.0, 1.0)
    return BinMass(bins, np.diff(share, axis=1, prepend=0.0))
