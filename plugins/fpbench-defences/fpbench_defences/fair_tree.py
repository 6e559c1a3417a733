"""A tree with leaves informative of labels, not groups, grown on counts (FARE's fair trees)."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fpbench import Sample
from fpbench.base import drop_last_bits

if TYPE_CHECKING:
    from pandas import DataFrame, Series

_BINS = 64
"""Greatest number of intervals of a number."""
_SLOPES = (0.0, 1.0, -1.0, 3.0, -3.0)
"""Weights of a group's share, added to the share of label 1, in orders of categories."""

_Places: TypeAlias = NDArray[np.intp]
_Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class BinnedColumn:
    """Binning of a feature's values: whole numbers 0..bins-1."""

    name: str
    thresholds: _Floats | None
    """Thresholds of a number, ascending; values up to the first are 0."""
    categories: tuple[Any, ...] = ()
    """Categories of a categorical; the last whole number is any other value."""

    @classmethod
    def of(cls, values: Series[Any]) -> BinnedColumn:
        """Declared categories, or at most 63 thresholds between different values."""
        if hasattr(values, "cat"):
            return cls(str(values.name), None, tuple(values.cat.categories))
        ordered = np.sort(values.to_numpy(np.float64))  # missing numbers last
        different = np.unique(ordered[np.isfinite(ordered)])
        middles = (different[1:] + different[:-1]) / 2
        if len(middles) >= _BINS:
            places = np.linspace(0, len(ordered) - 1, _BINS + 1).astype(int)[1:-1]
            above = np.unique(np.searchsorted(different, ordered[places]))
            middles = middles[above[above < len(middles)]]
        return cls(str(values.name), middles)

    @property
    def bins(self) -> int:
        """Number of bins."""
        return 1 + len(self.categories if self.thresholds is None else self.thresholds)

    def encode(self, values: Series[Any]) -> _Places:
        """Values (n,) as whole numbers."""
        import pandas as pd

        if self.thresholds is not None:
            return np.searchsorted(self.thresholds, values.to_numpy(np.float64))
        known = pd.Index(self.categories)
        if hasattr(values, "cat"):
            places = np.append(known.get_indexer(values.cat.categories), -1)
            codes = places[values.cat.codes.to_numpy()]
        else:
            codes = known.get_indexer(values)
        return np.where(codes < 0, len(known), codes)


@dataclass(frozen=True)
class TreeSplit:
    """A split by one column."""

    column: int
    left: NDArray[np.bool_]
    """(bins,) which values go left."""


@dataclass(frozen=True)
class FairTree:
    """A grown tree; its leaves are numbered 0..k-1."""

    columns: tuple[BinnedColumn, ...]
    nodes: tuple[TreeSplit | int, ...]
    """Each node's split, or a leaf's number."""
    children: tuple[tuple[int, int], ...]
    """Each node's children, left and right; (-1, -1) for a leaf."""

    @property
    def k(self) -> int:
        """Number of leaves."""
        return sum(isinstance(node, int) for node in self.nodes)

    def find_leaves(self, features: DataFrame) -> _Places:
        """The leaf (n,) of each person."""
        codes = [column.encode(features[column.name]) for column in self.columns]
        leaves = np.empty(len(features), np.intp)
        waiting = [(0, np.arange(len(features)))]
        while waiting:
            at, rows = waiting.pop()
            node = self.nodes[at]
            if isinstance(node, int):
                leaves[rows] = node
                continue
            goes_left = node.left[codes[node.column][rows]]
            left, right = self.children[at]
            waiting += [(left, rows[goes_left]), (right, rows[~goes_left])]
        return leaves


