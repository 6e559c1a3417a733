"""The evidence of rows on an expectation: one number per seed, and the interval of their mean."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from statistics import fmean  # of exact sums, so that the order of rows does not matter
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fpbench.components.names import KINDS
from fpbench.matrix.expectations import (
    Bound,
    Expectation,
    Extreme,
    Lower,
    Share,
    Steady,
    Trend,
    Value,
    VariesMore,
)
from fpbench.results.rows.groups import RowGroup
from fpbench.results.statistics.intervals import (
    RESAMPLES,
    Interval,
    bound_greatest,
    compute_wilson,
    estimate_interval,
)
from fpbench.results.statistics.welch import SampleMoments, compare_means

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
