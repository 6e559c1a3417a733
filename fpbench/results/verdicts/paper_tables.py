"""The tables that a matrix asks for, from our rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fpbench.base.sheet import Column as SheetColumn
from fpbench.base.sheet import Sheet
from fpbench.base.text import format_number
from fpbench.components.names import KINDS
from fpbench.matrix.summary_tables import SummaryColumn, SummaryTable
from fpbench.results.rows.groups import RowGroup
from fpbench.results.statistics.intervals import Interval, estimate_interval
from fpbench.results.verdicts.verdicts import take_strongest

_OPTIONAL = ("mechanism", "policy")
"""Kinds that an audit need not have."""


@dataclass(frozen=True)
class SummaryRow:
    """One line of a `[[summary]]`."""

    labels: Mapping[str, str]
    values: tuple[Interval | None, ...]
    """For each column the mean over seeds; None where no row has a value."""
    several: tuple[bool, ...]
    """Whether rows of a seed have different values: there is no mean then."""


def summarise(summary: SummaryTable, rows: RowGroup) -> list[SummaryRow]:
    """The lines of a summary, in the order in which their labels first appear.

    `rows`: rows of a run; those that are done count.
    """
    chosen = (take_strongest(rows) if summary.strongest else rows).done().where(summary.where)
    lines = []
    for key, group in chosen.split(summary.rows).items():
        labels = {name: _format_label(value) for name, value in zip(summary.rows, key, strict=True)}
        if not all(labels[k] for k in labels if k in KINDS and k not in _OPTIONAL):
            continue
        values, several = zip(
            *(_compute_value(column, group) for column in summary.columns), strict=True
        )
        if any(values) or any(several):
            lines.append(SummaryRow(labels, values, several))
    return lines


def _format_label(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else f"{value:g}"


def _compute_value(column: SummaryColumn, group: RowGroup) -> tuple[Interval | None, bool]:
    """The mean over seeds of a column; and whether rows of a seed differ, so that there is none."""
    mine = group.where(column.where)
    by_seed: dict[int, set[float]] = {}
    for seed, value in zip(mine.values("seed"), mine.numbers(column.measure).tolist(), strict=True):
        if not math.isnan(value):
            by_seed.setdefault(seed, set()).add(value)
    if column.statistic != "seeds" and any(len(values) > 1 for values in by_seed.values()):
        return None, True
    means = [next(iter(by_seed[seed])) for seed in sorted(by_seed)]
    return (estimate_interval(np.array(means), column.measure) if means else None), False


def make_sheet(summary: SummaryTable, lines: Sequence[SummaryRow]) -> Sheet:
    """A summary as a table; what all its lines share is written once, above it."""
    if not lines:
        return Sheet(summary.title, "nothing of it has been run", (), ())
    varying = [k for k in summary.rows if len({line.labels[k] for line in lines}) > 1]
    varying = varying or summary.rows[-1:]
    shared = [f"{_HEADINGS.get(name, name)} {lines[0].labels[name]}" for name in summary.rows
              if name not in varying and lines[0].labels[name]]  # fmt: skip
    seeds = max((value.count for line in lines for value in line.values if value), default=1)
    shared.append("one seed" if seeds == 1 else f"means over {seeds} seeds")
    places = [place for place in range(len(summary.columns))
              if any(line.values[place] or line.several[place] for line in lines)]  # fmt: skip
    columns = [summary.columns[place] for place in places]
    several = "several: rows of one seed have different values; `where` narrows them down"
    return Sheet(
        title=summary.title,
        about=" · ".join(shared),
        columns=(
            *(SheetColumn(_HEADINGS.get(name, name), number=False) for name in varying),
            *(SheetColumn(column.heading.replace("_", " "), wraps=True) for column in columns),
        ),
        rows=tuple(
            (
                *(line.labels[name] or _ABSENT.get(name, "") for name in varying),
                *(
                    _format_value(summary.columns[i], line.values[i], line.several[i])
                    for i in places
                ),
            )
            for line in lines
        ),
        notes=(several,) if any(any(line.several) for line in lines) else (),
        spare=tuple(
            column.heading.replace("_", " ")
            for column in sorted(reversed(columns), key=lambda each: not each.spare)  # noqa: C414 - the order of equals
        ),
    )


_HEADINGS = {
    "asked_metric": "metric",
    "asked_tolerance": "tolerance",
    "claim_metric": "claimed metric",
}
_ABSENT = {"asked_metric": "none"}
"""The text for a learner that was trained for no metric."""


def _format_value(column: SummaryColumn, value: Interval | None, several: bool) -> str:
    if several:
        return "several"
    if value is None:
        return "-"
    if column.statistic == "seeds":
        return str(value.count)
    return format_number(value.mean if column.statistic == "mean" else value.deviation)
