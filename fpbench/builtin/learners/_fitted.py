"""What the models of the learners here share: probabilities of both labels, and a plain model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fpbench import Codes, InputError, encode

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Fitted:
    """A trained scikit-learn classifier that takes encoded features."""

    estimator: Any

    def predict(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> Codes:
        """Predict labels (n,) in {0, 1}."""
        return as_labels(self.estimator.predict(encode(features)))

    def predict_proba(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> NDArray[np.float64]:
        """Probabilities (n, 2) of label 0 and label 1."""
        return probabilities(self.estimator, encode(features))


def as_labels(predicted: NDArray[Any]) -> Codes:
    """Predictions as the labels of a sample are: (n,), one byte each."""
    return np.asarray(predicted).astype(np.int8, copy=False)


def both_labels(positive: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities (n, 2) of label 0 and label 1, from those (n,) of label 1."""
    return np.column_stack([1.0 - positive, positive])


def probabilities(estimator: Any, matrix: NDArray[Any]) -> NDArray[np.float64]:
    """Probabilities (n, 2) of label 0 and label 1, also of a classifier that met one label only."""
    found = np.zeros((len(matrix), 2))
    found[:, np.asarray(estimator.classes_, dtype=np.intp)] = estimator.predict_proba(matrix)
    return found


def groups_of(sensitive: Codes | None, learner: str) -> Codes:
    """The groups that a model needs to predict.

    Raises
    ------
    InputError
        If they were not given.
    """
    if sensitive is None:
        raise InputError(f"learner {learner!r} needs everyone's group to predict: give `sensitive`")
    return sensitive
