"""The cheapest counts under linear rows, by linear programs, lattices and integer programs."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fpbench.claims.conditions import Occupied, Proportional
from fpbench.claims.counts import Condition, Counts, Row
from fpbench.correction.exact.counting import CountedProblem
from fpbench.correction.exact.highs import HighsAnswer, HighsModel
from fpbench.correction.exact.lattice import UNFINISHED, CountAxis, Group, HalfPlane, search_lattice

_Numbers = NDArray[np.float64]
_Integers = NDArray[np.int64]
_Cell = tuple[int, int]

_WINDOW = 30
"""Breakpoints kept on each side of where the linear program ends."""
_PIECES = 32
"""New pieces of a cost in one refinement."""
_HUGE = 1e7
"""Greatest cost a person has, in units of the dearest person who leaves."""
_FAR = 30.0
"""Ratio of costs above which the unit is set anew."""
PROVEN = 1e-9
"""Relative gap at which an optimum counts as proven: what summing in floating point leaves."""


class Optimum(NamedTuple):
    """The best counts under some rows."""

    counts: Counts | None
    """None if there are none (bound infinite), or time ran out before a solution."""
    bound: float
    proven: bool


class CountProgram:
    """The least cost of the counts of some classes (J of them, here numbered from 0).

    A cost is convex, and known exactly at some ends; between two of them it is replaced by the
    tangents there, never more than the true cost. So every optimum is a lower bound, and exact
    where the ends are next to each other.
    """

    def __init__(self, counted: CountedProblem, classes: tuple[int, ...], deadline: float) -> None:
        self._deadline = deadline
        self._place = {j: at for at, j in enumerate(classes)}
        self._counts = counted.counts[list(classes)]
        movable = counted.movable[list(classes)]
        self._least = self._counts - movable
        self._sizes = self._counts.sum(axis=1)
        self._spare = self._sizes - self._least.sum(axis=1)
        self._cells: list[_Cell] = [(int(j), int(k)) for j, k in np.argwhere(movable)]
        self._weights = {(j, k): counted.weights(classes[j], k) for j, k in self._cells}
        self._costs = {(j, k): counted.prefix_costs(classes[j], k) for j, k in self._cells}
        self._ends = {
            cell: spread_evenly(0, len(own), _PIECES) for cell, own in self._weights.items()
        }
        self._relaxed: dict[frozenset[Condition], HighsAnswer | None] = {}
        typical = [np.median(own) for own in self._weights.values()]
        self._unit = float(np.median(typical)) if typical else 1.0

    def solve(self, conditions: Sequence[Condition]) -> Optimum:
        """The best counts that satisfy the rows of conditions."""
        relaxed = self.relax(conditions)
        if relaxed is None:
            return Optimum(None, np.inf, True)
        return self._solve_lattice(conditions, relaxed) or self._solve_integers(conditions, relaxed)

    def _solve_lattice(
        self, conditions: Sequence[Condition], relaxed: HighsAnswer
    ) -> Optimum | None:
        """The optimum by lattice search near the linear program's prices; None if it gives up."""
        rows = [row for condition in conditions for row in condition.rows()]
        if len(self._place) > 2 or any(len({k for _, k, _ in row.terms}) > 1 for row in rows):
            return None
        assert relaxed.prices is not None
        # A class alone is its own partner, of whom there are none.
        prices = (*relaxed.prices[: len(self._sizes)], 0.0)[:2]
        sizes = (*self._sizes.tolist(), 0)[:2]
        groups = [self._make_group(k, rows) for k in range(self._counts.shape[1])]
        points = search_lattice(groups, sizes, prices, self._unit)
        if points is UNFINISHED:
            return None
        if points is None:
            return Optimum(None, np.inf, True)
        counts = np.array(points).T[: len(self._sizes)]
        return Optimum(counts, self._compute_cost(counts), True)

    def _make_group(self, k: int, rows: Sequence[Row]) -> Group:
        planes = []
        for row in rows:
            own = {self._place[j]: a for j, group, a in row.terms if group == k}
            if own:
                planes.append(HalfPlane(own.get(0, 0), own.get(1, 0), row.most))
        return Group((self._make_axis(0, k), self._make_axis(1, k)), planes)

    def _make_axis(self, j: int, k: int) -> CountAxis:
        """The costs of a class in a group: falling to 0 at the number of its people, then 0."""
        if j >= len(self._sizes):
            return CountAxis(0, np.zeros(1))
        costs = np.zeros(self._spare[j] + 1)
        leaving = self._costs.get((j, k), np.zeros(1))
        costs[: len(leaving)] = leaving[::-1]
        return CountAxis(int(self._least[j, k]), costs)

    def _solve_integers(self, conditions: Sequence[Condition], relaxed: HighsAnswer) -> Optimum:
        """The optimum by one integer program over all groups."""
        assert relaxed.values is not None
        counts: NDArray[Any] = relaxed.values
        bound, news, tried = 0.0, True, set[float]()
        while self._zoom(counts) or news:
            remaining = self._deadline - time.perf_counter()
            if remaining <= 0:
                return Optimum(None, bound, False)
            answer = self._optimise(conditions, True, remaining)
            if answer is None:
                return Optimum(None, np.inf, True)
            if answer.values is None:
                return Optimum(None, max(bound, answer.bound), False)
            counts = np.rint(answer.values).astype(np.int64)
            cost, news = self._compute_cost(counts), self._update_unit(counts, tried)
            if not news:
                bound = max(bound, answer.bound)
            if not answer.proven or (not news and cost - bound <= PROVEN * cost):
                return Optimum(counts, bound, answer.proven)
        return Optimum(counts, bound, True)

    def _zoom(self, counts: NDArray[Any]) -> bool:
        """Make costs exact near these counts; returns whether some were not."""
        before = sum(map(len, self._ends.values()))
        for cell in self._cells:
            out = self._count_leaving(counts, cell)
            near = np.arange(math.floor(out) - _WINDOW, math.ceil(out) + _WINDOW + 1)
            self._ends[cell] = insert_ends(self._ends[cell], near)
        return sum(map(len, self._ends.values())) > before

    def relax(self, conditions: Sequence[Condition]) -> HighsAnswer | None:
        """The optimum of the linear program, exact where it ends; None if there is none."""
        key = frozenset(conditions)
        if key not in self._relaxed:
            self._relaxed[key] = self._refine(conditions)
        return self._relaxed[key]

    def _refine(self, conditions: Sequence[Condition]) -> HighsAnswer | None:
        tried = set[float]()
        while True:
            answer = self._optimise(conditions, False, np.inf)
            if answer is None or answer.values is None:
                return None
            coarse = self._update_unit(answer.values, tried)
            for cell in self._cells:
                ends, out = self._ends[cell], self._count_leaving(answer.values, cell)
                at = int(np.clip(np.searchsorted(ends, out), 1, len(ends) - 1))
                low, high = int(ends[at - 1]), int(ends[at])
                if low + 1 < high and low < out < high:
                    self._ends[cell] = insert_ends(ends, spread_evenly(low, high, _PIECES))
                    coarse = True
            if not coarse:
                return answer._replace(bound=min(answer.bound, self._compute_cost(answer.values)))

    def _update_unit(self, counts: NDArray[Any], tried: set[float]) -> bool:
        """Set the unit to the greatest cost of a person who leaves; returns whether it changed.

        The solver sees this cost as 1, and ignores costs far below it. If nobody leaves, the unit
        is the cost of the cheapest person.
        """
        before = self._unit
        tried.add(before)
        outs = [(self._weights[cell], self._count_leaving(counts, cell)) for cell in self._cells]
        own = [float(weights[math.ceil(out) - 1]) for weights, out in outs if out > 0.5]
        self._unit = max(own or [min((float(w[0]) for w, _ in outs), default=before)])
        ratio = self._unit / before
        return not 1 / _FAR < ratio < _FAR and self._unit not in tried

    def _count_leaving(self, counts: NDArray[Any], cell: _Cell) -> float:
        """Number of people who leave a cell, clipped to what is possible."""
        return float(np.clip(self._counts[cell] - counts[cell], 0, len(self._weights[cell])))

    def _compute_cost(self, counts: NDArray[Any]) -> float:
        """Cost of counts, whole or not."""
        total = 0.0
        for cell in self._cells:
            out, costs = self._count_leaving(counts, cell), self._costs[cell]
            low, high = costs[math.floor(out)], costs[math.ceil(out)]
            total += float(low + (high - low) * (out % 1))
        return total

    def _optimise(
        self, conditions: Sequence[Condition], whole: bool, limit: float
    ) -> HighsAnswer | None:
        """The best counts (J, K) of the program; None if there are none."""
        model = HighsModel()
        high = self._least + self._spare[:, None]
        count = model.columns(self._least, high, whole=whole)
        for j, size in enumerate(self._sizes):
            model.row(count[j], np.ones(count.shape[1]), size, size)
        for cell in self._cells:
            lengths, slopes = make_tangent_pieces(
                self._ends[cell], self._costs[cell], self._weights[cell]
            )
            # Greater costs are cut: they decide nothing, and upset the solver.
            slopes = np.minimum(slopes / self._unit, _HUGE)
            leave = model.columns(np.zeros(len(lengths)), lengths, slopes)
            (enter,) = model.columns(np.zeros(1), self._spare[[cell[0]]])
            # A count falls by those who leave, minus those who enter.
            index, value = [*leave, enter, count[cell]], [*np.ones(len(leave)), -1.0, 1.0]
            model.row(index, value, self._counts[cell], self._counts[cell])
        for condition in conditions:
            if whole and isinstance(condition, Proportional):
                self._add_multiples(model, count, condition)
            else:
                for row in condition.rows():
                    self._add_row(model, count, row)
        answer = model.solve(limit)
        if answer is None:
            return None
        values = None if answer.values is None else answer.values[count]
        prices = None if answer.prices is None else answer.prices * self._unit
        return HighsAnswer(values, answer.bound * self._unit, answer.proven, prices)

    def _add_row(self, model: HighsModel, count: NDArray[np.intp], row: Row) -> None:
        """Add a row scaled by its greatest coefficient, so that one tolerance fits all."""
        largest = max((abs(a) for _, _, a in row.terms), default=1)
        index = [count[self._place[j], k] for j, k, _ in row.terms]
        model.row(index, [a / largest for _, _, a in row.terms], -np.inf, row.most / largest)

    def _add_multiples(
        self, model: HighsModel, count: NDArray[np.intp], condition: Proportional
    ) -> None:
        """Demand a whole multiple of the smallest group: exact for any tolerance of the solver."""
        part, (x, m) = condition.part, condition.unit
        if x in (0, m):  # all have the same prediction, so every group has the same rate
            return
        (times,) = model.columns(np.zeros(1), [part.people // max(m, 1)], whole=True)
        for classes, unit in ((part.positive, x), (part.negative, m - x)):
            index = [*(count[self._place[j], condition.group] for j in classes), times]
            model.row(index, [*np.ones(len(classes)), -float(unit)], 0.0, 0.0)


class LinkedPrograms:
    """The programs of one problem: one for each set of classes that rows link."""

    def __init__(self, counted: CountedProblem, deadline: float) -> None:
        self._counted, self._deadline = counted, deadline
        self._programs: dict[tuple[int, ...], CountProgram] = {}
        self._solved: dict[tuple[tuple[int, ...], frozenset[Condition]], Optimum] = {}

    def relax(self, conditions: Sequence[Condition]) -> tuple[_Numbers | None, float]:
        """The best counts that satisfy the rows of conditions, whole or not; and a bound."""
        counts, bound = self._counted.counts.astype(np.float64), 0.0
        for classes, mine in self._split_conditions(conditions):
            answer = self._get_program(classes).relax(mine)
            if answer is None or answer.values is None:
                return None, np.inf
            counts[list(classes)] = answer.values
            bound += answer.bound
        return counts, bound

    def solve(self, conditions: Sequence[Condition]) -> Optimum:
        """The best whole counts that satisfy the rows of conditions.

        A group may come out empty in parts that no row links, even where `Occupied` forbids it: the
        check of the conditions finds that.
        """
        counts, bound, proven = self._counted.counts.copy(), 0.0, True
        for classes, mine in self._split_conditions(conditions):
            optimum = self._solve(classes, mine)
            if optimum.counts is None:
                return Optimum(None, optimum.bound if optimum.proven else bound, optimum.proven)
            counts[list(classes)] = optimum.counts
            bound, proven = bound + optimum.bound, proven and optimum.proven
        return Optimum(counts, bound, proven)

    def _split_conditions(
        self, conditions: Sequence[Condition]
    ) -> Iterator[tuple[tuple[int, ...], list[Condition]]]:
        """Sets of linked classes, and the conditions on each."""
        for classes in _link_classes(conditions, len(self._counted.classes.sizes)):
            mine = [c for c in conditions if (own := _list_classes(c)) and own <= set(classes)]
            if mine:
                yield tuple(classes), mine

    def _get_program(self, classes: tuple[int, ...]) -> CountProgram:
        if classes not in self._programs:
            self._programs[classes] = CountProgram(self._counted, classes, self._deadline)
        return self._programs[classes]

    def _solve(self, classes: tuple[int, ...], conditions: list[Condition]) -> Optimum:
        key = classes, frozenset(conditions)
        if key not in self._solved:
            optimum = self._get_program(classes).solve(conditions)
            if not optimum.proven:
                return optimum
            self._solved[key] = optimum
        return self._solved[key]


def _list_classes(condition: Condition) -> set[int]:
    return {j for row in condition.rows() for j, _, _ in row.terms}


def _link_classes(conditions: Sequence[Condition], classes: int) -> list[list[int]]:
    """Sets of classes that rows link; `Occupied` conditions link nothing."""
    root = list(range(classes))
    for condition in conditions:
        if isinstance(condition, Occupied) and len(condition.parts) > 1:
            continue
        for row in condition.rows():
            linked = {root[j] for j, _, _ in row.terms}
            root = [
                min(linked) if representative in linked else representative
                for representative in root
            ]
    return [
        [j for j in range(classes) if root[j] == representative]
        for representative in sorted(set(root))
    ]


def make_tangent_pieces(
    ends: _Integers, costs: _Numbers, weights: _Numbers
) -> tuple[_Numbers, _Numbers]:
    """Lengths and slopes of a convex function below the cost that meets it at the ends."""
    low, high = ends[:-1], ends[1:]
    first, last = weights[low], weights[high - 1]
    rise = costs[high] - costs[low] - first * (high - low)
    # The tangents cross where following the second one makes up for all the rise.
    steeper = np.where(last > first, last - first, 1.0)
    after = np.clip(np.where(last > first, rise / steeper, 0.0), 0.0, high - low)
    lengths = np.stack([high - low - after, after], axis=1).ravel()
    slopes = np.stack([first, last], axis=1).ravel()
    return lengths[lengths > 0], slopes[lengths > 0]


def spread_evenly(low: int, high: int, pieces: int) -> _Integers:
    """Ends of about `pieces` pieces of equal length."""
    return np.unique(np.rint(np.linspace(low, high, pieces + 1)).astype(np.int64))


def insert_ends(ends: _Integers, more: _Integers) -> _Integers:
    """Ends and more of them, as far as they lie between the first and the last."""
    return np.union1d(ends, more[(more >= ends[0]) & (more <= ends[-1])])
