"""Worlds near a known world, in tables of many people: swaps of groups that no exact count sees.

Some people of one group and as many of another exchange their groups. What a person adds to counts
is written as a sum of random numbers, one of each set that holds the person; where the sums of
several people cancel, all counts stay as they are. Such people are found by the generalised
birthday method (Wagner, 2002): lists of few people whose sums cancel in some sets are merged into
lists of twice as many people, whose sums cancel in more sets.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from fpbench.claims.set_counts import Floats, Mask

Counts: TypeAlias = NDArray[np.int64]
Swaps: TypeAlias = NDArray[np.int32]
"""(S, L) atoms, counted from 1: a person of each joins the second group, if negative the first."""

_LIST, _GROWTH = 1 << 17, 2
"""Swaps of a list, about; and how often it may double, after searches that show nothing new."""
_SPARE = 4
"""Joined swaps, of which some are the same, in terms of the list."""
_BLOCKS = 32
"""Blocks of sets: lists cancel in all sets of the first blocks."""
_MERGES = 6
"""Most merges; the last one gives swaps of 64 people."""
_RARE_FIRST = 0.0, 0.5, 1.0, 2.0
"""Weights of the logarithm of a set's size in the order of sets."""
_SLACK = 1, 1, 3, np.inf
"""Counts that can change by less than this, up or down, must not change at all."""
_LONGEST, _PARTS = 32, 4
"""The longest known swaps that are parts of others, and most parts."""
_TRIES = 64
"""Sums of swaps that are tried in one world, where not all that is known is exact."""
_IDLE = 16
"""Searches that show nothing new, after which there are no more."""


class _Found(NamedTuple):
    """Swaps that show somebody, each of which leads from the known world to another."""

    pair: tuple[int, int]
    """The first and the second group."""
    swaps: Swaps


