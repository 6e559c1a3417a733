"""The verdicts on one statement taken together: whether it holds, and under what conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from fpbench.matrix.expectations import Expectation
from fpbench.results.sentences import list_words
from fpbench.results.verdicts.verdicts import ExpectationOutcome, ExpectationVerdict


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
