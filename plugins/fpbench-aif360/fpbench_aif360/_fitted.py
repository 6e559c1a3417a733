"""Labels and probabilities of a scikit-learn classifier, in the types of fpbench."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fpbench import InputError
from fpbench.models import Encoding, encode
from fpbench.plugin import Codes

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Fitted:
    """A trained classifier that takes encoded features."""

    estimator: Any
    encoding: Encoding

    def predict(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> Codes:
        """Predict labels (n,) in {0, 1}."""
        return predict_labels(self.estimator, encode(features, self.encoding))

    def predict_proba(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> NDArray[np.float64]:
        """Probabilities (n, 2) of label 0 and label 1.

        Raises
        ------
        InputError
            If the classifier gives none.
        """
        return predict_probabilities(self.estimator, encode(features, self.encoding))


def predict_labels(estimator: Any, matrix: NDArray[Any]) -> Codes:
    """Predicted labels, one byte each."""
    return np.asarray(estimator.predict(matrix)).astype(np.int8, copy=False)


def predict_probabilities(estimator: Any, matrix: NDArray[Any]) -> NDArray[np.float64]:
    """Probabilities (n, 2), also of a classifier whose training people had one label only.

    Raises
    ------
    InputError
        If the classifier gives none.
    """
    if not hasattr(estimator, "predict_proba"):
        raise InputError(f"the base {type(estimator).__name__} gives no probabilities")
    proba = np.zeros((len(matrix), 2))
    proba[:, np.asarray(estimator.classes_, dtype=np.intp)] = estimator.predict_proba(matrix)
    positive = np.clip(proba[:, 1], 0.0, 1.0)
    return np.column_stack([1.0 - positive, positive])
