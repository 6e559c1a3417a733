"""The Laplace mechanism."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench import Mechanism, Sensitivity
from fpbench.builtin.mechanisms._noise import check_epsilons


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
