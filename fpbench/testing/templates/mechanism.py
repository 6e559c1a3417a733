"""A mechanism: it adds noise to counts so that their release is differentially private."""

# `fpbench check .` tries it with three groups and twice with one seed, and sees whether it changes
# what it is given. Where it has no answer, it raises `fpbench.InputError`. What is tried:
# - an epsilon that is 0, negative, infinite or NaN (`check_epsilon` refuses it)
# - neighbouring counts, many times: what it promises must survive the attack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench import Mechanism, Sensitivity, check_epsilon, hookimpl


class Example(Mechanism):
    """Adds noise of the Laplace distribution, with scale l1 / epsilon.

    `continuous` says that answers are real numbers, which is for benchmarks only.
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
    """Register it."""
    return [Example]
