"""The figures of the papers, of every sweep and of an attack, if there are results for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fpbench.base.errors import InputError, suggest_name
from fpbench.components.measures import MeasureFigure
from fpbench.components.names import KINDS
from fpbench.page.figures import (
    Axis,
    Drawn,
    Figure,
    FigurePoint,
    Idea,
    Panel,
    Place,
    Series,
    make,
    read_number,
)
from fpbench.page.gathered import Combination, Gathered, Labels
from fpbench.results.defences import OF_MODELS
from fpbench.results.leaderboard import LEAK_RANKING
from fpbench.results.ranking import ON_FRONT, PARETO
from fpbench.results.waterfall import Waterfall

if TYPE_CHECKING:
    from pandas import DataFrame

_AT: dict[str, str] = {
    "penalty": "lambda (penalty)",
    "teachers": "k (teachers)",
    "sigma": "sigma (noise of votes)",
    "epsilon": "epsilon",
}
"""Names of the parameters of private learners in the papers."""


def _is_corrected(one: Combination) -> bool:
    """Whether a corrector decided anything, even if it changed nothing."""
    return "objective" in one.measures or "solver_status" in one.texts


_CORRECTED = Drawn("corrected_accuracy", "corrected", where=_is_corrected)
_BASELINE = Drawn(
    "majority_accuracy", "largest group",
    without=("learner", "disclosure", "adversary", "corrector"), dashed=True, beside=True,
)  # fmt: skip
_GUESSED = Drawn("initial_accuracy", "guess", without=("corrector",), dashed=True)
_SHARE = "accuracy of the guess"


def _read_measure(name: str) -> Callable[[Combination], Place | None]:
    def at(one: Combination) -> Place | None:
        # A mean of equal numbers may be off by its last digit.
        return float(f"{one.measures[name].mean:.12g}") if name in one.measures else None

    return at


def _get_text(name: str) -> Callable[[Combination], Place | None]:
    return lambda one: one.texts.get(name)


def _read_label(kind: str) -> Callable[[Combination], Place | None]:
    return lambda one: one.label(kind) or None


def _read_parameter(run: Gathered, kind: str, name: str) -> Callable[[Combination], Place | None]:
    """The position of a combination: a swept parameter that its label names."""

    def at(one: Combination) -> Place | None:
        parts = run.settings[kind].get(one.label(kind))
        return read_number(parts.swept.get(name)) if parts else None

    return at


_FIXED = (
    Idea(
        "by-group",
        "Which group is guessed right",
        "Share of people who are guessed right, with what is published: of everybody, and of the "
        "groups whose members are guessed right most and least often. Means over seeds; bars are "
        "95 % intervals.",
        Axis("disclosure", words=True),
        Axis("guessed right"),
        _read_label("disclosure"),
        (
            Drawn("with_accuracy", "everybody"),
            Drawn("worst_group_accuracy", "the group guessed most"),
            Drawn("safest_group_accuracy", "the group guessed least"),
        ),
        without=("disclosure",),
        joined=False,
    ),
    Idea(
        "accuracy",
        "Accuracy before and after the correction",
        "Share of people whose group an adversary gets right, against the tolerance of the fair "
        "learner: its guess (dashed), and after the correction; beside that of naming the largest "
        "group. Bands are 95 % intervals.",
        Axis("tolerance of the fair learner"),
        Axis(_SHARE),
        _read_measure("asked_tolerance"),
        (_BASELINE, _GUESSED, _CORRECTED),
        without=("learner.tolerance",),
    ),
    Idea(
        "gain-by-metric",
        "Gain by fairness metric",
        "What the correction adds to the accuracy of the guess, by the metric that the learner was "
        "trained for. A point is one learner; bars are 95 % intervals.",
        Axis("metric", words=True),
        Axis("gain"),
        _get_text("asked_metric"),
        (Drawn("gain", where=_is_corrected),),
        without=("learner",),
        joined=False,
    ),
    Idea(
        "audit-error",
        "Error of private audits",
        "Mean absolute error of the audited ratio, against what the audit costs; dashed: the error "
        "of a uniform guess. Bands are 95 % intervals.",
        Axis("epsilon", log=True),
        Axis("error", log=True),
        _read_measure("epsilon"),
        (
            Drawn("error"),
            Drawn(
                "random_guess_error", "guessing",
                without=("auditor", "mechanism", "policy"), dashed=True,
            ),
        ),
        without=("auditor.epsilon",),
        compares=("mechanism",),
    ),
    Idea(
        "policies",
        "Policies for invalid answers",
        "Mean absolute error of the audited ratio, by what is done with invalid noisy answers. "
        "Bars are 95 % intervals.",
        Axis("policy", words=True),
        Axis("error", log=True),
        _read_label("policy"),
        (Drawn("error"),),
        without=("policy",),
        compares=("mechanism",),
        joined=False,
    ),
)  # fmt: skip

_ACCURACY = MeasureFigure(
    "private-accuracy", "Accuracy of private models", "Test accuracy. Bands are 95 % intervals.",
    "test accuracy", (("test_accuracy", ""),), against="privacy",
)  # fmt: skip
"""The figure of fpbench's own measure, beside figures that components declare."""
_PRIVACY = ("epsilon", "sigma")
"""The parameters of learners that make them more or less private."""


