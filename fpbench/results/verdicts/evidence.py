"""What rows say about an expectation: one number a seed, and how sure their mean is."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean  # of exact sums, so that the order of rows does not matter
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from fpbench.components.names import KINDS
from fpbench.matrix.expectations import (
    Bound,
    Extreme,
    Lower,
    Share,
    Steady,
    Trend,
    Value,
    VariesMore,
)
from fpbench.matrix.statement import Expectation
from fpbench.results.statistics.intervals import RESAMPLES, Interval, greatest, interval, wilson
from fpbench.results.statistics.welch import Summary, difference

Row: TypeAlias = Mapping[str, Any]
_Floats: TypeAlias = NDArray[np.float64]

LEAST_SEEDS = 5
"""Over fewer seeds a standard deviation decides nothing, and a mean is told to rest on few."""


@dataclass(frozen=True)
class Finding:
    """What the rows gave."""

    ours: Interval | None
    """None if they gave nothing."""
    note: str = ""
    """Why they gave nothing, or what to know of the number."""
    decisive: bool = True
    """Whether it may decide."""


def number(row: Row, name: str) -> float | None:
    """A finite number in a column of a row; None if there is none."""
    value = row.get(name)
    if isinstance(value, (bool, int, float)) and math.isfinite(value):
        return float(value)
    return None


def finding(expectation: Expectation, rows: Sequence[Row]) -> Finding:
    """The number that an expectation is about, from rows that all have its columns.

    Parameters
    ----------
    expectation
        What is stated.
    rows
        Rows of one combination. Their order does not matter.
    """
    match expectation:
        case Share():
            found = _share(expectation, rows)
        case Trend():
            found = _along(expectation, expectation.parameter, rows, _rank_correlation)
        case Steady():
            found = _along(expectation, expectation.parameter, rows, _deviation)
        case Extreme():
            found = _extreme(expectation, rows)
        case VariesMore():
            found = _varies_more(expectation, rows)
        case Lower():
            found = _lower(expectation, rows)
        case Bound():
            found = _of_seeds(expectation, _by_seed(rows, _excess(expectation)))
        case Value():
            found = _of_seeds(expectation, _by_seed(rows, _mean_of(expectation.measure)))
        case _:
            raise TypeError(f"no statistic for the check {expectation.check!r}")
    return found


def complete(expectation: Expectation, rows: Iterable[Row]) -> list[Row]:
    """The rows that have a value in every column that the check reads."""
    columns = expectation.columns
    numeric = () if isinstance(expectation, Share) else ("measure", "parameter", "than")
    named = {getattr(expectation, name, None) for name in numeric}
    if isinstance(expectation, Lower):
        named |= set(columns) - {expectation.of}
    numbers = [column for column in columns if column in named]
    others = [column for column in columns if column not in numbers]
    return [
        row
        for row in rows
        if all(number(row, column) is not None for column in numbers)
        and all(row.get(column) is not None for column in others)
    ]


def _grouped(rows: Iterable[Row], key: Callable[[Row], Hashable]) -> dict[Any, list[Row]]:
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def _by_seed(rows: Sequence[Row], value: Callable[[Sequence[Row]], float]) -> dict[Any, float]:
    """A value of the rows of each seed, in the order of the seeds."""
    groups = _grouped(rows, lambda row: row["seed"])
    return {seed: value(groups[seed]) for seed in sorted(groups)}


def _mean_of(name: str) -> Callable[[Sequence[Row]], float]:
    return lambda rows: fmean(cast(float, number(row, name)) for row in rows)


def _excess(expectation: Bound) -> Callable[[Sequence[Row]], float]:
    """How far a measure is above another of the same row, or the measure itself."""
    measure, than = expectation.measure, expectation.than
    if not isinstance(than, str):
        return _mean_of(measure)
    return lambda rows: fmean(
        cast(float, number(row, measure)) - cast(float, number(row, than)) for row in rows
    )


def _of_seeds(expectation: Expectation, values: Mapping[Any, float], lack: str = "") -> Finding:
    if not values:
        return Finding(None, lack)
    array = np.array(list(values.values()), dtype=np.float64)
    found = interval(array, expectation.quantity)
    return Finding(found, _reservation(found))


def _reservation(ours: Interval) -> str:
    """What to know of a number that rests on few seeds, or on seeds that all say the same."""
    if ours.count == 1:
        return "one seed: its value decides"
    if ours.low is None:
        return f"the same at all {ours.count} seeds: this value decides"
    return f"only {ours.count} seeds" if ours.count < LEAST_SEEDS else ""


def _share(expectation: Share, rows: Sequence[Row]) -> Finding:
    def share(mine: Sequence[Row]) -> float:
        return fmean(float(row[expectation.measure] == expectation.equals) for row in mine)

    values = np.array(list(_by_seed(rows, share).values()), dtype=np.float64)
    count, mean = len(values), float(values.mean())
    deviation = float(values.std(ddof=1)) if count > 1 else None
    if expectation.every:
        against = sum(_contradicts(expectation, row) for row in rows)
        note = f"{against} of {len(rows)} rows are against it" if against else ""
        return Finding(Interval(mean, deviation, None, None, count), note)
    low, high = wilson(mean, count)
    return Finding(Interval(mean, deviation, low, high, count))


def _contradicts(expectation: Share, row: Row) -> bool:
    never = expectation.expected == 0
    return (row[expectation.measure] == expectation.equals) is never


def _along(
    expectation: Trend | Steady,
    parameter: str,
    rows: Sequence[Row],
    statistic: Callable[[_Floats, _Floats], float],
) -> Finding:
    """A statistic of the curve of each seed: the mean measure at each value of a parameter."""

    def of_curve(mine: Sequence[Row]) -> float:
        points = _grouped(mine, lambda row: number(row, parameter))
        values = sorted(points)
        if len(values) < 2:
            return math.nan
        means = [_mean_of(expectation.measure)(points[value]) for value in values]
        return statistic(np.array(values), np.array(means))

    found = {seed: v for seed, v in _by_seed(rows, of_curve).items() if not math.isnan(v)}
    lack = f"no seed has two values of {parameter}"
    return _of_seeds(expectation, found, lack)


def _rank_correlation(parameter: _Floats, measure: _Floats) -> float:
    """Spearman's; 0 if the measure does not change."""
    from scipy.stats import spearmanr

    if np.ptp(measure) == 0:
        return 0.0
    return float(spearmanr(parameter, measure).statistic)


