"""The findings of a leaderboard of attacks: at most three sentences of plain English, and levels.

They state what the seeds of the board gave, and about other seeds only what an interval supports.
The disclosure that adds most is the greatest of several, so its interval is corrected for all that
it was chosen from (Bonferroni); it is only printed if the values of the board look normal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fpbench.base.text import format_percent, format_points, format_points_above
from fpbench.components.measures import SHARE
from fpbench.components.sights import SIGHTS, list_sights
from fpbench.results.findings import Findings, PublishedThing
from fpbench.results.intervals import are_alike, bound_jointly, estimate_interval
from fpbench.results.waterfall import Level, Waterfall

if TYPE_CHECKING:
    from fpbench.results.leaderboard import Leaderboard, Line


_NOT_THE_MODEL = "not model"
"""Words in `limit_covers` of limits that do not cover what the model gives away."""
_MOST_NAMED = 2
"""Greatest number of attacks that are named as tied; more are counted."""
_SEEN = tuple(name for name in SIGHTS if name in list_sights("adversary") - {"labels"})
"""What adversaries see, in levels: each level includes those before it."""
_OF_FEW_MODELS = frozenset({"query", "twin"})
"""Sights that most models cannot give, so that their lack says nothing."""
_KIND = "disclosure"
_LARGEST, _CLAIM, _REPORTS = "largest group", "claim", "reports"

_Floats = NDArray[np.float64]


def summarise_leak(
    board: Leaderboard, leaks: _Floats, text: Callable[[str, int], str]
) -> tuple[str, ...]:
    """The findings of a leaderboard of one data set.

    `board`: attacks, ranked by `with_accuracy`. `leaks`: (lines, seeds) what the disclosure adds in
    each line; NaN where a line lacks a seed. `text`: the text that all rows of a line have under a
    name; empty if they differ or have none.

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
            f"Naming the largest group is right for {format_percent(baseline.mean)} % of people."
        )
    several = count_groups(board)
    if (without := line.measures.get("without_accuracy")) is not None:
        seen = list_words(text("adversary_sees", chosen).split(", ")) or "what it sees"
        sentences.append(
            f"From {seen} the best attack{_name_model(line, several)} guesses "
            f"{format_percent(without.mean)} % ({_name_best(board, chosen)})"
            f"{_describe_most(board, line, text)}."
        )
    values = leaks[chosen][~np.isnan(leaks[chosen])]
    if len(values):
        counted = [f"{count} {kind}s" for kind, count in several.items() if count > 1]
        where = _name_model(line, several) or " here"
        of_all = f"Of the best attacks on {list_words(counted)}, the one{where} gains most"
        lead = f"{of_all}: the" if counted else "The"
        label = line.labels.get("disclosure", "").removeprefix("a ")
        word = "report" if "facts" in line.measures else "claim"
        known = {word, "table"} & {*label.split()}
        claim = f"{lead} {label}{'' if known else f' {word}'}".replace("  ", " ")
        alone = "predictions" in text("adversary_sees", chosen)
        if not alone:  # the corrector sees predictions anyway, and the limit is not about them
            claim += ", with the predictions that it is about,"
        ranked = leaks[[each.rank is not None for each in board.lines]]
        added = describe_added(values, ranked) + _describe_others(board, leaks, chosen, ranked)
        limit = _describe_limit(line, text("limit_covers", chosen), alone=alone)
        sentences.append(f"{claim} {added}{limit}.")
    return tuple(sentences)


def _describe_most(board: Leaderboard, line: Line, text: Callable[[str, int], str]) -> str:
    """The model with the best guesses without the disclosure, if it is not the line's model.

    If some attack on this model does not see the predictions, the text says what it guesses.
    """
    leading = find_leading(board)
    most = max(leading.values(), key=lambda i: _get_mean(board.lines[i], "without_accuracy"))
    other = board.lines[most]
    reached = format_percent(_get_mean(other, "without_accuracy"))
    if other.labels["learner"] == line.labels["learner"] or (
        reached == format_percent(_get_mean(line, "without_accuracy"))
    ):
        return ""
    seen = text("adversary_sees", most).split(", ")
    blind = [
        _get_mean(each, "without_accuracy")
        for i, each in enumerate(board.lines)
        if group_of(board, each) == group_of(board, other)
        and "predictions" in seen
        and {*text("adversary_sees", i).split(", ")} == {*seen} - {"predictions"}
    ]
    if blind:
        added = _get_mean(other, "without_accuracy") - max(blind)
        return (
            f"; the predictions of {other.labels['learner']} add {format_points(added).lstrip('+')}"
            f" points to what the other columns tell, and the best attack guesses {reached} %"
        )
    from_seen = list_words(seen) or "what it sees"
    return f"; the best on {other.labels['learner']} guesses {reached} % from {from_seen}"


