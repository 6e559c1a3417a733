"""The findings of a leaderboard of attacks, in at most three sentences of plain English.

They state what the tests and intervals of the board support, and never more. The disclosure that
adds most is the greatest of several, so its interval and its test are corrected for all that it was
chosen from (Bonferroni); they must agree before anything is called significant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fpbench.base.text import format_percent, format_points, format_points_above
from fpbench.results.statistics.intervals import (
    LEAST_SEEDS,
    are_alike,
    estimate_bounds,
    widen_interval,
)
from fpbench.results.statistics.signed_ranks import ALPHA, compare_signed_ranks

if TYPE_CHECKING:
    from fpbench.results.leaderboard import Leaderboard, Line

_NOT_THE_MODEL = "not model"
"""Words in `limit_covers` of limits that do not cover what the model gives away."""
_MOST_NAMED = 2
"""Greatest number of attacks that are named as tied; more are counted."""


def summarise_leak(
    board: Leaderboard,
    leaks: NDArray[np.float64],
    reached: NDArray[np.float64],
    text: Callable[[str, int], str],
) -> tuple[str, ...]:
    """The findings of a leaderboard of one data set.

    `board`: attacks, ranked by `with_accuracy`. `leaks`: (lines, seeds) what the disclosure adds in
    each line; NaN where a line lacks a seed. `reached`: (lines, seeds) accuracy of each line
    without it. `text`: the text that all rows of a line have under a name; empty if they differ or
    have none.

    At most three sentences: the accuracy of naming the largest group, that of the best attack
    without the disclosure, and what the disclosure adds to it and could add. Of several models and
    disclosures, they describe those where the disclosure adds most to the best attack; they name
    the model with the best guesses without it, and the attack that gains more without being the
    best.
    """
    chosen = choose_line(board)
    if chosen is None:
        return ()
    sentences = []
    line = board.lines[chosen]
    if (baseline := line.measures.get("majority_accuracy")) is not None:
        sentences.append(
            f"Naming the largest group is right for {format_percent(baseline.mean)} %."
        )
    several = count_groups(board)
    if (without := line.measures.get("without_accuracy")) is not None:
        seen = list_words(text("adversary_sees", chosen).split(", ")) or "what it sees"
        sentences.append(
            f"From {seen} the best attack{_name_model(line, several)} guesses "
            f"{format_percent(without.mean)} % ({_name_best(board, chosen)})"
            f"{_describe_most(board, line, reached, text)}."
        )
    values = leaks[chosen][~np.isnan(leaks[chosen])]
    if len(values):
        counted = [f"{count} {kind}s" for kind, count in several.items() if count > 1]
        where = _name_model(line, several) or " here"
        of_all = f"Of the best attacks on {list_words(counted)}, the one{where} gains most"
        lead = f"{of_all}: the" if counted else "The"
        label = line.labels.get("disclosure", "")
        word = "report" if "facts" in line.measures else "claim"
        claim = f"{lead} {label}{'' if word in label.split() else f' {word}'}".replace("  ", " ")
        alone = "predictions" in text("adversary_sees", chosen)
        if not alone:  # the corrector sees predictions anyway, and the limit is not about them
            claim += ", with the predictions that it is about,"
        added = describe_added(values, "leak", _count_tried(board))
        added += _describe_others(board, leaks, chosen)
        limit = _describe_limit(line, text("limit_covers", chosen), alone=alone)
        sentences.append(f"{claim} {added}{limit}.")
    return tuple(sentences)


def _describe_most(
    board: Leaderboard,
    line: Line,
    reached: NDArray[np.float64],
    text: Callable[[str, int], str],
) -> str:
    """The model with the best guesses without the disclosure, if it is not the line's model.

    If some attack on this model does not see the predictions, the text says what they add; that
    they raise the accuracy, only if a test for all lines says so.
    """
    leading = _find_leading(board)
    most = max(leading.values(), key=lambda i: _get_mean(board.lines[i], "without_accuracy"))
    other = board.lines[most]
    reached_there = _get_mean(other, "without_accuracy")
    if other.labels["learner"] == line.labels["learner"] or (
        format_percent(reached_there) == format_percent(_get_mean(line, "without_accuracy"))
    ):
        return ""
    seen = text("adversary_sees", most).split(", ")
    blind = [
        i
        for i, each in enumerate(board.lines)
        if group_of(board, each) == group_of(board, other)
        and "predictions" in seen
        and {*text("adversary_sees", i).split(", ")} == {*seen} - {"predictions"}
    ]
    best = max(blind, key=lambda i: _get_mean(board.lines[i], "without_accuracy"), default=None)
    name = other.labels["learner"]
    if best is None:
        from_seen = list_words(seen) or "what it sees"
        return f"; the best on {name} guesses {format_percent(reached_there)} % from {from_seen}"
    before = _get_mean(board.lines[best], "without_accuracy")
    brought = reached[most] - reached[best]
    tested = _test(brought[~np.isnan(brought)], "without_accuracy", _count_tried(board))
    if tested is None or not (tested.clear and tested.low > 0):
        return (
            f"; the best on {name} guesses {format_percent(reached_there)} % from "
            f"{list_words(seen)}, and {format_percent(before)} % without the predictions"
        )
    return (
        f"; on {name} its predictions raise the best attack from {format_percent(before)} to "
        f"{format_percent(reached_there)} % ({tested.interval} points)"
    )


def _describe_others(board: Leaderboard, leaks: NDArray[np.float64], chosen: int) -> str:
    """The gain of attacks that are not the best, if it is significantly above the chosen line's."""
    tried, leading = _count_tried(board), {*_find_leading(board).values()}
    others = [i for i, line in enumerate(board.lines) if line.rank is not None and i not in leading]
    most = max(others, key=lambda i: _get_mean(board.lines[i], "leak"), default=None)
    if most is None:
        return ""
    line, gained = board.lines[most], _get_mean(board.lines[most], "leak")
    least = max(0.0, _get_mean(board.lines[chosen], "leak"))
    if not gained > least or format_points(gained) == format_points(least):
        return ""
    tested = _test(leaks[most][~np.isnan(leaks[most])], "leak", tried)
    if tested is None or not (tested.clear and tested.low > 0):
        return ""
    named = f"{name_attack(board, line)}{_name_model(line, count_groups(board))}"
    points = format_points(gained).lstrip("+")
    return f"; other attacks gain up to {points} points ({named}), but guess no more than the best"


