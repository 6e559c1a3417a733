"""The exact correction for two groups.

Departs from Ferry et al. (SaTML 2023), who count four kinds of move and leave the search to a
constraint solver. In one prediction class, moving one person from group 0 to 1 and another back
changes no rate and costs more than moving neither, so only the *net* moves count: `dx` among the
positively predicted, `dy` among the others. Given `dx`, every form of rate constraint restricts
`dy` to an interval, and the best `dy` is the one nearest to 0. So a scan over `dx` is enough.

Which `dx` may be best does not depend on the weights (module `two_group_moves`); only the
cheapest people of a few cells are ever sorted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from fpbench.components.records import Correction, SolverStatus
from fpbench.correction.exact.counting import CountedProblem
from fpbench.correction.exact.two_group_moves import Quadrant, Slice
from fpbench.correction.exact.two_group_regions import Region, RegionSet

_Mask = NDArray[np.bool_]
_Weights = NDArray[np.float64]
_Counts = NDArray[np.int64]

_BLOCK = 64
"""Candidates between two exact evaluations of the cost; bounds exclude those between."""


def take_smallest_weights(weights: _Weights | None, cell: _Mask, count: int) -> _Weights:
    """The `count` least weights in a cell, ascending."""
    if count == 0 or weights is None:
        return np.ones(count)
    inside: _Weights = np.compress(cell, weights)
    if count < len(inside):
        inside.partition(count - 1)
    prefix = inside[:count].copy()
    prefix.sort()
    return prefix


def choose_people(weights: _Weights | None, cell: _Mask, prefix: _Weights) -> NDArray[np.intp]:
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
    return np.asarray(rows[keep])


class Scan:
    """Costs of the candidates of one quadrant, for any weights of the same order."""

    def __init__(self, quadrant: Quadrant) -> None:
        self.a, self.d = quadrant.a, quadrant.d
        self._grid = np.append(np.arange(0, len(self.a) - 1, _BLOCK), len(self.a) - 1)
        self._last = len(self.a) - 1

    def best(self, x_prefix: _Weights, y_prefix: _Weights) -> tuple[int, float]:
        """Index of the cheapest candidate (the first of equals), and its cost.

        `x_prefix`, `y_prefix`: ascending weights of the cheapest people, as many as the farthest
        candidate moves or more.
        """
        if self._last < 2 * _BLOCK:
            first, stop = 0, self._last
        else:
            first, stop = self._bracket(x_prefix, y_prefix)
        # The cost of everything before the bracket is the same for all candidates in it.
        a, d = self.a[first : stop + 1], self.d[first : stop + 1]
        x_cost = _accumulate(x_prefix[a[0] : a[-1]])[a - a[0]]
        y_cost = _accumulate(y_prefix[d[-1] : d[0]])[d - d[-1]]
        index = first + int(np.argmin(x_cost + y_cost))
        cost = x_prefix[: self.a[index]].sum() + y_prefix[: self.d[index]].sum()
        return index, float(cost)

    def _bracket(self, x_prefix: _Weights, y_prefix: _Weights) -> tuple[int, int]:
        """First and last candidate that may be cheapest.

        Between two grid points x costs at least what it costs at the first, y what at the second.
        """
        a, d = self.a[self._grid], self.d[self._grid]
        x_cost = _sum_prefixes(x_prefix, a)
        y_cost = _sum_prefixes(y_prefix, d[::-1])[::-1]
        least = x_cost[:-1] + y_cost[1:]
        slack = 1e-12 * (x_cost[-1] + y_cost[0])
        blocks = np.flatnonzero(least <= (x_cost + y_cost).min() + slack)
        return int(self._grid[blocks[0]]), int(self._grid[blocks[-1] + 1])


def _accumulate(values: _Weights) -> _Weights:
    return np.concatenate([[0.0], np.cumsum(values)])


def _sum_prefixes(values: _Weights, ends: _Counts) -> _Weights:
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
    """Rows that move: of the others, and of the positively predicted."""

    @property
    def gained(self) -> int:
        """Net members that group 1 gains."""
        return sum(
            len(rows) if up else -len(rows) for up, rows in zip(self.up, self.rows, strict=True)
        )


def solve_two_groups(counted: CountedProblem, ways: list[RegionSet]) -> Correction:
    """Correct a guess about two groups, proven optimal.

    `counted`: a problem of two groups. `ways`: all ways to satisfy its conditions
    (`fpbench.correction.exact.two_group_regions.regions`).

    Returns: `optimal`, or `infeasible` if nothing satisfies the conditions.
    """
    if counted.known is None:
        return Correction(None, SolverStatus.INFEASIBLE)
    problem = counted.problem
    solved = [moves for way in ways if (moves := _solve(counted, way)) is not None]
    if not solved:
        return Correction(None, SolverStatus.INFEASIBLE)
    best = min(solved, key=_sum_costs)
    values = np.array(counted.start)
    for part in best:
        for up, rows in zip(part.up, part.rows, strict=True):
            values[rows] = int(up)
    cost = counted.base + _sum_costs(best)
    if counted.known:
        kinds = counted.moves(values)
    else:  # cheaper than counting everybody
        kinds = np.zeros((2, 2, 2), dtype=np.int64)
        for part in best:
            for prediction, (up, rows) in enumerate(zip(part.up, part.rows, strict=True)):
                kinds[prediction, int(not up), int(up)] += len(rows)
    return Correction(values.astype(problem.guess.dtype), SolverStatus.OPTIMAL, cost, cost, kinds)


def _sum_costs(moves_of_parts: list[_Moves]) -> float:
    return sum(moves.cost for moves in moves_of_parts)


def make_slices(counted: CountedProblem, way: RegionSet) -> list[Slice]:
    """The people of each part."""
    problem = counted.problem
    # One byte a person: they are read many times.
    start = counted.start.astype(np.int8, copy=False)
    predictions = problem.predictions.astype(np.int8, copy=False)
    return [
        Slice(start, predictions, counted.inside(label), counted.free) for label, _ in way.parts
    ]


def _solve(counted: CountedProblem, way: RegionSet) -> list[_Moves] | None:
    """The best moves in every part; None if there are none.

    Parts are solved independently, but a group that may be empty in each part may not be empty in
    all of them. These demands are added only if the answer without them violates them: an optimum
    of a relaxation that satisfies all demands is optimal.
    """
    people = make_slices(counted, way)
    weights = counted.problem.weights

    @cache
    def best(which: int, least: tuple[int, int]) -> _Moves | None:
        return _find_moves(people[which], way.parts[which][1].needing(least), weights)

    def cheapest_of(choices: list[tuple[tuple[int, int], ...]]) -> list[_Moves] | None:
        tried = [[best(which, least) for which, least in enumerate(choice)] for choice in choices]
        solved = [[m for m in answers if m] for answers in tried if None not in answers]
        return min(solved, key=_sum_costs) if solved else None

    free = (0, 0)
    answer = cheapest_of([(free,) * len(people)])
    if not way.union or len(people) == 1:
        return answer
    if answer is not None and not all(_count_members(people, answer)):
        group = _count_members(people, answer).index(0)
        one = (1, 0) if group == 0 else (0, 1)
        answer = cheapest_of([(one, free), (free, one)])
    if answer is not None and not all(_count_members(people, answer)):
        both = (1, 1)
        answer = cheapest_of([(both, free), (free, both), ((1, 0), (0, 1)), ((0, 1), (1, 0))])
    return answer


def _count_members(parts: list[Slice], moves: list[_Moves]) -> tuple[int, int]:
    """Members of group 0 and group 1 in all slices after the moves."""
    size = sum(s.size for s in parts)
    ones = sum(s.ones + m.gained for s, m in zip(parts, moves, strict=True))
    return size - ones, ones


def _find_moves(people: Slice, region: Region, weights: _Weights | None) -> _Moves | None:
    quadrants = people.frontier(region)
    counts: dict[tuple[bool, bool], int] = {}
    for quadrant in quadrants:
        for prediction, up, count in quadrant.cells:
            counts[prediction, up] = max(count, counts.get((prediction, up), 0))
    # Quadrants share cells: each is sorted once.
    prefixes = {
        cell: take_smallest_weights(weights, people.cell(*cell), count)
        for cell, count in counts.items()
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
    others = choose_people(weights, people.cell(False, quadrant.up_y), y)
    positive = choose_people(weights, people.cell(True, quadrant.up_x), x)
    return _Moves(cost, (quadrant.up_y, quadrant.up_x), (others, positive))
