"""The Laplace mechanism."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fpbench import Mechanism


class Laplace(Mechanism):
    """Adds noise of the Laplace distribution with scale sensitivity / epsilon.

    It makes answers epsilon-differentially private if their L1 sensitivity is as said. The noise is
    simulated in floating point: good for benchmarks, not for real releases (Mironov, 2012).

    References
    ----------
    Dwork, McSherry, Nissim, Smith: Calibrating Noise to Sensitivity in Private Data Analysis. TCC
    2006.
    """

    name = "laplace"
    summary = "adds Laplace noise: pure differential privacy"
    reference = "Dwork et al., Calibrating Noise to Sensitivity in Private Data Analysis, TCC 2006"

    def release(
        self,
        answer: NDArray[np.int64],
        sensitivity: float,
        epsilon: float,
        rng: np.random.Generator,
    ) -> NDArray[np.float64]:
        """Noisy answers of the same shape."""
        return answer + rng.laplace(0.0, sensitivity / epsilon, np.shape(answer))
