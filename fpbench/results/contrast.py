"""Two runs side by side: what moved, and whether the changes are significant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fpbench.base.errors import InputError, suggest_name
from fpbench.components.measures import Measure
from fpbench.components.names import ATTACK, AUDIT
from fpbench.results.ranking import choose_measure, name_measure
from fpbench.results.rows.comparability import describe_aspects
from fpbench.results.rows.lines import Tallies
from fpbench.results.statistics.intervals import Interval, estimate_interval
from fpbench.results.statistics.signed_ranks import (
    ALPHA,
    adjust_p_values,
    count_differing,
    find_opposed,
    note_contrary,
    note_too_few,
)
from fpbench.store.results import Results

_Key = tuple[str, ...]
_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Move:
    """A combination that both runs have."""

    labels: Mapping[str, str]
    """Its labels in the second run."""
    old: Interval | None
    """The mean of the first run over the seeds that both have, or over all if they share none; None
    without a value."""
    new: Interval | None
    difference: Interval | None
    """The second run minus the first, over the seeds that both have."""
    p: float | None
    """p-value of the paired comparison, for all of them together."""
    why_not: str
    """Why they are not compared, if they are not."""

    @property
    def word(self) -> str:
        """The outcome in a word."""
        if self.why_not:
            return self.why_not
        if self.p is None or self.difference is None:
            return "no shared seed"
        if self.difference.mean == 0 and self.difference.deviation in (0, None):
            return "the same"
        if self.p >= ALPHA:
            return "not significant"
        return "more" if self.difference.mean > 0 else "less"


@dataclass(frozen=True)
class Contrast:
    """The attacks or the audits of two runs."""

    measure: Measure
    kinds: tuple[str, ...]
    swaps: Mapping[str, tuple[str, str]]
    """By kind: the label of the first run, and the label of the second that replaces it."""
    moves: tuple[Move, ...]
    """The combinations of both runs; the largest significant moves come first."""
    only_old: int
    """Combinations that only the first run has."""
    only_new: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Side:
    """The attacks or the audits of one of the runs."""

    tally: Tallies
    lines: Sequence[int]

    @classmethod
    def of(cls, tally: Tallies, audits: bool) -> _Side:
        """The side of a run."""
        mine = [i for i in range(len(tally)) if bool(tally.labels(i)["auditor"]) is audits]
        return cls(tally, mine)

    def measured(self) -> set[str]:
        """Names of the measures that some lines have."""
        return self.tally.names(self.lines)


def read_pairs(texts: Iterable[str]) -> dict[str, str]:
    """Labels of the first run and those of the second that replace them, from OLD=NEW.

    Labels may hold signs of equality, mostly the same number each: the middle sign separates them.

    Raises InputError if there is no sign of equality.
    """
    pairs = {}
    for text in texts:
        parts = text.split("=")
        middle = len(parts) // 2
        old, new = "=".join(parts[:middle]).strip(), "=".join(parts[middle:]).strip()
        if not old or not new:
            raise InputError(f"{text!r} is not a pair of labels: write OLD=NEW")
        pairs[old] = new
    return pairs


def compare(
    old: Results, new: Results, measure: str, pairs: Mapping[str, str] | None = None
) -> list[Contrast]:
    """The changes of the attacks, and of the audits, from one run to another, if both have any.

    `measure`: what to compare; if it is a measure of attacks, audits are compared by the measure
    that ranks them. `pairs`: labels of the first run, and those of the second that replace them.

    Raises InputError if they have no combination in common, or neither has the measure.

    A kind for which each run has one label, but not the same, is what the comparison is about: one
    label replaces the other. Seeds are paired by number: the same seed gives the same split of the
    same data. Wilcoxon's signed-rank test, corrected for all combinations (Holm), tests whether
    seeds are as likely to rise by any amount as to fall by it. The outcome is `more` or `less` only
    if the test rejects this, and the mean has moved in the direction of the ranks.
    """
    contrasts, measured = [], set()
    first, second, pairs = Tallies(old), Tallies(new), pairs or {}
    _check_pairs(first, second, pairs)
    for kinds, audits in ((ATTACK, False), (AUDIT, True)):
        ours, theirs = _Side.of(first, audits), _Side.of(second, audits)
        if ours.lines and theirs.lines:
            one, other = ours.measured(), theirs.measured()
            names, both = one | other, one & other
            measured |= names
            chosen = name_measure(new.glossary, measure, names)
            by = choose_measure(new.glossary, chosen, both)
            if by not in both:
                by = choose_measure(new.glossary, chosen, names)
            if by in names:
                contrasts.append(_make_contrast(ours, theirs, kinds, by, pairs))
    if measured and not contrasts:
        new.glossary.find(measure, measured, "measure to compare")
    if not any(each.moves for each in contrasts):
        raise InputError("the runs have no combination in common; name labels that stand for each "
                         "other with --pair OLD=NEW")  # fmt: skip
    return [each for each in contrasts if each.moves]


def _check_pairs(first: Tallies, second: Tallies, pairs: Mapping[str, str]) -> None:
    for tally, labels in ((first, pairs), (second, pairs.values())):
        known = {label for i in range(len(tally)) for label in tally.labels(i).values() if label}
        for label in labels:
            if label not in known:
                raise InputError(
                    f"--pair: no label {label!r} in that run; {suggest_name(label, known)}"
                )


def _make_contrast(
    ours: _Side, theirs: _Side, kinds: tuple[str, ...], by: str, pairs: Mapping[str, str]
) -> Contrast:
    first, second = ours.tally, theirs.tally
    swaps = _find_swaps(ours, theirs, kinds, pairs)
    before = {_make_key(first.labels(i), kinds, swaps, pairs): i for i in ours.lines}
    after = {_make_key(second.labels(i), kinds, swaps, {}): i for i in theirs.lines}
    shared = [key for key in after if key in before]
    valued = [
        key
        for key in shared
        if by in first.measures(before[key]) or by in second.measures(after[key])
    ]
    only_old, only_new = len(before) - len(shared), len(after) - len(shared)
    shared = valued or shared
    one = np.array([before[key] for key in shared], np.intp)
    other = np.array([after[key] for key in shared], np.intp)
    earlier, later = _pair_seeds(first, second, one, other, by)
    why = _list_incomparable(first, second, one, other)
    alike = np.array([not text for text in why], np.bool_)
    p_values = np.full(len(shared), np.nan)
    sides = later[alike], earlier[alike]
    p_values[alike] = adjust_p_values(*sides)
    notes = [*note_contrary(find_opposed(*sides), "so they count as not significant"),
             *note_too_few(count_differing(*sides))]  # fmt: skip
    moves = [
        Move(
            labels={kind: second.labels(int(other[i]))[kind] for kind in kinds},
            old=_average_shared(earlier[i], later[i], by) or first.measures(int(one[i])).get(by),
            new=_average_shared(later[i], earlier[i], by) or second.measures(int(other[i])).get(by),
            difference=_average_shared(later[i] - earlier[i], later[i], by) if alike[i] else None,
            p=None if np.isnan(p_values[i]) else float(p_values[i]),
            why_not=why[i],
        )
        for i in range(len(shared))
    ]
    moves.sort(key=_sort_key)
    used = tuple(kind for kind in kinds if any(move.labels[kind] for move in moves))
    return Contrast(second.glossary[by], used, swaps, tuple(moves), only_old, only_new,
                    tuple(notes))  # fmt: skip


def _find_swaps(
    ours: _Side, theirs: _Side, kinds: Sequence[str], pairs: Mapping[str, str]
) -> dict[str, tuple[str, str]]:
    """Kinds for which each run has one label, but not the same."""
    swaps = {}
    for kind in kinds:
        here = {pairs.get(label := ours.tally.labels(i)[kind], label) for i in ours.lines}
        there = {theirs.tally.labels(i)[kind] for i in theirs.lines}
        if len(here) == len(there) == 1 and here != there:
            swaps[kind] = (here.pop(), there.pop())
    return swaps


def _make_key(
    labels: Mapping[str, str],
    kinds: Sequence[str],
    swaps: Mapping[str, tuple[str, str]],
    pairs: Mapping[str, str],
) -> _Key:
    return tuple("" if kind in swaps else pairs.get(labels[kind], labels[kind]) for kind in kinds)


def _pair_seeds(
    first: Tallies, second: Tallies, one: NDArray[np.intp], other: NDArray[np.intp], by: str
) -> tuple[_Floats, _Floats]:
    """(combinations, seeds) of the seeds that both runs have."""
    _, ours, theirs = np.intersect1d(first.seeds, second.seeds, return_indices=True)
    return first.by_seed(by)[one][:, ours], second.by_seed(by)[other][:, theirs]


def _list_incomparable(
    first: Tallies, second: Tallies, one: NDArray[np.intp], other: NDArray[np.intp]
) -> list[str]:
    """Promises and proofs in which the lines differ, so that their numbers differ in meaning."""
    ours, theirs = describe_aspects(first), describe_aspects(second)
    silent = [""] * max(len(first), len(second))
    reasons = []
    for i, j in zip(one.tolist(), other.tolist(), strict=True):
        differing_aspects = [
            f"{aspect}: {before or 'none'}, then {after or 'none'}"
            for aspect in {**ours, **theirs}
            if (before := ours.get(aspect, silent)[i]) != (after := theirs.get(aspect, silent)[j])
        ]
        reasons.append(
            f"not comparable ({'; '.join(differing_aspects)})" if differing_aspects else ""
        )
    return reasons


def _average_shared(values: _Floats, others: _Floats, by: str) -> Interval | None:
    """The mean over the seeds at which both sides have a value; None without such a seed."""
    known = values[~np.isnan(values) & ~np.isnan(others)]
    return estimate_interval(known, by) if len(known) else None


def _sort_key(move: Move) -> tuple[bool, float]:
    significant = move.p is not None and move.p < ALPHA
    return not significant, -abs(move.difference.mean) if move.difference else 0.0
