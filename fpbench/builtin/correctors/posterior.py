"""Beliefs about everyone's group, conditioned on the claim."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from fpbench import (
    Codes,
    Component,
    Correction,
    Corrector,
    Dataset,
    Guess,
    InputError,
    Measure,
    Problem,
    SolverStatus,
    Weighing,
)
from fpbench.correction import CountedProblem, calibrate_guess, compute_posterior


class Posterior(Corrector):
    """The most probable group of each person, given the adversary's beliefs and the claim.

    The adversary's calibrated probabilities are independent beliefs. The claim depends only on how
    many people of each prediction belong to each group, so its probability under the beliefs is a
    sum over Poisson-binomial distributions, and everyone's posterior follows exactly. A row says
    how much the claim told this adversary, in bits (`claim_bits` = -log2 of its probability), and
    which share of groups the adversary expects to name right, before the claim
    (`prior_expected_accuracy`) and after (`expected_accuracy`).

    The named groups together need not satisfy the claim. In `fpbench.correct` weights are the
    log-odds of the guess; without weights they are all 1.
    """

    name = "posterior"
    summary = "the most probable group of each person given the claim, and the claim in bits"
    expresses: ClassVar[frozenset[str]] = frozenset(
        {"to-overall", "between-groups", "ratio", "share", "positive-rate", "known"}
    )
    measures = (
        *Measure.table("varying", """
        claim_bits, bits | neither bits | what the claim told the adversary: -log2 of its
            probability
        """),
        *Measure.table("asked", """
        expected_accuracy | greater share | groups that the adversary expects to name right after
            the claim
        prior_expected_accuracy | greater share | the same before the claim
        reconsidered | neither people | guesses that calibration changed before the correction
        """),
    )  # fmt: skip

    def incompatible(self, other: Component) -> str | None:
        """It needs a claim that it can express, and two groups."""
        if isinstance(other, Dataset) and other.n_groups not in (None, 2):
            return (
                f"corrector {self.name!r} is for two groups, and dataset {other.name!r} has "
                f"{other.n_groups}"
            )
        return super().incompatible(other)

    def weigh(self, guess: Guess, held_out: Problem, truth: Codes) -> Weighing:
        """Log-odds of calibrated probabilities; `reconsidered` counts guesses changed by them."""
        values, weights = calibrate_guess(
            guess.values, guess.confidence, guess.held_out_values, guess.held_out_confidence,
            truth, held_out.groups,
        )  # fmt: skip
        return Weighing(weights, {"reconsidered": int((values != guess.values).sum())}, values)

    def correct(self, problem: Problem) -> Correction:
        """Condition on the claim; `infeasible` if it has no probability at all.

        Raises
        ------
        InputError
            If there are not two groups, nothing is known, constraints tie slices together, or a
            weight is no log-odds: above 700.
        """
        self.check(problem)
        if problem.groups != 2:
            raise InputError(f"corrector {self.name!r} is for two groups, not {problem.groups}")
        odds = np.ones(len(problem.guess)) if problem.weights is None else problem.weights
        beliefs = compute_posterior(np.where(problem.guess == 1, odds, -odds), problem)
        if beliefs.probabilities is None:
            return Correction(None, SolverStatus.INFEASIBLE)
        # At even odds the guess stays.
        likely = np.where(beliefs.probabilities == 0.5, problem.guess, beliefs.probabilities > 0.5)
        values = likely.astype(problem.guess.dtype)
        return Correction(
            values,
            None,
            objective=float(odds[values != problem.guess].sum()),
            moves=CountedProblem(problem).moves(values),
            posterior=np.column_stack([1 - beliefs.probabilities, beliefs.probabilities]),
            measures={
                "claim_bits": beliefs.claim_bits,
                "prior_expected_accuracy": beliefs.prior_expected_accuracy,
                "expected_accuracy": beliefs.expected_accuracy,
            },
        )
