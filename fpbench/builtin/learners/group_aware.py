"""Any learner with people's groups among its features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fpbench import Classifier, Guarantee, Sample
from fpbench.builtin.learners._fitted import require_groups
from fpbench.data import Domain
from fpbench.models import LearnerOverBase, PublishedTree
from fpbench.plugin import Codes, MeasureValues

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class GroupAwareModel:
    """A model that takes the group as one more feature."""

    model: Any
    """The model of the base learner."""
    groups: tuple[str, ...]
    column: str
    """Name of the feature for the group."""

    @property
    def guarantee(self) -> Guarantee | None:
        """The base model's guarantee, which covers the group like any feature."""
        return getattr(self.model, "guarantee", None)

    @property
    def notes(self) -> MeasureValues:
        """Measures of the base model's training."""
        return dict(getattr(self.model, "notes", {}))

    @property
    def published_trees(self) -> tuple[PublishedTree, ...]:
        """Trees of the base model, which take the group as a feature; none if it has none."""
        return tuple(getattr(self.model, "published_trees", ()))

    def add_group(self, features: DataFrame, groups: Codes) -> DataFrame:
        """Features with the group as a categorical, for the base model."""
        return add_group(features, groups, self.groups, self.column)

    def predict(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> Codes:
        """Predict labels (n,) in {0, 1}; InputError if people's groups are missing."""
        own = self.add_group(features, require_groups(sensitive, GroupAware.name))
        answer: Codes = self.model.predict(own, rng)
        return answer

    def predict_proba(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> NDArray[np.float64]:
        """Probabilities (n, 2) of label 0 and label 1."""
        own = self.add_group(features, require_groups(sensitive, GroupAware.name))
        return np.asarray(self.model.predict_proba(own, rng))


class GroupAware(LearnerOverBase):
    """Trains another learner with people's groups as one more feature.

    Such a model reveals more about its training people's groups than one without: by the leaves of
    its trees (disclosure `structure`), and by its predictions for each possible group of a person.
    To predict, the model needs people's groups.
    """

    name = "group-aware"
    summary = "any learner, with people's groups among its features"
    predicts_with_sensitive = True

    @property
    def gives_trees(self) -> bool:
        """Whether the base gives trees."""
        return self.base.gives_trees

    @property
    def protects(self) -> frozenset[str]:
        """Columns that the base protects, and the groups if it protects features."""
        own = self.base.protects
        return own | {"sensitive"} if "features" in own else own

    def fit(self, sample: Sample, rng: np.random.Generator) -> Classifier:
        """Train the base on features, groups and labels."""
        names = [str(name) for name in sample.features.columns]
        column = "group"
        while column in names:
            column += "_"
        features = add_group(sample.features, sample.sensitive, sample.groups, column)
        people = Sample(
            sample.groups, features=features, labels=sample.labels, sensitive=sample.sensitive,
            domain=sample.domain | Domain.of({column: list(sample.groups)}),
            measured_cuts=sample.measured_cuts,
        )  # fmt: skip
        model = self.base.fit(people.only(self.base.needs), rng)
        return GroupAwareModel(model, sample.groups, column)


def add_group(features: DataFrame, groups: Codes, names: tuple[str, ...], column: str) -> DataFrame:
    """Features with the group as a categorical, whose categories are in the order of `names`."""
    import pandas as pd

    codes = np.asarray(groups, np.int64)
    own = pd.Categorical.from_codes(codes, categories=pd.Index(names))
    return features.assign(**{column: own})
