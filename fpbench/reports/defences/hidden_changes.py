"""Changes of people's groups that change no published number: what they change cannot be recovered.

A reader who knows everybody's columns knows which kinds of people each number counts. A number
follows from published ones if it is a linear combination of them, that is, if every change of it
changes a published one, too. So the search is for a change that alters all suppressed numbers and
no published one. As long as there is none, further numbers are suppressed.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf
from scipy.sparse import csr_array, diags_array, vstack

from fpbench.base.errors import InputError
from fpbench.claims.set_counts import Floats, Mask
from fpbench.reports.defences.sums_of_counts import Sums
from fpbench.reports.slices import Codes, number_slices

_MOST = 12_000
"""Most published numbers of one prediction: their products take 1.2 GB."""
_NONE = 1e-6
"""Smaller numbers are 0 up to rounding, which is below 1e-10."""
_UNLIKE = 1e-3
"""Relative perturbation of equal rows and costs, so that rounding does not choose among them."""


def find_members(sums: Sums, people: Codes) -> csr_array:
    """(A, T) 1 where people of a kind are counted in a number.

    Parameters
    ----------
    sums
        Of the numbers.
    people
        (T, columns + 2) codes of the columns, label and prediction of each kind; -1 of a value that
        is in no slice.
    """
    many = len(sums.keys)
    numbers, kinds = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    first, pattern = number_slices((sums.keys >= 0).astype(np.int64))
    for table, example in enumerate(first):
        own, cut = np.flatnonzero(pattern == table), np.flatnonzero(sums.keys[example] >= 0)
        _, cell = number_slices(np.concatenate([sums.keys[own][:, cut], people[:, cut]]))
        number = np.full(int(cell.max()) + 1, -1)
        number[cell[: len(own)]] = own
        counted = number[cell[len(own) :]]
        kinds.append(np.flatnonzero(counted >= 0))
        numbers.append(counted[kinds[-1]])
    places = np.concatenate(numbers), np.concatenate(kinds)
    members = csr_array((np.ones(len(places[0])), places), shape=(many, len(people)))
    rest = sums.matrix[:, many:].T @ sums.matrix[:, :many]  # who is in no part of a whole
    every = csr_array(vstack([members, -(rest @ members)]))
    every.eliminate_zeros()
    return every


class Basis:
    """Published numbers of which no one is a combination of the others, and how all depend on them.

    Parameters
    ----------
    members
        (A, T) as of `find_members`, of people of one prediction.
    published
        (A,) whether a number is published.
    """

    def __init__(self, members: csr_array, published: Mask) -> None:
        own = np.flatnonzero(published & (np.diff(members.indptr) > 0))
        if len(own) > _MOST:
            raise InputError(
                f"complementary: {len(own):,} numbers of people with one prediction would be "
                f"published, and what follows can be found from at most {_MOST:,}: cross fewer "
                "columns"
            )
        self.members = members
        self._rng = np.random.default_rng(20260106)
        self._weights = self._rng.uniform(1 - _UNLIKE, 1 + _UNLIKE, members.shape[0])
        rows = csr_array(diags_array(self._weights[own]) @ members[own])
        factor, order, rank = np.zeros((0, 0)), np.zeros(0, np.int64), 0
        if len(own):
            products = (rows @ rows.T).toarray(order="F")
            factor, order, rank, _ = dpstrf(products, lower=1, tol=_NONE, overwrite_a=1)
            order = order - 1
        self._basis, self._others = own[order[:rank]], own[order[rank:]]
        self._rows, self._root, self._rest = rows[order[:rank]], factor[:rank, :rank], factor[rank:]

    def _solve(self, sides: Floats) -> Floats:
        """The products of the basis, solved for sides."""
        halves = solve_triangular(self._root, sides, lower=True, check_finite=False)
        return np.asarray(
            solve_triangular(self._root, halves, lower=True, trans=1, check_finite=False)
        )

    def draw_changes(self, many: int) -> Floats:
        """(T, many) random changes of people that change no published number."""
        changes = self._rng.normal(size=(self.members.shape[1], many))
        for _ in range(2):  # twice, for what rounding leaves
            changes -= self._rows.T @ self._solve(self._rows @ changes)
        return changes

    def find_change(self, hidden: Mask, costs: Floats) -> Floats:
        """(T,) a change of all hidden numbers, and of published ones that cost little.

        Parameters
        ----------
        hidden
            (A,).
        costs
            (A,) of a change of each number.
        """
        change = self.draw_changes(1)[:, 0]
        follow = np.flatnonzero(hidden & ~find_changed(self.members, change))
        if len(follow):
            by = np.zeros(len(self._basis))
            chosen = self._choose(follow, costs * self._weights)
            by[chosen] = self._rng.uniform(1, 2, len(chosen))
            change += self._rows.T @ self._solve(by)
        return change

    def _choose(self, numbers: Codes, costs: Floats) -> list[int]:
        """Members of the basis that must change for all `numbers`, combinations of it, to change.

        If one alone changes, all combinations with it change, and no others. So for each number one
        of its members is chosen, such that the fewest others are suppressed.
        """
        own = (self._rows @ self.members[numbers].T).toarray()
        parts = np.abs(self._solve(own).T)
        needs = parts > np.minimum(_NONE, parts.max(axis=1, keepdims=True) / 2)
        others = solve_triangular(
            self._root, self._rest[:, : len(own)].T, lower=True, trans=1, check_finite=False
        )
        tied = np.abs(others.T) > _NONE
        losses = costs[self._others]
        prices = costs[self._basis] + losses @ tied
        chosen: list[int] = []
        while (gain := needs.sum(axis=0)).any():
            best = int((gain / (prices + _NONE)).argmax())
            chosen.append(best)
            needs = needs[~needs[:, best]]
            gone = np.flatnonzero(tied[:, best])
            prices -= losses[gone] @ tied[gone]
            losses[gone] = 0
        return chosen


def find_changed(members: csr_array, change: Floats) -> Mask:
    """(A,) whether a number changes with a change of people."""
    return np.asarray(np.abs(members @ change) > _NONE)


class Freedom:
    """How hidden numbers of people of one prediction can change, as some are published again.

    Parameters
    ----------
    basis
        Of the numbers that are published.
    hidden
        (A,) numbers that must not follow.
    again
        (A,) those of them that may be published.
    """

    def __init__(self, basis: Basis, hidden: Mask, again: Mask) -> None:
        own = np.diff(basis.members.indptr) > 0
        back = np.flatnonzero(again & hidden & own)
        numbers = np.flatnonzero(hidden & own)
        draws = basis.draw_changes(min(len(back) + 3, basis.members.shape[1]))
        changes = basis.members[numbers] @ draws
        spanned = np.linalg.qr((basis.members[back] @ draws).T)[0]
        lengths = np.linalg.norm(changes, axis=1)
        off = np.linalg.norm(changes - (changes @ spanned) @ spanned.T, axis=1)
        ever = off < _NONE * lengths  # others cannot follow
        self._numbers, self._changes = numbers[ever], changes[ever]

    def find_told(self, number: int) -> Codes:
        """Numbers that follow if one is published, itself included; none if it follows already."""
        if number not in self._numbers:
            return np.zeros(0, np.int64)
        change = self._changes[self._numbers == number][0]
        norms = np.linalg.norm(self._changes, axis=1)
        along = np.abs(self._changes @ change)
        return np.asarray(self._numbers[along > (1 - _NONE**2) * norms * np.linalg.norm(change)])

    def publish(self, number: int) -> None:
        """Fix a number, and with it what follows."""
        told = np.isin(self._numbers, self.find_told(number))
        if told.any():
            change = self._changes[self._numbers == number][0]
            change = change / np.linalg.norm(change)
            self._numbers, self._changes = self._numbers[~told], self._changes[~told]
            self._changes -= np.outer(self._changes @ change, change)
