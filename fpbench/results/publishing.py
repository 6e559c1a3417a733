"""What a board of attacks says about each thing that is published."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fpbench.base.text import format_percent
from fpbench.results.findings import Findings, PublishedThing
from fpbench.results.sentences import count_groups, find_leading, group_of, list_words
from fpbench.results.statistics.intervals import estimate_interval

if TYPE_CHECKING:
    from fpbench.results.leaderboard import Leaderboard, Line

_MOST = 6
"""Greatest number of things that are shown."""

_Floats = NDArray[np.float64]
_Text = Callable[[str, int], str]


def make_findings(
    board: Leaderboard, leaks: _Floats, withouts: _Floats, text: _Text
) -> Findings | None:
    """What each thing that is published gives away to the best attack; None without an attack.

    A thing is what a disclosure publishes about a model; and a model's predictions, if some attack
    does not see them. If there are several, those that give most away are shown.

    Parameters
    ----------
    board
        Attacks on one data set, ranked by `with_accuracy`.
    leaks, withouts
        (lines, seeds) the leak of each line, and the accuracy without the disclosure; NaN where a
        line lacks a seed.
    text
        The text that all rows of a line have under a name; empty if they differ or have none.
    """
    leading = [i for i in find_leading(board).values() if "leak" in board.lines[i].measures]
    if not leading:
        return None
    things = [_describe_disclosure(board, i) for i in leading]
    models: dict[str, int] = {}
    for i in leading:
        models.setdefault(board.lines[i].labels["learner"], i)
    of_models = [_describe_predictions(board, i, withouts, text) for i in models.values()]
    everything = [*filter(None, of_models), *things]
    most = sorted(everything, key=lambda thing: (-thing.proven, -thing.added.mean))[:_MOST]
    shown = tuple(thing for thing in everything if thing in most)
    line = board.lines[leading[0]]
    baseline = line.measures.get("majority_accuracy")
    scene = _describe_scene(board, leading, text)
    return Findings(
        scene, None if baseline is None else baseline.mean, shown, len(everything) - len(shown)
    )


def _describe_disclosure(board: Leaderboard, number: int) -> PublishedThing:
    """What the disclosure of a line gives away."""
    line = board.lines[number]
    group = [each for each in board.lines if group_of(board, each) == group_of(board, line)]
    label = line.labels.get("disclosure", "")
    word = "report" if "facts" in line.measures else "claim"
    name = f"{label} {word}" if label in ("published", "estimated", "noisy", "hidden") else label
    if count_groups(board).get("learner", 1) > 1:
        name += f" of {line.labels['learner']}"
    error = line.measures.get("rate_error")
    return PublishedThing(
        name, line.labels, line.measures["without_accuracy"].mean, line.measures["leak"],
        _find_greatest(group, "people_proven"), _find_greatest(group, "people_sure"),
        None if error is None else error.mean,
    )  # fmt: skip


def _find_greatest(lines: Sequence[Line], name: str) -> float:
    return max((line.measures[name].mean for line in lines if name in line.measures), default=0.0)


def _describe_predictions(
    board: Leaderboard, number: int, withouts: _Floats, text: _Text
) -> PublishedThing | None:
    """What the predictions of a line's model add to the best attack that does not see them."""
    line = board.lines[number]
    seen: dict[frozenset[str], int] = {}
    for i, each in enumerate(board.lines):
        if group_of(board, each) == group_of(board, line) and "without_accuracy" in each.measures:
            sights = frozenset(text("adversary_sees", i).split(", "))
            best = seen.setdefault(sights, i)
            if each.measures["without_accuracy"].mean > (
                board.lines[best].measures["without_accuracy"].mean
            ):
                seen[sights] = i
    pairs = [(seen[sights - {"predictions"}], i) for sights, i in seen.items()
             if "predictions" in sights and sights - {"predictions"} in seen]  # fmt: skip
    if not pairs:
        return None
    blind, seeing = pairs[0]
    values = withouts[seeing] - withouts[blind]
    values = values[~np.isnan(values)]
    if not len(values):
        return None
    return PublishedThing(
        f"predictions of {line.labels['learner']}", line.labels,
        board.lines[blind].measures["without_accuracy"].mean, estimate_interval(values),
    )  # fmt: skip


def _describe_scene(board: Leaderboard, leading: Sequence[int], text: _Text) -> str:
    """Who, what is secret, who attacks, and what they guess before anything is published."""
    line = board.lines[leading[0]]
    people = line.measures.get("people")
    count = f"{people.mean:,.0f} people" if people is not None else "people"
    named = text("group_names", leading[0]).split(", ")
    secret = f" ({' or '.join(named)})" if 1 < len(named) <= 5 else ""
    column = text("secret", leading[0]) or "group"
    seen = list_words(text("adversary_sees", leading[0]).split(", ")) or "what it sees"
    before = sorted(board.lines[i].measures["without_accuracy"].mean for i in leading)
    guessed = " to ".join(dict.fromkeys(format_percent(share) for share in (before[0], before[-1])))
    baseline = line.measures.get("majority_accuracy")
    naming = "" if baseline is None else (
        f" (naming the largest group: {format_percent(baseline.mean)} %)"
    )  # fmt: skip
    dataset = line.labels.get("dataset", "")
    return (
        f"The {column}{secret} of {count}{f' of {dataset}' if dataset else ''} is secret. The "
        f"attacker sees their {seen}, learnt from other people, and is right for {guessed} %"
        f"{naming} before anything more is published."
    )
