"""A policy: it makes noisy histograms valid again."""

# `fpbench check .` runs it with three groups, and twice with one seed, and checks that it does not
# modify its input. If it has no answer, it raises `fpbench.InputError`. The difficult inputs:
# - a count that is NaN
# - an infinite count
# - a total below 0 (`check_answers` refuses all three)

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench import Policy, hookimpl
from fpbench.privacy import check_answers


class Example(Policy):
    """Sets negative counts to 0, and scales the others to the total."""

    name = "example-name"
    summary = "clips at 0 and scales to the total"

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
    """Register the component."""
    return [Example]
