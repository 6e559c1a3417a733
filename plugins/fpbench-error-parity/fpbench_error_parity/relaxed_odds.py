"""Fairness after training: thresholds of groups that are equal up to a tolerance."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fpbench import Classifier, FpbenchError, InputError, Learner, Measure, Sample, component
from fpbench.claims import Metric, RateConstraint
from fpbench.errors import DataError
from fpbench.models import Encoding, SklearnLearner, encode
from fpbench.plugin import Codes, MeasureValues

if TYPE_CHECKING:
    from pandas import DataFrame

_Floats = NDArray[np.float64]

_CONSTRAINTS: dict[Metric, str] = {
    "statistical-parity": "demographic_parity",
    "predictive-equality": "false_positive_rate_parity",
    "equal-opportunity": "true_positive_rate_parity",
    "equalized-odds": "equalized_odds",
}


class RelaxedOdds(SklearnLearner):
    """A base model, and the most accurate randomised thresholds within a tolerance (error-parity).

    No two groups' rates differ by more than the tolerance, on the training part and in expectation;
    predictions are drawn, so a sample of them may miss it by a little. For equalized odds both
    rates of errors count. To predict, the model needs people's groups.

    error-parity solves a small program over the groups' ROC curves, and names each group's point.
    The thresholds and probabilities that reach the point are computed here, as error-parity does
    it, because its own classifiers draw from numpy's global randomness.
    """

    name = "relaxed-odds"
    summary = "thresholds by group, the most accurate within a tolerance (error-parity)"
    reference = "Cruz, Hardt. Unprocessing Seven Years of Algorithmic Fairness. ICLR 2024"
    predicts_with_sensitive = True
    base_needs: ClassVar[frozenset[str]] = frozenset({"predict_proba"})
    measures = Measure.table("asked", """
        relaxed_odds_accuracy | greater share | expected accuracy on the training people
    """)  # fmt: skip

    metric: Metric = Field("equalized-odds", description="fairness metric of the tolerance")
    tolerance: float = Field(
        0.05, ge=0, le=1, description="greatest difference between two groups' rates"
    )

    @classmethod
    def unavailable(cls) -> str | None:
        """Needs the solver ECOS, of which there is no wheel for Python 3.13."""
        return None if find_spec("ecos") else "needs the solver ECOS: pip install ecos"

    @property
    def portable(self) -> bool:
        """Never: the solver of the program stops early."""
        return False

    def asked(self) -> RateConstraint:
        """The metric and tolerance: a rate is no farther from that of all than from another's."""
        return RateConstraint(self.metric, self.tolerance)

    def twin(self) -> Learner:
        """The base model without fairness."""
        options = {name: getattr(self, name) for name in SklearnLearner.model_fields}
        twin = component("learner", "plain", **options)
        assert isinstance(twin, Learner)
        return twin

    def fit(self, sample: Sample, rng: np.random.Generator) -> Classifier:
        """Train on features and labels, then choose thresholds with the groups.

        Raises
        ------
        DataError
            If a group has one label only, so that it has no ROC curve.
        FpbenchError
            If error-parity finds no thresholds.
        """
        present = _check_groups(sample)
        matrix = encode(sample.features, self.encoding).astype(np.float64)
        base = self.estimator(rng).fit(matrix, sample.labels)
        scores = base.predict_proba(matrix)[:, 1]
        groups = np.searchsorted(list(present), sample.sensitive)  # numbered as error-parity does
        optimizer = _optimize(
            scores, sample.labels, groups, _CONSTRAINTS[self.metric], self.tolerance
        )
        mixtures = {
            code: Mixture.reach(
                optimizer.groupwise_roc_data[at], optimizer.groupwise_roc_points[at]
            )
            for at, code in enumerate(present)
        }
        notes = {"relaxed_odds_accuracy": 1 - float(optimizer.cost())}
        return ThresholdedModel(base, self.encoding, present, mixtures, notes)


