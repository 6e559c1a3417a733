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
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from fpbench.claims.set_counts import Floats, Mask

Counts: TypeAlias = NDArray[np.int64]
Swaps: TypeAlias = NDArray[np.int32]
"""(S, L) atoms, counted from 1: a person of each joins the second group, if negative the first."""

_LIST = 1 << 17
"""Swaps of a short list, about."""
_HOPE = 0.1
"""People more than a search has shown, that it may show the next time."""
_LATEST, _GREED = 0.5, 2
"""How much the latest search counts in how many people are hoped for, and the power of these hopes
to which ways are drawn."""
_SPARE, _FEW = 2, 8
"""Joined swaps, of which some are the same, in terms of the list; and how many times fewer of those
wanted are enough."""
_WORDS = 8
"""Most words of 64 bits that mark the people of a swap."""
_FOUND, _FOUND_EACH = 1 << 15, 8
"""Most swaps that are found by one merge, and more for each person wanted, about: they show the
same people again and again."""
_SAMPLE = 1 << 15
"""Swaps by which it is guessed how many pairs cancel."""
_CHUNK = 1 << 14
"""Pairs that are compared at once."""
_BLOCKS = 64
"""Blocks of sets: lists cancel in all sets of the first blocks."""
_MERGES = 6
"""Most merges; the last one gives swaps of 64 people."""
_SLACK = 1, 1, 3, np.inf
"""Counts that can change by less than this, up or down, must not change at all."""
_LONGEST, _PARTS = 32, 4
"""The longest known swaps that are parts of others, and most parts."""
_TRIES = 64
"""Sums of swaps that are tried in one world, where not all that is known is exact."""
_IDLE = 48
"""Searches that show nothing new, after which there are no more."""


class _Way(NamedTuple):
    """How to search."""

    size: int = _LIST
    """Swaps of a list, about."""
    rare: float = 1.0
    """Weight of the logarithm of a set's size in the order of sets; that of chance is 1."""
    slow: bool = False
    """Whether merges cancel no more sets than swaps with somebody wanted can; or as many as all."""
    composed: bool = False
    """Whether known swaps may be parts of longer ones."""


_ANY_WAY = _Way()
_SIZES, _RARE = tuple(_LIST << place for place in range(4)), (0.0, 0.5, 1.0, 2.0, 4.0)
_KINDS = ((False, False), (False, True), (True, False))  # slow, composed


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
        # Shares of people that ways show in a second; what was never tried comes first.
        self.rates = [np.full(len(values), np.inf) for values in (_SIZES, _RARE, _KINDS)]

    def show(self, shown: Mask, turn: float, deadline: float) -> None:
        """Add groups that atoms have people of in worlds near the known one to (A, K).

        `turn`: when no more searches begin.
        """
        idle = 0
        while idle < _IDLE and time.perf_counter() < turn:
            todo = (shown.sum(axis=1) == 1) & ((self.most > 0).sum(axis=1) > 1)
            if not todo.any():
                break
            idle += 1
            one = self.rng.choice(np.flatnonzero(todo))
            own = int(shown[one].argmax())
            pair = own, int(self.rng.choice(np.flatnonzero((self.most[one] > 0) & ~shown[one])))
            arms = [_draw(rate, self.rng) for rate in self.rates]
            way = _Way(_SIZES[arms[0]], _RARE[arms[1]], *_KINDS[arms[2]])
            before, began = shown.sum(), time.perf_counter()
            for swaps in self._find(self.world, pair, todo, deadline, way):
                kept = self._keep(pair, swaps, shown)
                if not len(kept):
                    continue
                idle = 0
                self.found.append(_Found(pair, kept))
                shown[abs(kept) - 1, np.where(kept > 0, pair[1], pair[0])] = True
            new = (shown.sum() - before + _HOPE) / todo.sum() / (time.perf_counter() - began)
            for rate, arm in zip(self.rates, arms, strict=True):
                old = rate[arm] if np.isfinite(rate[arm]) else new
                rate[arm] = old + (new - old) * _LATEST

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
        seen = self.world > 0
        while most > 0 and any(map(len, left.values())):
            new, free = self.world, np.ones(len(self.world), np.bool_)
            for (pair, _), swaps in left.items():
                new = self._add(new, pair, swaps, free)
            most -= 1
            yield new
            seen |= new > 0
            for key, swaps in left.items():  # who is shown by now needs no more worlds
                groups = np.where(swaps > 0, key[0][1], key[0][0])
                left[key] = swaps[~seen[abs(swaps) - 1, groups].all(axis=1)]

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
        way: _Way = _ANY_WAY,
    ) -> Iterator[Swaps]:  # fmt: skip
        """Swaps between two groups that keep the counts that must not change."""
        undone = self._undo(pair) if way.composed else None
        rng, many = self.rng, np.diff(self.sets.indptr)
        slack = np.minimum(*self._find_slack(world, pair))
        kept = np.flatnonzero((slack < rng.choice(_SLACK)) & (many > 0))
        order = np.argsort(way.rare * np.log(many[kept]) + rng.exponential(size=len(kept)))
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
        for swaps in _merge(tokens, wanted, signed, rng, deadline, way):
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

    def _add(self, world: Counts, pair: tuple[int, int], swaps: Swaps, free: Mask) -> Counts:
        """A world after swaps of atoms that are free; `free` is changed."""
        parts, tries = [_choose_disjoint(swaps, free)], 0
        while parts and tries < _TRIES:
            part, tries = parts.pop(), tries + 1
            new = _make(world, pair, swaps[part])
            if self.exact or self.allows(new):
                world = new
                free[abs(swaps[part]) - 1] = False
            elif len(part) > 1:
                parts += np.array_split(part, 2)
        return world


