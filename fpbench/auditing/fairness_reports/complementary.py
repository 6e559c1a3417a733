"""Complementary suppression: further cells are left out, so that none follows by subtraction.

Numbers of people in a slice are sums of those in the slices that cut it further, and of those with
either label. Where a suppressed number follows from published ones by these sums, those go too that
can change together with it (`GroupSwaps`); where no such change is known, a neighbour in one of the
sums, the smallest that is published. Ranges may still follow, and what is 0 in a published slice is
0 in all that cut it further.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_array, csr_array, diags_array
from scipy.sparse.linalg import lsqr

from fpbench.auditing.fairness_reports.counts_with_noise import Counts
from fpbench.auditing.fairness_reports.exact_blocks import ExactBlocks
from fpbench.auditing.fairness_reports.group_swaps import GroupSwaps
from fpbench.auditing.fairness_reports.slices import Codes
from fpbench.auditing.fairness_reports.sums_of_counts import Sums
from fpbench.base.threads import use_one_thread
from fpbench.claims.set_counts import Floats, Mask

_FREE = 1e-3
"""A number that is less than this in random solutions of all sums is taken to have no freedom.

This is far above how exactly sums are solved, so that none without freedom is missed.
"""
_SOLUTIONS = 2
"""Random solutions: of a thousand numbers that have some freedom, one is that small by chance."""


@use_one_thread()
def find_complements(blocks: ExactBlocks, primary: Mask, least: float) -> Mask:
    """(B,) which further blocks to suppress, so that no number of the primary ones is recovered.

    Parameters
    ----------
    blocks
        All, with their exact numbers.
    primary
        (B,) which are suppressed.
    least
        Fewer people than this of a slice who are in none of the blocks that cut it further must
        not be counted either.
    """
    counts = Counts.of(blocks)
    sums = Sums.of(counts)
    search = Search(sums)
    shown = ~primary
    covered = np.zeros(len(sums.total), np.bool_)
    places = counts.place
    for p in (0, 1):  # what must not be known, whatever else publishes it
        covered[places[primary & (places[:, p] >= 0), p]] = True
    covered |= sums.phantom & (sums.total < least)
    has = places >= 0
    # What goes with a number: a rate tells of both predictions.
    partner = np.arange(len(sums.total))
    both = places[has.all(axis=1)]
    partner[both] = both[:, ::-1]
    shown &= ~(has & covered[places]).any(axis=1)
    free = np.zeros(len(sums.total), np.bool_)  # as more is suppressed, what is free stays free
    while True:
        public = sums.total == 0  # whoever knows the people knows that nobody is there
        for p in (0, 1):
            public[places[shown & has[:, p], p]] = True
        hidden_atoms = np.unique(places[~shown][has[~shown]])
        covered[hidden_atoms] = True
        covered &= sums.total > 0  # of nobody there is nothing to tell
        through: NDArray[np.intp] | None
        recovered, through = search.find_recovered(public, covered)
        if not len(recovered):
            determined = search.find_determined(public, covered & ~free)
            free |= covered & ~public & ~determined
            recovered, through = np.flatnonzero(determined), None
        out = search.choose_complements(recovered, through, public, partner)
        if not len(out):
            return ~shown & ~primary
        hit = np.zeros(len(sums.total), np.bool_)
        hit[out] = True
        shown &= ~(has & hit[places]).any(axis=1)


_DEAR = 10.0
"""How many parts of sums the whole of one is worth."""
_FAR = 1e3
_STEPS = 8
"""Greatest length of a path, and how many of its numbers are looked at."""


@dataclass(frozen=True)
class Search:
    """Looks for numbers that follow from public ones, and for those that are to go with them."""

    sums: Sums

    @cached_property
    def entries(self) -> coo_array:
        """The sums by row."""
        return self.sums.matrix.tocoo()

    @cached_property
    def columns(self) -> csc_array:
        """The sums by number."""
        return csc_array(self.sums.matrix)

    @cached_property
    def swaps(self) -> GroupSwaps:
        """Changes of numbers that no sum tells."""
        return GroupSwaps(self.sums)

    @cached_property
    def price(self) -> Floats:
        """(A,) what it costs to lose a number, besides others that must go with it."""
        whole = np.bincount(self.entries.col[self.entries.data < 0], minlength=len(self.sums.total))
        return np.asarray(1 + _DEAR * (whole > 0))

    def find_recovered(
        self, public: Mask, covered: Mask
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The first covered numbers that are left alone in a sum, and these sums.

        Sums are of public numbers, and of those that were left alone before.
        """
        known = public.copy()
        rows, atoms = self.entries.row, self.entries.col
        while True:
            unknown = ~known[atoms]
            rows, atoms = rows[unknown], atoms[unknown]
            left = np.bincount(rows, minlength=self.sums.matrix.shape[0])
            last = left[rows] == 1
            alone = atoms[last]
            if not len(alone) or covered[alone].any():
                return alone[covered[alone]], rows[last][covered[alone]]
            known[alone] = True

    def find_determined(self, public: Mask, among: Mask) -> Mask:
        """(A,) which of some are the same in all solutions of the sums, given the public ones.

        A random vector without its part in the row space of the sums is a random solution of them
        for public zeros; what is 0 in it is 0 in all.
        """
        unknown = np.flatnonzero(~public)
        matrix = self.columns[:, unknown].tocsr()
        parts = np.diff(matrix.indptr)
        # Rows of equal length are solved in half the steps.
        matrix = diags_array(1 / np.sqrt(parts[parts > 0])) @ matrix[parts > 0]
        rng = np.random.default_rng(20260105)
        fixed = among & ~public
        for _ in range(_SOLUTIONS):
            if not fixed.any():
                break
            start = rng.uniform(1, 2, len(unknown)) * rng.choice([-1, 1], len(unknown))
            part = lsqr(matrix, matrix @ start, atol=1e-9, btol=1e-9, iter_lim=20 * len(unknown))[0]
            fixed[unknown] &= np.abs(start - part) < _FREE
        return fixed

    def _find_costs(self, public: Mask) -> Floats:
        """(A,) about how many more public numbers must go when one goes.

        A sum that lacks only that one number would give it back, so that another of its members
        has to go, and so on, until a sum is reached that lacks one already: lengths of shortest
        paths, by relaxation.
        """
        free = public & (self.sums.total > 0)
        own = free[self.entries.col]
        rows, atoms = self.entries.row[own], self.entries.col[own]
        lacks = np.bincount(
            self.entries.row[~public[self.entries.col]], minlength=self.sums.matrix.shape[0]
        )
        cost = np.where(lacks > 0, 0.0, _FAR)
        for _ in range(_STEPS):
            sums = self.price + np.bincount(atoms, weights=cost[rows], minlength=len(free))
            shortest = np.full(len(cost), _FAR)
            np.minimum.at(shortest, rows, sums[atoms] - cost[rows])
            cost = np.where(lacks > 0, 0.0, np.minimum(shortest, _FAR))
        return np.asarray(self.price + np.bincount(atoms, cost[rows], minlength=len(free)))

    def choose_complements(
        self,
        atoms: NDArray[np.intp],
        through: NDArray[np.intp] | None,
        public: Mask,
        partner: NDArray[np.intp],
    ) -> Codes:
        """Public numbers that hide these: of the cheapest swap each, or else one of a sum.

        That is the sum that the number follows from, or else one with its neighbours.
        """
        chosen: set[int] = set()
        there = self.sums.total > 0
        costs = np.where(public, 1 + self.sums.total / self.sums.total.max(initial=1), 0.0)
        costs = np.append(np.where(there, costs, np.inf), np.inf)
        rest = []
        hidden: set[int] = set()
        queue = [(int(atom), place) for place, atom in enumerate(atoms)]
        for atom, place in queue:  # which grows: what goes with a number must be hidden, too
            if atom in hidden or not there[atom]:
                continue
            swap = self.swaps.find_cheapest(atom, costs)
            if not len(swap):
                rest.append((atom, place))
                continue
            hidden.update(swap.tolist())
            gone = swap[public[swap]].tolist()
            new = {number for own in gone for number in (own, int(partner[own]))} - chosen
            chosen |= new
            costs[list(new)] = 0
            queue += [(number, -1) for number in sorted(new - hidden)]
        if rest:
            chosen |= self._choose_neighbours(rest, through, public, partner, chosen)
        return np.array(sorted(chosen), np.int64)

    def _choose_neighbours(
        self,
        atoms: Sequence[tuple[int, int]],
        through: NDArray[np.intp] | None,
        public: Mask,
        partner: NDArray[np.intp],
        gone: set[int],
    ) -> set[int]:
        """A public number each, of the sum it follows from, or else of one with its neighbours."""
        cost = self._find_costs(public)
        chosen = set(gone)
        for atom, place in atoms:
            reached, new = {atom}, [atom]
            while new:
                equations = np.unique(_list_entries(self.columns, new))
                if through is not None and place >= 0 and new == [atom]:
                    equations = through[[place]]
                near = np.unique(_list_entries(self.sums.matrix, equations))
                if chosen & set(near.tolist()):
                    break  # one that goes already may be enough
                free = near[public[near] & (self.sums.total[near] > 0)]
                if len(free):
                    best = int(free[np.lexsort((self.sums.total[free], cost[free]))[0]])
                    chosen |= {best, int(partner[best])}
                    break
                new = [int(j) for j in near if int(j) not in reached]
                reached.update(new)
        return chosen


def _list_entries(
    matrix: csr_array | csc_array, lines: Sequence[int] | NDArray[np.integer[Any]]
) -> NDArray[np.intp]:
    """Where some rows of a matrix by rows, or columns of one by columns, are not 0."""
    ends = matrix.indptr
    parts = [matrix.indices[ends[line] : ends[line + 1]] for line in lines]
    return np.concatenate(parts) if parts else np.zeros(0, np.intp)
