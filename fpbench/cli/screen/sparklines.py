"""Sparklines: how a measure changes along a swept parameter, one line for each sweep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fpbench.components.names import KINDS

if TYPE_CHECKING:
    from fpbench.results.leaderboard import Leaderboard

LEVELS = "▁▂▃▄▅▆▇█"
LEAST_POINTS = 3
"""Least number of values of a parameter for a curve."""


@dataclass(frozen=True)
class Curve:
    """A measure along a parameter, all else being the same."""

    parameter: str
    labels: tuple[str, ...]
    """Labels in which lines of the leaderboard differ, without the parameter."""
    values: tuple[float, ...]
    """Values of the parameter, ascending."""
    means: tuple[float, ...]
    """Means of the measure."""

    @property
    def line(self) -> str:
        """The means as blocks of eight heights."""
        return draw_sparkline(self.means)


def list_curves(board: Leaderboard) -> list[Curve]:
    """The sweeps of a leaderboard along which the measure changes, best lines first."""
    # Columns beside the components, such as the strongest attack, do not divide a sweep.
    kinds = [kind for kind in board.kinds if kind in KINDS]
    differing = [k for k in kinds if len({line.labels[k] for line in board.lines}) > 1]
    curves: dict[tuple[str, tuple[str, ...]], dict[float, float]] = {}
    for line in board.lines:
        value = line.measures.get(board.rank_by)
        if value is None:
            continue
        labels = [line.labels[kind] for kind in differing]
        for place, kind in enumerate(differing):
            parts = board.settings.get(kind, {}).get(labels[place])
            for name, number in parts.swept.items() if parts else ():
                if parts and isinstance(number, int | float) and not isinstance(number, bool):
                    others = (*labels[:place], parts.without(name), *labels[place + 1 :])
                    curves.setdefault((name, others), {})[float(number)] = value.mean
    swept = {key: sorted(points.items()) for key, points in curves.items()}
    return [
        Curve(parameter, labels, tuple(x for x, _ in points), tuple(y for _, y in points))
        for (parameter, labels), points in swept.items()
        if len(points) >= LEAST_POINTS and len({y for _, y in points}) > 1
    ]


def draw_sparkline(means: Sequence[float]) -> str:
    """Numbers as blocks of eight heights, the least the lowest; equal ones are in the middle."""
    least, greatest = min(means), max(means)
    if greatest == least:
        return LEVELS[3] * len(means)
    top = len(LEVELS) - 1
    return "".join(LEVELS[round((value - least) / (greatest - least) * top)] for value in means)
