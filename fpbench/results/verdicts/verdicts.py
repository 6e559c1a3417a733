"""Whether rows say what was expected of them: pure functions of stored rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean
from typing import Any

from fpbench.base.errors import nearest
from fpbench.components.names import KINDS, Status
from fpbench.matrix.statement import Expectation, Region
from fpbench.results.statistics.intervals import Interval
from fpbench.results.verdicts.evidence import Finding, Row, complete, finding, number

_PLANNED = (*KINDS, "seed")
"""Columns that a row has before it is run."""


class Outcome(StrEnum):
    """What became of an expectation."""

    MATCHED = "matched"
    DEVIATES = "deviates"
    UNDECIDED = "undecided"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Verdict:
    """An expectation beside what our rows say, for one combination of values.

    Notes
    -----
    With R the region in which the number lies if the statement is true, and I our 95 % interval:
    `matched` if I lies inside R, `deviates` if I lies outside R, `undecided` if it lies across an
    edge of R or there are too few seeds for the check. With one seed, which has no interval, the
    number itself decides, and the note says so; a `share` has an interval even then.

    Where all seeds gave the same number there is no interval either: it decides, and the note says
    so. Of statements that are neither true nor false (a gain of 0 "above 0") 5 % are decided at 20
    seeds, 8 % at 5, 25 % at 3 and half at 2, where normal: the bootstrap is too narrow for so few.
    Of `least` and `most`, whose interval is another, 4 % at most, however few seeds there are.
    """

    expectation: Expectation
    per: Mapping[str, Any]
    """The combination: values of `dataset` and of the columns of the expectation's `per`."""
    outcome: Outcome
    ours: Interval | None
    """Our number, that `expectation.quantity` describes; None if there is none."""
    rows: int
    """Rows that it rests on."""
    note: str
    """Why it was not run or not decided, and what was left out."""

    @property
    def stated(self) -> float | str:
        """What is stated: a number, or a condition on ours."""
        return self.expectation.stated


def evaluate(
    expectations: Iterable[Expectation],
    rows: Iterable[Row],
    ignore: Collection[str] = (),
) -> list[Verdict]:
    """Compare expectations with rows.

    Parameters
    ----------
    expectations
        What is expected.
    rows
        Rows as `Store.rows` gives them, of any status. Their order decides the order of the
        verdicts and nothing else.
    ignore
        Columns that `where` and `per` of the expectations are to say nothing about.

    Returns
    -------
    list of Verdict
        In the order of the expectations, at least one for each. A data set none of whose rows is
        done has a verdict of its own, `not run`.
    """
    known = list(rows)
    return [v for e in expectations for v in _evaluate(e, known, frozenset(ignore))]


def evaluate_strongest(expectations: Iterable[Expectation], rows: Iterable[Row]) -> list[Verdict]:
    """Compare what is said of some adversaries with the rows of the strongest ones.

    Expectations whose `where` names no adversary are left out, as they are about the targets or
    about all adversaries, and so are those that ask for it by `strongest = false`.
    """
    named = [e for e in expectations if "adversary" in e.where and e.strongest]
    return evaluate(named, strongest(rows), ignore=("adversary",))


def strongest_adversaries(rows: Iterable[Row]) -> dict[tuple[str, str], str]:
    """The adversary with the highest mean `initial_accuracy`, per dataset and learner.

    Of equals, the first in the order of the alphabet.
    """
    guesses: dict[tuple[str, str], dict[str, list[float]]] = {}
    for row in rows:
        if row["status"] == Status.DONE and (found := number(row, "initial_accuracy")) is not None:
            target = guesses.setdefault((row["dataset"], row["learner"]), {})
            target.setdefault(row["adversary"], []).append(found)
    return {
        target: min(names, key=lambda name: (-fmean(names[name]), name))
        for target, names in guesses.items()
    }


def strongest(rows: Iterable[Row]) -> list[Row]:
    """The rows of the strongest adversary per dataset and learner.

    Rows of a dataset and learner for which no adversary has made a guess are all kept: they say
    why not.
    """
    known = list(rows)
    best = strongest_adversaries(known)
    targets = [(row, (row["dataset"], row["learner"])) for row in known]
    return [
        row for row, target in targets if best.get(target, row["adversary"]) == row["adversary"]
    ]


def _evaluate(
    expectation: Expectation, rows: Sequence[Row], ignore: frozenset[str]
) -> Iterator[Verdict]:
    where = {c: v for c, v in expectation.where.items() if c not in ignore}
    per = tuple(dict.fromkeys(("dataset", *(c for c in expectation.per if c not in ignore))))
    before = {c: v for c, v in where.items() if c in _PLANNED}
    planned = [row for row in rows if _matches(row, before)]
    if not planned:
        yield _not_run(expectation, {}, _unmatched(rows, before))
    for dataset in dict.fromkeys(row["dataset"] for row in planned):
        mine = [row for row in planned if row["dataset"] == dataset]
        done = [row for row in mine if row["status"] == Status.DONE]
        found = [row for row in done if _matches(row, where)]
        if not found:
            reason = _unmatched(done, where) if done else _undone(mine)
            yield _not_run(expectation, {"dataset": dataset}, reason)
        else:
            undone = [row for row in mine if row["status"] != Status.DONE]
            yield from _of_dataset(expectation, found, undone, per)


