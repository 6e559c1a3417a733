"""The plain data that flows between steps. No behaviour beyond checking and naming itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fpbench.errors import DataError, HiddenError
from fpbench.rates import RateConstraint

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
    sensitive
        Array (n,) of group codes in 0..K-1.
    """

    __slots__ = ("_columns", "groups")

    COLUMNS = ("features", "labels", "sensitive", "predictions")

    def __init__(
        self,
        groups: tuple[str, ...],
        *,
        features: DataFrame | None = None,
        labels: Codes | None = None,
        sensitive: Codes | None = None,
        predictions: Codes | None = None,
    ) -> None:
        self.groups = groups
        given = zip(self.COLUMNS, (features, labels, sensitive, predictions), strict=True)
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
    def seen(self) -> frozenset[str]:
        """Names of the columns that are here."""
        return frozenset(self._columns)

    def only(self, columns: frozenset[str]) -> Sample:
        """The same people with no more than these columns."""
        return Sample(
            self.groups, **{name: c for name, c in self._columns.items() if name in columns}
        )

    def having(self, **columns: Any) -> Sample:
        """The same people with these columns added or replaced."""
        return Sample(self.groups, **{**self._columns, **columns})

    def take(self, rows: NDArray[np.intp]) -> Sample:
        """Copies of these rows, sharing no memory with the whole."""
        return Sample(
            self.groups,
            **{
                name: c.take(rows).reset_index(drop=True) if name == "features" else c.take(rows)
                for name, c in self._columns.items()
            },
        )

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
class Table:
    """A data set: everyone's features, label and group.

    Raises
    ------
    DataError
        If lengths differ, a label is not 0 or 1, a value is missing, or fewer than two groups
        have members.
    """

    name: str
    features: DataFrame
    """n rows; numeric columns and pandas categoricals; without the sensitive columns."""
    labels: Codes
    """(n,) in {0, 1}."""
    sensitive: DataFrame
    """n rows, one or more categorical columns; a person's group is their combination."""
    positive: str = "1"
    """What label 1 stands for."""

    codes: Codes = field(init=False, repr=False)
    """(n,) group codes in 0..K-1."""
    groups: tuple[str, ...] = field(init=False)
    """The K groups that have members, in the order of the categories."""

    def __post_init__(self) -> None:
        lengths = {len(self.features), len(self.labels), len(self.sensitive)}
        if len(lengths) != 1:
            raise DataError(
                f"data set {self.name!r}: features, labels and sensitive columns have "
                f"{len(self.features)}, {len(self.labels)} and {len(self.sensitive)} rows"
            )
        labels = np.asarray(self.labels)
        if not np.isin(labels, (0, 1)).all():
            raise DataError(f"data set {self.name!r}: labels must be 0 or 1")
        for frame in (self.features, self.sensitive):
            for column in frame.columns[frame.isna().any()]:
                raise DataError(f"data set {self.name!r}: column {column!r} has missing values")
        codes, groups = _cross(self.sensitive)
        if len(groups) < 2:
            raise DataError(
                f"data set {self.name!r}: the sensitive attribute "
                f"{' x '.join(map(str, self.sensitive.columns))} has one group, "
                f"{' and '.join(groups) or 'of nobody'}; an attack or audit needs at least two"
            )
        object.__setattr__(self, "labels", labels.astype(np.int8, copy=False))
        object.__setattr__(self, "codes", codes)
        object.__setattr__(self, "groups", groups)

    def __len__(self) -> int:
        return len(self.labels)

    def sample(self) -> Sample:
        """Everything known of everyone."""
        return Sample(self.groups, features=self.features, labels=self.labels, sensitive=self.codes)


def _cross(columns: DataFrame) -> tuple[Codes, tuple[str, ...]]:
    """Group codes and names of the combinations of categories that have members."""
    codes: NDArray[np.intp] = np.zeros(len(columns), dtype=np.int16)
    names = [""]
    for _, column in columns.items():
        categories = column.cat.categories
        codes = codes * len(categories) + column.cat.codes.to_numpy()
        names = [f"{name} x {c}" if name else str(c) for name in names for c in categories]
    members = np.bincount(codes, minlength=len(names)) > 0
    renumbered = np.cumsum(members) - 1
    kept = tuple(name for name, any_member in zip(names, members, strict=True) if any_member)
    return renumbered.astype(np.int8)[codes], kept


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


@dataclass(frozen=True)
class Claim:
    """What is disclosed of the target: this constraint holds on the training predictions."""

    constraint: RateConstraint
    source: str
    """Who says so: `published`, `estimated`, ..."""


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


@dataclass(frozen=True)
class Problem:
    """A guess to be corrected, and the constraint that the truth is known to satisfy.

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
    """(n,) in {0, 1}; None only for statistical parity."""
    constraint: RateConstraint | None
    """None if nothing was claimed."""
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

    @property
    def gap(self) -> float | None:
        """(objective - bound) / objective; 0 when proven optimal."""
        if self.objective is None or self.bound is None:
            return None
        if self.objective == self.bound:
            return 0.0
        return (self.objective - self.bound) / abs(self.objective)


@dataclass(frozen=True)
class Subject:
    """All that an auditor is handed; what it does not declare in `sees` is not there."""

    train: Sample
    test: Sample
    model: Any = None