NO_FIGURE = "no figure is possible: it takes two learners, or a swept parameter"


def make_figures(run: Gathered) -> list[Figure]:
    """All figures for which a run has enough results."""
    number_of = {one.labels: one.number for one in run.combinations}
    waterfall = draw_waterfalls(run.waterfalls, number_of)
    possible = (waterfall, _make_report_ideas(run), *(make(run, idea) for idea in _list_ideas(run)))
    return [figure for figure in possible if figure is not None]


def draw_waterfalls(
    waterfalls: Sequence[Waterfall], number_of: Mapping[Labels, int]
) -> Figure | None:
    """A figure of what gives groups away, level by level, a panel per waterfall; None without any.

    `waterfalls`: one for each data set. `number_of`: the number of each combination of labels.
    """
    if not waterfalls:
        return None
    axis = Axis("people whose group is right, %")
    panels, captions = [], []
    for each in waterfalls:
        points = tuple(
            FigurePoint(
                level.name,
                100 * level.right.mean,
                None if level.right.low is None else 100 * level.right.low,
                None if level.right.high is None else 100 * level.right.high,
                level.right.count,
                number_of[tuple(level.labels.get(kind, "") for kind in KINDS)],
            )
            for level in each.levels
        )
        scope = f"{each.scope}: " if len(waterfalls) > 1 else ""
        series = Series(axis.title, points, joined=False, bars=True)
        panels.append(Panel(f"{scope}{each.about}", (series,)))
        captions.append(f"{scope}{each.caption}")
    caption = (
        "Means over seeds; bars are 95 % intervals, and the axis does not begin at 0. "
        + " ".join(captions)
    )
    return Figure("waterfall", "What gives people's groups away", caption,
                  Axis("what is known", words=True), axis, tuple(panels))  # fmt: skip


def _make_report_ideas(run: Gathered) -> Figure | None:
    """A figure of the leak of reports against the error of their rates, a panel per data set."""
    number_of = {one.labels: one.number for one in run.combinations}
    panels = []
    for board in (each for each in run.boards if each.view == "reports"):
        points: dict[bool, list[FigurePoint]] = {True: [], False: []}
        for line in board.lines:
            leak, error = (line.measures.get(name) for name in ("leak", "rate_error"))
            if leak is not None and error is not None:
                of = number_of[tuple(line.labels.get(kind, "") for kind in KINDS)]
                low, high = (None if end is None else 100 * end for end in (leak.low, leak.high))
                points[line.labels[PARETO] == ON_FRONT].append(
                    FigurePoint(100 * error.mean, 100 * leak.mean, low, high, leak.count, of)
                )
        series = tuple(
            Series(name, tuple(sorted(points[front], key=lambda point: point.x)), joined=front)
            for front, name in ((True, "front"), (False, "others"))
            if points[front]
        )
        if len({point.x for part in points.values() for point in part}) > 1:
            panels.append(Panel(board.scope.removeprefix("data set "), series))
    if not panels:
        return None
    return Figure(
        "reports", "What fairness reports give away, and how true they are",
        "Each point is a report, with the strongest attack given it; on the front no other leaks "
        "less at as small an error. Means over seeds; bars are 95 % intervals.",
        Axis("mean error of the rates, points"), Axis("leak, points"), tuple(panels),
    )  # fmt: skip


def make_figure(run: Gathered, name: str) -> Figure:
    """A figure of a run by name; see `choose_figure`."""
    return choose_figure(make_figures(run), name, run.path)


def choose_figure(available: Iterable[Figure], name: str, origin: str) -> Figure:
    """A figure by name.

    Raises InputError if there is no figure of that name; names the existing figures.
    """
    by_name = {one.name: one for one in available}
    if not by_name:
        raise InputError(f"{origin}: {NO_FIGURE}")
    if name not in by_name:
        raise InputError(
            f"{origin}: no figure {name!r}; {suggest_name(name, by_name)} "
            f"(it has {', '.join(by_name)})"
        )
    return by_name[name]


def _list_ideas(run: Gathered) -> Iterator[Idea]:
    yield from _FIXED
    swept = _list_swept(run)
    declared = [one.figure for one in run.results.glossary.declared if one.figure is not None]
    for plot in sorted((_ACCURACY, *declared), key=lambda each: each.against == "privacy"):
        draws = tuple(_make_drawn(name, series, dashed=i > 0)
                      for i, (name, series) in enumerate(plot.series))  # fmt: skip
        for parameter, at in _list_against(run, swept):
            if parameter in _PRIVACY or plot.against == "parameters":
                name, log = _AT.get(parameter, parameter), _spread(run, at)
                yield Idea(
                    f"{plot.name}-{parameter}", f"{plot.title} against {parameter}", plot.caption,
                    Axis(name, log=log), Axis(plot.axis), at, draws,
                    without=tuple(f"learner.{one}" for one in _list_same(parameter)),
                )  # fmt: skip
    for measure in dict.fromkeys(board.rank_by for board in run.boards):
        yield from _list_ranked(run, measure, swept)


