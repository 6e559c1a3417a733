"""Group rates, fairness metrics, and constraints on rates. Exact: counts and fractions.

A *metric* says over which slice of people the rate of positive predictions is taken; a *form*
says how the rates of the groups are compared. Both follow fairlearn's words and definitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BeforeValidator

from fpbench.base.argument_types import check_arguments
from fpbench.base.arguments import check_same_rows, show_value, to_array
from fpbench.base.arrays import check_binary
from fpbench.base.errors import InputError, check_choice
from fpbench.base.text import hyphenate, to_fraction
from fpbench.claims.conditions import Constraint, Occupied, Proportional, RatesWithin
from fpbench.claims.counts import Classes, Condition, Part
from fpbench.data.groups import group_codes

if TYPE_CHECKING:
    from pandas import DataFrame

_MetricName: TypeAlias = Literal[
    "statistical-parity", "predictive-equality", "equal-opportunity", "equalized-odds"
]
_ALIASES = {
    "demographic-parity": "statistical-parity",
    "independence": "statistical-parity",
    "separation": "equalized-odds",
    "equalised-odds": "equalized-odds",
    "true-positive-rate-parity": "equal-opportunity",
    "false-positive-rate-parity": "predictive-equality",
}
"""Other names of the metrics in the literature and in fairlearn."""


def _resolve_alias(name: Any) -> Any:
    """The name of a metric, from the name or an alias; other values unchanged."""
    if not isinstance(name, str):
        return name
    hyphened = hyphenate(name)
    return _ALIASES.get(hyphened, hyphened if hyphened in METRICS else name)


Metric: TypeAlias = Annotated[_MetricName, BeforeValidator(_resolve_alias)]
"""The people whose rates are compared: everyone, those of label 0, of label 1, or of each label.

Parameters of this type also take aliases such as `demographic-parity`."""
Form: TypeAlias = Literal["to-overall", "between-groups", "ratio"]
"""The comparison: each group with everyone, the greatest difference, or 1 - least / greatest."""

METRICS: tuple[Metric, ...] = get_args(_MetricName)
"""All metrics."""
FORMS: tuple[Form, ...] = get_args(Form)
"""All forms."""

_SLICES: dict[str, tuple[int | None, ...]] = {
    "statistical-parity": (None,),
    "predictive-equality": (0,),
    "equal-opportunity": (1,),
    "equalized-odds": (0, 1),
}

_Integers: TypeAlias = NDArray[np.integer[Any]]


def is_metric(name: str) -> bool:
    """Whether a text is a metric, or an alias of one."""
    return _resolve_alias(name) in METRICS


def parse_metric(name: str) -> Metric:
    """The metric of a name or an alias; InputError if there is none."""
    metric: Any = _resolve_alias(name)
    check_choice("metric", metric, METRICS)
    return metric  # type: ignore[no-any-return]


def slice_labels(metric: Metric) -> tuple[int | None, ...]:
    """Labels of the people whose rates a metric compares; None stands for everyone."""
    return _SLICES[metric]


@check_arguments
@dataclass(frozen=True)
class RateConstraint(Constraint):
    """The rates of the groups differ by no more than a tolerance.

    Parameters
    ----------
    metric
        Over which people the rate of positive predictions is taken.
    tolerance
        In [0, 1]. Taken as the decimal number that was written (0.1 is 1/10), so that whether a
        constraint holds is decided in integers and never depends on rounding. A `Fraction` is
        taken as it is.
    form
        `to-overall`: every group's rate is within the tolerance of the overall rate.
        `between-groups`: the rates of any two groups are within the tolerance of each other.
        `ratio`: the least rate is at least (1 - tolerance) times the greatest; the four-fifths
        rule is tolerance 0.2. A group without members in a slice has no rate there.
    every_slice
        Whether every group has a member in each slice that has people, as Ferry et al. demand,
        who correct one slice after the other; by default in one of the slices. They differ for
        equalized odds alone.

    Raises
    ------
    InputError
        If a name is unknown or the tolerance lies outside [0, 1].
    """

    metric: Metric = "statistical-parity"
    tolerance: float | Fraction = 0.0
    form: Form = "to-overall"
    every_slice: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "metric", parse_metric(self.metric))
        check_choice("form", self.form, FORMS)
        if not 0 <= self.tolerance <= 1:
            raise InputError(f"tolerance must be between 0 and 1, not {show_value(self.tolerance)}")

    @property
    def word(self) -> str:
        """The form: correctors differ in which they can express."""
        return self.form

    @property
    def labels(self) -> tuple[int | None, ...]:
        """Labels of the people the metric looks at; None stands for everyone."""
        return slice_labels(self.metric)

    @property
    def exact_tolerance(self) -> Fraction:
        """The tolerance as the decimal number that was written."""
        return to_fraction(self.tolerance)

    @check_arguments
    def slices(self, labels: _Integers | None) -> list[NDArray[np.bool_] | None]:
        """Masks (n,) of the slices the metric looks at; None stands for everyone.

        Raises
        ------
        InputError
            If the metric needs labels and there are none.
        """
        if self.labels == (None,):
            return [None]
        if labels is None:
            raise InputError(f"metric {self.metric!r} needs the labels")
        return [labels == label for label in self.labels]

    @check_arguments
    def unfairness(
        self, groups: _Integers, predictions: _Integers, labels: _Integers | None, k: int
    ) -> Fraction:
        """Least tolerance at which the constraint holds, exactly.

        Parameters
        ----------
        groups
            (n,) group codes in 0..k-1.
        predictions, labels
            (n,) in {0, 1}.
        k
            Number of groups.
        """
        return max(
            compare_rates(*group_counts(groups, predictions, k, part), self.form)
            for part in self.slices(labels)
        )

    @check_arguments
    def holds(
        self, groups: _Integers, predictions: _Integers, labels: _Integers | None, k: int
    ) -> bool:
        """Whether the constraint holds, exactly."""
        if self.every_slice:
            for part in self.slices(labels):
                members = np.bincount(groups if part is None else groups[part], minlength=k)
                if members.any() and not members.all():
                    return False
        return self.unfairness(groups, predictions, labels, k) <= self.exact_tolerance

    def conditions(self, classes: Classes) -> list[Condition]:
        """Every group has a member in the slices; in each, rates are near each other."""
        parts = [classes.part(label) for label in self.labels]
        conditions: list[Condition] = [Occupied(tuple(parts))]
        if self.every_slice:
            conditions += [Occupied((part,)) for part in parts if part.people and len(parts) > 1]
        for part in parts:
            if part.people and self.exact_tolerance < 1:
                conditions += self._close(part)
        return conditions

    def _close(self, part: Part) -> list[Condition]:
        tolerance, every = self.exact_tolerance, range(part.groups)
        if tolerance == 0:  # rates that are all equal are equal to the overall rate
            return [Proportional(part, k) for k in every]
        if self.form != "to-overall":
            return [RatesWithin(part, tolerance, self.form == "ratio")]
        overall = Fraction(part.positives, part.people)
        low, high = overall - tolerance, overall + tolerance
        return [
            *(part.rate_at_most(k, high) for k in every if high < 1),
            *(part.rate_at_least(k, low) for k in every if low > 0),
        ]


@check_arguments
def group_counts(
    groups: _Integers,
    predictions: _Integers,
    k: int,
    part: NDArray[np.bool_] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Members and positively predicted members of each group: two arrays (k,).

    Parameters
    ----------
    groups
        (n,) group codes in 0..k-1.
    predictions
        (n,) in {0, 1}.
    k
        Number of groups.
    part
        (n,) mask of the people to count; everyone if None.
    """
    for name, array in (("predictions", predictions), ("part", part)):
        if array is not None:
            to_array(name, array, shape=groups.shape)
    if groups.ndim != 1 or k < 0 or (groups.size and not 0 <= groups.min() <= groups.max() < k):
        raise InputError(f"groups must be (n,) codes of 0 to {k - 1}, one a person")
    if part is not None:
        groups, predictions = groups[part], predictions[part]
    positive = np.bincount(groups[predictions == 1], minlength=k)
    return np.bincount(groups, minlength=k), positive


