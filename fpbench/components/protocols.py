"""Interfaces of objects that plugins get or return: models, and the context of disclosures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from fpbench.claims.rates import RateConstraint
from fpbench.data.sample import Codes, Sample

if TYPE_CHECKING:
    from pandas import DataFrame


@runtime_checkable
class Classifier(Protocol):
    """A trained model.

    It may also have `predict_proba(features, rng)`, `rules`, `published_trees`, `guarantee` and
    `baseline`.
    """

    def predict(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> Codes:
        """Labels (n,) in {0, 1}; `sensitive` is None unless the learner predicts with it."""


class Context(Protocol):
    """What a disclosure reads: samples with labels, groups and predictions."""

    @property
    def asked(self) -> RateConstraint | None:
        """The fairness that the learner was trained for."""

    @property
    def target(self) -> Sample:
        """The people that the claim is about."""

    @property
    def attack(self) -> Sample:
        """The attack set."""

    @property
    def model(self) -> Classifier | None:
        """The trained model, for disclosures that need it; None for others."""

    @property
    def trained_on_target(self) -> bool:
        """Whether the model was trained on the target people."""
