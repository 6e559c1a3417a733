"""The attack on a report: proofs of people's groups, and beliefs about the others."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from fpbench.base.arguments import read_share, show_value
from fpbench.base.errors import InputError
from fpbench.claims.set_counts import ContradictionError, Facts, Floats, Mask
from fpbench.components.beliefs import SURE
from fpbench.correction.facts.dual_ascent import condition_beliefs
from fpbench.correction.facts.interior_point import LinearSolver
from fpbench.correction.facts.linear_programs import prove_and_log
from fpbench.correction.facts.propagation import propagate
from fpbench.correction.facts.worlds import Worlds, find_worlds

_SHARE, _SHARE_OF_CHANGE = 0.5, 0.1
"""Share of the time that is left in which worlds are looked for; of changed reports, many are
attacked."""
_FEW = 100
"""People up to whom integer programs look for proofs that linear ones miss, if facts are ranges."""

_MOST_REPETITIONS = 8
"""Of cross-fitting, where the verdict depends on the folds."""


@dataclass(frozen=True)
class Allowed:
    """Limits of what may be given away."""

    leak: float | None
    """Rise of the share of people who are guessed right; None if it does not decide."""
    proven: int
    """Number of people whose group is proven, or as good as proven."""
    sure: float = SURE
    """Belief above which a group counts as good as proven."""
    undecided: int = 0
    """Number of people of whom it is open whether their group can be proven."""
    protect_hidden: float | None = None
    """Share of a suppressed number that a reader must leave open on either side; None if such
    numbers do not decide."""

    @classmethod
    def of(
        cls,
        max_leak: float | str | None,
        max_proven: int,
        sure: float | str = SURE,
        max_undecided: int = 0,
        protect_hidden: float | str | None = None,
    ) -> Self:
        """The limits as users write them: a leak as 0.01 or "1%"; InputError for anything else."""
        leak = None if max_leak is None else read_share("max_leak (--max-leak)", max_leak, 0.01)
        belief = read_share("sure (--sure)", sure, SURE)
        if not 0.5 <= belief <= 1:
            raise InputError(f"sure (--sure) must be at least 50%, not {show_value(sure)}")
        for name, most in (("max_proven", max_proven), ("max_undecided", max_undecided)):
            if not isinstance(most, int | np.integer) or most < 0:
                raise InputError(f"{name} must be a number of people, not {show_value(most)}")
        if protect_hidden is not None:
            protect_hidden = read_share("protect_hidden (--protect-hidden)", protect_hidden, 0.1)
        return cls(leak, int(max_proven), belief, int(max_undecided), protect_hidden)

    def holds(self, leak: float, proven: int) -> bool:
        """Whether no more is given away."""
        return self.holds_leak(leak) and proven <= self.proven

    def holds_leak(self, leak: float) -> bool:
        """Whether a leak is within its limit: less than one of a billion people is none.

        The leak is a difference of two shares, 61 % - 59 % for instance, which floats do not hold.
        """
        return self.leak is None or round(leak - self.leak, 9) <= 0

    def __str__(self) -> str:
        parts = [f"at most {self.proven:,} proven or sure"]
        if self.leak is not None:
            points = 100 * self.leak
            parts.append(f"a leak of {points:g} point{'s' * (points != 1)}")
        if self.protect_hidden is not None:
            parts.append(f"suppressed numbers protected to {100 * self.protect_hidden:g} %")
        return ", and ".join(parts)


@dataclass(frozen=True, eq=False)
class Reader:
    """An adversary who reads reports, and how its guesses are scored."""

    prior: Floats
    """(n, K) beliefs before a report."""
    truth: NDArray[np.intp] | None
    """(n,) codes of the true groups; None if they are not known."""
    error: float
    """`error_bound` at which beliefs are accurate enough."""

    def accuracy(self, beliefs: Floats) -> float:
        """Share of people whose likeliest group is right; without the truth, as beliefs expect."""
        if self.truth is None:
            return float(beliefs.max(axis=1).mean())
        return float((beliefs.argmax(axis=1) == self.truth).mean())


@dataclass(frozen=True, eq=False)
class Findings:
    """What an adversary learns from a report."""

    worlds: Worlds
    """Groups that people may have, and those they have in worlds that the report allows."""
    prior: Floats
    """(n, K) before the report."""
    beliefs: Floats
    """(n, K) after the report."""
    error_bound: float
    """Upper bound of the root mean square distance of undecided people's beliefs to the optimum."""
    leak: float
    """Rise of the share of people who are guessed right."""
    finished: bool = True
    """Whether linear programs ended before their limit, and beliefs are accurate enough or took all
    steps."""

    @property
    def proven(self) -> Mask:
        """(n,) whether only one group is possible."""
        return np.asarray(self.worlds.possible.sum(axis=1) == 1)

    def find_sure(self, limit: float) -> Mask:
        """(n,) whether a group is not proven, but believed above the limit, and was not before."""
        likeliest = self.beliefs.argmax(axis=1)[:, None]
        before, after = (
            np.take_along_axis(beliefs, likeliest, 1)[:, 0]
            for beliefs in (self.prior, self.beliefs)
        )
        return np.asarray(~self.proven & (after > limit) & (before <= limit))

    def count_told(self, allowed: Allowed) -> int:
        """Number of people whose group is proven, or as good as proven."""
        return int((self.proven | self.find_sure(allowed.sure)).sum())

    def within(self, allowed: Allowed) -> bool:
        """Whether both are within the limits."""
        return allowed.holds(self.leak, self.count_told(allowed))


