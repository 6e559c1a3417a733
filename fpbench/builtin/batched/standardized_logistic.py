"""Many logistic regressions on parts of the same people, each standardised by its own part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.base.arguments import show_value, to_array, to_floats, to_python_number
from fpbench.base.arrays import check_binary, drop_last_bits
from fpbench.base.errors import InputError
from fpbench.builtin.batched.logistic import logistic_proba
from fpbench.builtin.batched.logistic_parts import fit_logistic_parts

_Floats = NDArray[np.float64]

_CONSTANT = 1e-12
"""Variance, in units of the squared mean, below which a column varies by rounding only."""
_LEAST_SCALE = 1e-6
"""Replaces a smaller standard deviation of a column, where scikit-learn does not divide."""
_EPS = np.finfo(np.float64).eps


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

    @staticmethod
    def score_many(models: Sequence[StandardizedLogistic], X: NDArray[Any]) -> _Floats:
        """Probabilities (B, n) of label 1 by B models, as `predict_proba` gives them one by one.

        InputError if there are no models, or they are of other columns than X.
        """
        if not len(models):
            raise InputError("models: is empty; give at least one")
        first = models[0]
        if np.ndim(X) != 2 or np.shape(X)[1] != len(first.mean):
            raise InputError(f"X must be (n, {len(first.mean)}), not {np.shape(X)}")
        # For models that were fitted together, these are 0 and 1.
        shift = np.stack([(first.mean - one.mean) / one.scale for one in models])
        stretch = np.stack([first.scale / one.scale for one in models])
        theta = np.stack([one.theta for one in models])
        theta[:, -1] += (theta[:, :-1] * shift).sum(axis=1)
        theta[:, :-1] *= stretch
        design = _standardize(np.asarray(X, np.float64), first.mean, first.scale)
        return drop_last_bits(logistic_proba(theta, design))


def fit_standardized_logistic(
    matrix: NDArray[Any], labels: ArrayLike, members: NDArray[np.bool_], strength: float = 1.0
) -> list[StandardizedLogistic]:
    """B models, each as `logistic-regression` fits its members, within 1e-6 of every score.

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
        (B, n) true for the people a model is trained on.
    strength
        scikit-learn's C, above 0.

    Raises
    ------
    InputError
        If a number is not finite, shapes do not fit, or the members of a model have one label.
    """
    known = to_floats("matrix", matrix)
    own_labels = check_binary("labels", labels)
    _check_members(known, own_labels, members, strength)
    mean, spread = known.mean(axis=0), known.std(axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    design = _standardize(known, mean, scale)
    weights = members.astype(np.float64)
    sizes = weights.sum(axis=1, keepdims=True)
    columns = design[:, :-1]
    centre = weights @ columns / sizes
    variance = weights @ columns**2 / sizes - centre**2
    # A column that does not vary among the members has coefficient 0, whatever its penalty.
    variance[variance <= _CONSTANT * centre**2] = 1.0
    # scikit-learn does not divide one that varies by rounding errors of its mean alone.
    rounding = sizes * _EPS * np.abs(mean + centre * scale)
    variance = np.where(
        variance * scale**2 <= rounding**2,
        np.clip(scale, _LEAST_SCALE, 1.0) ** -2,
        variance,
    )
    ridge = np.zeros((len(members), design.shape[1]))
    ridge[:, :-1] = variance / strength
    theta = fit_logistic_parts(design, own_labels.astype(np.float64), members, ridge)
    return [StandardizedLogistic(mean, scale, one) for one in theta]


def _check_members(
    matrix: _Floats, labels: NDArray[np.int8], members: NDArray[np.bool_], strength: float
) -> None:
    """Raise InputError unless there are models, and each has members of both labels."""
    n = len(labels)
    if matrix.ndim != 2 or len(matrix) != n:
        raise InputError(f"matrix must be ({n}, d), a row for each label, not {matrix.shape}")
    chosen = to_array("members", members, "b")
    if chosen.ndim != 2 or chosen.shape[1] != n or not len(chosen):
        raise InputError(
            f"members must be (B, {n}), who trains each of one model or more, not {chosen.shape}"
        )
    positive, size = chosen @ labels.astype(np.int64), chosen.sum(axis=1)
    alike = np.flatnonzero((positive == 0) | (positive == size))
    if len(alike):
        what = "no members" if not size[alike[0]] else "members of one label only"
        raise InputError(f"model {alike[0]} has {what}: it needs some of label 0 and of label 1")
    if not to_python_number(strength, "strength") > 0:
        raise InputError(f"strength must be above 0, not {show_value(strength)}")


def _standardize(matrix: _Floats, mean: _Floats, scale: _Floats) -> _Floats:
    """Standardised columns (n, d + 1); the last is ones."""
    design = np.empty((len(matrix), len(mean) + 1))
    np.subtract(matrix, mean, out=design[:, :-1])
    design[:, :-1] /= scale
    design[:, -1] = 1.0
    return design
