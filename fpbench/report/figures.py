"""Figures as data: what is drawn, and from which cells; HTML and papers draw the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from fpbench.components.names import KINDS
from fpbench.report.gathered import Combination, Gathered

MOST_SERIES = 7
"""Lines that one panel has at most, where they can be told apart by panels: there are as many
colours that the colour-blind tell apart, on white and on black."""

_MOST_LEFT_OUT = 4
"""Components that a figure leaves out and names; more are counted."""
OPTIONAL = ("mechanism", "policy")
"""Kinds that an audit may do without."""

Place: TypeAlias = float | str


@dataclass(frozen=True)
class Axis:
    """What an axis shows."""

    title: str
    log: bool = False
    """Whether its scale is logarithmic."""
    words: bool = False
    """Whether its places are words, and not numbers."""


@dataclass(frozen=True)
class FigurePoint:
    """A mean over seeds, and where it stands."""

    x: Place
    y: float
    low: float | None
    """Lower end of the 95 % interval; None for one seed."""
    high: float | None
    seeds: int
    combination: int
    """Whose mean it is: the number of a combination."""


@dataclass(frozen=True)
class Series:
    """Points that belong together."""

    name: str
    points: tuple[FigurePoint, ...]
    dashed: bool = False
    """Whether it is there to compare with."""
    joined: bool = True
    """Whether a line joins the points."""
    bars: bool = False
    """Whether each is a bar from where the one before it ends, and the first from 0."""


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
    """What its series are called besides what tells them apart."""
    without: tuple[str, ...] = ()
    """Kinds on which it does not depend."""
    dashed: bool = False
    beside: bool = False
    """Whether it is there to compare others with, and drawn only where others are."""
    where: Callable[[Combination], bool] = field(default=lambda _: True, repr=False)


@dataclass(frozen=True)
class Idea:
    """What figure is to be made, of any run that has what it needs."""

    name: str
    title: str
    caption: str
    x: Axis
    y: Axis
    at: Callable[[Combination], Place | None] = field(repr=False)
    """Where a combination stands on the x axis; None if nowhere."""
    draws: tuple[Drawn, ...]
    without: tuple[str, ...] = ()
    """Dimensions that do not tell series apart: kinds, and `KIND.PARAMETER`, or `.PARAMETER` of any
    kind."""
    compares: tuple[str, ...] = ()
    """Dimensions that stay in one panel as long as others can be taken apart."""
    joined: bool = True


Dimensions: TypeAlias = dict[str, str]
"""What tells a combination from others: kinds, and the parameters that they are swept over."""


def list_dimensions(run: Gathered, one: Combination) -> Dimensions:
    """What tells a combination from others, by kind, and by `KIND.PARAMETER` of what is swept."""
    dimensions_of: Dimensions = {}
    for kind, label in zip(KINDS, one.labels, strict=True):
        parts = run.settings[kind].get(label)
        dimensions_of[kind] = parts.base if parts else label
        for name, value in parts.swept.items() if parts else ():
            dimensions_of[f"{kind}.{name}"] = value if isinstance(value, str) else f"{name}={value}"
    return dimensions_of


def make(run: Gathered, idea: Idea) -> Figure | None:
    """The figure, or None if no panel of it would have points at two places of its x axis."""
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
            # Of what does not depend on all kinds, one of many equal points is enough.
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
    panels = tuple(panel for panel in _split_panels(series, idea) if _tells(panel))
    if not panels:
        return None
    caption = " ".join(filter(None, [idea.caption, _name_left_out(run, used)]))
    return Figure(idea.name, idea.title, caption, idea.x, idea.y, panels)


def _name_left_out(run: Gathered, used: Sequence[tuple[Drawn, Combination]]) -> str:
    """Components of the run that a figure could show and does not, in a sentence."""
    parts = []
    for kind in KINDS:
        shown = {one.label(kind) for drawn, one in used if kind not in drawn.without} - {""}
        labels = {one.label(kind) for one in run.combinations if one.measures} - {""}
        bases = {label: run.settings[kind][label].base for label in labels
                 if label in run.settings[kind]}  # fmt: skip
        whole = {bases.get(label, label) for label in shown}  # of which a part is shown
        left = sorted({label if (base := bases.get(label, label)) in whole else base
                       for label in labels - shown})  # fmt: skip
        if shown and left:
            many = len(left) > _MOST_LEFT_OUT
            parts.append(f"{len(left)} {KINDS[kind].plural}" if many else
                         f"{kind} {', '.join(left)}")  # fmt: skip
    return f"Without such numbers, so not drawn: {'; '.join(parts)}." if parts else ""


def _tells(panel: Panel) -> bool:
    """Whether points stand at two places at least."""
    return len({point.x for series in panel.series for point in series.points}) > 1


def _is_left_out(name: str, but: Iterable[str]) -> bool:
    kind, _, parameter = name.partition(".")
    return any(one in (name, kind) or (parameter and one == f".{parameter}") for one in but)


def _is_drawable(idea: Idea, point: FigurePoint) -> bool:
    """A logarithmic axis has no place for what is not above 0, and none has one for infinity."""
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
"""What a series draws, and what tells it from others."""


def _split_panels(series: Mapping[_Key, tuple[FigurePoint, ...]], idea: Idea) -> tuple[Panel, ...]:
    """Series in panels: by data set, then by as many dimensions as it takes to have few in each."""
    varying = _list_varying(series)
    apart = [name for name in varying if name == "dataset"]
    left = [name for name in varying if name not in apart]
    left.sort(key=lambda name: (name in idea.compares, -len(varying[name])))
    while left and max(_count_series(series, apart).values(), default=0) > MOST_SERIES:
        apart.append(left.pop(0))  # the dimension of the most values makes the most panels
    order = [name for name in varying if name in apart]
    panels: dict[tuple[str, ...], dict[_Key, tuple[FigurePoint, ...]]] = {
        place: {} for place in _count_series(series, order)
    }
    for (drawn, key), points in series.items():
        known = dict(key)
        fixed = {i for i, name in enumerate(order) if not _is_left_out(name, drawn.without)}
        mine = tuple(known.get(name, "") for name in order)
        # What does not depend on what panels differ in, stands in all of them.
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
    """The value of a dimension in words; also where there is none."""
    kind, _, parameter = name.partition(".")
    if kind in OPTIONAL and not value and not parameter:  # it may add noise of its own
        return f"takes no {kind}"
    # What is left of a label without its parameter may end in a comma.
    return value.rstrip(", ") or (f"without {parameter}" if parameter else f"no {kind}")


def _make_panel(
    place: Iterable[str],
    series: Mapping[_Key, tuple[FigurePoint, ...]],
    names: list[str],
    joined: bool,
) -> Panel:
    """A panel; what all its series have in common is in its title, and not in their names."""
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
        # An auditor that takes no mechanism needs no word on it: its name says what it does.
        told = [name for name in told if known[name] or name not in OPTIONAL] or told
        words = [_describe_value(name, known[name]) for name in told]
        name = ", ".join(filter(None, [drawn.name, *words])) or drawn.measure.replace("_", " ")
        drawn_series.append(Series(name, points, drawn.dashed, joined))
    return Panel(", ".join(filter(None, [*place, *shared.values()])), tuple(drawn_series))


def _list_varying(series: Iterable[_Key]) -> dict[str, list[str]]:
    """The values of the dimensions that tell series apart."""
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
    """How many series there are in each panel, but for those that belong in several."""
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