def _make_drawn(measure: str, series: str, *, dashed: bool) -> Drawn:
    """A measure of a learner in its figure, drawn once for all attacks on the same model."""
    without = ("disclosure", "adversary", "corrector", "auditor")
    return Drawn(measure, series, without if measure in OF_MODELS else (), dashed)


def _list_against(
    run: Gathered, swept: list[tuple[str, str]]
) -> Iterator[tuple[str, Callable[[Combination], Place | None]]]:
    """The x axes for private learners: their swept parameters, and their epsilon."""
    for kind, parameter in swept:
        if kind == "learner":
            yield parameter, _read_parameter(run, kind, parameter)
    done, _ = run.results.finished()
    if ("learner", "epsilon") not in swept and run.results.measured("model_epsilon", done):
        yield "epsilon", _read_measure("model_epsilon")


def _list_same(parameter: str) -> tuple[str, ...]:
    """Parameters that are equivalent: epsilon comes from the noise."""
    return _PRIVACY if parameter == "epsilon" else (parameter,)


_WORDS = {"with_accuracy": "accuracy with the disclosure"}
"""Longer names of measures whose own names need a context."""


def _list_ranked(run: Gathered, measure: str, swept: list[tuple[str, str]]) -> Iterator[Idea]:
    """Figures of a ranking measure: against swept parameters, and by kind."""
    own = run.results.glossary[measure].figure
    words = _WORDS.get(measure, measure.replace("_", " "))
    draws: tuple[Drawn, ...] = (Drawn(measure),)
    if measure == "gain":  # which is 0 if nothing is corrected
        draws = (Drawn(measure, where=_is_corrected),)
    elif measure == LEAK_RANKING:
        draws = (_BASELINE, *draws)
    for kind, parameter in swept:
        drawn_above = kind == "learner" and own is not None and own.against == "parameters"
        if not drawn_above and (measure, kind, parameter) != ("error", "auditor", "epsilon"):
            at = _read_parameter(run, kind, parameter)
            yield Idea(
                f"{measure}-{parameter}",
                f"{words.capitalize()} against {parameter} of the {kind}",
                "Means over seeds; bands are 95 % intervals.",
                Axis(_AT.get(parameter, parameter), log=_spread(run, at)),
                Axis(words),
                at,
                draws,
                without=(f"{kind}.{parameter}",),
            )
    for kind in KINDS:
        if kind not in ("dataset", "policy"):
            yield Idea(
                f"{measure}-by-{kind}",
                f"{words.capitalize()} by {kind}",
                "Means over seeds; bars are 95 % intervals.",
                Axis(kind, words=True),
                Axis(words),
                _read_label(kind),
                draws,
                without=(kind,),
                joined=False,
            )


def _list_swept(run: Gathered) -> list[tuple[str, str]]:
    """Swept parameters with numeric values, by kind."""
    swept: dict[tuple[str, str], None] = {}
    for kind in KINDS:
        for parts in run.settings[kind].values():
            for name, value in parts.swept.items():
                if read_number(value) is not None:
                    swept[kind, name] = None
    return list(swept)


def _spread(run: Gathered, at: Callable[[Combination], Place | None]) -> bool:
    """Whether positions on an axis are better visible on a logarithmic scale."""
    places = [place for one in run.combinations if isinstance(place := at(one), float)]
    return bool(places) and min(places) > 0 and max(places) / min(places) >= 20


_BINS = 20


def attack_figures(people: DataFrame, waterfall: Waterfall | None) -> list[Figure]:
    """The figures of an attack.

    `people`: a row for each person with `group` and `risk`, as in `AttackResult.people`.
    `waterfall`: what each level of knowledge adds, if known.
    """
    drawn = [_draw_risks(people)]
    if waterfall is not None:
        levels = [tuple(level.labels.get(kind, "") for kind in KINDS) for level in waterfall.levels]
        one = draw_waterfalls([waterfall], dict.fromkeys(levels, 0))
        drawn += [one] if one is not None else []
    return drawn


def _draw_risks(people: DataFrame) -> Figure:
    """The share of people of each group in each class of risk."""
    series = []
    for group, risks in people.groupby("group", sort=False, observed=True)["risk"]:
        counts, edges = np.histogram(risks, _BINS, (0, 1))
        shares = 100 * counts / len(risks)
        middles = 100 * (edges[:-1] + edges[1:]) / 2
        points = (
            FigurePoint(x, y, None, None, len(risks), 0)
            for x, y in zip(middles.tolist(), shares.tolist(), strict=True)
        )
        series.append(Series(f"{group} ({len(risks):,} people)", tuple(points)))
    return Figure(
        "people", "How likely the adversary finds each person's group",
        "Share of the people of each group by the probability that the adversary gives their true "
        f"group, in {_BINS} classes.",
        Axis("probability of the true group, %"), Axis("people of the group, %"),
        (Panel("", tuple(sorted(series, key=lambda one: one.name))),),
    )  # fmt: skip
