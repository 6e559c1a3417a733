"""Constraints other than a claim about rates: shares, rates of groups, unfairness, people, sums."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.base.argument_types import check_arguments
from fpbench.base.arguments import show_value
from fpbench.base.errors import InputError
from fpbench.base.text import to_fraction
from fpbench.claims.conditions import AnyOf, Constraint, RatesApart
from fpbench.claims.counts import Classes, Condition, Part, Row
from fpbench.claims.rates import FORMS, Form, Metric, RateConstraint, parse_metric, slice_labels

COUNT_CONSTRAINTS = frozenset({
    *FORMS, "share", "positive-rate", "unfairness", "unfairness between-groups",
    "unfairness ratio", "known",
})  # fmt: skip
"""Words of the constraints that are about counts of people: all but `linear`."""


@dataclass(frozen=True)
class _GroupBounds(Constraint):
    group: int
    low: float | Fraction = 0.0
    high: float | Fraction = 1.0

    def __post_init__(self) -> None:
        _check_bounds(self.word.replace("-", " "), self.low, self.high)

    @check_arguments
    def check(self, people: int, groups: int) -> None:
        """Raise InputError if there is no such group."""
        _check_group(self.group, groups)


@check_arguments
@dataclass(frozen=True)
class ShareBounds(_GroupBounds):
    """The share of one group among all people lies between bounds.

    Attributes
    ----------
    group
        Code of the group.
    low
        Least share, in [0, 1].
    high
        Greatest share, in [0, 1].

    Raises
    ------
    InputError
        If the bounds are not 0 <= low <= high <= 1.
    """

    word = "share"
    labels = (None,)

    def conditions(self, classes: Classes) -> list[Condition]:
        """Two rows over the group's people."""
        everyone = classes.part(None)
        least, most = (to_fraction(bound) * everyone.people for bound in (self.low, self.high))
        return [
            everyone.row(self.group, 0, 1, most.__floor__()),
            everyone.row(self.group, 0, -1, -least.__ceil__()),
        ]


@check_arguments
@dataclass(frozen=True)
class RateBounds(_GroupBounds):
    """The rate of positive predictions of one group lies between bounds, in the metric's slices.

    A group without members in a slice satisfies it there.

    Attributes
    ----------
    group
        Code of the group.
    low
        Least rate, in [0, 1].
    high
        Greatest rate, in [0, 1].
    metric
        In whose slices the rate is bounded.

    Raises
    ------
    InputError
        If the bounds are not 0 <= low <= high <= 1, or the metric is unknown.
    """

    metric: Metric = "statistical-parity"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "metric", parse_metric(self.metric))

    word = "positive-rate"

    @property
    def labels(self) -> tuple[int | None, ...]:
        """Those of the metric."""
        return slice_labels(self.metric)

    def conditions(self, classes: Classes) -> list[Condition]:
        """Two rows a slice."""
        return [
            row
            for label in self.labels
            for row in (
                classes.part(label).rate_at_least(self.group, to_fraction(self.low)),
                classes.part(label).rate_at_most(self.group, to_fraction(self.high)),
            )
        ]


@check_arguments
@dataclass(frozen=True)
class KnownUnfairness(Constraint):
    """The unfairness itself is known: it lies between two bounds, both included.

    `RateConstraint(metric, high, form)`, and somewhere the rates are at least `low` apart.

    Attributes
    ----------
    metric
        Which rates are compared.
    low
        Least unfairness, in [0, 1].
    high
        Greatest unfairness, in [0, 1].
    form
        How the rates are compared.

    Raises
    ------
    InputError
        If the bounds are not 0 <= low <= high <= 1, or a name is unknown.
    """

    metric: Metric
    low: float | Fraction
    high: float | Fraction
    form: Form = "to-overall"

    def __post_init__(self) -> None:
        _check_bounds("unfairness", self.low, self.high)
        object.__setattr__(self, "metric", self._upper().metric)

    def _upper(self) -> RateConstraint:
        return RateConstraint(self.metric, self.high, self.form)

    @property
    def word(self) -> str:
        """`unfairness`, and the form unless it is `to-overall`."""
        return "unfairness" if self.form == "to-overall" else f"unfairness {self.form}"

    @property
    def labels(self) -> tuple[int | None, ...]:
        """Those of the metric."""
        return slice_labels(self.metric)

    def conditions(self, classes: Classes) -> list[Condition]:
        """Those of the upper bound, and one of several ways to be far apart."""
        upper = self._upper().conditions(classes)
        low = to_fraction(self.low)
        if low == 0:
            return upper
        parts = [classes.part(label) for label in self.labels]
        if self.form != "to-overall":
            ratio = self.form == "ratio"
            options: list[tuple[Condition, ...]] = [(RatesApart(p, low, ratio),) for p in parts]
        else:
            options = [option for part in parts for option in _list_far_rows(part, low)]
        return [*upper, AnyOf(tuple(options))]


