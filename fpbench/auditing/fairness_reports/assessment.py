"""What a fairness report gives away about people's groups, as a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.auditing.fairness_reports.facts import Facts, Floats, Mask
from fpbench.auditing.fairness_reports.fairness_report import FairnessReport
from fpbench.auditing.fairness_reports.linear_programs import prove
from fpbench.auditing.fairness_reports.maximum_entropy import condition_beliefs
from fpbench.base.errors import InputError, suggest_name
from fpbench.base.text import percent
from fpbench.components.beliefs import check_beliefs

if TYPE_CHECKING:
    from pandas import DataFrame

_UNSURE = 0.05, 0.95
"""Beliefs in the proven group between these were unsure."""
_TRIED = 100
"""Cells, the largest first, from which shares of groups are learnt."""


@dataclass(frozen=True, eq=False)
class Assessment:
    """What an adversary learns from a report; prints itself as a verdict.

    Attributes
    ----------
    without, with_
        Share of people whose likeliest group is right, by beliefs before and after the report.
    measured
        Whether the shares were measured on true groups; else they are what the beliefs expect.
    proven
        (n,) whose group follows from the report, whatever anybody believes.
    proven_unsure
        (n,) those of them of whom the adversary was unsure: it gave the group between .05 and .95.
    posterior
        (n, K) beliefs after the report.
    error_bound
        Root mean square distance of the undecided people's beliefs to the optimum, at most.
    facts
        What the report tells about these people.
    max_leak, max_proven
        What may be given away at most.
    """

    without: float
    with_: float
    measured: bool
    proven: Mask
    proven_unsure: Mask
    posterior: Floats = field(repr=False)
    error_bound: float
    facts: Facts = field(repr=False)
    max_leak: float
    max_proven: int

    @property
    def leak(self) -> float:
        """What the report adds to the share of people who are guessed right."""
        return self.with_ - self.without

    @property
    def passes(self) -> bool:
        """Whether no more is given away than may be."""
        return self.leak <= self.max_leak and int(self.proven.sum()) <= self.max_proven

    @property
    def verdict(self) -> str:
        """One sentence."""
        n, proven = len(self.proven), int(self.proven.sum())
        whose = f"the group of {proven:,} of {n:,} people" if proven else "nobody's group"
        found = (
            f"{whose} is proven by it, and guesses get {percent(self.with_)} % of all people right "
            f"instead of {percent(self.without)} %"
        )
        allowed = f"at most {self.max_proven:,} proven, a leak of {percent(self.max_leak)} points"
        if self.passes:
            return f"Within the limits ({allowed}): {found}."
        return f"Do not publish: {found} ({allowed})."

    def __str__(self) -> str:
        kind = "noisy counts" if self.facts.noisy.any() else "counts"
        how = "measured on their true groups" if self.measured else "as the beliefs expect"
        return "\n".join(
            (
                self.verdict,
                f"  leak: {100 * self.leak:+.2f} points, {how}",
                f"  proven: {int(self.proven.sum()):,}, of whom the adversary was unsure of "
                f"{int(self.proven_unsure.sum()):,}; more may be provable than was found",
                f"  by {int((~self.facts.derived).sum()):,} sets of people whose {kind} by group "
                f"follow from the report; beliefs of the others are within {self.error_bound:.3f} "
                "of the optimum (root mean square)",
            )
        )


def assess(
    report: FairnessReport,
    X: DataFrame,
    predictions: ArrayLike,
    labels: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    beliefs: ArrayLike | None = None,
    *,
    max_leak: float = 0.01,
    max_proven: int = 0,
    seconds: float = 30.0,
    error: float = 0.03,
) -> Assessment:
    """What a report gives away to somebody who knows everybody's columns and predictions.

    Parameters
    ----------
    report
        What is to be published, or was.
    X
        n rows, the people of the report.
    predictions, labels
        (n,) in {0, 1}; labels are needed by metrics that look at them.
    groups
        (n,) names of the true groups, to measure what is guessed right.
    beliefs
        (n, K) what the adversary believes before, calibrated; columns in the order of
        `report.groups`. By default the groups' shares, of `groups` or as the largest cells
        of the report have them.
    max_leak, max_proven
        What may be given away: leak as a share, and number of people proven.
    seconds
        Limit of the linear programs, and of the beliefs after them.
    error
        `error_bound` where beliefs are near enough.

    Raises
    ------
    InputError
        If the report, groups or beliefs are about other people or groups.
    ContradictionError
        If published cells contradict each other.
    """
    facts = report.facts(X, predictions, labels)
    truth = None if groups is None else _code_groups(groups, report.groups, facts)
    if beliefs is None:
        prior = np.tile(_find_shares(facts, truth), (facts.people, 1))
    else:
        prior = check_beliefs(beliefs)
        if prior.shape != (facts.people, facts.groups):
            raise InputError(
                f"beliefs must be ({facts.people}, {facts.groups}), a probability of each of "
                f"{', '.join(report.groups)} for each person of X, not {prior.shape}"
            )
    possible = prove(facts, seconds=seconds)
    proven = possible.sum(axis=1) == 1
    after = condition_beliefs(facts, prior, possible, error=error, seconds=seconds)
    before = prior[np.arange(len(prior)), possible.argmax(axis=1)]
    unsure = proven & (before > _UNSURE[0]) & (before < _UNSURE[1])
    if truth is None:
        shares = [float(chances.max(axis=1).mean()) for chances in (prior, after.beliefs)]
    else:
        shares = [
            float((chances.argmax(axis=1) == truth).mean()) for chances in (prior, after.beliefs)
        ]
    return Assessment(
        shares[0], shares[1], truth is not None, proven, unsure, after.beliefs, after.error_bound,
        facts, max_leak, max_proven,
    )  # fmt: skip


def _code_groups(groups: ArrayLike, names: Sequence[str], facts: Facts) -> NDArray[np.intp]:
    """Codes of the true groups, which must be those that the report is about."""
    given = np.asarray(groups)
    if given.shape != (facts.people,):
        raise InputError(f"groups must be {facts.people} names, one a person of X")
    where = {name: code for code, name in enumerate(names)}
    values, inverse = np.unique(given.astype(str), return_inverse=True)
    for value in values:
        if value not in where:
            row = int(np.flatnonzero(given.astype(str) == value)[0])
            raise InputError(
                f"groups, row {row}: {str(value)!r} is no group of the report; "
                f"{suggest_name(str(value), names)}"
            )
    truth = np.array([where[value] for value in values])[inverse]
    counts = facts.count(np.eye(facts.groups)[truth])
    wrong = ~facts.noisy & ((counts < facts.low) | (counts > facts.high)).any(axis=1)
    if wrong.any():
        first = int(np.flatnonzero(wrong)[0])
        k = int(np.flatnonzero((counts < facts.low)[first] | (counts > facts.high)[first])[0])
        raise InputError(
            f"the report is not of these groups: {counts[first, k]:g} people are {names[k]!r} in "
            f"{facts.name(first)}, and it says {_range(facts.low[first, k], facts.high[first, k])}"
        )
    return truth


def _find_shares(facts: Facts, truth: NDArray[np.intp] | None) -> Floats:
    """(K,) shares of the groups: true, or among the largest published cells that share nobody."""
    if truth is not None:
        return np.bincount(truth, minlength=facts.groups) / len(truth)
    told = np.flatnonzero((facts.low == facts.high).all(axis=1) & ~facts.derived)
    counts = np.ones(facts.groups)  # one of each, for where nothing is told
    covered = np.zeros(facts.people, np.bool_)
    for number in told[np.argsort(-facts.sizes[told], kind="stable")][:_TRIED]:
        members = facts.sets[[number]].indices
        if not covered[members].any():
            covered[members] = True
            counts += np.maximum(facts.low[number], 0)
    shares: Floats = counts / counts.sum()
    return shares


def _range(low: float, high: float) -> str:
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"
