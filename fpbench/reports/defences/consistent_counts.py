"""Noisy numbers of people made consistent: whole, at least 0, and sums of each other.

The nearest real numbers are found first, on the dual of least squares; then whole numbers beside
them that keep all sums, by a program in whole numbers. Both see noisy numbers and public sizes
only, so they cost no privacy.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, linprog, milp, minimize
from scipy.sparse import coo_array, csr_array, diags_array, hstack, identity, vstack
from scipy.sparse.csgraph import connected_components

from fpbench.base.errors import InputError
from fpbench.claims.set_counts import Floats
from fpbench.privacy.consistent_counts import project_counts
from fpbench.reports.defences.sums_of_counts import Sums
from fpbench.reports.exact_blocks import WHOLE
from fpbench.reports.slices import Codes

_ROUNDS = 400
"""Most steps to the nearest real numbers."""
_NEAR = 1e-2
"""How far scaled sums may be off before numbers are made whole."""
_UNMEASURED = 1e-2
"""Weight of numbers that were not measured, beside 1 of those that were."""
_GAP = 0.1
"""How far from the nearest, in share of the distance, whole numbers may be."""
_SHARES = (0.02, 0.1, 0.3, 1.0)
"""How near to equal shares in all slices numbers are taken, until whole ones are found."""
_CUTS = 60
"""Most times that larger slices are rounded again because smaller ones became infeasible."""
_SECONDS = 120.0
"""Limit of the search for whole numbers."""


def make_consistent(sums: Sums, answers: Floats) -> Floats:
    """(A, K) whole numbers near noisy ones, which keep all sums.

    `sums`: which numbers are sums of which; the first A are measured. `answers`: (A, K) noisy
    numbers.

    Raises InputError if none are found in time, of very many tables.
    """
    measured = len(answers)
    near = _project(sums, answers)
    whole = _round(sums, near)
    return whole[:measured]


def _project(sums: Sums, answers: Floats) -> Floats:
    """(A + others, K) about the nearest nonnegative numbers that keep all sums."""
    m, k = sums.matrix, answers.shape[1]
    weight = np.full(len(sums.total), _UNMEASURED)
    weight[: len(answers)] = 1
    share = np.maximum(answers, 0).sum(axis=0) + 1
    x = sums.total[:, None] * (share / share.sum())
    x[: len(answers)] = answers
    # The dual has no constraints: the nearest histograms to shifted answers, for multipliers of
    # the sums. They are scaled, so that all curve alike.
    scale = 1 / np.sqrt(abs(m) @ (1 / weight))
    rows = diags_array(scale) @ m
    back = (diags_array(1 / weight) @ rows.T).tocsr()

    def descend(multipliers: Floats) -> tuple[float, Floats]:
        shift = back @ multipliers.reshape(-1, k)
        z = project_counts(x - shift, sums.total)
        off = rows @ z
        value = 0.5 * (weight[:, None] * (z - x) ** 2).sum() + (weight[:, None] * shift * z).sum()
        return -float(value), -off.ravel()

    start = np.zeros(m.shape[0] * k)
    options = {"maxiter": _ROUNDS, "maxfun": 2 * _ROUNDS, "maxcor": 20, "gtol": _NEAR, "ftol": 0.0}
    optimum = minimize(descend, start, jac=True, method="L-BFGS-B", options=options)
    return project_counts(x - back @ optimum.x.reshape(-1, k), sums.total)


@dataclass(frozen=True)
class _Levels:
    """The sums, with numbers that are always equal merged.

    A number and its only part are equal: those of slices by a column, and by one that determines
    it.
    """

    matrix: csr_array
    """(sums, distinct numbers): 1 for parts, -1 for the whole."""
    place: NDArray[np.intp]
    """(A,) of each number, that are no people in no part, among the distinct."""
    level: Codes
    """(distinct numbers,) by how many columns the slice is cut."""
    rest: Codes
    """(sums,) the number of people in no part; -1 if there are none."""

    @classmethod
    def of(cls, sums: Sums) -> Self:
        """From all sums."""
        many, entries = len(sums.keys), sums.matrix.tocoo()
        real = entries.col < many
        rest = np.full(sums.matrix.shape[0], -1)
        rest[entries.row[~real]] = entries.col[~real]
        same = (np.bincount(entries.row) == 2) & (rest < 0)
        pairs = sums.matrix[np.flatnonzero(same)].indices.reshape(-1, 2)
        links = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(many, many))
        _, place = connected_components(links, directed=False)
        level = np.full(place.max(initial=-1) + 1, many)
        np.minimum.at(level, place, (sums.keys[:, :-1] >= 0).sum(axis=1))
        shape = sums.matrix.shape[0], len(level)
        signs, rows = entries.data[real], entries.row[real]
        matrix = csr_array((signs, (rows, place[entries.col[real]])), shape=shape)
        matrix.eliminate_zeros()
        return cls(matrix, place, level, rest)


def _round(sums: Sums, near: Floats) -> Floats:
    """Whole numbers beside real ones that keep all sums, one group after the other.

    Larger slices come first: their numbers make of the rest many small programs in whole numbers.
    If the numbers of larger slices leave no whole ones for smaller slices, all are taken nearer to
    those of a group that has the same share of all slices, where there is room for any rounding.
    """
    end = time.perf_counter() + _SECONDS
    left, whole = sums.total.copy(), np.empty(near.shape)
    levels = _Levels.of(sums)
    for group in range(near.shape[1] - 1):
        values = near[:, group]
        if group:  # what the groups before have left
            pair = np.column_stack([values, left - values])
            values = _project(replace(sums, total=left), pair)[:, 0]
        everywhere = left * (values.sum() / max(left.sum(), 1))
        for share in _SHARES:
            target = (1 - share) * values + share * everywhere
            now = time.perf_counter()
            until = end if share == _SHARES[-1] else now + (end - now) / 3
            rounded = _round_group(levels, target, left, until)
            if rounded is not None:
                break
        else:
            raise InputError(
                "consistent: no whole numbers that keep all sums were found in time; publish fewer "
                "tables"
            )
        whole[:, group] = rounded
        left -= rounded
    whole[:, -1] = left
    return whole


def _round_group(levels: _Levels, target: Floats, most: Floats, deadline: float) -> Floats | None:
    """Whole numbers of one group; None if none are found in time.

    Where numbers of larger slices leave none for smaller ones, dual multipliers of the sums give
    the larger ones a further constraint (a Benders cut), with which they are solved again.
    """
    many, distinct = len(levels.place), len(levels.level)
    near, limit = np.zeros(distinct), np.zeros(distinct)
    near[levels.place], limit[levels.place] = target[:many], most[:many]
    others = np.where(levels.rest >= 0, most[levels.rest], 0.0)
    program = _Program(levels.matrix, -others, np.zeros(len(others)), near, limit)
    numbers, steps = np.zeros(distinct), np.unique(levels.level)
    solved: dict[int, bytes] = {}
    at = cuts = 0
    while at < len(steps):
        failed = program.solve(numbers, levels.level, int(steps[at]), solved, deadline)
        at += 1
        if not failed:
            continue
        new = [cut for part in failed if (cut := program.cut(numbers, levels.level, part))]
        cuts += 1
        if not new or cuts > _CUTS or time.perf_counter() > deadline:
            return None
        # Numbers found before are kept where possible, so that few smaller slices change.
        program = replace(
            program.add(new), near=np.where(levels.level < steps[at - 1], numbers, near)
        )
        depth = max(int(levels.level[row.indices].max()) for row, _ in new)
        at = int(np.searchsorted(steps, depth))
    whole = np.zeros(len(target))
    whole[:many] = numbers[levels.place]
    with_rest = np.flatnonzero(levels.rest >= 0)
    whole[levels.rest[with_rest]] = -(levels.matrix @ numbers)[with_rest]
    return whole


class _Part(NamedTuple):
    """An independent part of a program: some of its rows, and of its numbers of one level."""

    rows: NDArray[np.intp]
    atoms: NDArray[np.intp]


@dataclass(frozen=True)
class _Program:
    """Whole numbers from 0 to `most` beside `near`, and low <= matrix @ numbers <= high."""

    matrix: csr_array
    low: Floats
    high: Floats
    near: Floats
    most: Floats

    def add(self, cuts: list[tuple[csr_array, float]]) -> _Program:
        """The program with further rows and their upper bounds."""
        rows = vstack([self.matrix, *(row for row, _ in cuts)], format="csr")
        high = np.append(self.high, [most for _, most in cuts])
        low = np.append(self.low, np.full(len(cuts), -np.inf))
        return replace(self, matrix=csr_array(rows), low=low, high=high)

    def find_ends(
        self, rows: NDArray[np.intp], level: Codes, now: int
    ) -> tuple[csr_array, Floats, Floats]:
        """Rows without later numbers, with bounds that allow these any value from 0 to `most`."""
        matrix = self.matrix[rows]
        later = csr_array(matrix * (level > now))
        both, either = later @ self.most, abs(later) @ self.most
        early = csr_array(matrix * (level <= now))
        return early, self.low[rows] - (both + either) / 2, self.high[rows] - (both - either) / 2

    def solve(
        self, numbers: Floats, level: Codes, now: int, done: dict[int, bytes], deadline: float
    ) -> list[_Part]:
        """Find the numbers of one level in place; returns the parts that are infeasible.

        Parts whose constraints are the same as in `done` keep their numbers.
        """
        atoms, failed = np.flatnonzero(level == now), []
        every = np.arange(self.matrix.shape[0])
        early, low, high = self.find_ends(every, level, now)
        known = early @ np.where(level < now, numbers, 0)
        matrix = early[:, atoms]
        both, either = matrix @ self.most[atoms], abs(matrix) @ self.most[atoms]
        told = (2 * (low - known) > both - either) | (2 * (high - known) < both + either)
        rows = np.flatnonzero(told & (np.diff(matrix.indptr) > 0))
        matrix = matrix[rows]
        links = abs(matrix)
        _, part = connected_components(links.T @ links, directed=False)
        owner = np.zeros(len(rows), np.intp)
        owner[matrix.tocoo().row] = part[matrix.tocoo().col]
        columns = matrix.tocsc()
        row_order = np.argsort(owner, kind="stable")
        many = part.max(initial=-1) + 1
        split = np.split(row_order, np.cumsum(np.bincount(owner, minlength=many))[:-1])
        order = np.argsort(part, kind="stable")
        for places, own_rows in zip(
            np.split(order, np.cumsum(np.bincount(part, minlength=many))[:-1]), split, strict=True
        ):
            own = atoms[places]
            values = np.minimum(self.near[own], self.most[own])
            if not len(own_rows):
                numbers[own] = np.maximum(np.rint(values), 0)
                continue
            small = csr_array(columns[:, places].tocsr()[own_rows])
            where = rows[own_rows]
            keep = LinearConstraint(small, low[where] - known[where], high[where] - known[where])
            state = where.tobytes() + keep.lb.tobytes() + keep.ub.tobytes()
            if done.get(int(own[0])) == state:
                continue
            solved = _solve(values, self.most[own], keep, deadline)
            if solved is None:
                failed.append(_Part(where, own))
            else:
                numbers[own], done[int(own[0])] = solved, state
        return failed

    def cut(self, numbers: Floats, level: Codes, part: _Part) -> tuple[csr_array, float] | None:
        """A Benders cut, a row and its upper bound, that earlier levels violate; None if none is.

        For any multipliers y of rows low <= A x + K z <= high, y K z is at most the greatest y (A x
        + K z) that the bounds allow minus the least y A x.
        """
        now = int(level[part.atoms[0]])
        early, low, high = self.find_ends(part.rows, level, now)
        before = csr_array(early * (level < now))
        own = csr_array(early[:, part.atoms])
        known = before @ numbers
        many, sums = len(part.atoms), len(part.rows)
        slack = identity(sums, format="csr")
        cost = np.concatenate([np.zeros(many), np.ones(2 * sums)])
        most = np.concatenate([self.most[part.atoms], np.full(2 * sums, np.inf)])
        wide = hstack([own, slack, -slack], format="csr")
        there = np.isfinite(low)
        solved = linprog(
            cost, A_ub=vstack([wide, -wide[there]]),
            b_ub=np.concatenate([high - known, (known - low)[there]]),
            bounds=np.column_stack([np.zeros(len(most)), most]),
        )  # fmt: skip
        if solved.x is None or solved.fun < WHOLE:
            return None
        duals = -solved.ineqlin.marginals
        y = -duals[:sums].copy()
        y[there] += duals[sums:]
        y = np.round(y, 6)
        for sign in (1.0, -1.0):
            own_y = sign * y
            least = np.minimum(own_y @ own, 0) @ self.most[part.atoms]
            ends = np.where(own_y > 0, high, np.where(own_y < 0, low, 0.0))
            bound = float(own_y @ ends - least)
            row = csr_array((own_y @ before)[None, :])
            row.eliminate_zeros()
            if np.isfinite(bound) and row.nnz and (row @ numbers)[0] > bound + WHOLE:
                return row, bound + WHOLE
        return None


def _solve(near: Floats, most: Floats, sums: LinearConstraint, deadline: float) -> Floats | None:
    """Whole numbers from 0 to `most`, next to `near`, that keep sums; None if there are none."""
    seconds = deadline - time.perf_counter()
    if seconds <= 0:
        return None
    middle = np.clip(np.rint(near), 0, most)
    off = np.clip(2 * (middle - near), -1, 1)
    known = sums.A @ middle
    solved = milp(
        np.concatenate([1 + off, 1 - off]) + WHOLE,  # of one more, and of one fewer
        integrality=np.ones(2 * len(near)),
        bounds=Bounds(0, np.concatenate([most - middle, middle])),
        constraints=LinearConstraint(
            hstack([sums.A, -sums.A], format="csr"), sums.lb - known, sums.ub - known
        ),
        options={"time_limit": seconds, "mip_rel_gap": _GAP},
    )
    if solved.x is None:
        return None
    more, fewer = np.split(np.rint(solved.x), 2)
    return np.asarray(middle + more - fewer) + 0.0
