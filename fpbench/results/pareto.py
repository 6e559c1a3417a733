"""Learners that no other dominates in accuracy, unfairness, advantage and epsilon together."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpbench.base.sheet import Column, Sheet, write_html, write_plain
from fpbench.components.measures import GREATER
from fpbench.components.own_measures import GLOSSARY, GUARANTEE, NO_GUARANTEE
from fpbench.results.defences import STRONGEST, tally_defences
from fpbench.results.rows.lines import Tallies
from fpbench.results.statistics.intervals import Interval, estimate_interval
from fpbench.store.results import Results

OBJECTIVES = ("test_accuracy", "test_unfairness", "advantage", "epsilon")
"""Measures of a learner that the front is of."""

_RESAMPLES = 1_000
_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FrontPoint:
    """A learner on one data set."""

    labels: Mapping[str, str]
    """Data set and learner."""
    values: Mapping[str, Interval]
    """Means of the objectives that it has; a learner without `epsilon` promises nothing."""
    guarantee: str
    """Neighbours and delta of its epsilon; `none` without one."""
    strongest: str
    """The strongest attack on it."""
    beaten_by: tuple[str, ...]
    """Learners that are at least as good in everything, and better in something."""
    share: float | None
    """Share of the resamples of the seeds in which nothing beats it; None for one seed."""
    lacks: tuple[str, ...] = ()
    """Objectives that it lacks at some seed, so that it is not compared."""

    @property
    def on_front(self) -> bool:
        """Whether it is compared and nothing beats it."""
        return not self.beaten_by and not self.lacks


@dataclass(frozen=True)
class Front:
    """The learners of a data set, those on the Pareto front first."""

    title: str
    dataset: str
    objectives: tuple[str, ...]
    """Names of the measures that points are compared by: those that some have."""
    points: tuple[FrontPoint, ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The table."""
        return write_plain([make_front_sheet(self)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return write_html([make_front_sheet(self)])


def make_front_sheet(front: Front, most: int | None = None) -> Sheet:
    """A Pareto front as a table: the learners on it, then those that are dominated."""
    names = [GLOSSARY.heading(name) for name in front.objectives]
    rows = []
    for point in front.points[:most]:
        intervals = [point.values.get(name) for name in front.objectives]
        lacking = [point.guarantee if name == "epsilon" else "-" for name in front.objectives]
        values = [
            GLOSSARY[name].write(value.mean) if value else lacking[i]
            for i, (name, value) in enumerate(zip(front.objectives, intervals, strict=True))
        ]
        others = len(point.beaten_by) - 1
        beaten = f"dominated by {point.beaten_by[0]}" if point.beaten_by else ""
        beaten += f" and {others} more" if others > 0 else ""
        if point.lacks:
            beaten = (
                f"not compared: no {', '.join(map(GLOSSARY.heading, point.lacks))} at every seed"
            )
        sure = "-" if point.share is None else f"{point.share:.0%}"
        rows.append((
            "front" if point.on_front else "", point.labels["learner"], *values, sure,
            point.guarantee, beaten,
        ))  # fmt: skip
    columns = [
        Column("", number=False), Column("learner", number=False), *map(Column, names),
        Column("sure"), Column(GUARANTEE, number=False), Column("", number=False),
    ]  # fmt: skip
    silent = [NO_GUARANTEE if column.heading == GUARANTEE else "" for column in columns]
    used = [i for i in range(len(columns)) if any(row[i] != silent[i] for row in rows)]
    notes = ["sure: in how many bootstrap samples of the seeds a learner stays on the front"]
    return Sheet(
        title=front.title,
        about=f"Pareto front · dataset {front.dataset}",
        columns=tuple(columns[i] for i in used),
        rows=tuple(tuple(row[i] for i in used) for row in rows),
        notes=(*front.notes, *notes),
        unshown=len(front.points) - len(rows),
        spare=(GUARANTEE,),
    )


def find_fronts(results: Results, title: str = "") -> list[Front]:
    """The Pareto front of the learners of each data set; none without attacks.

    A learner without a guarantee has an infinite epsilon. Epsilons of guarantees with different
    neighbours or deltas are not comparable, so neither of two such learners beats the other. Means
    over seeds are compared; the certainty that a learner is on the front is the share of 1,000
    joint resamples of the seeds in which it is. A learner that lacks accuracy, unfairness or
    advantage is not compared.
    """
    learners = tally_defences(results)
    tally = Tallies(learners.results)
    values = np.stack([tally.by_seed(name) for name in OBJECTIVES], axis=-1)
    done = np.isfinite(tally.by_seed("strongest_accuracy"))
    of_dataset: dict[str, list[int]] = {}
    for line in np.flatnonzero(tally.done).tolist():
        of_dataset.setdefault(tally.labels(line)["dataset"], []).append(line)
    fronts = []
    for dataset, lines in of_dataset.items():
        compared = [tally.labels(line) for line in lines]
        words = [learners.labels[dataset, labels["learner"]] for labels in compared]
        seeds = done[lines].all(axis=0)
        names, notes = [labels["learner"] for labels in compared], learners.notes.get(dataset, [])
        front = _make_front(title, dataset, names, words, values[lines][:, seeds], notes)
        fronts.append(front)
    return fronts


def _make_front(
    title: str,
    dataset: str,
    learners: Sequence[str],
    words: Sequence[Mapping[str, str]],
    values: _Floats,
    remarks: Sequence[str],
) -> Front:
    """The front of (learners, seeds, objectives) values."""
    notes = [*remarks]
    if not values.shape[1]:
        return Front(title, dataset, (), (), (*notes, "learners share no seed: none is compared"))
    used = [i for i, name in enumerate(OBJECTIVES) if not np.isnan(values[:, :, i]).all()]
    objectives = tuple(OBJECTIVES[i] for i in used)
    if not used:
        return Front(title, dataset, (), (), (*notes, "no accuracy, unfairness or advantage"))
    costs = _compute_costs(values[:, :, used], objectives)
    kinds = [labels[GUARANTEE] for labels in words]
    beats = _compare_learners(costs.mean(axis=1), kinds, objectives)
    shares = _count_resamples(costs, kinds, objectives)
    lacking: NDArray[np.bool_] = np.asarray(np.isnan(costs).any(axis=1))
    points = [
        FrontPoint(
            labels={"dataset": dataset, "learner": learner},
            values=_compute_intervals(values[i]),
            guarantee=kinds[i],
            strongest=words[i][STRONGEST],
            beaten_by=tuple(learners[j] for j in np.flatnonzero(beats[:, i]).tolist()),
            share=None if shares is None or lacking[i].any() else float(shares[i]),
            lacks=tuple(objectives[j] for j in np.flatnonzero(lacking[i]).tolist()),
        )
        for i, learner in enumerate(learners)
    ]
    if shares is None:
        notes.append("one seed does not tell how sure the front is")
    order = sorted(
        range(len(points)),
        key=lambda i: (bool(points[i].lacks), not points[i].on_front, costs[i, :, 0].mean()),
    )
    return Front(title, dataset, objectives, tuple(points[i] for i in order), tuple(notes))


def _compute_intervals(values: _Floats) -> dict[str, Interval]:
    """(seeds, objectives) as means, for the objectives that are known at every seed."""
    intervals = {}
    for i, name in enumerate(OBJECTIVES):
        if np.isfinite(values[:, i]).all():
            intervals[name] = estimate_interval(values[:, i], name)
    return intervals


def _compute_costs(values: _Floats, objectives: Sequence[str]) -> _Floats:
    """(learners, seeds, objectives) costs, the less the better; infinite without a guarantee."""
    costs = values.copy()
    for i, name in enumerate(objectives):
        if GLOSSARY[name].better == GREATER:
            costs[:, :, i] *= -1
        if name == "epsilon":
            costs[:, :, i] = np.where(np.isnan(costs[:, :, i]), np.inf, costs[:, :, i])
    return costs


def _compare_learners(
    means: _Floats, kinds: Sequence[str], objectives: Sequence[str]
) -> NDArray[np.bool_]:
    """(learners, learners) whether the first beats the second.

    `means`: (..., learners, objectives) costs; NaN compares with nothing. `kinds`: neighbours and
    delta of the epsilon of each learner.
    """
    one, other = means[..., :, None, :], means[..., None, :, :]
    better = (one <= other).all(axis=-1) & (one < other).any(axis=-1)
    if "epsilon" in objectives:
        of = np.array(kinds)
        # Any guarantee is better than none.
        same = (of[:, None] == of) | (of == NO_GUARANTEE)
        better &= same
    return np.asarray(better)


def _count_resamples(
    costs: _Floats, kinds: Sequence[str], objectives: Sequence[str]
) -> _Floats | None:
    """(learners,) share of joint resamples of the seeds in which nothing beats each learner."""
    learners, seeds, _ = costs.shape
    if seeds < 2:
        return None
    rng = np.random.default_rng(zlib.crc32(b"pareto"))
    counts = np.zeros(learners)
    for draw in rng.integers(seeds, size=(_RESAMPLES, seeds)):
        beats = _compare_learners(costs[:, draw].mean(axis=1), kinds, objectives)
        counts += ~beats.any(axis=0)
    return counts / _RESAMPLES


def as_data(fronts: Sequence[Front]) -> list[dict[str, Any]]:
    """Fronts as plain data, for JSON."""
    return [
        {
            "title": front.title,
            "view": "pareto",
            "dataset": front.dataset,
            "objectives": list(front.objectives),
            "notes": list(front.notes),
            "points": [
                {
                    "labels": dict(point.labels),
                    "on_front": point.on_front,
                    "share_of_resamples": point.share,
                    "beaten_by": list(point.beaten_by),
                    "lacks": list(point.lacks),
                    "guarantee": point.guarantee,
                    "strongest_attack": point.strongest,
                    "values": {name: vars(value) for name, value in point.values.items()},
                }
                for point in front.points
            ],
        }
        for front in fronts
    ]