@dataclass(frozen=True)
class Mixture:
    """Thresholds on scores, each with a probability, and a label drawn without regard to scores."""

    thresholds: _Floats
    weights: _Floats
    chance: float
    """Probability of label 1 by what does not regard scores."""

    @classmethod
    def reach(cls, curve: tuple[_Floats, _Floats, _Floats], point: _Floats) -> Mixture:
        """The mixture with this false- and true-positive rate.

        Parameters
        ----------
        curve
            A ROC curve: false-positive rates, true-positive rates, thresholds.
        point
            On or below the upper hull of the curve, and not below the diagonal.
        """
        from scipy.spatial import ConvexHull, QhullError

        fpr, tpr, thresholds = curve
        try:
            corners = set(ConvexHull(np.column_stack([fpr, tpr])).vertices.tolist())
        except QhullError:  # all on a line
            corners = {0, len(fpr) - 1}
        hull = np.array(sorted(corner for corner in corners if tpr[corner] >= fpr[corner]))
        x = float(np.clip(point[0], 0.0, 1.0))
        right = int(np.clip(np.searchsorted(fpr[hull], x, side="right"), 1, len(hull) - 1))
        ends = hull[[right - 1, right]]
        width = fpr[ends[1]] - fpr[ends[0]]
        share = float(np.clip((x - fpr[ends[0]]) / width, 0.0, 1.0)) if width else 1.0
        top = (1 - share) * tpr[ends[0]] + share * tpr[ends[1]]
        kept = float(np.clip((point[1] - x) / (top - x), 0.0, 1.0)) if top > x else 1.0
        return cls(thresholds[ends], kept * np.array([1 - share, share]), (1 - kept) * x)

    def find_positive(self, scores: _Floats) -> _Floats:
        """Probability (n,) of label 1."""
        above = scores[:, None] >= self.thresholds
        return np.clip(self.chance + above @ self.weights, 0.0, 1.0)


@dataclass(frozen=True)
class ThresholdedModel:
    """A trained base model with thresholds for every group."""

    estimator: Any
    encoding: Encoding
    groups: dict[int, str]
    """Codes and names of the groups that have thresholds."""
    mixtures: dict[int, Mixture]
    """By code."""
    notes: MeasureValues

    def predict(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> Codes:
        """Draw labels (n,) in {0, 1}, independently for each person.

        Raises
        ------
        InputError
            If people's groups are missing.
        DataError
            If a group was absent in training.
        """
        positive = self._find_positive(features, sensitive)
        return (rng.random(len(positive)) < positive).astype(np.int8)

    def predict_proba(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> _Floats:
        """Probabilities (n, 2) with which label 0 and label 1 are predicted."""
        positive = self._find_positive(features, sensitive)
        return np.column_stack([1.0 - positive, positive])

    def _find_positive(self, features: DataFrame, sensitive: Codes | None) -> _Floats:
        if sensitive is None:
            raise InputError(
                f"learner {RelaxedOdds.name!r} needs everyone's group to predict: give `sensitive`"
            )
        if not np.isin(sensitive, list(self.groups)).all():
            raise DataError(
                f"learner {RelaxedOdds.name!r} cannot predict for a group with nobody in the "
                f"training part; it has thresholds for {', '.join(self.groups.values())}"
            )
        scores = self.estimator.predict_proba(encode(features, self.encoding).astype(np.float64))
        positive = np.empty(len(scores))
        for code, mixture in self.mixtures.items():
            mine = np.asarray(sensitive) == code
            positive[mine] = mixture.find_positive(scores[mine, 1])
        return positive


def _optimize(
    scores: _Floats, labels: Codes, groups: NDArray[np.intp], constraint: str, tolerance: float
) -> Any:
    """error-parity's optimizer, fitted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of cvxpy, about versions and solvers
        from error_parity import RelaxedThresholdOptimizer

        optimizer = RelaxedThresholdOptimizer(
            predictor=np.ravel, constraint=constraint, tolerance=tolerance
        )
        try:
            return optimizer.fit(scores[:, None], np.asarray(labels), group=groups, y_scores=scores)
        except Exception as error:
            raise FpbenchError(
                f"learner {RelaxedOdds.name!r}: error-parity finds no thresholds at tolerance = "
                f"{tolerance:g} ({error}): try a slightly larger tolerance"
            ) from error


def _check_groups(sample: Sample) -> dict[int, str]:
    """Codes and names of the groups, each of which must have people of both labels."""
    codes, labels = sample.sensitive, sample.labels
    present = {int(code): sample.groups[int(code)] for code in np.unique(codes)}
    for code, name in present.items():
        own = np.unique(labels[codes == code])
        if len(own) == 1:
            raise DataError(
                f"learner {RelaxedOdds.name!r}: in the training part everyone of group {name!r} "
                f"has label {int(own[0])}, and thresholds need both labels in every group; take "
                "more people, or a sensitive attribute with larger groups"
            )
    return present
