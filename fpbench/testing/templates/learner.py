"""A learner: it trains the model that is attacked or audited."""

# `fpbench check .` runs it with three groups, and twice with one seed, and checks that it does not
# modify its input. If it has no answer, it raises `fpbench.InputError`. The difficult inputs:
# - everybody has label 0
# - all columns that it needs are missing (it gets only those in `needs`)

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fpbench import Classifier, Learner, Sample, hookimpl
from fpbench.models import encode, random_state
from fpbench.plugin import Codes


class Model:
    """A fitted scikit-learn classifier with the methods that fpbench calls."""

    def __init__(self, fitted: Any) -> None:
        self.fitted = fitted

    def predict(
        self, features: Any, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> Codes:
        """Labels (n,) in {0, 1}."""
        labels: Codes = self.fitted.predict(encode(features)).astype(np.int8)
        return labels

    def predict_proba(
        self, features: Any, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> NDArray[np.float64]:
        """Probabilities (n, 2) of label 0 and label 1."""
        proba: NDArray[np.float64] = self.fitted.predict_proba(encode(features))[:, -2:]
        return proba if proba.shape[1] == 2 else np.hstack([1 - proba, proba])


class Example(Learner):
    """A shallow random forest; `needs` declares which columns it trains on."""

    name = "example-name"
    summary = "a shallow random forest"
    needs = frozenset({"features", "labels"})
    gives_scores = True

    depth: int = Field(4, ge=1, le=64, description="depth of every tree")

    def fit(self, sample: Sample, rng: np.random.Generator) -> Classifier:
        """Train on the sample; randomness comes from `rng` only."""
        from sklearn.ensemble import RandomForestClassifier

        forest = RandomForestClassifier(
            20, max_depth=self.depth, random_state=random_state(rng), n_jobs=1
        )
        return Model(forest.fit(encode(sample.features), sample.labels))


@hookimpl
def fpbench_learners() -> list[type[Learner]]:
    """Register the component."""
    return [Example]
