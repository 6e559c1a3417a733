"""The learner without fairness, a baseline for the others."""

from __future__ import annotations

import numpy as np

from fpbench import Classifier, Sample
from fpbench.builtin.learners._fitted import Fitted
from fpbench.models import FAMILIES, SklearnLearner, encoded_names


class Plain(SklearnLearner):
    """A scikit-learn classifier that ignores groups.

    It aims at no fairness metric, so a disclosure must name the metric that it publishes.
    """

    name = "plain"
    summary = "scikit-learn classifier without any fairness"
    needs = frozenset({"features", "labels"})

    @property
    def gives_rules(self) -> bool:
        """Whether the base is a decision tree."""
        if self.base in FAMILIES:
            return self.base == "decision-tree"
        from sklearn.tree import DecisionTreeClassifier

        return issubclass(self.recipe.classifier(), DecisionTreeClassifier)

    def fit(self, sample: Sample, rng: np.random.Generator) -> Classifier:
        """Train on features and labels."""
        model = self.estimator(rng).fit(self.encode(sample.features), sample.labels)
        return Fitted(model, self.encoding, encoded_names(sample.features, self.encoding))