def _deviation(parameter: _Floats, measure: _Floats) -> float:
    return float(measure.std(ddof=1))


def _extreme(expectation: Extreme, rows: Sequence[Row]) -> Finding:
    groups = _grouped(rows, lambda row: row[expectation.of])
    means = {value: _by_seed(mine, _mean_of(expectation.measure)) for value, mine in groups.items()}
    named = means.pop(expectation.value, None)
    if named is None:
        return Finding(None, f"no row with {expectation.of} = {expectation.value!r} has a value")
    gaps = {
        value: np.array([named[seed] - mine[seed] for seed in named if seed in mine], np.float64)
        for value, mine in means.items()
    }
    # The rival is the best over all seeds: the best of each seed would owe its place to noise.
    sign = 1 if expectation.check == "least" else -1
    others = [value for value in gaps if len(gaps[value])]
    if not others:
        return Finding(None, f"no seed has another {expectation.of} to compare with")
    rival = min(others, key=lambda value: (-sign * fmean(gaps[value].tolist()), str(value)))
    alone = [value for value in others if len(gaps[value]) == 1]
    found, decisive = interval(gaps[rival], expectation.quantity), True
    alone = [value for value in others if len(gaps[value]) == 1]
    if len(alone) < len(others):
        several = [sign * gaps[value] for value in others if len(gaps[value]) > 1]
        ends = greatest(several, len(others), expectation.quantity)
        low, high = sorted(sign * end for end in ends)
        spread = (low, high) if low < high else (None, None)
        found = replace(found, low=spread[0], high=spread[1])
        # One that shares one seed may be better by any amount; not so if another surely is.
        decisive = not alone or expectation.region.misses(low, high)
    notes = [f"next best: {rival}", _reservation(found)]
    notes += [] if decisive else [f"{alone[0]} shares one seed only"]
    return Finding(found, "; ".join(filter(None, notes)), decisive)


