"""The plain data that flows between steps. No behaviour beyond checking and naming itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fpbench.claims.conditions import Constraint
from fpbench.claims.rates import RateConstraint
from fpbench.components.guarantee import Guarantee
from fpbench.data.sample import Codes, Sample

MeasureValues: TypeAlias = dict[str, float | int | str | None]
"""Measured values by name; None where undefined."""


class SolverStatus(StrEnum):
    """What a corrector can say of its answer."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    TIMEOUT = "timeout"
    ERROR = "error"


@dataclass(frozen=True)
class Predictions:
    """What the target model said, drawn once: everything that is measured is measured on these."""

    train: Codes
    test: Codes
    attack: Codes
    asked: RateConstraint | None
    """The fairness that the learner was trained for."""
    notes: MeasureValues = field(default_factory=dict)
    """What the learner says of its training."""
    guarantee: Guarantee | None = None
    """What the model itself guarantees to the people it was trained on; None if nothing."""


@dataclass(frozen=True)
class Scores:
    """The target model's probabilities of label 1, for adversaries that see them."""

    train: NDArray[np.float64]
    attack: NDArray[np.float64]


@dataclass(frozen=True)
class Claim:
    """What is disclosed of the target, or believed: it holds on the training predictions.

    Attributes
    ----------
    constraint
        About the rates of the groups; None if nothing is said of them.
    source
        Who says so: `published`, `estimated`, ...
    also
        What else is known of the training people.
    notes
        What a row should say of how it was made.
    guarantee
        What it guarantees to the training people, if it was made privately.
    noise
        Where the noise of a private claim came from: `simulation` or `secure`.
    """

    constraint: RateConstraint | None
    source: str
    also: tuple[Constraint, ...] = ()
    notes: MeasureValues = field(default_factory=dict)
    guarantee: Guarantee | None = None
    noise: str | None = None

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """All of it."""
        return (*((self.constraint,) if self.constraint else ()), *self.also)


@dataclass(frozen=True)
class View:
    """All that an adversary is handed.

    Attributes
    ----------
    target
        The target's training people, without their sensitive attribute.
    attack
        The attack set, with its sensitive attribute.
    """

    target: Sample
    attack: Sample


@dataclass(frozen=True)
class Guess:
    """An adversary's guess of everyone's group, and the same where it can check itself.

    Attributes
    ----------
    values
        (n,) guessed group codes of the target's training people.
    confidence
        (n,) in [0, 1]: the adversary's probability for the group it guessed.
    held_out
        (m,) rows of the attack set that were kept from training the attack.
    held_out_values
        (m,) guessed group codes of these rows.
    held_out_confidence
        (m,) in [0, 1]: the probability of each of them.
    notes
        What a row should say of how it was made.
    """

    values: Codes
    confidence: NDArray[np.float64]
    held_out: NDArray[np.intp]
    held_out_values: Codes
    held_out_confidence: NDArray[np.float64]
    notes: MeasureValues = field(default_factory=dict)


@dataclass(frozen=True)
class Weighing:
    """What changing a guess costs.

    Attributes
    ----------
    weights
        (n,) positive costs of changing each guess; None: every change costs 1.
    measures
        What a row should say of how they were made.
    values
        (n,) groups that are corrected instead of the guess; None: the guess itself.
    """

    weights: NDArray[np.float64] | None
    measures: MeasureValues = field(default_factory=dict)
    values: Codes | None = None


@dataclass(frozen=True)
class Problem:
    """A guess to be corrected, and what is known of the truth.

    Attributes
    ----------
    guess
        (n,) group codes in 0..K-1.
    groups
        K.
    predictions
        (n,) in {0, 1}.
    labels
        (n,) in {0, 1}; None only if no constraint looks at labels.
    constraints
        What is known of the truth; empty if nothing is.
    weights
        (n,) positive costs of changing each guess; None: every change costs 1.

    See Also
    --------
    fpbench.correct : checks its arguments and builds one.
    """

    guess: Codes
    groups: int
    predictions: Codes
    labels: Codes | None
    constraints: tuple[Constraint, ...]
    weights: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class Correction:
    """A corrector's answer.

    Attributes
    ----------
    values
        (n,) corrected group codes; None if no vector satisfies the constraint or none was
        found.
    status
        None if nothing was solved.
    objective
        Total weight of the changed guesses.
    bound
        Proven lower bound on the objective.
    moves
        (2, K, K): people by prediction, group guessed and corrected group, changes only.
    seconds
        Wall time of the correction.
    measures
        What else the corrector measured; a row shows them.
    posterior
        (n,) probability of group 1 given the claim, from a corrector that computes it.
    """

    values: Codes | None
    status: SolverStatus | None
    objective: float | None = None
    bound: float | None = None
    moves: NDArray[np.int64] | None = None
    seconds: float = 0.0
    measures: MeasureValues = field(default_factory=dict)
    posterior: NDArray[np.float64] | None = None

    @property
    def gap(self) -> float | None:
        """(objective - bound) / objective; 0 when proven optimal, None where there is none."""
        if self.objective is None or self.bound is None:
            return None
        if self.objective == self.bound:
            return 0.0
        if self.objective == 0:
            return None
        return (self.objective - self.bound) / abs(self.objective)
