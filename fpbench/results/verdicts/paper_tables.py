"""The tables of a paper, from our rows: attacks and audits, averaged over seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fpbench.components.names import ATTACK, AUDIT, Status
from fpbench.matrix.asked_tables import Column, Summary
from fpbench.results.leaderboard import AUDITED
from fpbench.results.statistics.intervals import Interval, interval
from fpbench.results.verdicts.evidence import Row, number

SUMMARISED = (
    "train_accuracy", "test_accuracy", "train_unfairness", "test_unfairness", "initial_accuracy",
    "corrected_accuracy", "gain", "gain_over_best", "metric_right", "claim_tolerance",
)  # fmt: skip
"""Measures of a line, where its rows have them."""


@dataclass(frozen=True)
class SummaryLine:
    """One combination of components, over all seeds."""

    labels: Mapping[str, str]
    """Dataset, learner, disclosure, adversary and corrector."""
    metric: str | None
    """What the learner was trained for; None for nothing."""
    tolerance: float | None
    """The tolerance that it was asked for."""
    measures: Mapping[str, Interval]
    """Those of `SUMMARISED` that rows have, with deviations over seeds."""
    claimed: Mapping[str, float]
    """Metrics of the claims, each with its share of the rows that have one."""
    seeds: int
    """Seeds that are done."""


@dataclass(frozen=True)
class AuditLine:
    """One combination of components of audits, over all seeds."""

    labels: Mapping[str, str]
    """Dataset, learner, auditor, mechanism and policy."""
    measures: Mapping[str, Interval]
    """Those of `AUDITED` that rows have."""
    seeds: int
    """Seeds that are done."""


@dataclass(frozen=True)
class SummaryRow:
    """One line of a `[[summary]]`."""

    labels: Mapping[str, str]
    values: tuple[Interval | None, ...]
    """For each column the mean over seeds; None where no row says it."""
    several: tuple[bool, ...]
    """Whether rows of a seed said different things: there is no value then."""


def audit_summary(rows: Iterable[Row]) -> list[AuditLine]:
    """The lines of the audits that are done, in the order of the matrix.

    Parameters
    ----------
    rows
        Rows as `Store.rows` gives them, beside each other.
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row["status"] == Status.DONE and row["auditor"]:
            groups.setdefault(tuple(row[kind] for kind in AUDIT), []).append(row)
    return [
        AuditLine(dict(zip(AUDIT, labels, strict=True)), _measures(group, AUDITED), len(group))
        for labels, group in groups.items()
    ]


def summary(rows: Iterable[Row], tolerances: int = 3) -> list[SummaryLine]:
    """The lines of a paper's table.

    Parameters
    ----------
    rows
        Rows as `Store.rows` gives them; those of attacks that are done count.
    tolerances
        Where learners of a dataset and metric have more tolerances than this: how many to keep,
        from the tightest to the loosest, evenly spaced in their order.

    Returns
    -------
    list of SummaryLine
        In the order of the plan, by dataset and metric; a metric's tolerances ascend.
    """
    done = [row for row in rows if row["status"] == Status.DONE and row["adversary"]]
    asked: dict[tuple[Any, Any], set[float]] = {}
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in done:
        target, tolerance = _target(row), number(row, "asked_tolerance")
        here = asked.setdefault(target, set())
        if tolerance is not None:
            here.add(tolerance)
        groups.setdefault((target, tolerance, *(row[kind] for kind in ATTACK)), []).append(row)
    place = {target: i for i, target in enumerate(asked)}
    kept = {target: _spread(sorted(found), tolerances) for target, found in asked.items()}
    order = sorted(groups, key=lambda key: (place[key[0]], -1 if key[1] is None else key[1]))
    return [_line(groups[key]) for key in order if key[1] is None or key[1] in kept[key[0]]]


def _target(row: Row) -> tuple[Any, Any]:
    return row["dataset"], row.get("asked_metric")


def _spread(values: list[float], count: int) -> set[float]:
    """So many of some values, the first and the last among them."""
    if len(values) <= count:
        return set(values)
    return {values[round(at)] for at in np.linspace(0, len(values) - 1, count)}


def _line(group: list[Row]) -> SummaryLine:
    group = sorted(group, key=lambda row: row["seed"])  # of equal counts the first comes first
    claims = Counter(row["claim_metric"] for row in group if row.get("claim_metric"))
    return SummaryLine(
        labels={kind: group[0][kind] for kind in ATTACK},
        metric=group[0].get("asked_metric"),
        tolerance=number(group[0], "asked_tolerance"),
        measures=_measures(group, SUMMARISED),
        claimed={metric: count / claims.total() for metric, count in claims.most_common()},
        seeds=len(group),
    )


def _measures(group: Iterable[Row], names: Iterable[str]) -> dict[str, Interval]:
    """Means over seeds of those measures that rows have."""
    group = sorted(group, key=lambda row: row["seed"])  # an interval depends on their order
    values = {name: [v for row in group if (v := number(row, name)) is not None] for name in names}
    return {name: interval(np.array(found), name) for name, found in values.items() if found}


def summarise(summary: Summary, rows: Iterable[Row]) -> list[SummaryRow]:
    """The lines of a summary, in the order in which their labels first come.

    Parameters
    ----------
    summary
        What is asked for.
    rows
        Rows as `Store.rows` gives them; those that are done count.
    """
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if row["status"] == Status.DONE and _meant(row, summary.where):
            key = tuple(row[kind] for kind in summary.rows)
            if all(key):
                groups.setdefault(key, []).append(row)
    found = []
    for key, group in groups.items():
        values, several = zip(*(_value(column, group) for column in summary.columns), strict=True)
        if any(values) or any(several):
            found.append(SummaryRow(dict(zip(summary.rows, key, strict=True)), values, several))
    return found


def _meant(row: Row, where: Mapping[str, Any]) -> bool:
    for column, wanted in where.items():
        values = wanted if isinstance(wanted, list) else [wanted]
        if not any(row.get(column) == value for value in values):
            return False
    return True


def _value(column: Column, group: Sequence[Row]) -> tuple[Interval | None, bool]:
    """The mean over seeds of what rows say; a seed whose rows differ has no one value."""
    by_seed: dict[int, set[float]] = {}
    for row in group:
        value = number(row, column.measure)
        if value is not None and _meant(row, column.where):
            by_seed.setdefault(row["seed"], set()).add(value)
    if any(len(values) > 1 for values in by_seed.values()):
        return None, True
    means = [next(iter(by_seed[seed])) for seed in sorted(by_seed)]
    return (interval(np.array(means), column.measure) if means else None), False
