"""Statistics of groups that are linear in numbers of people: F1 scores, means, quantiles, ratios.

A statistic a / b of a group, where a and b are sums over people of the group, is at most h if the
sum of a - h b is at most 0: a row of `Clauses`, with a factor for people who count alike. Factors
are whole numbers of at most 2^24; those that need more digits are rounded so that the row says
less, never more. Of n people, at most q n + 1 are below the q-quantile, and (1 - q) n + 1 above it,
by each of the definitions of Hyndman and Fan (1996); half at most are below the median, or above
it; nobody is below the least number, or above the greatest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fpbench.base.errors import InputError
from fpbench.claims.clauses import Clauses
from fpbench.claims.set_counts import Floats
from fpbench.reports.slices import (
    REPORT_METRICS,
    Codes,
    SliceColumn,
    cross,
    find_column,
    locate,
    take_numbers,
    view_people,
)

if TYPE_CHECKING:
    from pandas import DataFrame

_LARGEST = 1 << 24
"""Of factors: solvers of integer programs tell no more digits."""
_DIGITS = 9
"""Most decimals that are exact."""
_NOISE = 1e-8
"""What floats leave of factors; times people, it is less than one."""
_EXACT = 1e-9
"""How far a statistic with all digits may be from its value, by rounding of floats."""
_MOST_KINDS = 1000
"""Most different numbers; of more, neighbours count as anything between their least and greatest"""
_BY_COUNTS = {
    "f1-score": ((0, 0, 0, 2), (0, 1, 1, 2)), "jaccard-score": ((0, 0, 0, 1), (0, 1, 1, 1)),
}  # fmt: skip
"""Shares of sums of true negatives, false positives, false negatives, and true positives."""
_OF_NUMBERS = re.compile(
    r"(mean|sum|median|minimum|maximum|quantile ([\d.]+)) of (.+?)(?: among ([a-z-]+))?"
)
_SHARES = {"minimum": 0.0, "median": 0.5, "maximum": 1.0}
_COMPARISON = re.compile(r"(ratio|difference) of ([a-z-]+)")
_WEIGHTED = re.compile(r"([a-z-]+) weighted by (.+)")
LinearRow = tuple[NDArray[np.intp], NDArray[np.intp], Floats, float]
"""Sets, groups, factors, and what their sum is at most."""


class Statistic(NamedTuple):
    """A published statistic of a group in a slice."""

    metric: str
    group: str
    """"" of a comparison of all groups."""
    slice: tuple[tuple[str, str], ...]
    """Columns that the slice is cut by, and their values."""
    value: float
    within: float

    @property
    def ends(self) -> tuple[float, float]:
        """Least and greatest true value."""
        half = self.within or _EXACT * max(1.0, abs(self.value))
        return round(self.value - half, 12), round(self.value + half, 12)

    def to_row(self) -> dict[str, object]:
        """Its row of the long form."""
        own = {"group": self.group, "metric": self.metric, "value": self.value}
        return dict(self.slice) | own | {"within": self.within}

    def describe(self) -> str:
        """The metric and slice, in words."""
        where = " and ".join(f"{name} {value}" for name, value in self.slice)
        return f"{self.metric} for {where or 'everybody'}"


@lru_cache(maxsize=1 << 10)
def is_statistic(metric: str) -> bool:
    """Whether a metric is none of `REPORT_METRICS`, but linear: `f1-score`, `mean of age`."""
    match = _OF_NUMBERS.fullmatch(metric)
    if match is None:
        return metric in _BY_COUNTS or is_comparison(metric) or is_weighted(metric)
    base = REPORT_METRICS.get(match[4] or "people")
    return base is not None and not base.is_rate


@lru_cache(maxsize=1 << 10)
def is_comparison(metric: str) -> bool:
    """Whether a metric compares rates: a group's to the greatest, or the least and greatest."""
    match = _COMPARISON.fullmatch(metric)
    return match is not None and match[2] in REPORT_METRICS and is_rate(match[2])


@lru_cache(maxsize=1 << 10)
def is_weighted(metric: str) -> bool:
    """Whether a metric is a rate of people with weights: `selection-rate weighted by pay`."""
    match = _WEIGHTED.fullmatch(metric)
    return match is not None and match[1] in REPORT_METRICS and is_rate(match[1])


