"""Figures as data: points, and the cells behind them; the page and papers draw the same data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from fpbench.components.measures import SHARE
from fpbench.components.names import KINDS
from fpbench.page.gathered import Combination, Gathered

MOST_SERIES = 7
"""Greatest number of lines of a panel, if panels can separate more: the number of colours that
the colour-blind distinguish on white and on black."""

_MOST_LEFT_OUT = 4
"""Greatest number of omitted components that a figure names; more are counted."""
OPTIONAL = ("mechanism", "policy")
"""Kinds that an audit need not have."""

Place: TypeAlias = float | str


@dataclass(frozen=True)
class Axis:
    """An axis: its label and scale."""

    title: str
    log: bool = False
    """Whether its scale is logarithmic."""
    words: bool = False
    """Whether its positions are words instead of numbers."""


@dataclass(frozen=True)
class FigurePoint:
    """A mean over seeds, and its position."""

    x: Place
    y: float
    low: float | None
    """Lower end of the 95 % interval; None for one seed."""
    high: float | None
    seeds: int
    combination: int
    """The number of the combination that the mean is of."""


@dataclass(frozen=True)
class Series:
    """Points that belong together."""

    name: str
    points: tuple[FigurePoint, ...]
    dashed: bool = False
    """Whether it is a reference to compare with."""
    joined: bool = True
    """Whether a line joins the points."""
    bars: bool = False
    """Whether each point is a bar from the end of the bar before it, and the first from `floor`."""

    @property
    def floor(self) -> float:
        """Where the first bar and the axis begin: a little below its end."""
        ends = [point.y for point in self.points] or [0.0]
        return max(min(ends) - 0.15 * (max(ends) - min(ends)), 0.0)


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    series: tuple[Series, ...]


@dataclass(frozen=True)
class Figure:
    """A figure of a run."""

    name: str
    title: str
    caption: str
    x: Axis
    y: Axis
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Drawn:
    """A measure that a figure draws."""

    measure: str
    name: str = ""
    """The name of its series besides their distinguishing dimensions."""
    without: tuple[str, ...] = ()
    """Kinds on which it does not depend."""
    dashed: bool = False
    beside: bool = False
    """Whether it is a reference for others, and drawn only if others are."""
    where: Callable[[Combination], bool] = field(default=lambda _: True, repr=False)


@dataclass(frozen=True)
class Idea:
    """A plan of a figure, for any run that has the needed results."""

    name: str
    title: str
    caption: str
    x: Axis
    y: Axis
    at: Callable[[Combination], Place | None] = field(repr=False)
    """The position of a combination on the x axis; None if it has none."""
    draws: tuple[Drawn, ...]
    without: tuple[str, ...] = ()
    """Dimensions that do not separate series: kinds, and `KIND.PARAMETER`, or `.PARAMETER` of any
    kind."""
    compares: tuple[str, ...] = ()
    """Dimensions that stay in one panel as long as others can be split."""
    joined: bool = True


Dimensions: TypeAlias = dict[str, str]
"""The distinguishing dimensions of a combination: kinds, and their swept parameters."""


def list_dimensions(run: Gathered, one: Combination) -> Dimensions:
    """The dimensions of a combination, by kind, and by `KIND.PARAMETER` of swept parameters."""
    dimensions_of: Dimensions = {}
    for kind, label in zip(KINDS, one.labels, strict=True):
        parts = run.settings[kind].get(label)
        dimensions_of[kind] = parts.base if parts else label
        for name, value in parts.swept.items() if parts else ():
            dimensions_of[f"{kind}.{name}"] = value if isinstance(value, str) else f"{name}={value}"
    return dimensions_of


def make(run: Gathered, idea: Idea) -> Figure | None:
    """The figure, or None if no panel would have points at two positions of its x axis."""
    lines: dict[
        tuple[Drawn, tuple[tuple[str, str], ...]], dict[tuple[Place, int], FigurePoint]
    ] = {}
    used: list[tuple[Drawn, Combination]] = []
    for one in run.combinations:
        at = idea.at(one)
        if at is None:
            continue
        known = list_dimensions(run, one)
        for drawn in idea.draws:
            if (value := one.measures.get(drawn.measure)) is None or not drawn.where(one):
                continue
            but = (*idea.without, *drawn.without)
            key = tuple((name, v) for name, v in known.items() if not _is_left_out(name, but))
            # For measures that do not depend on all kinds, one of many equal points is enough.
            place = (at, 0 if drawn.without or idea.joined else one.number)
            point = FigurePoint(at, value.mean, value.low, value.high, value.count, one.number)
            if _is_drawable(idea, point):
                used.append((drawn, one))
                lines.setdefault((drawn, key), {}).setdefault(place, point)
    others = {at for (drawn, _), points in lines.items() if not drawn.beside for at, _ in points}
    series = {
        (drawn, key): _sort_points(
            point for point in points.values() if not drawn.beside or point.x in others
        )
        for (drawn, key), points in lines.items()
    }
    glossary, y = run.results.glossary, idea.y
    if all(glossary[drawn.measure].unit == SHARE for drawn in idea.draws) and not y.log:
        y = replace(y, title=f"{y.title}, %")
        series = {key: tuple(map(_to_percent, points)) for key, points in series.items()}
    panels = tuple(panel for panel in _split_panels(series, idea) if _tells(panel))
    if not panels:
        return None
    caption = " ".join(filter(None, [idea.caption, _name_left_out(run, used)]))
    return Figure(idea.name, idea.title, caption, idea.x, y, panels)


def _to_percent(point: FigurePoint) -> FigurePoint:
    low, high = (None if end is None else 100 * end for end in (point.low, point.high))
    return replace(point, y=100 * point.y, low=low, high=high)


def _name_left_out(run: Gathered, used: Sequence[tuple[Drawn, Combination]]) -> str:
    """A sentence on components of the run that a figure could show and does not."""
    parts = []
    for kind in KINDS:
        shown = {one.label(kind) for drawn, one in used if kind not in drawn.without} - {""}
        labels = {one.label(kind) for one in run.combinations if one.measures} - {""}
        bases = {label: run.settings[kind][label].base for label in labels
                 if label in run.settings[kind]}  # fmt: skip
        whole = {bases.get(label, label) for label in shown}  # some part of them is shown
        left = sorted({label if (base := bases.get(label, label)) in whole else base
                       for label in labels - shown})  # fmt: skip
        if shown and left:
            many = len(left) > _MOST_LEFT_OUT
            parts.append(f"{len(left)} {KINDS[kind].plural}" if many else
                         f"{kind} {', '.join(left)}")  # fmt: skip
    return f"Without such numbers, so not drawn: {'; '.join(parts)}." if parts else ""


def _tells(panel: Panel) -> bool:
    """Whether points are at two positions or more."""
    return len({point.x for series in panel.series for point in series.points}) > 1


def _is_left_out(name: str, but: Iterable[str]) -> bool:
    kind, _, parameter = name.partition(".")
    return any(one in (name, kind) or (parameter and one == f".{parameter}") for one in but)


def _is_drawable(idea: Idea, point: FigurePoint) -> bool:
    """Whether a point is on the axes: not infinite, and above 0 on a logarithmic axis."""
    ends = [(idea.x, point.x), (idea.y, point.y)]
    return all(
        isinstance(v, str) or (math.isfinite(v) and (v > 0 or not axis.log)) for axis, v in ends
    )


def _sort_points(points: Iterable[FigurePoint]) -> tuple[FigurePoint, ...]:
    points = list(points)
    if any(isinstance(point.x, str) for point in points):
        return tuple(points)
    return tuple(sorted(points, key=lambda point: point.x))


_Key: TypeAlias = tuple[Drawn, tuple[tuple[str, str], ...]]
"""The measure that a series draws, and its distinguishing dimensions."""


def _split_panels(series: Mapping[_Key, tuple[FigurePoint, ...]], idea: Idea) -> tuple[Panel, ...]:
    """Series in panels: by data set, then by further dimensions until each panel has few."""
    varying = _list_varying(series)
    apart = [name for name in varying if name == "dataset"]
    left = [name for name in varying if name not in apart]
    left.sort(key=lambda name: (name in idea.compares, -len(varying[name])))
    while left and max(_count_series(series, apart).values(), default=0) > MOST_SERIES:
        apart.append(left.pop(0))  # the dimension with most values makes the most panels
    order = [name for name in varying if name in apart]
    panels: dict[tuple[str, ...], dict[_Key, tuple[FigurePoint, ...]]] = {
        place: {} for place in _count_series(series, order)
    }
    for (drawn, key), points in series.items():
        known = dict(key)
        fixed = {i for i, name in enumerate(order) if not _is_left_out(name, drawn.without)}
        mine = tuple(known.get(name, "") for name in order)
        # Series that do not depend on the dimensions of panels are in all panels.
        for place in [mine] if len(fixed) == len(order) else panels:
            if all(place[i] == mine[i] for i in fixed):
                panels[place][drawn, key] = points
    return tuple(
        _make_panel(
            map(_describe_value, order, place),
            series_of_panel,
            [name for name in varying if name not in apart],
            idea.joined,
        )
        for place, series_of_panel in panels.items()
    )


def _describe_value(name: str, value: str) -> str:
    """The value of a dimension in words, even if it has none."""
    kind, _, parameter = name.partition(".")
    if kind in OPTIONAL and not value and not parameter:  # it may add noise of its own
        return f"takes no {kind}"
    # A label without its parameter may end in a comma.
    return value.rstrip(", ") or (f"without {parameter}" if parameter else f"no {kind}")


def _make_panel(
    place: Iterable[str],
    series: Mapping[_Key, tuple[FigurePoint, ...]],
    names: list[str],
    joined: bool,
) -> Panel:
    """A panel; its title has what all its series have in common, and their names do not."""
    within = _list_varying(series)
    shared = {
        name: value
        for drawn, key in series
        for name, value in key
        if name in names and name not in within and not _is_left_out(name, drawn.without) and value
    }
    drawn_series = []
    for (drawn, key), points in series.items():
        known = dict(key)
        told = [name for name in names if name in within and name in known]
        # For an auditor that takes no mechanism, no words are needed: its name is enough.
        told = [name for name in told if known[name] or name not in OPTIONAL] or told
        words = [_describe_value(name, known[name]) for name in told]
        name = ", ".join(filter(None, [drawn.name, *words])) or drawn.measure.replace("_", " ")
        drawn_series.append(Series(name, points, drawn.dashed, joined))
    return Panel(", ".join(filter(None, [*place, *shared.values()])), tuple(drawn_series))


def _list_varying(series: Iterable[_Key]) -> dict[str, list[str]]:
    """The values of the dimensions that distinguish series."""
    keys = [(drawn, dict(key)) for drawn, key in series]
    names = dict.fromkeys(name for _, known in keys for name in known)
    values = {
        name: dict.fromkeys(
            known.get(name, "") for drawn, known in keys if not _is_left_out(name, drawn.without)
        )
        for name in names
    }
    return {name: list(several) for name, several in values.items() if len(several) > 1}


def _count_series(series: Iterable[_Key], apart: Sequence[str]) -> dict[tuple[str, ...], int]:
    """The number of series in each panel, without those that belong in several."""
    counts: dict[tuple[str, ...], int] = {}
    for drawn, key in series:
        if not any(_is_left_out(name, drawn.without) for name in apart):
            known = dict(key)
            place = tuple(known.get(name, "") for name in apart)
            counts[place] = counts.get(place, 0) + 1
    return counts


def read_number(value: Any) -> float | None:
    """A parameter as a number, if it is one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None
