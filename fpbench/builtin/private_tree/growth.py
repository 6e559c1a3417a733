"""Private decision trees, grown from histograms: all nodes of a level, and many trees, at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fpbench import InputError
from fpbench.builtin.private_tree.fitted import PrivateTreeBatch, descend_once, iterate_blocks
from fpbench.builtin.private_tree.split_candidates import BinMass, NumberFeature, SplitCandidates
from fpbench.builtin.private_tree.split_scores import choose_splits, impurity
from fpbench.plugin import Codes
from fpbench.privacy import COUNT_SENSITIVITY

Floats: TypeAlias = NDArray[np.float64]


def grow_trees(
    candidates: SplitCandidates,
    matrix: NDArray[Any],
    labels: Codes,
    repetitions: int,
    rng: np.random.Generator,
) -> PrivateTreeBatch:
    """Grow trees on the same people, each with its own noise.

    Level by level, each node privately chooses the candidate with the least impurity of its
    children, until `max_depth`, or until no candidate remains: the data never stop the growth, so
    the shape of the tree reveals no more than its splits. Then the counts in all leaves get noise.
    A node's counts are the sums of its leaves', and a leaf without a positive noisy count takes
    those of the nearest node above it that has one; without any, both labels are equally likely.
    With noisy counts a and b, cut at 0, the probability of label 1 is (b + 1) / (a + b + 2).

    Parameters
    ----------
    candidates
        Public candidates, and the recipe.
    matrix
        (n, columns) people's features.
    labels
        (n,) in {0, 1}; a single label is not an error, as an error would reveal it.
    repetitions
        Number R of trees.
    rng
        For all noise.

    Raises
    ------
    InputError
        If there are more people than `recipe.most_people`, or the mechanism refuses its epsilon.
    """
    return _grow_batch(candidates, matrix, labels, repetitions, [rng])


def grow_trees_apart(
    candidates: SplitCandidates,
    matrix: NDArray[Any],
    labels: Codes,
    members: NDArray[np.bool_],
    rngs: Sequence[np.random.Generator],
) -> PrivateTreeBatch:
    """Grow trees, each on its own part of the same people.

    Tree b is, to the last bit, the one that `grow_trees` grows on its members with generator b.

    Parameters
    ----------
    candidates
        Public candidates, and the recipe.
    matrix, labels
        (n, columns) and (n,) in {0, 1}: everybody.
    members
        (R, n) true for the people a tree is grown on.
    rngs
        R generators.

    Raises
    ------
    InputError
        If a tree has more people than `recipe.most_people`, or the mechanism refuses its epsilon.
    """
    return _grow_batch(candidates, matrix, labels, len(members), rngs, members)


def _grow_batch(
    candidates: SplitCandidates,
    matrix: NDArray[Any],
    labels: Codes,
    repetitions: int,
    rngs: Sequence[np.random.Generator],
    members: NDArray[np.bool_] | None = None,
) -> PrivateTreeBatch:
    """R trees: on everybody by one generator, or each on its members by its own."""
    recipe = candidates.recipe
    most = len(labels) if members is None else int(members.sum(axis=1).max(initial=0))
    if most > recipe.most_people:
        raise InputError(
            f"there are {most:,} people, and most_people = {recipe.most_people:,} says "
            "publicly that there are no more; set a greater one, whatever the data"
        )
    people = _BinnedPeople.of(candidates, matrix, labels)
    nodes = 2 ** (recipe.max_depth + 1) - 1
    split = np.full((repetitions, nodes), -1, dtype=np.int32)
    counts = np.zeros((repetitions, nodes, 2))
    each = max(people.most_entries, (nodes + 1) // 4 * max(len(candidates), 1))
    for rows in iterate_blocks(repetitions, each):
        own = rngs if members is None else rngs[rows]
        chosen = None if members is None else members[rows]
        at = _grow_all(people, split[rows], own, chosen)
        leaf = _find_leaves(split[rows])
        key = (np.arange(len(at))[:, None] * nodes + at) * 2 + people.labels
        counted = key.ravel() if chosen is None else key[chosen]
        true = np.bincount(counted, minlength=leaf.size * 2).reshape(*leaf.shape, 2)
        counts[rows][leaf] = _add_noise(candidates, true, leaf, own)
    return PrivateTreeBatch(candidates, split, *_sum_up(counts))


@dataclass(frozen=True, eq=False)
class _BinnedPeople:
    """People's bins, masses and labels."""

    candidates: SplitCandidates
    bins: NDArray[np.int64]
    """(features, n)"""
    spreads: list[BinMass]
    labels: NDArray[np.int64]

    @classmethod
    def of(cls, candidates: SplitCandidates, matrix: NDArray[Any], labels: Codes) -> _BinnedPeople:
        """The binned people of a matrix (n, columns)."""
        bins = candidates.bins(matrix)
        spreads = candidates.spreads(matrix, bins)
        return cls(candidates, bins, spreads, np.asarray(labels, dtype=np.int64))

    @property
    def most_entries(self) -> int:
        """Numbers in a histogram of one tree."""
        return max((spread.bins.size for spread in self.spreads), default=1)

    def impurities(self, group: NDArray[np.int64], groups: int) -> Floats:
        """Impurity (groups, c) of each split of each group; `group` (R, n) is everybody's group.

        People in no group have the code `groups`.
        """
        criterion = self.candidates.recipe.criterion
        impurities = np.empty((groups, len(self.candidates)))
        start = 0
        for feature, spread, size in zip(
            self.candidates.features, self.spreads, self.candidates.sizes, strict=True
        ):
            mass = self._count_mass(spread, size, group, groups)
            everybody = mass.sum(axis=1, keepdims=True)
            if isinstance(feature, NumberFeature):
                left = np.cumsum(mass, axis=1)[:, :-1]
                right = np.maximum(everybody - left, 0.0)
            else:
                right = mass[:, :-1]
                left = everybody - right
            part = impurities[:, start : start + size - 1]
            part[:] = impurity(criterion, left[..., 0], left[..., 1])
            part += impurity(criterion, right[..., 0], right[..., 1])
            start += size - 1
        return impurities

    def _count_mass(
        self, spread: BinMass, size: int, group: NDArray[np.int64], groups: int
    ) -> Floats:
        """Mass (groups, bins, 2) of each label in each bin of a feature."""
        inside = spread.bins * 2 + self.labels[:, None]
        if spread.mass is None:
            key = group * (2 * size) + inside[:, 0]
            weights = None
        else:
            key = group[..., None] * (2 * size) + inside
            weights = np.broadcast_to(spread.mass, key.shape).ravel()
        counted = np.bincount(key.ravel(), weights, (groups + 1) * 2 * size)
        return counted[: groups * 2 * size].reshape(groups, size, 2).astype(np.float64, copy=False)


