"""What the models of the learners here share: probabilities of both labels, and a plain model."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fpbench import Codes, InputError, Measures
from fpbench.base import drop_last_bits
from fpbench.models import EncodedColumn, Encoding, Rules, encode, tree_rules

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Fitted:
    """A trained scikit-learn classifier that takes encoded features."""

    estimator: Any
    encoding: Encoding
    columns: tuple[EncodedColumn, ...] = ()
    """Where the columns of its matrix come from, to name them in rules."""
    notes: Measures = field(default_factory=dict)
    """What a row should say of its training."""

    @cached_property
    def rules(self) -> Rules | None:
        """Its rules, if it is a decision tree; None for any other classifier."""
        from sklearn.tree import DecisionTreeClassifier

        if not isinstance(self.estimator, DecisionTreeClassifier):
            return None
        return tree_rules(self.estimator, self.columns, self.encoding)

    def predict(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> Codes:
        """Predict labels (n,) in {0, 1}."""
        return as_labels(self.estimator.predict(encode(features, self.encoding)))

    def predict_proba(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> NDArray[np.float64]:
        """Probabilities (n, 2) of label 0 and label 1.

        Raises
        ------
        InputError
            If the classifier gives none.
        """
        return probabilities(self.estimator, encode(features, self.encoding))


def as_labels(predicted: NDArray[Any]) -> Codes:
    """Predictions as the labels of a sample are: (n,), one byte each."""
    return np.asarray(predicted).astype(np.int8, copy=False)


def both_labels(positive: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities (n, 2) of label 0 and label 1, from those (n,) of label 1."""
    return np.column_stack([1.0 - positive, positive])


def probabilities(estimator: Any, matrix: NDArray[Any]) -> NDArray[np.float64]:
    """Probabilities (n, 2) of label 0 and label 1, also of a classifier that met one label only.

    Raises
    ------
    InputError
        If the classifier gives none.
    """
    if not hasattr(estimator, "predict_proba"):
        raise InputError(f"the base {type(estimator).__name__} gives no probabilities")
    found = np.zeros((len(matrix), 2))
    found[:, np.asarray(estimator.classes_, dtype=np.intp)] = estimator.predict_proba(matrix)
    # Of single precision, they may add up to a little more than 1.
    return both_labels(np.clip(found[:, 1], 0.0, 1.0))


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


def apart(estimator: Any) -> tuple[Any | None, Any]:
    """What comes before the classifier, if anything, and the classifier.

    fairlearn hands sample weights to the base model, and to a dummy in its place, under one name.
    A pipeline and a dummy want different names, so only the classifier goes to fairlearn.
    """
    from sklearn.pipeline import Pipeline

    if isinstance(estimator, Pipeline):
        return estimator[:-1], estimator[-1]
    return None, estimator


@contextmanager
def without_known_warnings() -> Iterator[None]:
    """Hide the warnings that fairlearn is known to cause in pandas, and no others.

    fairlearn (up to 0.15 at least) grows pandas Series in ways that pandas 2 and 3 deprecate. The
    results are right, and nobody who uses a learner can do anything about it.
    """
    with warnings.catch_warnings():
        for message in (
            "Setting a value on a Series via .at with a key that does not exist",
            "Setting an item of incompatible dtype",
        ):
            warnings.filterwarnings("ignore", message, module=r"fairlearn\.")
        yield


_MOMENTS = {
    "statistical-parity": "DemographicParity",
    "predictive-equality": "FalsePositiveRateParity",
    "equal-opportunity": "TruePositiveRateParity",
    "equalized-odds": "EqualizedOdds",
}
"""fairlearn's name of each metric, for its reductions."""

_RATE_BITS = 30
"""Of rates and their differences: a person among a million is told apart."""


def make_moment(metric: str, **bounds: float) -> Any:
    """A constraint of fairlearn on a metric, whose numbers do not depend on the processor.

    fairlearn multiplies matrices to get violations and people's weights. In their last bits these
    depend on the linear-algebra library, and decide what linear programs and base models do with
    ties: which of several best mixtures, which of several best splits of a tree.
    """
    from fairlearn import reductions

    plain: Any = getattr(reductions, _MOMENTS[metric])

    class Moment(plain):  # type: ignore[misc]
        """The same, without the last bits."""

        def gamma(self, predictor: Any) -> Any:
            """Violations of the constraints, one number each."""
            found = super().gamma(predictor)
            return found.__class__(drop_last_bits(found.to_numpy(), bits=_RATE_BITS), found.index)

        def signed_weights(self, prices: Any) -> Any:
            """What it is worth that each person is predicted 1, at prices of the constraints."""
            found = super().signed_weights(prices)
            scale = max(1.0, float(prices.abs().max()))  # a person's error weighs 1
            return found.__class__(drop_last_bits(found.to_numpy(), scale), found.index)

    return Moment(**bounds)