def _draw(rates: Floats, rng: np.random.Generator) -> int:
    """A place; the greater its number, the more often."""
    new = np.isinf(rates)
    chances = new.astype(np.float64) if new.any() else rates**_GREED
    return int(rng.choice(len(rates), p=chances / chances.sum()))


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


class _Joined(NamedTuple):
    """S swaps, each joined of one of the left and one of the right list; or single tokens.

    So a list of swaps of 32 people takes no more memory than one of two.
    """

    halves: tuple[_Joined, _Joined] | None
    """The left and the right list; None of tokens."""
    at: tuple[NDArray[np.int32], ...]
    """Places in these, (S,) each; of tokens, token + A alone."""
    names: Counts
    """(S,) the same number for the same people."""
    marks: NDArray[np.uint64]
    """(S, words) bits of its people, different ones if there are not too many."""

    def take(self, chosen: NDArray[np.intp]) -> _Joined:
        """Those at these places."""
        places = tuple(own[chosen] for own in self.at)
        return _Joined(self.halves, places, self.names[chosen], self.marks[chosen])

    def add_up(self, numbers: Counts, known: dict[int, Counts]) -> Counts:
        """(S,) sums of numbers, by token + A. `known`: those of lists, by id."""
        if self.halves is None:
            return numbers[self.at[0]]
        if id(self) not in known:
            left, right = (
                half.add_up(numbers, known)[own]
                for half, own in zip(self.halves, self.at, strict=True)
            )
            known[id(self)] = left + right
        return known[id(self)]

    def list_tokens(self, chosen: NDArray[np.integer[Any]]) -> NDArray[np.int32]:
        """(chosen, people) tokens + A."""
        places = [own[chosen] for own in self.at]
        if self.halves is None:
            return np.asarray(places[0][:, None])
        return np.hstack([
            half.list_tokens(own) for half, own in zip(self.halves, places, strict=True)
        ])  # fmt: skip

    def find_first(self) -> NDArray[np.int32]:
        """(S,) the first token + A of each."""
        return self.at[0] if self.halves is None else self.halves[0].find_first()[self.at[0]]


