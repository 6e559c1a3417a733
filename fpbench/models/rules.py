"""Rules of a classifier: conditions, exactly one of which each person meets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fpbench.base.arrays import check_binary
from fpbench.base.errors import InputError
from fpbench.data.sample import Codes
from fpbench.models.encoding import Encoding, encode

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, eq=False)
class Branches:
    """The tree that rules come from, for propagating boxes down it.

    People with a value of at most `threshold` in column `column` go left. Values are numbers of
    single precision, as `encode` makes them. Below a node with a single label nothing is decided,
    whether it has children or not; children come after their parents.

    Attributes
    ----------
    left, right
        (nodes,) the children of each node; -1 at a leaf.
    column
        (nodes,) index into `columns` of the column that is tested; undefined at a leaf.
    threshold
        (nodes,) value that it is compared with.
    labels
        (nodes,) what is predicted below each node: 1 for label 0, 2 for label 1, 3 for both.
    columns
        Where the columns come from.
    encoding
        How features become columns; None: features are columns already.
    """

    left: NDArray[np.intp]
    right: NDArray[np.intp]
    column: NDArray[np.intp]
    threshold: NDArray[np.float64]
    labels: Codes
    columns: tuple[EncodedColumn, ...]
    encoding: Encoding | None


@dataclass(frozen=True, eq=False)
class Rules:
    """The pruned decision rules of a classifier: which rule a person meets, and what it predicts.

    Attributes
    ----------
    labels
        (r,) the label that each rule predicts, in {0, 1}.
    texts
        (r,) their conditions, as text.
    find
        The rule (n,) of each of n people, given their features.
    height
        Most conditions on the way to a rule: the height of the pruned tree; None if unknown.
    unpruned
        Number of rules that predict 1 before pruning; None if unknown.
    branches
        The tree that they come from; None if they come from anything else.

    Raises
    ------
    InputError
        If a label is not 0 or 1, there are not as many texts, or there are more rules than a
        pruned tree of this height has.
    """

    labels: Codes
    texts: tuple[str, ...]
    find: Callable[[Any], NDArray[Any]] = field(repr=False)
    height: int | None = None
    unpruned: int | None = None
    branches: Branches | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        labels = np.asarray(self.labels)
        if labels.ndim != 1 or not len(labels) or not np.isin(labels, (0, 1)).all():
            raise InputError("rules: labels must be a list of 0 and 1, one a rule")
        if len(self.texts) != len(labels):
            raise InputError(f"rules: {len(self.texts)} texts for {len(labels)} rules")
        object.__setattr__(self, "labels", labels.astype(np.int8))
        if self.height is not None and not self.n_favourable <= max(2**self.height // 2, 1):
            raise InputError(
                f"rules: {self.n_favourable} rules predict 1, but a pruned tree of height "
                f"{self.height} has at most {max(2**self.height // 2, 1)}"
            )

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def favourable(self) -> NDArray[np.intp]:
        """Codes of the rules that predict 1."""
        return np.flatnonzero(self.labels == 1)

    @property
    def n_favourable(self) -> int:
        """Number k of rules that predict 1."""
        return int((self.labels == 1).sum())

    @property
    def most_queries(self) -> int | None:
        """Most histograms that an audit of such rules asks for: 2^(h - 1) + 1, h the height.

        A histogram of each rule that predicts 1, and one of everyone. Below a node of the pruned
        tree both labels are predicted, so at most half of its leaves can predict 1 (van der Steen
        et al., theorem 1). It is at least 2, unless nobody is predicted 1.
        """
        return None if self.height is None else max(2**self.height // 2, 1) + 1

    def apply(self, features: Any) -> Codes:
        """The rule of each person: (n,) codes in 0..r-1.

        Raises
        ------
        InputError
            If a code is not that of a rule.
        """
        codes = np.asarray(self.find(features))
        if len(codes) and (codes.min() < 0 or codes.max() >= len(self)):
            raise InputError(f"rules: codes must be in 0..{len(self) - 1}")
        return codes

    def predict(self, features: Any) -> Codes:
        """The label that each person's rule predicts: (n,) in {0, 1}."""
        if isinstance(self.find, _Leaves):
            return self.find.read(features, self.labels)
        return self.labels.take(self.apply(features))


@runtime_checkable
class RuleBased(Protocol):
    """A classifier that may have rules."""

    @property
    def rules(self) -> Rules | None:
        """Its rules, which predict what it predicts; None if it has none."""


class EncodedColumn(NamedTuple):
    """Where a column of an encoded matrix comes from.

    Attributes
    ----------
    feature
        Name of the feature that the column comes from.
    category
        The category that it is 1 for, in a one-hot encoding.
    categories
        The categories that it numbers, in an ordinal encoding.
    """

    feature: str
    category: str | None = None
    categories: tuple[str, ...] = ()

    def describe(self, low: float, high: float) -> str:
        """The condition low < value <= high in words."""
        if self.category is not None:
            return f"{self.feature} {'=' if low >= 0 else '!='} {self.category}"
        if not self.categories:
            if np.isposinf(high):
                return f"{self.feature} > {low:.6g}"
            least = "" if np.isneginf(low) else f"{low:.6g} < "
            return f"{least}{self.feature} <= {high:.6g}"
        inside = [bool(low < code <= high) for code in range(len(self.categories))]
        positive = 2 * sum(inside) <= len(inside)
        named = [
            c for c, contained in zip(self.categories, inside, strict=True) if contained == positive
        ]
        if len(named) == 1:
            return f"{self.feature} {'=' if positive else '!='} {named[0]}"
        return f"{self.feature} {'' if positive else 'not '}in {{{', '.join(named)}}}"