def is_of_counts(metric: str) -> bool:
    """Whether a metric is a statistic of numbers of people alone."""
    return metric in _BY_COUNTS or is_comparison(metric)


def is_of_numbers(metric: str) -> bool:
    """Whether a metric is a statistic that may be above 1."""
    return is_statistic(metric) and metric not in _BY_COUNTS


def is_rate(metric: str) -> bool:
    """Whether a metric is a share, of people or of sums of them."""
    own = REPORT_METRICS.get(metric)
    return metric in _BY_COUNTS if own is None else own.is_rate


def is_count(metric: str) -> bool:
    """Whether a metric is a number of people."""
    return metric in REPORT_METRICS and not is_rate(metric)


def needs_labels(metric: str) -> bool:
    """Whether a statistic looks at labels."""
    if compared := _COMPARISON.fullmatch(metric):
        return REPORT_METRICS[compared[2]].needs_labels
    if weighted := _WEIGHTED.fullmatch(metric):
        return REPORT_METRICS[weighted[1]].needs_labels
    match = _OF_NUMBERS.fullmatch(metric)
    return match is None or REPORT_METRICS[match[4] or "people"].needs_labels


def _find_share(metric: str) -> float | None:
    """The share of people below a quantile; None of what is none."""
    match = _OF_NUMBERS.fullmatch(metric)
    if match is None or match[1] in ("mean", "sum"):
        return None
    return _SHARES.get(match[1]) if match[2] is None else float(match[2])


