"""Ridge regressions of many label vectors at once: the least-squares students of PATE."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]


def fit_least_squares(
    design: _Floats, targets: _Floats, penalty: float, weights: _Floats | None = None
) -> _Floats:
    """Parameters (R, d) of linear students of targets (R, m), from a design (m, d) that they share.

    Each minimises (1 / sum w) sum w/2 (x'theta - y)^2 + penalty ||theta||^2, the penalty above 0,
    by its normal equations. Weights (R, m) are all 1 by default; if all are 0, theta is 0.
    """
    if weights is None:
        weights = np.ones((1, len(design)))
    sums = weights.sum(axis=1, keepdims=True)
    shares = np.divide(weights, sums, out=np.zeros_like(weights), where=sums > 0)
    hessian = (design.T * shares[:, None]) @ design + 2 * penalty * np.eye(design.shape[1])
    slope = (shares * targets) @ design
    return np.asarray((np.linalg.inv(hessian) @ slope[..., None])[..., 0])
