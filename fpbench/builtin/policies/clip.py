"""The policy that clips counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench import Policy
from fpbench.privacy import check_answers


class Clip(Policy):
    """Replaces counts below 0 by 0 and counts above the total by the total.

    Each count moves to the nearest valid one, so no error grows; the counts need not sum to the
    total. Repairing twice is the same as repairing once. `upper` is ignored.
    """

    name = "clip"
    summary = "counts below 0 become 0, counts above the total become the total"

    def repair(
        self, answers: NDArray[np.float64], total: ArrayLike, upper: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Histograms between 0 and their totals.

        Raises InputError if there are no counts, one is not finite, or a total is negative.
        """
        values, totals = check_answers(answers, total)
        clipped: NDArray[np.float64] = np.minimum(np.maximum(values, 0), totals)
        return clipped
