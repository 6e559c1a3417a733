"""Whether rows agree with expectations: pure functions of stored rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import fmean  # of exact sums, so that the order of rows does not matter
from typing import Any

import numpy as np
import pandas as pd

from fpbench.base.errors import suggest_name
from fpbench.components.names import KINDS
from fpbench.matrix.expectations import Expectation, NumberRegion
from fpbench.results.rows.groups import RowGroup
from fpbench.results.statistics.intervals import Interval
from fpbench.results.verdicts.evidence import Evidence, gather_evidence, take_complete

_PLANNED = (*KINDS, "seed")
"""Columns that a row has before it is run."""


class ExpectationOutcome(StrEnum):
    """The outcome of an expectation."""

    MATCHED = "matched"
    DEVIATES = "deviates"
    UNDECIDED = "undecided"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class ExpectationVerdict:
    """An expectation compared with our rows, for one combination of values.

    Notes
    -----
    With R the region in which the number lies if the statement is true, and I our 95 % interval:
    `matched` if I lies inside R, `deviates` if I lies outside R, `undecided` if it lies across an
    edge of R or there are too few seeds for the check. With one seed, which has no interval, the
    number itself decides, and the note says so; a `share` has an interval even then.

    If all seeds gave the same number there is no interval either: the number decides, and the note
    says so. Of statements that are neither true nor false (a gain of 0 "above 0"), 5 % are decided
    at 20 seeds, 8 % at 5, 25 % at 3 and half at 2, for normal values: the bootstrap is too narrow
    for few seeds. `least` and `most` have another interval: 4 % or less are decided at any number.
    """

    expectation: Expectation
    per: Mapping[str, Any]
    """The combination: values of `dataset` and of the columns of `per` and `readings`."""
    outcome: ExpectationOutcome
    ours: Interval | None
    """Our number, which `expectation.quantity` describes; None if there is none."""
    rows: int
    """Number of rows behind it."""
    note: str
    """Why it was not run or not decided, and what was left out."""

    @property
    def stated(self) -> float | str:
        """The stated number, or the condition on ours."""
        return self.expectation.stated


def evaluate(
    expectations: Iterable[Expectation], rows: RowGroup, ignore: Collection[str] = ()
) -> list[ExpectationVerdict]:
    """Verdicts on expectations, at least one for each, in their order.

    `rows`: rows of any status. Their order decides the order of the verdicts and nothing else. A
    data set without a done row has a verdict of its own, `not run`. `ignore`: columns to leave out
    of `where` and `per` of the expectations.
    """
    return [
        verdict
        for expectation in expectations
        for verdict in _compare_readings(list(_evaluate(expectation, rows, frozenset(ignore))))
    ]


def _compare_readings(verdicts: list[ExpectationVerdict]) -> Iterator[ExpectationVerdict]:
    """Verdicts on an expectation, decided only where all readings of its source agree."""
    run = [verdict for verdict in verdicts if verdict.outcome is not ExpectationOutcome.NOT_RUN]
    outcomes = defaultdict(set)
    for verdict in run:
        outcomes[_leave_out_readings(verdict)].add(verdict.outcome)
    for verdict in verdicts:
        if verdict in run and len(outcomes[_leave_out_readings(verdict)]) > 1:
            note = f"{verdict.outcome} by this reading, and not by every other"
            note = "; ".join(filter(None, (note, verdict.note)))
            yield replace(verdict, outcome=ExpectationOutcome.UNDECIDED, note=note)
        else:
            yield verdict


def _leave_out_readings(verdict: ExpectationVerdict) -> tuple[tuple[str, Any], ...]:
    readings = verdict.expectation.readings
    return tuple((name, value) for name, value in verdict.per.items() if name not in readings)


def evaluate_strongest(
    expectations: Iterable[Expectation], rows: RowGroup
) -> list[ExpectationVerdict]:
    """Verdicts on expectations about some adversaries, from the rows of the strongest ones.

    Expectations whose `where` names no adversary are left out, as they are about the targets or
    about all adversaries. Expectations with `strongest = false` are left out, too.
    """
    named = [e for e in expectations if "adversary" in e.where and e.strongest]
    return evaluate(named, take_strongest(rows), ignore=("adversary",))


def find_strongest(rows: RowGroup) -> dict[tuple[str, str], str]:
    """The adversary with the highest mean `initial_accuracy`, per dataset and learner.

    Of equals, the first in alphabetical order.
    """
    done = rows.done()
    guesses = done.take(~np.isnan(done.numbers("initial_accuracy")))
    keys = [guesses.values(kind) for kind in ("dataset", "learner", "adversary")]
    means = pd.Series(guesses.numbers("initial_accuracy")).groupby(keys).agg(fmean)
    best = means.groupby(level=[0, 1]).idxmax()
    return {(dataset, learner): who for dataset, learner, who in best}


def take_strongest(rows: RowGroup) -> RowGroup:
    """The rows of the strongest adversary per dataset and learner.

    If no adversary has made a guess for a dataset and learner, all their rows are kept: they say
    why not.
    """
    best = find_strongest(rows)
    targets = zip(*map(rows.values, ("dataset", "learner", "adversary")), strict=True)
    mask = [best.get((dataset, learner), who) == who for dataset, learner, who in targets]
    return rows.take(np.array(mask, np.bool_))


def _evaluate(
    expectation: Expectation, rows: RowGroup, ignore: frozenset[str]
) -> Iterator[ExpectationVerdict]:
    where = {c: v for c, v in expectation.where.items() if c not in ignore}
    columns = ("dataset", *expectation.per, *expectation.readings)
    per = tuple(dict.fromkeys(c for c in columns if c not in ignore))
    before = {c: v for c, v in where.items() if c in _PLANNED}
    planned = rows.where(before)
    if not len(planned):
        yield _make_not_run(expectation, {}, _explain_unmatched(rows, before))
    for (dataset,), mine in planned.split(["dataset"]).items():
        done = mine.done()
        matching = done.where(where)
        if not len(matching):
            reason = _explain_unmatched(done, where) if len(done) else _explain_undone(mine)
            yield _make_not_run(expectation, {"dataset": dataset}, reason)
        else:
            yield from _judge_dataset(expectation, matching, mine.undone(), per)


def _judge_dataset(
    expectation: Expectation, matching: RowGroup, undone: RowGroup, per: tuple[str, ...]
) -> Iterator[ExpectationVerdict]:
    """A verdict for each combination, even for combinations without a done row."""
    early = [column for column in per if column in _PLANNED]
    lost, seen = undone.split(early), set()
    for values, group in matching.split(per).items():
        combination = dict(zip(per, values, strict=True))
        key = tuple(combination[column] for column in early)
        seen.add(key)
        yield _judge(expectation, combination, group, lost.get(key))
    for key, rows in lost.items():
        if key not in seen:
            yield _make_not_run(
                expectation, dict(zip(early, key, strict=True)), _explain_undone(rows)
            )


def _judge(
    expectation: Expectation,
    combination: Mapping[str, Any],
    group: RowGroup,
    lost: RowGroup | None,
) -> ExpectationVerdict:
    used = take_complete(expectation, group)
    if not len(used):
        return _make_not_run(expectation, combination, _explain_incomplete(expectation, group))
    evidence = gather_evidence(expectation, used)
    notes = [evidence.note]
    if len(used) < len(group):
        notes.append(f"{len(group) - len(used)} of {len(group)} rows lack a value")
    if lost is not None:
        notes.append(_explain_undone(lost))
    note = "; ".join(filter(None, notes))
    outcome = _decide(evidence, expectation.region)
    return ExpectationVerdict(expectation, combination, outcome, evidence.ours, len(used), note)


def _decide(evidence: Evidence, region: NumberRegion) -> ExpectationOutcome:
    """The rule of `Verdict`."""
    ours = evidence.ours
    if ours is None:
        return ExpectationOutcome.NOT_RUN
    if not evidence.decisive:
        return ExpectationOutcome.UNDECIDED
    low = ours.mean if ours.low is None else ours.low
    high = ours.mean if ours.high is None else ours.high
    if region.holds(low) and region.holds(high):
        return ExpectationOutcome.MATCHED
    return ExpectationOutcome.DEVIATES if region.misses(low, high) else ExpectationOutcome.UNDECIDED


def _make_not_run(
    expectation: Expectation, combination: Mapping[str, Any], reason: str
) -> ExpectationVerdict:
    return ExpectationVerdict(expectation, combination, ExpectationOutcome.NOT_RUN, None, 0, reason)


# Why there is no number


def _explain_unmatched(rows: RowGroup, where: Mapping[str, Any]) -> str:
    """The condition that no row meets, in words."""
    if not len(rows):
        return "there are no rows"
    for column, wanted in where.items():
        if not len(rows.where({column: wanted})):
            there = {*rows.values(column)} - {None}
            if not there:
                return _explain_no_column(column, rows)
            values = wanted if isinstance(wanted, list) else [wanted]
            return f"no row with {column} = {' or '.join(map(repr, values))}; " + _suggest_present(
                values[0], there
            )
    return f"no row with all of {', '.join(where)} as stated"


def _suggest_present(wanted: Any, values: Collection[Any]) -> str:
    """A hint on the existing values: the nearest word, or the numbers."""
    if isinstance(wanted, str):
        return suggest_name(wanted, map(str, values))
    return f"there is {', '.join(map(str, sorted(values, key=str)[:9]))}"


def _explain_incomplete(expectation: Expectation, rows: RowGroup) -> str:
    """The column in which no row has a value, in words."""
    for column in expectation.columns:
        if all(value is None for value in rows.values(column)):
            return _explain_no_column(column, rows)
    return f"no row has a number in {' and '.join(expectation.columns)}"


def _explain_no_column(column: str, rows: RowGroup) -> str:
    columns = rows.columns()
    if column in columns:
        return f"no row has a value in {column!r}"
    return f"no row has a column {column!r}; {suggest_name(column, columns)}"


def _explain_undone(rows: RowGroup) -> str:
    """The statuses and reasons of rows that are not done."""
    fates = zip(rows.values("status"), rows.values("reason"), strict=True)
    counts = Counter((status or "not yet run", reason) for status, reason in fates)
    order = sorted(counts, key=lambda fate: (-counts[fate], str(fate)))
    texts = [
        f"{counts[status, reason]} {'row' if counts[status, reason] == 1 else 'rows'} {status}"
        + (f": {reason}" if reason else "")
        for status, reason in order[:2]
    ]
    more = len(counts) - len(texts)
    return "; ".join([*texts, f"further reasons: {more}"] if more else texts)
