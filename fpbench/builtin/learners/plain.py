"""The learner without fairness, a baseline for the others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpbench import Classifier, Sample
from fpbench.builtin.batched.standardized_logistic import (
    StandardizedLogistic,
    fit_standardized_logistic,
)
from fpbench.builtin.learners._fitted import Fitted, predict_both
from fpbench.models import FAMILIES, SklearnLearner, encoded_names


class Plain(SklearnLearner):
    """A scikit-learn classifier that ignores groups.

    It aims at no fairness metric, so a disclosure must name the metric that it publishes.
    """

    name = "plain"
    summary = "scikit-learn classifier without any fairness"
    needs = frozenset({"features", "labels"})

    @classmethod
    def examples(cls, directory: Path) -> list[dict[str, Any]]:
        """A base whose models are trained one by one, and one trained in batches."""
        return [{}, {"base": "logistic-regression"}]

    @property
    def gives_rules(self) -> bool:
        """Whether the base is a decision tree."""
        if self.base in FAMILIES:
            return self.base == "decision-tree"
        from sklearn.tree import DecisionTreeClassifier

        return issubclass(self.recipe.classifier(), DecisionTreeClassifier)

    @property
    def gives_trees(self) -> bool:
        """Whether the base is a decision tree or a forest of them."""
        if self.base in FAMILIES:
            return self.base in ("decision-tree", "random-forest")
        from sklearn.ensemble._forest import ForestClassifier
        from sklearn.tree import DecisionTreeClassifier

        return issubclass(self.recipe.classifier(), DecisionTreeClassifier | ForestClassifier)

    def fit(self, sample: Sample, rng: np.random.Generator) -> Classifier:
        """Train on features and labels."""
        model = self.estimator(rng).fit(self.encode(sample.features), sample.labels)
        return Fitted(model, self.encoding, encoded_names(sample.features, self.encoding))

    def fit_many(
        self,
        people: Sample,
        members: NDArray[np.bool_],
        rngs: Sequence[np.random.Generator],
    ) -> list[Classifier]:
        """Train models of parts of the people; logistic regressions in one batch."""
        ones = np.asarray(people.labels) == 1
        one_label = ~((members & ones).any(axis=1) & (members & ~ones).any(axis=1))
        # scikit-learn refuses training data of one label, and has other parameters.
        if self.base != "logistic-regression" or {*self.base_parameters} - {"C"} or one_label.any():
            return super().fit_many(people, members, rngs)
        strength = self.recipe.defaults()["C"]
        matrix = self.encode(people.features)
        fitted = fit_standardized_logistic(matrix, people.labels, members, strength)
        columns = encoded_names(people.features, self.encoding)
        return [Fitted(model, self.encoding, columns) for model in fitted]

    def score_many(
        self, models: Sequence[Classifier], people: Sample, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Outputs of models for people, encoded once; logistic regressions in one batch."""
        matrix, soft = self.encode(people.features), self.has_scores()
        estimators = [model.estimator for model in models if isinstance(model, Fitted)]
        if len(estimators) < len(models):
            return super().score_many(models, people, rng)
        scores = np.empty((len(models), len(people)))
        alike = [i for i, one in enumerate(estimators) if isinstance(one, StandardizedLogistic)]
        if alike:
            scores[alike] = StandardizedLogistic.score_many([estimators[i] for i in alike], matrix)
        for i in {*range(len(models))}.difference(alike):
            one = estimators[i]
            scores[i] = predict_both(one, matrix)[:, 1] if soft else one.predict(matrix)
        return scores
