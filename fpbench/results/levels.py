"""The levels of a waterfall: the largest group, what attacks see, and what is disclosed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fpbench.base.text import format_points
from fpbench.components.sights import SIGHTS, list_sights
from fpbench.results.sentences import choose_line, count_groups, group_of, list_words, name_attack
from fpbench.results.waterfall import Level, Waterfall

if TYPE_CHECKING:
    from fpbench.results.leaderboard import Leaderboard, Line
    from fpbench.results.statistics.intervals import Interval

_SEEN = tuple(name for name in SIGHTS if name in list_sights("adversary") - {"labels"})
"""What adversaries see, in levels: each level includes those before it."""
_OF_FEW_MODELS = frozenset({"query", "twin"})
"""Sights that most models cannot give, so that their lack says nothing."""
_KIND = "disclosure"
_LARGEST, _CLAIM, _REPORTS = "largest group", "claim", "reports"


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
    levels: list[Level] = []
    measured: Line | None = None
    if (baseline := line.measures.get("majority_accuracy")) is not None:
        levels.append(Level(_LARGEST, baseline, "", line.labels))
    lacking = []
    for name in _SEEN:
        seeing = [i for i in mine if _find_last_seen(text("adversary_sees", i)) == name]
        best = _find_best(board, seeing, "without_accuracy")
        blind = line.measures.get("without_model_accuracy") if name == "features" else None
        if best is None and blind is not None:
            attack = f"{name_attack(board, line, adversary=True)} without the model"
            levels.append(Level(name, blind, attack, line.labels))
        elif best is None:
            lacking += [name] if name not in _OF_FEW_MODELS else []
        else:  # an adversary that sees more may guess from less
            if measured is None or _reaches(best) > _reaches(measured):
                measured = best
            attack = name_attack(board, measured, adversary=True)
            levels.append(Level(name, _find_without(measured), attack, measured.labels))
    with_claim = _find_best(board, mine, "with_accuracy")
    if with_claim is None or len(levels) < 2:
        return None
    of_report = "facts" in line.measures
    claims = [
        i
        for i, each in enumerate(board.lines)
        if "facts" not in each.measures
        and all(each.labels[kind] == line.labels[kind] for kind in board.within if kind != _KIND)
    ]
    if of_report and (claim := _find_best(board, claims, "with_accuracy")) is not None:
        right = claim.measures["with_accuracy"]
        levels.append(Level(_CLAIM, right, name_attack(board, claim), claim.labels))
    levels.append(
        Level(
            _REPORTS if of_report else _CLAIM, with_claim.measures["with_accuracy"],
            name_attack(board, with_claim), with_claim.labels,
        )
    )  # fmt: skip
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


def _find_without(line: Line) -> Interval:
    return line.measures["without_accuracy"]


def _reaches(line: Line) -> float:
    return _find_without(line).mean


def _find_last_seen(columns: str) -> str:
    """The last sight of an adversary, in the order of the waterfall."""
    seen = set(columns.split(", "))
    return next((name for name in reversed(_SEEN) if name in seen), "")


def _find_best(board: Leaderboard, numbers: list[int], name: str) -> Line | None:
    lines = [board.lines[i] for i in numbers if name in board.lines[i].measures]
    return max(lines, key=lambda line: line.measures[name].mean, default=None)
