"""Many logistic regressions of parts of the same people, each standardised by its own part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.base.arrays import drop_last_bits
from fpbench.models.batched.logistic import fit_logistic, logistic_proba

_Floats = NDArray[np.float64]

_CONSTANT = 1e-12
"""Variance, in units of everybody's, below which a column does not vary but for rounding."""


@dataclass(frozen=True)
class StandardizedLogistic:
    """A logistic model of standardised columns, as scikit-learn's classifiers are used.

    Attributes
    ----------
    mean, scale
        (d,) of everybody's columns: these are subtracted and divided by.
    theta
        (d + 1,) coefficients of the standardised columns, and the intercept.
    """

    mean: _Floats
    scale: _Floats
    theta: _Floats

    @property
    def classes_(self) -> NDArray[np.int64]:
        """The labels 0 and 1."""
        return np.array([0, 1])

    def predict_proba(self, X: NDArray[Any]) -> _Floats:
        """Probabilities (n, 2) of label 0 and label 1, rounded as `logistic-regression` does."""
        design = _standardize(np.asarray(X, np.float64), self.mean, self.scale)
        positive = logistic_proba(self.theta[None], design)[0]
        return drop_last_bits(np.column_stack([1.0 - positive, positive]))

    def predict(self, X: NDArray[Any]) -> NDArray[np.int64]:
        """The most probable label (n,); of equally probable ones 0."""
        return np.asarray(self.predict_proba(X).argmax(axis=1), np.int64)


def fit_standardized_logistic(
    matrix: NDArray[Any], labels: ArrayLike, members: NDArray[np.bool_], strength: float = 1.0
) -> list[StandardizedLogistic]:
    """B models, each what `logistic-regression` fits of its members, within 1e-6 of every score.

    That is scikit-learn's `StandardScaler`, by the members, and `LogisticRegression`, whose
    intercept is not penalised. Columns that are standardised by everybody instead give the same
    model if the penalty of a coefficient is multiplied by the squared ratio of the two standard
    deviations, so that all models share one matrix.

    Parameters
    ----------
    matrix
        (n, d) everybody's features.
    labels
        (n,) in {0, 1}; each model needs members of both.
    members
        (B, n) who trains which model.
    strength
        scikit-learn's C, above 0.

    Raises
    ------
    InputError
        If a number is not finite.
    """
    known = np.asarray(matrix, np.float64)
    mean, spread = known.mean(axis=0), known.std(axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    design = _standardize(known, mean, scale)
    weights = members.astype(np.float64)
    sizes = weights.sum(axis=1, keepdims=True)
    columns = design[:, :-1]
    centre = weights @ columns / sizes
    variance = weights @ columns**2 / sizes - centre**2
    # A column that does not vary among the members has coefficient 0, whatever its penalty.
    variance[variance <= _CONSTANT * (1 + centre**2)] = 1.0
    penalty = np.zeros((len(members), design.shape[1]))
    penalty[:, :-1] = variance / (2 * strength * sizes)
    targets = np.broadcast_to(np.asarray(labels, np.float64), weights.shape)
    # All models start at that of everybody who trains any, from which they are a few steps away.
    together = weights.sum(axis=0, keepdims=True)
    mean_penalty = penalty.mean(axis=0, keepdims=True)
    start = fit_logistic(design[None], targets[:1], mean_penalty, together, tolerance=1e-2)
    theta = fit_logistic(design, targets, penalty, weights, start=start)
    return [StandardizedLogistic(mean, scale, one) for one in theta]


def _standardize(matrix: _Floats, mean: _Floats, scale: _Floats) -> _Floats:
    """Standardised columns (n, d + 1); the last is ones."""
    design = np.empty((len(matrix), len(mean) + 1))
    np.subtract(matrix, mean, out=design[:, :-1])
    design[:, :-1] /= scale
    design[:, -1] = 1.0
    return design
