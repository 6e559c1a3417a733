"""Policies that replace invalid counts by the nearest valid ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench import Policy
from fpbench.privacy import check_answers, project_counts


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


class Project(Policy):
    """Replaces counts by the nearest counts of at least 0 that sum to the total.

    Nearest by Euclidean distance: the true counts are in this convex set, and a projection moves
    noisy counts nearer to all of its members, so the sum of squared errors never grows. Valid
    counts change too, unless they already sum to the total. Repairing twice is the same as
    repairing once. `upper` is ignored.
    """

    name = "project"
    summary = "the nearest counts of at least 0 that sum to the total"
    reference = "Held, Wolfe, Crowder, Validation of subgradient optimization, Math. Prog. 6, 1974"

    def repair(
        self, answers: NDArray[np.float64], total: ArrayLike, upper: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Histograms of at least 0 that sum to their totals.

        Raises InputError if there are no counts, one is not finite, or a total is negative.
        """
        return project_counts(answers, total)
