"""Expected totals given a region of counts: importance sampling of tables of counts.

Tables are drawn count by count, each given the earlier ones and within the interval that the rows
allow (Geweke, Hajivassiliou & Keane's simulator; Genz 1992), from normal distributions that are
fitted to the region in a few rounds (adaptive importance sampling; Oh & Berger 1992). Conditions
that are not rows are checked exactly. Points come from fixed sequences, so results are
reproducible.

The distribution of the counts is a product of shifted binomials, each with the mean given the
earlier counts, the variance and the skewness of a tilted sum of independent people.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fpbench.claims.conditions import Gap, Proportional, RatesWithin
from fpbench.claims.counts import Condition, Row
from fpbench.correction.conditioning.likeliest_counts import Likeliest
from fpbench.correction.conditioning.regions import Tables, satisfy
from fpbench.correction.conditioning.tilted_people import TiltedPeople

_Floats: TypeAlias = NDArray[np.float64]
_Mask: TypeAlias = NDArray[np.bool_]
Check: TypeAlias = Callable[[Tables], _Mask]

_ROUNDS = (2048, 2048, 4096, 8192)
"""Tables that a distribution is fitted to in each round."""
_BATCHES = 8
"""Independent batches that are drawn together: their spread gives the standard error."""
_WIDER = 1.2
"""Factor that widens a fitted covariance, so that no likely table is a rare draw."""
_NARROWEST = 0.4
"""Least standard deviation of a drawn count: its neighbours are drawn as well."""


@dataclass(frozen=True)
class Sampled:
    """Estimates from the tables drawn in a region."""

    log_probability: float
    """Log-probability of the region; -inf if no table was found in it."""
    log_error: float
    """Standard error of it."""
    mean: _Floats
    """(J K + L,) expected totals given the region."""
    error: _Floats
    """(J K + L,) standard errors of them."""


class RegionSampler:
    """Draws as many tables of counts in a region as needed."""

    def __init__(self, tables: TableLaw, effort: float = 1.0) -> None:
        """`effort` is a share of the usual number of tables that laws are fitted to."""
        self._drawing, self._usual = tables, tables.likeliest.moments
        self._points = np.random.default_rng(0)
        order = self._drawing.order
        law = _Normal.of(self._usual.mean[order], self._usual.covariance[np.ix_(order, order)])
        for count in _ROUNDS:
            law = _fit(*self._draw(law, round(effort * count)), law)
        self._law = law
        self._batches: list[tuple[_Floats, _Floats]] = []

    def _draw(self, law: _Normal, count: int) -> tuple[_Floats, _Floats]:
        points = _spread_points(count, len(self._drawing.order), self._points)
        return self._drawing.tables(law, points)

    def draw(self, tables: int) -> Sampled:
        """Draw more tables; returns the estimates from all so far."""
        size = tables // _BATCHES
        self._batches += (self._draw(self._law, size) for _ in range(_BATCHES))
        return _summarise(self._drawing, self._batches, self._usual.mean)


def _summarise(
    draw: TableLaw, batches: Sequence[tuple[_Floats, _Floats]], usual: _Floats
) -> Sampled:
    top = max(float(logs.max()) for _, logs in batches)
    if top == -np.inf:
        return Sampled(-math.inf, 0.0, usual, np.zeros_like(usual))
    weights = [np.exp(logs - top) for _, logs in batches]
    each = np.array([one.sum() for one in weights])
    sums = np.array([one @ values for one, (values, _) in zip(weights, batches, strict=True)])
    mean = sums.sum(axis=0) / each.sum()
    spread = math.sqrt(len(each) / (len(each) - 1)) / each.sum()
    error = spread * np.sqrt(((sums - each[:, None] * mean) ** 2).sum(axis=0))
    log_error = spread * math.sqrt(((each - each.mean()) ** 2).sum())
    probability = top + math.log(each.sum() / sum(map(len, weights)))
    return Sampled(probability, log_error, draw.restore(mean), draw.restore_errors(error))


@dataclass(frozen=True)
class _Normal:
    """A normal distribution, factored into each number given those before it."""

    mean: _Floats
    root: _Floats
    """Lower triangular."""

    @classmethod
    def of(cls, mean: _Floats, covariance: _Floats) -> _Normal:
        scale = np.sqrt(np.maximum(np.diag(covariance), 1e-12))
        alike = covariance / np.outer(scale, scale)
        np.fill_diagonal(alike, 1 + 1e-9)
        for ridge in (0.0, 1e-8, 1e-6, 1e-4, 1e-2, 1.0):
            try:
                root = np.linalg.cholesky(alike + ridge * np.eye(len(alike)))
            except np.linalg.LinAlgError:
                continue
            return cls(mean, scale[:, None] * root)
        raise AssertionError("a correlation matrix with 1 more on its diagonal has a root")


class TableLaw:
    """The importance sampler of a region's tables: how they are drawn and weighted.

    Parameters
    ----------
    people
        Whose totals.
    likeliest
        A tilt that makes the tables likely: weights are computed under it.
    conditions
        Conditions on counts, which all hold in the region.
    bounds
        (L,) least and greatest value of each weighted sum.
    check
        Checks further conditions on tables (N, J, K).
    """

    def __init__(
        self,
        people: TiltedPeople,
        likeliest: Likeliest,
        conditions: Sequence[Condition] = (),
        bounds: Sequence[tuple[float, float]] = (),
        check: Check = lambda tables: np.ones(len(tables), np.bool_),
    ) -> None:
        self._people, self.likeliest, self._check = people, likeliest, check
        self._bounds = bounds
        self._conditions = [c for c in conditions if not isinstance(c, Row)]
        moments, k = likeliest.moments, people.groups
        counts = people.classes * k
        # Small groups first: the largest has the rest.
        sizes = moments.mean[:counts].reshape(people.classes, k).sum(axis=0)
        *self._groups, self._rest = np.argsort(sizes, kind="stable").tolist()
        self.order = [j * k + g for g in self._groups for j in range(people.classes)]
        self.order += range(counts, people.totals)
        self._law = _Normal.of(
            moments.mean[self.order], moments.covariance[np.ix_(self.order, self.order)]
        )
        self._shapes = [_Binomial.of(self._law.root[t, t] ** 2, moments.skew[d])
                        for t, d in enumerate(self.order)]  # fmt: skip
        rows = [row for condition in conditions for row in condition.rows()]
        self._rows: list[list[tuple[dict[int, float], float]]] = [[] for _ in range(k)]
        for row in rows:
            groups = {group for _, group, _ in row.terms}
            if len(groups) == 1:
                own: dict[int, float] = {j: a for j, _, a in row.terms}
                most: float = row.most
                largest = max(map(abs, own.values()))
                if largest * int(people.sizes.sum()) * len(own) + abs(most) >= 2**62:
                    # Whole numbers would overflow: nearly the same, and checked later.
                    own, most = {j: a / largest for j, a in own.items()}, most / largest
                    self._conditions.append(row)
                self._rows[groups.pop()].append((own, most))
            elif groups:
                self._conditions.append(row)
        self._compared = [
            c
            for c in conditions
            if isinstance(c, RatesWithin | Gap)
            and c.part.positive
            and c.part.positive[-1] == max(*c.part.negative, *c.part.positive)
        ]
        self._units = {
            (c.part.negative[0], c.group): c.unit[1] - c.unit[0]
            for c in conditions
            if isinstance(c, Proportional) and len(c.part.negative) == 1
        }

    def restore(self, mean: _Floats) -> _Floats:
        """All totals, from those that are drawn."""
        people = self._people
        totals = np.zeros(people.totals)
        totals[self.order] = mean
        table = totals[: people.classes * people.groups].reshape(people.classes, people.groups)
        table[:, self._rest] = people.sizes - table.sum(axis=1)
        return totals

    def restore_errors(self, error: _Floats) -> _Floats:
        """Standard errors of all totals; those of the largest group are at most the others' sum."""
        people = self._people
        totals = np.zeros(people.totals)
        totals[self.order] = error
        table = totals[: people.classes * people.groups].reshape(people.classes, people.groups)
        table[:, self._rest] = np.sqrt((table**2).sum(axis=1))
        return totals

    def tables(self, law: _Normal, points: _Floats) -> tuple[_Floats, _Floats]:
        """Totals (N, d) at points of the unit cube, and the logs of their weights."""
        people, likeliest = self._people, self.likeliest
        n, k = len(points), people.groups
        table: Tables = np.zeros((n, people.classes, k), dtype=np.int64)
        values: _Floats = np.zeros_like(points)
        logs: _Floats = np.full(n, likeliest.moments.log_scale)
        here, drawn = _Walk(self._law, n), _Walk(law, n)
        rest: Tables = np.tile(people.sizes, (n, 1))
        for t, total in enumerate(self.order):
            mean, _ = here.next(t)
            centre, deviation = drawn.next(t)
            if total >= people.classes * k:
                low, high = self._bounds[total - people.classes * k]
                value, log_share = _draw_real(points[:, t], centre, deviation, low, high)
                own = self._law.root[t, t]
                logs += -0.5 * ((value - mean) / own) ** 2 - math.log(own) - log_share
            else:
                j, group = divmod(total, k)
                low_count, high_count = self._interval(table, rest, j, group)
                count, log_share = _draw_count(
                    points[:, t], centre, max(deviation, _NARROWEST), low_count, high_count,
                    self._units.get((j, group), 1),
                )  # fmt: skip
                logs += self._shapes[t].log_law(count, mean) - log_share
                table[:, j, group] = count
                rest[:, j] -= count
                value = count.astype(np.float64)
            values[:, t] = value
            logs -= likeliest.tilt[total] * value
            here.add(t, value)
            drawn.add(t, value)
        table[:, :, self._rest] = rest
        logs -= rest @ likeliest.tilt[[j * k + self._rest for j in range(people.classes)]]
        possible = np.flatnonzero(logs > -np.inf)
        allowed = satisfy(self._conditions, table[possible])
        allowed[allowed] = self._check(table[possible[allowed]])
        logs[possible[~allowed]] = -np.inf
        return values, logs

    def weigh(self, totals: _Floats) -> float:
        """Log-probability of one table."""
        here, likeliest = _Walk(self._law, 1), self.likeliest
        log = likeliest.moments.log_scale - float(likeliest.tilt @ totals)
        for t, total in enumerate(self.order):
            mean, _ = here.next(t)
            value = totals[[total]]
            log += float(self._shapes[t].log_law(value, mean)[0])
            here.add(t, value)
        return log

    def _interval(self, table: Tables, rest: Tables, j: int, group: int) -> tuple[Tables, Tables]:
        """Least and greatest count of a group in a class, given those that are drawn."""
        people, later = self._people, self._groups[self._groups.index(group) + 1 :]
        others = [*later, self._rest]
        low = np.maximum(people.least[j, group], rest[:, j] - people.most[j, others].sum())
        high = np.minimum(people.most[j, group], rest[:, j] - people.least[j, others].sum())
        for own, most in self._rows[group]:
            low, high = _cut(low, high, own, most, j, table[:, :, group])
        if not later:  # The rest is the largest group's.
            for own, most in self._rows[self._rest]:
                if max(own) == j:
                    room = most - sum(a * rest[:, i] for i, a in own.items())
                    low, high = _cut_one(low, high, -own[j], room)
        for condition in self._compared:
            if condition.part.positive[-1] == j:
                low, high = self._cut_by_rates(condition, low, high, table, rest, group)
        return low, high

    def _cut_by_rates(
        self,
        condition: RatesWithin | Gap,
        low: Tables,
        high: Tables,
        table: Tables,
        rest: Tables,
        group: int,
    ) -> tuple[Tables, Tables]:
        """The interval that the drawn groups' rates allow, slightly wider: all is checked later."""
        positive, negative = list(condition.part.positive), list(condition.part.negative)
        ones, zeros = (table[:, part, group].sum(axis=1) for part in (positive, negative))
        least, most = np.zeros(len(table)), np.ones(len(table))
        for other in self._groups[: self._groups.index(group)]:
            positives = table[:, positive, other].sum(axis=1)
            people = positives + table[:, negative, other].sum(axis=1)
            rate = positives / np.maximum(people, 1)
            bounds = _bound_rate(condition, group, other, rate)
            least = np.where(people > 0, np.maximum(least, bounds[0]), least)
            most = np.where(people > 0, np.minimum(most, bounds[1]), most)
        odds = zeros * least / np.maximum(1 - least, 1e-300)
        lowest = np.where(least < 1, np.ceil(odds - ones - 1e-6), low)
        odds = zeros * most / np.maximum(1 - most, 1e-300)
        highest = np.where(most < 1, np.floor(odds - ones + 1e-6), high)
        low = np.maximum(low, np.minimum(lowest, 2**53).astype(np.int64))
        high = np.minimum(high, np.clip(highest, -1, 2**53).astype(np.int64))
        if group != self._groups[-1]:
            return low, high
        # The rest is the largest group's: its rate falls as this one rises.
        their_ones, their_zeros = (rest[:, part].sum(axis=1) for part in (positive, negative))

        def rates(count: Tables) -> tuple[_Floats, _Floats]:
            own, theirs = ones + count, their_ones - count
            return own / np.maximum(own + zeros, 1), theirs / np.maximum(theirs + their_zeros, 1)

        def above(count: Tables) -> _Mask:
            own, theirs = rates(count)
            bound = _bound_rate(condition, group, self._rest, theirs)[0]
            return np.asarray((own >= bound - 1e-9) | (ones + zeros + count == 0))

        def below(count: Tables) -> _Mask:
            own, theirs = rates(count)
            bound = _bound_rate(condition, group, self._rest, theirs)[1]
            return np.asarray(own <= bound + 1e-9)

        return _find_first(low, high, above), _find_last(low, high, below)


