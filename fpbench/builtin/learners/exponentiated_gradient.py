"""Fairness while training: the exponentiated gradient reduction of Agarwal et al."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fpbench import Classifier, FpbenchError, Learner, Measure, Sample
from fpbench.builtin.learners._fitted import (
    as_labels,
    hide_known_warnings,
    make_moment,
    make_twin,
    split_pipeline,
    stack_labels,
)
from fpbench.claims import Metric, RateConstraint
from fpbench.models import Encoding, SklearnLearner, encode
from fpbench.plugin import Codes, MeasureValues

if TYPE_CHECKING:
    from pandas import DataFrame

_RETRIES = 6
_FIRST_STEP = 1e-4
"""Increase of the tolerance at the first retry; each further increase is twice the last."""


class ExponentiatedGradient(SklearnLearner):
    """fairlearn's `ExponentiatedGradient`: a randomised mixture of base models.

    Every group's rate must be within the tolerance of the overall rate, on the training part and
    in expectation over the mixture. Predictions are drawn from the mixture, so a sample of them may
    slightly exceed the tolerance.

    Notes
    -----
    fairlearn solves small linear programs internally. For some tolerances the solver misses an
    existing solution; the fit is then repeated with a slightly larger tolerance. The row shows it:
    `fit_tolerance` is the final tolerance, `fit_retries` the number of increases.

    The model holds base models and their weights only, and no training data.
    """

    name = "exponentiated-gradient"
    summary = "fair by reduction: a random mixture of classifiers within a tolerance (fairlearn)"
    reference = "Agarwal et al., A Reductions Approach to Fair Classification, ICML 2018"
    measures = Measure.table("asked", """
        fit_tolerance | less | tolerance at which fairlearn's linear program had a solution
        fit_retries | less | number of tolerances tried before
    """)  # fmt: skip

    base_needs: ClassVar[frozenset[str]] = frozenset({"sample_weight"})
    scores_of_base = False

    metric: Metric = Field("statistical-parity", description="fairness metric to train for")
    tolerance: float = Field(
        0.01, ge=0, le=1, description="greatest distance of a group's rate from the overall rate"
    )
    max_iter: int = Field(50, ge=1, le=10_000, description="greatest number of iterations")

    @classmethod
    def examples(cls, directory: Path) -> list[dict[str, Any]]:
        """A mixture of a few base models."""
        return [{"max_iter": 5}]

    def asked(self) -> RateConstraint:
        """The metric and tolerance that it is trained for, in form `to-overall`."""
        return RateConstraint(self.metric, self.tolerance)

    def twin(self) -> Learner:
        """The base model without fairness."""
        return make_twin(self, "plain", SklearnLearner.model_fields)

    def fit(self, sample: Sample, rng: np.random.Generator) -> Classifier:
        """Train on features, labels and groups.

        Raises FpbenchError if fairlearn's linear program fails at every tried tolerance.
        """
        scaler, base = split_pipeline(self.estimator(rng))
        matrix = self.encode(sample.features)
        if scaler is not None:
            matrix = scaler.fit_transform(matrix)
        tolerances = _list_tolerances(self.tolerance)
        for retries, tolerance in enumerate(tolerances):
            try:
                fitted = self._reduce(base, matrix, sample, tolerance)
            except (TypeError, RuntimeError) as error:
                if not _is_known_failure(error):
                    raise
                failure = error
                continue
            notes: MeasureValues = {"fit_tolerance": tolerance, "fit_retries": retries}
            return Mixture(self.encoding, scaler, *_extract_mixture(fitted), notes)
        raise FpbenchError(
            f"learner {self.name!r}: fairlearn's linear program has no solution at any of the "
            f"tolerances tried, {tolerances[0]:g} to {tolerances[-1]:g}"
        ) from failure

    def _reduce(self, base: Any, matrix: NDArray[Any], sample: Sample, tolerance: float) -> Any:
        """One run of fairlearn's algorithm."""
        from fairlearn import reductions

        moment = make_moment(self.metric, difference_bound=tolerance)
        algorithm = reductions.ExponentiatedGradient(base, moment, max_iter=self.max_iter)
        with hide_known_warnings():
            return algorithm.fit(matrix, sample.labels, sensitive_features=sample.sensitive)


@dataclass(frozen=True)
class Mixture:
    """Base models, and the probability with which each predicts for a person."""

    encoding: Encoding
    scaler: Any | None
    predictors: tuple[Any, ...]
    weights: NDArray[np.float64]
    """(models,) positive, summing to 1."""
    notes: MeasureValues

    def predict(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> Codes:
        """Draw labels (n,) in {0, 1}, independently for each person."""
        positive = self._predict_positive(features)
        return as_labels(rng.random(len(positive)) < positive)

    def predict_proba(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> NDArray[np.float64]:
        """Probabilities (n, 2) with which label 0 and label 1 are predicted."""
        return stack_labels(self._predict_positive(features))

    def _predict_positive(self, features: DataFrame) -> NDArray[np.float64]:
        matrix = encode(features, self.encoding)
        if self.scaler is not None:
            matrix = self.scaler.transform(matrix)
        positive = np.zeros(len(matrix))
        for predictor, weight in zip(self.predictors, self.weights, strict=True):
            positive += weight * predictor.predict(matrix)
        return np.minimum(positive, 1.0)


def _extract_mixture(fitted: Any) -> tuple[tuple[Any, ...], NDArray[np.float64]]:
    """The base models and weights of a fitted algorithm, without its training data."""
    weights = fitted.weights_[fitted.weights_ > 0]
    predictors = tuple(fitted.predictors_[index] for index in weights.index)
    shares = weights.to_numpy(np.float64)
    return predictors, shares / shares.sum()


def _list_tolerances(first: float) -> list[float]:
    """The first tolerance, followed by increased ones."""
    steps = (_FIRST_STEP * (2**retry - 1) for retry in range(_RETRIES + 1))
    # Rounded, so that a row shows 0.0101 and not 0.010100000000000001.
    larger = [round(min(first + step, 1.0), 12) for step in steps]
    return [first, *(tolerance for tolerance in larger[1:] if tolerance > first)]


def _is_known_failure(error: Exception) -> bool:
    """Whether this is fairlearn's known failure, not one of the base model or the data.

    `_Lagrangian.solve_linprog` ignores the solver's status: its `result.x[:-1]` is a
    TypeError if there is no solution (fairlearn pull request 1715 makes it a RuntimeError). The
    same function trains base models, in `eval_gap`; their errors are not this failure.
    """
    frames = traceback.extract_tb(error.__traceback__)
    names = [frame.name for frame in frames]
    return (
        "solve_linprog" in names
        and "eval_gap" not in names[names.index("solve_linprog") :]
        and frames[-1].filename.endswith("_lagrangian.py")
    )
