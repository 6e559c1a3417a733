"""Fitted private trees: many at once, and one as scikit-learn has it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fpbench import InputError
from fpbench.builtin.private_tree.split_candidates import SplitCandidates
from fpbench.data import Domain
from fpbench.models import Rules

if TYPE_CHECKING:
    from pandas import DataFrame

Floats: TypeAlias = NDArray[np.float64]

_AT_ONCE = 4_000_000
"""Numbers of which there may be several arrays."""


@dataclass(frozen=True, eq=False)
class TreeNodes:
    """Nodes of a tree under the names that scikit-learn's `tree_` has; parents come first."""

    children_left: NDArray[np.intp]
    children_right: NDArray[np.intp]
    """(nodes,), -1 at a leaf."""
    feature: NDArray[np.intp]
    """(nodes,) the column that is tested, -2 at a leaf."""
    threshold: Floats
    """(nodes,) greatest value that goes left, -2 at a leaf."""
    value: Floats
    """(nodes, 1, 2) probabilities of the labels, from noisy counts."""
    counts: Floats
    """(nodes, 2) noisy counts of the labels; at an inner node the sum of its leaves."""
    max_depth: int

    @property
    def node_count(self) -> int:
        """Number of nodes."""
        return len(self.feature)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int((self.children_left < 0).sum())


@dataclass(frozen=True, eq=False)
class PrivateTree:
    """One private tree; `fpbench.models.tree_rules` reads it as it reads scikit-learn's.

    Attributes
    ----------
    tree_
        The arrays of the tree, as scikit-learn names them.
    n_features_in_
        Number of columns of the design.
    classes_
        (2,) labels.
    """

    tree_: TreeNodes
    n_features_in_: int
    classes_: NDArray[Any] = field(default_factory=lambda: np.array([0, 1]))
    n_outputs_ = 1

    def apply(self, matrix: NDArray[Any]) -> NDArray[np.intp]:
        """The leaf (n,) of each person, given a matrix (n, columns)."""
        nodes, rows = self.tree_, np.arange(len(matrix))
        at = np.zeros(len(matrix), dtype=np.intp)
        column = np.maximum(nodes.feature, 0)  # any column for a leaf, where nobody goes further
        for _ in range(nodes.max_depth):
            left = matrix[rows, column[at]] <= nodes.threshold[at]
            child = np.where(left, nodes.children_left[at], nodes.children_right[at])
            at = np.where(child < 0, at, child)
        return at

    def proba(self, matrix: NDArray[Any]) -> Floats:
        """Probabilities (n, 2) of label 0 and label 1."""
        return np.asarray(self.tree_.value[self.apply(matrix), 0])


@dataclass(frozen=True, eq=False)
class PrivateTreeBatch:
    """R private trees of one recipe. Children of node i are 2 i + 1, left, and 2 i + 2.

    Attributes
    ----------
    candidates
        The splits that were chosen from.
    split
        (R, nodes) the chosen candidate of each node; -1 at a leaf, and where there is no node.
    counts
        (R, nodes, 2) noisy counts of both labels as released, of a node the sum of its leaves'.
    positive
        (R, nodes) probability of label 1, a function of noisy counts.
    """

    candidates: SplitCandidates
    split: NDArray[np.int32]
    counts: Floats
    positive: Floats

    def __len__(self) -> int:
        return len(self.split)

    def leaves(self, matrix: NDArray[Any]) -> NDArray[np.intp]:
        """The leaf (R, n) of each person in each tree, given a matrix (n, columns)."""
        bins = self.candidates.bins(matrix)
        depth = self.candidates.recipe.max_depth
        return descend(self.candidates, bins, self.split, depth)

    def proba(self, matrix: NDArray[Any]) -> Floats:
        """Probabilities (R, n) of label 1 by all trees."""
        n, depth = len(matrix), self.candidates.recipe.max_depth
        bins = self.candidates.bins(matrix)
        chances = np.empty((len(self), n))
        for rows in iterate_blocks(len(self), n):
            at = descend(self.candidates, bins, self.split[rows], depth)
            chances[rows] = np.take_along_axis(self.positive[rows], at, axis=1)
        return chances

    def tree(self, number: int) -> PrivateTree:
        """Tree `number`, as scikit-learn has it."""
        split, positive = self.split[number], self.positive[number]
        inner = split >= 0
        reachable = np.zeros(len(split), dtype=bool)
        reachable[0] = True
        for node in np.flatnonzero(inner):  # parents come first
            reachable[[2 * node + 1, 2 * node + 2]] = True
        nodes = np.flatnonzero(reachable)
        new = np.full(2 * len(split) + 1, -1)
        new[nodes] = np.arange(len(nodes))
        inner, at = inner[nodes], np.maximum(split[nodes], 0)
        table = self.candidates.table
        column = table.column[at] if len(table.column) else at
        threshold = table.threshold[at] if len(table.column) else at
        return PrivateTree(
            TreeNodes(
                np.where(inner, new[2 * nodes + 1], -1),
                np.where(inner, new[2 * nodes + 2], -1),
                np.where(inner, column, -2),
                np.where(inner, threshold, -2.0),
                np.stack([1.0 - positive[nodes], positive[nodes]], axis=1)[:, None],
                self.counts[number][nodes],
                (int(nodes.max()) + 1).bit_length() - 1,
            ),
            self.candidates.n_columns,
        )


