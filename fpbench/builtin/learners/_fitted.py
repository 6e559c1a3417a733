"""A fitted scikit-learn model, its probabilities, and adaptations for fairlearn."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fpbench import Component, InputError, Learner, component
from fpbench.base import drop_last_bits
from fpbench.models import (
    EncodedColumn,
    Encoding,
    PublishedTree,
    Rules,
    encode,
    read_trees,
    tree_rules,
)
from fpbench.plugin import Codes, MeasureValues

if TYPE_CHECKING:
    from pandas import DataFrame


class ScoredModel(ABC):
    """A model that decides by the probability of label 1 alone."""

    @abstractmethod
    def find_positive(self, features: DataFrame) -> NDArray[np.float64]:
        """Probabilities (n,) of label 1."""

    def predict(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> Codes:
        """Predict labels (n,) in {0, 1}; label 0 for a probability of 1/2."""
        return as_labels(self.find_positive(features) > 0.5)

    def predict_proba(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> NDArray[np.float64]:
        """Probabilities (n, 2) of label 0 and label 1."""
        return stack_labels(self.find_positive(features))


@dataclass(frozen=True)
class Fitted:
    """A trained scikit-learn classifier that takes encoded features."""

    estimator: Any
    encoding: Encoding
    columns: tuple[EncodedColumn, ...] = ()
    """Features of the matrix's columns, for names in rules."""
    notes: MeasureValues = field(default_factory=dict)
    """Measures of its training, for the row."""

    @cached_property
    def rules(self) -> Rules | None:
        """The rules of a decision tree, else None."""
        from sklearn.tree import DecisionTreeClassifier

        if not isinstance(self.estimator, DecisionTreeClassifier):
            return None
        return tree_rules(self.estimator, self.columns, self.encoding)

    @cached_property
    def published_trees(self) -> tuple[PublishedTree, ...]:
        """The trees of a tree or forest, with the numbers of people in their leaves."""
        return read_trees(self.estimator, self.encoding)

    def predict(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> Codes:
        """Predict labels (n,) in {0, 1}."""
        return as_labels(self.estimator.predict(encode(features, self.encoding)))

    def predict_proba(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> NDArray[np.float64]:
        """Probabilities (n, 2) of label 0 and label 1; InputError if the classifier gives none."""
        return predict_both(self.estimator, encode(features, self.encoding))


def as_labels(predicted: NDArray[Any]) -> Codes:
    """Predictions as labels (n,) of one byte."""
    return np.asarray(predicted).astype(np.int8, copy=False)


def stack_labels(positive: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities (n, 2) of label 0 and label 1, from those (n,) of label 1."""
    return np.column_stack([1.0 - positive, positive])


def predict_both(estimator: Any, matrix: NDArray[Any]) -> NDArray[np.float64]:
    """Probabilities (n, 2) of label 0 and label 1, even if training saw one label only.

    Raises InputError if the classifier gives none.
    """
    if not hasattr(estimator, "predict_proba"):
        raise InputError(f"the base {type(estimator).__name__} gives no probabilities")
    by_label = np.zeros((len(matrix), 2))
    by_label[:, np.asarray(estimator.classes_, dtype=np.intp)] = estimator.predict_proba(matrix)
    # Single-precision probabilities may add up to a little more than 1.
    return stack_labels(np.clip(by_label[:, 1], 0.0, 1.0))


def require_groups(sensitive: Codes | None, learner: str) -> Codes:
    """The groups, which the model needs to predict; InputError if they are missing."""
    if sensitive is None:
        raise InputError(f"learner {learner!r} needs everyone's group to predict: give `sensitive`")
    return sensitive


def split_pipeline(estimator: Any) -> tuple[Any | None, Any]:
    """The steps before the classifier, or None, and the classifier.

    fairlearn passes sample weights to the base model, and to a dummy instead of it, under one name.
    A pipeline and a dummy need different names, so fairlearn gets the classifier only.
    """
    from sklearn.pipeline import Pipeline

    if isinstance(estimator, Pipeline):
        return estimator[:-1], estimator[-1]
    return None, estimator


@contextmanager
def hide_known_warnings() -> Iterator[None]:
    """Hide only the warnings that fairlearn causes in pandas.

    fairlearn (at least up to 0.15) grows pandas Series in ways that pandas 2 and 3 deprecate. The
    results are right, and users of a learner cannot change this.
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
"""The class of each metric in `fairlearn.reductions`."""

_RATE_BITS = 30
"""Bits of rates after rounding: enough for one person among a million."""


def make_moment(metric: str, **bounds: float) -> Any:
    """Fairlearn's constraint on a metric, with numbers that do not depend on the processor.

    fairlearn computes violations and people's weights by matrix products. Their last bits depend
    on the linear-algebra library and break ties in linear programs and base models, such as
    between equally good mixtures, or splits of a tree.
    """
    from fairlearn import reductions

    plain: Any = getattr(reductions, _MOMENTS[metric])

    class Moment(plain):  # type: ignore[misc]
        """The constraint without the last bits."""

        def gamma(self, predictor: Any) -> Any:
            """Violations of the constraints, one number each."""
            violations = super().gamma(predictor)
            rounded = drop_last_bits(violations.to_numpy(), bits=_RATE_BITS)
            return violations.__class__(rounded, violations.index)

        def signed_weights(self, prices: Any) -> Any:
            """The value of predicting 1 for each person, at prices of the constraints."""
            weights = super().signed_weights(prices)
            scale = max(1.0, float(prices.abs().max()))  # a person's error has weight 1
            return weights.__class__(drop_last_bits(weights.to_numpy(), scale), weights.index)

    return Moment(**bounds)


def make_twin(learner: Learner, name: str, shared: Iterable[str]) -> Learner:
    """The learner of this name, with parameters of another.

    `learner`: a fair learner. `name`: of its twin. `shared`: names of their common parameters.
    """
    parameters = {}
    for key in shared:
        value = getattr(learner, key)
        if isinstance(value, Component):
            value = {"use": value.name, **value.model_dump(mode="json")}
        parameters[key] = value
    twin = component("learner", name, **parameters)
    assert isinstance(twin, Learner)
    return twin
