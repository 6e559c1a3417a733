"""Base class of correctors that find the cheapest correction: weights, infeasible claims."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Literal

from pydantic import Field

from fpbench.claims.conditions import find_simplest_between
from fpbench.claims.constraints import COUNT_CONSTRAINTS
from fpbench.claims.rates import RateConstraint
from fpbench.components.attack_kinds import Corrector
from fpbench.components.measures import Measure
from fpbench.components.records import Correction, Guess, Problem, SolverStatus, Weighing
from fpbench.correction.calibration import calibrate_guess
from fpbench.correction.exact.solve import solve_exact
from fpbench.correction.weights import sharpen
from fpbench.data.sample import Codes


class OptimalCorrector(Corrector):
    """Finds the cheapest change of a guess that satisfies the constraints; subclasses solve it.

    Notes
    -----
    The cost of changing a guess is, with `weights`,

    - `sharpened`, as in Ferry et al.: the adversary's confidence in it, scaled to [1, 2] and
      raised to the power k whose correction is most accurate on the held-out part of the attack
      set; a row says which, in `exponent`. Powers keep the order of the weights, so our exact
      solver scores them all, whichever corrector makes the final correction.
    - `identity`: 1.
    - `calibrate_guess`: the log-odds of the adversary's calibrated probability, which makes the
      correction the most probable groups under the claim. A guess that is less probable than the
      other of two groups is changed first; a row counts these, in `reconsidered`.
    """

    measures = (
        Measure("relaxed_tolerance", "relaxed to", "less", "",
                "the smallest tolerance that some groups satisfy, where none satisfy the "
                "claim", "varying"),
        Measure("exponent", "", "neither", "", "power to which confidences were raised", "asked"),
        Measure("reconsidered", "", "neither", "people",
                "guesses that calibration changed before the correction", "asked"),
    )  # fmt: skip

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
            values, weights = calibrate_guess(
                guess.values, guess.confidence, guess.held_out_values, guess.held_out_confidence,
                truth, held_out.groups,
            )  # fmt: skip
            return Weighing(weights, {"reconsidered": int((values != guess.values).sum())}, values)
        weights, exponent = sharpen(
            guess.confidence, held_out, guess.held_out_confidence, truth, self.exponents
        )
        return Weighing(weights, {"exponent": exponent})

    def correct(self, problem: Problem) -> Correction:
        """Solve the problem; an infeasible claim may be relaxed, to `relaxed_tolerance`.

        Raises
        ------
        InputError
            If there are no constraints, or one that this corrector cannot express.
        """
        self.check(problem)
        correction = self.solve(problem)
        if correction.status is not SolverStatus.INFEASIBLE or self.on_infeasible == "report":
            return correction
        individual = not COUNT_CONSTRAINTS.issuperset(c.word for c in problem.constraints)
        relaxed = find_smallest_tolerance(problem, self.solve if individual else solve_exact)
        if relaxed is None:
            return correction
        correction = self.solve(relaxed[0])
        measures = {**correction.measures, "relaxed_tolerance": float(relaxed[1])}
        return replace(correction, measures=measures)

    @abstractmethod
    def solve(self, problem: Problem) -> Correction:
        """Find the cheapest correction; an impossible problem is a result with a status."""


def find_smallest_tolerance(
    problem: Problem, solve: Callable[[Problem], Correction]
) -> tuple[Problem, Fraction] | None:
    """The problem and tolerance, where its claim has the smallest tolerance that is feasible.

    `problem`: infeasible. The first constraint on rates is its claim; the others stay as they are.
    `solve`: corrects a problem, or proves it infeasible.

    None if there is no claim on rates, if no tolerance helps, or if a solver ran out of
    time.

    Bisection, which ends because attained tolerances are fractions of counts: with denominators
    d and at most B = n^2, two of them differ by at least 1 / (d B).
    """
    position = next(
        (i for i, c in enumerate(problem.constraints) if isinstance(c, RateConstraint)), None
    )
    if position is None:
        return None
    claim = problem.constraints[position]
    assert isinstance(claim, RateConstraint)

    def tolerating(tolerance: Fraction) -> Problem:
        constraints = list(problem.constraints)
        constraints[position] = replace(claim, tolerance=tolerance)
        return replace(problem, constraints=tuple(constraints))

    low, tried = claim.exact_tolerance, Fraction(1)
    high: Fraction | None = None
    while True:
        correction = solve(tolerating(tried))
        if correction.values is not None:
            high = claim.unfairness(
                correction.values, problem.predictions, problem.labels, problem.groups
            )
        elif correction.status is SolverStatus.INFEASIBLE and tried < 1:
            low = tried
        if high is None or (correction.values is None and low != tried):
            return None
        if (high - low) * high.denominator * len(problem.guess) ** 2 <= 1:
            return tolerating(high), high
        tried = find_simplest_between(low, high)
