"""Exact beliefs given facts, component by component, whatever the laws of the published numbers.

People who share no set with others, directly or through more people, are independent of them. Where
the sets of a component are nested or disjoint, they make a tree: how many people of a set belong to
each group is the sum over its parts, weighed by how likely what is published of it is. Walked back
from the largest set, the same sums give everybody's beliefs. Where few people have different sets,
all tables of their counts are listed; so they are, if there are not too many, for numbers perturbed
by cell keys, where the same people have the same noise in all sets.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import reduce
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fpbench.claims.count_laws import CELL_KEY
from fpbench.claims.set_counts import Facts, Floats, Mask
from fpbench.correction.conditioning.count_tables import CountLaw
from fpbench.correction.poisson_binomial import CountedPeople

_FEW = 100
"""Most people whose counts are summed person by person; of more, in a tree of convolutions."""
_MOST_STEPS = 1 << 28
"""Most products that the counts of a component may take: about a second."""
_SLOWER = 16
"""Products that take as long as one of logarithms."""
_MOST_TABLES = 1 << 17
"""Most tables of counts that are listed."""
_MOST_CLASSES = 40
"""Most kinds of people, by their sets, whose tables of counts are listed."""
_TRIM = 200.0
"""Counts whose log-probability is this far below the likeliest one's are left out;"""
_EDGE = 30.0
"""but not if, given everything, one next to them comes nearer to the likeliest than this."""
_STEEP = 600.0
"""Greatest range of logarithms whose exponentials are added up as they are."""


class _TooLong(Exception):  # noqa: N818, it never leaves this module
    """The counts of a component take too long, or cannot be computed."""


def condition_exactly(
    facts: Facts, prior: Floats, allowed: Mask, deadline: float
) -> tuple[Floats, Mask]:
    """(n, K) beliefs given facts, and whether they are exact; of others they are the prior ones.

    `prior`: (n, K) beliefs, positive in the groups that are `allowed` (n, K). People with one are
    decided. `deadline`: by `time.perf_counter`; components that are not reached by then are not
    exact.
    """
    decided = allowed.sum(axis=1) == 1
    posterior, exact = np.where(allowed, prior, 0.0), decided.copy()
    posterior /= posterior.sum(axis=1, keepdims=True)
    known = allowed & decided[:, None]
    gone = facts.count(known), facts.count(known * facts.draw_numbers()[:, :1])
    with np.errstate(divide="ignore"):
        logs = np.log(posterior)
    for part in _split(facts, np.flatnonzero(~decided), exact):
        if time.perf_counter() > deadline:
            break
        for way in (_Counts.list_tables, _Counts.walk_tree):
            with suppress(_TooLong):
                posterior[part.people] = way(_Counts(facts, logs, *gone), part)
                exact[part.people] = True
                break
    return posterior, exact


class _Component(NamedTuple):
    """People and sets that are linked to each other and to no others."""

    people: NDArray[np.intp]
    """Rows, in the order of their classes."""
    classes: NDArray[np.intp]
    """(people,) which people have the same sets."""
    sets: NDArray[np.intp]
    """Numbers, the largest first."""
    parents: NDArray[np.intp]
    """(sets,) place of the smallest set that includes each; -1 for none. Of trees only."""
    crossed: bool
    """Whether the sets are no tree."""
    last: NDArray[np.intp]
    """(classes,) place of the smallest set of each class."""
    members: Mask | None
    """(classes, sets); None if tables are not to be listed."""


