"""Gaussian noise, of real and of whole numbers."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from fpbench import Guarantee, InputError, Mechanism
from fpbench.builtin.mechanisms._exact import draw_discrete_gaussian as exact
from fpbench.builtin.mechanisms._noise import (
    add_exact_noise,
    calibrate,
    check_epsilons,
    check_integers,
)
from fpbench.builtin.mechanisms._simulated import simulate_discrete_gaussian as simulated
from fpbench.privacy import Neighbours, Sensitivity, epsilon_to_rho, gaussian_rho, gaussian_sigma


class Gaussian(Mechanism):
    """Adds noise of the normal distribution, calibrated to (epsilon, delta).

    `analytic` calibration adds the least noise that gives the guarantee (Balle & Wang 2018), at any
    epsilon. `classic` uses sigma = sqrt(2 ln(1.25 / delta)) sensitivity / epsilon, which is more
    than needed, and is proven for epsilon below 1 only (Dwork & Roth 2014, Theorem A.1). The
    noise is simulated in floating point: good for benchmarks, not for real releases.
    """

    name = "gaussian"
    summary = "adds normal noise: (epsilon, delta)-differential privacy"
    reference = "Balle & Wang, Improving the Gaussian Mechanism for Differential Privacy, ICML 2018"

    continuous = True

    delta: float = Field(
        1e-6, gt=0, lt=1, description="probability with which epsilon may fail to hold"
    )
    calibration: Literal["analytic", "classic"] = Field(
        "analytic",
        description="scale of the noise: `analytic`, exact; `classic`, the textbook bound",
    )

    def guarantee(self, epsilon: float, neighbours: Neighbours) -> Guarantee:
        """The guarantee (epsilon, delta), and rho.

        Raises InputError if `classic` calibration does not hold for this epsilon.
        """
        rho = gaussian_rho(self._find_multiplier(epsilon))
        return Guarantee(epsilon, self.delta, neighbours, rho)

    def release(
        self,
        counts: NDArray[np.int64],
        sensitivity: Sensitivity,
        epsilon: float | NDArray[np.float64],
        rng: np.random.Generator,
        upper: ArrayLike | None = None,
    ) -> NDArray[np.float64]:
        """Noisy counts."""
        sigma = sensitivity.l2 * calibrate(self._find_multiplier, check_epsilons(epsilon))
        shape = np.broadcast_shapes(np.shape(counts), sigma.shape)
        noisy: NDArray[np.float64] = np.asarray(rng.standard_normal(shape))
        noisy *= sigma
        noisy += counts
        return noisy

    def find_noise_law(
        self, sensitivity: Sensitivity, epsilon: float, upper: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Gaussian noise, as calibrated."""
        sigma = sensitivity.l2 * self._find_multiplier(epsilon)
        return np.full(upper.shape, sigma), np.zeros(upper.shape)

    def _find_multiplier(self, epsilon: float) -> float:
        """Standard deviation for sensitivity 1."""
        if self.calibration == "analytic":
            return gaussian_sigma(epsilon, self.delta)
        if check_epsilons(epsilon) >= 1:
            raise InputError(
                f'mechanism {self.name!r}: calibration = "classic" is proven for epsilon below 1 '
                f"only, but epsilon is {epsilon:g}; use the analytic one, which holds at any "
                "epsilon and adds less noise"
            )
        return math.sqrt(2 * math.log(1.25 / self.delta)) / epsilon


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