def _cut(
    low: Tables, high: Tables, own: dict[int, float], most: float, j: int, counts: Tables
) -> tuple[Tables, Tables]:
    """An interval within a row whose last class this is."""
    if max(own) != j:
        return low, high
    room = most - sum((a * counts[:, i] for i, a in own.items() if i != j), np.zeros_like(low))
    return _cut_one(low, high, own[j], np.asarray(room))


def _cut_one(low: Tables, high: Tables, a: float, room: NDArray[Any]) -> tuple[Tables, Tables]:
    """The interval with a s <= room, slightly wider if these are not whole."""
    if room.dtype.kind == "f":
        limit = np.floor(room / abs(a) + 1e-6)
        steps = np.clip(limit, -(2.0**53), 2.0**53).astype(np.int64)
    else:
        steps = room // int(abs(a))
    return (low, np.minimum(high, steps)) if a > 0 else (np.maximum(low, -steps), high)


def _bound_rate(
    condition: RatesWithin | Gap, group: int, other: int, rate: _Floats
) -> tuple[_Floats, _Floats]:
    """Least and greatest rate of a group, given that of another."""
    tolerance = float(condition.tolerance)
    less = rate * (1 - tolerance) if condition.ratio else rate - tolerance
    more = rate / max(1 - tolerance, 1e-300) if condition.ratio else rate + tolerance
    if isinstance(condition, RatesWithin):
        return less, more
    if (condition.high, condition.low) == (group, other):
        return more, np.ones_like(rate)
    if (condition.high, condition.low) == (other, group):
        return np.zeros_like(rate), less
    return np.zeros_like(rate), np.ones_like(rate)


