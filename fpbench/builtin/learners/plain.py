"""The learner without fairness: what the others are compared with."""

from __future__ import annotations

import numpy as np

from fpbench import Classifier, Sample, SklearnLearner, encode
from fpbench.builtin.learners._fitted import Fitted


class Plain(SklearnLearner):
    """A scikit-learn classifier that knows nothing of groups.

    It aims at no fairness, so a disclosure must say which metric it publishes.
    """

    name = "plain"
    summary = "scikit-learn classifier without any fairness"

    def fit(self, sample: Sample, rng: np.random.Generator) -> Classifier:
        """Train on features and labels; the sensitive attribute is not used."""
        return Fitted(self.estimator(rng).fit(encode(sample.features), sample.labels))
