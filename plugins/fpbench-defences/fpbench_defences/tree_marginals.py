"""Synthetic people from noisy marginals of pairs of columns that form a tree (MST, Private-PGM).

McKenna, Miklau, Sheldon. Winning the NIST Contest. Journal of Privacy and Confidentiality 2021;
McKenna, Sheldon, Miklau. Graphical-Model Based Estimation and Inference for Differential Privacy.
ICML 2019.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Places: TypeAlias = NDArray[np.intp]
Pair: TypeAlias = tuple[int, int]

_STEPS = 500
"""Greatest number of steps of mirror descent."""
_LEAST_GAIN = 1e-7
"""Relative decrease of the loss below which the descent ends."""


class NoisyTables(NamedTuple):
    """Released counts of each column, and of pairs of columns that form a tree.

    Anything computed from them, and from public sizes, is equally private.
    """

    singles: list[Floats]
    pairs: dict[Pair, Floats]
    sigmas: tuple[float, float]
    """Standard deviations of the noise of both."""

    @property
    def total(self) -> float:
        """The number of people, at least 1: the mean over columns of the sum of their counts."""
        return max(1.0, float(np.mean([counts.sum() for counts in self.singles])))


def measure_tables(
    codes: Places, sizes: Sequence[int], rho: float, rng: np.random.Generator
) -> NoisyTables:
    """Counts under rho-zero-concentrated differential privacy; one person is added or removed.

    Each of three parts has a third of rho. One person changes one count of each column by 1, so d
    columns cost d / 2 sigma^2. Among pairs that join two parts of the forest so far, the
    exponential mechanism chooses d - 1 by the L1 distance of their counts from independence, which
    one person changes by at most 1; each choice with epsilon costs epsilon^2 / 8. Counts of the
    chosen pairs cost the same as those of columns.

    `codes`: (n, d) whole numbers: column j from 0 to sizes[j] - 1. `sizes`: public numbers of
    values, for at least two columns. `rho`: of the whole release.
    """
    d, part = len(sizes), rho / 3
    sigma = float(np.sqrt(d / (2 * part)))
    singles = [
        np.bincount(codes[:, j], minlength=size) + rng.normal(0.0, sigma, size)
        for j, size in enumerate(sizes)
    ]
    released = NoisyTables(singles, {}, (sigma, float(np.sqrt((d - 1) / (2 * part)))))
    scores = _score_pairs(codes, sizes, released)
    for pair in _choose_tree(scores, d, float(np.sqrt(8 * part / (d - 1))), rng):
        table = count_pair(codes, sizes, pair)
        released.pairs[pair] = table + rng.normal(0.0, released.sigmas[1], table.shape)
    return released


def count_pair(codes: Places, sizes: Sequence[int], pair: Pair) -> Floats:
    """People by the values of two columns."""
    i, j = pair
    cells = np.bincount(codes[:, i] * sizes[j] + codes[:, j], minlength=sizes[i] * sizes[j])
    return cells.reshape(sizes[i], sizes[j]).astype(np.float64)


def _score_pairs(codes: Places, sizes: Sequence[int], released: NoisyTables) -> dict[Pair, float]:
    """L1 distance of each pair's counts from independence, by the released counts of columns."""
    shares = []
    for counts in released.singles:
        positive = np.maximum(counts, 0.0)
        total = positive.sum()
        shares.append(positive / total if total else np.full(len(counts), 1 / len(counts)))
    return {
        (i, j): float(
            np.abs(
                count_pair(codes, sizes, (i, j)) - released.total * np.outer(shares[i], shares[j])
            ).sum()
        )
        for i, j in combinations(range(len(sizes)), 2)
    }


def _choose_tree(
    scores: dict[Pair, float], d: int, epsilon: float, rng: np.random.Generator
) -> list[Pair]:
    """Pairs, d - 1, that join all columns, each by the exponential mechanism of this epsilon."""
    part = list(range(d))  # the part of the forest that each column is in
    chosen = []
    for _ in range(d - 1):
        open_pairs = [pair for pair in scores if part[pair[0]] != part[pair[1]]]
        keys = [0.5 * epsilon * scores[pair] for pair in open_pairs] + rng.gumbel(
            size=len(open_pairs)
        )
        i, j = open_pairs[int(np.argmax(keys))]
        chosen.append((i, j))
        part = [part[i] if one == part[j] else one for one in part]
    return chosen