class _Merger:
    """Joins swaps whose sums cancel to longer ones."""

    def __init__(self, sums: Counts, rng: np.random.Generator, size: int) -> None:
        """`sums`: (blocks, 2 A + 1) sums of sets up to each block, by token + A."""
        self.sums, self.rng, self.size, self.atoms = sums, rng, size, sums.shape[1] // 2

    def make_list(self, tokens: Swaps) -> _Joined:
        """Tokens (P, 1) as swaps of one."""
        words = min(_WORDS, -(-self.atoms // 64))
        order = self.rng.permutation(self.atoms + 1)
        bit: Counts = np.mod(order[abs(tokens[:, 0])], 64 * words)
        marks = np.zeros((len(tokens), words), np.uint64)
        marks[np.arange(len(tokens)), bit // 64] = 1 << (bit % 64).astype(np.uint64)
        names: Counts = self.rng.integers(-(2**62), 2**62, size=len(self.sums.T))
        places = (tokens[:, 0] + self.atoms).astype(np.int32)
        return _Joined(None, (places,), names[places], marks)

    def join(self, left: _Joined, right: _Joined, block: int) -> _Joined:
        """Pairs of different people whose sums up to the block cancel."""
        who, place, names = self._match(left, right, block)
        apart, marks = [np.zeros(0, np.intp)], [left.marks[:0]]
        for start in range(0, len(who), _CHUNK):  # they stay in the processor's cache
            part = slice(start, start + _CHUNK)
            own = left.marks.take(who[part], axis=0)
            other = right.marks.take(place[part], axis=0)
            fits = np.flatnonzero(np.bitwise_or.reduce(own & other, axis=1) == 0)
            fits = self._choose(fits, -(-_CHUNK * self.size // len(who)))
            apart.append(start + fits)
            marks.append(own[fits] | other[fits])
        kept = np.concatenate(apart)
        places = who[kept].astype(np.int32), place[kept].astype(np.int32)
        return _Joined((left, right), places, names[kept], np.concatenate(marks))

    def finish(self, left: _Joined, right: _Joined, wanted: int) -> Swaps:
        """Pairs of different people whose sums cancel. `wanted`: how many people are."""
        who, place, _ = self._match(left, right, len(self.sums) - 1)
        kept = self._choose(np.arange(len(who)), _FOUND + _FOUND_EACH * wanted)
        who, place = who[kept], place[kept]
        joined = np.hstack([left.list_tokens(who), right.list_tokens(place)])
        joined -= np.int32(self.atoms)
        people = np.sort(abs(joined), axis=1)
        return np.asarray(joined[(people[:, 1:] > people[:, :-1]).all(axis=1)])

    def find_block(self, left: _Joined, right: _Joined, block: int) -> int:
        """The last block, this one at least, up to which enough pairs cancel, about."""
        pairs = self.size * _SPARE / (1 if left is right else _FEW)
        high, some = len(self.sums) - 2, []
        for swaps in (left, right):
            many = len(swaps.names)
            chosen = self.rng.integers(many, size=_SAMPLE) if many > _SAMPLE else np.arange(many)
            some.append(swaps.list_tokens(chosen))
            pairs *= len(chosen) / many
        while block < high:
            middle = (block + high + 1) // 2
            own, keys = (self.sums[middle][tokens].sum(axis=1) for tokens in some)
            keys.sort()
            found = np.searchsorted(keys, -own, "right") - np.searchsorted(keys, -own)
            enough = found.sum() >= pairs
            block, high = (middle, high) if enough else (block, middle - 1)
        return block

    def _match(
        self, left: _Joined, right: _Joined, block: int
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], Counts]:
        """Places in both lists, and names, of pairs whose sums up to the block cancel."""
        known: dict[int, Counts] = {}
        keys = right.add_up(self.sums[block], known)
        order = np.argsort(keys)
        keys, mine = keys[order], order[::-1]
        own = -keys[::-1]
        if left is not right:
            own = -left.add_up(self.sums[block], known)
            mine = np.argsort(own)
            own = own[mine]
        start = np.searchsorted(keys, own)
        many = np.searchsorted(keys, own, "right") - start
        hit = np.flatnonzero(many)
        start, many, mine = start[hit], many[hit], mine[hit]
        # As many of each of the left, or of each one wanted: else few would be in most.
        first = mine if left is right else left.find_first()[mine]
        alike = np.bincount(first)
        share = self.size * _SPARE / max(int(np.count_nonzero(alike)), 1) / alike[first]
        each = np.minimum(many, (share + self.rng.random(len(hit))).astype(np.intp))
        who = np.repeat(np.arange(len(hit)), each)
        nth = np.arange(len(who)) - np.repeat(np.cumsum(each) - each, each)
        shift = (self.rng.random(len(hit)) * many).astype(np.intp)
        place, who = order[start[who] + (shift[who] + nth) % many[who]], mine[who]
        names = left.names[who] + right.names[place]
        # The same people, joined in another way, are the same swap: of a slot one is kept.
        slots = 1 << (len(names).bit_length() + 1)
        slot: Counts = (names ^ (names >> 32)) & (slots - 1)
        last = np.empty(slots, np.int32)
        numbers = np.arange(len(names), dtype=np.int32)
        last[slot] = numbers
        kept = self._choose(np.flatnonzero(last[slot] == numbers), _SPARE * self.size)
        return who[kept], place[kept], names[kept]

    def _choose(self, some: NDArray[np.intp], most: int) -> NDArray[np.intp]:
        """About so many of them at most."""
        return some if len(some) <= most else some[self.rng.random(len(some)) < most / len(some)]


def _merge(
    tokens: Swaps, wanted: Mask, sums: Counts, rng: np.random.Generator, deadline: float, way: _Way
) -> Iterator[Swaps]:
    """Swaps with somebody wanted whose sums cancel.

    `tokens`: (P, 1). `sums`: (blocks, 2 A + 1) sums of sets up to each block, by token + A.
    """
    merger, block = _Merger(sums, rng, way.size), 0
    swaps = rest = merger.make_list(tokens)
    if not wanted.all():
        # The same people are different swaps if another one of them is the one who is wanted.
        swaps = rest.take(np.flatnonzero(wanted))
        swaps = swaps._replace(names=4 * swaps.names)
    for _ in range(_MERGES):
        found = merger.finish(swaps, rest, int(wanted.sum()))
        yield found
        # The first of a swap is somebody wanted.
        if len(found):
            shown = np.isin(swaps.find_first(), found[:, 0] + merger.atoms)
            swaps = swaps.take(np.flatnonzero(~shown))
        if not len(swaps.names) or time.perf_counter() > deadline:
            break
        before, block = block, merger.find_block(swaps if way.slow else rest, rest, block)
        if before == block > 0:
            break
        joined = merger.join(rest, rest, block)
        swaps, rest = joined if swaps is rest else merger.join(swaps, rest, block), joined
        if not len(rest.names):
            break
