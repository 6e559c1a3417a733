"""The search for the least change of a report that passes; each candidate is attacked."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from fpbench.base.errors import InputError
from fpbench.claims.set_counts import Facts
from fpbench.correction.facts.interior_point import LinearSolver
from fpbench.reports.assessments.attack import (
    Allowed,
    Findings,
    Reader,
    attack,
    count_undecided,
)
from fpbench.reports.fairness_report import FairnessReport
from fpbench.reports.utility import ReportUtility, compare_rates

_EPSILONS = (10.0, 5.0, 3.0, 2.0, 1.0, 0.5, 0.2, 0.1)
"""More than 10 guarantees nothing worth the name."""
_MULTIPLES = (3, 5, 10, 20, 50, 100, 200, 500)
_MOST_HIDDEN = 7
"""People of a group, at most, whose cell is suppressed before the others are rounded."""
_KEYS = ((5, 3.0), (10, 10.0), (10, 30.0))
"""Bounds and variances of cell keys."""
_GROWTH = 1.3
"""Factor between successive minimum cell sizes that are tried."""

_NOISE = "discrete-laplace"
_WORDS = {
    "order": "slices by at most {} column{}",
    "bins": "at most {} bins of a column of numbers",
    "min_cell": "cells of at least {:,} people",
    "min_group": "cells of at least {:,} people of each group",
    "decimals": "rates to {} decimal{}",
    "round_to": "numbers of people rounded at random to multiples of {}",
    "cell_keys": "numbers of people changed by cell keys, by at most {}",
    "epsilon": "noise of epsilon {:g} in all",
    "complementary": "further cells suppressed, so that none is a sum or difference of others",
}
"""Arguments of `FairnessReport.protect` in words."""
_ROUNDED = {
    "nearest": "numbers of people rounded to the nearest multiples of {}",
    "midpoint": "numbers of people rounded to the middles of blocks of {}",
}
"""Ways of rounding that draw nothing, in words."""
_DRAWS, _FAILING = 20, 1
"""Fresh draws of such a change that are attacked, and how many of them may fail, but the first."""
_ANYTHING = Allowed(1.0, 2**62)
"""Limits that no attack exceeds, so that none stops before the linear programs."""
_SEARCHED = 0.8
"""Share of the time for the search; in the rest, what passed is drawn anew and decided."""

ReadFacts = Callable[[FairnessReport], Facts]
FindReader = Callable[[Facts], Reader]
Progress = Callable[[str, int], None]
Protects = Callable[[FairnessReport, Findings, float], bool]
Settle = Callable[[Facts, Findings, float], tuple[Reader, Findings, bool]]


@dataclass(frozen=True, eq=False)
class ReportChange:
    """A changed report that stays within the limits.

    Of one that is drawn at random, at least 19 of 20 fresh draws do, and the first is `report`: it
    is not the best of several, though a setting whose first draw fails is none that passes.
    """

    words: str
    """The change, in words."""
    arguments: Mapping[str, Any]
    """Arguments of `FairnessReport.protect` that make it."""
    leak: float
    proven: int
    """What the changed report gives away: rise of the share guessed right, and people proven or
    as good as proven."""
    utility: ReportUtility
    """How near its rates are to those of the original report."""
    report: FairnessReport = field(repr=False)
    """The report that was attacked; drawing the noise again would make another."""
    draws_passed: int | None = None
    """How many of 20 fresh draws pass; None of a change that draws nothing."""

    @property
    def cost(self) -> float:
        """Mean error of the rates; infinite if none is published."""
        error = self.utility.rate_error
        return error if error is not None and self.utility.cells_published else math.inf

    @property
    def is_empty(self) -> bool:
        """Whether no rate about 10 people or more is published, or nothing at all."""
        return self.utility.cells_published == 0 or bool(self.report.suppressed.all())

    def to_dict(self) -> dict[str, Any]:
        """Plain data, without the report."""
        return {
            "words": self.words,
            "arguments": dict(self.arguments),
            "leak": self.leak,
            "proven": self.proven,
            "draws_passed": self.draws_passed,
            **asdict(self.utility),
        }


@dataclass(frozen=True, eq=False)
class ChangeSearch:
    """What was tried to make a report pass."""

    passing: tuple[ReportChange, ...]
    """The mildest change of each kind that passes, the one that costs least (`cost`) first."""
    failed: tuple[str, ...]
    """The strongest change tried of each kind in which none passes."""
    untried: tuple[tuple[str, str], ...]
    """Kinds that were not tried, or not finished, and the reason."""
    attacks: int
    """Number of reports that were attacked."""
    empty: tuple[str, ...] = ()
    """The mildest change of each kind that passes only because nothing would be published
    (`Change.is_empty`); it is not in `passing`."""

    @property
    def cheapest(self) -> ReportChange | None:
        """The change that costs least; None if none passes."""
        return self.passing[0] if self.passing else None

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "attacks": self.attacks,
            "cheapest": self.cheapest.to_dict() if self.cheapest else None,
            "passing": [change.to_dict() for change in self.passing],
            "failed": list(self.failed),
            "publishing_nothing": list(self.empty),
            "untried": [{"kind": kind, "why": why} for kind, why in self.untried],
        }


class _Kind(NamedTuple):
    """Settings of one kind of change, from the mildest to the strongest."""

    name: str
    settings: Sequence[Mapping[str, Any]]


class _OutOfTime(Exception):  # noqa: N818, it never leaves this module
    """There is no time for another attack, or the last one did not end."""

    def __init__(self, why: str = "out of time") -> None:
        super().__init__(why)


def is_drawn(arguments: Mapping[str, Any]) -> bool:
    """Whether a change is another report each time that it is made."""
    rounded = "round_to" in arguments and arguments.get("rounding") not in _ROUNDED
    return rounded or "noise" in arguments or "cell_keys" in arguments


def find_least_change(
    report: FairnessReport,
    read_facts: ReadFacts,
    find_reader: FindReader,
    allowed: Allowed,
    *,
    seconds: float,
    tell: Progress | None = None,
    rng: np.random.Generator | int | None = None,
    protects: Protects | None = None,
    settle: Settle | None = None,
) -> ChangeSearch:
    """The mildest change of each kind that makes a report pass.

    Of each kind the strongest setting is attacked first; if it passes, the mildest one that does is
    found by bisection. Each setting of a kind publishes less than the one before, so that settings
    stronger than a passing one pass, too, except by chance (random rounding, noise, shares measured
    on true groups). Of tables as statistical offices publish them only those are attacked that are
    nearer than what passes. Every change returned was attacked and passed; one that is drawn at
    random, in at least 19 of 20 fresh draws, else the next stronger setting is drawn.

    `find_reader`: the reader of a changed report, by its facts; of one without other sources,
    prior beliefs are learnt from these. `seconds`: time limit of all attacks. `tell`: called with
    each change that is tried, and the number of attacks so far. `rng`: of rounding and noise;
    unpredictable by default. `protects`: whether a changed report protects what it suppresses, by
    what the attack found; asked until a deadline by `time.perf_counter`, if limits say so.
    `settle`: reader and findings about a report that passes by the first two repetitions of
    cross-fitting, and whether folds matter: `settle_folds`.
    """
    deadline = time.perf_counter() + seconds
    with LinearSolver() as solver:
        return _Search(
            report, read_facts, find_reader, allowed, deadline, tell or (lambda *_: None),
            np.random.default_rng(rng), solver, protects, settle,
        ).run()  # fmt: skip


@dataclass
class _Search:
    report: FairnessReport
    read_facts: ReadFacts
    find_reader: FindReader
    allowed: Allowed
    deadline: float
    tell: Progress
    rng: np.random.Generator
    solver: LinearSolver
    protects: Protects | None = None
    settle: Settle | None = None
    attacks: int = 0

    def run(self) -> ChangeSearch:
        found: list[ReportChange] = []
        kind_of: dict[str, _Kind] = {}
        failed: list[str] = []
        untried: list[tuple[str, str]] = []
        end, now = self.deadline, time.perf_counter()
        self.deadline = now + _SEARCHED * (end - now)
        for kind in self._list_kinds(found):
            best: ReportChange | None = None
            try:
                for change in self._bisect(kind):
                    best = change
            except (_OutOfTime, InputError) as error:
                untried.append((kind.name, str(error)))
            else:
                failed += [self._describe(kind.settings[-1])] * (best is None)
            if best is not None:
                found.append(best)
                kind_of[best.words] = kind
        # Two changes together may be the same report as one of them.
        different: dict[Any, ReportChange] = {}
        for change in found:
            own = (change.leak, change.proven, change.utility, change.is_empty)
            different.setdefault(own, change)
        passing: list[ReportChange] = []
        self.deadline = end
        for change in sorted(different.values(), key=lambda change: change.cost):
            kind = kind_of[change.words]
            try:
                confirmed = self._confirm(kind, change)
            except _OutOfTime as error:
                untried.append((kind.name, f"passes, but {error}"))
            else:
                failed += [self._describe(kind.settings[-1])] * (confirmed is None)
                passing += [] if confirmed is None else [confirmed]
        return ChangeSearch(
            tuple(sorted((c for c in passing if not c.is_empty), key=lambda change: change.cost)),
            tuple(failed), tuple(untried), self.attacks,
            tuple(change.words for change in passing if change.is_empty),
        )  # fmt: skip

    def _confirm(self, kind: _Kind, change: ReportChange) -> ReportChange | None:
        """The change, or the first draw of the mildest setting from its own on that passes anew.

        Of nobody it may be open whether the group can be proven.
        """
        if not is_drawn(change.arguments):
            return self._decide(change)
        for arguments in kind.settings[kind.settings.index(change.arguments) :]:
            first, failed, draws = self._try(arguments), 0, 1
            while first is not None and failed <= _FAILING and draws < _DRAWS:
                failed += self._try(arguments) is None
                draws += 1
            if first is not None and failed <= _FAILING:
                passed = draws - failed
                words = f"{first.words} ({passed} of {draws} draws pass)"
                return self._decide(replace(first, words=words, draws_passed=passed))
        return None

    def _list_kinds(self, passing: Sequence[ReportChange]) -> Iterator[_Kind]:
        """Kinds of changes; single ones first, and then two together where one is not enough."""
        noise, *others = self._list_numbers({})
        yield noise
        highest = int((self.report.cells >= 0).sum(axis=1).max(initial=0))
        orders = list(range(highest - 1, -1, -1))
        if orders:
            yield _Kind("fewer columns in a slice", [{"order": order} for order in orders])
        lowest = max((change.arguments.get("order", -1) for change in passing), default=-1)
        yield from others
        if len(self.report.columns) > 1:
            names = self._rank_columns()
            kept = [names[number:] for number in range(1, len(names) + 1)]
            yield _Kind("fewer columns", [{"by": by} for by in kept])
        bins = {c.name: len(c.values) for c in self.report.columns if c.edges}
        fewer = [
            {name: min(own, number) for name, own in bins.items()}
            for number in range(max(bins.values(), default=1) - 1, 1, -1)
        ]
        if fewer:
            yield _Kind("fewer bins", [{"bins": each} for each in fewer])
        for order in orders:
            if order > max(lowest, 0):
                yield from self._list_numbers({"order": order})
        yield from self._list_offices({}, passing)
        for order in orders:
            if order > max(lowest, 0):
                yield from self._list_offices({"order": order}, passing)

    def _list_numbers(self, also: Mapping[str, Any]) -> list[_Kind]:
        """Kinds that change cells and numbers, beside another change."""
        largest = int(self.report.n.max(initial=1))
        sizes = []
        size = max(int(self.report.n[self.report.n > 0].min(initial=largest)), 2)
        while size < largest:
            size = max(size + 1, round(size * _GROWTH))
            sizes.append(min(size, largest + 1))
        beside = f", {self._describe(also)}" if also else ""
        kinds: dict[str, list[dict[str, Any]]] = {
            "noise": [{"noise": _NOISE, "epsilon": epsilon} for epsilon in _EPSILONS],
            "more people of each group in a cell": [{"min_group": size} for size in sizes],
            "random rounding": [{"round_to": multiple} for multiple in _MULTIPLES],
            "larger cells": [{"min_cell": size} for size in sizes],
        }
        if self.allowed.protect_hidden is not None and self.report.suppressed.any():
            kinds["complementary suppression"] = [{"complementary": True}]
        if self.report.is_rate.any():
            kinds["rounded rates"] = [{"decimals": decimals} for decimals in (3, 2, 1)]
        return [
            _Kind(f"{name}{beside}", [{**also, **setting} for setting in settings])
            for name, settings in kinds.items()
            if settings  # without sizes, no cell can be left out for being small
        ]

    def _list_offices(
        self, also: Mapping[str, Any], passing: Sequence[ReportChange]
    ) -> Iterator[_Kind]:
        """Kinds of tables as statistical offices publish them, of less error than what passes."""
        most = min((change.cost for change in passing if not change.is_empty), default=math.inf)
        nearest = [{"round_to": multiple, "rounding": "nearest"} for multiple in _MULTIPLES]
        kinds: dict[str, list[dict[str, Any]]] = {
            "rounding to the nearest": nearest,
            "rounding to middles": [{**one, "rounding": "midpoint"} for one in nearest],
            "few people suppressed, others rounded": [
                {"min_group": _MOST_HIDDEN + 1, **one} for one in nearest
            ],
        }
        if self.report.people is not None and self.report.people.groups is not None:
            kinds["cell keys"] = [
                {"cell_keys": {"bound": bound, "variance": variance}} for bound, variance in _KEYS
            ]
        for name, settings in kinds.items():
            own = [{**also, **one} for one in settings]
            if near := [one for one in own if self._has_less_error(one, most)]:
                yield _Kind(f"{name}, {self._describe(also)}" if also else name, near)

    def _has_less_error(self, arguments: Mapping[str, Any], most: float) -> bool:
        """Whether a change has; True if it cannot be made, or there is no time to see."""
        if time.perf_counter() > self.deadline:
            return True
        try:
            changed = self.report.protect(**arguments, rng=self.rng)
        except InputError:
            return True
        error = compare_rates(changed, self.report).rate_error
        return error is not None and error < most

    def _rank_columns(self) -> list[str]:
        """Names of the columns, sorted by how much their own slices give away, most first."""
        used = self.report.cells >= 0
        harm = []
        for place, column in enumerate(self.report.columns):
            with_it = used[:, place]
            fewest = used[with_it].sum(axis=1).min(initial=len(self.report.columns))
            rows = with_it & (used.sum(axis=1) == fewest)
            if time.perf_counter() > self.deadline:
                break  # the others come last, in the order of the report
            facts = self.read_facts(self.report.take(rows))
            left = self.deadline - time.perf_counter()
            findings = attack(facts, self.find_reader(facts), left, _ANYTHING, self.solver)
            harm.append((findings.count_told(self.allowed), findings.leak, column.name))
        ranked = [name for *_, name in sorted(harm, reverse=True)]
        return ranked + [c.name for c in self.report.columns if c.name not in ranked]

    def _bisect(self, kind: _Kind) -> Iterator[ReportChange]:
        """Settings that pass, each milder than the last; none if the strongest fails."""
        low, high = 0, len(kind.settings)
        middle = high - 1
        while low < high:
            change = self._try(kind.settings[middle])
            if change is not None:
                yield change
                high = middle
            elif middle == len(kind.settings) - 1:
                return
            else:
                low = middle + 1
            middle = (low + high) // 2

    def _try(self, arguments: Mapping[str, Any]) -> ReportChange | None:
        """The change, or None if it does not pass."""
        words = self._describe(arguments)
        self.tell(words, self.attacks)
        changed = self.report.protect(**arguments, rng=self.rng)
        findings = self._attack(changed)
        if findings is None or not findings.within(self.allowed):
            return None
        if _tells_the_same(changed, self.report):
            return None
        if self.allowed.protect_hidden is not None and self.protects is not None:
            held = self.protects(changed, findings, self.deadline)
            if time.perf_counter() > self.deadline:
                raise _OutOfTime
            if not held:
                return None
        utility = compare_rates(changed, self.report)
        return ReportChange(
            words, dict(arguments), findings.leak, findings.count_told(self.allowed), utility,
            changed,
        )  # fmt: skip

    def _attack(self, report: FairnessReport) -> Findings | None:
        """The findings; None if they depend on how people were divided into folds."""
        left = self.deadline - time.perf_counter()
        if left <= 0:
            raise _OutOfTime
        self.attacks += 1
        facts = self.read_facts(report)
        findings = attack(facts, self.find_reader(facts), left, self.allowed, self.solver)
        folds_matter = False
        if self.settle is not None and findings.within(self.allowed):
            _, findings, folds_matter = self.settle(facts, findings, self.deadline)
        if not findings.finished or time.perf_counter() > self.deadline:
            raise _OutOfTime
        return None if folds_matter else findings

    def _decide(self, change: ReportChange) -> ReportChange:
        """The change, if it is decided who can be proven."""
        left = self.deadline - time.perf_counter()
        if left <= 0:
            raise _OutOfTime
        facts = self.read_facts(change.report)
        open_ = count_undecided(facts, self.find_reader(facts), left, self.solver)
        if open_ > self.allowed.undecided:
            raise _OutOfTime(f"the group of {open_:,} more may be provable, for want of time")
        return change

    def _describe(self, arguments: Mapping[str, Any]) -> str:
        """A change in words."""
        parts = []
        for name, value in arguments.items():
            if name == "by":
                without = [c.name for c in self.report.columns if c.name not in value]
                parts.append(f"no slices by {', '.join(without)}")
            elif name == "bins":
                parts.append(_WORDS[name].format(max(value.values()), ""))
            elif name == "order" and value == 0:
                parts.append("no slices, only everybody's rates")
            elif name == "round_to" and arguments.get("rounding") in _ROUNDED:
                parts.append(_ROUNDED[arguments["rounding"]].format(value))
            elif name == "cell_keys":
                parts.append(_WORDS[name].format(value["bound"]))
            elif name in _WORDS:
                parts.append(_WORDS[name].format(value, "" if value == 1 else "s"))
        return ", ".join(parts)


def _tells_the_same(changed: FairnessReport, report: FairnessReport) -> bool:
    """Whether a change publishes the values of the report, whatever it says about them."""
    return len(changed) == len(report) and all(
        np.array_equal(getattr(changed, name), getattr(report, name), equal_nan=name == "value")
        for name in ("cells", "value", "n", "suppressed")
    )