@check_arguments
def compare_rates(
    members: NDArray[np.int64], positives: NDArray[np.int64], form: Form = "to-overall"
) -> Fraction:
    """The exact difference between the groups' rates of positive predictions.

    Parameters
    ----------
    members, positives
        (k,) people of each group, and those with a positive prediction. Groups without members
        have no rate and do not count.
    form
        How rates are compared. `to-overall` is the largest |rate - overall rate|,
        `between-groups` fairlearn's `MetricFrame.difference()`, `ratio` is 1 -
        `MetricFrame.ratio()`, and 0 if no group has a positive prediction.
    """
    to_array("positives", positives, shape=members.shape)
    if members.ndim != 1 or not ((positives >= 0) & (positives <= members)).all():
        raise InputError("members and positives must be (k,) numbers, positives at most members")
    rates = [Fraction(int(p), int(m)) for p, m in zip(positives, members, strict=True) if m > 0]
    if not rates:
        return Fraction(0)
    if form == "to-overall":
        overall = Fraction(int(positives.sum()), int(members.sum()))
        return max(abs(rate - overall) for rate in rates)
    if form == "between-groups":
        return max(rates) - min(rates)
    return 1 - min(rates) / max(rates) if max(rates) > 0 else Fraction(0)


def unfairness(
    groups: ArrayLike | DataFrame,
    predictions: ArrayLike,
    labels: ArrayLike | None = None,
    *,
    positive: Any = None,
    metric: Metric = "statistical-parity",
    form: Form = "to-overall",
) -> Fraction:
    """How unfair predictions are, exactly: the least tolerance within which they count as fair.

    Parameters
    ----------
    groups
        (n,) the group of each person: names, numbers, a column; or a data frame of several
        attributes, which are crossed.
    predictions
        (n,) of two values.
    labels
        (n,) true labels of these values; every metric but statistical parity needs them.
    positive
        The value that counts as 1; needed if values are not 0 and 1 or truth values.
    metric, form
        The people whose rates of positive predictions are taken, and how groups are compared: see
        `fpbench.claims.RateConstraint`.

    Raises
    ------
    InputError
        If an argument is not as described, or there are fewer than two groups.

    Examples
    --------
    >>> import fpbench
    >>> sex, hired = ["f", "f", "m", "m"], [0, 1, 1, 1]
    >>> fpbench.auditing.unfairness(sex, hired, form="between-groups")
    Fraction(1, 2)
    >>> float(fpbench.auditing.unfairness(sex, hired, [0, 1, 1, 0], metric="equal-opportunity"))
    0.0
    """
    check_same_rows(groups=groups, predictions=predictions, labels=labels)
    constraint = RateConstraint(metric, form=form)
    codes, names = group_codes(groups, name="groups")
    try:
        predicted = check_binary("predictions", predictions, positive, nameable=True)
    except InputError as error:
        if {*names} in ({"0", "1"}, {"False", "True"}):
            error = InputError(f"{error}; are groups and predictions swapped?")
        raise error from None
    truth = None
    if labels is not None:
        truth = check_binary("labels", labels, positive, nameable=True)
    for what, values in (("predictions", predicted), ("labels", truth)):
        if values is not None and len(values) != len(codes):
            raise InputError(f"{what}: has {len(values)} values, and groups {len(codes)} people")
    return constraint.unfairness(codes, predicted, truth, len(names))