def _describe_others(board: Leaderboard, leaks: _Floats, chosen: int, ranked: _Floats) -> str:
    """The gain of attacks that are not the best, if it is certain and above the chosen line's.

    `ranked`: (lines, seeds) the leaks of all ranked lines.
    """
    leading = {*find_leading(board).values()}
    others = [i for i, line in enumerate(board.lines) if line.rank is not None and i not in leading]
    most = max(others, key=lambda i: _get_mean(board.lines[i], "leak"), default=None)
    if most is None:
        return ""
    line, gained = board.lines[most], _get_mean(board.lines[most], "leak")
    least = max(0.0, _get_mean(board.lines[chosen], "leak"))
    if not gained > least or format_points(gained) == format_points(least):
        return ""
    ends = bound_jointly(leaks[most][~np.isnan(leaks[most])], ranked)
    if isinstance(ends, str) or ends[0] <= 0:
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
    unit = " %" if measure.unit == SHARE else ""
    value = first.measures[board.rank_by]
    labels = [label for kind, label in first.labels.items()
              if label and len({line.labels.get(kind) for line in ranked}) > 1]  # fmt: skip
    spread = "" if value.low is None or value.high is None else (
        f" (95 %: {measure.write(value.low)} to {measure.write(value.high)}{unit})"
    )  # fmt: skip
    tied = sum(line.rank == first.rank for line in ranked) - 1
    beside = f"; {tied} other{'s are' if tied > 1 else ' is'} tied with it" if tied else ""
    about = ", ".join(filter(None, [board.scope, *board.apart]))
    extreme = "least" if board.least_first else "greatest"
    return (
        f"Of {len(ranked)} lines{f' ({about})' if about else ''}, {', '.join(labels)} "
        f"has the {extreme} {measure.heading}: {measure.write(value.mean)}{unit}{spread}{beside}.",
    )


def choose_line(board: Leaderboard) -> int | None:
    """The best attack with the largest leak of all models and disclosures; None without one."""
    leading = list(find_leading(board).values())
    return max(leading, key=lambda i: _get_mean(board.lines[i], "leak"), default=None)


def count_groups(board: Leaderboard) -> dict[str, int]:
    """Number of components of each kind to choose from."""
    leading = find_leading(board).values()
    return {kind: len({board.lines[i].labels[kind] for i in leading}) for kind in board.within}


def find_leading(board: Leaderboard) -> dict[tuple[str, ...], int]:
    """The best line of each group that is ranked."""
    best: dict[tuple[str, ...], int] = {}
    for i, line in enumerate(board.lines):
        if line.rank is not None:
            best.setdefault(group_of(board, line), i)
    return best


def describe_added(values: _Floats, ranked: _Floats) -> str:
    """A sentence on what something adds: at these seeds, or at others too if they can tell.

    `values`: (n,) what it adds at each seed. `ranked`: (lines, seeds) the same of all lines that it
    was chosen from, itself included; NaN where a line lacks a seed.
    """
    mean, count = float(values.mean()), len(values)
    if count == 1:
        return f"{_format_points(mean)} at one seed (other seeds may differ)"
    if are_alike(values):
        return f"{_format_points(mean)} at each of {count} seeds"
    ends = bound_jointly(values, ranked)
    if isinstance(ends, str):
        return (
            f"{_format_points(mean)} on average over {count} seeds ({format_points(values.min())} "
            f"to {format_points(values.max())}; too {ends} to tell about others)"
        )
    low, high = ends
    at_once = f" of {len(ranked)} at once" if len(ranked) > 1 else ""
    told = f"95 %{at_once}: {format_points(low)} to {format_points(high)}"
    if low <= 0 <= high:
        return f"adds nothing that {count} seeds can tell ({format_points(mean)} points, {told})"
    return f"{_format_points(mean)} ({told})"


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


