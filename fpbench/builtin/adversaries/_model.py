"""An attack model: from what is seen of a person to the person's group."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fpbench import Codes, Recipe


class AttackModel(NamedTuple):
    """A trained classifier of groups."""

    groups: Codes
    """(k,) codes of the groups that it has met, ascending; it never guesses another."""
    classifier: Any
    """It numbers the groups it has met from 0; None if there is only one."""

    def guess(self, matrix: NDArray[np.float32]) -> tuple[Codes, NDArray[np.float64]]:
        """The most probable group of each person, and its probability."""
        if self.classifier is None:
            people = len(matrix)
            return np.full(people, self.groups[0], dtype=np.int8), np.ones(people)
        probability = np.asarray(self.classifier.predict_proba(matrix))
        best = np.argmax(probability, axis=1)
        confidence = np.take_along_axis(probability, best[:, None], axis=1)[:, 0]
        values = self.groups[np.asarray(self.classifier.classes_, dtype=np.intp)[best]]
        # Of single precision, probabilities may add up to a little more than 1.
        return values.astype(np.int8), np.minimum(confidence.astype(np.float64), 1.0)

    def accuracy(self, matrix: NDArray[np.float32], truth: Codes) -> float:
        """Share of people whose group it guesses."""
        return float(np.mean(self.guess(matrix)[0] == truth))


def train(recipe: Recipe, matrix: NDArray[np.float32], truth: Codes, state: int) -> AttackModel:
    """Train a classifier on people whose groups are known.

    Not every classifier takes one class alone, or classes with a gap between their numbers.
    """
    groups, numbers = np.unique(truth, return_inverse=True)
    if len(groups) == 1:
        return AttackModel(groups, None)
    return AttackModel(groups, recipe.fit(matrix, numbers, state))
