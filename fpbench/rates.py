"""Group rates, fairness metrics, and constraints on rates. Exact: counts and fractions.

A *metric* says over which slice of people the rate of positive predictions is taken; a *form*
says how the rates of the groups are compared. Both follow fairlearn's words and definitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from fpbench.errors import InputError, nearest

Metric: TypeAlias = Literal[
    "statistical-parity", "predictive-equality", "equal-opportunity", "equalized-odds"
]
"""Whose rate is compared: everyone's, that of label 0, that of label 1, or both of these."""
Form: TypeAlias = Literal["to-overall", "between-groups", "ratio"]
"""How: each group with everyone, the greatest difference, or 1 - least / greatest."""

METRICS: tuple[Metric, ...] = get_args(Metric)
FORMS: tuple[Form, ...] = get_args(Form)

_SLICES: dict[str, tuple[int | None, ...]] = {
    "statistical-parity": (None,),
    "predictive-equality": (0,),
    "equal-opportunity": (1,),
    "equalized-odds": (0, 1),
}

_Integers: TypeAlias = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class RateConstraint:
    """The rates of the groups differ by no more than a tolerance.

    Parameters
    ----------
    metric
        Over which people the rate of positive predictions is taken.
    tolerance
        In [0, 1]. Taken as the decimal number that was written (0.1 is 1/10), so that whether a
        constraint holds is decided in integers and never depends on rounding.
    form
        `to-overall`: every group's rate is within the tolerance of the overall rate.
        `between-groups`: the rates of any two groups are within the tolerance of each other.
        `ratio`: the least rate is at least (1 - tolerance) times the greatest; the four-fifths
        rule is tolerance 0.2. A group without members in a slice has no rate there.

    Raises
    ------
    InputError
        If a name is unknown or the tolerance lies outside [0, 1].
    """

    metric: Metric = "statistical-parity"
    tolerance: float = 0.0
    form: Form = "to-overall"

    def __post_init__(self) -> None:
        for what, value, valid in (("metric", self.metric, METRICS), ("form", self.form, FORMS)):
            if value not in valid:
                raise InputError(f"unknown {what} {value!r}; {nearest(str(value), valid)}")
        try:
            inside = 0 <= self.tolerance <= 1
        except TypeError:
            inside = False
        if not inside:
            raise InputError(f"tolerance must be between 0 and 1, not {self.tolerance!r}")

    @property
    def exact_tolerance(self) -> Fraction:
        """The tolerance as the decimal number that was written."""
        return Fraction(str(float(self.tolerance)))

    def slices(self, labels: _Integers | None) -> list[NDArray[np.bool_] | None]:
        """Masks (n,) of the slices the metric looks at; None stands for everyone.

        Raises
        ------
        InputError
            If the metric needs labels and there are none.
        """
        wanted = _SLICES[self.metric]
        if wanted == (None,):
            return [None]
        if labels is None:
            raise InputError(f"metric {self.metric!r} needs the labels")
        return [np.asarray(labels) == label for label in wanted]

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
            unfairness(*group_counts(groups, predictions, k, part), self.form)
            for part in self.slices(labels)
        )

    def holds(
        self, groups: _Integers, predictions: _Integers, labels: _Integers | None, k: int
    ) -> bool:
        """Whether the constraint holds, exactly."""
        return self.unfairness(groups, predictions, labels, k) <= self.exact_tolerance

    def two_group_members(
        self, positives: _Integers, all_positives: int, everyone: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Least and greatest size that group 1 of two may have, given its positives, in a slice.

        For every form the sizes that satisfy the constraint are an interval; the two ends are
        found in integers. An interval may be empty (least above greatest).

        Parameters
        ----------
        positives
            (m,) numbers of people of group 1 with a positive prediction.
        all_positives, everyone
            The number of positive predictions and of people in the slice; neither depends on
            who is in which group.

        Notes
        -----
        Each form treats the groups alike, so group 1 is largest where group 0 is smallest.
        """
        x = self._safe(np.asarray(positives), everyone)
        least = self._least_members(x, all_positives, everyone)
        others_least = self._least_members(all_positives - x, all_positives, everyone)
        greatest = everyone - others_least
        return least.astype(np.int64), greatest.astype(np.int64)

    def _safe(self, x: _Integers, everyone: int) -> _Integers:
        """The same integers, in Python's own where 64 bits could overflow below."""
        largest = self.exact_tolerance.denominator * max(everyone, 1) ** 2
        return x.astype(np.int64 if 8 * largest < 2**63 else object)

    def _least_members(self, x: _Integers, positives: int, n: int) -> _Integers:
        """Least members of a group with x positives for which the constraint can hold."""
        e, q = self.exact_tolerance.as_integer_ratio()
        if self.form == "between-groups":
            return _least_between(x, positives, n, e, q)
        if self.form == "to-overall":
            # This group's rate is at most P + eps, the other's at least P - eps.
            own = _ceil_divide(q * x * n, q * positives + e * n)
            other = _floor_divide(q * (positives - x) * n, q * positives - e * n, n)
            return np.maximum(own, n - other)
        # The other group's rate is at least (1 - eps) times this one's.
        rest = positives - x
        return n - _floor_divide(q * rest * n, q * rest + (q - e) * x, n)


def _ceil_divide(a: _Integers, b: int) -> _Integers:
    """Least m with m * b >= a, for b >= 0 and a = 0 wherever b = 0."""
    return np.zeros_like(a) if b == 0 else -(-a // b)


def _floor_divide(a: _Integers, b: _Integers | int, most: int) -> _Integers:
    """Greatest m up to `most` with m * b <= a, for a >= 0."""
    b = np.asarray(b, dtype=a.dtype)
    bounded = np.asarray(b > 0, dtype=bool)
    quotient = a // np.where(bounded, b, np.ones_like(b))
    return np.where(bounded, np.minimum(quotient, most), most)


def _least_between(x: _Integers, positives: int, n: int, e: int, q: int) -> _Integers:
    """Least m with q (x n - positives m) <= e m (n - m): rates at most e / q apart.

    The left side less the right is convex in m and at most 0 at m = n, so the condition holds
    from one root on. The root in floating point is within a step or two; integers settle it.
    """

    def holds(m: _Integers) -> NDArray[np.bool_]:
        return np.asarray(q * (x * n - positives * m) <= e * m * (n - m), dtype=bool)

    tolerance = e / q
    half, product = tolerance * n + positives, n * x.astype(np.float64)
    if half == 0:
        return np.zeros_like(x)
    root = 2 * product / (half + np.sqrt(np.maximum(half**2 - 4 * tolerance * product, 0)))
    m = np.clip(np.ceil(root), 0, n).astype(np.int64).astype(x.dtype)
    while not (ok := holds(m)).all():
        m = np.where(ok, m, m + 1)
    while (lower := (m > 0) & holds(m - 1)).any():
        m = np.where(lower, m - 1, m)
    return m


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
        (n,) mask of whom to count; everyone if None.
    """
    groups, predictions = np.asarray(groups), np.asarray(predictions)
    if part is not None:
        groups, predictions = groups[part], predictions[part]
    positive = np.bincount(groups[predictions == 1], minlength=k)
    return np.bincount(groups, minlength=k), positive


def unfairness(
    members: NDArray[np.int64], positives: NDArray[np.int64], form: Form = "to-overall"
) -> Fraction:
    """How far the groups' rates of positive predictions are apart, exactly.

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
    rates = [Fraction(int(p), int(m)) for p, m in zip(positives, members, strict=True) if m > 0]
    if not rates:
        return Fraction(0)
    if form == "to-overall":
        overall = Fraction(int(positives.sum()), int(members.sum()))
        return max(abs(rate - overall) for rate in rates)
    if form == "between-groups":
        return max(rates) - min(rates)
    return 1 - min(rates) / max(rates) if max(rates) > 0 else Fraction(0)
