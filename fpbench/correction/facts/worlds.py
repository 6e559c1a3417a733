"""Worlds: groups of all people that satisfy everything known, and proofs that there are no others.

Whether a person's group follows from facts is decided by integer programs over numbers of people
with the same sets, whose groups can be exchanged. Of those who have had one group in every world so
far, a program looks for a world in which as many as possible have another: first near a known
world, where only people with similar sets change, and then among all. If none can change, their
group is proven; each world is a witness that the groups of those who differ are not provable.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from fpbench.base.errors import FpbenchError
from fpbench.claims.clauses import Clauses
from fpbench.claims.set_counts import Facts, Floats, Mask
from fpbench.correction.exact.highs import HighsModel
from fpbench.correction.facts.linear_programs import number_rows

_GAP = 1.0
"""A program ends if no world can have more than twice as many people of another group."""
_NEAR = 50
"""Atoms that change in the first programs; and so many times more in later ones:"""
_GROWTH = 2
_FAILURES = 3
"""Programs without a new world until more atoms change."""
_WANTED = 2
"""Sets that undecided atoms have more in common with the chosen one than others, as it were."""
_SECONDS = 2.0
"""Longest program in which few atoms change."""

_Whole = NDArray[np.int64]


class Worlds(NamedTuple):
    """What is decided about n people."""

    possible: Mask
    """(n, K) groups that a person may have."""
    seen: Mask
    """(n, K) groups that a person has in some world that the facts allow."""

    @property
    def undecided(self) -> Mask:
        """(n,) who is neither proven nor has two groups in different worlds."""
        return np.asarray((self.possible.sum(axis=1) > 1) & (self.seen.sum(axis=1) < 2))


def find_worlds(
    facts: Facts, possible: Mask, groups: NDArray[np.intp] | None, deadline: float
) -> Worlds:
    """Decide whether the groups of people who are not proven follow from facts.

    `possible`: (n, K) groups that people may have, as far as was proven. `groups`: (n,) codes of
    groups that are a world, the true ones for instance; None if none is known. `deadline`: by
    `time.perf_counter`.

    Raises ContradictionError if there is no world.
    """
    left, rest = facts.take(~facts.noisy).remove_people(possible)
    own, many, k = possible[rest], len(left), facts.groups
    draws = np.random.default_rng(20260105).integers(2**63, size=(many + k, 2))
    first, atom = number_rows(left.membership @ draws[:many] + own.astype(np.int64) @ draws[many:])
    world = np.zeros((len(first), k), np.int64)
    if groups is not None:
        np.add.at(world, (atom, groups[rest]), 1)
    program = _Program(
        left.membership[first].T.tocsr(), left.low, left.high, ~left.derived, left.clauses,
        np.bincount(atom, minlength=len(first)), own[first],
    )  # fmt: skip
    may, met = own[first], np.zeros((len(first), k), np.bool_)
    for part in program.split():
        found = program.narrow(part).decide(None if groups is None else world[part], deadline)
        if found is None:
            raise left.contradiction(np.unique(left.membership[first[part]].indices))
        may[part], met[part] = found
    possible, seen = possible.copy(), possible & (possible.sum(axis=1) == 1)[:, None]
    possible[rest] = may[atom]
    if not facts.loose:
        seen[rest] = met[atom]
    return Worlds(possible, seen)


class _Program(NamedTuple):
    """Numbers of people of each group among those with the same sets, and what is known of them."""

    sets: csr_array
    """(M, A) which atoms are in which set; an atom is people with the same sets."""
    low: Floats
    high: Floats
    """(M, K)."""
    told: Mask
    """(M,) whether a range does not follow from others."""
    clauses: Clauses
    people: NDArray[np.intp]
    """(A,)."""
    possible: Mask
    """(A, K) groups that they may have."""

    def split(self) -> list[NDArray[np.intp]]:
        """Atoms that facts connect, the fewest first."""
        many, clause, inside = len(self.low), self.clauses.clause, self.sets.tocoo()
        sets = self.clauses.sets
        heads = np.repeat(sets[np.searchsorted(clause, clause), 0], 2)  # of each clause, one set
        ends = (
            np.concatenate([inside.row, heads]),
            np.concatenate([many + inside.col, sets.ravel()]),
        )
        size = many + len(self.people)
        edges = coo_array((np.ones(len(ends[0]), np.int8), ends), (size, size))
        label = connected_components(edges, directed=False)[1][many:]
        order = np.argsort(label, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(label[order])) + 1)
        return sorted((part for part in parts if len(part)), key=len)

    def narrow(self, atoms: NDArray[np.intp], world: _Whole | None = None) -> _Program:
        """The program of some atoms; the others have the groups of a world, or no set in common."""
        inside, clauses = self.sets[:, atoms], self.clauses
        kept = np.diff(inside.indptr) > 0
        low, high = self.low, self.high
        if world is not None:
            rest = world.copy()
            rest[atoms] = 0
            gone = self.sets @ rest
            low, high = low - gone, high - gone
            clauses = replace(clauses, most=clauses.most - clauses.add_up(gone))
        touched = clauses.clause[kept[clauses.sets].any(axis=1)]
        kept[clauses.sets[np.isin(clauses.clause, touched)]] = True
        new = np.where(kept, np.cumsum(kept) - 1, -1)
        return _Program(
            inside[kept], low[kept], high[kept], self.told[kept], clauses.renumber(new),
            self.people[atoms], self.possible[atoms],
        )  # fmt: skip

    def decide(self, world: _Whole | None, deadline: float) -> tuple[Mask, Mask] | None:
        """(A, K) groups that are possible, and those in worlds that were found; None without any.

        `world`: (A, K) people of each group in a world, if one is known.
        """
        possible, many = self.possible.copy(), len(self.people)
        if world is None:
            world, proven = self.solve(np.zeros(0, np.intp), deadline - time.perf_counter())
            if world is None:
                return None if proven else (possible, np.zeros(possible.shape, np.bool_))
        seen, rng = world > 0, np.random.default_rng(20260106)
        size, failures = _NEAR, 0
        while (left := deadline - time.perf_counter()) > 0:
            todo = np.flatnonzero((seen.sum(axis=1) == 1) & (possible.sum(axis=1) > 1))
            if not len(todo):
                break
            near = np.arange(many)
            if size < many:
                alike = self.sets.T @ self.sets[:, [rng.choice(todo)]].toarray()[:, 0]
                alike[todo] += _WANTED
                near = np.sort(np.argsort(-alike - rng.random(many))[:size])
                left = min(left, _SECONDS)
            now = np.flatnonzero(np.isin(near, todo))
            found, proven = self.narrow(near, world).solve(now, left, world[near])
            if found is not None and ((found > 0) & ~seen[near]).any():
                world[near] = found
                seen[near] |= found > 0
                failures = 0
            elif size >= many:
                if proven:
                    possible[todo] = seen[todo]
                break
            elif not proven:
                size = max(size // _GROWTH, 1)
            elif failures < _FAILURES:
                failures += 1
            else:
                size, failures = size * _GROWTH, 0
        return possible, seen

    def solve(
        self, targets: NDArray[np.intp], seconds: float, world: _Whole | None = None
    ) -> tuple[_Whole | None, bool]:
        """A world (A, K) in which many targets have another group; None if none was found.

        The second value is whether there is no world, or none in which a target differs.

        `targets`: atoms that have one group in the known world (A, K).
        """
        model, count = self._model()
        start = None if world is None else (count.ravel(), world.ravel().astype(np.float64))
        groups = np.zeros(0, np.intp) if world is None else world[targets].argmax(axis=1)
        differ = model.columns(np.zeros(len(targets)), 1.0, -1.0, whole=True)
        pairs = np.stack([count[targets, groups], differ], axis=1)
        for pair, size in zip(pairs, self.people[targets], strict=True):
            model.row(pair, [1, 1], -np.inf, size)
        try:
            answer = model.solve(seconds, gap=_GAP, start=start)
        except FpbenchError:  # HiGHS gave up
            return None, False
        if answer is None or answer.values is None:
            return None, answer is None
        world = np.rint(answer.values[count]).astype(np.int64)
        counts = self.sets.astype(np.int64) @ world
        if (
            (world.sum(axis=1) != self.people).any()
            or ((counts < self.low) | (counts > self.high)).any()
            or len(self.clauses.find_broken(counts))
        ):
            return None, False
        return world, answer.proven and answer.bound > -0.5

    def _model(self) -> tuple[HighsModel, NDArray[np.intp]]:
        """A program whose solutions are worlds, and its variables (A, K)."""
        model, sets, most = HighsModel(), self.sets, self.people[:, None] * self.possible
        count = model.columns(np.zeros(most.shape), most, whole=True)
        ones = np.ones(count.size)
        for own, size in zip(count, self.people, strict=True):
            model.row(own, ones[: len(own)], size, size)
        sizes = (sets @ self.people)[:, None]
        told = ((self.low > 0) | (self.high < sizes)) & self.told[:, None]
        # Of exact counts of all groups, the first follows from the size.
        told[:, 0] &= (self.low < self.high).any(axis=1)
        for number, group in np.argwhere(told):
            own = count[sets.indices[sets.indptr[number] : sets.indptr[number + 1]], group]
            model.row(own, ones[: len(own)], self.low[number, group], self.high[number, group])
        clauses = self.clauses
        many = len(clauses.most)
        terms = clauses.factors.ravel(), (np.repeat(np.arange(many), 2), clauses.sets.ravel())
        sums = coo_array(terms, (many, len(self.low))).tocsr() @ sets.astype(np.int64)
        starts = np.flatnonzero(np.diff(clauses.clause)) + 1
        for rows in np.split(np.arange(many), starts) if many else ():
            holds = model.columns(np.zeros(len(rows) if len(rows) > 1 else 0), 1.0, whole=True)
            if len(holds):
                model.row(holds, np.ones(len(rows)), 1, len(rows))
            for place, row in enumerate(rows):
                part, group = slice(*sums.indptr[row : row + 2]), clauses.group[row]
                factors, own = sums.data[part], sums.indices[part]
                top = np.maximum(factors, 0) @ most[own, group]
                one, slack = holds[place : place + 1], top - clauses.most[row]
                if slack > 0:
                    free = top if len(one) else clauses.most[row]
                    model.row(
                        [*count[own, group], *one],
                        [*factors, *np.full(len(one), slack)],
                        -np.inf,
                        free,
                    )
        return model, count
