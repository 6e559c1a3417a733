"""The rows of a published report: values by metric, group and slice, and how exact they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from fpbench.base.arguments import check_whole_number, show_value, to_array
from fpbench.base.errors import InputError
from fpbench.claims.count_laws import GAUSSIAN, LAPLACE, Floats
from fpbench.claims.set_counts import Mask
from fpbench.components.guarantee import Guarantee, Relation
from fpbench.reports.linear_statistics import Statistic
from fpbench.reports.rounding import Rounding
from fpbench.reports.slices import (
    REPORT_METRICS,
    VIEWS,
    Codes,
    SliceColumn,
    number_slices,
)

if TYPE_CHECKING:
    from pandas import DataFrame


DIFFERENCES: Mapping[Relation, str] = {
    "attribute": "a change of one person's group",
    "add-remove": "one person added or removed",
    "replace-one": "one person added, removed or replaced",
}
"""How neighbours of a guarantee differ, in words. Counts of all kinds move by two if a person is
replaced, by one if it is added or removed."""


class StatedGuarantee(BaseModel):
    """Differential privacy of a whole report, for a change of one person's group or of the person.

    With the sizes of the slices, which every reader knows, it tells the exact law of each number.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    guarantee: Guarantee
    mechanism: dict[str, JsonValue]
    """Its name (`use`) and parameters."""
    epsilon: float = Field(gt=0, allow_inf_nan=False)
    """What the mechanism was told to give all numbers together (`Mechanism.release`)."""
    changes: int = Field(ge=1)
    """Numbers that change by one between neighbours: the L1 sensitivity."""
    fitted: bool = False
    """Whether the law of the noise was fitted to draws, which is no law to limit information by."""
    rows: str = ""
    """Checksum of the rows that it is about (`ReportRows.hash_values`)."""

    @classmethod
    def parse(cls, text: str, row: int) -> Self:
        """A guarantee in JSON; InputError names the row of another text."""
        try:
            return cls.model_validate_json(text)
        except ValidationError:
            raise InputError(
                f"row {row}, column 'guarantee': {show_value(text)} is no guarantee as `protect` "
                "states it: leave the column out"
            ) from None

    def __str__(self) -> str:
        own = self.guarantee
        parts = f"epsilon {own.epsilon:g}" + (f", delta {own.delta:g}" if own.delta else "")
        return f"{parts}, by {self.mechanism.get('use')}, for {DIFFERENCES[own.neighbours]}"


_MOST_EMPTY = 100
"""How many places there may be for each row, if they are many: one a group, metric and slice."""
_PER_ROW = ("cells", "metric", "group", "value", "n", "within", "law", "width", "below", "measured")


_CODED = ("cells", "group", "within")
"""Of these, codes, and what a reader of a file may add (`decimals`)."""


class ReportedPeople(NamedTuple):
    """The n people whom a report is about."""

    X: DataFrame
    predictions: Codes
    """(n,) in {0, 1}."""
    labels: Codes
    """(n,) in {0, 1}; 0 where the report looks at none."""
    groups: Codes | None = None
    """(n,) codes, if they are known to whoever makes the report."""

    def code(self, columns: Sequence[SliceColumn]) -> Codes:
        """(n, columns + 2) codes of the columns, label and prediction of each."""
        codes = [column.code(self.X) for column in columns]
        return np.column_stack([*codes, self.labels, self.predictions])