def summarise_ranking(board: Leaderboard) -> tuple[str, ...]:
    """The first line of any leaderboard, and its certainty; empty if no line is ranked."""
    ranked = [line for line in board.lines if line.rank is not None]
    if len(ranked) < 2:
        return ()
    first, measure = ranked[0], board.glossary[board.rank_by]
    value = first.measures[board.rank_by]
    labels = [label for kind, label in first.labels.items()
              if label and len({line.labels.get(kind) for line in ranked}) > 1]  # fmt: skip
    spread = "" if value.low is None or value.high is None else (
        f" (95 %: {measure.write(value.low)} to {measure.write(value.high)})"
    )  # fmt: skip
    tied = sum(line.rank == first.rank for line in ranked) - 1
    beside = f"; {tied} other{'s are' if tied > 1 else ' is'} tied with it" if tied else ""
    about = ", ".join(filter(None, [board.scope, *board.apart]))
    extreme = "least" if board.least_first else "greatest"
    return (
        f"Of {len(ranked)} lines{f' ({about})' if about else ''}, {', '.join(labels)} "
        f"has the {extreme} {measure.heading}: {measure.write(value.mean)}{spread}{beside}.",
    )


def choose_line(board: Leaderboard) -> int | None:
    """The best attack with the largest leak of all models and disclosures; None without one."""
    leading = list(_find_leading(board).values())
    return max(leading, key=lambda i: _get_mean(board.lines[i], "leak"), default=None)


def count_groups(board: Leaderboard) -> dict[str, int]:
    """Number of components of each kind to choose from."""
    leading = _find_leading(board).values()
    return {kind: len({board.lines[i].labels[kind] for i in leading}) for kind in board.within}


def _find_leading(board: Leaderboard) -> dict[tuple[str, ...], int]:
    """The best line of each group that is ranked."""
    best: dict[tuple[str, ...], int] = {}
    for i, line in enumerate(board.lines):
        if line.rank is not None:
            best.setdefault(group_of(board, line), i)
    return best


