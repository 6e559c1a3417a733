"""The transition probabilities of cell-key perturbation, the noise of census tables.

Every person has a random key. A hash of the sum of the keys of a cell's people tells its noise by a
public table (p-table), so that the same people always get the same noise. (By the sum itself, noise
of a whole would partly follow from that of its parts.) Fraser & Wooton, A proposed method for
confidentialising tabular output to protect against differencing, 2005; Marley & Leaver, A method
for confidentialising user-defined tables, 2011; the probabilities of greatest entropy: Giessing,
Computational issues in the design of transition probabilities and disclosure risk estimation for
additive noise, Privacy in Statistical Databases 2016.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

MOST_AWAY: Final = 10
"""Largest bound of noise."""


@lru_cache(maxsize=64)
def find_transitions(bound: int, variance: float) -> NDArray[np.float64]:
    """(bound + 1, 2 bound + 1) probabilities of noise from -bound to bound, of numbers 0 to bound.

    Those of greater numbers are the last row. Noise has mean 0 and at most this variance, never
    makes a number negative, and leaves 0 as it is; among such laws each has the greatest entropy.
    The variance is less than asked for where the flattest law with mean 0 has less.

    Parameters
    ----------
    bound
        D, the greatest noise, from 1.
    variance
        V, above 0.
    """
    from scipy.optimize import brentq
    from scipy.special import softmax

    noise = np.arange(-bound, bound + 1.0)
    table = np.zeros((bound + 1, len(noise)))
    table[0, bound] = 1.0
    for number in range(1, bound + 1):
        allowed = noise[noise >= -number]

        def find_law(curve: float, allowed: NDArray[np.float64] = allowed) -> NDArray[np.float64]:
            """Of greatest entropy among those with mean 0 and some variance, by its multiplier."""

            def weigh(slope: float) -> NDArray[np.float64]:
                return np.asarray(softmax(slope * allowed - curve * allowed**2))

            steep = 4 * bound * (curve + 1) + 60
            return weigh(brentq(lambda slope: weigh(slope) @ allowed, -steep, steep, xtol=1e-14))

        def find_excess(curve: float, allowed: NDArray[np.float64] = allowed) -> float:
            return float(find_law(curve) @ allowed**2 - variance)

        curve = 0.0
        if find_excess(0.0) > 0:
            curve = brentq(find_excess, 0.0, 5 - np.log(min(variance, 1.0)), xtol=1e-14)
        table[number, noise >= -number] = find_law(curve)
    table.flags.writeable = False
    return table