def attack(
    facts: Facts,
    reader: Reader,
    seconds: float = 60.0,
    allowed: Allowed | None = None,
    solver: LinearSolver | None = None,
    *,
    decide: bool = False,
) -> Findings:
    """What an adversary learns from facts: proofs, and beliefs about everybody else.

    Parameters
    ----------
    facts
        What a report tells.
    reader
        Who reads it.
    seconds
        Time limit; linear programs take half of it at most, and integer programs half of the rest.
    allowed
        Stop as soon as these limits are exceeded, which is all that a verdict needs. By default
        nothing stops the attack.
    solver
        Of linear programs, for several attacks; by default one of its own.
    decide
        Whether worlds are looked for that show who cannot be proven, of any number of people and
        any facts; else only where linear programs may miss proofs.
    """
    began = time.perf_counter()
    deadline = began + seconds
    likely = facts.settle_noise()
    if likely is not facts:  # a reader believes what would be proven without so little noise
        with suppress(ContradictionError):
            believed = attack(likely, reader, seconds, None, solver)
            worlds = _prove(facts, None, reader, deadline, solver)
            if decide:
                worlds = _decide(facts, worlds, reader, deadline)
            return replace(believed, worlds=worlds)

    def conclude(worlds: Worlds, finished: bool = True) -> Findings:
        return believe(facts, reader, worlds, deadline, finished)

    propagated = propagate(facts)
    if allowed is not None:
        known = Worlds.know(propagated, reader.truth)
        first = Findings(known, reader.prior, reader.prior, math.inf, 0.0)
        if first.within(allowed):
            first = conclude(first.worlds)
        if not first.within(allowed):
            return first
    started = time.perf_counter()
    longest = (deadline - started) / 2
    worlds = _prove(facts, propagated, reader, started + longest, solver)
    finished = time.perf_counter() - started < longest
    now = time.perf_counter()
    if decide or not facts.ranges_alone or facts.people <= _FEW:
        share = _SHARE if allowed is None else _SHARE_OF_CHANGE
        worlds = _decide(facts, worlds, reader, now + share * (deadline - now))
        if allowed is not None:
            finished &= bool(worlds.undecided.sum() <= allowed.undecided)
    if allowed is not None and (worlds.possible == propagated).all():
        return replace(first, worlds=worlds, finished=first.finished and finished)
    return conclude(worlds, finished)


