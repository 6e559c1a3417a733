"""Worlds near known worlds, in tables of many people: walks by moves that keep all exact counts.

A walk begins at a known world, and one person's group is changed by force. Moves (`find_moves`)
then repair what is out of its range, as in WalkSAT (Selman, Kautz and Cohen, 1994): of moves that
mend one number, the best is taken, and numbers that stay out of their range weigh more and more.
Many walks advance at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from fpbench.claims.set_counts import Floats, Mask
from fpbench.correction.facts.integer_moves import find_moves

Counts: TypeAlias = NDArray[np.int64]

_WALKS, _STEPS = 256, 400
"""Walks at once, and most steps of each."""
_LEAST_STEPS, _PATIENCE = 40, 4
"""Walks stop earlier, at this many times the step of the last one that arrived, or the least."""
_CANDIDATES = 64
"""Most moves that are compared in one step."""
_LONGEST = 24
"""Most numbers that a move of a walk changes."""
_NOISE = 0.05
"""Share of steps that take any of the candidates."""
_IDLE = 4
"""Rounds of walks that show nothing new, after which there are no more."""
_DENSE = 2 * 10**8
"""Most numbers of the matrix of exact counts by atoms; moves of larger ones are not sought."""
_SHARE = 0.3
"""Share of the time after which no more moves are sought."""


class WorldWalks:
    """Walks between worlds of atoms, people with the same sets."""

    def __init__(
        self, sets: csr_array, low: Floats, high: Floats, most: Counts, world: Counts,
        allows: Callable[[Counts], bool], deadline: float,
    ) -> None:  # fmt: skip
        """Walks of (A, K) people of each group in each atom.

        `sets`: (M, A) which atoms are in which set. `low`, `high`: (M, K). `most`: (A, K) people of
        an atom; 0 for a group that none of them can have. `world`: (A, K) a known world, or numbers
        to `repair`. `allows`: whether counts (A, K) are a world. `deadline`: of the search for
        moves.
        """
        self.rng = np.random.default_rng(20260104)
        self.atoms, self.most, self.worlds, self.allows = len(most), most, [world], allows
        exact = (low == high).all(axis=1)
        whole = csr_array(sets.astype(np.int64))
        self.ranged = csr_array(whole[~exact])
        moves = csr_array((0, self.atoms), dtype=np.int64)
        if self.atoms * exact.sum() <= _DENSE:
            now = time.perf_counter()
            moves = find_moves(csr_array(whole[exact]), now + (deadline - now) * _SHARE)
        self.moves = csr_array(vstack([moves.T, self.ranged @ moves.T]).T.tocsr())
        self.moves.eliminate_zeros()
        # Of two groups, the numbers of one tell those of the other.
        self.layers = [1] if most.shape[1] == 2 else list(range(most.shape[1]))
        self.low = np.vstack([np.zeros_like(most), low[~exact].astype(np.int64)])
        self.high = np.vstack([most, high[~exact].astype(np.int64)])
        self._walk = _Walk(self.moves, len(self.layers), self.rng)

    def show(self, shown: Mask, turn: float, deadline: float) -> None:
        """Add groups that atoms have people of in worlds near the known one to (A, K).

        `turn`: when no more walks begin.
        """
        idle, worlds = 0, self.worlds
        while idle < _IDLE and time.perf_counter() < turn:
            todo = (shown.sum(axis=1) == 1) & ((self.most > 0).sum(axis=1) > 1)
            if not todo.any():
                break
            idle += 1
            targets = self.rng.choice(np.flatnonzero(todo), _WALKS)
            starts = [worlds[place] for place in self.rng.integers(len(worlds), size=_WALKS)]
            for end in self._advance(starts, targets, shown[targets].argmax(axis=1), deadline):
                counts = _complete(end, worlds[0])
                if ((counts > 0) & ~shown).any() and self.allows(counts):
                    shown |= counts > 0
                    worlds.append(counts)
                    idle = 0

    def repair(self, deadline: float) -> Counts | None:
        """A world by walks from numbers (A, K) that have exact counts, but may be out of range."""
        nobody = np.zeros(0, np.intp)
        while time.perf_counter() < deadline:
            for end in self._advance(self.worlds * _WALKS, nobody, nobody, deadline):
                counts = _complete(end, self.worlds[0])
                if self.allows(counts):
                    return counts
        return None

    def _advance(
        self, starts: list[Counts], targets: NDArray[np.intp], own: NDArray[np.intp],
        deadline: float,
    ) -> list[Counts]:  # fmt: skip
        """(A, layers) numbers at the ends of walks that arrived.

        Each walk has an atom, `targets`, whose people are not all of the group `own` any more, if
        there are any.
        """
        where, many, height = np.arange(len(targets)), len(starts), len(self.low)
        low, high = (
            np.repeat(end.T[self.layers].reshape(1, -1), many, axis=0)
            for end in (self.low, self.high)
        )
        sizes = self.most.max(axis=1)[targets]
        if len(self.layers) == 1:
            low[where[own == 0], targets[own == 0]] = 1
            high[where[own == 1], targets[own == 1]] = sizes[own == 1] - 1
        else:
            high[where, own * height + targets] = sizes - 1
        state = np.array([
            np.vstack([start, self.ranged @ start]).T[self.layers].ravel() for start in starts
        ])  # fmt: skip
        arrived = self._walk.walk(state, low, high, deadline)
        ends = state[arrived].reshape(len(arrived), len(self.layers), height)
        return [end[:, : self.atoms].T for end in ends]


def _complete(end: Counts, world: Counts) -> Counts:
    """Counts (A, K) at the end of a walk from a world (A, K)."""
    return np.column_stack([world.sum(axis=1) - end[:, 0], end]) if end.shape[1] == 1 else end


class _Walk:
    """Many walks at once, of layers of numbers: those of one group each."""

    def __init__(self, moves: csr_array, layers: int, rng: np.random.Generator) -> None:
        self.rng, self.layers, self.size = rng, layers, moves.shape[1]
        sizes = np.diff(moves.indptr)
        longest = max(_LONGEST, np.quantile(sizes, 0.75)) if len(sizes) else 0
        self.moves = csr_array(moves[np.flatnonzero(sizes <= longest)])
        by_atom = csr_array(self.moves.T.tocsr())
        self.first = by_atom.indptr.astype(np.intp)
        atom = np.repeat(np.arange(self.size), np.diff(self.first))
        order = np.lexsort((rng.random(len(atom)), atom))
        self.move, self.change = by_atom.indices[order], by_atom.data[order]

    def walk(self, state: Counts, low: Counts, high: Counts, deadline: float) -> NDArray[np.intp]:
        """Move states (R, layers x numbers) into their ranges, in place; returns which ones are."""
        many, width = state.shape
        x, low, high = state.reshape(-1), low.ravel(), high.ravel()
        missed = np.maximum(low - x, 0) + np.maximum(x - high, 0)
        bad = missed > 0
        weight = np.ones(len(x), np.float32)
        last = np.full(many, -1)
        last_sign = np.zeros(many, np.int64)
        arrived, until = 0, _LEAST_STEPS
        for step in range(_STEPS):
            out = np.flatnonzero(bad)
            number = np.bincount(out // width, minlength=many)
            walks = np.flatnonzero(number)
            if many - len(walks) > arrived:
                arrived, until = many - len(walks), max(until, _PATIENCE * step)
            if not len(walks) or step > until or time.perf_counter() > deadline:
                break
            before = np.cumsum(number) - number
            chosen = out[before[walks] + (self.rng.random(len(walks)) * number[walks]).astype(int)]
            short = x[chosen] < low[chosen]
            walks, layer, taken, move, sign = self._list_moves(walks, chosen, short, width)
            if not len(walks):
                break
            who = np.repeat(np.arange(len(walks)), taken)
            base = (walks * width + layer * self.size)[who]
            ends = [(base, sign)]
            if self.layers > 1:
                other = self.rng.integers(1, self.layers, len(who)) + layer[who]
                ends.append(((walks * width)[who] + other % self.layers * self.size, -sign))
            score = self.rng.random(len(who)).astype(np.float32) * 0.01
            for at, change in ends:
                which, where, new = self._step(x, move, at, change)
                gap = np.maximum(low[where] - new, 0) + np.maximum(new - high[where], 0)
                score += np.bincount(which, (gap - missed[where]) * weight[where], len(who))
            score[(move == last[walks][who]) & (sign == -last_sign[walks][who])] += 1e6
            any_ = self.rng.random(len(walks)) < _NOISE
            score = np.where(any_[who], self.rng.random(len(who)), score)
            starts = np.cumsum(taken) - taken
            least = np.minimum.reduceat(score, starts)
            best = np.flatnonzero(score == least[who])
            best = best[np.unique(who[best], return_index=True)[1]]
            stuck = np.zeros(many, np.bool_)
            stuck[walks[least >= 0]] = True
            weight[out[stuck[out // width]]] += 1
            last[walks], last_sign[walks] = move[best], sign[best]
            for at, change in ends:
                _, where, new = self._step(x, move[best], at[best], change[best])
                x[where] = new
                missed[where] = np.maximum(low[where] - new, 0) + np.maximum(new - high[where], 0)
                bad[where] = missed[where] > 0
        return np.flatnonzero(~bad.reshape(many, width).any(axis=1))

    def _list_moves(
        self, walks: NDArray[np.intp], chosen: NDArray[np.intp], short: Mask, width: int
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], Counts, NDArray[np.intp], Counts]:
        """Walks that have candidates: moves of the chosen number, towards its range.

        Returns the walks, the layer of each one's number, how many candidates each has, and of all
        candidates the move and its sign.
        """
        layer, atom = np.divmod(chosen - walks * width, self.size)
        there = np.diff(self.first)[atom]
        walks, short, layer, atom, there = (
            part[there > 0] for part in (walks, short, layer, atom, there)
        )
        taken = np.minimum(there, _CANDIDATES)
        shift = (self.rng.random(len(walks)) * there).astype(int)
        who, nth = _count_up(taken)
        place = self.first[atom][who] + (shift[who] + nth) % there[who]
        sign = np.sign(self.change[place]) * np.where(short, 1, -1)[who]
        return walks, layer, taken, self.move[place], sign

    def _step(
        self, x: Counts, move: NDArray[np.intp], base: NDArray[np.intp], sign: Counts
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], Counts]:
        """Of each number that moves change: the move's place, the number's, and its new value."""
        first = self.moves.indptr[move].astype(np.intp)
        which, nth = _count_up(self.moves.indptr[move + 1] - first)
        place = first[which] + nth
        where = base[which] + self.moves.indices[place]
        return which, where, x[where] + sign[which] * self.moves.data[place]


def _count_up(lengths: NDArray[np.integer[Any]]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """0 to length - 1 of each, one after the other: which, and the number."""
    which = np.repeat(np.arange(len(lengths)), lengths)
    return which, np.arange(len(which)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
