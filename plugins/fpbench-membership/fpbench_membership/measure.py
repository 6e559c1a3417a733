"""How well an attack tells members from others: overall, by group, and the gap between groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench import InputError
from fpbench_membership._checks import Floats, check_rows, to_array, to_codes, to_floats

if TYPE_CHECKING:
    from pandas import DataFrame

RATES = {"tpr_at_0p1_percent": 0.001, "tpr_at_1_percent": 0.01}
"""Columns of true-positive rates, and the false-positive rate of each."""


@dataclass(frozen=True, eq=False)
class MembershipReport:
    """How well an attack tells members from others.

    Attributes
    ----------
    table
        A row for everybody (`group` is empty) and one for each group. `members` and `others` are
        numbers of people; `tpr_at_0p1_percent` and `tpr_at_1_percent` the shares of members that
        are found where .1 % and 1 % of the others are taken for members; `auc`, with its standard
        error `auc_error`; `advantage`, true minus false positives at a threshold that was chosen on
        other people. NaN, not 0, if there are too few people to measure it.
    """

    table: DataFrame

    def __str__(self) -> str:
        return self._show().to_string(index=False)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return self._show().to_html(index=False)

    def _show(self) -> DataFrame:
        """The table with names of groups that can be printed."""
        names = [
            "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)
            for name in self.table["group"].replace({"": "everybody"})
        ]
        return self.table.assign(group=names)

    def find_gap(self, measure: str) -> float:
        """Greatest minus least value of a measure over groups; NaN if fewer than two have it.

        InputError if there is no such measure.
        """
        if measure not in list(self.table.columns[3:]):
            names = ", ".join(map(str, self.table.columns[3:]))
            raise InputError(f"there is no measure {measure!r}; there are {names}")
        values = self.table[measure].to_numpy(np.float64)[1:]
        known = values[~np.isnan(values)]
        return float(np.ptp(known)) if len(known) > 1 else float("nan")

    def find_gap_error(self) -> float:
        """Standard error of the gap of `auc`, the difference of two groups.

        A gap is never below 0: groups that do not differ have a gap of about this size.
        """
        groups = self.table.iloc[1:].dropna(subset=["auc", "auc_error"])
        if len(groups) < 2:
            return float("nan")
        ends = groups["auc"].argmin(), groups["auc"].argmax()
        errors = groups["auc_error"].to_numpy(np.float64)
        return float(np.hypot(*(errors[end] for end in ends)))


def measure_membership(
    scores: ArrayLike,
    members: ArrayLike,
    groups: ArrayLike,
    group_names: tuple[str, ...] | None = None,
    *,
    rng: np.random.Generator | int | None = None,
) -> MembershipReport:
    """How well scores tell members of the training data from others.

    Parameters
    ----------
    scores
        (n,) of an attack: the greater, the likelier a member.
    members
        (n,) true or false: the truth.
    groups
        (n,) group codes, or names.
    group_names
        Names of the K groups; by default those that occur.
    rng
        Halves people, to choose thresholds on other people than they are tried on: a generator, or
        a seed.

    Raises
    ------
    InputError
        If shapes do not agree, a score is not a number, or there are no members, or no others.

    Notes
    -----
    Every ROC curve is that of the row's own people, with straight lines between its points: among
    equal scores an adversary tosses a coin, so that constant scores have TPR = FPR. A rate at FPR f
    needs 1 / f others or more; with fewer, it would be that of nobody. The AUC's standard error is
    that of DeLong et al. (Biometrics 1988).

    The advantage of the best threshold is above 0 for any attack, the more so the fewer people
    there are, so that small groups would seem more vulnerable (Kulynych et al., PETS 2022, find as
    much). Here half of the people choose the threshold and the others try it, and the other way
    round; all groups have the same threshold.
    """
    import pandas as pd

    check_rows(scores=scores, members=members, groups=groups)
    generator = np.random.default_rng(rng)
    values, inside = to_floats("scores", scores), to_array("members", members, "b")
    codes, names = to_codes(groups, group_names)
    if not values.shape == inside.shape == codes.shape or values.ndim != 1:
        raise InputError(
            f"shapes do not agree: scores {values.shape}, members {inside.shape}, groups "
            f"{codes.shape}; want (n,) each"
        )
    if inside.all() or not inside.any():
        raise InputError("members: some people must be members, and some not")
    taken = _try_thresholds(values, inside, generator)
    everybody = np.ones(len(values), bool)
    rows = [{"group": "", **_measure(values, inside, taken, everybody)}]
    rows += [
        {"group": name, **_measure(values, inside, taken, codes == code)}
        for code, name in enumerate(names)
    ]
    return MembershipReport(pd.DataFrame(rows))


def _measure(
    scores: Floats, members: NDArray[np.bool_], taken: NDArray[np.bool_], chosen: NDArray[np.bool_]
) -> dict[str, float]:
    """The measures of some people."""
    inside, outside = scores[chosen & members], scores[chosen & ~members]
    auc, error = estimate_auc(inside, outside)
    rates = {name: find_tpr(inside, outside, fpr) for name, fpr in RATES.items()}
    known = len(inside) and len(outside)
    advantage = taken[chosen & members].mean() - taken[chosen & ~members].mean() if known else None
    return {
        "members": len(inside), "others": len(outside), **rates, "auc": auc, "auc_error": error,
        "advantage": float("nan") if advantage is None else float(advantage),
    }  # fmt: skip


def find_tpr(inside: Floats, outside: Floats, fpr: float) -> float:
    """Share of members (k,) that are found at a false-positive rate; NaN if others are too few."""
    if not len(inside) or len(outside) * fpr < 1 - 1e-9:
        return float("nan")
    false, true = _trace_roc(inside, outside)
    return float(np.interp(fpr, false, true))


def _trace_roc(inside: Floats, outside: Floats) -> tuple[Floats, Floats]:
    """False- and true-positive rates of all thresholds, ascending; without vertical steps."""
    thresholds = np.unique(np.concatenate([inside, outside]))
    above = [
        (len(part) - np.searchsorted(np.sort(part), thresholds, side="left")) / len(part)
        for part in (outside, inside)
    ]
    false, true = (np.concatenate([[0.0], rates[::-1]]) for rates in above)
    last = np.append(false[1:] != false[:-1], True)  # the highest point above each rate
    return false[last], true[last]


def estimate_auc(inside: Floats, outside: Floats) -> tuple[float, float]:
    """Area under the ROC curve and its standard error; NaN without members or others."""
    from scipy.stats import rankdata

    k, m = len(inside), len(outside)
    if not k or not m:
        return float("nan"), float("nan")
    ranks = rankdata(np.concatenate([inside, outside]))
    # Share of the others below each member, and of the members above each other.
    below = (ranks[:k] - rankdata(inside)) / m
    above = 1 - (ranks[k:] - rankdata(outside)) / k
    auc = float(below.mean())
    if k < 2 or m < 2:
        return auc, float("nan")
    return auc, float(np.sqrt(below.var(ddof=1) / k + above.var(ddof=1) / m))


def _try_thresholds(
    scores: Floats, members: NDArray[np.bool_], rng: np.random.Generator
) -> NDArray[np.bool_]:
    """(n,) whether the attack takes a person for a member, by a threshold chosen on others."""
    first = np.zeros(len(scores), bool)
    for part in (np.flatnonzero(members), np.flatnonzero(~members)):
        first[rng.permutation(part)[: len(part) // 2]] = True
    taken = np.zeros(len(scores), bool)
    for chosen in (first, ~first):
        inside, outside = scores[chosen & members], scores[chosen & ~members]
        if len(inside) and len(outside):
            taken[~chosen] = scores[~chosen] >= _choose_threshold(inside, outside)
    return taken


def _choose_threshold(inside: Floats, outside: Floats) -> float:
    """The threshold with the greatest difference of true and false positives."""
    thresholds = np.unique(np.concatenate([inside, outside]))
    true, false = (
        1 - np.searchsorted(np.sort(part), thresholds, side="left") / len(part)
        for part in (inside, outside)
    )
    return float(thresholds[np.argmax(true - false)])