@dataclass(frozen=True)
class MarginalTree:
    """A distribution of records: a root column, and each other column given its parent."""

    order: tuple[int, ...]
    """Columns, parents first."""
    parents: tuple[int, ...]
    """(d,) the parent of each column; -1 for the root."""
    shares: tuple[Floats, ...]
    """(d) probabilities of each column's values."""
    given: tuple[Floats, ...]
    """(d) probabilities of each column's values (columns) given the parent's (rows)."""

    def share_pair(self, child: int) -> Floats:
        """Probabilities of a column's parent (rows) and of the column."""
        return np.asarray(self.shares[self.parents[child]][:, None] * self.given[child])

    def draw(self, n: int, rng: np.random.Generator) -> Places:
        """Records (n, d), each drawn independently."""
        codes = np.empty((n, len(self.order)), np.intp)
        for column in self.order:
            parent = self.parents[column]
            table = self.shares[column][None] if parent < 0 else self.given[column]
            rows = np.zeros(n, np.intp) if parent < 0 else codes[:, parent]
            levels = table.cumsum(axis=1)[:, :-1]
            codes[:, column] = (rng.random((n, 1)) > levels[rows]).sum(axis=1)
        return codes


def fit_tree(tables: NoisyTables) -> MarginalTree:
    """The distribution of a tree that fits noisy counts best, by the likelihood of the noise.

    Entropic mirror descent (Private-PGM, algorithm 1, with a step that grows while the loss falls):
    it subtracts the gradient by the marginals from logits, and inference on a tree is exact.
    """
    d = len(tables.singles)
    order, parents = _root_tree(list(tables.pairs), d)
    targets = {child: _orient(tables, parents[child], child) for child in order[1:]}
    total = tables.total
    logits = [np.zeros(len(counts)) for counts in tables.singles]
    links = [np.zeros(targets[j].shape if j in targets else (0, 0)) for j in range(d)]
    weights = 1 / tables.sigmas[0] ** 2, 1 / tables.sigmas[1] ** 2

    def infer(own: list[Floats], edges: list[Floats]) -> tuple[MarginalTree, float]:
        model = _infer(order, parents, own, edges)
        misses = sum(
            weights[0] * ((total * share - counts) ** 2).sum()
            for share, counts in zip(model.shares, tables.singles, strict=True)
        ) + sum(
            weights[1] * ((total * model.share_pair(child) - target) ** 2).sum()
            for child, target in targets.items()
        )
        return model, float(misses) / 2

    model, loss = infer(logits, links)
    step = 1 / (total**2 * max(weights))
    for _ in range(_STEPS):
        slopes = [
            total * weights[0] * (total * share - counts)
            for share, counts in zip(model.shares, tables.singles, strict=True)
        ]
        bends = [
            total * weights[1] * (total * model.share_pair(j) - targets[j]) if j in targets
            else links[j]
            for j in range(d)
        ]  # fmt: skip
        moved = [one - step * slope for one, slope in zip(logits, slopes, strict=True)]
        bent = [one - step * bend for one, bend in zip(links, bends, strict=True)]
        found, lower = infer(moved, bent)
        if not lower < loss:
            step /= 2
            if step * total**2 * max(weights) < 1e-9:
                break
            continue
        gain, logits, links, model, loss = loss - lower, moved, bent, found, lower
        step *= 1.3
        if gain < _LEAST_GAIN * loss:
            break
    return model


def _root_tree(pairs: list[Pair], d: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Columns from the first on, parents before children, and each column's parent."""
    order, parents = [0], [-1] * d
    for column in order:
        for pair in pairs:
            if column in pair:
                other = pair[0] if pair[1] == column else pair[1]
                if other not in order:
                    parents[other] = column
                    order.append(other)
    return tuple(order), tuple(parents)


def _orient(tables: NoisyTables, parent: int, child: int) -> Floats:
    """Noisy counts of a pair, with the parent's values in rows."""
    if (parent, child) in tables.pairs:
        return tables.pairs[parent, child]
    return tables.pairs[child, parent].T


def _infer(
    order: tuple[int, ...], parents: tuple[int, ...], own: list[Floats], edges: list[Floats]
) -> MarginalTree:
    """The distribution of a tree with these logits of values and pairs: sums from the leaves."""
    beliefs = [one.copy() for one in own]
    given: list[Floats] = [np.zeros((0, 0))] * len(own)
    for column in reversed(order[1:]):
        joint = edges[column] + beliefs[column]
        top = joint.max(axis=1, keepdims=True)
        scaled = np.exp(joint - top)
        sums = scaled.sum(axis=1, keepdims=True)
        given[column] = scaled / sums
        beliefs[parents[column]] = beliefs[parents[column]] + (np.log(sums) + top)[:, 0]
    shares: list[Floats] = [np.zeros(0)] * len(own)
    for column in order:
        if parents[column] < 0:
            scaled = np.exp(beliefs[column] - beliefs[column].max())
            shares[column] = scaled / scaled.sum()
        else:
            shares[column] = shares[parents[column]] @ given[column]
    return MarginalTree(order, parents, tuple(shares), tuple(given))