def make_waterfall(board: Leaderboard, text: Callable[[str, int], str]) -> Waterfall | None:
    """The waterfall of the attacks on a data set, where most is added; None without an attack.

    `board`: attacks on a data set, ranked by `with_accuracy`. `text`: the text that all rows of a
    line have under a name; empty if they differ or have none.
    """
    chosen = choose_line(board)
    if chosen is None:
        return None
    line = board.lines[chosen]
    group = group_of(board, line)
    mine = [i for i, each in enumerate(board.lines) if group_of(board, each) == group]
    levels, lacking, measured = _list_levels(board, line, mine, text)
    with_claim = _find_best(board, mine, "with_accuracy")
    if with_claim is None or len(levels) < 2:
        return None
    of_report = "facts" in line.measures
    if of_report:
        claims = [
            i
            for i, each in enumerate(board.lines)
            if "facts" not in each.measures
            and all(each.labels[k] == line.labels[k] for k in board.within if k != _KIND)
        ]
        levels += _make_level(_CLAIM, board, _find_best(board, claims, "with_accuracy"))
    levels += _make_level(_REPORTS if of_report else _CLAIM, board, with_claim)
    own = ""
    if measured is not None and "leak" in with_claim.measures and (
        measured.labels["adversary"] != with_claim.labels["adversary"]
    ):  # fmt: skip
        own = (
            f"{name_attack(board, with_claim)} adds "
            f"{format_points(with_claim.measures['leak'].mean)} points to its own guess without "
            "the disclosure"
        )
    shown = [f"{kind} {line.labels[kind]}" for kind in board.within if line.labels[kind]]
    several = [f"{count} {kind}s" for kind, count in count_groups(board).items() if count > 1]
    here = "the one where the disclosure adds most to the best attack is shown"
    why = f"Of {list_words(several)}, {here}" if several else ""
    return Waterfall(line.labels.get("dataset", ""), ", ".join(shown), why, tuple(levels),
                     tuple(lacking), own)  # fmt: skip


def _list_levels(
    board: Leaderboard, line: Line, mine: list[int], text: Callable[[str, int], str]
) -> tuple[list[Level], list[str], Line | None]:
    """Levels without the disclosure, sights that no attack has alone, and the best attack.

    `line`: the chosen line. `mine`: the lines of its group.
    """
    levels: list[Level] = []
    measured: Line | None = None
    if (baseline := line.measures.get("majority_accuracy")) is not None:
        levels.append(Level(_LARGEST, baseline, "", line.labels))
    lacking = []
    for name in _SEEN:
        seeing = [i for i in mine if _find_last_seen(text("adversary_sees", i)) == name]
        best = _find_best(board, seeing, "without_accuracy")
        blind = line.measures.get("without_model_accuracy") if name == "features" else None
        if best is not None:  # an adversary that sees more may guess from less
            if measured is None or (
                _get_mean(best, "without_accuracy") > _get_mean(measured, "without_accuracy")
            ):
                measured = best
            attack = name_attack(board, measured, adversary=True)
            right = measured.measures["without_accuracy"]
            levels.append(Level(name, right, attack, measured.labels))
        elif blind is not None:
            attack = f"{name_attack(board, line, adversary=True)} without the model"
            levels.append(Level(name, blind, attack, line.labels))
        elif name not in _OF_FEW_MODELS:
            lacking.append(name)
    return levels, lacking, measured


def _make_level(name: str, board: Leaderboard, line: Line | None) -> list[Level]:
    """The level of the best attack with a disclosure, if there is one."""
    if line is None:
        return []
    return [Level(name, line.measures["with_accuracy"], name_attack(board, line), line.labels)]


def _find_last_seen(columns: str) -> str:
    """The last sight of an adversary, in the order of the waterfall."""
    seen = set(columns.split(", "))
    return next((name for name in reversed(_SEEN) if name in seen), "")


def _find_best(board: Leaderboard, numbers: list[int], name: str) -> Line | None:
    lines = [board.lines[i] for i in numbers if name in board.lines[i].measures]
    return max(lines, key=lambda line: line.measures[name].mean, default=None)


_MOST = 6
"""Greatest number of things that are shown."""

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
        f"attacker sees their {seen}, has learnt from other people how groups go with these, and "
        f"guesses {guessed} % right{naming} before anything more is published."
    )