def _find_last(low: Tables, high: Tables, holds: Callable[[Tables], _Mask]) -> Tables:
    """Greatest count up to which something holds that holds up to some count; low - 1 if none."""
    least, most = low - 1, np.maximum(high, low - 1)
    while (least < most).any():
        middle = (least + most + 1) // 2
        ok = holds(middle)
        least, most = np.where(ok, middle, least), np.where(ok, most, middle - 1)
    return least


def _find_first(low: Tables, high: Tables, holds: Callable[[Tables], _Mask]) -> Tables:
    """Least count from which something holds that holds from some count; high + 1 if none."""
    return -_find_last(-high, -low, lambda count: holds(-count))


class _Walk:
    """Means of a normal distribution's numbers, each given those drawn before."""

    def __init__(self, law: _Normal, count: int) -> None:
        self._law, self._scores = law, np.zeros((count, len(law.mean)))
        self._mean: _Floats = np.zeros(count)

    def next(self, t: int) -> tuple[_Floats, float]:
        """Mean (N,) and standard deviation of number t."""
        law = self._law
        self._mean = law.mean[t] + self._scores[:, :t] @ law.root[t, :t]
        return self._mean, float(law.root[t, t])

    def add(self, t: int, values: _Floats) -> None:
        """Number t is drawn."""
        if self._law.root[t, t] > 1e-3:
            self._scores[:, t] = (values - self._mean) / self._law.root[t, t]


