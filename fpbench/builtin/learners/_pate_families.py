"""The two families of teachers and students: all of one kind are trained at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fpbench.models import (
    MLPTraining,
    Networks,
    fit_logistic,
    fit_logistic_apart,
    fit_networks,
    fit_networks_apart,
    logistic_proba,
)

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


class Family(Protocol):
    """Trains many models at once, and asks them all."""

    def teachers(self, design: Floats, labels: Floats, parts: list[Rows]) -> Any:
        """One model for each part of the rows."""

    def students(
        self, design: Floats, targets: Floats, weights: Floats | None, start: Floats | None = None
    ) -> Any:
        """One model for each row of targets (R, m), on people that all share."""

    def proba(self, models: Any, design: Floats) -> Floats:
        """Probabilities (R, n) of label 1."""

    def flat(self, models: Any) -> Floats:
        """All their parameters (R, parameters)."""


@dataclass(frozen=True)
class Logistic:
    """Ridge logistic regression, exact."""

    penalty: float

    def teachers(self, design: Floats, labels: Floats, parts: list[Rows]) -> Floats:
        """Parameters (k, d)."""
        return fit_logistic_apart(design, labels, parts, self.penalty)

    def students(
        self, design: Floats, targets: Floats, weights: Floats | None, start: Floats | None = None
    ) -> Floats:
        """Parameters (R, d)."""
        return fit_logistic(design, targets, self.penalty, weights, start=start)

    def proba(self, models: Floats, design: Floats) -> Floats:
        """Probabilities (R, n) of label 1."""
        return logistic_proba(models, design)

    def flat(self, models: Floats) -> Floats:
        """All their parameters (R, d)."""
        return models


@dataclass(frozen=True)
class MLP:
    """Networks of two hidden ReLU layers, by Adam."""

    training: MLPTraining
    seed: int
    """Of beginnings and orders. All students share one, so that noise alone tells them apart."""

    def teachers(self, design: Floats, labels: Floats, parts: list[Rows]) -> Networks:
        """One network for each part."""
        rng = np.random.default_rng(self.seed)
        return fit_networks_apart(design, labels, parts, self.training, rng)

    def students(
        self, design: Floats, targets: Floats, weights: Floats | None, start: Floats | None = None
    ) -> Networks:
        """One network for each row of targets."""
        rng = np.random.default_rng(self.seed)
        return fit_networks(design, targets, self.training, rng, weights)

    def proba(self, models: Networks, design: Floats) -> Floats:
        """Probabilities (R, n) of label 1."""
        return models.proba(design)

    def flat(self, models: Networks) -> Floats:
        """All their parameters (R, parameters)."""
        return models.flat