def encoded_names(features: DataFrame, encoding: Encoding = "one-hot") -> tuple[EncodedColumn, ...]:
    """The origin of each column that `encode` makes of features, in their order.

    Parameters
    ----------
    features
        n rows; only names and categories are read.
    encoding
        As in `encode`.
    """
    import pandas as pd

    numbers, others = [], []
    for name, column in features.items():
        if not isinstance(column.dtype, pd.CategoricalDtype):
            numbers.append(EncodedColumn(str(name)))
            continue
        categories = tuple(str(category) for category in column.cat.categories)
        if encoding == "ordinal":
            others.append(EncodedColumn(str(name), categories=categories))
        else:
            others += [EncodedColumn(str(name), category) for category in categories]
    return (*numbers, *others)


@dataclass(frozen=True)
class _Leaves:
    """Finds people's rules by the leaf that they reach."""

    tree: Any
    encoding: Encoding | None
    rule_of: Codes

    def __call__(self, features: Any) -> Codes:
        return self.read(features)

    def read(self, features: Any, rule_values: Codes | None = None) -> Codes:
        """The rule (n,) of each person, or the value of that rule, in one lookup per person."""
        matrix = features if self.encoding is None else encode(features, self.encoding)
        table = self.rule_of if rule_values is None else rule_values.take(self.rule_of)
        return np.asarray(table.take(self.tree.apply(matrix)))


def tree_rules(
    tree: Any,
    columns: Sequence[EncodedColumn] | None = None,
    encoding: Encoding | None = None,
    *,
    positive: Any = None,
) -> Rules:
    """Rules of a fitted scikit-learn decision tree, pruned from below.

    A subtree that predicts one label only becomes one rule, as in van der Steen et al., section
    4.2.1: a split may make a tree better without changing any prediction.

    Parameters
    ----------
    tree
        A fitted `DecisionTreeClassifier` of two labels.
    columns
        The columns it was fitted on, for the texts; by default its own names, or x0, x1, ...
    encoding
        How features become its columns; by default features are columns as the tree takes them.
    positive
        The label that counts as 1; needed if labels are not 0 and 1 or truth values.

    Raises
    ------
    InputError
        If it has several outputs, or predicts other labels.
    """
    if getattr(tree, "n_outputs_", 1) != 1:
        raise InputError(f"rules: the tree must predict one label, not {tree.n_outputs_}")
    classes = check_binary("rules: labels of the tree", tree.classes_, positive, nameable=True)
    if not columns:
        names = getattr(tree, "feature_names_in_", [f"x{i}" for i in range(tree.n_features_in_)])
        columns = [EncodedColumn(str(name)) for name in names]
    inner, nodes = tree.tree_, tree.tree_.node_count
    left, right = inner.children_left, inner.children_right
    label = classes[inner.value[:, 0].argmax(axis=1)]
    # Labels predicted below each node, as bits; children come after their parents.
    below = np.where(left < 0, 1 << label, 0)
    for node in range(nodes - 1, -1, -1):
        if left[node] >= 0:
            below[node] = below[left[node]] | below[right[node]]
    rule_of = np.zeros(nodes, dtype=np.intp)
    labels: list[int] = []
    texts: list[str] = []
    height = 0
    waiting: list[tuple[int, dict[int, tuple[float, float]], int]] = [(0, {}, 0)]
    while waiting:
        node, box, depth = waiting.pop()
        if below[node] != 3:
            rule_of[node] = len(labels)
            labels.append(int(below[node] >> 1))
            texts.append(_describe_box(box, columns))
            height = max(height, depth)
            continue
        column, threshold = int(inner.feature[node]), float(inner.threshold[node])
        low, high = box.get(column, (-np.inf, np.inf))
        waiting.append((int(right[node]), {**box, column: (max(low, threshold), high)}, depth + 1))
        waiting.append((int(left[node]), {**box, column: (low, min(high, threshold))}, depth + 1))
    for node in range(nodes):
        if left[node] >= 0 and below[node] != 3:
            rule_of[left[node]] = rule_of[right[node]] = rule_of[node]
    unpruned = int(((left < 0) & (label == 1)).sum())
    # Ten million people: codes in bytes where they fit.
    rule_of = rule_of.astype(np.int8 if len(labels) < 128 else np.int64)
    branches = Branches(
        np.asarray(left, np.intp), np.asarray(right, np.intp), np.asarray(inner.feature, np.intp),
        np.asarray(inner.threshold, np.float64), below.astype(np.int8), tuple(columns), encoding,
    )  # fmt: skip
    return Rules(
        np.array(labels), tuple(texts), _Leaves(tree, encoding, rule_of), height, unpruned, branches
    )


def _describe_box(box: dict[int, tuple[float, float]], columns: Sequence[EncodedColumn]) -> str:
    """Intervals of columns as one condition; who has a category has no other."""
    settled = {
        columns[i].feature
        for i, (low, _) in box.items()
        if columns[i].category is not None and low >= 0
    }
    return " and ".join(
        columns[i].describe(low, high)
        for i, (low, high) in box.items()
        if low >= 0 or columns[i].category is None or columns[i].feature not in settled
    ) or "everyone"  # fmt: skip
