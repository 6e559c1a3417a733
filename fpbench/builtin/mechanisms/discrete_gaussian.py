"""The discrete Gaussian mechanism."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from fpbench import Guarantee, Mechanism, Neighbours, Sensitivity
from fpbench.builtin.mechanisms._exact import draw_discrete_gaussian as exact
from fpbench.builtin.mechanisms._noise import (
    add_exact_noise,
    calibrate,
    check_epsilons,
    check_integers,
)
from fpbench.builtin.mechanisms._simulated import simulate_discrete_gaussian as simulated
from fpbench.privacy import epsilon_to_rho


class DiscreteGaussian(Mechanism):
    """Adds a whole number z with probability proportional to exp(-z^2 / 2 s^2).

    s^2 = sensitivity^2 / 2 rho makes answers of this L2 sensitivity rho-zCDP (Theorem 14); rho is
    the greatest that implies (epsilon, delta) (Corollary 13). Secure noise is drawn exactly, from
    the operating system's randomness.
    """

    name = "discrete-gaussian"
    summary = "adds discrete normal noise, whole numbers: (epsilon, delta)-differential privacy"
    reference = (
        "Canonne, Kamath & Steinke, The Discrete Gaussian for Differential Privacy, NeurIPS 2020"
    )

    delta: float = Field(
        1e-6, gt=0, lt=1, description="probability with which epsilon may fail to hold"
    )

    def guarantee(self, epsilon: float, neighbours: Neighbours) -> Guarantee:
        """The guarantee (epsilon, delta), and rho."""
        return Guarantee(epsilon, self.delta, neighbours, epsilon_to_rho(epsilon, self.delta))

    def release(
        self,
        counts: NDArray[np.int64],
        sensitivity: Sensitivity,
        epsilon: float | NDArray[np.float64],
        rng: np.random.Generator,
        upper: ArrayLike | None = None,
    ) -> NDArray[np.float64]:
        """Noisy counts, whole numbers; InputError if the counts are not whole numbers."""
        counts, epsilon = check_integers(counts, "counts"), check_epsilons(epsilon)

        def variance(value: float) -> Fraction:
            return self._find_variance(value, sensitivity.l2)

        if self.noise == "secure":
            return add_exact_noise(counts, lambda e: variance(float(e)), exact, epsilon)
        shape = np.broadcast_shapes(counts.shape, epsilon.shape)
        variances = calibrate(lambda value: float(variance(value)), epsilon)
        return counts + simulated(variances, shape, rng)

    def find_noise_law(
        self, sensitivity: Sensitivity, epsilon: float, upper: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Gaussian noise, as calibrated."""
        sigma = math.sqrt(self._find_variance(epsilon, sensitivity.l2))
        return np.full(upper.shape, sigma), np.zeros(upper.shape)

    def _find_variance(self, epsilon: float, l2: float) -> Fraction:
        """The variance s^2, rounded up to a multiple of 2^-20 so that rounding keeps privacy.

        The factor 1 + 1e-9 is far above the floating-point error of the computation.
        """
        least = l2**2 / (2 * epsilon_to_rho(epsilon, self.delta)) * (1 + 1e-9)
        return Fraction(math.ceil(least * 2**20), 2**20)