def grow_fair_tree(people: Sample, *, fairness: float, leaves: int, minleaf: int) -> FairTree:
    """A tree, grown always at the leaf whose best split lowers summed impurity most.

    The impurity is FARE's FairGini, (1 - fairness) Gini(labels) + fairness (1 - 1/K -
    Gini(groups)): least if everybody in a leaf has one label, and all groups have equal shares.
    For two groups 1 - 1/K is the paper's .5.

    Categories are ordered by their share of label 1 plus a multiple of their share of a group, and
    cut in two at each position; the paper alternates between halves and quarters of them, sorted by
    group. Sets of categories with extreme counts of labels and of a group are prefixes of such
    orders.

    `people`: features, labels and groups. `fairness`: in [0, 1]. `minleaf`: least size of a leaf.
    """
    features, n_groups = people.features, len(people.groups)
    columns = tuple(BinnedColumn.of(features[name]) for name in features.columns)
    codes = [column.encode(features[column.name]) for column in columns]
    kinds = np.asarray(people.sensitive, np.intp) * 2 + people.labels

    def find_split(rows: _Places) -> tuple[float, TreeSplit] | None:
        best: tuple[float, TreeSplit] | None = None
        for at, column in enumerate(columns):
            cells = codes[at][rows] * (2 * n_groups) + kinds[rows]
            counts = np.bincount(cells, minlength=column.bins * 2 * n_groups)
            table = counts.reshape(column.bins, n_groups, 2)
            for order in _list_orders(column, table):
                gains = _find_gains(table[order], fairness, minleaf)
                cut = int(gains.argmax()) if len(gains) else 0
                if len(gains) and gains[cut] > (best[0] if best else 0.0):
                    left = _choose_left(column, order, cut, table.sum(axis=(1, 2)))
                    best = float(gains[cut]), TreeSplit(at, left)
        return best

    nodes: list[TreeSplit | int] = [-1]
    children = [(-1, -1)]
    members = {0: np.arange(len(people))}
    queue: list[tuple[float, int, TreeSplit]] = []

    def wait(at: int) -> None:
        if (split := find_split(members[at])) is not None:
            heapq.heappush(queue, (-split[0], at, split[1]))

    wait(0)
    while queue and len(members) < leaves:
        _, at, split = heapq.heappop(queue)
        rows = members.pop(at)
        goes_left = split.left[codes[split.column][rows]]
        nodes[at], children[at] = split, (len(nodes), len(nodes) + 1)
        for side in (rows[goes_left], rows[~goes_left]):
            members[len(nodes)] = side
            nodes.append(-1)
            children.append((-1, -1))
            wait(len(nodes) - 1)
    for number, at in enumerate(sorted(members)):
        nodes[at] = number
    return FairTree(columns, tuple(nodes), tuple(children))


def _list_orders(column: BinnedColumn, table: NDArray[np.int64]) -> Iterator[_Places]:
    """Orders of a column's occurring values, for cuts."""
    sizes = table.sum(axis=(1, 2))
    present = np.flatnonzero(sizes)
    if column.thresholds is not None or len(present) < 2:
        yield present
        return
    labels = table[present, :, 1].sum(axis=1) / sizes[present]
    groups = table[present].sum(axis=2) / sizes[present, None]
    seen = set()
    for group in range(1 if table.shape[1] == 2 else table.shape[1]):
        for slope in _SLOPES:
            rank = drop_last_bits(labels + slope * groups[:, group], 4.0)
            order = present[np.argsort(rank, kind="stable")]
            if (key := order.tobytes()) not in seen:
                seen.add(key)
                yield order


def _find_gains(table: NDArray[np.int64], fairness: float, minleaf: int) -> _Floats:
    """Decrease of impurity, summed over people, by each cut of a table (bins, groups, 2).

    It is -inf if a side is too small.
    """
    left = table.cumsum(axis=0)[:-1]
    right = table.sum(axis=0) - left
    sizes = left.sum(axis=(1, 2)), right.sum(axis=(1, 2))
    after = sum(_sum_impurity(side, fairness) for side in (left, right))
    gains = _sum_impurity(table.sum(axis=0)[None], fairness) - after
    fits = (sizes[0] >= minleaf) & (sizes[1] >= minleaf)
    return np.where(fits, drop_last_bits(gains, float(max(1, table.sum()))), -np.inf)


def _sum_impurity(counts: NDArray[np.int64], fairness: float) -> _Floats:
    """FairGini times people of nodes (nodes,), from their counts (nodes, groups, 2)."""
    n = np.maximum(counts.sum(axis=(1, 2)), 1)
    labels = n - (counts.sum(axis=1) ** 2).sum(axis=1) / n
    groups = n - (counts.sum(axis=2) ** 2).sum(axis=1) / n
    most = n * (1 - 1 / counts.shape[1])
    return np.asarray((1 - fairness) * labels + fairness * (most - groups))


def _choose_left(
    column: BinnedColumn, order: _Places, cut: int, sizes: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Which values go left of a cut; absent categories go to the larger side."""
    if column.thresholds is not None:
        return np.asarray(np.arange(column.bins) <= order[cut], bool)
    left = np.zeros(column.bins, bool)
    left[order[: cut + 1]] = True
    return np.asarray(np.where(sizes == 0, sizes[left].sum() >= sizes[~left].sum(), left), bool)
