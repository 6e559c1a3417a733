"""Two runs side by side: what moved, and whether the changes are significant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fpbench.base.errors import InputError, suggest_name
from fpbench.base.sheet import Column, Sheet
from fpbench.components.measures import Measure
from fpbench.components.names import ATTACK, AUDIT
from fpbench.results.intervals import Interval, estimate_interval
from fpbench.results.leaderboard import format_ends, format_p_value, make_interval_data
from fpbench.results.ranking import choose_measure, name_measure
from fpbench.results.rows.lines import Tallies, describe_aspects
from fpbench.results.signed_ranks import (
    ALPHA,
    adjust_p_values,
    count_differing,
    find_opposed,
    note_contrary,
    note_too_few,
)
from fpbench.store.results import Results

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
        ours, theirs = first.find_lines(audits=audits), second.find_lines(audits=audits)
        if ours and theirs:
            one, other = first.names(ours), second.names(theirs)
            names, both = one | other, one & other
            measured |= names
            chosen = name_measure(new.glossary, measure, names)
            by = choose_measure(new.glossary, chosen, both)
            if by not in both:
                by = choose_measure(new.glossary, chosen, names)
            if by in names:
                before = first.labels.loc[ours, list(kinds)]
                after = second.labels.loc[theirs, list(kinds)]
                before = before.map(lambda label: pairs.get(label, label))
                contrasts.append(_make_contrast(first, second, before, after, kinds, by))
    if measured and not contrasts:
        new.glossary.find(measure, measured, "measure to compare")
    if not any(each.moves for each in contrasts):
        raise InputError("the runs have no combination in common; name labels that stand for each "
                         "other with --pair OLD=NEW")  # fmt: skip
    return [each for each in contrasts if each.moves]


def _check_pairs(first: Tallies, second: Tallies, pairs: Mapping[str, str]) -> None:
    for tally, labels in ((first, pairs), (second, pairs.values())):
        known = {*tally.labels.to_numpy().ravel()} - {""}
        for label in labels:
            if label not in known:
                raise InputError(
                    f"--pair: no label {label!r} in that run; {suggest_name(label, known)}"
                )


def _make_contrast(
    first: Tallies,
    second: Tallies,
    before: pd.DataFrame,
    after: pd.DataFrame,
    kinds: tuple[str, ...],
    by: str,
) -> Contrast:
    """The changes of the lines of two runs.

    `before`, `after`: (lines, kinds) their labels, which are alike if the lines correspond.
    """
    swaps = {
        kind: (str(before[kind].iloc[0]), str(after[kind].iloc[0]))
        for kind in kinds
        if before[kind].nunique() == after[kind].nunique() == 1
        and before[kind].iloc[0] != after[kind].iloc[0]
    }
    before, after = (side.assign(**dict.fromkeys(swaps, "")) for side in (before, after))
    before = before.drop_duplicates(keep="last")
    shared = after.reset_index(names="new").merge(before.reset_index(names="old"))
    only_old, only_new = len(before) - len(shared), len(after) - len(shared)
    one, other = shared["old"].to_numpy(), shared["new"].to_numpy()
    valued = (first.column(by).counts[one] > 0) | (second.column(by).counts[other] > 0)
    if valued.any():
        one, other = one[valued], other[valued]
    labels = second.list_labels(other, kinds)
    earlier, later = _pair_seeds(first, second, one, other, by)
    why = _list_incomparable(first, second, one, other)
    alike = np.array([not text for text in why], np.bool_)
    p_values = np.full(len(one), np.nan)
    sides = later[alike], earlier[alike]
    p_values[alike] = adjust_p_values(*sides)
    notes = [*note_contrary(find_opposed(*sides), "so they count as not significant"),
             *note_too_few(count_differing(*sides))]  # fmt: skip
    moves = [
        Move(
            labels=labels[i],
            old=_average_shared(earlier[i], later[i], by) or first.measures(int(one[i])).get(by),
            new=_average_shared(later[i], earlier[i], by) or second.measures(int(other[i])).get(by),
            difference=_average_shared(later[i] - earlier[i], later[i], by) if alike[i] else None,
            p=None if np.isnan(p_values[i]) else float(p_values[i]),
            why_not=why[i],
        )
        for i in range(len(one))
    ]
    moves.sort(key=_sort_key)
    used = tuple(kind for kind in kinds if any(move.labels[kind] for move in moves))
    return Contrast(second.glossary[by], used, swaps, tuple(moves), only_old, only_new,
                    tuple(notes))  # fmt: skip


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


def contrast_sheet(contrast: Contrast, most: int | None = None) -> Sheet:
    """A comparison as a table."""
    moves, write = contrast.moves[:most], contrast.measure.write
    varying = [kind for kind in contrast.kinds if len({move.labels[kind] for move in moves}) > 1]
    rows = [
        (
            *(move.labels[kind] for kind in varying),
            *(write(each.mean) if each else "-" for each in (move.old, move.new, move.difference)),
            format_ends(move.difference, write), format_p_value(move.p) or "-", move.word,
        )
        for move in moves
    ]  # fmt: skip
    shared = [f"{kind} {contrast.moves[0].labels[kind]}" for kind in contrast.kinds
              if kind not in varying and kind not in contrast.swaps]  # fmt: skip
    swapped = [f"{kind} {old} and then {new}" for kind, (old, new) in contrast.swaps.items()]
    notes = list(contrast.notes)
    for count, which in ((contrast.only_old, "first"), (contrast.only_new, "second")):
        if count:
            notes.append(f"{count} combination{'s' * (count != 1)} only in the {which} run")
    if any(move.p is not None for move in moves):
        notes.append(_TESTED)
    words = [Column(kind, number=False) for kind in varying]
    numbers = [Column(name) for name in ("old", "new", "difference", "95 %", "p")]
    return Sheet(
        title=f"{contrast.measure.heading}: the second run against the first",
        about=" · ".join([*swapped, *shared]),
        columns=(*words, *numbers, Column("moved", number=False)),
        rows=tuple(rows),
        notes=tuple(notes),
        unshown=len(contrast.moves) - len(moves),
        spare=("95 %", "p", "old"),
    )


_TESTED = 'p tests signed ranks, not means; "more" and "less" need both to agree'


def contrast_data(contrast: Contrast) -> dict[str, Any]:
    """A comparison as plain data, for JSON."""
    return {
        "measure": contrast.measure.name,
        "kinds": list(contrast.kinds),
        "swaps": {kind: list(labels) for kind, labels in contrast.swaps.items()},
        "only_old": contrast.only_old,
        "only_new": contrast.only_new,
        "notes": list(contrast.notes),
        "moves": [
            {
                "labels": dict(move.labels),
                "old": move.old and make_interval_data(move.old),
                "new": move.new and make_interval_data(move.new),
                "difference": move.difference and make_interval_data(move.difference),
                "p": move.p,
                "moved": move.word,
            }
            for move in contrast.moves
        ],
    }
