"""Moves between worlds: whole numbers of people that change group, and that no exact count sees.

They are vectors of the kernel of a 0/1 matrix, a lattice. Elimination with pivots of 1 and -1 keeps
all numbers whole; where the pivots are atoms with many other people in their sets, the moves that
it leaves are short: eight people in tables of two columns. Two ways make them shorter still: pairs
are subtracted from each other while one becomes shorter (Gauss); and rows that have no such pivot,
as in tables of few people, are cleared by the method of Lenstra, Lenstra and Lovász (1982), block
by block.
"""

from __future__ import annotations

import time
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array, hstack, vstack

from fpbench.claims.set_counts import Floats

Floats32: TypeAlias = NDArray[np.float32]

_BLOCK = 1500
"""Moves that are shortened by each other."""
_SMALL_BLOCK = 150
"""Moves of a lattice that is reduced at once."""
_HEAVY = 1000.0
"""Weight of a row that must be cleared, in a lattice that is reduced."""
_NEAR_WHOLE = 2.0**23
"""Above this, single floats are not whole."""
_LONG = 2.0**22
"""Squared length of moves that are of no use, and whose products single floats do not hold."""


def find_moves(matrix: csr_array, deadline: float) -> csr_array:
    """(P, N) whole numbers with matrix @ move = 0, short ones; without those that take too long.

    `matrix`: (M, N) of 0 and 1. `deadline`: by `time.perf_counter`.
    """
    sizes = np.log(np.maximum(np.asarray(matrix.sum(axis=1)).ravel(), 1))
    order = np.argsort(-(matrix.T @ sizes), kind="stable")
    moves, left_over = _find_kernel(matrix[:, order].toarray().astype(np.float32), deadline)
    if left_over.any():
        moves = _reduce_left_over(moves, left_over, deadline)
    parts = []
    moves = csr_array(moves[np.flatnonzero(moves.multiply(moves).sum(axis=1) < _LONG)])
    for at in range(0, moves.shape[0], _BLOCK):
        if time.perf_counter() > deadline:
            break
        part = csr_array(moves[at : at + _BLOCK])
        used = np.unique(part.indices)
        block = part[:, used].toarray().astype(np.float32)
        _subtract_pairs(block, time.perf_counter() + (deadline - time.perf_counter()) / 2)
        row, column = np.nonzero(block)
        ends = (row, order[used[column]])
        values = block[row, column].astype(np.int64)
        parts.append(csr_array((values, ends), (len(block), len(order))))
    stacked = _stack(parts, matrix.shape[1])
    # Numbers that were too large for floats are no moves.
    kept = np.flatnonzero(abs(matrix @ stacked.T).sum(axis=0) == 0)
    return csr_array(stacked[kept])


def solve_whole(
    matrix: csr_array, sums: NDArray[np.int64], deadline: float
) -> NDArray[np.int64] | None:
    """(N,) whole numbers with matrix @ numbers = sums, short ones; None if none were found.

    `matrix`: (M, N) of 0 and 1. `sums`: (M,). `deadline`: by `time.perf_counter`.
    """
    # The sums are a last column, which should not be a pivot: moves that change it are solutions.
    sign = -1 if np.log1p(np.asarray(matrix.sum(axis=1)).ravel()) @ sums > 0 else 1
    moves = find_moves(csr_array(hstack([matrix, sign * sums[:, None]])), deadline)
    last = moves[:, [matrix.shape[1]]].toarray()[:, 0]
    solutions = moves[np.flatnonzero(np.abs(last) == 1)].toarray()
    if not len(solutions):
        return None
    best = solutions[np.abs(solutions).sum(axis=1).argmin()]
    return np.asarray(-sign * best[-1] * best[:-1])


def _stack(parts: list[csr_array], columns: int) -> csr_array:
    if not parts:
        return csr_array((0, columns), dtype=np.int64)
    return csr_array(vstack(parts, format="csr"))


def _find_kernel(rows: Floats32, deadline: float) -> tuple[csr_array, Floats32]:
    """Moves (P, N) of what is not a pivot, and (P, L) what they change in rows without a pivot.

    `rows` is changed. Pivots are taken in the order of columns.
    """
    m, n = rows.shape
    free = np.ones(m, np.bool_)
    pivots: dict[int, int] = {}
    waiting = list(range(n))
    while waiting and time.perf_counter() < deadline:
        skipped = []
        for column in waiting:
            if time.perf_counter() > deadline:
                break
            where = np.flatnonzero(free & (rows[:, column] != 0))
            ones = where[np.abs(rows[where, column]) == 1]
            if not len(ones):
                if len(where):
                    skipped.append(column)
                continue
            own = ones[np.argmin((rows[ones] != 0).sum(axis=1))] if len(ones) > 1 else ones[0]
            rows[own] *= rows[own, column]
            others = np.flatnonzero(rows[:, column])
            others = others[others != own]
            used = np.flatnonzero(rows[own])
            if len(others):
                rows[np.ix_(others, used)] -= np.outer(rows[others, column], rows[own, used])
            free[own] = False
            pivots[column] = int(own)
            if not free.any():
                break
        if len(skipped) == len(waiting) or not free.any():
            break
        waiting = skipped
    columns = np.array(list(pivots), np.intp)
    rest = np.setdiff1d(np.arange(n), columns)
    own = rows[np.ix_(np.array(list(pivots.values()), np.intp), rest)].T
    left_over = rows[free][:, rest].T
    whole = np.flatnonzero(np.abs(own).max(axis=1, initial=0) < _NEAR_WHOLE)
    # Of free columns, each has one move; the other columns of moves are pivots.
    places = np.concatenate([rest, columns])
    order = np.argsort(places)
    moves = hstack([eye_array(len(rest), format="csr"), csr_array(-own)], format="csr")
    moves = csr_array(moves[whole][:, order].astype(np.float64))
    return moves, left_over[whole][:, (left_over != 0).any(axis=0)]