class Kinds(NamedTuple):
    """What people add to a statistic: U kinds of people."""

    of: Codes
    """(n,) kind of each person; -1 of those who do not count."""
    least: Floats
    most: Floats
    """(U,) ends of what a person adds to the first sum."""
    light: Floats
    heavy: Floats
    """(U,) of what to the second sum, that the first is divided by; 0 if it is not."""

    @classmethod
    def find(
        cls, metric: str, X: DataFrame, predictions: Codes, labels: Codes | None,
        ends: NDArray[np.float64],
    ) -> Kinds:  # fmt: skip
        """The kinds of people (n,) of a statistic, as `is_statistic` knows them.

        `ends`: (E, 2) of its values, by which people of quantiles are cut.
        """
        if compared := _COMPARISON.fullmatch(metric):
            label, _, view = REPORT_METRICS[compared[2]]
            bits, others = view_people(view, predictions, labels)
            kind = bits if label is None else np.where(others == label, bits, -1)
            return cls(kind, np.arange(2.0), np.arange(2.0), np.ones(2), np.ones(2))
        if metric in _BY_COUNTS:
            assert labels is not None
            top, bottom = np.array(_BY_COUNTS[metric], np.float64)
            return cls(2 * labels + predictions, top, top, bottom, bottom)
        weighted, match = _WEIGHTED.fullmatch(metric), _OF_NUMBERS.fullmatch(metric)
        what, name, of = "", "", "people"
        if weighted:
            of, name = weighted.groups()
        elif match:
            what, _, name, among = match.groups()
            of = among or of
        label, prediction, view = REPORT_METRICS[of]
        bits, others = view_people(view, predictions, labels)
        inside = np.ones(len(X), np.bool_) if prediction is None else bits == prediction
        if label is not None:
            inside &= others == label
        numbers = take_numbers(find_column(X, name))
        inside &= ~np.isnan(numbers)
        if np.isinf(numbers[inside]).any():
            raise InputError(f"column {name!r}: the number of somebody is infinite")
        if weighted and (numbers[inside] < 0).any():
            raise InputError(f"column {name!r}: somebody's weight is below 0")
        values = np.unique(numbers[inside])
        first = values
        if _find_share(metric) is not None:
            cuts = np.unique(np.append(ends[:, 0], np.nextafter(ends[:, 1], np.inf)))
            first = values[
                np.flatnonzero(np.diff(np.searchsorted(cuts, values, "right"), prepend=-1))
            ]
        if len(first) > _MOST_KINDS:
            first = values[np.arange(_MOST_KINDS) * len(values) // _MOST_KINDS]
        kind = np.searchsorted(first, numbers, side="right") - 1
        last = np.append(values[np.searchsorted(values, first[1:]) - 1], values[-1:])
        if weighted:
            first, last, each = first.repeat(2), last.repeat(2), np.arange(2 * len(first)) % 2
            kind = np.where(inside, 2 * kind + bits, -1)
            return cls(kind, each * first, each * last, first, last)
        weight = np.full(len(first), float(what == "mean"))
        return cls(np.where(inside, kind, -1), first, last, weight, weight)

    def bound(
        self, statistic: Statistic, group: int, sets: NDArray[np.intp], kinds: NDArray[np.intp]
    ) -> list[list[LinearRow]]:
        """Clauses of a statistic of a group, whose people of some kinds are these sets."""
        rows: list[LinearRow]
        low, high = statistic.ends
        groups, light, heavy = np.full(len(sets), group), self.light[kinds], self.heavy[kinds]
        least, most = self.least[kinds], self.most[kinds]
        if (share := _find_share(statistic.metric)) is not None:
            more = float(share not in (0, 0.5, 1))
            sides = (most < low) - share, (least > high) - 1 + share
            rows = [(sets, groups, side.astype(np.float64), more) for side in sides]
            if share in (0, 1):  # somebody has that number
                rows.append((sets, groups, -((most >= low) & (least <= high)).astype(float), -1.0))
            return [[row] for row in rows]
        if not heavy.any():
            return [[(sets, groups, least, high)], [(sets, groups, -most, -low)]]
        rows = [
            (sets, groups, least - high * heavy, 0.0), (sets, groups, low * light - most, 0.0),
        ]  # fmt: skip
        if (low > 0 or high < 0) and not (statistic.metric in _BY_COUNTS and high >= 1):
            rows.append((sets, groups, -(heavy > 0).astype(float), -1.0))  # it is of somebody
        return [[row] for row in rows]


@dataclass(frozen=True)
class _Rates:
    """Rates of groups in a slice: people of a set, of as many as lie between two numbers."""

    set: int
    low: Floats
    high: Floats
    """(K,)."""

    def _row(self, terms: Mapping[int, float], most: float) -> LinearRow:
        groups = np.array(list(terms), np.intp)
        return np.full(len(terms), self.set), groups, np.array(list(terms.values()), float), most

    def at_most(self, one: int, times: float, other: int) -> LinearRow:
        """That a rate is at most so many times another."""
        return self._row({one: self.low[other], other: -times * self.high[one]}, 0.0)

    def apart(self, one: int, other: int, sign: int, end: float) -> LinearRow:
        """That a rate less another, times a sign, is at most an end."""
        a, b = self.low[one], self.low[other]
        return self._row({one: sign * b, other: -sign * a}, end * a * b)

    def compare(self, own: Sequence[Statistic], groups: Sequence[str]) -> list[list[LinearRow]]:
        """Clauses of what is published of one metric in the slice."""
        whose = [k for k in range(len(groups)) if self.high[k] > 0]
        is_ratio = own[0].metric.startswith("ratio")
        pairs = list(permutations(whose, 2))
        clauses: list[list[LinearRow]] = []
        for least, most in (one.ends for one in own if not one.group):
            low, high = max(least, -most), max(most, -least)
            if is_ratio:
                clauses += [[self.at_most(b, 1 / low, a)] for a, b in pairs if low > 0]
                clauses.append([self.at_most(a, high, b) for a, b in pairs])
            elif (self.low[whose] == self.high[whose]).all():
                clauses += [[self.apart(a, b, 1, high)] for a, b in pairs]
                clauses.append([self.apart(a, b, -1, -low) for a, b in pairs])
        ends = {groups.index(one.group): one.ends for one in own if one.group and is_ratio}
        # The greatest rate is that of one of these; of others, some may not be compared at all.
        told = [k for k, (_, high) in ends.items() if high >= 1]
        first = told or [k for k in whose if k not in ends]
        for k, (low, high) in ends.items():
            below = [self.at_most(b, 1 / low, k) for b in first if b != k and low > 0]
            clauses += [[row] for row in below] if told else [below]
            if k not in first:
                clauses.append([self.at_most(k, high, b) for b in first])
        return [clause for clause in clauses if clause]


def list_sets(
    statistics: Sequence[Statistic], columns: Sequence[SliceColumn], groups: Sequence[str],
    codes: Sequence[Codes], at: Mapping[int, Codes], X: DataFrame, labels: Codes | None,
    find_sizes: Callable[[frozenset[int], Codes, int], tuple[Floats, Floats]],
) -> Iterator[tuple[Codes, list[str], list[list[LinearRow]]]]:  # fmt: skip
    """Tables of disjoint sets of people who count alike: (n,) sets, their names, and clauses.

    `codes`: (n,) the people's values, by column. `at`: (n,) predictions by threshold; -1 for none.
    `find_sizes`: gives the ends (M, K) of groups' sizes in sets of people (n,), of a number M, that
    are cut by columns.
    """
    names = {column.name: place for place, column in enumerate(columns)}
    tables: dict[tuple[str, tuple[int, ...], int], dict[tuple[int, ...], list[Statistic]]] = {}
    for one in statistics:
        pairs = sorted((names[name], columns[names[name]].values.index(value))
                       for name, value in one.slice)  # fmt: skip
        place = next((code for c, code in pairs if columns[c].is_threshold), -1)
        pairs = [pair for pair in pairs if not columns[pair[0]].is_threshold]
        cut, cell = tuple(c for c, _ in pairs), tuple(code for _, code in pairs)
        tables.setdefault((one.metric, cut, place), {}).setdefault(cell, []).append(one)
    for (metric, cut, place), of in tables.items():
        sizes, cells = [len(columns[c].values) for c in cut], sorted(of)
        people = cross([codes[c] for c in cut], sizes, len(X))
        keys = cross([np.array(own) for own in zip(*cells, strict=True)], sizes, len(cells))
        ends = np.array([one.ends for own in of.values() for one in own])
        kinds, compared = Kinds.find(metric, X, at[place], labels, ends), is_comparison(metric)
        inside, many = np.where(kinds.of < 0, -1, locate(people, keys)), max(len(kinds.least), 1)
        member = np.where(inside < 0, -1, inside * many + kinds.of)
        low = high = np.zeros((len(cells), len(groups)))
        if compared:
            low, high = find_sizes(frozenset(cut), inside, len(cells))
        there, clauses = np.unique(member[member >= 0]), list[list[LinearRow]]()
        called = [of[cells[number]][0].describe() for number in there // many]
        for number, cell in enumerate(cells):
            sets, own = np.flatnonzero(there // many == number), of[cell]
            if not len(sets) and (wrong := [o for o in own if o.ends[0] > 0 or o.ends[1] < 0]):
                raise InputError(
                    f"the {wrong[0].describe()}: none of these people counts; the report is about "
                    "other people, columns or bins"
                )
            if compared and len(sets) and there[sets[-1]] % many:
                rates = _Rates(int(sets[-1]), low[number], high[number])
                clauses += rates.compare(own, groups)
            elif len(sets) and not compared:
                for one in own:
                    group = groups.index(one.group)
                    clauses += kinds.bound(one, group, sets, there[sets] % many)
        yield locate(member, there) if len(there) else member, called, clauses


def to_clauses(clauses: Sequence[Sequence[LinearRow]], first: int) -> Clauses:
    """Rows with whole factors, of sets that are counted on from `first`."""
    rows = [row for clause in clauses for row in clause]
    whole = [_to_whole(factors, most) for _, _, factors, most in rows]
    sizes = [len(factors) for factors, _ in whole]

    def join(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
        return np.concatenate([np.zeros(0, np.int64), *parts])

    return Clauses(
        np.repeat(np.arange(len(rows)), sizes), first + join([row[0] for row in rows]),
        join([row[1] for row in rows]), join([factors for factors, _ in whole]),
        np.array([most for _, most in whole], np.int64),
        np.repeat(np.arange(len(clauses)), [len(clause) for clause in clauses]),
    )  # fmt: skip


def _to_whole(factors: Floats, most: float) -> tuple[NDArray[np.int64], int]:
    """A row times a number, with its factors and the sum's end rounded down."""
    largest = np.abs(factors).max(initial=1)
    for digits in range(_DIGITS + 1):
        exact = np.append(factors, most) * 10.0**digits
        if largest * 10.0**digits > _LARGEST:
            break
        if (np.abs(exact - np.rint(exact)) <= _NOISE).all():
            whole = np.rint(exact).astype(np.int64)
            by = max(int(np.gcd.reduce(whole[:-1])), 1)
            return whole[:-1] // by, int(whole[-1]) // by
    scale = _LARGEST / largest
    return (
        np.floor(factors * scale - _NOISE).astype(np.int64), int(np.floor(most * scale + _NOISE))
    )  # fmt: skip