@dataclass(frozen=True, eq=False)
class ReportRows:
    """R rows, each a metric of one group in one slice.

    Attributes
    ----------
    columns
        The C columns that slices are cut by.
    groups
        Names of the K groups.
    cells
        (R, C) code of each column's value; -1 where the slice is not cut by the column.
    metric
        (R,) names, of `REPORT_METRICS`.
    group
        (R,) group codes.
    value
        (R,) rate, or number of people; NaN for a rate of nobody, and where it is suppressed.
    n
        (R,) the people a rate is taken over, all of the group; of a number of people, the people
        of all groups among whom they are counted. -1 where it is not published.
    within
        (R,) how far the truth may be from a rounded value; 0 where it is exact.
    law, width
        (R,) place in `LAWS` of the noise of the counts, and its width; 0 where there is none.
    below
        (R,) of a suppressed value: some group of the slice has fewer people than this, among whom
        the metric counts; 0 where nothing is said.
    measured
        (R, 2) of a noisy row whose numbers were fitted to others: the measured numbers of its
        people with prediction 0 and 1. These have the noise, and a row without any tells no more.
        NaN of every row of a report without fitted numbers.
    rounding
        How numbers of people were rounded or perturbed, those behind rates too; None if they were
        not.
    defences
        What was done to the exact report, by the names of the parameters of `protect`.
    guarantee
        Of the noise, for a change of one person's group, or None; `stated` is it if it is about
        exactly these rows. That of a file is a claim of whoever wrote it.
    left_out
        Columns that slices were to be cut by and are not, and why; of a report that is made of
        predictions, and in no file.
    people
        The people whom it is about, if known; never written with the rows.
    statistics
        Other numbers of groups, which no defence handles: reports that are protected have none.
    read_as, unread, mapped
        What a table of another form was read as, in a line; what of it was not read; and what each
        of its headings was taken for. Empty of others.
    """

    columns: tuple[SliceColumn, ...]
    groups: tuple[str, ...]
    cells: Codes
    metric: NDArray[np.str_]
    group: Codes
    value: Floats
    n: Codes
    within: Floats
    law: Codes
    width: Floats
    below: Codes
    measured: Floats
    rounding: Rounding | None = None
    defences: Mapping[str, Any] = field(default_factory=dict)
    guarantee: StatedGuarantee | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)
    people: ReportedPeople | None = field(default=None, repr=False)
    statistics: tuple[Statistic, ...] = ()
    read_as: str = ""
    unread: str = ""
    mapped: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.value)

    def __getstate__(self) -> dict[str, Any]:
        """What a pickle or copy holds: all but the people, for it may be handed on."""
        return self.__dict__ | {"people": None}

    @cached_property
    def label(self) -> Codes:
        """(R,) the label that a metric looks at; -1 for none."""
        return self._look_up([-1 if m.label is None else m.label for m in REPORT_METRICS.values()])

    @cached_property
    def prediction(self) -> Codes:
        """(R,) the prediction whose people are counted; -1 of a rate."""
        return self._look_up(
            [-1 if m.prediction is None else m.prediction for m in REPORT_METRICS.values()]
        )

    @cached_property
    def view(self) -> Codes:
        """(R,) place in `VIEWS` of what stands for the prediction."""
        return self._look_up([VIEWS.index(m.view) for m in REPORT_METRICS.values()])

    @cached_property
    def needs_labels(self) -> Mask:
        """(R,) whether a metric looks at labels."""
        return self._look_up([m.needs_labels for m in REPORT_METRICS.values()]) > 0

    @cached_property
    def is_rate(self) -> Mask:
        """(R,) whether a row is a rate, not a number of people."""
        return self.prediction < 0

    @cached_property
    def noisy(self) -> Mask:
        """(R,) whether a row has noise."""
        return self.law > 0

    @cached_property
    def is_fitted(self) -> bool:
        """Whether noisy numbers are those that `measured` ones were fitted to."""
        return bool(np.isfinite(self.measured).any())

    @property
    def reach(self) -> int:
        """How far a number may be from the true one, by rounding; 0 if there is none."""
        return 0 if self.rounding is None else self.rounding.reach

    @property
    def sigma(self) -> Floats:
        """(R,) standard deviation of Gaussian noise; 0 of rows without."""
        return np.where(self.law == GAUSSIAN, self.width, 0.0)

    @property
    def scale(self) -> Floats:
        """(R,) scale of Laplace noise; 0 of rows without."""
        return np.where(self.law == LAPLACE, self.width, 0.0)

    @cached_property
    def suppressed(self) -> Mask:
        """(R,) whether a row has no value, and is not a rate of an empty group."""
        return np.asarray(np.isnan(self.value) & ~(self.is_rate & (self.n == 0)))

    @cached_property
    def blocks(self) -> tuple[Codes, Codes]:
        """Block (R,) of each row, and row (B, K) of each block and group; -1 where it is missing.

        A block is one metric of one slice; blocks are numbered in the order of their first rows.
        """
        _, metric = np.unique(self.metric, return_inverse=True)
        own = np.column_stack([self.cells, metric.ravel()])
        first, block = number_slices(own)
        if (places := len(first) * len(self.groups)) > max(_MOST_EMPTY * len(self), 2**20):
            raise InputError(
                f"the report has {len(self):,} rows for {len(self.groups):,} groups in "
                f"{len(first):,} slices, which are {places:,} places: name fewer groups"
            )
        rows = np.full((len(first), len(self.groups)), -1)
        rows[block, self.group] = np.arange(len(self))
        return block, rows

    def take(self, which: NDArray[Any]) -> Self:
        """The report of some rows, by a mask or their numbers; InputError if a row is missing.

        Without `statistics`.
        """
        rows, n = to_array("which", which, "biu"), len(self.metric)
        mask = rows.dtype.kind == "b"
        if rows.ndim != 1 or (len(rows) != n if mask else np.any((rows < -n) | (rows >= n))):
            raise InputError(
                f"which must be a mask or numbers of {n} rows, not {show_value(which)}"
            )
        own = {name: getattr(self, name)[rows] for name in _PER_ROW}
        taken = replace(self, **own, statistics=())
        return taken.state(self.stated)

    @property
    def stated(self) -> StatedGuarantee | None:
        """The guarantee, if it is of exactly these rows, and not of others that they were."""
        own = self.guarantee
        return own if own is not None and own.rows == self.hash_values() else None

    def state(self, guarantee: StatedGuarantee | None) -> Self:
        """The same rows, with a guarantee that is about them, or without any."""
        if guarantee is not None:
            guarantee = guarantee.model_copy(update={"rows": self.hash_values()})
        return replace(self, guarantee=guarantee)

    def _look_up(self, values: list[int]) -> Codes:
        names, inverse = np.unique(self.metric, return_inverse=True)
        of = dict(zip(REPORT_METRICS, values, strict=True))
        return np.asarray(np.array([of[str(name)] for name in names], np.int64)[inverse])

    def describe_slice(self, row: int) -> str:
        """The slice of a row, in words.

        Parameters
        ----------
        row
            Its number.

        Raises
        ------
        InputError
            If there is no such row.
        """
        check_whole_number("row", row, 0)
        if row >= len(self.metric):
            raise InputError(f"row must be below {len(self.metric)}, not {show_value(row)}")
        parts = [
            f"{column.name} {column.values[code]}"
            for column, code in zip(self.columns, self.cells[row], strict=True)
            if code >= 0
        ]
        return " and ".join(parts) or "everybody"

    def hash_values(self) -> str:
        """SHA-256 of the published values and their noise, in any order of rows and columns."""
        columns = sorted(range(len(self.columns)), key=lambda c: self.columns[c].name)
        ordered = replace(
            self, columns=tuple(self.columns[c] for c in columns), cells=self.cells[:, columns]
        )
        told = [getattr(self, name) for name in _PER_ROW if name not in _CODED]
        lines = [
            repr([ordered.describe_slice(row), self.groups[self.group[row]], *map(str, published)])
            for row, published in enumerate(zip(*told, strict=True))
        ]
        lines += [repr([*one]) for one in self.statistics]
        return sha256("\n".join(sorted(lines)).encode()).hexdigest()
