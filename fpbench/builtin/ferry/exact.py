"""The exact correction of guesses."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from fpbench import Correction, Problem
from fpbench.claims import COUNT_CONSTRAINTS
from fpbench.correction import OptimalCorrector, solve_exact


class Exact(OptimalCorrector):
    """The cheapest change of a guess that satisfies all constraints, proven optimal.

    It solves the same problem as the models of Ferry et al. For two groups only net moves count, so
    one scan over sorted weights suffices, in milliseconds. For more, a linear program finds the
    numbers of people who leave and enter each group, and an exact search the integers near it.
    """

    name = "exact"
    summary = "cheapest correction for any number of groups, proven optimal"
    reference = (
        "Ferry et al., Exploiting Fairness to Enhance Sensitive Attributes Reconstruction, SaTML "
        "2023, sections III and IV-A; the algorithm is ours"
    )
    expresses: ClassVar[frozenset[str]] = COUNT_CONSTRAINTS

    time_limit: float = Field(
        600.0, gt=0, description="seconds; used only by more than two groups or linked constraints"
    )

    def solve(self, problem: Problem) -> Correction:
        """Find the cheapest correction and prove it."""
        return solve_exact(problem, self.time_limit)
