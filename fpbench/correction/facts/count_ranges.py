"""How many people of a group some sets may have, by everything known: linear and integer programs.

What a reader can tell of a number that is not published is the range from its least to its greatest
value over all worlds: the attacker's problem of cell suppression (Fischetti & Salazar, Solving the
cell suppression problem on tabular data with linear constraints, Management Science 47, 2001).

Programs are over numbers of people with the same sets. The linear relaxation without clauses comes
first: its multipliers prove an end of the range in whole numbers (`bound_cost`), and its corner is
a world if it is whole and keeps the clauses. Each world widens the ranges that are known to be
reached, of all numbers at once, and only numbers that are not decided by these get programs. What
is left open is decided by integer programs, whose bounds rest on the solver.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, kron, vstack
from scipy.sparse.csgraph import connected_components

from fpbench.base.errors import FpbenchError
from fpbench.claims.set_counts import Facts, Floats, Mask
from fpbench.correction.exact.highs import swallow_banner
from fpbench.correction.facts.linear_programs import bound_cost
from fpbench.correction.facts.worlds import WorldProgram

_NEAR = 1e-6
"""Distance from a whole number within which a solver's number is taken for it."""
_SECONDS, _LONGEST = 2.0, 10.0
"""Longest integer program in which few atoms change, and all."""
_CHANGING = 0, 50, 200, sys.maxsize
"""Most atoms that change, in programs from a known world on; 0: of linear programs, all."""
_KEPT = 100
"""Worlds of which one is where these begin."""


@dataclass(frozen=True, eq=False)
class CountRanges:
    """Numbers of people (S, K) of K groups in S sets; arrays are narrowed and widened in place."""

    low: Floats
    high: Floats
    """No world has fewer or more."""
    least: Floats
    most: Floats
    """The fewest and most in worlds that are known; inf and -inf where none is."""


IsOpen = Callable[[CountRanges, int], Mask]


def find_ranges(
    facts: Facts,
    possible: Mask,
    sets: csr_array,
    worlds: NDArray[np.integer[Any]],
    is_open: IsOpen,
    deadline: float,
) -> CountRanges:
    """The ranges of numbers in further sets that facts allow.

    Parameters
    ----------
    facts
        What is known; noisy counts are ignored.
    possible
        (n, K) groups that people may have, as far as was proven.
    sets
        (S, n) members of the sets, none empty.
    worlds
        (W, n) codes of groups in worlds that are known.
    is_open
        (K,) whether the ranges of numbers in a set are still to be found, by what is known so far.
    deadline
        By `time.perf_counter`.
    """
    hard = facts.take(~facts.noisy)
    left, rest = hard.remove_people(possible)
    program, first, atom = WorldProgram.of(left, possible[rest], sets[:, rest])
    sets = sets.astype(np.int64)  # whose products are numbers of people
    inside = sets[:, rest[first]]
    decided = possible & (possible.sum(axis=1) == 1)[:, None]
    gone = (sets @ decided.astype(np.int64)).astype(np.float64)
    top = gone + inside @ (program.people[:, None] * program.possible)
    ranges = CountRanges(
        gone.copy(), top, np.full(gone.shape, np.inf), np.full(gone.shape, -np.inf)
    )
    sizes = np.diff(sets.indptr)
    known = []
    for groups in worlds:
        every = groups[:, None] == np.arange(facts.groups)
        _widen(ranges, slice(None), sets @ every.astype(np.int64))
    for groups in worlds[:_KEPT]:
        known.append(np.zeros(program.possible.shape, np.int64))
        np.add.at(known[-1], (atom, groups[rest]), 1)
    parts = _Part.split(program, inside, gone, sizes, known)
    for changing in _CHANGING:
        if not all(p.decide(ranges, is_open, facts.loose, deadline, changing) for p in parts):
            break
    exact = ranges.low == ranges.high
    ranges.least[exact] = ranges.most[exact] = ranges.low[exact]
    return ranges


def _widen(ranges: CountRanges, which: Any, counts: NDArray[Any]) -> None:
    """Note the numbers (sets, K) of one more world."""
    ranges.least[which] = np.minimum(ranges.least[which], counts)
    ranges.most[which] = np.maximum(ranges.most[which], counts)


