"""The result of every way of conditioning."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Conditioned:
    """Beliefs given a claim."""

    log_probability: float
    """Log-probability of the claim; -inf if it is impossible, NaN if unknown."""
    probabilities: NDArray[np.float64] | None
    """(n, K); None if the claim has probability 0, or they are unknown."""
    error: float | None = 0.0
    """Standard error of sampling, as a mean absolute error of the probabilities; None: unknown."""
