"""Fairness while training: the grid search reduction of Agarwal et al."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from math import comb
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from fpbench import Classifier, Component, Dataset, InputError, Learner, Sample
from fpbench.builtin.learners._fitted import (
    Fitted,
    hide_known_warnings,
    make_moment,
    make_twin,
    split_pipeline,
)
from fpbench.claims import Metric, RateConstraint
from fpbench.models import SklearnLearner

_MOST_DIMENSIONS = 4
"""Greatest number of dimensions that fairlearn recommends for a grid."""


class GridSearch(SklearnLearner):
    """fairlearn's `GridSearch`: the best of several base models, each trained on reweighted people.

    Every point of the grid is a price for each group's distance from the overall rate; people are
    reweighted and relabelled by these prices, and a base model is trained. The model with the least
    weighted sum of error and unfairness on the training part is chosen. It is one model, not a
    mixture, so its predictions are deterministic. It trades unfairness against error and has no
    tolerance: its target is tolerance 0, and the distance from that is measured.

    For a given number of points, fairlearn cuts the last corner off a larger grid. Here the grid is
    completed: to an odd number of points in one dimension, to 5, 13, 25, 41, ... in two.

    The grid has K - 1 dimensions for K groups, twice as many for equalized odds. fairlearn
    recommends at most 4 dimensions and at least 2^dimensions points: anything else is refused here.
    """

    name = "grid-search"
    summary = "fair by reduction: the best of classifiers trained on reweighted people (fairlearn)"
    reference = (
        "Agarwal et al., A Reductions Approach to Fair Classification, ICML 2018, section 3.4"
    )
    base_needs: ClassVar[frozenset[str]] = frozenset({"sample_weight"})

    metric: Metric = Field("statistical-parity", description="fairness metric to train for")
    grid_size: int = Field(
        21, ge=2, le=10_000, description="least number of points, each with one model"
    )
    grid_limit: float = Field(
        2.0, gt=0, allow_inf_nan=False, description="greatest price of unfairness in the grid"
    )
    constraint_weight: float = Field(
        0.5, ge=0, le=1, description="weight of unfairness in the choice; error has the rest"
    )

    def asked(self) -> RateConstraint:
        """The metric at tolerance 0, in form `to-overall`."""
        return RateConstraint(self.metric, 0.0)

    def incompatible(self, other: Component) -> str | None:
        """Why the data set has too many groups for the grid."""
        if isinstance(other, Dataset) and other.n_groups is not None:
            too_many = self._explain_too_many(other.n_groups)
            if too_many:
                return too_many
        return super().incompatible(other)

    def twin(self) -> Learner:
        """The base model without fairness."""
        return make_twin(self, "plain", SklearnLearner.model_fields)

    def fit(self, sample: Sample, rng: np.random.Generator) -> Classifier:
        """Train on features, labels and groups.

        Raises InputError if there are too many groups for a grid of this size, or for any.
        """
        from fairlearn import reductions

        groups = len(np.unique(sample.sensitive))
        too_many = self._explain_too_many(groups)
        if too_many:
            raise InputError(too_many)
        scaler, base = split_pipeline(self.estimator(rng))
        matrix: Any = self.encode(sample.features)
        if scaler is not None:
            matrix = scaler.fit_transform(matrix)
        search = reductions.GridSearch(
            base,
            make_moment(self.metric),
            constraint_weight=self.constraint_weight,
            grid_size=_fill_grid(self.grid_size, self._count_dimensions(groups)),
            grid_limit=self.grid_limit,
        )
        with hide_known_warnings():
            search.fit(matrix, sample.labels, sensitive_features=sample.sensitive)
        # Not the search itself, which keeps all training data.
        best = search.predictors_[search.best_idx_]
        return Fitted(best if scaler is None else _join_pipeline(scaler, best), self.encoding)

    def _count_dimensions(self, groups: int) -> int:
        """Number of independent prices."""
        return (groups - 1) * (2 if self.metric == "equalized-odds" else 1)

    def _explain_too_many(self, groups: int) -> str | None:
        """Why no valid grid exists for this number of groups; None if one does."""
        dimensions = self._count_dimensions(groups)
        about = (
            f"learner {self.name!r}: {groups} groups and {self.metric} make a grid of "
            f"{dimensions} dimensions"
        )
        if dimensions > _MOST_DIMENSIONS:
            return (
                f"{about}, and more than {_MOST_DIMENSIONS} are too many to search; use "
                "exponentiated-gradient"
            )
        if self.grid_size < 2**dimensions:
            return f"{about}, which needs at least {2**dimensions} points, not {self.grid_size}"
        return None


def _fill_grid(points: int, dimensions: int) -> int:
    """The number of points of the smallest complete grid with at least `points`.

    A complete grid is all integer vectors whose absolute values sum to at most n:
    2^k C(dimensions, k) C(n, k) of them have k non-zero values.
    """
    sizes: Iterator[int] = (
        sum(2**k * comb(dimensions, k) * comb(n, k) for k in range(dimensions + 1))
        for n in count(1)
    )
    return next(size for size in sizes if size >= points)


def _join_pipeline(scaler: Any, classifier: Any) -> Any:
    """A pipeline of fitted steps and a fitted classifier."""
    from sklearn.pipeline import make_pipeline

    return make_pipeline(*(step for _, step in scaler.steps), classifier)
