"""Complementary suppression of least cost that leaves every suppressed number an interval.

An integer program chooses what is suppressed; a reader, by two linear programs for each suppressed
number, finds how small and how great it may be. Where the interval is too narrow, the dual solution
of the reader's program says of which published numbers some must be suppressed, which is a further
row of the integer program. Fischetti & Salazar, Solving the cell suppression problem on tabular
data with linear constraints, Management Science 47, 2001, who protect the small cells alone; here
whatever is suppressed is protected.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array, eye_array, kron, vstack
from scipy.sparse.csgraph import connected_components

from fpbench.base.errors import InputError
from fpbench.base.threads import use_one_thread
from fpbench.claims.set_counts import Floats, Mask
from fpbench.reports.defences.counts_with_noise import Counts
from fpbench.reports.defences.hidden_changes import find_members
from fpbench.reports.defences.sums_of_counts import Sums
from fpbench.reports.exact_blocks import ExactBlocks
from fpbench.reports.slices import Codes, number_slices

_SECONDS = 60.0
"""Time for the search for the least cost; and after it, for a repair of what is at hand."""
_NEAR = 1e-6
"""People by which an interval may be too narrow, for rounding of floats."""


@use_one_thread()
def find_optimal_complements(
    blocks: ExactBlocks, primary: Mask, start: Mask, least: int, people: Codes, groups: Codes,
    protect: float,
) -> tuple[Mask, bool]:  # fmt: skip
    """(B,) further blocks to suppress, and whether no others cost less.

    A block costs 1 to 2, by its people. The interval of every suppressed number reaches `protect`
    of it below and above it, and 1 person, as far as the people of the slice allow.

    Parameters
    ----------
    blocks, primary, least, people
        As of `find_complements`.
    start
        (B,) further blocks, of another method, that are made to do when the time is up.
    groups
        (n,) codes of everybody's group.
    protect
        Share of a number.

    Raises InputError if the time was not enough for that either.
    """
    search = _Search.of(blocks, primary, least, people, groups, protect)
    enough: Mask | None = None
    try:
        best, deadline = search.primary, time.perf_counter() + _SECONDS
        while True:
            chosen = best
            while new := search.find_rows(chosen, deadline):
                search.rows += new
                chosen = search.repair(search.primary)  # much quicker than the optimum
            enough = chosen
            if enough is best:
                return best[search.unit] & ~primary, True
            best = search.choose(deadline)
    except _TimeUpError:
        pass
    try:
        deadline = time.perf_counter() + _SECONDS
        if enough is None:
            enough = search.primary.copy()
            enough[search.unit[start]] = True
        while new := search.find_rows(enough, deadline):
            search.rows += new
            enough = search.repair(enough)
    except _TimeUpError:
        raise InputError(
            f"protect_hidden: no suppression was found in {2 * _SECONDS:g} s that leaves every "
            "suppressed number such an interval; cross fewer columns, or leave protect_hidden out"
        ) from None
    return enough[search.unit] & ~primary, False


class _TimeUpError(Exception):
    """Time was not enough."""


@dataclass(frozen=True)
class _Row:
    """Of units that are published, at least this much must be suppressed, if `target` is."""

    weights: Floats
    """(U,) of units."""
    least: float
    target: int
    """A unit; -1 if it is required anyway."""

    def is_broken(self, chosen: Mask) -> bool:
        """Whether too little is suppressed."""
        due = self.target < 0 or bool(chosen[self.target])
        return due and float(self.weights @ chosen) < self.least - _NEAR


@dataclass
class _Search:
    """U units, blocks that share numbers and are suppressed together; and what readers find."""

    unit: Codes
    """(B,) the unit of each block."""
    cost: Floats
    """(U,)."""
    primary: Mask
    """(U,) whether it must be suppressed."""
    owner: Codes
    """(A,) the unit of each number; -1 of one that nobody publishes."""
    parts: list[_Part]
    """By prediction."""
    rows: list[_Row] = field(default_factory=list)

    @classmethod
    def of(
        cls, blocks: ExactBlocks, primary: Mask, least: int, people: Codes, groups: Codes,
        protect: float,
    ) -> _Search:  # fmt: skip
        counts = Counts.of(blocks)
        sums = Sums.of(counts)
        kinds, which = number_slices(people)
        members = find_members(sums, people[kinds])
        wanted = np.arange(members.shape[0]) < len(counts.total)
        wanted |= sums.phantom & (sums.total < least)
        members = csr_array(members[np.flatnonzero(wanted)])
        held = np.zeros((len(kinds), int(groups.max()) + 1))
        np.add.at(held, (which, groups), 1)
        block, side = np.nonzero(counts.place >= 0)
        number = counts.place[block, side]
        many = len(blocks)
        links = csr_array(
            (np.ones(len(block)), (block, many + number)), shape=(many + members.shape[0],) * 2
        )
        _, label = connected_components(links, directed=False)
        units, unit = np.unique(label[:many], return_inverse=True)
        own = np.searchsorted(units, label[many:])
        published = np.isin(label[many:], units)
        owner = np.where(published, own, -1)
        size = blocks.base.sum(axis=1)
        cost = np.bincount(unit, 1 + size / size.max(initial=1), len(units)).astype(np.float64)
        forced = np.zeros(len(units), np.bool_)
        forced[unit[primary]] = True
        prediction = people[kinds][:, -1]
        parts = [
            _Part.of(csr_array(members[:, prediction == p]), held[prediction == p], protect)
            for p in (0, 1)
        ]
        return cls(unit, cost, forced, owner, parts)

    def find_rows(self, chosen: Mask, deadline: float) -> list[_Row]:
        """What must be suppressed beyond the chosen units, for numbers of too narrow intervals."""
        hidden = np.append(chosen, True)[self.owner]
        rows = []
        for part in self.parts:
            for number, least, weights in part.find_narrow(hidden, deadline):
                units = np.bincount(self.owner[~hidden], weights[~hidden], len(chosen))
                target = int(self.owner[number])
                if target >= 0 and self.primary[target]:
                    target = -1
                rows.append(_Row(np.minimum(units, least), least, target))
        return rows

    def choose(self, deadline: float) -> Mask:
        """(U,) the units of least cost that satisfy the rows."""
        matrix = np.array([row.weights for row in self.rows])
        due = np.array([row.least if row.target < 0 else 0.0 for row in self.rows])
        for place, row in enumerate(self.rows):
            if row.target >= 0:
                matrix[place, row.target] -= row.least
        solved = milp(
            self.cost, integrality=np.ones(len(self.cost)),
            bounds=Bounds(self.primary.astype(np.float64), 1.0),
            constraints=[LinearConstraint(csr_array(matrix), due - _NEAR, np.inf)],
            options={
                "time_limit": max(deadline - time.perf_counter(), 0.01), "mip_rel_gap": 0.0
            },
        )  # fmt: skip
        if solved.status != 0:  # everything suppressed satisfies them
            raise _TimeUpError
        return np.asarray(solved.x > 0.5)

    def repair(self, chosen: Mask) -> Mask:
        """(U,) the same with more units, each adding most to broken rows for its cost."""
        chosen = chosen.copy()
        while broken := [row for row in self.rows if row.is_broken(chosen)]:
            gain = np.sum([row.weights / row.least for row in broken], axis=0)
            chosen[int(np.argmax(np.where(chosen, 0, gain) / self.cost))] = True
        return chosen


@dataclass
class _Part:
    """Numbers of people of one prediction, as a reader finds them: changes of the true ones.

    Of two groups one is looked at, as the other follows from public sizes.
    """

    matrix: csr_array
    """(A, V) whether people of a kind are counted in a number, of one group."""
    low: Floats
    high: Floats
    """(G, V) least and greatest changes of each kind's people of each group."""
    need: Floats
    """(2, A, G) how far each number must be able to fall and rise."""
    known: csr_array | None
    """Rows of changes that are 0: of the sizes of kinds, of three groups or more."""
    found: list[Floats] = field(default_factory=list)
    """(G, V) changes that were found."""

    @classmethod
    def of(cls, members: csr_array, held: Floats, protect: float) -> _Part:
        """From members (A, T) and the people (T, K) of each kind and group."""
        draws = np.random.default_rng(20260110).integers(2**62, size=(members.shape[0], 2))
        first, kind = number_slices(members.T.astype(np.int64) @ draws)
        people = np.zeros((len(first), held.shape[1]))
        np.add.at(people, kind, held)
        matrix = csr_array(members[:, first])
        size = people.sum(axis=1)
        true, all_ = matrix @ people, (matrix @ size)[:, None]
        away = np.maximum(np.ceil(protect * true - _NEAR), 1)
        need = np.stack([np.minimum(away, true), np.minimum(away, all_ - true)])
        if people.shape[1] == 2:
            need = np.maximum(need, need[::-1, :, ::-1])[:, :, 1:]
            people = people[:, 1:]
            known = None
        else:
            known = csr_array(kron(np.ones((1, people.shape[1])), eye_array(len(size))))
        return cls(matrix, -people.T, (size[:, None] - people).T, need, known)

    def find_narrow(self, hidden: Mask, deadline: float) -> list[tuple[int, float, Floats]]:
        """Hidden numbers whose interval is too narrow, how much is missing, and (A,) what adds."""
        g = len(self.low)
        public = csr_array(self.matrix[np.flatnonzero(~hidden)])
        sides = kron(eye_array(g), public)
        every = csr_array(sides if self.known is None else vstack([sides, self.known]))
        program = _start_program(csr_array(every), self.low.ravel(), self.high.ravel())
        reached = np.zeros((2, *self.need.shape[1:]))

        def note(change: Floats) -> None:
            moved = self.matrix @ change.T
            np.maximum(reached[0], -moved, out=reached[0])
            np.maximum(reached[1], moved, out=reached[1])

        self.found = [one for one in self.found if (abs(public @ one.T) < _NEAR).all()]
        for one in self.found:
            note(one)
        narrow = []
        ends = self.matrix @ self.low.T, self.matrix @ self.high.T
        for number in np.flatnonzero(hidden & (np.diff(self.matrix.indptr) > 0)):
            for rise, k in np.ndindex(2, g):
                need = self.need[rise, number, k]
                if reached[rise, number, k] >= need - _NEAR:
                    continue
                if time.perf_counter() > deadline:
                    raise _TimeUpError
                aim = np.zeros((g, self.matrix.shape[1]))
                aim[k, self.matrix[[number]].indices] = -1.0 if rise else 1.0
                program.changeColsCost(aim.size, np.arange(aim.size, dtype=np.int32), aim.ravel())
                program.run()
                solved = program.getSolution()
                change = np.array(solved.col_value).reshape(aim.shape)
                self.found.append(change)
                note(change)
                missing = need + float((aim * change).sum())
                if missing <= _NEAR:
                    continue
                prices = np.zeros((len(hidden), g))
                duals = np.array(solved.row_dual)[: g * public.shape[0]]
                prices[~hidden] = duals.reshape(g, -1).T
                # By the dual solution, the interval grows by at most this if a number is hidden.
                adds = np.maximum(-prices * ends[0], -prices * ends[1]).sum(axis=1)
                narrow.append((int(number), missing, np.where(adds > _NEAR, adds, 0.0)))
        return narrow


def _start_program(matrix: csr_array, low: Floats, high: Floats) -> Any:
    """A linear program with matrix @ x = 0 and low <= x <= high, whose costs are changed."""
    import highspy

    program: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    program.setOptionValue("output_flag", False)
    program.setOptionValue("threads", 1)
    own: Any = highspy.HighsLp()
    own.num_row_, own.num_col_ = matrix.shape
    own.col_cost_ = np.zeros(len(low))
    own.col_lower_, own.col_upper_ = low, high
    own.row_lower_ = own.row_upper_ = np.zeros(matrix.shape[0])
    own.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    own.a_matrix_.start_, own.a_matrix_.index_ = matrix.indptr, matrix.indices
    own.a_matrix_.value_ = matrix.data
    program.passModel(own)
    return program