def iterate_blocks(repetitions: int, each: int) -> Iterator[slice]:
    """Slices of repetitions, short enough that `each` numbers a repetition fit into memory."""
    size = max(1, _AT_ONCE // max(each, 1))
    for start in range(0, repetitions, size):
        yield slice(start, min(start + size, repetitions))


def descend(
    candidates: SplitCandidates, bins: NDArray[np.int64], split: NDArray[Any], levels: int
) -> NDArray[np.intp]:
    """Nodes (R, n) that people with bins (features, n) reach in trees of splits (R, nodes)."""
    at = np.zeros((len(split), bins.shape[1]), dtype=np.intp)
    for _ in range(levels):
        at = descend_once(candidates, bins, np.take_along_axis(split, at, axis=1), at)
    return at


def descend_once(
    candidates: SplitCandidates,
    bins: NDArray[np.int64],
    chosen: NDArray[Any],
    at: NDArray[np.intp],
) -> NDArray[np.intp]:
    """Nodes (R, n) one level below nodes `at` (R, n) that chose candidates (R, n), -1 at a leaf."""
    table, n = candidates.table, bins.shape[1]
    if not len(table.feature):
        return at
    own = bins.ravel()[table.feature[chosen] * n + np.arange(n)]
    right = (own > table.above[chosen]) & (own <= table.upto[chosen])
    return np.where(chosen < 0, at, 2 * at + 1 + right)


def to_categoricals(X: DataFrame, domain: Domain) -> DataFrame:
    """Features whose columns of words are the declared categoricals; numbers stay numbers.

    Raises InputError if the categories of a column of words are not declared.
    """
    import pandas as pd

    frame = X.copy(deep=False)
    for name, column in X.items():
        if isinstance(column.dtype, pd.CategoricalDtype):
            continue
        if pd.api.types.is_numeric_dtype(column):
            continue
        if str(name) in domain.categories:
            known = pd.Index(domain.categories[str(name)])
            frame[name] = pd.Categorical.from_codes(known.get_indexer(pd.Index(column)), known)
        else:
            raise InputError(
                f"the feature {name!r} is {column.dtype}, not numbers; declare all that it may be, "
                f'domain={{"{name}": ["...", "..."]}}'
            )
    return frame


@dataclass(frozen=True)
class _RulesWithin:
    """Finds people's rules after their features were fitted into a domain."""

    domain: Domain
    rules: Rules

    def __call__(self, features: DataFrame) -> NDArray[Any]:
        return self.rules.apply(self.domain.fit(to_categoricals(features, self.domain)))


def rules_within(rules: Rules, domain: Domain) -> Rules:
    """The same rules for features outside a domain, or with categories in another order.

    Columns of a data frame have their own categories in their own order; the rules test columns
    that the declared categories make.

    Parameters
    ----------
    rules
        Of a tree over encoded columns.
    domain
        Public bounds and categories.
    """
    return replace(rules, find=_RulesWithin(domain, rules))
