"""Samples of people, with only the columns that a component may see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fpbench.base.errors import HiddenError, InputError
from fpbench.data.attributes import explain_no_guarantee
from fpbench.data.domain import Domain

if TYPE_CHECKING:
    from pandas import DataFrame

_COPIES_ON_WRITE = int(version("pandas").partition(".")[0]) >= 3
"""Whether writing to a shallow copy of a DataFrame leaves the original unchanged."""

Codes: TypeAlias = NDArray[np.integer[Any]]
"""Whole numbers, one per person: labels, predictions or groups."""
Labels: TypeAlias = Codes
"""Whole numbers 0 or 1."""
Shares: TypeAlias = NDArray[np.float64]
"""Numbers in [0, 1]."""


@dataclass(frozen=True, eq=False)
class ModelAnswers:
    """A model's answers about n people: a column of a `Sample`.

    Attributes
    ----------
    predictions
        (n,) labels in {0, 1}; for a query (n, K), one for each possible group of a person.
    scores
        Probabilities of label 1 in [0, 1], same shape; None if the model gives none.
    """

    predictions: Labels
    scores: Shares | None = None

    def take(self, rows: NDArray[np.intp], axis: int = 0) -> ModelAnswers:
        """Copies of the answers about these rows."""
        scores = None if self.scores is None else self.scores.take(rows, axis=axis)
        return ModelAnswers(self.predictions.take(rows, axis=axis), scores)

    def __len__(self) -> int:
        return len(self.predictions)


class Sample:
    """Some columns of some people; reading any other column raises an error.

    So a component cannot reach columns that it must not see.

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
    query
        The target model's answers (n, K), given each group in turn.
    twin
        Answers of the target model's unfair twin (n,).
    sensitive
        Array (n,) of group codes in 0..K-1.
    group_chances
        Array (n, K) of exact probabilities of the groups given features and label, for synthetic
        data of known distribution. Only fpbench's own measures read it: `only` removes it.
    households
        Array (n,) of whole numbers: people of one household have the same.
    domain
        Public domain of the features.
    measured_cuts
        Columns that were cut at a statistic of everybody (a quantile, a median), and how:
        differential privacy cannot be guaranteed for them, see `check_cuts`.
    secret
        Name of the sensitive column, or of several.
    """

    __slots__ = ("_columns", "domain", "groups", "measured_cuts", "secret")

    COLUMNS = (
        "features",
        "labels",
        "sensitive",
        "predictions",
        "scores",
        "query",
        "twin",
        "group_chances",
        "households",
    )
    HIDDEN = frozenset({"group_chances", "households"})
    """Columns that no component sees: they are for measures."""

    def __init__(
        self,
        groups: tuple[str, ...],
        *,
        features: DataFrame | None = None,
        labels: Codes | None = None,
        sensitive: Codes | None = None,
        predictions: Codes | None = None,
        scores: NDArray[np.float64] | None = None,
        query: ModelAnswers | None = None,
        twin: ModelAnswers | None = None,
        group_chances: NDArray[np.float64] | None = None,
        households: NDArray[np.int64] | None = None,
        domain: Domain | None = None,
        measured_cuts: Mapping[str, str] | None = None,
        secret: str = "group",
    ) -> None:
        self.groups = groups
        self.domain = domain or Domain()
        self.measured_cuts = dict(measured_cuts or {})
        self.secret = secret
        values = (
            features, labels, sensitive, predictions, scores, query, twin, group_chances, households
        )  # fmt: skip
        self._columns: dict[str, Any] = {
            name: value
            for name, value in zip(self.COLUMNS, values, strict=True)
            if value is not None
        }

    @property
    def features(self) -> DataFrame:
        """The features, a DataFrame of n rows: a copy that shares memory until it is written to."""
        value: DataFrame = self._column("features")
        if not hasattr(value, "iloc"):  # input of a user's own model, such as an array
            return value
        return value.copy(deep=not _COPIES_ON_WRITE)

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
    def query(self) -> ModelAnswers:
        """The target model's answers (n, K), given each group in turn."""
        value: ModelAnswers = self._column("query")
        return value

    @property
    def twin(self) -> ModelAnswers:
        """Answers of the target model's unfair twin (n,)."""
        value: ModelAnswers = self._column("twin")
        return value

    @property
    def group_chances(self) -> NDArray[np.float64] | None:
        """Exact probabilities of the groups, (n, K); None if unknown or hidden."""
        return self._columns.get("group_chances")

    @property
    def households(self) -> NDArray[np.int64] | None:
        """The number of each person's household, (n,); None if everybody lives alone."""
        return self._columns.get("households")

    @property
    def household_sizes(self) -> NDArray[np.int64] | None:
        """Size of each person's household in this sample, (n,); None if everybody lives alone."""
        households = self.households
        if households is None or not len(households):
            return None
        _, place, sizes = np.unique(households, return_inverse=True, return_counts=True)
        return None if sizes.max() == 1 else np.asarray(sizes[place], np.int64)

    @property
    def seen(self) -> frozenset[str]:
        """Names of the columns of this sample."""
        return frozenset(self._columns)

    def stored(self) -> list[Any]:
        """The columns themselves, not copies, for locking their memory; do not write to them."""
        return list(self._columns.values())

    def only(self, columns: frozenset[str]) -> Sample:
        """The same people with only these columns, and never with hidden ones."""
        shown = columns - self.HIDDEN
        return self._with({name: c for name, c in self._columns.items() if name in shown})

    def having(self, **columns: Any) -> Sample:
        """The same people with these columns added or replaced."""
        return self._with({**self._columns, **columns})

    def take(self, rows: NDArray[np.intp]) -> Sample:
        """A copy of these rows that shares no memory with the original."""
        taken = {name: column.take(rows, axis=0) for name, column in self._columns.items()}
        if "features" in taken:
            taken["features"].index = range(len(rows))  # reset_index would copy once more
        return self._with(taken)

    def check_cuts(self, columns: Iterable[str], who: str) -> None:
        """Refuse to guarantee privacy of columns that were cut at a statistic of everybody.

        Parameters
        ----------
        columns
            Columns that the guarantee is about: `features`, `labels` or `sensitive`.
        who
            The component that gives the guarantee, for the message.

        Raises
        ------
        InputError
            If one of the columns was; the message names it, and asks for a public cut.
        """
        if why := explain_no_guarantee(self.measured_cuts, columns, who):
            raise InputError(why)

    def _with(self, columns: dict[str, Any]) -> Sample:
        return Sample(self.groups, **columns, domain=self.domain,
                      measured_cuts=self.measured_cuts, secret=self.secret)  # fmt: skip

    def _column(self, name: str) -> Any:
        try:
            return self._columns[name]
        except KeyError:
            seen = ", ".join(self._columns) or "nothing"
            raise HiddenError(f"{name!r} is not visible here; visible: {seen}") from None

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), ()))

    def __repr__(self) -> str:
        return f"Sample({len(self)} people; {', '.join(self._columns)})"


@dataclass(frozen=True)
class Split:
    """A table cut into three disjoint parts.

    Attributes
    ----------
    train
        People on whom the target is trained.
    test
        People on whom its accuracy and fairness are measured.
    attack
        People like the others, known to the adversary, sensitive attribute included.
    held_out_target
        Whether claims and attacks are about the test people instead of the training people.
    """

    train: Sample
    test: Sample
    attack: Sample
    held_out_target: bool = False

    @property
    def target(self) -> Sample:
        """The people that claims and attacks are about."""
        return self.test if self.held_out_target else self.train
