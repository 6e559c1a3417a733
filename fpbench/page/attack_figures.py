"""Figures of one attack on a model: whose group is at risk, and what gives the group away."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fpbench.components.names import KINDS
from fpbench.page.figures import Axis, Figure, FigurePoint, Panel, Series
from fpbench.page.ideas import draw_waterfalls
from fpbench.results.waterfall import Waterfall

if TYPE_CHECKING:
    from pandas import DataFrame

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
