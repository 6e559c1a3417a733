"""The plain data that flows between steps. No behaviour beyond checking and naming itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fpbench.base.errors import HiddenError, InputError
from fpbench.components.claims.conditions import Constraint
from fpbench.components.claims.rates import RateConstraint
from fpbench.components.guarantee import Guarantee
from fpbench.data.attributes import no_guarantee
from fpbench.data.domain import Domain

if TYPE_CHECKING:
    from pandas import DataFrame

Codes: TypeAlias = NDArray[np.integer[Any]]
"""Whole numbers, one a person: labels, predictions or groups."""

Measures: TypeAlias = dict[str, float | int | str | None]
"""Measured values by name; None where undefined."""


class SolverStatus(StrEnum):
    """What a corrector can say of its answer."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    TIMEOUT = "timeout"
    ERROR = "error"


class Sample:
    """Some people and some of what is known of them; asking for anything else is an error.

    A column that was not given is not there, so a component that is handed a sample cannot reach
    what it should not see.

    Parameters
    ----------
    groups
        Names of the groups; the codes in `sensitive` index them.
    features
        DataFrame of n rows: numeric columns, and pandas categoricals.
    labels, predictions
        Arrays (n,) in {0, 1}.
    scores
        Array (n,) in [0, 1]: the target model's probability of label 1.
    sensitive
        Array (n,) of group codes in 0..K-1.
    domain
        What is publicly known of the features.
    measured_cuts
        Which of the columns was cut at a statistic of everybody (a quantile, a median), in words:
        no guarantee of differential privacy holds for it, see `check_cuts`.
    """

    __slots__ = ("_columns", "domain", "groups", "measured_cuts")

    COLUMNS = ("features", "labels", "sensitive", "predictions", "scores")

    def __init__(
        self,
        groups: tuple[str, ...],
        *,
        features: DataFrame | None = None,
        labels: Codes | None = None,
        sensitive: Codes | None = None,
        predictions: Codes | None = None,
        scores: NDArray[np.float64] | None = None,
        domain: Domain | None = None,
        measured_cuts: Mapping[str, str] | None = None,
    ) -> None:
        self.groups = groups
        self.domain = domain or Domain()
        self.measured_cuts = dict(measured_cuts or {})
        given = zip(self.COLUMNS, (features, labels, sensitive, predictions, scores), strict=True)
        self._columns: dict[str, Any] = {name: value for name, value in given if value is not None}

    @property
    def features(self) -> DataFrame:
        """The features, a DataFrame of n rows."""
        value: DataFrame = self._column("features")
        return value

    @property
    def labels(self) -> Codes:
        """The labels, (n,) in {0, 1}."""
        value: Codes = self._column("labels")
        return value

    @property
    def sensitive(self) -> Codes:
        """The group codes, (n,) in 0..K-1."""
        value: Codes = self._column("sensitive")
        return value

    @property
    def predictions(self) -> Codes:
        """The target model's predictions, (n,) in {0, 1}."""
        value: Codes = self._column("predictions")
        return value

    @property
    def scores(self) -> NDArray[np.float64]:
        """The target model's probability of label 1, (n,) in [0, 1]."""
        value: NDArray[np.float64] = self._column("scores")
        return value

    @property
    def seen(self) -> frozenset[str]:
        """Names of the columns that are here."""
        return frozenset(self._columns)

    def only(self, columns: frozenset[str]) -> Sample:
        """The same people with no more than these columns."""
        return self._with({name: c for name, c in self._columns.items() if name in columns})

    def having(self, **columns: Any) -> Sample:
        """The same people with these columns added or replaced."""
        return self._with({**self._columns, **columns})

    def take(self, rows: NDArray[np.intp]) -> Sample:
        """Copies of these rows, sharing no memory with the whole."""
        taken = {name: column.take(rows) for name, column in self._columns.items()}
        if "features" in taken:
            taken["features"].index = range(len(rows))  # reset_index would copy once more
        return self._with(taken)

    def check_cuts(self, columns: Iterable[str], who: str) -> None:
        """Refuse to guarantee privacy of columns that were cut at a statistic of everybody.

        Parameters
        ----------
        columns
            That the guarantee is about, of `features`, `labels` and `sensitive`.
        who
            Who gives it, for the message.

        Raises
        ------
        InputError
            Says which column it is, and to choose a public cut.
        """
        if why := no_guarantee(self.measured_cuts, columns, who):
            raise InputError(why)

    def _with(self, columns: dict[str, Any]) -> Sample:
        return Sample(self.groups, **columns, domain=self.domain, measured_cuts=self.measured_cuts)

    def _column(self, name: str) -> Any:
        try:
            return self._columns[name]
        except KeyError:
            seen = ", ".join(self._columns) or "nothing"
            raise HiddenError(f"{name!r} is not to be seen here; seen: {seen}") from None

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), ()))

    def __repr__(self) -> str:
        return f"Sample({len(self)} people; {', '.join(self._columns)})"


@dataclass(frozen=True)
class Split:
    """A table cut into three parts that share nobody."""

    train: Sample
    test: Sample
    attack: Sample
    """People like the others, known to the adversary, sensitive attribute included."""


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
