"""scikit-learn's logistic regression, with the same results on every processor.

scikit-learn stops iterating when the gradient is small enough (1e-4), in single precision if the
features are. Where it stops, and so the third digit of a probability, depends on the last bits of
sums, which differ between processors. Newton's method in double precision, run to convergence,
comes within 1e-14 of the unique optimum everywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import linear_model

from fpbench.base.arrays import drop_last_bits
from fpbench.base.errors import DataError


class LogisticRegression(linear_model.LogisticRegression):  # type: ignore[misc]
    """scikit-learn's logistic regression in double precision, with rounded probabilities.

    People with equal features get equal probabilities, whatever their rows in a matrix.
    """

    def fit(
        self, X: NDArray[Any], y: NDArray[Any], sample_weight: NDArray[Any] | None = None
    ) -> LogisticRegression:
        """Fit the model to X (n, d) with classes y (n,).

        Raises DataError if everybody has the same class.
        """
        if len(y) and (np.asarray(y) == y[0]).all():
            raise DataError(
                f"logistic regression needs training people of both labels, and all {len(y):,} "
                f"have label {y[0]}"
            )
        return super().fit(_to_double(X), y, sample_weight)  # type: ignore[no-any-return]

    def predict_proba(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Probabilities (n, classes)."""
        return drop_last_bits(super().predict_proba(_to_double(X)))

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        """The most probable class (n,) of each person; of equally probable ones the first."""
        most = np.argmax(self.predict_proba(X), axis=1)
        return np.asarray(np.asarray(self.classes_)[most])


def _to_double(X: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(X, np.float64)
