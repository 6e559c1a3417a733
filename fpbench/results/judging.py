"""Rows compared with the statements of their matrix: what holds, and the tables of the matrix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from textwrap import shorten
from typing import Any

import numpy as np
import pandas as pd

from fpbench.base.sheet import Column, Sheet
from fpbench.base.text import format_number
from fpbench.components.names import KINDS
from fpbench.matrix.expectations import Expectation, SummaryColumn, SummaryTable
from fpbench.matrix.matrix import Matrix
from fpbench.results.intervals import Interval, estimate_interval
from fpbench.results.rows.selection import RowGroup
from fpbench.results.sentences import list_words
from fpbench.results.verdicts import (
    ExpectationOutcome,
    ExpectationVerdict,
    evaluate,
    evaluate_strongest,
    take_strongest,
)
from fpbench.store.results import Results

_MOST_REASONS = 4
"""Greatest number of reasons listed for checks that could not be run."""
_REASON_LENGTH = 90
"""Greatest length of a reason; the table of the checks has all of it."""
_MOST_EXCEPTIONS = 4
"""Statements with more exceptions do not name them; the table of their verdicts does."""


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """The verdicts on all statements of a matrix."""

    title: str
    scale: str
    """The profile and number of seeds, if the whole matrix has others; or empty."""
    tables: list[Sheet]
    """The tables that the matrix asks for."""
    verdicts: list[ExpectationVerdict]
    """Verdicts on the statements, one by one."""
    tables_of_strongest: list[Sheet]
    """Tables beyond the paper: of the strongest adversaries of the run."""
    verdicts_on_strongest: list[ExpectationVerdict]

    @property
    def sentences(self) -> tuple[str, ...]:
        """The number of statements that hold, in plain English."""
        strongest = self.verdicts_on_strongest
        counted = f"{describe_standings(self.verdicts)} {describe_outcomes(self.verdicts)}"
        beside = f"With the strongest adversary only: {describe_standings(strongest)}"
        return tuple(filter(None, (counted, beside if strongest else "", self.scale)))

    @property
    def deviates(self) -> bool:
        """Whether any statement deviates from the measured numbers."""
        return any(verdict.outcome == ExpectationOutcome.DEVIATES for verdict in self.verdicts)


def judge_results(matrix: Matrix, results: Results) -> Judgement:
    """The rows of a run, compared with the statements of its matrix."""
    rows = RowGroup(results)
    tables = [(table, lay_out_summary(table, summarise(table, rows))) for table in matrix.summaries]
    return Judgement(
        title=matrix.title,
        scale=_describe_scale(matrix, len({*results.seeds.tolist()})),
        tables=[sheet for table, sheet in tables if not table.strongest],
        verdicts=evaluate(matrix.expect, rows),
        tables_of_strongest=[sheet for table, sheet in tables if table.strongest],
        verdicts_on_strongest=evaluate_strongest(matrix.expect, rows),
    )


def _describe_scale(matrix: Matrix, seeds: int) -> str:
    """The scale of a run that is smaller or larger than its whole matrix; empty if it is not."""
    profile = f"profile {matrix.profile}" if matrix.profile else ""
    instead = f"{seeds} seed{'s' * (seeds != 1)} instead of {matrix.seeds_in_full}"
    chosen = (f"{kind} {', '.join(sorted(own)) or '-'}" for kind, own in matrix.chosen.items())
    parts = [profile, instead if seeds != matrix.seeds_in_full else "", *chosen]
    words = ", ".join(filter(None, parts))
    return f"Not the whole matrix: {words}." if words else ""


class Standing(StrEnum):
    """The result of a statement as a whole."""

    HOLDS = "holds"
    CONDITIONS = "holds under conditions"
    RARELY = "holds in few cases"
    FAILS = "does not hold"
    UNDECIDED = "undecided"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class JudgedStatement:
    """A statement beside all verdicts on it, one for each data set and setting."""

    expectation: Expectation
    standing: Standing
    """`holds` if all verdicts are matched; `holds under conditions` if half of them or more are,
    and others deviate or are undecided, and `holds in few cases` if fewer are; `does not hold` if
    none is matched and some deviate. Cells that were not run do not count."""
    counts: dict[ExpectationOutcome, int]
    """Number of verdicts by outcome, without those that were not run."""
    least: float | None
    """The least of our numbers; None if nothing was run."""
    greatest: float | None
    verdicts: tuple[ExpectationVerdict, ...]
    """All verdicts on it, even those that were not run."""
    where: dict[ExpectationOutcome, tuple[str, ...]]
    """Data sets and settings by outcome, for statements that hold in some cases only."""


def judge_statements(verdicts: Iterable[ExpectationVerdict]) -> list[JudgedStatement]:
    """Statements with their standing, in the order of their verdicts.

    `verdicts`: as `evaluate` returns them, those of one statement adjacent.
    """
    return [
        _judge(expectation, list(group))
        for expectation, group in groupby(verdicts, key=lambda verdict: verdict.expectation)
    ]


_STANDS = {
    Standing.HOLDS: ("holds", "hold"),
    Standing.CONDITIONS: ("holds under conditions", "hold under conditions"),
    Standing.RARELY: ("holds in few cases", "hold in few cases"),
    Standing.FAILS: ("does not hold", "do not hold"),
    Standing.UNDECIDED: ("is undecided", "are undecided"),
    Standing.NOT_RUN: ("was not run", "were not run"),
}


def describe_standings(verdicts: Iterable[ExpectationVerdict]) -> str:
    """The numbers of statements that hold and do not hold, in a sentence."""
    judged = judge_statements(verdicts)
    counts = Counter(one.standing for one in judged)
    parts = [
        f"{counts[standing]} {words[counts[standing] != 1]}"
        for standing, words in _STANDS.items()
        if counts[standing]
    ]
    return f"Of {len(judged)} statement{'s' * (len(judged) != 1)}, {list_words(parts)}."


_BECAME = {
    ExpectationOutcome.MATCHED: "matched what is stated",
    ExpectationOutcome.DEVIATES: "deviated",
    ExpectationOutcome.UNDECIDED: "stayed undecided",
    ExpectationOutcome.NOT_RUN: "could not be run",
}


def describe_outcomes(verdicts: Collection[ExpectationVerdict]) -> str:
    """The number of verdicts of each outcome, in a sentence."""
    counts = Counter(verdict.outcome for verdict in verdicts)
    parts = [f"{counts[outcome]} {verb}" for outcome, verb in _BECAME.items() if counts[outcome]]
    return f"Of {len(verdicts)} check{'s' * (len(verdicts) != 1)}, {list_words(parts)}."


def _judge(expectation: Expectation, verdicts: list[ExpectationVerdict]) -> JudgedStatement:
    run = [verdict for verdict in verdicts if verdict.outcome is not ExpectationOutcome.NOT_RUN]
    counted = Counter(verdict.outcome for verdict in run)
    counts = {outcome: counted[outcome] for outcome in ExpectationOutcome if counted[outcome]}
    standing = _decide_standing(counts)
    places: dict[ExpectationOutcome, list[str]] = {}
    for verdict in run if standing in (Standing.CONDITIONS, Standing.RARELY) else ():
        place = ", ".join(str(value) for value in verdict.per.values())
        places.setdefault(verdict.outcome, []).append(place)
    where = {outcome: tuple(places[outcome]) for outcome in ExpectationOutcome if outcome in places}
    means = [verdict.ours.mean for verdict in run if verdict.ours is not None]
    least, greatest = (min(means), max(means)) if means else (None, None)
    return JudgedStatement(expectation, standing, counts, least, greatest, tuple(verdicts), where)


def _decide_standing(counts: dict[ExpectationOutcome, int]) -> Standing:
    if not counts:
        return Standing.NOT_RUN
    if set(counts) == {ExpectationOutcome.MATCHED}:
        return Standing.HOLDS
    if ExpectationOutcome.MATCHED in counts:
        often = 2 * counts[ExpectationOutcome.MATCHED] >= sum(counts.values())
        return Standing.CONDITIONS if often else Standing.RARELY
    return Standing.FAILS if ExpectationOutcome.DEVIATES in counts else Standing.UNDECIDED


def list_verdict_sheets(verdicts: Sequence[ExpectationVerdict]) -> list[Sheet]:
    """A table for each statement: what was stated, and whether our numbers agree."""
    return [
        lay_out_verdicts(expectation, list(group))
        for expectation, group in groupby(verdicts, key=lambda verdict: verdict.expectation)
    ]


def lay_out_verdicts(expectation: Expectation, verdicts: Sequence[ExpectationVerdict]) -> Sheet:
    """The checks of a statement: ours, its interval, and whether they agree."""
    names = list(dict.fromkeys(name for verdict in verdicts for name in verdict.per))
    places = {name: [str(verdict.per.get(name, "")) for verdict in verdicts] for name in names}
    varying = [name for name in names if len(set(places[name])) > 1]
    shared = [f"{name} {places[name][0]}" for name in names if name not in varying]
    tolerance = f", tolerance {expectation.tolerance:g}" if expectation.tolerance else ""
    stated = expectation.stated
    stated = stated if isinstance(stated, str) else format_number(stated)
    columns = [
        Column("", number=False),
        *(Column(name, number=False) for name in varying),
        *map(Column, ("ours", "95 %", "seeds")),
        Column("note", number=False),
    ]
    rows = [
        (verdict.outcome.value, *(places[name][i] for name in varying), *_format_ours(verdict),
         verdict.note)
        for i, verdict in enumerate(verdicts)
    ]  # fmt: skip
    used = [i for i in range(len(columns)) if any(row[i] for row in rows)]
    return Sheet(
        title=f"{expectation.says} ({expectation.source})",
        about=" · ".join([f"{expectation.quantity}; stated: {stated}{tolerance}", *shared]),
        columns=tuple(columns[i] for i in used),
        rows=tuple(tuple(row[i] for i in used) for row in rows),
    )


def _format_ours(verdict: ExpectationVerdict) -> tuple[str, str, str]:
    """Our number, its interval and its number of seeds."""
    ours = verdict.ours
    if ours is None:
        return "", "", ""
    spread = "" if ours.low is None else f"{format_number(ours.low)} to {format_number(ours.high)}"
    return format_number(ours.mean), spread, str(ours.count)


def make_standings_sheet(
    verdicts: Sequence[ExpectationVerdict], title: str = "", opening: tuple[str, ...] = ()
) -> Sheet:
    """One line per statement: whether it holds, how often, and the range of our numbers."""
    rows = []
    for judged in judge_statements(verdicts):
        run = sum(judged.counts.values())
        matched = f"{judged.counts.get(ExpectationOutcome.MATCHED, 0)} of {run}" if run else "-"
        statement = judged.expectation.says + _name_exceptions(judged)
        kind = judged.expectation.statistic
        rows.append((judged.standing.value, statement, matched, format_range(judged), kind))
    columns = (
        Column("verdict", number=False),
        Column("statement", number=False),
        Column("matched"),
        Column("ours"),
        Column("statistic", number=False),
    )
    notes = _list_reasons(verdicts)
    return Sheet(title, "", columns, tuple(rows), notes=notes, opening=opening)


def _list_reasons(verdicts: Sequence[ExpectationVerdict]) -> tuple[str, ...]:
    """Why checks could not be run, each reason once."""
    lost = [verdict.note for verdict in verdicts if verdict.outcome is ExpectationOutcome.NOT_RUN]
    reasons = [shorten(reason, _REASON_LENGTH, placeholder=" …") for reason in dict.fromkeys(lost)]
    more = [f"further reasons: {len(reasons) - _MOST_REASONS}"] * (len(reasons) > _MOST_REASONS)
    return (*(f"not run: {reason}" for reason in reasons[:_MOST_REASONS]), *more)


def _name_exceptions(judged: JudgedStatement) -> str:
    """Exceptions of a statement that holds in other cases, if the exceptions are few."""
    places = [place for outcome, names in judged.where.items()
              if outcome is not ExpectationOutcome.MATCHED for place in names]  # fmt: skip
    return f" (not {'; '.join(places)})" if 0 < len(places) <= _MOST_EXCEPTIONS else ""


def format_range(judged: JudgedStatement) -> str:
    """Our numbers on a statement: one, or the least and the greatest."""
    least, greatest = format_number(judged.least), format_number(judged.greatest)
    return least if judged.least == judged.greatest else f"{least} to {greatest}"


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
    by_seed = pd.Series(mine.numbers(column.measure)).groupby(mine.values("seed"))
    if column.statistic != "seeds" and (by_seed.nunique() > 1).any():
        return None, True
    values = np.asarray(by_seed.first().dropna(), np.float64)
    return (estimate_interval(values, column.measure) if len(values) else None), False


def lay_out_summary(summary: SummaryTable, lines: Sequence[SummaryRow]) -> Sheet:
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
            *(Column(_HEADINGS.get(name, name), number=False) for name in varying),
            *(Column(column.heading.replace("_", " "), wraps=True) for column in columns),
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