def _grow_all(
    people: _BinnedPeople,
    split: NDArray[np.int32],
    rngs: Sequence[np.random.Generator],
    members: NDArray[np.bool_] | None,
) -> NDArray[np.intp]:
    """The leaves (R, n) of people, after choosing the splits (R, nodes) in place."""
    candidates, recipe = people.candidates, people.candidates.recipe
    repetitions, n = len(split), len(people.labels)
    at = np.zeros((repetitions, n), dtype=np.intp)
    if not len(candidates):
        return at
    possible = np.broadcast_to(candidates.possible_at_first(), (repetitions, len(candidates)))
    for level in range(recipe.max_depth):
        width = 2**level
        if recipe.selection == "random":  # as the exponential mechanism: 1 / number of a feature's
            impurities = candidates.count_rivals(possible)
        elif level == 0 and members is None:  # the same for all trees
            alike = people.impurities(np.zeros((1, n), dtype=np.int64), 1)
            impurities = np.broadcast_to(alike, possible.shape)
        else:
            group = np.arange(repetitions)[:, None] * width + (at - (width - 1))
            outside = at < width - 1 if members is None else (at < width - 1) | ~members
            group[outside] = repetitions * width
            impurities = people.impurities(group, repetitions * width)
        chosen = choose_splits(impurities, possible, recipe.selection, recipe.noise_scale, rngs)
        split[:, width - 1 : 2 * width - 1] = chosen.reshape(repetitions, width)
        at = descend_once(candidates, people.bins, np.take_along_axis(split, at, axis=1), at)
        if level + 1 < recipe.max_depth:
            below = candidates.possible_below(possible, chosen)
            possible = np.stack(below, axis=1).reshape(-1, len(candidates))
    return at


def _find_leaves(split: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Mask (R, nodes) of the leaves."""
    nodes = np.zeros(split.shape, dtype=bool)
    nodes[:, 0] = True
    inner = split >= 0
    half = split.shape[1] // 2
    nodes[:, 1::2] = nodes[:, 2::2] = inner[:, :half]
    return nodes & ~inner


def _add_noise(
    candidates: SplitCandidates,
    counts: NDArray[np.int64],
    leaf: NDArray[np.bool_],
    rngs: Sequence[np.random.Generator],
) -> Any:
    """Counts (leaves, 2) of counts (R, nodes, 2), with noise.

    One person is counted once, so that each changes one count by 1.
    """
    recipe = candidates.recipe
    if not recipe.private:
        return counts[leaf]
    parts = []
    for rng, true, own in zip(
        rngs, np.split(counts, len(rngs)), np.split(leaf, len(rngs)), strict=True
    ):
        exact = true[own]
        if recipe.mechanism is None:
            parts.append(exact + rng.laplace(scale=1 / recipe.leaf_epsilon, size=exact.shape))
            continue
        upper = np.full(exact.shape, recipe.most_people)
        sensitivity = COUNT_SENSITIVITY["add-remove"]
        parts.append(recipe.mechanism.release(exact, sensitivity, recipe.leaf_epsilon, rng, upper))
    return np.concatenate(parts)


def _sum_up(counts: Floats) -> tuple[Floats, Floats]:
    """Counts (R, nodes, 2), of inner nodes too, and probabilities (R, nodes) of label 1."""
    nodes = counts.shape[1]
    levels = [slice(2**k - 1, 2 ** (k + 1) - 1) for k in range((nodes + 1).bit_length() - 1)]
    for below, above in pairwise(reversed(levels)):
        # Leaves have nothing below, and inner nodes nothing of their own yet.
        counts[:, above] += counts[:, below].reshape(len(counts), -1, 2, 2).sum(axis=2)
    positive_counts = np.maximum(counts, 0.0)
    for above, below in pairwise(levels):
        inherited = np.repeat(positive_counts[:, above], 2, axis=1)
        empty = positive_counts[:, below].sum(axis=2, keepdims=True) == 0
        positive_counts[:, below] = np.where(empty, inherited, positive_counts[:, below])
    return counts, (positive_counts[..., 1] + 1) / (positive_counts.sum(axis=2) + 2)