def _reduce_left_over(moves: csr_array, left_over: Floats32, deadline: float) -> csr_array:
    """Moves that change nothing in the rows that are left over."""
    cleared = []
    for at in range(0, len(left_over), _SMALL_BLOCK):
        if time.perf_counter() > deadline:
            break
        part = slice(at, at + _SMALL_BLOCK)
        lattice = np.hstack([moves[part].toarray(), _HEAVY * left_over[part]])
        _reduce_lattice(lattice, deadline)
        good = (lattice[:, moves.shape[1] :] == 0).all(axis=1)
        cleared.append(csr_array(lattice[good, : moves.shape[1]]))
    return _stack(cleared, moves.shape[1])


def _reduce_lattice(basis: Floats, deadline: float, delta: float = 0.99) -> None:
    """Reduce a basis (P, N) of a lattice, in place, as Lenstra, Lenstra and Lovász do."""
    p = len(basis)
    factors, norms = _find_factors(basis)
    at, swaps = 1, 0
    while at < p and time.perf_counter() < deadline:
        while len(large := np.flatnonzero(np.abs(factors[at, :at]) > 0.51)):
            j = int(large[-1])
            times = np.rint(factors[at, j])
            basis[at] -= times * basis[j]
            factors[at, :j] -= times * factors[j, :j]
            factors[at, j] -= times
        factor = factors[at, at - 1]
        if norms[at] >= (delta - factor**2) * norms[at - 1]:
            at += 1
            continue
        swaps += 1
        new = norms[at] + factor**2 * norms[at - 1]
        factors[at, at - 1] = factor * norms[at - 1] / new
        norms[at], norms[at - 1] = norms[at - 1] * norms[at] / new, new
        basis[[at, at - 1]] = basis[[at - 1, at]]
        factors[[at, at - 1], : at - 1] = factors[[at - 1, at], : at - 1]
        low = factors[at + 1 :, at].copy()
        factors[at + 1 :, at] = factors[at + 1 :, at - 1] - factor * low
        factors[at + 1 :, at - 1] = low + factors[at, at - 1] * factors[at + 1 :, at]
        if swaps % 2000 == 0:
            factors, norms = _find_factors(basis)
        at = max(at - 1, 1)


def _find_factors(basis: Floats) -> tuple[Floats, Floats]:
    """Factors (P, P) and squared lengths (P,) of Gram and Schmidt."""
    upper = np.linalg.qr(basis.T, mode="r")
    diagonal = np.diag(upper).copy()
    diagonal[diagonal == 0] = 1e-12
    return (upper / diagonal[:, None]).T.copy(), diagonal**2


def _subtract_pairs(moves: Floats32, deadline: float) -> None:
    """Subtract or add moves (P, N) from each other, in place, while one becomes shorter."""
    if len(moves) < 2:
        return
    products = moves @ moves.T
    norms = np.diag(products).copy()

    def find_gain(rows: NDArray[np.intp]) -> Floats32:
        gains: Floats32 = norms[None, :] - 2 * np.abs(products[rows])
        gains[np.arange(len(rows)), rows] = 0
        return gains

    best = find_gain(np.arange(len(moves))).min(axis=1)
    while time.perf_counter() < deadline:
        i = int(best.argmin())
        gains = find_gain(np.array([i]))[0]
        j = int(gains.argmin())
        best[i] = gains[j]
        if best[i] >= 0:
            if best.min() >= 0:
                return
            continue
        product = products[i, j]
        times = np.rint(product / norms[j]) or np.sign(product)
        moves[i] -= times * moves[j]
        products[i] -= times * products[j]
        products[i, i] = norms[i] = norms[i] - 2 * times * product + times**2 * norms[j]
        products[:, i] = products[i]
        best[i] = find_gain(np.array([i]))[0].min()
        theirs = norms[i] - 2 * np.abs(products[i])
        theirs[i] = 0
        np.minimum(best, theirs, out=best)
