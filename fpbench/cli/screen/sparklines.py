"""Sweeps of a parameter, in one line each: how a measure moves from the least value to the last."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fpbench.components.names import KINDS

if TYPE_CHECKING:
    from fpbench.results.leaderboard import Leaderboard

LEVELS = "▁▂▃▄▅▆▇█"
LEAST_POINTS = 3
"""Values of a parameter from which on a curve says more than the table."""

_SETTING = re.compile(r"(?<!\S)([A-Za-z]\w*(?:\.\w+)*)=([-+]?[\d.]+(?:[eE][-+]?\d+)?)(?!\S)")


@dataclass(frozen=True)
class Curve:
    """A measure along a parameter, all else being the same."""

    parameter: str
    labels: tuple[str, ...]
    """What is the same, without the parameter: labels in which lines of the leaderboard differ."""
    values: tuple[float, ...]
    """Of the parameter, ascending."""
    means: tuple[float, ...]
    """Of the measure."""

    @property
    def line(self) -> str:
        """The means as blocks of eight heights."""
        return sparkline(self.means)


def curves(board: Leaderboard) -> list[Curve]:
    """The sweeps among the lines of a leaderboard along which something moves, best lines first."""
    # What is said of a line beside its components, as its strongest attack, parts no sweep.
    kinds = [kind for kind in board.kinds if kind in KINDS]
    differing = [k for k in kinds if len({line.labels[k] for line in board.lines}) > 1]
    found: dict[tuple[str, tuple[str, ...]], dict[float, float]] = {}
    for line in board.lines:
        value = line.measures.get(board.rank_by)
        if value is None:
            continue
        labels = [line.labels[kind] for kind in differing]
        for place, label in enumerate(labels):
            for setting in _SETTING.finditer(label):
                rest = " ".join((label[: setting.start()] + label[setting.end() :]).split())
                others = (*labels[:place], rest, *labels[place + 1 :])
                points = found.setdefault((setting[1], others), {})
                points[float(setting[2])] = value.mean
    swept = {key: sorted(points.items()) for key, points in found.items()}
    return [
        Curve(parameter, labels, tuple(x for x, _ in points), tuple(y for _, y in points))
        for (parameter, labels), points in swept.items()
        if len(points) >= LEAST_POINTS and len({y for _, y in points}) > 1
    ]


def sparkline(means: Sequence[float]) -> str:
    """Numbers as blocks of eight heights, the least the lowest; alike ones are in the middle."""
    least, greatest = min(means), max(means)
    if greatest == least:
        return LEVELS[3] * len(means)
    top = len(LEVELS) - 1
    return "".join(LEVELS[round((value - least) / (greatest - least) * top)] for value in means)
