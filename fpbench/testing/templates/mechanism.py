"""A mechanism: it adds noise to counts so that their release is differentially private."""

# `fpbench check .` runs it with three groups, and twice with one seed, and checks that it does not
# modify its input. If it has no answer, it raises `fpbench.InputError`. The difficult inputs:
# - an epsilon that is 0, negative, infinite or NaN (`check_epsilon` refuses it)
# - neighbouring counts, many times: its guarantee must withstand the attack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench import Mechanism, hookimpl
from fpbench.privacy import Sensitivity, check_epsilon


class Example(Mechanism):
    """Adds Laplace noise with scale l1 / epsilon.

    `continuous` means that answers are real numbers: for benchmarks only.
    """

    name = "example-name"
    summary = "adds Laplace noise"
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
        """Noisy counts; an array of epsilons is broadcast with the counts."""
        check_epsilon(epsilon)
        price = np.asarray(epsilon, dtype=float)
        shape = np.broadcast_shapes(np.shape(counts), price.shape)
        noise: NDArray[np.float64] = rng.laplace(size=shape) * (sensitivity.l1 / price)
        return noise + counts


@hookimpl
def fpbench_mechanisms() -> list[type[Mechanism]]:
    """Register the component."""
    return [Example]
