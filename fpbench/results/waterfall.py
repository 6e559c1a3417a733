"""What gives people's groups away, level by level: as bars, and as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fpbench.base.sheet import Column, Paged, Separator, Sheet
from fpbench.base.text import format_percent, format_points

if TYPE_CHECKING:
    from fpbench.results.intervals import Interval

_BAR = 26
"""Letters of a bar for all people, so that a waterfall fits a terminal of 80."""
_OTHERS = " --where chooses others."
_EIGHTHS = " ▏▎▍▌▋▊▉█"


@dataclass(frozen=True)
class Level:
    """A level of knowledge, and the share of people whose group is right with it."""

    name: str
    right: Interval
    """Share of people, over the seeds."""
    attack: str
    """The attack that reaches it; empty for the largest group."""
    labels: Mapping[str, str] = field(repr=False)
    """The components that it was measured with."""


@dataclass(frozen=True, repr=False)
class Waterfall(Paged):
    """Levels of knowledge about the people of a data set, each with the best attack there."""

    scope: str
    """The data set."""
    about: str
    """The model and the disclosure."""
    chosen: str
    """The reason of the choice of these, if there are others."""
    levels: tuple[Level, ...]
    lacking: tuple[str, ...]
    """Sights that no attack has alone, so that they are part of the next level."""
    own_gain: str = ""
    """What the disclosure adds to the last attack itself, if this was not the best before."""

    def page(self) -> list[Sheet | Separator]:
        """The bars that a terminal shows."""
        return [make_waterfall_sheet(self)]

    @property
    def caption(self) -> str:
        """A sentence on what is drawn, and what is not."""
        lacking = [f"attacks that see {name} at most" for name in self.lacking]
        parts = [
            f"{self.about[:1].upper()}{self.about[1:]}: each level is the best attack that sees no "
            "more, calibrated",
            self.own_gain,
            f"Not in this run: {', '.join(lacking)}" if lacking else "",
            self.chosen,
        ]
        return ". ".join(filter(None, parts)) + "."


def make_waterfall_sheet(waterfall: Waterfall) -> Sheet:
    """A waterfall as bars of a terminal; the part that a level adds is dark."""
    rows, before = [], 0.0
    for level in waterfall.levels:
        right, first = level.right, level is waterfall.levels[0]
        bar = "".join(draw_bar(before, right.mean))
        ends = "-" if right.low is None or right.high is None else (
            f"{format_percent(right.low)} to {format_percent(right.high)}"
        )  # fmt: skip
        added = "" if first else format_points(right.mean - before)
        rows.append(
            (level.name, format_percent(right.mean), added, bar, ends,
             level.attack)
        )  # fmt: skip
        before = right.mean
    return Sheet(
        title="",
        about="",
        columns=(
            Column("known", number=False, whole=True),
            Column("% right"),
            Column("adds"),
            Column("", number=False, whole=True),
            Column("95 %"),
            Column("best attack", number=False),
        ),
        rows=tuple(rows),
        notes=(f"{waterfall.caption}{_OTHERS if waterfall.chosen else ''}",),
        spare=("95 %",),
    )  # fmt: skip


def draw_bar(before: float, after: float, start: float = 0.0, most: int = _BAR) -> tuple[str, str]:
    """A bar from a share to 1, of `most` letters: light up to the level below, dark above it."""
    unit = most / max(1 - start, 1e-9)
    light = round(max(min(before, after) - start, 0) * unit)
    whole, rest = divmod(round(max(after - before, 0) * unit * 8), 8)
    return "░" * light, "█" * whole + (_EIGHTHS[rest] if rest else "")


def make_waterfall_data(waterfall: Waterfall) -> dict[str, Any]:
    """A waterfall as plain data, for JSON."""
    return {
        "about": waterfall.about,
        "caption": waterfall.caption,
        "lacking": list(waterfall.lacking),
        "levels": [
            {"name": level.name, "attack": level.attack, "mean": level.right.mean,
             "low": level.right.low, "high": level.right.high, "n": level.right.count}
            for level in waterfall.levels
        ],
    }  # fmt: skip
