"""The exact correction for two groups, and the choice of an exponent for its weights.

Departs from Ferry et al. (SaTML 2023), who count four kinds of move and leave the search to a
constraint solver. In one prediction class, moving one person from group 0 to 1 and another back
changes no rate and costs more than moving neither, so only the *net* moves count: `dx` among the
positively predicted, `dy` among the others. Given `dx`, every form of rate constraint leaves `dy`
an interval, and the best `dy` is the one nearest to 0. What remains is a scan over `dx`.

Which `dx` may be best does not depend on the weights (the *frontier*); only the cheapest people of
at most two cells are ever sorted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fpbench.rates import RateConstraint
from fpbench.records import Codes, Correction, Problem, SolverStatus

_Mask = NDArray[np.bool_]
_Weights = NDArray[np.float64]
_Counts = NDArray[np.int64]
_Column = Callable[[_Counts], tuple[_Counts, _Mask, _Counts]]

_BLOCK = 64
"""Candidates between two exact evaluations of the cost; bounds decide about those between."""

_WINDOW = 16_384
"""Numbers of moves looked at at once: enough to be fast, few enough to stay in the cache."""


class Quadrant(NamedTuple):
    """Candidates that move people the same way; each needs fewer moves in y than the one before.

    In order of `a`, which increases strictly, while `d` decreases strictly.
    """

    up_x: bool
    """Whether positively predicted people move from group 0 to group 1."""
    up_y: bool
    """The same of the others."""
    a: _Counts
    """How many positively predicted people move."""
    d: _Counts
    """How many of the others move."""

    @property
    def cells(self) -> tuple[tuple[bool, bool, int], tuple[bool, bool, int]]:
        """Whom it moves: their prediction, whether to group 1, and how many at most."""
        return (True, self.up_x, int(self.a[-1])), (False, self.up_y, int(self.d[0]))


@dataclass(frozen=True)
class Slice:
    """The people that a constraint looks at, by guess and prediction."""

    guess: Codes
    predictions: Codes
    part: _Mask | None

    @property
    def size(self) -> int:
        """How many they are."""
        return len(self.guess) if self.part is None else int(np.count_nonzero(self.part))

    @cached_property
    def ones(self) -> int:
        """How many of them are guessed to be of group 1."""
        ones = np.equal(self.guess, 1)
        if self.part is not None:
            ones &= self.part
        return int(np.count_nonzero(ones))

    def cell(self, prediction: bool, up: bool) -> _Mask:
        """Mask (n,) of whom to move: those predicted so whose guess is 0 (up) or 1 (down)."""
        mask = np.equal(self.guess, 0 if up else 1)
        mask &= np.equal(self.predictions, 1 if prediction else 0)
        if self.part is not None:
            mask &= self.part
        return mask

    def frontier(self, constraint: RateConstraint, least: tuple[int, int]) -> list[Quadrant]:
        """All candidates for the best correction; empty if the constraint cannot hold."""
        positive = np.equal(self.predictions, 1)
        if self.part is not None:
            positive &= self.part
        positives = int(np.count_nonzero(positive))
        x = int(np.count_nonzero(np.logical_and(positive, np.equal(self.guess, 1), out=positive)))
        return frontier(constraint, x, self.ones - x, positives, self.size, least)


def frontier(
    constraint: RateConstraint, x0: int, y0: int, positives: int, n: int, least: tuple[int, int]
) -> list[Quadrant]:
    """Moves that may be best, whatever the weights.

    Parameters
    ----------
    constraint
        What must hold.
    x0, y0
        People guessed to be of group 1: positively predicted, and others.
    positives, n
        Positively predicted people, and people, in the slice.
    least
        Least members of group 0 and of group 1.
    """

    def column(x: _Counts) -> tuple[_Counts, _Mask, _Counts]:
        """For each x: the least move in y, whether any is possible, and how far y0 is outside."""
        low, high = constraint.two_group_members(x, positives, n)
        low = np.maximum(np.maximum(low, least[1]) - x, 0)
        high = np.minimum(np.minimum(high, n - least[0]) - x, n - positives)
        outside = np.maximum(np.maximum(low - y0, y0 - high), 0)
        return np.clip(y0, low, high) - y0, low <= high, outside

    sides = [(True, *_side(column, x0, positives)), (False, *_side(column, x0, 0))]
    quadrants = []
    for up_y in (True, False):
        same_y = []
        for up_x, a, dy in sides:
            chosen = _fewer_and_fewer(dy if up_y else -dy, least=0 if up_y else 1)
            if chosen.any():
                same_y.append(Quadrant(up_x, up_y, a[chosen], np.abs(dy[chosen])))
        # Moving nobody in x belongs to both sides: a side with nothing else adds nothing.
        quadrants += [quadrant for quadrant in same_y if quadrant.a[-1] > 0] or same_y[:1]
    return quadrants


def _side(column: _Column, start: int, end: int) -> tuple[_Counts, _Counts]:
    """Candidates on one side of the guess: numbers of moves in x, and signed moves in y.

    How far y0 lies outside the interval is the ceiling of a convex function of x: it falls, then
    rises, with moves in y of one sign before and of one sign after. So the search ends at the
    first x that needs no move in y, or else once it has met a possible x after the fall.
    """
    step = 1 if end >= start else -1
    found_a, found_dy = [], []
    least_outside: int | None = None
    for first in range(0, abs(end - start) + 1, _WINDOW):
        a = np.arange(first, min(first + _WINDOW, abs(end - start) + 1))
        dy, possible, outside = column(start + step * a)
        none_needed = np.flatnonzero(possible & (dy == 0))
        if len(none_needed):
            possible[none_needed[0] + 1 :] = False
        found_a.append(a[possible])
        found_dy.append(dy[possible])
        fallen = np.minimum.accumulate(outside)
        if least_outside is not None:
            fallen = np.minimum(fallen, least_outside)
        if len(none_needed) or possible[outside > fallen].any():
            break
        least_outside = int(fallen[-1])
    return np.concatenate(found_a), np.concatenate(found_dy)


def _fewer_and_fewer(dy: _Counts, least: int) -> _Mask:
    """Mask of the moves of at least `least` that are fewer than all such before them.

    Moving farther in x is worth it only if it saves moves in y of the same kind.
    """
    distance = np.where(dy >= least, dy, np.iinfo(np.int64).max)
    before = np.concatenate([[np.iinfo(np.int64).max], np.minimum.accumulate(distance)[:-1]])
    return distance < before


def cheapest(weights: _Weights | None, cell: _Mask, count: int) -> _Weights:
    """The `count` least weights in a cell, ascending."""
    if count == 0 or weights is None:
        return np.ones(count)
    chosen: _Weights = np.compress(cell, weights)
    if count < len(chosen):
        chosen.partition(count - 1)
    prefix = chosen[:count].copy()
    prefix.sort()
    return prefix


def choose(weights: _Weights | None, cell: _Mask, prefix: _Weights) -> NDArray[np.intp]:
    """Rows of the cheapest `len(prefix)` people of a cell; among equals, the first."""
    count = len(prefix)
    if count == 0:
        return np.empty(0, dtype=np.intp)
    if weights is None:
        return np.flatnonzero(cell)[:count]
    rows = np.flatnonzero(cell & (weights <= prefix[-1]))
    if len(rows) == count:
        return rows
    equal = weights[rows] == prefix[-1]
    keep = ~equal
    keep[np.flatnonzero(equal)[: count - np.count_nonzero(keep)]] = True
    chosen: NDArray[np.intp] = rows[keep]
    return chosen


class Scan:
    """Costs of the candidates of one quadrant, for any weights of the same order."""

    def __init__(self, quadrant: Quadrant) -> None:
        self.a, self.d = quadrant.a, quadrant.d
        self._grid = np.append(np.arange(0, len(self.a) - 1, _BLOCK), len(self.a) - 1)
        self._last = len(self.a) - 1

    def best(self, x_prefix: _Weights, y_prefix: _Weights) -> tuple[int, float]:
        """Index of the cheapest candidate (the first of equals), and its cost.

        Parameters
        ----------
        x_prefix, y_prefix
            Ascending weights of the cheapest people, as many as the farthest candidate moves or
            more.
        """
        if self._last < 2 * _BLOCK:
            first, stop = 0, self._last
        else:
            first, stop = self._bracket(x_prefix, y_prefix)
        # Within the bracket everyone pays the same for what lies before it.
        a, d = self.a[first : stop + 1], self.d[first : stop + 1]
        x_cost = _running(x_prefix[a[0] : a[-1]])[a - a[0]]
        y_cost = _running(y_prefix[d[-1] : d[0]])[d - d[-1]]
        index = first + int(np.argmin(x_cost + y_cost))
        cost = x_prefix[: self.a[index]].sum() + y_prefix[: self.d[index]].sum()
        return index, float(cost)

    def _bracket(self, x_prefix: _Weights, y_prefix: _Weights) -> tuple[int, int]:
        """First and last candidate that may be cheapest.

        Between two grid points x costs at least what it costs at the first, y what at the second.
        """
        a, d = self.a[self._grid], self.d[self._grid]
        x_cost = _sums(x_prefix, a)
        y_cost = _sums(y_prefix, d[::-1])[::-1]
        least = x_cost[:-1] + y_cost[1:]
        slack = 1e-12 * (x_cost[-1] + y_cost[0])
        blocks = np.flatnonzero(least <= (x_cost + y_cost).min() + slack)
        return int(self._grid[blocks[0]]), int(self._grid[blocks[-1] + 1])


def _running(values: _Weights) -> _Weights:
    return np.concatenate([[0.0], np.cumsum(values)])


def _sums(values: _Weights, ends: _Counts) -> _Weights:
    """Sum of values[:end] for ascending ends; several times faster than a running sum of all."""
    if ends[-1] == 0:
        return np.zeros(len(ends))
    starts = np.concatenate([[0], ends[:-1]])
    pieces = np.add.reduceat(values, starts)
    # reduceat gives an element, not 0, for an empty piece, and runs on past the last end.
    pieces[starts == ends] = 0.0
    pieces[-1] = values[starts[-1] : ends[-1]].sum()
    return np.cumsum(pieces)


@dataclass(frozen=True)
class _Moves:
    """The best moves in one slice."""

    cost: float
    up: tuple[bool, bool]
    """Whether the others, and the positively predicted, move from group 0 to group 1."""
    rows: tuple[NDArray[np.intp], NDArray[np.intp]]
    """Who moves: of the others, and of the positively predicted."""

    @property
    def gained(self) -> int:
        """Net members that group 1 gains."""
        return sum(
            len(rows) if up else -len(rows) for up, rows in zip(self.up, self.rows, strict=True)
        )


def solve_two_groups(problem: Problem) -> Correction:
    """Correct a guess about two groups, proven optimal.

    Parameters
    ----------
    problem
        Two groups; a claimed constraint of any metric and form.

    Returns
    -------
    Correction
        `optimal`, or `infeasible` if no vector satisfies the constraint with both groups in use.
        For a single slice both groups need a member in it; for equalized odds, in the union of
        both slices.
    """
    started = time.perf_counter()
    assert problem.constraint is not None and problem.groups == 2
    best = _solve(problem, problem.constraint)
    seconds = time.perf_counter() - started
    if best is None:
        return Correction(None, SolverStatus.INFEASIBLE, seconds=seconds)
    values = problem.guess.copy()
    kinds = np.zeros((2, 2, 2), dtype=np.int64)
    for moves in best:
        for prediction, (up, rows) in enumerate(zip(moves.up, moves.rows, strict=True)):
            values[rows] = int(up)
            kinds[prediction, int(not up), int(up)] += len(rows)
    cost = sum(moves.cost for moves in best)
    seconds = time.perf_counter() - started
    return Correction(values, SolverStatus.OPTIMAL, cost, cost, kinds, seconds)


def _solve(problem: Problem, constraint: RateConstraint) -> list[_Moves] | None:
    """The best moves in every slice, or None."""
    slices = [
        Slice(problem.guess, problem.predictions, part)
        for part in constraint.slices(problem.labels)
    ]
    if len(slices) == 1:
        moves = _best_moves(slices[0], constraint, problem.weights, (1, 1))
        return None if moves is None else [moves]
    return _solve_union(slices, constraint, problem.weights)


def _solve_union(
    slices: list[Slice], constraint: RateConstraint, weights: _Weights | None
) -> list[_Moves] | None:
    """Disjoint slices: each on its own, but every group needs a member in one of them."""

    def solve(*leasts: tuple[int, int]) -> list[_Moves] | None:
        found = [
            _best_moves(s, constraint, weights, t) for s, t in zip(slices, leasts, strict=True)
        ]
        return None if None in found else [moves for moves in found if moves is not None]

    free = solve((0, 0), (0, 0))
    if free is None or all(_members(slices, free)):
        return free
    choices = [
        ((i == 0, j == 0), (i == 1, j == 1)) for i in (0, 1) for j in (0, 1)
    ]  # which slice must hold group 0, and which group 1
    tried = [solve(*((int(z), int(o)) for z, o in choice)) for choice in choices]
    solved = [found for found in tried if found is not None]
    return min(solved, key=lambda found: sum(m.cost for m in found)) if solved else None


def _members(slices: list[Slice], moves: list[_Moves]) -> tuple[int, int]:
    """Members of group 0 and group 1 in all slices after the moves."""
    size = sum(s.size for s in slices)
    ones = sum(s.ones + m.gained for s, m in zip(slices, moves, strict=True))
    return size - ones, ones


def _best_moves(
    people: Slice, constraint: RateConstraint, weights: _Weights | None, least: tuple[int, int]
) -> _Moves | None:
    quadrants = people.frontier(constraint, least)
    counts: dict[tuple[bool, bool], int] = {}
    for quadrant in quadrants:
        for prediction, up, count in quadrant.cells:
            counts[prediction, up] = max(count, counts.get((prediction, up), 0))
    # Quadrants share cells: each is sorted once.
    prefixes = {
        cell: cheapest(weights, people.cell(*cell), count) for cell, count in counts.items()
    }
    best: tuple[float, Quadrant, _Weights, _Weights] | None = None
    for quadrant in quadrants:
        x, y = prefixes[True, quadrant.up_x], prefixes[False, quadrant.up_y]
        index, cost = Scan(quadrant).best(x, y)
        if best is None or cost < best[0]:
            best = (cost, quadrant, x[: quadrant.a[index]], y[: quadrant.d[index]])
    if best is None:
        return None
    cost, quadrant, x, y = best
    others = choose(weights, people.cell(False, quadrant.up_y), y)
    positive = choose(weights, people.cell(True, quadrant.up_x), x)
    return _Moves(cost, (quadrant.up_y, quadrant.up_x), (others, positive))
