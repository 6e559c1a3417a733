"""Published trees: leaves and the people counted in them, as scikit-learn's models have them.

A fitted tree shows how many training people each leaf has, and a classifier how many of each label.
If people's group was a feature of the tree, these are counts of groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fpbench.base.errors import InputError
from fpbench.claims.set_counts import Facts
from fpbench.data.sample import Codes
from fpbench.models.encoding import Encoding, encode

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PublishedTree:
    """One tree of a published model, or a rule list: its rules are leaves.

    Attributes
    ----------
    find_leaves
        The leaf (n,) of each of n people, given their features; of a rule list, the rule that
        decides (`RuleList.rules.apply`).
    counts
        (nodes, 2) training people of each label in each leaf, or (nodes, 1) of both labels.
    sigma, scale
        Standard deviation of Gaussian, scale of Laplace noise in each count, of the shape of
        `counts`, or a number; 0 where counts are exact.
    bootstrap
        Whether the tree was trained on a bootstrap sample: `counts` are then (nodes, 1), the
        different people in the sample.
    """

    find_leaves: Callable[[Any], NDArray[np.intp]]
    counts: Floats
    sigma: Floats | float = 0.0
    scale: Floats | float = 0.0
    bootstrap: bool = False


def read_trees(estimator: Any, encoding: Encoding | None = None) -> tuple[PublishedTree, ...]:
    """The trees of a fitted scikit-learn tree or forest of trees; none of any other estimator.

    Parameters
    ----------
    estimator
        A fitted decision tree, random forest or extra trees classifier.
    encoding
        How features become its columns; by default features are columns as it takes them.
    """
    from sklearn.ensemble._forest import ForestClassifier
    from sklearn.tree import DecisionTreeClassifier

    if isinstance(estimator, DecisionTreeClassifier):
        return (_read_tree(estimator, encoding, estimator.class_weight),)
    if isinstance(estimator, ForestClassifier):
        return tuple(
            _read_tree(tree, encoding, estimator.class_weight, estimator.bootstrap)
            for tree in estimator.estimators_
        )
    return ()


def _read_tree(
    tree: Any, encoding: Encoding | None, class_weight: Any, bootstrap: bool = False
) -> PublishedTree:
    inner = tree.tree_
    people = np.asarray(inner.n_node_samples, np.float64)
    weights = np.asarray(inner.weighted_n_node_samples, np.float64)
    counts = people[:, None]
    # Weights by label are not numbers of people; with balanced classes they only add up to such
    # where labels are as frequent as overall.
    unweighted = class_weight is None and np.allclose(weights, people)
    if not bootstrap and unweighted and len(tree.classes_) == 2:
        counts = np.rint(inner.value[:, 0] * people[:, None])

    def find_leaves(features: Any) -> NDArray[np.intp]:
        matrix = features if encoding is None else encode(features, encoding)
        return np.asarray(tree.apply(matrix), np.intp)

    return PublishedTree(find_leaves, counts, bootstrap=bootstrap)


def find_tree_facts(
    trees: Sequence[PublishedTree],
    features: Callable[[int], Any],
    groups: int,
    labels: Codes,
) -> Facts:
    """The facts that published trees tell about the groups of their training people.

    Parameters
    ----------
    trees
        Trees of a model that had people's group among its features.
    features
        The features of all n people as the trees take them, if everybody were of the group with
        this code.
    groups
        K, at least 2.
    labels
        (n,) in {0, 1}: the labels that the trees were trained with.

    Returns
    -------
    Facts
        One for each leaf, or each label in a leaf, that some groups cannot reach.

    Raises
    ------
    InputError
        If the leaves do not count these people.

    Notes
    -----
    A leaf's people are those of the groups G on the way to it who meet its other conditions: a set
    that can be computed from the other features. With two groups its count is the number of members
    of one group in that set. With more groups it is exact for a group that is alone in G, or alone
    outside of it, and else an upper bound for each.

    With a bootstrap sample, a leaf's set has at least as many people as the leaf has different
    people of the sample. Each of the set's c people is in the sample with the same probability p,
    so the number of different ones over p is a measurement of c with standard deviation sqrt(c (1 -
    p) / p). All leaves together have the p n different people of the sample: p is about 1 - 1/e, or
    less where samples are smaller than the data. How often people were drawn tells nothing more of
    c. (Ferry, Fukasawa, Pascal, Vidal: Trained Random Forests Completely Reveal your Dataset, ICML
    2024, reconstruct whole data sets from these counts; here all but the group is known.)
    """
    parts = [
        part
        for number, tree in enumerate(trees)
        for part in _read_leaves(number, tree, features, groups, labels)
    ]
    names = [name for part in parts for name in part.names]
    if not parts:
        none = np.zeros((0, groups))
        return Facts.from_counts(np.zeros((len(labels), 0), np.bool_), none)
    low, high, sigma, scale = (
        np.concatenate([getattr(part, end) for part in parts])
        for end in ("low", "high", "sigma", "scale")
    )
    tables = [(part.member, len(part.names)) for part in parts]
    return Facts.from_tables(tables, low, high, sigma=sigma, scale=scale, names=names)


@dataclass(frozen=True, eq=False)
class _LeafCounts:
    """The counts of leaves of a tree with disjoint sets of people."""

    member: NDArray[np.intp]
    """(n,) the set of each person; -1 for none."""
    low: Floats
    high: Floats
    """(sets, K)."""
    sigma: Floats
    scale: Floats
    """(sets,)."""
    names: list[str]


def _read_leaves(
    number: int, tree: PublishedTree, features: Callable[[int], Any], groups: int, labels: Codes
) -> Iterator[_LeafCounts]:
    """The counts of a tree's leaves that not all groups reach."""
    nodes, width = tree.counts.shape
    leaves = [tree.find_leaves(features(k)) for k in range(groups)]
    reached = np.stack([np.bincount(own, minlength=nodes) > 0 for own in leaves], axis=1)
    uneven = _find_uneven(leaves, reached)
    _check_everybody(number, tree, reached, labels)
    yield from _read_uneven(number, tree, leaves, uneven, labels)
    told = reached.any(axis=1) & ~reached.all(axis=1) & ~uneven
    first = np.where(told, reached.argmax(axis=1), -1)
    sigma, scale = (np.broadcast_to(x, tree.counts.shape) for x in (tree.sigma, tree.scale))
    # For a bootstrap sample: the share of the people who are in it.
    in_sample = float(tree.counts[reached.any(axis=1)].sum()) / len(labels)
    for k in range(groups):
        own = np.flatnonzero(first == k)
        place = np.full(nodes, -1)
        place[own] = np.arange(len(own)) * width
        member = place[leaves[k]]
        if width == 2:
            member = np.where(member >= 0, member + labels, -1)
        if not (member >= 0).any():
            continue
        sets = len(own) * width
        size = np.bincount(member[member >= 0], minlength=sets).astype(np.float64)
        names = [
            f"leaf {leaf} of tree {number}" + (f", label {label}" if width == 2 else "")
            for leaf in own
            for label in range(width)
        ]
        inner = np.repeat(reached[own], width, axis=0)
        count, deviation, spread = (x[own].ravel() for x in (tree.counts, sigma, scale))
        exact = (deviation == 0) & (spread == 0)
        if (wrong := np.flatnonzero(exact & (count > size))).size:
            first_wrong = int(wrong[0])
            raise InputError(
                f"{names[first_wrong]}: {count[first_wrong]:g} people, and {size[first_wrong]:g} "
                "of these people can be there; the model was trained on other people"
            )
        if tree.bootstrap:
            # As many as are in the sample, or more; how many there are, measured.
            yield _LeafCounts(member, *_bound(inner, count, size, size), 0 * size, 0 * size, names)
            count = count / in_sample
            deviation = np.sqrt(np.maximum(count, 1) * (1 - in_sample) / in_sample)
            exact = deviation == 0  # everybody is in the sample
        low, high = _bound(inner, count, count, size)
        # Of two groups, the other one's number is the same measurement.
        blank = ~exact[:, None] & ((low != high) | (~inner if groups == 2 else False))
        low, high = np.where(blank, -np.inf, low), np.where(blank, np.inf, high)
        yield _LeafCounts(member, low, high, deviation, spread, names)