def describe_added(values: NDArray[np.float64], name: str, tried: int = 1) -> str:
    """A sentence on what something adds, and whether that is significant.

    `values`: (n,) what it adds at each seed. `name`: of the measure, which seeds the resampling.
    `tried`: number of lines that it was chosen from.
    """
    mean, count = float(values.mean()), len(values)
    if count == 1:
        return f"{_format_points(mean)} at one seed (other seeds may differ)"
    if are_alike(values):
        return f"{_format_points(mean)} at each of {count} seeds"
    tested = _test(values, name, tried)
    if tested is None:
        return f"{_format_points(mean)}, not significant at {count} seeds"
    if tested.low <= 0 <= tested.high:
        return (
            f"adds nothing that {count} seeds can tell ({format_points(mean)} points, "
            f"{tested.interval})"
        )
    doubt = "" if tested.clear else (
        f", not significant at {count} seeds (signed ranks: p = {tested.p_value:.3f})"
    )  # fmt: skip
    return f"{_format_points(mean)} ({tested.interval}){doubt}"


class _Tested(NamedTuple):
    """Results of tests of a mean that may have been chosen from several."""

    low: float
    high: float
    interval: str
    """The two ends in words."""
    p_value: float
    """p-value of signed ranks against 0, corrected for all that the mean was chosen from."""

    @property
    def clear(self) -> bool:
        """Whether signed ranks differ significantly from 0."""
        return self.p_value < ALPHA


def _test(values: NDArray[np.float64], name: str, tried: int) -> _Tested | None:
    """Tests of the mean of values (n,), chosen from `tried`; None if too few or all equal.

    `name`: of the measure, which seeds the resampling.
    """
    if len(values) < LEAST_SEEDS or are_alike(values):
        return None
    share = _EACH_SIDE / tried
    ends = (
        estimate_bounds(values[None], name) if tried == 1 else widen_interval(values, name, share)
    )
    low, high = (float(np.squeeze(end)) for end in ends)
    at_once = f" of {tried} at once" if tried > 1 else ""
    p_value = float(compare_signed_ranks(values[None], np.zeros((1, len(values))))[0]) * tried
    interval = f"95 %{at_once}: {format_points(low)} to {format_points(high)}"
    return _Tested(low, high, interval, min(p_value, 1.0))


def _count_tried(board: Leaderboard) -> int:
    return sum(line.rank is not None for line in board.lines)


_EACH_SIDE = 0.025
"""Probability that a mean lies beyond each end of an interval."""


def _format_points(mean: float) -> str:
    text = format_points(mean)
    verb = "takes away" if text.startswith("-") else "adds"
    return f"{verb} {text.lstrip('+-')} points"


def _describe_limit(line: Line, covers: str, *, alone: bool) -> str:
    limit = line.measures.get("limit")
    if limit is None:
        return ""
    besides = ", apart from what the model itself gives away" if _NOT_THE_MODEL in covers else ""
    return (
        f"; an attacker who knows the population gains at most {format_points_above(limit.mean)} "
        f"points on average from {'it' if alone else 'the claim alone'}"
        f"{besides}"
    )


def _name_best(board: Leaderboard, chosen: int) -> str:
    """The attack, and the attacks that do not differ significantly from it."""
    line = board.lines[chosen]
    alike = [
        name_attack(board, each)
        for each in board.lines
        if group_of(board, each) == group_of(board, line)
        and each.rank == line.rank
        and each is not line
    ]
    name = name_attack(board, line)
    if not alike:
        return name
    others = list_words(alike) if len(alike) <= _MOST_NAMED else f"{len(alike)} others"
    return f"{name}; tied with {others}"


def name_attack(board: Leaderboard, line: Line, *, adversary: bool = False) -> str:
    """The name of an attack: the adversary, and all else that differs between ranked attacks.

    `adversary`: whether the name is for the adversary's guess, before the claim is used.
    """
    ranked = [each for each in board.lines if each.rank is not None]
    differing = [
        kind
        for kind in board.kinds
        if kind in ("adversary", "corrector") and len({each.labels[kind] for each in ranked}) > 1
    ]
    kinds = ["adversary"] if adversary or not differing else differing
    return " + ".join(line.labels[kind] for kind in kinds if line.labels.get(kind))


def _name_model(line: Line, several: dict[str, int]) -> str:
    return f" on {line.labels['learner']}" if several.get("learner", 1) > 1 else ""


def group_of(board: Leaderboard, line: Line) -> tuple[str, ...]:
    """The labels that the lines of a group share."""
    return tuple(line.labels[kind] for kind in board.within)


def _get_mean(line: Line, name: str) -> float:
    value = line.measures.get(name)
    return float("-inf") if value is None else value.mean


def list_words(words: Sequence[str]) -> str:
    """Words as a list: a, b and c."""
    named = [word for word in words if word]
    return " and ".join(filter(None, [", ".join(named[:-1]), *named[-1:]]))
