"""Whether rows agree with expectations, and the evidence: one number a seed, and their interval."""

from __future__ import annotations

import math
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import fmean  # of exact sums, so that the order of rows does not matter
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fpbench.base.errors import suggest_name
from fpbench.components.names import KINDS
from fpbench.matrix.expectations import (
    Bound,
    Expectation,
    Extreme,
    Lower,
    NumberRegion,
    Share,
    Steady,
    Trend,
    Value,
    VariesMore,
)
from fpbench.results.intervals import (
    RESAMPLES,
    Interval,
    bound_greatest,
    compute_wilson,
    estimate_interval,
)
from fpbench.results.rows.selection import RowGroup

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
    left_out = frozenset(ignore)
    by_measure = (expectation.list_by_measure() for expectation in expectations)
    return [
        verdict
        for readings in by_measure
        for verdict in _compare_readings(
            [v for e in readings for v in _evaluate(e, rows, left_out)]
        )
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


_Floats: TypeAlias = NDArray[np.float64]

LEAST_SEEDS = 5
"""With fewer seeds a standard deviation decides nothing, and a mean has a note on few seeds."""


@dataclass(frozen=True)
class Evidence:
    """The number that an expectation is about."""

    ours: Interval | None
    """None if the rows give no number."""
    note: str = ""
    """Why they give none, or a note on the number."""
    decisive: bool = True
    """Whether the number may decide."""


def gather_evidence(expectation: Expectation, rows: RowGroup) -> Evidence:
    """The number that an expectation is about, from rows that all have its columns.

    `rows`: rows of one combination. Their order does not matter.
    """
    match expectation:
        case Share():
            evidence = _measure_share(expectation, rows)
        case Trend():
            evidence = _measure_along(expectation, rows, _correlate_ranks)
        case Steady():
            evidence = _measure_along(expectation, rows, _measure_deviation)
        case Extreme():
            evidence = _measure_extreme(expectation, rows)
        case VariesMore():
            evidence = _compare_spreads(expectation, rows)
        case Lower():
            evidence = _compare_audits(expectation, rows)
        case Bound():
            values = rows.numbers(expectation.measure)
            if isinstance(expectation.than, str):
                values = values - rows.numbers(expectation.than)
            evidence = _weigh_seeds(expectation, _average_by_seed(rows, values))
        case Value():
            values = rows.numbers(expectation.measure)
            evidence = _weigh_seeds(expectation, _average_by_seed(rows, values))
        case _:
            raise TypeError(f"no statistic for the check {expectation.check!r}")
    return evidence


def take_complete(expectation: Expectation, rows: RowGroup) -> RowGroup:
    """The rows that have a value in every column that the check reads."""
    columns = expectation.columns
    numeric = () if isinstance(expectation, Share) else ("measure", "parameter", "than")
    named = {getattr(expectation, name, None) for name in numeric}
    if isinstance(expectation, Lower):
        named |= set(columns) - {expectation.of}
    complete = np.ones(len(rows), np.bool_)
    for column in columns:
        if column in named:
            complete &= ~np.isnan(rows.numbers(column))
        else:
            complete &= np.array([value is not None for value in rows.values(column)], np.bool_)
    return rows.take(complete)


def _average_by_seed(rows: RowGroup, values: _Floats) -> pd.Series[float]:
    """The mean over the rows of each seed, in the order of the seeds."""
    return pd.Series(values).groupby(np.array(rows.values("seed"), np.int64)).agg(fmean)


def _weigh_seeds(expectation: Expectation, values: pd.Series[float], lack: str = "") -> Evidence:
    if not len(values):
        return Evidence(None, lack)
    ours = estimate_interval(np.asarray(values, np.float64), expectation.quantity)
    return Evidence(ours, _describe_doubt(ours))


def _describe_doubt(ours: Interval) -> str:
    """A note on a number from few seeds, or from seeds with the same value."""
    if ours.count == 1:
        return "one seed: its value decides"
    if ours.low is None:
        return f"the same at all {ours.count} seeds: this value decides"
    return f"only {ours.count} seeds" if ours.count < LEAST_SEEDS else ""


def _measure_share(expectation: Share, rows: RowGroup) -> Evidence:
    equal = np.array(
        [v == expectation.equals for v in rows.values(expectation.measure)], np.float64
    )
    values = _average_by_seed(rows, equal).to_numpy(np.float64)
    count, mean = len(values), float(values.mean())
    deviation = float(values.std(ddof=1)) if count > 1 else None
    if expectation.every:
        against = int((equal == (expectation.expected == 0)).sum())
        note = f"{against} of {len(rows)} rows are against it" if against else ""
        return Evidence(Interval(mean, deviation, None, None, count), note)
    low, high = compute_wilson(mean, count)
    return Evidence(Interval(mean, deviation, low, high, count))


def _measure_along(
    expectation: Trend | Steady, rows: RowGroup, statistic: Callable[[_Floats, _Floats], float]
) -> Evidence:
    """A statistic of the curve of each seed: the mean measure at each value of a parameter."""
    seeds, places = rows.values("seed"), rows.numbers(expectation.parameter)
    means = pd.Series(rows.numbers(expectation.measure)).groupby([seeds, places]).agg(fmean)
    values = {
        seed: statistic(np.asarray(curve.index.get_level_values(1)), np.asarray(curve))
        for seed, curve in means.groupby(level=0)
        if len(curve) > 1
    }
    lack = f"no seed has two values of {expectation.parameter}"
    return _weigh_seeds(expectation, pd.Series(values, dtype=np.float64), lack)


def _correlate_ranks(parameter: _Floats, measure: _Floats) -> float:
    """Spearman's rank correlation; 0 if the measure does not change."""
    from scipy.stats import spearmanr

    if np.ptp(measure) == 0:
        return 0.0
    return float(spearmanr(parameter, measure).statistic)


def _measure_deviation(parameter: _Floats, measure: _Floats) -> float:
    return float(measure.std(ddof=1))


def _measure_extreme(expectation: Extreme, rows: RowGroup) -> Evidence:
    means = {
        value: _average_by_seed(mine, mine.numbers(expectation.measure))
        for (value,), mine in rows.split([expectation.of]).items()
    }
    named = means.pop(expectation.value, None)
    if named is None:
        return Evidence(None, f"no row with {expectation.of} = {expectation.value!r} has a value")
    gaps = {value: np.asarray((named - mine).dropna(), np.float64) for value, mine in means.items()}
    # The rival is the best over all seeds: the best at each seed would owe its place to noise.
    sign = 1 if expectation.check == "least" else -1
    others = [value for value in gaps if len(gaps[value])]
    if not others:
        return Evidence(None, f"no seed has another {expectation.of} to compare with")
    rival = min(others, key=lambda value: (-sign * fmean(gaps[value].tolist()), str(value)))
    ours, decisive = estimate_interval(gaps[rival], expectation.quantity), True
    alone = [value for value in others if len(gaps[value]) == 1]
    if len(alone) < len(others):
        several = [sign * gaps[value] for value in others if len(gaps[value]) > 1]
        ends = bound_greatest(several, len(others), expectation.quantity)
        low, high = sorted(sign * end for end in ends)
        spread = (low, high) if low < high else (None, None)
        ours = replace(ours, low=spread[0], high=spread[1])
        # A rival that shares one seed may be better by any amount, unless another certainly is
        # better.
        decisive = not alone or expectation.region.misses(low, high)
    notes = [f"next best: {rival}", _describe_doubt(ours)]
    notes += [] if decisive else [f"{alone[0]} shares one seed only"]
    return Evidence(ours, "; ".join(filter(None, notes)), decisive)


def _compare_spreads(expectation: VariesMore, rows: RowGroup) -> Evidence:
    one, other, lack = _take_both(rows, expectation.of, expectation.value, expectation.than)
    if lack:
        return Evidence(None, lack)
    # A seed that only one side has says nothing about their difference.
    here, there = set(one.values("seed")), set(other.values("seed"))
    seeds = sorted(here & there)
    rng = np.random.default_rng(zlib.crc32(expectation.quantity.encode()))
    drawn = rng.integers(len(seeds), size=(RESAMPLES, len(seeds)))
    # Number of draws of each seed; the first line is the seeds themselves.
    times = np.vstack([np.ones(len(seeds)), [np.bincount(d, minlength=len(seeds)) for d in drawn]])
    more, less = (
        _average_spread(_take_seeds(mine, seeds), expectation.measure, seeds, times)
        for mine in (one, other)
    )
    if np.isnan(more[0]) or np.isnan(less[0]):
        return Evidence(None, "a standard deviation over seeds needs two of them")
    resampled = (more - less)[1:]
    low, high = np.quantile(resampled[~np.isnan(resampled)], (0.025, 0.975))
    ours = Interval(float(more[0] - less[0]), None, float(low), float(high), len(seeds))
    few = len(seeds) < LEAST_SEEDS
    notes = [f"fewer than {LEAST_SEEDS} seeds"] if few else []
    if here != there:
        notes.append(f"{len(here ^ there)} seeds have only one of both")
    return Evidence(ours, "; ".join(notes), decisive=not few)


def _take_both(rows: RowGroup, of: str, value: Any, than: Any) -> tuple[RowGroup, RowGroup, str]:
    """The rows with each of two values of a column, and why they cannot be compared."""
    one, other = rows.where({of: value}), rows.where({of: than})
    for value_needed, mine in ((value, one), (than, other)):
        if not len(mine):
            return one, other, f"no row with {of} = {value_needed!r} has a value"
    shared = set(one.values("seed")) & set(other.values("seed"))
    return one, other, "" if shared else f"no seed has both values of {of}"


def _take_seeds(rows: RowGroup, seeds: Collection[int]) -> RowGroup:
    return rows.take(np.isin(rows.numbers("seed"), list(seeds)))


def _compare_audits(expectation: Lower, rows: RowGroup) -> Evidence:
    """The difference of two means of repeated audits, and its Welch interval."""
    measure, of = expectation.measure, expectation.of
    if of is None:
        seeds, alone = set(rows.values("seed")), set()
        than = fmean(rows.numbers(str(expectation.than)).tolist())
        gap = compare_means(_read_moments(rows, measure), than)
    else:
        one, other, lack = _take_both(rows, of, expectation.value, expectation.than)
        if lack:
            return Evidence(None, lack)
        here, there = set(one.values("seed")), set(other.values("seed"))
        seeds, alone = here & there, here ^ there
        gap = compare_means(
            _read_moments(_take_seeds(one, seeds), measure),
            _read_moments(_take_seeds(other, seeds), measure),
        )
    p = "p < .0001" if gap.p_lower < 1e-4 else f"p = {gap.p_lower:.4f}".replace("0.", ".", 1)
    note = f"{p}; {len(alone)} seeds have only one of both" if alone else p
    return Evidence(Interval(gap.mean, None, gap.low, gap.high, len(seeds)), note)


def _read_moments(rows: RowGroup, measure: str) -> list[SampleMoments]:
    """Each row's moments of repeated audits."""
    columns = (rows.numbers(name) for name in (measure, f"{measure}_deviation", "repetitions"))
    return [
        SampleMoments(mean, sd, int(count))
        for mean, sd, count in zip(*map(list, columns), strict=True)
    ]


def _average_spread(rows: RowGroup, measure: str, seeds: Sequence[Any], times: _Floats) -> _Floats:
    """(resamples,) standard deviations over seeds, averaged over combinations of components.

    `times`: (resamples, seeds) number of times that each seed counts.

    NaN where no combination has two seeds.
    """
    total, counted = np.zeros(len(times)), np.zeros(len(times))
    settings = rows.split(KINDS)
    for key in sorted(settings):
        values, here = np.zeros(len(seeds)), np.zeros(len(seeds))
        means = _average_by_seed(settings[key], settings[key].numbers(measure))
        places = np.searchsorted(seeds, means.index)
        values[places], here[places] = means, 1
        values -= here * (values.sum() / here.sum())  # against cancellation
        n, sums, squares = times @ here, times @ values, times @ values**2
        enough = n > 1
        variance = (squares - sums**2 / np.maximum(n, 1)) / np.maximum(n - 1, 1)
        total += np.where(enough, np.sqrt(np.maximum(variance, 0)), 0)
        counted += enough
    return np.where(counted > 0, total / np.maximum(counted, 1), np.nan)


@dataclass(frozen=True)
class SampleMoments:
    """A sample of a measure in three numbers."""

    mean: float
    deviation: float
    """Standard deviation (n - 1)."""
    count: int
    """At least 2."""


@dataclass(frozen=True)
class Difference:
    """The difference of the mean of some samples' means from that of others, or from a number."""

    mean: float
    low: float
    """Lower end of the two-sided 95 % interval."""
    high: float
    p_lower: float
    """p-value of the one-sided test that it is not below 0."""


def compare_means(
    ours: Sequence[SampleMoments], others: Sequence[SampleMoments] | float
) -> Difference:
    """The difference of two means, each of independent samples alike in weight.

    `others`: at least one sample, independent of ours; or a number that is known.

    Welch (Biometrika 34, 1947): the variance is the sum of those of the means, and the degrees of
    freedom follow Satterthwaite's rule. With one sample against a number it is Student's t-test.
    A difference without any spread is exact.
    """
    from scipy.stats import t

    mean, parts = _average(ours), _compute_variances(ours)
    if isinstance(others, int | float):
        mean -= others
    else:
        mean -= _average(others)
        parts += _compute_variances(others)
    variance = math.fsum(v for v, _ in parts)
    if variance == 0:
        return Difference(mean, mean, mean, float(mean >= 0))
    # In units of their sum, or squares of small variances are 0.
    freedom = 1 / math.fsum((v / variance) ** 2 / f for v, f in parts)
    error = math.sqrt(variance)
    half = float(t.ppf(0.975, freedom)) * error
    return Difference(mean, mean - half, mean + half, float(t.cdf(mean / error, freedom)))


def _average(samples: Sequence[SampleMoments]) -> float:
    return math.fsum(sample.mean for sample in samples) / len(samples)


def _compute_variances(samples: Sequence[SampleMoments]) -> list[tuple[float, int]]:
    """Each sample's part of the variance of the mean of means, and its degrees of freedom."""
    n = len(samples)
    return [(s.deviation**2 / s.count / n**2, s.count - 1) for s in samples]
