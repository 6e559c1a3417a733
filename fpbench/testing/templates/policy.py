"""A policy: it makes noisy histograms valid again."""

# `fpbench check .` tries it with three groups and twice with one seed, and sees whether it changes
# what it is given. Where it has no answer, it raises `fpbench.InputError`. What is tried:
# - a count that is NaN
# - an infinite count
# - a total below 0 (`check_answers` refuses all three)

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench import Policy, hookimpl
from fpbench.privacy import check_answers


class Example(Policy):
    """Takes negative counts for 0, and scales what is left to the total."""

    name = "example-name"
    summary = "cuts off below 0 and scales to the total"

    def repair(
        self, answers: NDArray[np.float64], total: ArrayLike, upper: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Histograms (..., K) that sum to their totals (...)."""
        values, totals = check_answers(answers, total)  # finite, and totals (..., 1)
        counts = np.maximum(values, 0)
        sums = counts.sum(axis=-1, keepdims=True)
        even = np.full_like(counts, 1 / counts.shape[-1])
        shares = np.divide(counts, sums, out=even, where=sums > 0)
        repaired: NDArray[np.float64] = np.minimum(shares * totals, totals)
        return repaired


@hookimpl
def fpbench_policies() -> list[type[Policy]]:
    """Register it."""
    return [Example]
