"""Complementary suppression: more cells are left out, so that no suppressed one is a difference.

Numbers of people in a slice are sums of those in the slices that cut it further, and of those with
either label. Where a suppressed number is the only unknown of such a sum, the numbers that can
change together with it (`GroupSwaps`) are suppressed too, or a neighbour in the sum. What else
follows for a reader who knows the people is found, and hidden, by changes of people
(`hidden_changes`). Finally, what need not be suppressed is published again. Ranges may still
follow, and what is 0 in a published slice is 0 in all slices that cut it further.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_array, csr_array

from fpbench.base.threads import use_one_thread
from fpbench.claims.set_counts import Floats, Mask
from fpbench.reports.defences.counts_with_noise import Counts
from fpbench.reports.defences.group_swaps import GroupSwaps
from fpbench.reports.defences.hidden_changes import (
    Basis,
    Freedom,
    find_changed,
    find_members,
)
from fpbench.reports.defences.sums_of_counts import Sums
from fpbench.reports.exact_blocks import ExactBlocks
from fpbench.reports.slices import Codes, number_slices


@use_one_thread()
def find_complements(blocks: ExactBlocks, primary: Mask, least: int, people: Codes) -> Mask:
    """(B,) further blocks to suppress, so that no number of suppressed ones is a sum or difference.

    Parameters
    ----------
    blocks
        All, with their exact numbers.
    primary
        (B,) whether a block is suppressed.
    least
        The people of a slice who lack a value, and so are in no block that cuts it further, must
        not be counted either if they are fewer than this.
    people
        (n, columns + 2) codes of the columns, label and prediction of each.
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
    secret = covered.copy()
    has = places >= 0
    # What is suppressed with a number: a rate gives away both predictions.
    partner = np.arange(len(sums.total))
    both = places[has.all(axis=1)]
    partner[both] = both[:, ::-1]
    shown &= ~(has & covered[places]).any(axis=1)
    kinds = people[number_slices(people)[0]]
    members = find_members(sums, kinds)
    parts = [csr_array(members[:, kinds[:, -1] == p]) for p in (0, 1)]
    changed = [np.zeros(len(sums.total), np.bool_) for _ in parts]
    while True:
        public = sums.total == 0  # readers who know the people know that it is 0
        for p in (0, 1):
            public[places[shown & has[:, p], p]] = True
        hidden_atoms = np.unique(places[~shown][has[~shown]])
        covered[hidden_atoms] = True
        covered &= sums.total > 0  # of nobody there is nothing to tell
        recovered, through = search.find_recovered(public, covered)
        out = search.choose_complements(recovered, through, public, partner)
        if not len(out):
            losses = search.find_losses(public)
            published = losses > 0
            partners = published & (partner != np.arange(len(partner)))
            costs = losses + np.where(partners, losses[partner], 0)
            for p, part in enumerate(parts):
                hidden = covered & ~public & (np.diff(part.indptr) > 0)
                if (hidden & ~changed[p]).any():
                    change = Basis(part, published).find_change(hidden, costs)
                    changed[p] = find_changed(part, change)
            out = np.flatnonzero(published & (changed[0] | changed[1]))
        if not len(out):
            break
        hit = np.zeros(len(sums.total), np.bool_)
        hit[out] = True
        shown &= ~(has & hit[places]).any(axis=1)
    hidden = covered & ~public
    bases = [Basis(part, published) for part in parts]
    shown |= _find_needless(bases, places, hidden, ~shown & ~(has & secret[places]).any(axis=1))
    return ~shown & ~primary


_AGAIN = 300
"""Number of blocks, the largest, that are checked for whether they may be published after all."""


def _find_needless(
    bases: Sequence[Basis], places: NDArray[np.intp], hidden: Mask, complements: Mask
) -> Mask:
    """(B,) complements that can be published again without giving away anything hidden.

    Parameters
    ----------
    bases
        Of what is published, by prediction.
    places
        (B, 2) as of `Counts`.
    hidden
        (A,) numbers that must not follow.
    complements
        (B,) blocks that are suppressed as complements of others.
    """
    has = (places >= 0) & np.append(hidden, False)[places]
    size = np.abs(bases[0].members).sum(axis=1) + np.abs(bases[1].members).sum(axis=1)
    blocks = np.flatnonzero(complements)
    blocks = blocks[np.argsort(-size[places[blocks]].max(axis=1), kind="stable")][:_AGAIN]
    again = np.zeros(len(hidden), np.bool_)
    again[places[blocks][has[blocks]]] = True
    freedoms = [Freedom(basis, hidden, again) for basis in bases]
    needless = np.zeros(len(complements), np.bool_)
    for block in blocks:
        told = [f.find_told(int(places[block, p])) for p, f in enumerate(freedoms)]
        follow = np.isin(np.arange(len(hidden)), np.concatenate(told))
        # What follows from a block must be published with it, by blocks of which all follows.
        joined = blocks[(~has | follow[places]).all(axis=1)[blocks]]
        if (
            needless[block]
            or not np.isin(np.flatnonzero(follow), places[joined][has[joined]]).all()
        ):
            continue
        needless[joined] = True
        for p, freedom in enumerate(freedoms):
            if len(told[p]):
                freedom.publish(int(places[block, p]))
    return needless


_DEAR = 10.0
"""How many parts of sums the whole of one is worth."""
_FAR = 1e3
_STEPS = 8
"""Greatest length of a path, and most of its numbers that are tried."""


@dataclass(frozen=True)
class Search:
    """Finds suppressed numbers that follow from public ones, and complements that hide them."""

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
        """Changes of numbers that keep all sums."""
        return GroupSwaps(self.sums)

    @cached_property
    def price(self) -> Floats:
        """(A,) cost of suppressing a number, without that of its complements."""
        whole = np.bincount(self.entries.col[self.entries.data < 0], minlength=len(self.sums.total))
        return np.asarray(1 + _DEAR * (whole > 0))

    def find_recovered(
        self, public: Mask, covered: Mask
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The first covered numbers that are the only unknown of a sum, and these sums.

        Known are public numbers, and those recovered before.
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

    def find_losses(self, public: Mask) -> Floats:
        """(A,) cost of suppressing each number: from 1 to 2, by its people, if it is public."""
        losses = 1 + self.sums.total / self.sums.total.max(initial=1)
        return np.where(public & (self.sums.total > 0), losses, 0.0)

    def _find_costs(self, public: Mask) -> Floats:
        """(A,) about how many more public numbers must be suppressed when one is.

        A sum in which only that number is unknown would give it back, so another of its members
        must be suppressed, and so on, until a sum is reached that has another unknown: lengths of
        shortest paths, by relaxation.
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
        through: NDArray[np.intp],
        public: Mask,
        partner: NDArray[np.intp],
    ) -> Codes:
        """Public numbers that hide `atoms`: of the cheapest swap of each, or else one of a sum.

        That is the sum that the number follows from, or else one with its neighbours.
        """
        chosen: set[int] = set()
        there = self.sums.total > 0
        costs = np.append(np.where(there, self.find_losses(public), np.inf), np.inf)
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
    """Column indices of entries in some rows of a CSR matrix; of a CSC matrix, the reverse."""
    ends = matrix.indptr
    parts = [matrix.indices[ends[line] : ends[line + 1]] for line in lines]
    return np.concatenate(parts) if parts else np.zeros(0, np.intp)
