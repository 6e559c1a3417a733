"""What an auditor is handed, and what a private one gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fpbench.components.claims.rates import Metric
from fpbench.components.guarantee import Guarantee
from fpbench.components.records import Measures, Sample

if TYPE_CHECKING:
    from pandas import DataFrame

    from fpbench.components.protocols import HistogramSource

NOISES = ("simulation", "secure")
"""Where the noise of a release may come from."""


@dataclass(frozen=True)
class Subject:
    """All that an auditor is handed; what it does not declare in `sees` is not there."""

    train: Sample
    """The people the model was trained on."""
    test: Sample
    """The people it is audited on."""
    model: Any = None
    curator: HistogramSource | None = None
    """Who answers about the groups of the people it is audited on."""


@dataclass(frozen=True, eq=False)
class Release:
    """What a private audit says of a model's fairness: R audits alike, of fresh noise each.

    Fairness is the ratio of the least to the greatest group rate, in [0, 1]: 1 is fair. For
    equalized odds it is the smaller of the two labels' ratios.
    """

    metric: Metric
    values: NDArray[np.float64]
    """(R,) estimates of the ratio."""
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    """(R,) ends of the intervals, which combine sampling and noise."""
    confidence: float
    """Of the intervals."""
    guarantee: Guarantee
    """Of one of the audits."""
    noise: str
    """Where the noise came from: `simulation` or `secure`."""
    measures: Measures = field(default_factory=dict)
    """What else a row should say: queries, share of invalid answers, ..."""
    rules: DataFrame | None = None
    """The rules with their noisy counts, of the first audit, if it asked about rules."""

    def __str__(self) -> str:
        said, low, high = self.guarantee, self.low[0], self.high[0]
        price = f"epsilon {said.epsilon:g}" + (f", delta {said.delta:g}" if said.delta else "")
        more = f"; the first of {len(self.values)} audits" if len(self.values) > 1 else ""
        between = ""
        if not np.isnan(low):
            between = f", {low:.3f} to {high:.3f} at {100 * self.confidence:.6g}% confidence"
        return (
            f"{self.metric}: least / greatest group rate {self.values[0]:.3f}{between} ({price}, "
            f"neighbours by {said.neighbours}, {self.noise} noise{more})"
        )