@dataclass(frozen=True)
class _Binomial:
    """Shifted binomial laws of one shape, by their means."""

    people: float
    share: float
    sure: bool
    """Whether the count is certain."""

    @classmethod
    def of(cls, variance: float, skew: float) -> _Binomial:
        if variance < 1e-9:
            return cls(0.0, 0.5, True)
        least = max(1e-6, variance * 1e-9)
        share = min(max((1 - skew) / 2, least), 1 - least)
        return cls(variance / (share * (1 - share)), share, False)

    def log_law(self, counts: Tables | _Floats, mean: _Floats) -> _Floats:
        """Log-probabilities."""
        from scipy.special import gammaln

        if self.sure:
            return np.where(np.abs(counts - mean) < 0.75, 0.0, -np.inf)
        ones = counts - (mean - self.people * self.share)
        zeros = self.people - ones
        possible = (ones > -1) & (zeros > -1)
        ones, zeros = np.where(possible, ones, 0.0), np.where(possible, zeros, 0.0)
        logs = gammaln(self.people + 1) - gammaln(ones + 1) - gammaln(zeros + 1)
        logs += ones * math.log(self.share) + zeros * math.log1p(-self.share)
        return np.where(possible, logs, -np.inf)


def _draw_count(
    points: _Floats, centre: _Floats, deviation: float, low: Tables, high: Tables, unit: int
) -> tuple[Tables, _Floats]:
    """Multiples of a unit from a truncated normal distribution, and their log-probabilities."""
    unit = max(unit, 1)
    first, last = -(-low // unit), high // unit
    empty = first > last
    last = np.maximum(first, last)
    centre, deviation = centre / unit, deviation / unit
    start, end = (first - 0.5 - centre) / deviation, (last + 0.5 - centre) / deviation
    scores, _ = _draw_between(points, start, end)
    count = np.clip(np.rint(centre + deviation * scores), first, last).astype(np.int64)
    own = _log_between((count - 0.5 - centre) / deviation, (count + 0.5 - centre) / deviation)
    every = _log_between(start, end)
    # Where all of an interval is too far away to have a probability, its nearest end is drawn.
    known = np.isfinite(own) & np.isfinite(every)
    log_share = np.subtract(own, every, where=known, out=np.zeros(len(own)))
    log_share[empty] = np.inf
    return count * unit, log_share


def _draw_real(
    points: _Floats, centre: _Floats, deviation: float, low: float, high: float
) -> tuple[_Floats, _Floats]:
    """Numbers from a truncated normal distribution, and their log-densities."""
    start, end = (low - centre) / deviation, (high - centre) / deviation
    scores, log_inside = _draw_between(points, start, end)
    value = np.clip(centre + deviation * scores, low, high)
    log_share = -0.5 * ((value - centre) / deviation) ** 2 - math.log(deviation) - log_inside
    return value, log_share


def _draw_between(points: _Floats, start: _Floats, end: _Floats) -> tuple[_Floats, _Floats]:
    """Normal scores between two, by inversion in the nearer tail; and the log-probability."""
    from scipy.special import ndtr, ndtri

    mirrored = start > 0
    least, most = np.where(mirrored, -end, start), np.where(mirrored, -start, end)
    below, above = ndtr(least), ndtr(most)
    place = np.where(mirrored, 1 - points, points)
    scores = np.clip(ndtri(below + place * (above - below)), least, most)
    scores = np.where(above > below, scores, most)
    with np.errstate(divide="ignore"):
        log_inside = np.log(above - below)
    return np.where(mirrored, -scores, scores), log_inside


def _log_between(start: _Floats, end: _Floats) -> _Floats:
    from scipy.special import ndtr

    mirrored = start > 0
    least, most = np.where(mirrored, -end, start), np.where(mirrored, -start, end)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(ndtr(most) - ndtr(least)))


