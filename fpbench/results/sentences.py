"""What a leaderboard of attacks says, in at most three sentences of plain English.

They say what the tests and intervals of the board say, and never more. The disclosure that adds
most is the greatest of several, and so its interval and its test are for all that it was chosen
from (Bonferroni); they must agree before anything is called significant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fpbench.base.text import percent, points_above, signed_points
from fpbench.results.statistics.intervals import LEAST_SEEDS, all_alike, bounds, widest
from fpbench.results.statistics.signed_ranks import ALPHA, signed_rank

if TYPE_CHECKING:
    from fpbench.results.leaderboard import Leaderboard, Line

_NOT_THE_MODEL = "not model"
"""In `limit_covers` of limits that do not cover what the model gives away."""
_MOST_NAMED = 2
"""Attacks that are named as tied; more are counted."""


def summarise_leak(
    board: Leaderboard, leaks: NDArray[np.float64], text: Callable[[str, int], str]
) -> tuple[str, ...]:
    """What a leaderboard of one data set says.

    `board`: attacks, ranked by `with_accuracy`. `leaks`: (lines, seeds) what the disclosure adds in
    each line; NaN where a line lacks a seed. `text`: what all rows of a line say under a name;
    empty where they differ or say nothing.

    At most three sentences: what naming the largest group reaches, what the best attack reaches
    without the disclosure, and what the disclosure adds to it and could add. Of several models and
    disclosures they are about those where it adds most to the best attack, and name the model of
    which most is guessed without it.
    """
    chosen = choose_line(board)
    if chosen is None:
        return ()
    sentences = []
    line = board.lines[chosen]
    if (baseline := line.measures.get("majority_accuracy")) is not None:
        sentences.append(f"Naming the largest group is right for {percent(baseline.mean)} %.")
    several = count_groups(board)
    if (without := line.measures.get("without_accuracy")) is not None:
        seen = list_words(text("adversary_sees", chosen).split(", ")) or "what it sees"
        sentences.append(
            f"From {seen} the best attack{_name_model(line, several)} guesses "
            f"{percent(without.mean)} % ({_name_best(board, chosen)})"
            f"{_describe_most(board, line, text)}."
        )
    values = leaks[chosen][~np.isnan(leaks[chosen])]
    if len(values):
        counted = [f"{count} {kind}s" for kind, count in several.items() if count > 1]
        where = _name_model(line, several) or " here"
        of_all = f"Of {list_words(counted)}, the best attack gains most{where}"
        lead = f"{of_all}: the" if counted else "The"
        label = line.labels.get("disclosure", "")
        word = "report" if "facts" in line.measures else "claim"
        claim = f"{lead} {label}{'' if word in label.split() else f' {word}'}".replace("  ", " ")
        alone = "predictions" in text("adversary_sees", chosen)
        if not alone:  # the corrector sees them anyway, and the limit is not about them
            claim += ", with the predictions that it is about,"
        tried = sum(each.rank is not None for each in board.lines)
        added = describe_added(values, "leak", tried)
        limit = _describe_limit(line, text("limit_covers", chosen), alone=alone)
        sentences.append(f"{claim} {added}{limit}.")
    return tuple(sentences)


def _describe_most(board: Leaderboard, line: Line, text: Callable[[str, int], str]) -> str:
    """The model of which most is guessed without the disclosure, if it is another than the line's.

    It says what the predictions bring there, if some attack on this model does not see them.
    """
    leading = _find_leading(board)
    most = max(leading.values(), key=lambda i: _get_mean(board.lines[i], "without_accuracy"))
    other = board.lines[most]
    reached = _get_mean(other, "without_accuracy")
    if other.labels["learner"] == line.labels["learner"] or (
        percent(reached) == percent(_get_mean(line, "without_accuracy"))
    ):
        return ""
    seen = text("adversary_sees", most).split(", ")
    rest = [
        _get_mean(each, "without_accuracy")
        for i, each in enumerate(board.lines)
        if group_of(board, each) == group_of(board, other)
        and "predictions" in seen
        and {*text("adversary_sees", i).split(", ")} == {*seen} - {"predictions"}
    ]
    apart = f", and {percent(max(rest))} % without the predictions" if rest else ""
    return (
        f"; the best on {other.labels['learner']} guesses {percent(reached)} % from "
        f"{list_words(seen) or 'what it sees'}{apart}"
    )


def summarise_ranking(board: Leaderboard) -> tuple[str, ...]:
    """Which line of any leaderboard is first, and how surely; nothing if none is ranked."""
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
    """The best attack with the largest leak of all models and disclosures; None of none."""
    leading = list(_find_leading(board).values())
    return max(leading, key=lambda i: _get_mean(board.lines[i], "leak"), default=None)


def count_groups(board: Leaderboard) -> dict[str, int]:
    """How many components of each kind there are to choose from."""
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
    """What something adds, as far as seeds tell.

    `values`: (n,) what it adds at each seed. `name`: of the measure, which seeds the resampling.
    `tried`: lines that it was chosen from.
    """
    mean, count = float(values.mean()), len(values)
    if count == 1:
        return f"{_format_points(mean)} at one seed (other seeds may differ)"
    if all_alike(values):
        return f"{_format_points(mean)} at each of {count} seeds"
    if count < LEAST_SEEDS:
        return f"{_format_points(mean)}, not significant at {count} seeds"
    share = _EACH_SIDE / tried
    ends = bounds(values[None], name) if tried == 1 else widest(values, name, share)
    low, high = (float(np.squeeze(end)) for end in ends)
    at_once = f" of {tried} at once" if tried > 1 else ""
    interval = f"95 %{at_once}: {signed_points(low)} to {signed_points(high)}"
    if low <= 0 <= high:
        return (
            f"adds nothing that {count} seeds can tell ({signed_points(mean)} points, {interval})"
        )
    p_value = float(signed_rank(values[None], np.zeros((1, count)))[0]) * tried
    doubt = "" if p_value < ALPHA else f", not significant at {count} seeds"
    return f"{_format_points(mean)} ({interval}){doubt}"


_EACH_SIDE = 0.025
"""How often a mean may lie beyond each end of an interval."""


def _format_points(mean: float) -> str:
    text = signed_points(mean)
    verb = "takes away" if text.startswith("-") else "adds"
    return f"{verb} {text.lstrip('+-')} points"


def _describe_limit(line: Line, covers: str, *, alone: bool) -> str:
    limit = line.measures.get("limit")
    if limit is None:
        return ""
    besides = ", apart from what the model itself gives away" if _NOT_THE_MODEL in covers else ""
    return (
        f"; an attacker who knows the population gains at most {points_above(limit.mean)} points "
        f"on average from {'it' if alone else 'the claim alone'}"
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
    """What an attack is called: by the adversary, and by what else differs between ranked ones.

    `adversary`: whether it is about what the adversary does before the claim is used.
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