def count_undecided(facts: Facts, reader: Reader, seconds: float, solver: LinearSolver) -> int:
    """Number of people of whom it is open whether their group can be proven."""
    now = time.perf_counter()
    proven = _prove(facts, None, reader, now + seconds / 2, solver)
    return int(_decide(facts, proven, reader, now + seconds).undecided.sum())


def _prove(
    facts: Facts, possible: Mask | None, reader: Reader, deadline: float,
    solver: LinearSolver | None,
) -> Worlds:  # fmt: skip
    """What linear programs prove, with the proofs."""
    proven, log = prove_and_log(facts, possible, deadline, solver=solver)
    proofs = tuple(proof for proof in log.certificates if len(proof.people))
    return Worlds.know(proven, reader.truth)._replace(proofs=proofs)


def _decide(facts: Facts, proven: Worlds, reader: Reader, deadline: float) -> Worlds:
    """Worlds of people who are not proven, and what integer programs prove beside."""
    found = find_worlds(facts, proven.possible, reader.truth, deadline)
    more = (found.possible.sum(axis=1) == 1) & (proven.possible.sum(axis=1) > 1)
    return found._replace(proofs=proven.proofs, by_solver=int(more.sum()))


def believe(
    facts: Facts, reader: Reader, worlds: Worlds, deadline: float, finished: bool = True
) -> Findings:
    """What a reader believes, given the groups that are possible.

    `deadline`: by `time.perf_counter`. `finished`: whether the search for proofs ended in time.
    """
    after = condition_beliefs(
        facts, reader.prior, worlds.possible, error=reader.error,
        seconds=deadline - time.perf_counter(),
    )  # fmt: skip
    leak = reader.accuracy(after.beliefs) - reader.accuracy(reader.prior)
    ended = finished and (after.error_bound <= reader.error or time.perf_counter() < deadline)
    return Findings(worlds, reader.prior, after.beliefs, after.error_bound, leak, ended)


def attack_as_known(
    facts: Facts,
    fit: Callable[[int], Floats] | None,
    reader: Reader,
    allowed: Allowed,
    seconds: float,
) -> tuple[Reader, Findings, bool]:
    """An attack with beliefs as given, or cross-fitted: reader, findings, whether folds matter.

    Cross-fitted beliefs are means over repetitions, which are doubled until the verdict of either
    half of them is that of all.

    `fit`: gives beliefs (n, K) by the number of the repetition, from 0, and remembers them; None if
    they are those of `reader`.
    """
    deadline = time.perf_counter() + seconds
    if fit is not None:
        reader = replace(reader, prior=(fit(0) + fit(1)) / 2)
    findings = attack(facts, reader, deadline - time.perf_counter(), decide=True)
    if fit is None:
        return reader, findings, False
    return settle_folds(fit, reader, allowed, facts, findings, deadline)


def settle_folds(
    fit: Callable[[int], Floats],
    reader: Reader,
    allowed: Allowed,
    facts: Facts,
    findings: Findings,
    deadline: float,
) -> tuple[Reader, Findings, bool]:
    """What `attack_as_known` gives, from the findings of the first two repetitions.

    `deadline`: by `time.perf_counter`.
    """

    def average(parts: list[Floats]) -> Reader:
        return replace(reader, prior=np.mean(parts, axis=0))

    repetitions = [fit(0), fit(1)]
    reader = average(repetitions)
    while True:
        half = len(repetitions) // 2
        same = all(
            believe(facts, average(part), findings.worlds, deadline).within(allowed)
            == findings.within(allowed)
            for part in (repetitions[:half], repetitions[half:])
        )
        if same or len(repetitions) == _MOST_REPETITIONS or time.perf_counter() > deadline:
            return reader, findings, not same
        more = [fit(number) for number in range(2 * half, 4 * half)]
        if time.perf_counter() > deadline:  # beliefs by these would not be finished
            return reader, findings, True
        repetitions += more
        reader = average(repetitions)
        findings = believe(facts, reader, findings.worlds, deadline, findings.finished)
