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

Measures: TypeAlias = dict[str, float | int | str | None]
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
    notes: Measures = field(default_factory=dict)
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
    """What is disclosed of the target, or believed: it holds on the training predictions."""

    constraint: RateConstraint | None
    """About the rates of the groups; None if nothing is said of them."""
    source: str
    """Who says so: `published`, `estimated`, ..."""
    also: tuple[Constraint, ...] = ()
    """What else is known of the training people."""
    notes: Measures = field(default_factory=dict)
    """What a row should say of how it was made."""
    guarantee: Guarantee | None = None
    """What it guarantees to the training people, if it was made privately."""
    noise: str | None = None
    """Where the noise of a private claim came from: `simulation` or `secure`."""

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """All of it."""
        return (*((self.constraint,) if self.constraint else ()), *self.also)


@dataclass(frozen=True)
class View:
    """All that an adversary is handed."""

    target: Sample
    """The target's training people, without their sensitive attribute."""
    attack: Sample
    """The attack set, with its sensitive attribute."""


@dataclass(frozen=True)
class Guess:
    """An adversary's guess of everyone's group, and the same where it can check itself."""

    values: Codes
    """(n,) guessed group codes of the target's training people."""
    confidence: NDArray[np.float64]
    """(n,) in [0, 1]: the adversary's probability for the group it guessed."""
    held_out: NDArray[np.intp]
    """(m,) rows of the attack set that were kept from training the attack."""
    held_out_values: Codes
    held_out_confidence: NDArray[np.float64]
    notes: Measures = field(default_factory=dict)
    """What a row should say of how it was made."""


@dataclass(frozen=True)
class Weighing:
    """What changing a guess costs."""

    weights: NDArray[np.float64] | None
    """(n,) positive costs of changing each guess; None: every change costs 1."""
    measures: Measures = field(default_factory=dict)
    """What a row should say of how they were made."""
    values: Codes | None = None
    """(n,) groups that are corrected instead of the guess; None: the guess itself."""


@dataclass(frozen=True)
class Problem:
    """A guess to be corrected, and what is known of the truth.

    See Also
    --------
    fpbench.correct : checks its arguments and builds one.
    """

    guess: Codes
    """(n,) group codes in 0..K-1."""
    groups: int
    """K."""
    predictions: Codes
    """(n,) in {0, 1}."""
    labels: Codes | None
    """(n,) in {0, 1}; None only if no constraint looks at labels."""
    constraints: tuple[Constraint, ...]
    """What is known of the truth; empty if nothing is."""
    weights: NDArray[np.float64] | None = None
    """(n,) positive costs of changing each guess; None: every change costs 1."""


@dataclass(frozen=True)
class Correction:
    """A corrector's answer."""

    values: Codes | None
    """(n,) corrected group codes; None if no vector satisfies the constraint or none was found."""
    status: SolverStatus | None
    """None if nothing was solved."""
    objective: float | None = None
    """Total weight of the changed guesses."""
    bound: float | None = None
    """Proven lower bound on the objective."""
    moves: NDArray[np.int64] | None = None
    """(2, K, K): people by prediction, group guessed and corrected group, changes only."""
    seconds: float = 0.0
    """Wall time of the correction."""
    measures: Measures = field(default_factory=dict)
    """What else the corrector measured; a row shows them."""
    posterior: NDArray[np.float64] | None = None
    """(n,) probability of group 1 given the claim, from a corrector that computes it."""

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
