"""Whether people's groups follow from everything known: integer programs.

A world is groups of all people that satisfy all facts, ranges and clauses. Programs are over
numbers of people with the same sets, whose groups can be exchanged. Of those who have had one group
in every world so far, swaps (`WorldSwaps`), strong where counts are exact, and walks
(`WorldWalks`), strong where they are ranges, look for worlds in which they have another; and then
programs for a world in which as many as possible do: first near a known world, where only few
people change, and then among all. If none can change, their group is proven; a world in which they
do is a witness that it is not provable.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array, csr_array, kron
from scipy.sparse.csgraph import connected_components

from fpbench.base.errors import FpbenchError
from fpbench.claims.clauses import Clauses
from fpbench.claims.set_counts import Facts, Floats, Mask
from fpbench.correction.exact.highs import WHOLE_TOLERANCE, HighsModel
from fpbench.correction.facts.integer_moves import solve_whole
from fpbench.correction.facts.linear_programs import Certificate, number_rows
from fpbench.correction.facts.world_swaps import WorldSwaps
from fpbench.correction.facts.world_walks import WorldWalks

_GAP = 0.5
"""A program ends if no world can have half as many people more of another group."""
_NEAR = 50
"""Atoms that change in the first programs; and so many times more in later ones:"""
_GROWTH = 2
_FAILURES = 3
"""Programs without a new world until more atoms change."""
_LEAST_SHARE = 0.1
"""Least share of the time left for people whom facts connect."""
_FEW = 0.01
"""Share of the atoms of a part that may wait for other parts."""
_NEARBY, _TURNS = 0.95, 16
"""Share of the time of swaps and walks, and the number of turns in it: what has shown more in its
last turn has the next one; then programs follow."""
_ROUNDED = 0.5
"""Share of the time in which a first world is sought near a fractional one, if none is known."""
_SECONDS = 2.0
"""Longest program in which few atoms change."""

_MOST = 1000
"""Examples of worlds; fewer if their codes are more than:"""
_CODES = 1 << 26

_Whole = NDArray[np.int64]


class Worlds(NamedTuple):
    """What is decided about n people."""

    possible: Mask
    """(n, K) groups that a person may have."""
    seen: Mask
    """(n, K) groups that a person has in some world that the facts allow."""
    examples: NDArray[np.int16]
    """(W, n) codes of groups in worlds, the known one first.

    People with the same sets can exchange their groups: of these, somebody has each group that is
    seen, in one of the first worlds."""
    proofs: tuple[Certificate, ...] = ()
    """Proofs by linear programs, in the order in which they were found."""
    by_solver: int = 0
    """Number of people whose group only integer programs prove."""

    @classmethod
    def know(cls, possible: Mask, groups: NDArray[np.intp] | None) -> Worlds:
        """What the groups (n,) of a world, if any is known, and possible groups (n, K) tell."""
        many, k = possible.shape
        examples = np.zeros((0, many), np.int16)
        if groups is not None:
            examples = groups[None].astype(np.int16)
        return cls(possible, (examples[:, :, None] == np.arange(k)).any(axis=0), examples)

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
    program, first, atom = WorldProgram.of(left, possible[rest])
    world = np.zeros(program.possible.shape, np.int64)
    if groups is not None:
        np.add.at(world, (atom, groups[rest]), 1)
    may, met = program.possible.copy(), world > 0
    program = program._replace(possible=may)
    # Of large parts the largest first: easier than its size tells, it leaves time to others.
    parts = sorted(program.split(), key=lambda part: (len(part) > _NEAR, -len(part)))
    known = [[] if groups is None else [world[part]] for part in parts]
    sizes = np.array([program.people[part].sum() for part in parts])
    for few in (_FEW, 0.0):  # the last few of a part wait for the other parts
        for place in np.flatnonzero(sizes):
            if (now := time.perf_counter()) > deadline:
                break
            least = min(_LEAST_SHARE, 1 / np.count_nonzero(sizes[place:]))
            share = max(least, sizes[place] / sizes[place:].sum())
            part = parts[place]
            found = program.narrow(part).decide(
                known[place], now + (deadline - now) * share, int(few * len(part))
            )
            if found is None:
                raise left.contradiction(np.unique(left.membership[first[part]].indices))
            may[part], seen_of_part, worlds = found
            undecided = (seen_of_part.sum(axis=1) == 1) & (may[part].sum(axis=1) > 1)
            sizes[place] = program.people[part][undecided].sum()
            if not facts.loose:  # else not all worlds of ranges and clauses are possible
                met[part] |= seen_of_part
                known[place] = worlds
    told = Worlds.know(possible, groups)
    possible = possible.copy()
    possible[rest] = may[atom]
    if facts.loose or not all(known):
        return told._replace(possible=possible)
    order = np.lexsort((atom,) if groups is None else (groups[rest], atom))
    inside = _list_people(parts, known, program.people, facts.groups)
    examples = np.tile(possible.argmax(axis=1).astype(np.int16), (len(inside), 1))
    examples[:, rest[order]] = inside
    seen = possible & (possible.sum(axis=1) == 1)[:, None]
    seen[rest] = met[atom]
    return Worlds(possible, seen, examples)


def _limit_examples(people: int) -> int:
    return min(_MOST, _CODES // max(people, 1) + 2)


def _list_people(
    parts: list[NDArray[np.intp]], known: list[list[_Whole]], people: NDArray[np.intp], k: int
) -> NDArray[np.int16]:
    """(W, n) groups of people, ordered by atoms and groups, in worlds.

    `parts`: atoms of parts that have no facts in common. `known`: of each, worlds (A, K).
    `people`: (A,). `k`: K.
    """
    codes, world, examples = np.tile(np.arange(k), len(people)), np.zeros((len(people), k), int), []
    for turn in range(min(_limit_examples(int(people.sum())), max(map(len, known), default=1))):
        for part, worlds in zip(parts, known, strict=True):
            world[part] = worlds[min(turn, len(worlds) - 1)]
        examples.append(np.repeat(codes, world.ravel()))
    return np.array(examples, np.int16)


class WorldProgram(NamedTuple):
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

    @classmethod
    def of(
        cls, facts: Facts, possible: Mask, also: csr_array | None = None
    ) -> tuple[WorldProgram, NDArray[np.intp], NDArray[np.intp]]:
        """The program of all people, one person of each atom, and the atom of each person.

        `possible`: (n, K). `also`: (S, n) further sets, whose members are in other atoms.
        """
        many, k = len(facts), facts.groups
        draws = np.random.default_rng(20260105).integers(2**63, size=(many + k, 2))
        keys = facts.membership @ draws[:many] + possible.astype(np.int64) @ draws[many:]
        if also is not None:
            keys += also.T @ np.random.default_rng(20260107).integers(
                2**63, size=(also.shape[0], 2)
            )
        first, atom = number_rows(keys)
        return cls(
            facts.membership[first].T.tocsr(), facts.low, facts.high, ~facts.derived,
            facts.clauses, np.bincount(atom, minlength=len(first)), possible[first],
        ), first, atom  # fmt: skip

    def split(self) -> list[NDArray[np.intp]]:
        """Atoms that facts connect, the fewest first."""
        many, inside, sets = len(self.low), self.sets.tocoo(), self.clauses.sets
        clause = self.clauses.clause[self.clauses.row]
        heads = sets[np.searchsorted(clause, clause)]  # of each clause, one set
        ends = np.concatenate([inside.row, heads]), np.concatenate([many + inside.col, sets])
        size = many + len(self.people)
        edges = coo_array((np.ones(len(ends[0]), np.int8), ends), (size, size))
        label = connected_components(edges, directed=False)[1][many:]
        order = np.argsort(label, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(label[order])) + 1)
        return sorted((part for part in parts if len(part)), key=len)

    def narrow(self, atoms: NDArray[np.intp], world: _Whole | None = None) -> WorldProgram:
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
        own = clauses.clause[clauses.row]
        kept[clauses.sets[np.isin(own, own[kept[clauses.sets]])]] = True
        new = np.where(kept, np.cumsum(kept) - 1, -1)
        return WorldProgram(
            inside[kept], low[kept], high[kept], self.told[kept], clauses.renumber(new),
            self.people[atoms], self.possible[atoms],
        )  # fmt: skip

    def decide(
        self, worlds: list[_Whole], deadline: float, few: int = 0
    ) -> tuple[Mask, Mask, list[_Whole]] | None:
        """(A, K) groups that are possible, those in worlds, and worlds; None if there is no world.

        `worlds`: people (A, K) of each group in worlds that are known. `few`: undecided atoms that
        may be left.
        """
        possible, many = self.possible.copy(), len(self.people)
        if not worlds:
            world, proven = self._find_first(deadline)
            if world is None:
                return None if proven else (possible, np.zeros_like(possible), [])
            worlds = [world]
        world, worlds = worlds[0], list(worlds)
        seen: Mask = np.any(np.stack(worlds) > 0, axis=0)
        rng = np.random.default_rng(20260106)
        size, failures = _NEAR, 0
        if many > _NEAR:
            nearby, shown = self._look_nearby(world, seen, deadline, few)
            worlds += nearby
            seen |= shown
        while (left := deadline - time.perf_counter()) > 0:
            todo = np.flatnonzero((seen.sum(axis=1) == 1) & (possible.sum(axis=1) > 1))
            if len(todo) <= few:
                break
            near = np.arange(many)
            if many > _NEAR and size < many:
                one = int(rng.choice(todo))
                near = self._find_alike(one, rng)
                near = np.sort(near[:size])
                left = min(left, _SECONDS)
            now = np.flatnonzero(np.isin(near, todo))
            found, proven = self.narrow(near, world).solve(
                now, left, world[near], whole=size >= many
            )
            if found is not None and ((found > 0) & ~seen[near]).any():
                world = world.copy()
                world[near] = found
                worlds.append(world)
                seen |= world > 0
                failures = 0
            elif size >= many:
                if proven and found is not None:
                    possible[todo] = seen[todo]
                break
            elif not proven:
                size = max(size // _GROWTH, 1)
            elif failures < _FAILURES:
                failures += 1
            else:
                size, failures = size * _GROWTH, 0
        return possible, seen, worlds

    def _look_nearby(
        self, world: _Whole, seen: Mask, deadline: float, few: int
    ) -> tuple[list[_Whole], Mask]:
        """Worlds that swaps and walks lead to, and (A, K) groups in these and others that exist.

        `seen`: (A, K) groups in worlds that are known. `few`: see `decide`.
        """
        most, told = self.people[:, None] * self.possible, np.flatnonzero(self.told)
        known = self.sets[told], self.low[told], self.high[told], most, world, self.allows
        swaps, walks = WorldSwaps(*known, len(self.clauses) > 0), None
        now = time.perf_counter()
        end, turn = now + (deadline - now) * _NEARBY, (deadline - now) * _NEARBY / _TURNS
        seen, rates = seen.copy(), np.array([np.inf, np.inf])
        while rates.any() and time.perf_counter() < end:
            if ((seen.sum(axis=1) == 1) & (self.possible.sum(axis=1) > 1)).sum() <= few:
                break
            best = int(rates.argmax())
            if best and walks is None:
                walks = WorldWalks(*known, end)
            before, began = seen.sum(), time.perf_counter()
            (walks if best and walks else swaps).show(seen, min(began + turn, end), end)
            passed = time.perf_counter() - began
            # What has not ended by itself might show somebody yet.
            rates[best] = (seen.sum() - before + (passed >= turn) / 2) / passed
        limit = _limit_examples(int(self.people.sum()))
        worlds = list(filter(self.allows, swaps.list_worlds(limit)))
        return worlds + ([] if walks is None else walks.worlds[1:]), seen

    def _find_first(self, deadline: float) -> tuple[_Whole | None, bool]:
        """A world (A, K), or None; and whether there is none."""
        world = self._round(deadline) if len(self.people) > _NEAR else None
        if world is not None:
            return world, False
        return self.solve(np.zeros(0, np.intp), deadline - time.perf_counter())

    def _round(self, deadline: float) -> _Whole | None:
        """A world near a fractional one; None if none was found.

        Exact counts of numbers that are rounded are mended, then swaps or walks bring numbers into
        their ranges.
        """
        deadline -= (deadline - time.perf_counter()) * (1 - _ROUNDED)
        model, count = self.model(whole=False)
        try:
            answer = model.solve(deadline - time.perf_counter())
        except FpbenchError:  # HiGHS gave up
            return None
        if answer is None or answer.values is None:
            return None
        values = answer.values[count]
        world = np.floor(values + WHOLE_TOLERANCE).astype(np.int64)
        order = np.argsort(np.argsort(world - values, axis=1), axis=1)
        world += order < (self.people - world.sum(axis=1))[:, None]
        told = np.flatnonzero(self.told)
        sets, low, high = self.sets[told].astype(np.int64), self.low[told], self.high[told]
        exact = np.flatnonzero((low == high).all(axis=1))
        for group in range(1, world.shape[1]):
            off = low[exact, group].astype(np.int64) - sets[exact] @ world[:, group]
            mend = solve_whole(csr_array(sets[exact]), off, deadline)
            if mend is None:
                return None
            world[:, group] += mend
            world[:, 0] -= mend
        known = sets, low, high, self.people[:, None] * self.possible, world, self.allows
        swaps = WorldSwaps(*known, len(self.clauses) > 0)
        if swaps.exact:
            return swaps.repair(deadline)
        return WorldWalks(*known, deadline).repair(deadline)

    def _find_alike(self, atom: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """(A,) all atoms, those first that have most sets in common with one."""
        alike = self.sets.T @ self.sets[:, [atom]].toarray()[:, 0].astype(np.int64)
        return np.argsort(-alike - rng.random(len(alike)))

    def solve(
        self,
        targets: NDArray[np.intp],
        seconds: float,
        world: _Whole | None = None,
        *,
        whole: bool = True,
    ) -> tuple[_Whole | None, bool]:
        """A world (A, K) in which many targets have another group; None if none was found.

        The second value is whether there is no world, or none in which a target differs.

        `targets`: atoms that have one group in the known world (A, K). `whole`: whether the answer
        is a proof, and solved again without the known world.
        """
        model, count = self.model()
        start = None if world is None else (count.ravel(), world.ravel().astype(np.float64))
        groups = np.zeros(0, np.intp) if world is None else world[targets].argmax(axis=1)
        differ = model.columns(np.zeros(len(targets)), 1.0, -1.0, whole=True)
        pairs = np.stack([count[targets, groups], differ], axis=1)
        for pair, size in zip(pairs, self.people[targets], strict=True):
            model.row(pair, [1, 1], -np.inf, size)
        deadline = time.perf_counter() + seconds
        # HiGHS may call a start optimal whose cost is not its bound: no proof rests on a start.
        for gap, known in ((_GAP, start), (0.0, None)):
            try:
                answer = model.solve(deadline - time.perf_counter(), gap=gap, start=known)
            except FpbenchError:  # HiGHS gave up
                return None, False
            if answer is None or answer.values is None:
                return None, answer is None
            moved, none = (answer.values[differ] > 0.5).any(), answer.bound > -0.5
            if moved or not answer.proven or (none and not whole):
                break
        assert answer is not None and answer.values is not None
        world = np.rint(answer.values[count]).astype(np.int64)
        if not self.allows(world):
            return None, False
        return world, bool(answer.proven and none)

    def allows(self, world: _Whole) -> bool:
        """Whether numbers of people (A, K) satisfy everything."""
        counts = self.sets.astype(np.int64) @ world
        return bool(
            (world >= 0).all()
            and (world <= self.people[:, None] * self.possible).all()
            and (world.sum(axis=1) == self.people).all()
            and ((counts >= self.low) & (counts <= self.high)).all()
            and not len(self.clauses.find_broken(counts))
        )

    def model(
        self, cost: ArrayLike = 0.0, *, whole: bool = True
    ) -> tuple[HighsModel, NDArray[np.intp]]:
        """A program whose solutions are worlds, and its variables (A, K), of some cost."""
        model, sets, most = HighsModel(), self.sets, self.people[:, None] * self.possible
        count = model.columns(np.zeros(most.shape), most, cost, whole=whole)
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
        clauses, k = self.clauses, count.shape[1]
        many = len(clauses.most)
        terms = coo_array(
            (clauses.factors, (clauses.row, clauses.sets * k + clauses.group)),
            (many, len(self.low) * k),
        )
        sums = csr_array(terms) @ kron(sets.astype(np.int64), np.eye(k, dtype=np.int64), "csr")
        starts = np.flatnonzero(np.diff(clauses.clause)) + 1
        for rows in np.split(np.arange(many), starts) if many else ():
            holds = model.columns(np.zeros(len(rows) if len(rows) > 1 else 0), 1.0, whole=whole)
            if len(holds):
                model.row(holds, np.ones(len(rows)), 1, len(rows))
            for place, row in enumerate(rows):
                part = slice(*sums.indptr[row : row + 2])
                factors, own = sums.data[part], sums.indices[part]
                top = np.maximum(factors, 0) @ most.ravel()[own]
                one, slack = holds[place : place + 1], top - clauses.most[row]
                if slack > 0:
                    free = top if len(one) else clauses.most[row]
                    model.row(
                        [*count.ravel()[own], *one],
                        [*factors, *np.full(len(one), slack)],
                        -np.inf,
                        free,
                    )
        return model, count