def _of_dataset(
    expectation: Expectation, found: Sequence[Row], undone: Sequence[Row], per: tuple[str, ...]
) -> Iterator[Verdict]:
    """A verdict for each combination; one too for those of which no row is done."""
    early = [column for column in per if column in _PLANNED]
    lost: dict[tuple[Any, ...], list[Row]] = {}
    for row in undone:
        lost.setdefault(tuple(row[column] for column in early), []).append(row)
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in found:
        groups.setdefault(tuple(row.get(column) for column in per), []).append(row)
    seen = set()
    for values, group in groups.items():
        combination = dict(zip(per, values, strict=True))
        key = tuple(combination[column] for column in early)
        seen.add(key)
        yield _judge(expectation, combination, group, lost.get(key, []))
    for key, rows in lost.items():
        if key not in seen:
            yield _not_run(expectation, dict(zip(early, key, strict=True)), _undone(rows))


def _judge(
    expectation: Expectation,
    combination: Mapping[str, Any],
    group: Sequence[Row],
    lost: Sequence[Row],
) -> Verdict:
    used = complete(expectation, group)
    if not used:
        return _not_run(expectation, combination, _incomplete(expectation, group))
    found = finding(expectation, used)
    notes = [found.note]
    if len(used) < len(group):
        notes.append(f"{len(group) - len(used)} of {len(group)} rows lack a value")
    if lost:
        notes.append(_undone(lost))
    note = "; ".join(filter(None, notes))
    outcome = _outcome(found, expectation.region)
    return Verdict(expectation, combination, outcome, found.ours, len(used), note)


def _outcome(found: Finding, region: Region) -> Outcome:
    """The rule of `Verdict`."""
    if found.ours is None:
        return Outcome.NOT_RUN
    if not found.decisive:
        return Outcome.UNDECIDED
    ours = found.ours
    low = ours.mean if ours.low is None else ours.low
    high = ours.mean if ours.high is None else ours.high
    if region.holds(low) and region.holds(high):
        return Outcome.MATCHED
    return Outcome.DEVIATES if region.misses(low, high) else Outcome.UNDECIDED


def _not_run(expectation: Expectation, combination: Mapping[str, Any], reason: str) -> Verdict:
    return Verdict(expectation, combination, Outcome.NOT_RUN, None, 0, reason)


def _matches(row: Row, where: Mapping[str, Any]) -> bool:
    for column, wanted in where.items():
        value = row.get(column)
        if not (value in wanted if isinstance(wanted, list) else value == wanted):
            return False
    return True


# Why there is nothing to say


def _unmatched(rows: Sequence[Row], where: Mapping[str, Any]) -> str:
    """Which condition no row meets."""
    if not rows:
        return "there are no rows"
    for column, wanted in where.items():
        if not any(_matches(row, {column: wanted}) for row in rows):
            if all(row.get(column) is None for row in rows):
                return _no_column(column, rows)
            values = wanted if isinstance(wanted, list) else [wanted]
            return f"no row with {column} = {' or '.join(map(repr, values))}; " + _here(
                values[0], {row.get(column) for row in rows} - {None}
            )
    return f"no row with all of {', '.join(where)} as stated"


def _here(wanted: Any, values: Collection[Any]) -> str:
    """What there is instead: words may be misspelt, numbers may only differ."""
    if isinstance(wanted, str):
        return nearest(wanted, map(str, values))
    return f"there is {', '.join(map(str, sorted(values, key=str)[:9]))}"


def _incomplete(expectation: Expectation, rows: Sequence[Row]) -> str:
    """Which column no row has a value in."""
    for column in expectation.columns:
        if all(row.get(column) is None for row in rows):
            return _no_column(column, rows)
    return f"no row has a number in {' and '.join(expectation.columns)}"


def _no_column(column: str, rows: Sequence[Row]) -> str:
    if any(column in row for row in rows):
        return f"no row has a value in {column!r}"
    return f"no row has a column {column!r}; {nearest(column, {c for row in rows for c in row})}"


def _undone(rows: Sequence[Row]) -> str:
    """What became of rows that are not done."""
    counts = Counter((row["status"] or "not yet run", row.get("reason")) for row in rows)
    order = sorted(counts, key=lambda fate: (-counts[fate], str(fate)))
    said = [
        _rows(counts[status, reason], status) + (f": {reason}" if reason else "")
        for status, reason in order[:2]
    ]
    more = len(counts) - len(said)
    return "; ".join([*said, f"further reasons: {more}"] if more else said)


def _rows(count: int, status: str) -> str:
    return f"{count} {'row' if count == 1 else 'rows'} {status}"