def _varies_more(expectation: VariesMore, rows: Sequence[Row]) -> Finding:
    chosen = {
        value: [row for row in rows if row[expectation.of] == value]
        for value in (expectation.value, expectation.than)
    }
    lacking = [value for value, mine in chosen.items() if not mine]
    if lacking:
        return Finding(None, f"no row with {expectation.of} = {lacking[0]!r} has a value")
    # A seed that only one of them has says nothing of their difference.
    one, other = ({row["seed"] for row in mine} for mine in chosen.values())
    seeds = sorted(one & other)
    if not seeds:
        return Finding(None, f"no seed has both values of {expectation.of}")
    shared = [[row for row in mine if row["seed"] in one & other] for mine in chosen.values()]
    rng = np.random.default_rng(zlib.crc32(expectation.quantity.encode()))
    drawn = rng.integers(len(seeds), size=(RESAMPLES, len(seeds)))
    # How often each seed was drawn; the first line is the seeds as they are.
    times = np.vstack([np.ones(len(seeds)), [np.bincount(d, minlength=len(seeds)) for d in drawn]])
    more, less = (_mean_spread(mine, expectation.measure, seeds, times) for mine in shared)
    if np.isnan(more[0]) or np.isnan(less[0]):
        return Finding(None, "a standard deviation over seeds needs two of them")
    resampled = (more - less)[1:]
    low, high = np.quantile(resampled[~np.isnan(resampled)], (0.025, 0.975))
    found = Interval(float(more[0] - less[0]), None, float(low), float(high), len(seeds))
    few = len(seeds) < LEAST_SEEDS
    notes = [f"fewer than {LEAST_SEEDS} seeds"] if few else []
    if one != other:
        notes.append(f"{len(one ^ other)} seeds have only one of both")
    return Finding(found, "; ".join(notes), decisive=not few)


def _lower(expectation: Lower, rows: Sequence[Row]) -> Finding:
    """The difference of two means of repeated audits, and Welch's interval of it."""
    measure, of = expectation.measure, expectation.of
    if of is None:
        known = _mean_of(str(expectation.than))(rows)
        seeds, alone = {row["seed"] for row in rows}, set()
        found = difference([Summary.of(row, measure) for row in rows], known)
    else:
        pair = expectation.value, expectation.than
        one, other = ([row for row in rows if row[of] == value] for value in pair)
        for value, mine in zip(pair, (one, other), strict=True):
            if not mine:
                return Finding(None, f"no row with {of} = {value!r} has a value")
        here, there = ({row["seed"] for row in mine} for mine in (one, other))
        seeds, alone = here & there, here ^ there
        if not seeds:
            return Finding(None, f"no seed has both values of {of}")
        found = difference(
            *([Summary.of(r, measure) for r in mine if r["seed"] in seeds] for mine in (one, other))
        )
    p = "p < .0001" if found.p_lower < 1e-4 else f"p = {found.p_lower:.4f}".replace("0.", ".", 1)
    note = f"{p}; {len(alone)} seeds have only one of both" if alone else p
    return Finding(Interval(found.mean, None, found.low, found.high, len(seeds)), note)


def _mean_spread(
    rows: Sequence[Row], measure: str, seeds: Sequence[Any], times: _Floats
) -> _Floats:
    """Standard deviations over seeds, averaged over combinations of components.

    Parameters
    ----------
    rows, measure, seeds
        What is measured, where, and the seeds there are.
    times
        (resamples, seeds) how often each seed counts.

    Returns
    -------
    ndarray
        (resamples,); NaN where no combination has two seeds.
    """
    total, counted = np.zeros(len(times)), np.zeros(len(times))
    at = {seed: i for i, seed in enumerate(seeds)}
    settings = _grouped(rows, lambda row: tuple(str(row.get(kind, "")) for kind in KINDS))
    for key in sorted(settings):
        values, here = np.zeros(len(seeds)), np.zeros(len(seeds))
        for seed, mean in _by_seed(settings[key], _mean_of(measure)).items():
            values[at[seed]], here[at[seed]] = mean, 1
        values -= here * (values.sum() / here.sum())  # against cancellation
        n, sums, squares = times @ here, times @ values, times @ values**2
        enough = n > 1
        variance = (squares - sums**2 / np.maximum(n, 1)) / np.maximum(n - 1, 1)
        total += np.where(enough, np.sqrt(np.maximum(variance, 0)), 0)
        counted += enough
    return np.where(counted > 0, total / np.maximum(counted, 1), np.nan)