def _list_far_rows(part: Part, low: Fraction) -> list[tuple[Row, Row]]:
    """Each group above or below the overall rate by at least `low`, having members."""
    if not part.people:
        return []
    overall = Fraction(part.positives, part.people)
    rows = []
    for k in range(part.groups):
        occupied = part.row(k, 0, -1, -1)
        if overall + low <= 1:
            rows.append((part.rate_at_least(k, overall + low), occupied))
        if overall - low >= 0:
            rows.append((part.rate_at_most(k, overall - low), occupied))
    return rows


@check_arguments
@dataclass(frozen=True, eq=False)
class KnownPeople(Constraint):
    """The groups of some people are known.

    Parameters
    ----------
    rows
        (m,) row numbers of the people whose groups are known.
    groups
        (m,) their group codes.

    Raises
    ------
    InputError
        If these are not two lists of whole numbers of the same length.
    """

    rows: ArrayLike
    groups: ArrayLike

    def __post_init__(self) -> None:
        rows, groups = np.asarray(self.rows), np.asarray(self.groups)
        if rows.ndim != 1 or rows.shape != groups.shape:
            raise InputError("known people: rows and groups must be two lists of the same length")
        if rows.size and not (rows.dtype.kind in "iu" and groups.dtype.kind in "iu"):
            raise InputError("known people: rows and groups must be whole numbers")

    def pairs(self) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """Rows and groups as arrays (m,)."""
        return np.asarray(self.rows, dtype=np.intp), np.asarray(self.groups, dtype=np.int64)

    word = "known"
    labels = ()

    @check_arguments
    def check(self, people: int, groups: int) -> None:
        """Raise InputError if there is no such person or group."""
        rows, known = self.pairs()
        if rows.size and (rows.min() < 0 or rows.max() >= people):
            wrong = rows[(rows < 0) | (rows >= people)][0]
            raise InputError(f"known people: row {wrong} is not in 0..{people - 1}")
        for group in known[(known < 0) | (known >= groups)][:1]:
            _check_group(int(group), groups)


@check_arguments
@dataclass(frozen=True, eq=False)
class LinearConstraint(Constraint):
    """A weighted sum over the people of one group lies between bounds.

    sum of coefficients[i] over the people i of the group, for example the group's total of a
    column. Only a corrector that knows individuals can express it.

    Parameters
    ----------
    group
        The group code.
    coefficients
        (n,) finite numbers.
    low, high
        Bounds, both included; infinite ones bind nothing.

    Raises
    ------
    InputError
        If a coefficient is not finite, a bound is not a number, or low is above high.
    """

    group: int
    coefficients: ArrayLike
    low: float = -np.inf
    high: float = np.inf

    def __post_init__(self) -> None:
        try:
            array = self.array()
        except (TypeError, ValueError, OverflowError):
            raise InputError("linear constraint: coefficients must be numbers") from None
        if array.ndim != 1 or not np.isfinite(array).all():
            raise InputError(
                "linear constraint: coefficients must be (n,) finite numbers, one a person"
            )
        if self.low > self.high:
            raise InputError(f"linear constraint: low {self.low} is above high {self.high}")

    def array(self) -> NDArray[np.float64]:
        """(n,) the coefficients."""
        return np.asarray(self.coefficients, dtype=np.float64)

    word = "linear"
    labels = ()

    @check_arguments
    def check(self, people: int, groups: int) -> None:
        """Raise InputError if there is no such group, or not one coefficient a person."""
        _check_group(self.group, groups)
        if len(self.array()) != people:
            raise InputError(
                f"linear constraint: has {len(self.array())} coefficients for {people} people"
            )


def _check_bounds(what: str, low: Any, high: Any) -> None:
    if not 0 <= low <= high <= 1:
        raise InputError(
            f"{what}: needs bounds 0 <= low <= high <= 1, not {show_value(low)} and "
            f"{show_value(high)}"
        )


def _check_group(group: int, groups: int) -> None:
    if not 0 <= group < groups:
        raise InputError(f"group: must be in 0..{groups - 1}, not {group}")
