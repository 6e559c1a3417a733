"""The exact correction of guesses about two groups."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fpbench import (
    Codes,
    Component,
    Correction,
    Corrector,
    Dataset,
    Guess,
    InputError,
    Measures,
    Problem,
    sharpen,
    solve_two_groups,
)


class Exact(Corrector):
    """The cheapest change of a guess about two groups that satisfies the claim, proven optimal.

    It solves the same problem as the models of Ferry et al., and needs no solver: only net moves
    between the groups count, which leaves one scan over sorted weights.

    Notes
    -----
    With `weights = "sharpened"`, as in the paper, the costs are confidences scaled to [1, 2] and
    raised to the power k whose correction is most accurate on the held-out part of the attack set;
    a row says which, in `exponent`.

    References
    ----------
    Ferry, Aïvodji, Gambs, Huguet, Siala: Exploiting Fairness to Enhance Sensitive Attributes
    Reconstruction. SaTML 2023, sections III and IV-A.
    """

    name = "exact"
    summary = "cheapest correction for two groups, proven optimal, without a solver"
    reference = (
        "Ferry et al., Exploiting Fairness to Enhance Sensitive Attributes Reconstruction, "
        "SaTML 2023; the algorithm is ours"
    )

    weights: Literal["sharpened", "identity"] = Field(
        "sharpened",
        description="cost of a change: sharpened confidence of the guess, or identity: always 1",
    )
    exponents: int = Field(
        99, ge=0, le=99, description="greatest exponent that is tried to sharpen confidences"
    )

    def incompatible(self, other: Component) -> str | None:
        """It needs a claim, and two groups."""
        if isinstance(other, Dataset) and other.n_groups not in (None, 2):
            return (
                f"corrector {self.name!r} is for two groups, and dataset {other.name!r} has "
                f"{other.n_groups}"
            )
        return super().incompatible(other)

    def weigh(
        self, guess: Guess, held_out: Problem, truth: Codes
    ) -> tuple[NDArray[np.float64] | None, Measures]:
        """Sharpened confidences, with the `exponent` that was chosen; or none."""
        if self.weights == "identity":
            return None, {}
        weights, exponent = sharpen(
            guess.confidence,
            self._checked(held_out),
            guess.held_out_confidence,
            truth,
            self.exponents,
        )
        return weights, {"exponent": exponent}

    def correct(self, problem: Problem) -> Correction:
        """Solve the problem: optimal, or infeasible.

        Raises
        ------
        InputError
            If there are not two groups, or nothing was claimed.
        """
        return solve_two_groups(self._checked(problem))

    def _checked(self, problem: Problem) -> Problem:
        if problem.groups != 2:
            raise InputError(
                f"corrector {self.name!r} is for two groups, not {problem.groups}; choose another "
                "corrector, or a sensitive attribute with two groups"
            )
        if problem.constraint is None:
            raise InputError(f"corrector {self.name!r} needs a claim, and nothing was claimed")
        return problem