@dataclass(frozen=True, eq=False)
class _Part:
    """People whom facts connect, or sets of which a range is asked, and these sets."""

    program: WorldProgram
    sets: NDArray[np.intp]
    """(S',) numbers of the sets."""
    inside: csr_array
    """(S', A) which people are in which."""
    gone: Floats
    """(S', K) decided people."""
    sizes: NDArray[np.intp]
    """(S',) people in each, decided ones too."""
    worlds: list[NDArray[np.int64]]
    """People (A, K) of each group in some worlds; grows."""

    @classmethod
    def split(
        cls, program: WorldProgram, inside: csr_array, gone: Floats, sizes: NDArray[np.intp],
        worlds: list[NDArray[np.int64]],
    ) -> list[_Part]:  # fmt: skip
        """The parts, the smallest first; of sets in which everybody is decided, none."""
        many, size = inside.shape
        component = np.empty(size, np.intp)
        for number, atoms in enumerate(program.split()):
            component[atoms] = number
        own = inside.tocoo()
        ends = own.row, many + component[own.col]
        nodes = many + (int(component.max(initial=-1)) + 1)
        edges = coo_array((np.ones(len(own.row), np.int8), ends), (nodes, nodes))
        label = connected_components(edges, directed=False)[1]
        of_atom = label[many + component]
        parts = []
        for which in np.unique(label[:many][np.diff(inside.indptr) > 0]):
            atoms, sets = np.flatnonzero(of_atom == which), np.flatnonzero(label[:many] == which)
            parts.append(cls(
                program.narrow(atoms), sets, inside[sets][:, atoms], gone[sets], sizes[sets],
                [world[atoms] for world in worlds],
            ))  # fmt: skip
        return sorted(parts, key=lambda part: len(part.program.people))

    def decide(
        self,
        ranges: CountRanges,
        is_open: IsOpen,
        loose: bool,
        deadline: float,
        changing: int,
    ) -> bool:
        """Find ranges until none is open; whether that ended in time.

        `changing`: of `_CHANGING`.
        """
        if 0 < changing < len(self.program.people) and not self.worlds:
            return True
        solver = None
        order = np.argsort(self.sizes, kind="stable")
        for place, group, sign in (
            (place, group, sign)
            for place in order
            for group in range(self.gone.shape[1])
            for sign in (1, -1)
        ):
            number = int(self.sets[place])
            if not is_open(ranges, number)[group]:
                continue
            known, reached = (ranges.high, ranges.most) if sign > 0 else (ranges.low, ranges.least)
            if known[number, group] == reached[number, group] or (
                ranges.low[number, group] == ranges.high[number, group]
            ):
                continue
            if (left := deadline - time.perf_counter()) <= 0:
                return False
            own = self.inside[[place]].toarray()[0]
            if not changing:
                solver = solver or _Relaxation(self.program)
                end, world = solver.solve(own, group, sign, left)
            elif changing < len(own):
                end, world = self._walk(own, group, sign, min(left, _SECONDS), changing)
            else:
                end, world = _solve(self.program, own, group, sign, min(left, _LONGEST))
            self._narrow(ranges, int(place), group, sign * end, sign)
            if world is not None and not loose:
                self._note(ranges, world)
        return True

    def _note(self, ranges: CountRanges, world: NDArray[np.int64]) -> None:
        """Note numbers of people (A, K) in a world."""
        _widen(ranges, self.sets, self.gone + self.inside @ world)
        self.worlds.append(world)
        del self.worlds[:-_KEPT]

    def _walk(
        self, own: NDArray[np.int64], group: int, sign: int, seconds: float, changing: int
    ) -> tuple[float, NDArray[np.int64] | None]:
        """A world with more or fewer people of a group among `own` (A,), if there is one nearby."""
        world = max(self.worlds, key=lambda world: sign * (own @ world[:, group])).copy()
        sets = self.program.sets.astype(np.int64)
        alike = sets.T @ (sets @ own) + own
        near = np.sort(np.argsort(-alike, kind="stable")[:changing])
        _, found = _solve(self.program.narrow(near, world), own[near], group, sign, seconds)
        if found is None:
            return math.inf, None
        world[near] = found
        return math.inf, world

    def _narrow(self, ranges: CountRanges, place: int, group: int, end: float, sign: int) -> None:
        """Note the greatest number of a group, or the least, among undecided people of a set."""
        low, high = ranges.low[self.sets[place]], ranges.high[self.sets[place]]
        end += self.gone[place, group]
        if sign > 0:
            high[group] = min(high[group], end)
        else:
            low[group] = max(low[group], end)
        size = self.sizes[place]
        low[:] = np.maximum(low, size - (high.sum() - high))
        high[:] = np.minimum(high, size - (low.sum() - low))


