"""Tables of verdicts: one by one, and by statement."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from textwrap import shorten

from fpbench.base.sheet import Column, Sheet
from fpbench.base.text import format_number
from fpbench.matrix.expectations import Expectation
from fpbench.results.verdicts.standings import JudgedStatement, judge_statements
from fpbench.results.verdicts.verdicts import ExpectationOutcome, ExpectationVerdict

_MOST_REASONS = 4
"""Greatest number of reasons listed for checks that could not be run."""
_REASON_LENGTH = 90
"""Greatest length of a reason; the table of the checks has all of it."""
_MOST_EXCEPTIONS = 4
"""Statements with more exceptions do not name them; the table of their verdicts does."""


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