def _check_everybody(
    number: int, tree: PublishedTree, reached: NDArray[np.bool_], labels: Codes
) -> None:
    """Refuse counts that do not add up to these people: of others, or without people of weight 0.

    For a bootstrap sample, refuse only counts of more than everybody.
    """
    if np.any(tree.sigma) or np.any(tree.scale):
        return
    counted = tree.counts[reached.any(axis=1)].sum(axis=0)
    by_label = len(counted) == 2
    people = np.array([(labels == label).sum() for label in (0, 1)] if by_label else [len(labels)])
    wrong = np.flatnonzero(counted > people if tree.bootstrap else counted != people)
    if wrong.size:
        label = int(wrong[0])
        raise InputError(
            f"tree {number}: {counted[label]:g} people{f' of label {label}' if by_label else ''} "
            f"are in its leaves, and these are {people[label]}; the model was trained on other "
            "people, or some had no weight"
        )


def _find_uneven(
    leaves: Sequence[NDArray[np.intp]], reached: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Leaves (nodes,) that some person reaches as a member of only some of the leaf's groups.

    There are none in a tree, whose leaves are conjunctions. A rule of a list also needs that all
    rules before it fail, in which a group may be tied to other features.
    """
    uneven = np.zeros(len(reached), np.bool_)
    for k, own in enumerate(leaves):
        for j, other in enumerate(leaves):
            moved = own[own != other]
            uneven[moved] |= reached[moved, j] & (j != k)
    return uneven


def _read_uneven(
    number: int,
    tree: PublishedTree,
    leaves: Sequence[NDArray[np.intp]],
    uneven: NDArray[np.bool_],
    labels: Codes,
) -> Iterator[_LeafCounts]:
    """The facts of uneven leaves with exact counts: bounds of each group, in a set of its own.

    A leaf's people of a group are no more than its people, and no fewer than these less all who can
    reach it as members of other groups.
    """
    width, k = tree.counts.shape[1], len(leaves)
    own = np.flatnonzero(uneven)
    if not len(own) or tree.bootstrap or np.any(tree.sigma) or np.any(tree.scale):
        return
    place = np.full(len(uneven), -1)
    place[own] = np.arange(len(own)) * width
    sets, count = len(own) * width, tree.counts[own].ravel()
    members = [place[each] for each in leaves]
    if width == 2:
        members = [np.where(each >= 0, each + labels, -1) for each in members]
    sizes = np.stack([np.bincount(each[each >= 0], minlength=sets) for each in members])
    if (count > sizes.sum(axis=0)).any():
        raise InputError(
            f"tree {number}: more people are in a leaf than of these people can be there; the "
            "model was trained on other people"
        )
    for group, member in enumerate(members):
        low = np.zeros((sets, k))
        high = np.repeat(sizes[group][:, None].astype(np.float64), k, axis=1)
        low[:, group] = np.maximum(count - sizes.sum(axis=0) + sizes[group], 0)
        high[:, group] = np.minimum(count, sizes[group])
        names = [
            f"leaf {leaf} of tree {number}, group {group}" + (f", label {y}" if width == 2 else "")
            for leaf in own
            for y in range(width)
        ]
        yield _LeafCounts(member, low, high, np.zeros(sets), np.zeros(sets), names)


def _bound(
    inner: NDArray[np.bool_], least: Floats, most: Floats, size: Floats
) -> tuple[Floats, Floats]:
    """Least and greatest (sets, K) people of each group, if `least` to `most` are of the inner."""
    inner_alone = inner & (inner.sum(axis=1, keepdims=True) == 1)
    outer_alone = ~inner & ((~inner).sum(axis=1, keepdims=True) == 1)
    low = np.where(inner_alone, least[:, None], 0.0)
    low = np.where(outer_alone, (size - most)[:, None], low)
    high = np.where(inner, most[:, None], (size - least)[:, None])
    return low, high
