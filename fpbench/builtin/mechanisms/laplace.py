"""Laplace noise, of real and of whole numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench import Mechanism
from fpbench.base import to_fraction
from fpbench.builtin.mechanisms._exact import draw_discrete_laplace as exact
from fpbench.builtin.mechanisms._noise import add_exact_noise, check_epsilons, check_integers
from fpbench.builtin.mechanisms._simulated import simulate_discrete_laplace as simulated
from fpbench.privacy import Sensitivity


class Laplace(Mechanism):
    """Adds noise of the Laplace distribution with scale sensitivity / epsilon.

    It makes answers of this L1 sensitivity epsilon-differentially private. The noise is simulated
    in floating point: good for benchmarks, not for real releases (Mironov, 2012).
    """

    name = "laplace"
    summary = "adds Laplace noise: pure differential privacy"
    reference = "Dwork et al., Calibrating Noise to Sensitivity in Private Data Analysis, TCC 2006"

    continuous = True

    def release(
        self,
        counts: NDArray[np.int64],
        sensitivity: Sensitivity,
        epsilon: float | NDArray[np.float64],
        rng: np.random.Generator,
        upper: ArrayLike | None = None,
    ) -> NDArray[np.float64]:
        """Noisy counts."""
        scale = sensitivity.l1 / check_epsilons(epsilon)
        shape = np.broadcast_shapes(np.shape(counts), scale.shape)
        noisy: NDArray[np.float64] = np.asarray(rng.laplace(size=shape))
        noisy *= scale
        noisy += counts
        return noisy

    def find_noise_law(
        self, sensitivity: Sensitivity, epsilon: float, upper: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Laplace noise of the scale l1 / epsilon."""
        return np.zeros(upper.shape), np.full(upper.shape, sensitivity.l1 / check_epsilons(epsilon))


class DiscreteLaplace(Mechanism):
    """Adds a whole number z with probability proportional to exp(-|z| epsilon / sensitivity).

    Also called the geometric mechanism. It makes integer answers of this L1 sensitivity
    epsilon-differentially private. Secure noise is drawn exactly, from the operating system's
    randomness.
    """

    name = "discrete-laplace"
    summary = "adds two-sided geometric noise, whole numbers: pure differential privacy"
    reference = (
        "Ghosh et al., Universally Utility-Maximizing Privacy Mechanisms, STOC 2009; Canonne, "
        "Kamath & Steinke, The Discrete Gaussian for Differential Privacy, NeurIPS 2020"
    )

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
        if self.noise == "secure":
            l1 = to_fraction(sensitivity.l1)
            return add_exact_noise(counts, lambda e: l1 / e, exact, epsilon)
        shape = np.broadcast_shapes(counts.shape, epsilon.shape)
        return counts + simulated(sensitivity.l1 / epsilon, shape, rng)

    def find_noise_law(
        self, sensitivity: Sensitivity, epsilon: float, upper: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Laplace noise of the scale l1 / epsilon."""
        return np.zeros(upper.shape), np.full(upper.shape, sensitivity.l1 / check_epsilons(epsilon))
