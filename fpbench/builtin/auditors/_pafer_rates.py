"""From noisy counts to rates, and from rates to fairness; all repetitions at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


def ratios(accepted: Numbers, members: Numbers) -> Numbers:
    """Least group rate divided by the greatest, the smallest of all strata.

    A rate without members is 0; if all rates are 0, the ratio is 1.

    Parameters
    ----------
    accepted, members
        (..., S, K) numbers of people, not negative.

    Returns
    -------
    ndarray
        (...).
    """
    # Groups come first: minima over a short last axis are slow.
    some, all_ = np.moveaxis(accepted, -1, 0), np.moveaxis(members, -1, 0)
    rates = np.divide(some, all_, out=np.zeros(some.shape), where=all_ > 0)
    least, greatest = rates.min(axis=0), rates.max(axis=0)
    found = np.divide(least, greatest, out=np.ones(least.shape), where=greatest > 0)
    return np.asarray(found[..., 0] if found.shape[-1] == 1 else found.min(axis=-1))
