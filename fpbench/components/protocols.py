"""What plugins hand back or are handed that is no plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from fpbench.claims.rates import RateConstraint
from fpbench.data.sample import Codes, Sample

if TYPE_CHECKING:
    from pandas import DataFrame


@runtime_checkable
class Classifier(Protocol):
    """What a learner gives back.

    It may also have `predict_proba(features, rng)`, `rules`, `guarantee` and `baseline`.
    """

    def predict(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> Codes:
        """Predict labels (n,) in {0, 1}; `sensitive` only if the learner says it needs it."""


class Context(Protocol):
    """What a disclosure is handed: samples with labels, groups and predictions."""

    @property
    def asked(self) -> RateConstraint | None:
        """The fairness that the learner was trained for."""

    @property
    def train(self) -> Sample:
        """The people it was trained on."""

    @property
    def attack(self) -> Sample:
        """The attack set."""