def _solve(
    program: WorldProgram, own: NDArray[np.int64], group: int, sign: int, seconds: float
) -> tuple[float, NDArray[np.int64] | None]:
    """An upper bound of sign times the number of a group among `own` (A,), and a world."""
    cost = np.zeros(program.possible.shape)
    cost[:, group] = -sign * own
    model, count = program.model(cost)
    try:
        answer = model.solve(seconds)
    except FpbenchError:  # HiGHS gave up
        return math.inf, None
    if answer is None or not np.isfinite(answer.bound):  # others name contradictions
        return math.inf, None
    end = math.floor(-answer.bound + _NEAR)
    if answer.values is None:
        return end, None
    world = np.rint(answer.values[count]).astype(np.int64)
    return end, world if program.allows(world) else None


class _Relaxation:
    """The linear program of numbers of people of all groups but the last; costs change.

    Solved by the simplex method, from the last solution on.
    """

    def __init__(self, program: WorldProgram) -> None:
        people, possible, sets = program.people, program.possible, program.sets.astype(np.int64)
        self.program, self.people, self.groups = program, people, possible.shape[1]
        k = self.groups
        sizes = (sets @ people).astype(np.float64)[:, None]
        told = program.told[:, None] & ((program.low > 0) | (program.high < sizes))
        parts, low, high = [], [], []
        for group in range(k - 1):
            own, column = np.flatnonzero(told[:, group]), np.zeros((1, k - 1), np.int64)
            column[0, group] = 1
            parts.append(kron(sets[own], column, format="csr"))
            low.append(program.low[own, group])
            high.append(program.high[own, group])
        if k > 2:  # with two groups, ranges of one are those of the other
            own, every = np.flatnonzero(told[:, -1]), np.ones((1, k - 1), np.int64)
            atoms = csr_array((np.ones(len(people), np.int64), np.arange(len(people)),
                               np.arange(len(people) + 1)))  # fmt: skip
            parts += [kron(sets[own], every, format="csr"), kron(atoms, every, format="csr")]
            low += [sizes[own, 0] - program.high[own, -1], np.where(possible[:, -1], 0, people)]
            high += [sizes[own, 0] - program.low[own, -1], people]
        self.matrix = csr_array(vstack(parts, format="csr"))
        self.low, self.high = (np.concatenate(ends).astype(np.float64) for ends in (low, high))
        self.most = (people[:, None] * possible)[:, :-1].ravel().astype(np.float64)
        self._highs = self._load()

    def _load(self) -> Any:
        import highspy

        swallow_banner()
        highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        options = {"output_flag": False, "threads": 1, "solver": "simplex", "presolve": "off"}
        for name, value in options.items():
            highs.setOptionValue(name, value)
        program: Any = highspy.HighsLp()
        program.num_col_, program.num_row_ = len(self.most), len(self.low)
        program.col_cost_ = np.zeros(len(self.most))
        program.col_lower_, program.col_upper_ = np.zeros(len(self.most)), self.most
        program.row_lower_, program.row_upper_ = self.low, self.high
        program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        program.a_matrix_.start_ = self.matrix.indptr.astype(np.int32)
        program.a_matrix_.index_ = self.matrix.indices.astype(np.int32)
        program.a_matrix_.value_ = self.matrix.data.astype(np.float64)
        highs.passModel(program)
        return highs

    def solve(
        self, own: NDArray[np.int64], group: int, sign: int, seconds: float
    ) -> tuple[float, NDArray[np.int64] | None]:
        """An upper bound of sign times the number of a group among `own` (A,), and a whole corner.

        The corner holds numbers of people (A, K).
        """
        import highspy

        k, highs = self.groups, self._highs
        cost, offset = np.zeros((len(own), k - 1)), 0
        if group < k - 1:
            cost[:, group] = sign * own
        else:
            cost[:], offset = -sign * own[:, None], sign * int(own @ self.people)
        costs = cost.ravel()
        highs.changeColsCost(len(costs), np.arange(len(costs), dtype=np.int32), -costs)
        highs.setOptionValue("time_limit", highs.getRunTime() + seconds)
        highs.run()
        if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return math.inf, None
        highs.setOptionValue("simplex_strategy", 4)  # the corner stays feasible if costs change
        solution = highs.getSolution()
        duals = -np.array(solution.row_dual)
        end = bound_cost(costs, duals, self.matrix, self.low, self.high, self.most)
        x = np.array(solution.col_value)
        whole = np.rint(x).astype(np.int64)
        world = None
        if (np.abs(x - whole) < _NEAR).all():
            some = whole.reshape(-1, k - 1)
            world = np.column_stack([some, self.people - some.sum(axis=1)])
            world = world if self.program.allows(world) else None
        return math.floor(end) + offset, world
