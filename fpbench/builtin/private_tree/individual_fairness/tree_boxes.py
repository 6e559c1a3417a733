"""Boxes propagated down a tree: distances from people to regions with another label."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fpbench.builtin.private_tree.individual_fairness.similarity import ScaledPeople
from fpbench.models import Branches
from fpbench.plugin import Codes

_Floats: TypeAlias = NDArray[np.float64]
_Bools: TypeAlias = NDArray[np.bool_]

_ALL = np.finfo(np.float32).min, np.finfo(np.float32).max
"""Least and greatest number that a feature may be."""


def measure_nearest_region(
    branches: Branches, placed: ScaledPeople, labels: Codes, most: float
) -> NDArray[np.float64] | None:
    """Distances (n,) from each person to the nearest possible input with another label.

    Distances above `most` are infinite; None if the tree takes other features than these. Inputs
    are all numbers of single precision, which is what models see, and the categories of the person;
    free numbers and free categories take any value. A threshold lies between two such numbers, so
    that every region is closed: a person is certified at tau, that is all inputs within tau get one
    label, if and only if this distance is above tau. Distances are computed by the same operations
    as those between people, and rounding keeps the order of numbers, so that no person of another
    label is nearer, not even by a rounding error.

    Ranzato, Urban, Zanella: Fairness-Aware Training of Decision Trees by Abstract Interpretation,
    CIKM 2021, propagate one person's box at a time; here those of all people at once.
    """
    if branches.encoding is None:  # columns have positions, not names
        matches = not placed.words and len(placed.numbers) == len(branches.columns)
    else:
        matches = {column.feature for column in branches.columns} <= {*placed.names}
    if not matches:
        return None
    walk = _Walk(branches, placed, most)
    nearest = np.full(len(placed), np.inf)
    waiting = []
    if branches.labels[0] == 3:
        waiting.append((0, np.arange(len(placed)), np.zeros(len(placed)), _Box()))
    while waiting:
        node, people, distance, room = waiting.pop()
        for child, who, distances, inside in walk.split(node, people, distance, room):
            below = branches.labels[child]
            if below == 3:
                waiting.append((child, who, distances, inside))
            else:
                other = labels[who] != below >> 1
                others = who[other]
                nearest[others] = np.minimum(nearest[others], distances[other])
    return nearest


@dataclass(frozen=True)
class _Box:
    """Inputs that reach a node."""

    numbers: dict[int, tuple[np.float32, np.float32]] = field(default_factory=dict)
    """Least and greatest value of numbers."""
    words: dict[str, _Bools] = field(default_factory=dict)
    """Which categories of free features, the missing one last."""


class _Walk:
    """One tree, and people's distances to its nodes."""

    def __init__(self, branches: Branches, placed: ScaledPeople, most: float) -> None:
        self.branches, self.placed, self.most = branches, placed, most
        number = {name: i for i, name in enumerate(placed.numbers)}
        by_place = branches.encoding is None
        # Of each column of the tree, which number it is; -1 for a category.
        self.number = np.array(
            [
                i if by_place else number.get(column.feature, -1)
                for i, column in enumerate(branches.columns)
            ],
            dtype=np.intp,
        )
        self.categories = {
            name: np.append(np.ones(len(words), dtype=np.bool_), (placed.codes[name] < 0).any())
            for name, words in placed.words.items()
        }
        self.most_left, self.least_right = _find_sides(branches.threshold)
        # The same on the scale; a leaf has no column.
        own = np.where(branches.left >= 0, self.number.take(np.maximum(branches.column, 0)), -1)
        nodes = np.flatnonzero(own >= 0)
        self.left_end, self.right_end = np.zeros((2, len(own)))
        self.left_end[nodes] = placed.scaled(own[nodes], self.most_left[nodes])
        self.right_end[nodes] = placed.scaled(own[nodes], self.least_right[nodes])

    def split(
        self, node: int, people: NDArray[np.intp], distance: _Floats, room: _Box
    ) -> list[tuple[int, NDArray[np.intp], _Floats, _Box]]:
        """Each child with the people near it, their distances, and its box."""
        number = int(self.number[self.branches.column[node]])
        if number >= 0:
            return self._split_by_number(node, number, people, distance, room)
        return self._split_by_word(node, people, distance, room)

    def _split_by_number(
        self, node: int, number: int, people: NDArray[np.intp], distance: _Floats, room: _Box
    ) -> list[tuple[int, NDArray[np.intp], _Floats, _Box]]:
        low, high = room.numbers.get(number, _ALL)
        ends = (
            (self.branches.left[node], low, min(high, self.most_left[node])),
            (self.branches.right[node], max(low, self.least_right[node]), high),
        )
        free = self.placed.numbers[number] in self.placed.free
        at = None if free else self.placed.at[:, number].take(people)
        children = []
        for side, (child, least, greatest) in enumerate(ends):
            if least > greatest:  # nothing is there
                continue
            inside = _Box({**room.numbers, number: (least, greatest)}, room.words)
            if at is None:
                children.append((int(child), people, distance, inside))
                continue
            away = at - self.left_end[node] if side == 0 else self.right_end[node] - at
            np.maximum(away, distance, out=away)
            near = away <= self.most
            children.append((int(child), people[near], away[near], inside))
        return children

    def _split_by_word(
        self, node: int, people: NDArray[np.intp], distance: _Floats, room: _Box
    ) -> list[tuple[int, NDArray[np.intp], _Floats, _Box]]:
        column = self.branches.columns[self.branches.column[node]]
        name, words = column.feature, self.placed.words[column.feature]
        if column.category is None:  # numbered; a missing one is -1
            number = {word: float(code) for code, word in enumerate(column.categories)}
            values = [number.get(word, -1.0) for word in words] + [-1.0]
        else:
            values = [float(word == column.category) for word in words] + [0.0]
        left = np.array(values) <= self.branches.threshold[node]
        children = int(self.branches.left[node]), int(self.branches.right[node])
        parts = []
        if name in self.placed.free:
            possible = room.words.get(name, self.categories[name])
            for child, child_words in zip(
                children, (possible & left, possible & ~left), strict=True
            ):
                if child_words.any():
                    inside = _Box(room.numbers, {**room.words, name: child_words})
                    parts.append((child, people, distance, inside))
            return parts
        goes = left.take(self.placed.codes[name].take(people))  # -1 is the last, the missing one
        for child, who in zip(children, (goes, ~goes), strict=True):
            parts.append((child, people[who], distance[who], room))
        return parts


def _find_sides(threshold: _Floats) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The greatest numbers of single precision that go left, and the least that go right."""
    with np.errstate(over="ignore"):  # to infinity, which no feature is
        near = threshold.astype(np.float32)
        above = near > threshold
        most_left = np.where(above, np.nextafter(near, np.float32(-np.inf)), near)
        least_right = np.where(above, near, np.nextafter(near, np.float32(np.inf)))
    return most_left, least_right