class _Undone(NamedTuple):
    """Atoms that can change as if somebody in them had the other group: others of a known swap do.

    A swap of an atom and others keeps counts: what the others do to counts is the opposite of what
    the atom does.
    """

    known: int
    """Number of found swaps that are in it."""
    place: NDArray[np.int32]
    """(2 A + 1,) row of others, by atom + A, negative if it joins the first group; 0 if none."""
    others: Swaps
    """(R, _LONGEST - 1), with zeros at the end."""

    def insert(self, swaps: Swaps, parts: int = _PARTS) -> Iterator[Swaps]:
        """Swaps in which so many atoms at most are replaced by their others.

        `swaps`: (S, L), with zeros at the end of short ones.
        """
        rows = self.place[swaps + len(self.place) // 2]
        whole = ~rows.any(axis=1)
        width = np.count_nonzero(swaps, axis=1)
        for own in np.unique(width[whole]):
            yield swaps[whole & (width == own), :own]
        if whole.all() or not parts:
            return
        swaps, rows = swaps[~whole], rows[~whole]
        own = np.arange(len(swaps)), (rows > 0).argmax(axis=1)
        swaps[own] = 0
        swaps = np.hstack([swaps, self.others[rows[own]]])
        swaps = np.take_along_axis(swaps, np.argsort(swaps == 0, axis=1, kind="stable"), axis=1)
        swaps = swaps[:, : np.count_nonzero(swaps, axis=1).max()]
        atoms = np.sort(abs(swaps), axis=1)
        apart = (atoms[:, 1:] > atoms[:, :-1]) | (atoms[:, 1:] == 0)
        yield from self.insert(swaps[apart.all(axis=1)], parts - 1)


class WorldSwaps:
    """Swaps between worlds of atoms, people with the same sets."""

    def __init__(
        self, sets: csr_array, low: Floats, high: Floats, most: Counts, world: Counts,
        allows: Callable[[Counts], bool], clauses: bool,
    ) -> None:  # fmt: skip
        """Of (A, K) people of each group in each atom.

        `sets`: (M, A) which atoms are in which set. `low`, `high`: (M, K). `most`: (A, K) people of
        an atom; 0 for a group that none of them can have. `world`: (A, K) a known world, or numbers
        to `repair`. `allows`: whether counts (A, K) are a world. `clauses`: whether more is known
        than counts.
        """
        self.rng = np.random.default_rng(20260104)
        self.sets, self.low, self.high = csr_array(sets.astype(np.int64)), low, high
        self.most, self.allows, self.clauses = most, allows, clauses
        self.exact = bool((low == high).all()) and not clauses
        self.world = world
        self.found: list[_Found] = []
        self.undone: dict[tuple[int, int], _Undone] = {}

    def show(self, shown: Mask, deadline: float) -> None:
        """Add groups that atoms have people of in worlds near the known one to (A, K)."""
        idle, growth, gains = 0, 0, np.ones(2)  # of searches without and with known swaps
        while idle < _IDLE and time.perf_counter() < deadline:
            todo = (shown.sum(axis=1) == 1) & ((self.most > 0).sum(axis=1) > 1)
            if not todo.any():
                break
            idle += 1
            one = self.rng.choice(np.flatnonzero(todo))
            own = int(shown[one].argmax())
            pair = own, int(self.rng.choice(np.flatnonzero((self.most[one] > 0) & ~shown[one])))
            composed = int(self.rng.random() * gains.sum() > gains[0])
            before, undone = shown.sum(), self._undo(pair) if composed else None
            for swaps in self._find(self.world, pair, todo, deadline, undone, _LIST << growth):
                kept = self._keep(pair, swaps, shown)
                if not len(kept):
                    continue
                idle = 0
                self.found.append(_Found(pair, kept))
                shown[abs(kept) - 1, np.where(kept > 0, pair[1], pair[0])] = True
            gains[composed] = (gains[composed] + shown.sum() - before + 1) / 2
            growth = max(growth - 1, 0) if not idle else min(growth + 1, _GROWTH)

    def repair(self, deadline: float) -> Counts | None:
        """A world (A, K) by swaps from numbers that have exact counts, but may be out of range."""

        def miss(world: Counts) -> Counts:
            missed: Counts = np.maximum(-world, 0) + np.maximum(world - self.most, 0)
            return missed

        world = self.world
        while (missed := miss(world)).any():
            if time.perf_counter() > deadline:
                return None
            wanted: Mask = np.any(missed > 0, axis=1)
            own = int(self.rng.choice(np.nonzero(missed)[1]))
            other = (own + int(self.rng.integers(1, world.shape[1]))) % world.shape[1]
            for swaps in self._find(world, (own, other), wanted, deadline):
                chosen = _choose_disjoint(swaps, np.ones(len(world), np.bool_))
                new = _make(world, (own, other), swaps[chosen])
                if miss(new).sum() < missed.sum():
                    world = new
                    break
        return world

    def list_worlds(self, most: int) -> Iterator[Counts]:
        """At most so many worlds that show what was shown; in each, many swaps are made."""
        lists: dict[tuple[tuple[int, int], int], list[Swaps]] = {}
        for own in self.found:
            lists.setdefault((own.pair, own.swaps.shape[1]), []).append(own.swaps)
        left = {key: np.concatenate(parts) for key, parts in lists.items()}
        while most > 0 and any(map(len, left.values())):
            new, free = self.world, np.ones(len(self.world), np.bool_)
            for key, swaps in left.items():
                new, taken = self._add(new, key[0], swaps, free)
                left[key] = np.delete(swaps, taken, axis=0)
            most -= 1
            yield new

    def _undo(self, pair: tuple[int, int]) -> _Undone:
        """The others of known swaps, for atoms that have nobody who could change the other way."""
        world, atoms = self.world, len(self.most)
        known, place, others = self.undone.get(pair) or _Undone(
            0, np.zeros(2 * atoms + 1, np.int32), np.zeros((1, _LONGEST - 1), np.int32)
        )
        blocks = [others]
        for own in self.found[known:]:
            if own.pair not in (pair, pair[::-1]):
                continue
            swaps = own.swaps if own.pair == pair else -own.swaps
            if not 1 < (width := swaps.shape[1]) <= _LONGEST:
                continue
            nobody = world[abs(swaps) - 1, np.where(swaps > 0, pair[1], pair[0])] == 0
            row, column = np.nonzero(nobody & (place[atoms - swaps] == 0))
            rest = np.zeros((len(row), _LONGEST - 1), np.int32)
            inside = np.arange(width) != column[:, None]
            rest[:, : width - 1] = swaps[row][inside].reshape(-1, width - 1)
            place[atoms - swaps[row, column]] = sum(map(len, blocks)) + np.arange(len(row))
            blocks.append(rest)
        undone = _Undone(len(self.found), place, np.concatenate(blocks))
        self.undone[pair] = undone
        return undone

    def _find(
        self, world: Counts, pair: tuple[int, int], todo: Mask, deadline: float,
        undone: _Undone | None = None, size: int | None = None,
    ) -> Iterator[Swaps]:  # fmt: skip
        """Swaps between two groups that keep the counts that must not change.

        `undone`: known swaps that may be parts of longer ones. `size`: swaps of a list, about.
        """
        rng, many = self.rng, np.diff(self.sets.indptr)
        slack = np.minimum(*self._find_slack(world, pair))
        kept = np.flatnonzero((slack < rng.choice(_SLACK)) & (many > 0))
        order = np.argsort(
            rng.choice(_RARE_FIRST) * np.log(many[kept]) + rng.exponential(size=len(kept))
        )
        block = np.empty(len(kept), np.intp)
        block[order] = np.arange(len(kept)) * _BLOCKS // max(len(kept), 1)
        draws = rng.integers(-(2**63), 2**63 - 1, size=len(kept))
        sums = self.sets[kept].T @ np.where(block[:, None] <= np.arange(_BLOCKS), draws[:, None], 0)
        first, second = pair
        leave = np.flatnonzero((world[:, first] > 0) & (self.most[:, second] > 0))
        enter = np.flatnonzero((world[:, second] > 0) & (self.most[:, first] > 0))
        others = np.flatnonzero([] if undone is None else undone.place) - len(world)
        tokens = np.concatenate([leave + 1, -enter - 1, others]).astype(np.int32)[:, None]
        wanted = todo[abs(tokens[:, 0]) - 1]
        yield tokens[wanted & (sums[abs(tokens[:, 0]) - 1, -1] == 0)]
        sums += rng.integers(2**62)  # as many leave a group as join it
        signed = np.concatenate([-sums[::-1], np.zeros_like(sums[:1]), sums]).T.copy()
        for swaps in _merge(tokens, wanted, signed, rng, deadline, size or _LIST):
            yield from [swaps] if undone is None else undone.insert(swaps)

    def _keep(self, pair: tuple[int, int], swaps: Swaps, shown: Mask) -> Swaps:
        """Swaps that lead to worlds, one for each person of whom they show a new group."""
        world, alone = self.world, shown.sum(axis=1) == 1
        fresh = np.stack([~shown[:, own] & alone for own in pair])
        swaps = swaps[self.rng.permutation(len(swaps))]
        if not self.exact:
            swaps = swaps[fresh[(swaps > 0).astype(np.intp), abs(swaps) - 1].any(axis=1)]
            who = np.repeat(np.arange(len(swaps)), swaps.shape[1])
            moved = csr_array(
                (np.sign(swaps.ravel()).astype(np.int64), (who, abs(swaps.ravel()) - 1)),
                (len(swaps), len(world)),
            )
            change = csr_array(moved @ self.sets.T)
            up, down = self._find_slack(world, pair)
            bad = (change.data > up[change.indices]) | (-change.data > down[change.indices])
            rows = np.repeat(np.arange(len(swaps)), np.diff(change.indptr))
            swaps = np.delete(swaps, rows[bad], axis=0)
        which, place = np.nonzero(fresh[(swaps > 0).astype(np.intp), abs(swaps) - 1])
        first = np.unique(swaps[which, place], return_index=True)[1]
        swaps = swaps[np.unique(which[first])]
        if self.clauses:
            swaps = swaps[[self.allows(_make(world, pair, one)) for one in swaps]]
        return swaps

    def _find_slack(self, world: Counts, pair: tuple[int, int]) -> tuple[Floats, Floats]:
        """(M,) how many people may join the second group from the first, and the other way."""
        (first, second), ends = (
            (self.sets @ world[:, pair]).T,
            (self.low[:, pair], self.high[:, pair]),
        )
        (low, low_2), (high, high_2) = (end.T for end in ends)
        return np.minimum(first - low, high_2 - second), np.minimum(high - first, second - low_2)

    def _add(
        self, world: Counts, pair: tuple[int, int], swaps: Swaps, free: Mask
    ) -> tuple[Counts, NDArray[np.intp]]:
        """A world after swaps of atoms that are free, and their numbers; `free` is changed."""
        parts, taken, tries = [_choose_disjoint(swaps, free)], [np.zeros(0, np.intp)], 0
        while parts and tries < _TRIES:
            part, tries = parts.pop(), tries + 1
            new = _make(world, pair, swaps[part])
            if self.exact or self.allows(new):
                world = new
                taken.append(part)
                free[abs(swaps[part]) - 1] = False
            elif len(part) > 1:
                parts += np.array_split(part, 2)
        return world, np.concatenate(taken)


def _make(world: Counts, pair: tuple[int, int], swaps: Swaps) -> Counts:
    """The world after swaps."""
    new, atom, sign = (
        world.copy(),
        np.abs(swaps.ravel()).astype(np.intp) - 1,
        np.sign(swaps.ravel()),
    )
    np.subtract.at(new[:, pair[0]], atom, sign)
    np.add.at(new[:, pair[1]], atom, sign)
    return new


def _choose_disjoint(swaps: Swaps, free: Mask) -> NDArray[np.intp]:
    """Numbers of swaps of free atoms that have none in common."""
    free = free.copy()
    chosen, left = [np.zeros(0, np.intp)], np.flatnonzero(free[abs(swaps) - 1].all(axis=1))
    while len(left):
        atoms = abs(swaps[left]) - 1
        claim = np.full(len(free), len(swaps))
        np.minimum.at(claim, atoms.ravel(), np.repeat(left, atoms.shape[1]))
        own = (claim[atoms] == left[:, None]).all(axis=1)
        chosen.append(left[own])
        free[atoms[own]] = False
        left = left[~own & free[atoms].all(axis=1)]
    return np.concatenate(chosen)


def _merge(
    tokens: Swaps, wanted: Mask, sums: Counts, rng: np.random.Generator, deadline: float, size: int
) -> Iterator[Swaps]:
    """Swaps with somebody wanted whose sums cancel.

    `tokens`: (P, 1). `sums`: (blocks, 2 A + 1) sums of sets up to each block, by token + A.
    """

    def add_up(swaps: Swaps, block: int) -> Counts:
        total: Counts = sums[block][swaps + sums.shape[1] // 2].sum(axis=1)
        return total

    def join(left: Swaps, right: Swaps, block: int) -> Swaps:
        keys = -add_up(right, block)
        order = np.argsort(keys)
        keys, own = keys[order], add_up(left, block)
        start = np.searchsorted(keys, own)
        many = np.searchsorted(keys, own, "right") - start
        # Each of the left is in as many: else few would be in most.
        some = max(int(np.count_nonzero(many)), 1)
        each = np.minimum(many, -(-size * _SPARE // some))
        who = np.repeat(np.arange(len(left)), each)
        nth = np.arange(len(who)) - np.repeat(np.cumsum(each) - each, each)
        shift = (rng.random(len(left)) * many).astype(np.intp)
        place = order[start[who] + (shift[who] + nth) % many[who]]
        # The same people, joined in another way, are the same swap.
        name = label(left, left is not right)[who] + label(right)[place]
        first = np.unique(name, return_index=True)[1]
        if len(first) > 2 * size:
            first = rng.choice(first, 2 * size, replace=False)
        joined = np.hstack([left[who[first]], right[place[first]]])
        atoms = np.sort(abs(joined), axis=1)
        return joined[(atoms[:, 1:] > atoms[:, :-1]).all(axis=1)][:size]

    def count(block: int) -> int:
        keys = np.sort(add_up(rest, block))
        found = np.searchsorted(keys, -keys, "right") - np.searchsorted(keys, -keys)
        return int(found.sum())

    def label(swaps: Swaps, first: bool = False) -> Counts:
        own: Counts = names[swaps].sum(axis=1)
        return own + 3 * names[swaps[:, 0]] if first else own

    names: Counts = rng.integers(-(2**62), 2**62, size=len(sums.T))
    rest, last, block = tokens, len(sums) - 1, 0
    swaps = rest if wanted.all() else rest[wanted]
    for _ in range(_MERGES):
        found = join(swaps, rest, last)
        yield found
        # The first of a swap is somebody wanted.
        if len(found):
            swaps = swaps[~np.isin(swaps[:, 0], found[:, 0])]
        if not len(swaps) or time.perf_counter() > deadline:
            break
        high = last - 1
        while block < high:
            middle = (block + high + 1) // 2
            block, high = (middle, high) if count(middle) >= size * _SPARE else (block, middle - 1)
        joined = join(rest, rest, block)
        swaps, rest = joined if swaps is rest else join(swaps, rest, block), joined