def _fit(values: _Floats, logs: _Floats, law: _Normal) -> _Normal:
    """A normal distribution fitted to weighted tables; weights are flattened while few dominate."""
    live = logs > -np.inf
    dimensions = values.shape[1]
    if live.sum() < 2:
        return law
    values, logs = values[live], logs[live] - logs[live].max()
    wanted = min(0.5 * len(logs), max(0.1 * len(logs), 10.0 * dimensions))
    power = 1.0
    while power > 1e-4:
        weights = np.exp(power * logs)
        if weights.sum() ** 2 / (weights**2).sum() >= wanted:
            break
        power *= 0.7
    weights /= weights.sum()
    mean = weights @ values
    rest = values - mean
    covariance = _WIDER * (rest * weights[:, None]).T @ rest
    kept = law.root @ law.root.T
    many = len(logs) / (len(logs) + 4.0 * dimensions)
    covariance = many * covariance + (1 - many) * kept
    return _Normal.of(mean, covariance)


def _spread_points(count: int, dimensions: int, rng: np.random.Generator) -> _Floats:
    """Points (count, d) that fill the unit cube evenly, from a random start (Richtmyer 1951)."""
    primes: list[int] = []
    number = 2
    while len(primes) < dimensions:
        if all(number % prime for prime in primes):
            primes.append(number)
        number += 1
    steps = np.sqrt(np.array(primes, dtype=np.float64)) % 1.0
    points = (np.arange(count)[:, None] * steps + rng.random(dimensions)) % 1.0
    return np.asarray(np.clip(points, 1e-12, 1 - 1e-12))
