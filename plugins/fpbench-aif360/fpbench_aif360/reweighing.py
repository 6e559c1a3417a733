"""Fairness before training: people weighed so that label and group are independent."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fpbench import Classifier, Learner, Sample, component
from fpbench.models import SklearnLearner
from fpbench_aif360._fitted import Fitted
from fpbench_aif360._quiet import load


class Reweighing(SklearnLearner):
    """AI Fairness 360's `Reweighing`, then the base model with these weights.

    A person of group g and label y weighs P(g) P(y) / P(g, y): in the weighed sample, label and
    group are independent. Any number of groups. The method aims at statistical parity of the
    model, but promises no tolerance, so this learner states no constraint: a disclosure must say
    which metric it publishes. The model predicts without groups.
    """

    name = "aif360-reweighing"
    summary = "people weighed so that label and group are independent (AI Fairness 360)"
    reference = (
        "Kamiran & Calders, Data Preprocessing Techniques for Classification without "
        "Discrimination, Knowledge and Information Systems, 2012"
    )
    base_needs: ClassVar[frozenset[str]] = frozenset({"sample_weight"})

    def twin(self) -> Learner:
        """The base model without fairness."""
        options = {name: getattr(self, name) for name in SklearnLearner.model_fields}
        twin = component("learner", "plain", **options)
        assert isinstance(twin, Learner)
        return twin

    def fit(self, sample: Sample, rng: np.random.Generator) -> Classifier:
        """Train on features, labels and groups."""
        matrix, estimator = self.encode(sample.features), self.estimator(rng)
        weights, prefix = weigh(sample), _find_prefix(estimator)
        estimator.fit(matrix, sample.labels, **{f"{prefix}sample_weight": weights})
        return Fitted(estimator, self.encoding)


def weigh(sample: Sample) -> NDArray[np.float64]:
    """(n,) weights by AI Fairness 360."""
    import pandas as pd

    reweighing = load("aif360.sklearn.preprocessing:Reweighing")("group")
    # AI Fairness 360 reads groups from the index.
    index = pd.Index(np.asarray(sample.sensitive), name="group")
    people = pd.DataFrame({"person": np.arange(len(sample))}, index=index)
    _, weights = reweighing.fit_transform(people, pd.Series(np.asarray(sample.labels), index=index))
    return np.asarray(weights, dtype=np.float64)


def _find_prefix(estimator: Any) -> str:
    """Prefix of the classifier's arguments: its step's name in a pipeline, or nothing."""
    from sklearn.pipeline import Pipeline

    return f"{estimator.steps[-1][0]}__" if isinstance(estimator, Pipeline) else ""
