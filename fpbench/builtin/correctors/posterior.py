"""Beliefs about everyone's group, conditioned on the claim."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fpbench import Correction, Corrector, InputError, Measure, Problem
from fpbench.claims import COUNT_CONSTRAINTS, Facts
from fpbench.correction import CountedProblem, compute_posterior
from fpbench.plugin import SolverStatus

_MOST = 700.0
"""Greatest log-odds: beyond them, probabilities near 0 underflow."""
_SAME = 1e-12
"""Relative difference below which two probabilities count as tied."""


class Posterior(Corrector):
    """The most probable group of each person, given the adversary's beliefs and the claim.

    The adversary's calibrated probabilities are independent beliefs. The claim depends only on how
    many people of each prediction belong to each group, and everyone's posterior follows: exactly
    for two groups and for few people, else by maximum entropy under the expected counts. Facts
    about any sets of people, such as those of a fairness report, are used jointly with it (see
    `fpbench.correction.compute_posterior`): it guesses the groups that they prove, and the other
    beliefs have maximum entropy given all counts. A row has the information of the claim for this
    adversary in bits (`claim_bits` = -log2 of its probability; empty for facts about many people),
    and the adversary's expected accuracy before the claim (`prior_expected_accuracy`) and after
    (`expected_accuracy`).

    The guessed groups together need not satisfy the claim. In `fpbench.correct` weights are the
    log-odds of the guess, and other groups are equally likely; without weights they are all 1.
    """

    name = "posterior"
    summary = "the most probable group of each person given the claim, and the claim in bits"
    expresses: ClassVar[frozenset[str]] = COUNT_CONSTRAINTS | {"linear", Facts.word}
    measures = (
        *Measure.table("varying", """
        claim_bits, bits | neither bits:1 | information of the claim for the adversary: -log2
            of its probability
        """),
        *Measure.table("asked", """
        expected_accuracy | greater share | accuracy that the adversary expects after the claim
        prior_expected_accuracy | greater share | the same before the claim
        """),
    )  # fmt: skip

    def correct(self, problem: Problem) -> Correction:
        """Condition on the claim; the status is `infeasible` if its probability is 0.

        Raises InputError if there is no constraint, facts contradict each other, or, without
        beliefs, a weight is not a log-odds, above 700.
        """
        self.check(problem)
        prior = take_beliefs(problem, self.name)
        answer = compute_posterior(prior, problem)
        chances = answer.probabilities
        if chances is None:
            unknown = math.isnan(answer.claim_bits)
            return Correction(None, SolverStatus.TIMEOUT if unknown else SolverStatus.INFEASIBLE)
        # Among tied groups the guess stays.
        likely, most = chances.argmax(axis=1), chances.max(axis=1)
        guessed = chances[np.arange(len(chances)), problem.guess]
        values = np.where(guessed >= (1 - _SAME) * most, problem.guess, likely)
        values = values.astype(problem.guess.dtype)
        return CountedProblem(problem).correction_of(
            values,
            posterior=chances,
            measures={
                "claim_bits": None if math.isnan(answer.claim_bits) else answer.claim_bits,
                "prior_expected_accuracy": answer.prior_expected_accuracy,
                "expected_accuracy": answer.expected_accuracy,
            },
        )


def take_beliefs(problem: Problem, corrector: str) -> NDArray[np.float64]:
    """(n, K) beliefs; else of a guess: its log-odds, and equal shares of the rest for others."""
    if problem.beliefs is not None:
        return problem.beliefs
    people = len(problem.guess)
    odds = np.ones(people) if problem.weights is None else problem.weights
    if (most := odds.max(initial=0.0)) > _MOST:
        raise InputError(
            f"corrector {corrector!r} uses weights as log-odds of the guess: they must be at most "
            f"{_MOST:g}, not {most:g}"
        )
    wrong = np.exp(-np.logaddexp(0, odds))
    beliefs = np.repeat(wrong[:, None] / (problem.groups - 1), problem.groups, axis=1)
    beliefs[np.arange(people), problem.guess] = np.exp(-np.logaddexp(0, -odds))
    return beliefs
