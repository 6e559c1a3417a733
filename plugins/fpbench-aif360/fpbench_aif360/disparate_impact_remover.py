"""Fairness before training: features edited until groups look alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fpbench import Classifier, InputError, Learner, Sample, component
from fpbench.errors import DataError
from fpbench.models import Encoding, SklearnLearner, encode, random_state
from fpbench.plugin import Codes
from fpbench_aif360._fitted import predict_labels, predict_probabilities
from fpbench_aif360._quiet import load, seeded

if TYPE_CHECKING:
    from pandas import DataFrame

_Matrix = NDArray[np.float64]


class DisparateImpactRemover(SklearnLearner):
    """AI Fairness 360's `DisparateImpactRemover`, then the base model on the edited features.

    Each encoded feature is edited until all groups have nearly the same distribution of it; the
    order of people within a group stays. The method edits the set of *different* values of a
    feature in each group, whatever number of people have them. So a feature with two values in
    every group, as most one-hot categories are, does not change. The model needs people's groups
    to predict.

    Notes
    -----
    AI Fairness 360 edits a whole data set at once; for other people it starts again with them.
    Here the model learns the edits of the training people, value by value in each group. The value
    of another person is edited like the nearest training value of that person's group (the smaller
    of two). So a person's prediction does not depend on the other people in the same call, and
    training people are edited exactly as by AI Fairness 360.

    BlackBoxAuditing does the editing. It first bins the groups' codes by the rule of Freedman and
    Diaconis: with few people it would merge two groups, so few people are refused.
    """

    name = "aif360-disparate-impact-remover"
    summary = "features edited until groups look alike, before training (AI Fairness 360)"
    reference = "Feldman et al., Certifying and Removing Disparate Impact, KDD 2015"
    predicts_with_sensitive = True

    repair_level: float = Field(
        1.0, ge=0, le=1, description="how far features are edited: 1 all the way, 0 not at all"
    )

    def twin(self) -> Learner:
        """The base model without fairness."""
        options = {name: getattr(self, name) for name in SklearnLearner.model_fields}
        twin = component("learner", "plain", **options)
        assert isinstance(twin, Learner)
        return twin

    def fit(self, sample: Sample, rng: np.random.Generator) -> Classifier:
        """Train on features, labels and groups.

        Raises
        ------
        DataError
            If there are too few people for AI Fairness 360 to tell groups apart.
        """
        matrix, estimator = self.encode(sample.features).astype(np.float64), self.estimator(rng)
        repaired = repair(matrix, sample.sensitive, self.repair_level, random_state(rng))
        model = estimator.fit(repaired, sample.labels)
        edits = {
            int(group): [
                _collect_edits(matrix[mine, column], repaired[mine, column])
                for column in range(matrix.shape[1])
            ]
            for group in np.unique(sample.sensitive)
            for mine in [sample.sensitive == group]
        }
        return Edited(model, edits, self.encoding)


def repair(matrix: _Matrix, sensitive: Codes, level: float, seed: int) -> _Matrix:
    """Edited features (n, columns) of these people, by AI Fairness 360.

    Raises
    ------
    DataError
        If there are too few people for AI Fairness 360 to tell groups apart.
    """
    import pandas as pd

    codes = np.asarray(sensitive, dtype=np.float64)
    _, numbers = np.unique(codes, return_inverse=True)
    spread = np.subtract(*np.percentile(numbers, [75, 25]))
    if 2 * spread * len(codes) ** (-1 / 3) > 1:  # a bin of more than one code
        raise DataError(
            f"learner {DisparateImpactRemover.name!r}: {len(codes)} people are too few for AI "
            "Fairness 360 to tell their groups apart; take a larger data set"
        )
    names = [f"feature {column}" for column in range(matrix.shape[1])]
    frame = pd.DataFrame(matrix, columns=names).assign(group=numbers.astype(np.float64), label=0.0)
    dataset = load("aif360.datasets:BinaryLabelDataset")(
        df=frame, label_names=["label"], protected_attribute_names=["group"]
    )
    remover = load("aif360.algorithms.preprocessing:DisparateImpactRemover")
    with seeded(seed):
        repaired = remover(level, "group").fit_transform(dataset)
    return np.asarray(repaired.features[:, : matrix.shape[1]], dtype=np.float64)


def _collect_edits(before: _Matrix, after: _Matrix) -> tuple[_Matrix, _Matrix]:
    """Different values of a group, ascending, and the edited value of each."""
    values, first = np.unique(before, return_index=True)
    return values, after[first]


@dataclass(frozen=True)
class Edited:
    """A trained classifier behind the edits of its features."""

    estimator: Any
    edits: dict[int, list[tuple[_Matrix, _Matrix]]]
    """For every group in training, and each column: values and edited values."""
    encoding: Encoding

    def predict(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> Codes:
        """Predict labels (n,) in {0, 1}.

        Raises
        ------
        InputError
            If people's groups are not given.
        """
        return predict_labels(self.estimator, self.edit(features, sensitive))

    def predict_proba(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> NDArray[np.float64]:
        """Probabilities (n, 2) of label 0 and label 1.

        Raises
        ------
        InputError
            If people's groups are not given, or the classifier gives no probabilities.
        """
        return predict_probabilities(self.estimator, self.edit(features, sensitive))

    def edit(self, features: DataFrame, sensitive: Codes | None) -> _Matrix:
        """(n, columns) features as the classifier takes them; those of an unknown group unedited.

        Raises
        ------
        InputError
            If people's groups are not given.
        """
        if sensitive is None:
            raise InputError(
                f"learner {DisparateImpactRemover.name!r} needs everyone's group to predict: give "
                "`sensitive`"
            )
        matrix = encode(features, self.encoding).astype(np.float64)
        for group, columns in self.edits.items():
            mine = np.flatnonzero(np.asarray(sensitive) == group)
            for column, (values, edited) in enumerate(columns):
                matrix[mine, column] = edited[_find_nearest(values, matrix[mine, column])]
        return matrix


def _find_nearest(values: _Matrix, queries: _Matrix) -> NDArray[np.intp]:
    """Index of the nearest of ascending values for each query; of two equally near, the smaller."""
    above = np.clip(np.searchsorted(values, queries), 0, len(values) - 1)
    below = np.maximum(above - 1, 0)
    return np.where(queries - values[below] <= values[above] - queries, below, above)
