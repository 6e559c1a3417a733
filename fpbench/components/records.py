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
from fpbench.data.sample import Codes, Labels, ModelAnswers, Sample, Shares

MeasureValues: TypeAlias = dict[str, float | int | str | None]
"""Measured values by name; None where undefined."""


class SolverStatus(StrEnum):
    """Statuses of a corrector's answer."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    TIMEOUT = "timeout"
    ERROR = "error"


@dataclass(frozen=True)
class Predictions:
    """The target model's predictions, drawn once: all measures use these."""

    train: Labels
    test: Labels
    attack: Labels
    asked: RateConstraint | None
    """The fairness that the learner was trained for."""
    notes: MeasureValues = field(default_factory=dict)
    """Measures of the training, from the learner."""
    guarantee: Guarantee | None = None
    """The model's privacy guarantee to its training people; None if there is none."""
    trained_with_groups: bool = True
    """Whether the learner was given the groups of its training people."""
    made_with_groups: bool = True
    """Whether the model received each person's group to predict."""


@dataclass(frozen=True)
class Scores:
    """The target model's probabilities of label 1, for adversaries that see them."""

    target: Shares
    attack: Shares


@dataclass(frozen=True)
class SplitAnswers:
    """A model's answers about the people that adversaries see."""

    target: ModelAnswers
    attack: ModelAnswers


@dataclass(frozen=True)
class Claim:
    """A published or estimated claim about a model's predictions for the target people.

    Attributes
    ----------
    constraint
        About the rates of the groups; None if the claim does not mention them.
    source
        Where the claim comes from: `published`, `estimated`, ...
    also
        Further constraints on the target people.
    notes
        Measures of the claim, for the row.
    guarantee
        The privacy guarantee of a private claim to the target people.
    noise
        Where the noise of a private claim came from: `simulation` or `secure`.
    nats
        Upper bound on the information in the claim about the groups of the target people, in nats:
        at most the logarithm of the number of possible claims; None if unknown. Limits of the leak
        need it.
    fact_nats
        The same for the facts in `also`; set by fpbench, like the fields below.
    counted_labels
        Labels of the slices in which all constraints count people, None for everybody; None
        instead of a tuple if a constraint is not about counts.
    possible
        (n, K) groups that each of the target people may have, as implied by the constraints
        alone.
    """

    constraint: RateConstraint | None
    source: str
    also: tuple[Constraint, ...] = ()
    notes: MeasureValues = field(default_factory=dict)
    guarantee: Guarantee | None = None
    noise: str | None = None
    nats: float | None = None
    fact_nats: float = 0.0
    counted_labels: tuple[int | None, ...] | None = None
    possible: NDArray[np.bool_] | None = None

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """All constraints of the claim."""
        return (*((self.constraint,) if self.constraint else ()), *self.also)


@dataclass(frozen=True)
class View:
    """All that an adversary gets.

    Attributes
    ----------
    target
        The target people: the columns that the adversary sees, never the sensitive attribute.
    attack
        The attack set: the same columns, and the sensitive attribute.
    """

    target: Sample
    attack: Sample


@dataclass(frozen=True)
class Guess:
    """An adversary's guess of everyone's group, and of held-out people whose group it knows.

    Attributes
    ----------
    values
        (n,) guessed group codes of the target's training people.
    confidence
        (n,) in [0, 1]: the adversary's probability for the group it guessed.
    held_out
        (m,) rows of the attack set on which the attack was not trained.
    held_out_values
        (m,) guessed group codes of these rows.
    held_out_confidence
        (m,) in [0, 1]: the adversary's probability for each of these guesses.
    notes
        Measures of the attack, for the row.
    beliefs
        (n, K) the adversary's probability of each group for each person; None: the confidence in
        the guess, with the rest shared equally by the other groups.
    held_out_beliefs
        (m, K) the same for the held-out people; None exactly if `beliefs` is None.
    abstains
        (n,) whether the adversary abstains from naming a person's group; None: it never does.
    """

    values: Codes
    confidence: NDArray[np.float64]
    held_out: NDArray[np.intp]
    held_out_values: Codes
    held_out_confidence: NDArray[np.float64]
    notes: MeasureValues = field(default_factory=dict)
    beliefs: NDArray[np.float64] | None = None
    held_out_beliefs: NDArray[np.float64] | None = None
    abstains: NDArray[np.bool_] | None = None

    @classmethod
    def from_beliefs(
        cls,
        beliefs: NDArray[np.float64],
        held_out: NDArray[np.intp],
        held_out_beliefs: NDArray[np.float64],
        notes: MeasureValues | None = None,
        abstains: NDArray[np.bool_] | None = None,
    ) -> Guess:
        """A guess that names the likeliest group of each person; the first of tied ones.

        Parameters are as the fields.
        """
        values, held_out_values = beliefs.argmax(axis=1), held_out_beliefs.argmax(axis=1)
        return cls(
            values, beliefs.max(axis=1), held_out, held_out_values, held_out_beliefs.max(axis=1),
            notes or {}, beliefs, held_out_beliefs, abstains,
        )  # fmt: skip


@dataclass(frozen=True)
class CalibratedGuess(Guess):
    """A guess whose `beliefs` fpbench has calibrated on the held-out people; never None."""

    calibration: str = "none"
    """How: `none`, `scaled` or `isotonic`."""
    sees: tuple[str, ...] = ()
    """What the adversary saw of the target people, in the order of `SIGHTS`."""


@dataclass(frozen=True)
class Weighing:
    """Costs of changing each guess.

    Attributes
    ----------
    weights
        (n,) positive costs of changing each guess; None: every change costs 1.
    measures
        Measures of the weighing, for the row.
    values
        (n,) groups to be corrected instead of the guess; None: the guess itself.
    """

    weights: NDArray[np.float64] | None
    measures: MeasureValues = field(default_factory=dict)
    values: Codes | None = None


@dataclass(frozen=True)
class Problem:
    """A guess to be corrected, and constraints on the truth.

    Attributes
    ----------
    guess
        (n,) group codes in 0..K-1.
    groups
        K.
    predictions
        (n,) in {0, 1}.
    labels
        (n,) in {0, 1}; None only if no constraint uses labels.
    constraints
        Constraints that the true groups satisfy; may be empty.
    weights
        (n,) positive costs of changing each guess; None: every change costs 1.
    beliefs
        (n, K) the adversary's calibrated probability of each group for each person; None if there
        are none.
    possible
        (n, K) groups that each person may have, as far as derived from the constraints; None if
        not derived.

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
    beliefs: NDArray[np.float64] | None = None
    possible: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Correction:
    """A corrector's answer.

    Attributes
    ----------
    values
        (n,) corrected group codes; None if no assignment satisfies the constraints, or the solver
        found none.
    status
        The solver's status; None if there was nothing to solve.
    objective
        Total weight of the changed guesses.
    bound
        Proven lower bound on the objective.
    moves
        (2, K, K) changed people by prediction, guessed group and corrected group.
    seconds
        Wall time of the correction.
    measures
        Further measures of the corrector, for the row.
    posterior
        (n, K) probability of each group given the claim, from a corrector that computes it.
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
        """(objective - bound) / objective; 0 when proven optimal, None if undefined."""
        if self.objective is None or self.bound is None:
            return None
        if self.objective == self.bound:
            return 0.0
        if self.objective == 0:
            return None
        return (self.objective - self.bound) / abs(self.objective)
