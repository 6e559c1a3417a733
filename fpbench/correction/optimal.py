"""What correctors share that look for the cheapest correction: weights, claims that cannot hold."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Literal

from pydantic import Field

from fpbench.claims.constraints import LinearConstraint
from fpbench.components.attack_kinds import Corrector
from fpbench.components.records import Correction, Guess, Problem, SolverStatus, Weighing
from fpbench.correction.calibration import calibrated
from fpbench.correction.exact.solve import solve_exact
from fpbench.correction.smallest_tolerance import relax
from fpbench.correction.weights import sharpen
from fpbench.data.sample import Codes


class OptimalCorrector(Corrector):
    """The cheapest change of a guess that satisfies what is known; subclasses say how it is found.

    Notes
    -----
    The cost of changing a guess is, with `weights`,

    - `sharpened`, as in Ferry et al.: the adversary's confidence in it, scaled to [1, 2] and
      raised to the power k whose correction is most accurate on the held-out part of the attack
      set; a row says which, in `exponent`. Powers keep the order of the weights, so our exact
      solver tries them all, whichever corrector makes the final correction.
    - `identity`: 1.
    - `calibrated`: the log-odds of the adversary's calibrated probability, which makes the
      correction the most probable groups under the claim. A guess that is less probable than the
      other of two groups is changed first; a row counts these, in `reconsidered`.
    """

    weights: Literal["sharpened", "identity", "calibrated"] = Field(
        "sharpened",
        description="cost of a change: sharpened confidence of the guess, always 1, or log-odds "
        "of its calibrated probability",
    )
    exponents: int = Field(
        99, ge=0, le=99, description="greatest exponent that is tried to sharpen confidences"
    )
    on_infeasible: Literal["report", "relax"] = Field(
        "report",
        description="if no groups satisfy the claim: say so, or take the smallest tolerance that "
        "some satisfy",
    )

    def weigh(self, guess: Guess, held_out: Problem, truth: Codes) -> Weighing:
        """Costs of changing each guess, with the `exponent` or how many were `reconsidered`."""
        if self.weights == "identity":
            return Weighing(None)
        if self.weights == "calibrated":
            values, weights = calibrated(
                guess.values, guess.confidence, guess.held_out_values, guess.held_out_confidence,
                truth, held_out.groups,
            )  # fmt: skip
            return Weighing(weights, {"reconsidered": int((values != guess.values).sum())}, values)
        weights, exponent = sharpen(
            guess.confidence, held_out, guess.held_out_confidence, truth, self.exponents
        )
        return Weighing(weights, {"exponent": exponent})

    def correct(self, problem: Problem) -> Correction:
        """Solve the problem; `relaxed_tolerance` is measured if its claim could not hold.

        Raises
        ------
        InputError
            If nothing is known, or something that this corrector cannot express.
        """
        self.check(problem)
        found = self.solve(problem)
        if found.status is not SolverStatus.INFEASIBLE or self.on_infeasible == "report":
            return found
        individual = any(isinstance(c, LinearConstraint) for c in problem.constraints)
        relaxed = relax(problem, self.solve if individual else solve_exact)
        if relaxed is None:
            return found
        found = self.solve(relaxed[0])
        measures = {**found.measures, "relaxed_tolerance": float(relaxed[1])}
        return replace(found, measures=measures)

    @abstractmethod
    def solve(self, problem: Problem) -> Correction:
        """Find the cheapest correction; an impossible problem is a result with a status."""
