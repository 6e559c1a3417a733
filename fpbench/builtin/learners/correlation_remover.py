"""Fairness before training: features without linear correlation with the group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fpbench import Classifier, Learner, Sample
from fpbench.builtin.learners._fitted import as_labels, make_twin, predict_both, require_groups
from fpbench.models import Encoding, SklearnLearner, encode
from fpbench.plugin import Codes

if TYPE_CHECKING:
    from pandas import DataFrame


class CorrelationRemover(SklearnLearner):
    """fairlearn's `CorrelationRemover`, then the base model.

    Every encoded feature is replaced by its residual after a linear regression on the group (least
    squares). It optimises no fairness metric, and a non-linear base model may still infer the
    group, so a disclosure must name the metric that it publishes. To predict, the model needs
    people's groups.
    """

    name = "correlation-remover"
    summary = "features made uncorrelated with the group before training (fairlearn)"
    reference = (
        "Bird et al., Fairlearn: A toolkit for assessing and improving fairness in AI, "
        "MSR-TR-2020-32, 2020"
    )
    predicts_with_sensitive = True

    alpha: float = Field(
        1.0,
        ge=0,
        le=1,
        description="removed share of the correlation, from 0 (none) to 1 (all)",
    )

    def twin(self) -> Learner:
        """The base model without fairness."""
        return make_twin(self, "plain", SklearnLearner.model_fields)

    def fit(self, sample: Sample, rng: np.random.Generator) -> Classifier:
        """Train on features, labels and groups."""
        from fairlearn import preprocessing

        shares = _encode_groups(sample.sensitive, len(sample.groups) - 1).mean(axis=0)
        matrix = _append_groups(self.encode(sample.features), sample.sensitive, shares)
        columns = range(matrix.shape[1] - len(shares), matrix.shape[1])
        remover = preprocessing.CorrelationRemover(
            sensitive_feature_ids=list(columns), alpha=self.alpha
        )
        residuals = remover.fit_transform(matrix)
        model = self.estimator(rng).fit(residuals, sample.labels)
        return Uncorrelated(remover, model, shares, self.encoding)


@dataclass(frozen=True)
class Uncorrelated:
    """A trained classifier behind the transformation of its features."""

    remover: Any
    estimator: Any
    shares: NDArray[np.float64]
    """(k - 1,) share of each group but the first in training."""
    encoding: Encoding

    def predict(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> Codes:
        """Predict labels (n,) in {0, 1}; InputError if people's groups are missing."""
        return as_labels(self.estimator.predict(self._remove_correlation(features, sensitive)))

    def predict_proba(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> NDArray[np.float64]:
        """Probabilities (n, 2) of label 0 and label 1."""
        return predict_both(self.estimator, self._remove_correlation(features, sensitive))

    def _remove_correlation(self, features: DataFrame, sensitive: Codes | None) -> Any:
        codes = require_groups(sensitive, CorrelationRemover.name)
        matrix = encode(features, self.encoding)
        return self.remover.transform(_append_groups(matrix, codes, self.shares))


def _encode_groups(codes: Codes, others: int) -> NDArray[np.bool_]:
    """Membership (n, others) in every group but the first, which follows from the others."""
    return np.equal(np.asarray(codes)[:, None], np.arange(1, others + 1))


def _append_groups(
    matrix: NDArray[Any], codes: Codes, shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Encoded features, then membership minus the group's share in training.

    Centred here because fairlearn before 0.15 subtracts one mean from all sensitive columns, which
    is wrong for more than two groups. In double precision because in single precision a large
    feature would keep some of its correlation.
    """
    groups = _encode_groups(codes, len(shares)) - shares
    return np.hstack([matrix, groups], dtype=np.float64)