def _split(facts: Facts, people: NDArray[np.intp], alone: Mask) -> Iterator[_Component]:
    """The components that may be exact; marks in `alone` (n,) the people who are in no set."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    sets = facts.sets[:, people].tocsr()
    sizes = np.diff(sets.indptr)
    order = np.argsort(-sizes, kind="stable")
    order = order[sizes[order] > 0]
    ranked = sets[order].tocsc()  # each person's sets, the largest first
    ranked.sort_indices()
    r, m = len(people), len(order)
    degree = np.diff(ranked.indptr)
    alone[people[degree == 0]] = True
    person = np.repeat(np.arange(r), degree)
    rank = ranked.indices.astype(np.intp)
    before = np.append(-1, rank[:-1])
    before[ranked.indptr[:-1][degree > 0]] = -1
    # A family is nested if all members of a set have the same set before it.
    least, most = np.full(m, m), np.full(m, -1)
    np.minimum.at(least, rank, before)
    np.maximum.at(most, rank, before)
    ranks = np.full(len(facts), -1)
    ranks[order] = np.arange(m)
    told = ranks[facts.clauses.sets]
    linked, told = facts.clauses.clause[facts.clauses.row][told >= 0], told[told >= 0]
    edges = np.concatenate([person, r + m + linked]), r + np.concatenate([rank, told])
    nodes = r + m + len(facts.clauses)
    graph = coo_array((np.ones(len(edges[0]), np.int8), edges), (nodes, nodes))
    component = connected_components(graph, directed=False)[1]
    crossed = {*component[r + np.append(np.flatnonzero(least != most), told)].tolist()}
    # People of the same sets have the same random sum.
    draws = np.random.default_rng(20260105).integers(1 << 62, size=m)
    kind = np.zeros(r, np.int64)
    np.add.at(kind, person, draws[rank])
    by_component = np.lexsort((kind, component[:r]))
    of_sets = component[r : r + m]
    sets_of = np.argsort(of_sets, kind="stable")
    starts = np.flatnonzero(np.diff(component[:r][by_component], prepend=-1))
    for rows in np.split(by_component, starts[1:]) if r else ():
        label = component[rows[0]]
        if degree[rows[0]] == 0:
            continue
        own = sets_of[slice(*np.searchsorted(of_sets[sets_of], (label, label + 1)))]
        first, classes = np.unique(kind[rows], return_index=True, return_inverse=True)[1:]
        ends = ranked.indptr[rows[first] + 1]
        members = None
        listed = int(label) in crossed or (facts.laws.kind[order[own]] >= CELL_KEY).any()
        if listed and len(first) <= _MOST_CLASSES:
            members = np.zeros((len(first), len(own)), np.bool_)
            for place, (row, end) in enumerate(zip(rows[first], ends, strict=True)):
                members[place, np.searchsorted(own, rank[ranked.indptr[row] : end])] = True
        parents = np.where(most[own] >= 0, np.searchsorted(own, most[own]), -1)
        last = np.searchsorted(own, rank[ends - 1])
        yield _Component(
            people[rows], classes, order[own], parents, int(label) in crossed, last, members
        )


class _Law(Protocol):
    """How many of some people belong to each group: `CountLaw` or `CountedPeople`."""

    box: Floats

    def walk_back(self, log_weights: Floats) -> Floats: ...


class _Sum(NamedTuple):
    """Log-probabilities of the counts of all groups but the last, in a box."""

    first: NDArray[np.intp]
    """(K - 1,) the counts of its first corner."""
    box: Floats
    cut: Sequence[Mask] = ()
    """Per axis (2,) whether improbable counts before and after the box were left out."""

    def trim(self) -> _Sum:
        """The smallest box around counts that are not too improbable."""
        top = self.box.max()
        if not np.isfinite(top):
            raise _TooLong  # the facts contradict each other, or the prior
        ends, possible = (
            np.array([(axis.min(), axis.max()) for axis in np.nonzero(self.box >= least)])
            for least in (top - _TRIM, np.finfo(float).min)
        )
        inside = tuple(slice(low, high + 1) for low, high in ends)
        return _Sum(self.first + ends[:, 0], self.box[inside], ends != possible)

    def check(self, outside: Floats) -> None:
        """Raise _TooLong if, with what is known outside, counts that were left out may matter."""
        logs = self.box + outside
        top = logs.max()
        if not np.isfinite(top):
            raise _TooLong
        for axis, (before, after) in enumerate(self.cut):
            ends = np.take(logs, np.array([0, -1])[[before, after]], axis=axis)
            if ends.max(initial=-np.inf) > top - _EDGE:
                raise _TooLong


class _Counts:
    """Sums over the people of a component.

    `gone`, `who`: (M, K) number of each set's decided people of each group, and sum of their draws.
    """

    def __init__(
        self, facts: Facts, logs: Floats, gone: NDArray[np.integer], who: NDArray[np.integer]
    ) -> None:
        self.facts, self.logs, self.gone, self.who = facts, logs, gone, who
        self.left = _MOST_STEPS

    def _spend(self, steps: float) -> None:
        self.left -= int(min(steps, _MOST_STEPS + 1))
        if self.left < 0:
            raise _TooLong

    def _count(self, people: NDArray[np.intp]) -> _Law:
        """The law of some people."""
        n, k = len(people), self.logs.shape[1]
        if k == 2 and n > _FEW:
            self._spend(100 * n)
            return CountedPeople(self.logs[people, 0] - self.logs[people, 1])
        self._spend(n * (n + 1.0) ** (k - 1))
        return CountLaw(self.logs[people])

    def _weigh(self, number: int, first: NDArray[np.intp], shape: tuple[int, ...]) -> Floats:
        """Log-likelihoods of what is published of a set, in a box."""
        others = np.indices(shape).reshape(len(shape), -1).T + first
        gone = self.gone[number]
        rest = self.facts.sizes[number] - gone.sum() - others.sum(axis=1, keepdims=True)
        counts = np.hstack([others, rest]) + gone
        possible = rest[:, 0] >= 0
        logs = np.full(len(counts), -np.inf)
        logs[possible] = self.facts.weigh(number, counts[possible])
        return logs.reshape(shape)

    def walk_tree(self, part: _Component) -> Floats:
        """(people, K) beliefs in a component whose sets are nested."""
        if part.crossed:
            raise _TooLong
        k, m = self.logs.shape[1], len(part.sets)
        people = [np.flatnonzero(part.classes == c) for c in range(len(part.last))]
        laws = [self._count(part.people[rows]) for rows in people]
        # Parts of each set: classes, numbered -1, -2, ..., and smaller sets.
        items: list[list[tuple[int, _Sum]]] = [[] for _ in range(m)]
        for c, own in enumerate(part.last):
            items[own].append((-1 - c, _Sum(np.zeros(k - 1, np.intp), laws[c].box)))
        sums: list[list[Floats]] = [[] for _ in range(m)]
        likelihoods: list[Floats] = [np.empty(0)] * m
        total = [_Sum(np.zeros(0, np.intp), np.empty(0))] * m
        for own in range(m - 1, -1, -1):
            parts = [item for _, item in items[own]]
            sums[own] = [parts[0].box]
            for item in parts[1:]:
                sums[own].append(self._add(sums[own][-1], item.box))
            first = np.sum([item.first for item in parts], axis=0)
            box = sums[own][-1]
            likelihoods[own] = self._weigh(int(part.sets[own]), first, box.shape)
            total[own] = _Sum(first, box + likelihoods[own]).trim()
            if part.parents[own] >= 0:
                items[part.parents[own]].append((own, total[own]))
        roots = np.flatnonzero(part.parents < 0)
        outside: dict[int, Floats] = {int(own): np.zeros(total[own].box.shape) for own in roots}
        posterior = np.empty((len(part.people), k))
        for own in range(m):
            law = total[own]
            law.check(outside[own])
            after = np.full(sums[own][-1].shape, -np.inf)
            low = law.first - np.sum([item.first for _, item in items[own]], axis=0)
            cut = tuple(slice(a, a + s) for a, s in zip(low, law.box.shape, strict=True))
            after[cut] = outside[own] + likelihoods[own][cut]
            for place in range(len(items[own]) - 1, -1, -1):
                which, item = items[own][place]
                heard = after if place == 0 else self._subtract(after, sums[own][place - 1])
                if place:
                    after = self._subtract(after, item.box)
                if which >= 0:
                    outside[which] = heard
                else:
                    posterior[people[-1 - which]] = laws[-1 - which].walk_back(heard)
        return posterior

    def _is_flat(self, one: Floats, other: Floats) -> bool:
        """Whether exponentials of both may be multiplied; spends the steps."""
        flat = sum(_measure_range(logs) for logs in (one, other)) < _STEEP
        self._spend(float(len(one)) * len(other) * (1 if flat else _SLOWER))
        return bool(flat)

    def _add(self, one: Floats, other: Floats) -> Floats:
        """Log-probabilities of sums: a convolution."""
        shape = tuple(np.add(one.shape, other.shape) - 1)
        a, b = _flatten(one, shape), _flatten(other, shape)
        if self._is_flat(a, b):
            with np.errstate(divide="ignore"):
                both = np.log(np.convolve(np.exp(a - a.max()), np.exp(b - b.max())))
            both += a.max() + b.max()
        else:
            both = np.full(len(a) + len(b) - 1, -np.inf)
            for shift in np.flatnonzero(b > -np.inf):
                part = both[shift : shift + len(a)]
                np.logaddexp(part, a + b[shift], out=part)
        return _to_box(both, shape)

    def _subtract(self, after: Floats, other: Floats) -> Floats:
        """Log-likelihoods of one part, from those of the sum: a correlation."""
        c, b = _flatten(after, after.shape), _flatten(other, after.shape)
        c = np.append(c, np.full(int(np.prod(after.shape)) - len(c), -np.inf))
        if self._is_flat(c, b):
            with np.errstate(divide="ignore"):
                one = np.log(np.correlate(np.exp(c - c.max()), np.exp(b - b.max())))
            one += c.max() + b.max()
        else:
            one = np.full(len(c) - len(b) + 1, -np.inf)
            for shift in np.flatnonzero(b > -np.inf):
                np.logaddexp(one, c[shift : shift + len(one)] + b[shift], out=one)
        shape = tuple(np.subtract(after.shape, other.shape) + 1)
        whole = np.append(one, np.full(int(np.prod(after.shape)) - len(one), -np.inf))
        return whole.reshape(after.shape)[tuple(map(slice, shape))]

    def list_tables(self, part: _Component) -> Floats:
        """(people, K) beliefs in a component of few kinds of people: all tables are listed."""
        if part.members is None:
            raise _TooLong
        laws = []
        for c in range(len(part.members)):
            own = part.people[part.classes == c]
            if len(own) > _FEW:
                raise _TooLong
            self._spend(len(own) * (len(own) + 1.0) ** (self.logs.shape[1] - 1))
            laws.append(CountLaw(self.logs[own]))
        sizes = np.array([law.counts[0].sum() for law in laws])
        rows = np.zeros((1, 0), np.int32)
        for c, law in enumerate(laws):
            count = len(law.counts)
            if len(rows) * count > _MOST_TABLES:
                raise _TooLong
            self._spend(len(rows) * count * part.members[c].sum())
            rows = np.column_stack([
                np.repeat(rows, count, axis=0), np.tile(np.arange(count, dtype=np.int32), len(rows))
            ])  # fmt: skip
            for own in np.flatnonzero(part.members[c]):
                number = int(part.sets[own])
                low, high = self.facts.low[number], self.facts.high[number]
                told = (low > 0).any() or (high < self.facts.sizes[number]).any()
                if self.facts.noisy[number] or not told:
                    continue
                inside = np.flatnonzero(part.members[: c + 1, own])
                counted = self._add_up(laws, rows, inside, number)
                open_ = sizes[c + 1 :][part.members[c + 1 :, own]].sum()
                kept = ((counted <= high) & (counted + open_ >= low)).all(axis=1)
                rows = rows[kept]
        if not len(rows):
            raise _TooLong  # the facts contradict each other, or the prior
        logs = np.sum([law.log_probabilities[rows[:, c]] for c, law in enumerate(laws)], axis=0)
        logs = logs + self._weigh_sets(part, laws, rows)
        if not np.isfinite(logs.max()):
            raise _TooLong
        mass = np.exp(logs - logs.max())
        posterior = np.empty((len(part.people), self.logs.shape[1]))
        for c, law in enumerate(laws):
            with np.errstate(divide="ignore"):
                own_logs = np.log(np.bincount(rows[:, c], mass, minlength=len(law.counts)))
            posterior[part.classes == c] = law.posterior(own_logs - law.log_probabilities)
        return posterior

    def _weigh_sets(
        self, part: _Component, laws: list[CountLaw], rows: NDArray[np.int32]
    ) -> Floats:
        """Log-likelihoods (T,) of what is published of the sets, if tables of counts are `rows`."""
        assert part.members is not None
        inside = dict(zip(part.sets.tolist(), part.members.T, strict=True))
        draws = np.random.default_rng(20260106).integers(1 << 48, size=len(laws))

        def count(number: int) -> NDArray[np.integer]:
            if number not in inside:
                return self.gone[[number]]
            return self._add_up(laws, rows, np.flatnonzero(inside[number]), number)

        def identify(number: int) -> NDArray[np.integer]:
            own = np.flatnonzero(inside.get(number, ()))
            there = (draws[c] * (laws[c].counts > 0)[rows[:, c]] for c in own)
            return np.asarray(reduce(np.add, there, self.who[[number]]))

        # Somebody's noise is known from sets of decided people, too.
        keyed = self.facts.laws.kind >= CELL_KEY
        decided = keyed & (self.facts.sizes == self.gone.sum(axis=1))
        decided &= (np.isin(self.who, self.who[part.sets]) & (self.who > 0)).any(axis=1)
        numbers = [*np.flatnonzero(decided).tolist(), *inside]
        logs = self.facts.weigh_sets(numbers, count, identify)
        own = self.facts.clauses
        of = own.clause[own.row]
        outside = np.zeros(len(laws), np.bool_)
        for clause in np.unique(of[np.isin(own.sets, part.sets)]):
            holds = np.zeros(len(rows), np.bool_)
            for row in np.flatnonzero(own.clause == clause):
                terms = np.flatnonzero(own.row == row)
                sets, group, factors = own.sets[terms], own.group[terms], own.factors[terms]
                total = np.full(len(rows), factors @ self.gone[sets, group])
                there = np.array([inside.get(number, outside) for number in sets.tolist()])
                for c in np.flatnonzero(there.any(axis=0)) if len(terms) else ():
                    self._spend(len(rows))
                    total += (laws[c].counts[:, group] @ (factors * there[:, c]))[rows[:, c]]
                holds |= total <= own.most[row]
            logs = np.where(holds, logs, -np.inf)
        return logs

    def _add_up(
        self, laws: list[CountLaw], rows: NDArray[np.int32], inside: NDArray[np.intp], number: int
    ) -> NDArray[np.int64]:
        """(T, K) counts of a set in each table."""
        parts = (laws[c].counts[rows[:, c]] for c in inside)
        return np.asarray(reduce(np.add, parts) + self.gone[number])


def _flatten(box: Floats, shape: tuple[int, ...]) -> Floats:
    """A box as the beginning of a larger one, row by row, up to its last number."""
    padded = np.full(shape, -np.inf)
    padded[tuple(map(slice, box.shape))] = box
    last = np.ravel_multi_index(tuple(side - 1 for side in box.shape), shape)
    return padded.ravel()[: last + 1]


def _to_box(flat: Floats, shape: tuple[int, ...]) -> Floats:
    """The box of a shape whose numbers these are, row by row."""
    return flat[: int(np.prod(shape))].reshape(shape)


def _measure_range(logs: Floats) -> float:
    """Greatest difference of finite logarithms; infinite if none is."""
    finite = logs[logs > -np.inf]
    return float(np.ptp(finite)) if finite.size else np.inf
