"""Fairness after training: thresholds that differ between groups (Hardt et al.)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fpbench import Classifier, Learner, Sample
from fpbench.builtin.learners._fitted import as_labels, make_twin, require_groups, stack_labels
from fpbench.claims import Metric, RateConstraint
from fpbench.errors import DataError
from fpbench.models import Encoding, SklearnLearner, encode
from fpbench.plugin import Codes

if TYPE_CHECKING:
    from pandas import DataFrame

_CONSTRAINTS = {
    "statistical-parity": "demographic_parity",
    "predictive-equality": "false_positive_rate_parity",
    "equal-opportunity": "true_positive_rate_parity",
    "equalized-odds": "equalized_odds",
}


class ThresholdOptimizer(SklearnLearner):
    """fairlearn's `ThresholdOptimizer`: a base model, and randomised thresholds for each group.

    It aims at equal rates, tolerance 0, on the training part and in expectation; predictions are
    drawn, so rates of a sample differ slightly. Thresholds apply to the base model's
    probabilities: its labels, as in Hardt et al., would leave little choice. To predict, the
    model needs people's groups.
    """

    name = "threshold-optimizer"
    summary = "fair by thresholds that differ between groups, chosen after training (fairlearn)"
    reference = "Hardt et al., Equality of Opportunity in Supervised Learning, NeurIPS 2016"
    predicts_with_sensitive = True
    base_needs: ClassVar[frozenset[str]] = frozenset({"predict_proba"})

    metric: Metric = Field(
        "statistical-parity", description="fairness metric whose rates it makes equal"
    )

    def asked(self) -> RateConstraint:
        """The metric at tolerance 0, in form `to-overall`."""
        return RateConstraint(self.metric, 0.0)

    def twin(self) -> Learner:
        """The base model without fairness."""
        return make_twin(self, "plain", SklearnLearner.model_fields)

    def fit(self, sample: Sample, rng: np.random.Generator) -> Classifier:
        """Train on features and labels, then choose thresholds with the groups.

        Raises DataError if a group has one label only, so there are no thresholds to choose from.
        """
        from fairlearn import postprocessing

        groups = _check_groups(sample)
        optimizer = postprocessing.ThresholdOptimizer(
            estimator=self.estimator(rng),
            constraints=_CONSTRAINTS[self.metric],
            predict_method="predict_proba",
        )
        matrix = _encode_double(sample.features, self.encoding)
        optimizer.fit(matrix, sample.labels, sensitive_features=sample.sensitive)
        return Thresholds(optimizer.interpolated_thresholder_, groups, self.encoding)


@dataclass(frozen=True)
class Thresholds:
    """A trained base model with thresholds for every group."""

    thresholder: Any
    groups: dict[int, str]
    """Codes and names of the groups that have thresholds."""
    encoding: Encoding

    def predict(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> Codes:
        """Draw labels (n,) in {0, 1}, independently for each person.

        Raises InputError if people's groups are missing; DataError if a group was absent in
        training.
        """
        positive = self._find_positive(features, sensitive)
        return as_labels(rng.random(len(positive)) < positive)

    def predict_proba(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> NDArray[np.float64]:
        """Probabilities (n, 2) with which label 0 and label 1 are predicted."""
        return stack_labels(self._find_positive(features, sensitive))

    def _find_positive(self, features: DataFrame, sensitive: Codes | None) -> NDArray[np.float64]:
        codes = require_groups(sensitive, ThresholdOptimizer.name)
        # fairlearn would silently predict 0 for everyone in such a group.
        if not np.isin(codes, list(self.groups)).all():
            raise DataError(
                f"learner {ThresholdOptimizer.name!r} cannot predict for a group without people in "
                f"the training part; it has thresholds for {', '.join(self.groups.values())}"
            )
        matrix = _encode_double(features, self.encoding)
        # fairlearn's own `predict` draws from these; drawing here uses `rng`.
        probabilities = self.thresholder._pmf_predict(matrix, sensitive_features=codes)
        return np.asarray(probabilities, dtype=np.float64)[:, 1]


def _encode_double(features: DataFrame, encoding: Encoding) -> NDArray[np.float64]:
    """Encoded features in double precision, so that the base model's scores are too.

    fairlearn writes probabilities into the array of scores; pandas 3 refuses single precision.
    """
    return encode(features, encoding).astype(np.float64)


def _check_groups(sample: Sample) -> dict[int, str]:
    """Codes and names of the groups, each of which must have people of both labels."""
    codes, labels = sample.sensitive, sample.labels
    present = {int(code): sample.groups[int(code)] for code in np.unique(codes)}
    for code, name in present.items():
        group_labels = np.unique(labels[codes == code])
        if len(group_labels) == 1:
            raise DataError(
                f"learner {ThresholdOptimizer.name!r}: in the training part everyone of group "
                f"{name!r} has label {int(group_labels[0])}, but thresholds need both labels in "
                "every group; take more people, or a sensitive attribute with larger groups"
            )
    return present
