"""The two ways of PAFER to ask a curator, and what its answers say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fpbench import (
    HISTOGRAM,
    Codes,
    HistogramSource,
    Mechanism,
    Policy,
    Rules,
    component,
    project_counts,
)
from fpbench.builtin.auditors._pafer_intervals import of_margins, plausible_rates
from fpbench.builtin.auditors._pafer_queries import Query, query

Numbers: TypeAlias = NDArray[np.float64]
Sizes: TypeAlias = NDArray[np.int64]

_PAPER = "uniform/uniform"
"""The policy of the paper's experiments."""


@dataclass(frozen=True)
class Question:
    """Who is asked about what."""

    curator: HistogramSource
    outcomes: Codes
    """(n,) 0: rejected; 1..m: by which rule accepted, or 1 if rules are not told apart."""
    n_outcomes: int
    """m + 1."""
    strata: Codes | None
    """(n,) which of the labels somebody has, or -1; None if labels are not looked at."""
    labels: tuple[int | None, ...]
    """The S labels that the metric looks at."""
    rules: Rules | None
    """The rules, if they are told apart."""

    def query(self, *, accepted_only: bool = False) -> Query:
        """About the outcomes."""
        return query(
            self.outcomes, self.n_outcomes, self.strata, len(self.labels), but_first=accepted_only
        )

    def everyone(self) -> Query:
        """About all of them, whatever was predicted."""
        return query(np.zeros(len(self.outcomes), np.int8), 1, self.strata, len(self.labels))


@dataclass(frozen=True)
class Noisy:
    """What was released in R audits, and what it says."""

    accepted: Numbers
    members: Numbers
    """(R, S, K) repaired numbers of people with a positive prediction, and of all."""
    by_rule: Numbers
    people: Sizes
    """(R, S, m, K) repaired numbers of people of each rule, and (S, m) public ones."""
    epsilons: tuple[float, ...]
    """Of the releases that an audit is made of."""
    queries: int
    """Histograms that an audit asks for."""
    width: int
    """Noisy counts of an audit."""
    invalid_ratio: float
    """Share of the noisy counts that are negative or larger than what they are part of."""
    plausible: Callable[[slice, int, np.random.Generator], Numbers]
    """Draws (B, r, S, K) of the rates that some of the releases leave plausible."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(S, m, K)."""
        return self.by_rule.shape[1:]


def by_partition(
    question: Question, epsilon: float, mechanism: Mechanism, policy: Policy | None, r: int
) -> Noisy:
    """One histogram over rejected and accepted, or rejected and each rule: all of epsilon."""
    asked = question.query()
    people = asked.people
    answers = asked.ask(question.curator, epsilon, mechanism, r)
    cells = project_counts(answers, people) if policy is None else policy.repair(answers, people)
    two = cells.shape[-2] == 2
    accepted = cells[..., 1, :] if two else cells[..., 1:, :].sum(axis=-2)
    noise = _Simulated(question, mechanism)

    def plausible(part: slice, b: int, rng: np.random.Generator) -> Numbers:
        may = answers[part] - noise(cells[part], people, epsilon, b, rng)
        some = of_margins(may[..., 1:, :], people[:, 1:])
        return plausible_rates(some, some + of_margins(may[..., :1, :], people[:, :1]), rng)

    return Noisy(
        accepted, accepted + cells[..., 0, :], cells[..., 1:, :], people[:, 1:], (epsilon,),
        people.size, cells[0].size, _invalid([(answers, people)]), plausible,
    )  # fmt: skip


def by_reference(
    question: Question, epsilon: float, mechanism: Mechanism, policy: Policy | None, r: int
) -> Noisy:
    """Half of epsilon for the sizes of the groups, half for the rules that predict 1.

    Two answers are paid for one after the other: if the budget ends between them, the first is
    spent.
    """
    half, everyone, asked = epsilon / 2, question.everyone(), question.query(accepted_only=True)
    n, people = everyone.people, asked.people
    within = np.broadcast_to(n, people.shape)
    overall = everyone.ask(question.curator, half, mechanism, r)
    answers = asked.ask(question.curator, half, mechanism, r)
    if policy is None:
        chosen = component("policy", _PAPER)
        assert isinstance(chosen, Policy)
        policy = chosen
    sizes = policy.repair(overall, n)
    # In the paper a count above the size of a rule is valid, if not above n (its footnote 8).
    cells = policy.repair(answers, people, within) if people.size else answers
    noise = _Simulated(question, mechanism)

    def plausible(part: slice, b: int, rng: np.random.Generator) -> Numbers:
        may = overall[part] - noise(sizes[part], n, half, b, rng)
        members = of_margins(may, n)
        some = answers[part] - noise(cells[part], people, half, b, rng)
        return plausible_rates(of_margins(some, people), members, rng)

    return Noisy(
        cells.sum(axis=-2), sizes[..., 0, :], cells, people, (half, half), n.size + people.size,
        sizes[0].size + cells[0].size, _invalid([(overall, n), (answers, within)]), plausible,
    )  # fmt: skip


def _invalid(answers: list[tuple[Numbers, Sizes]]) -> float:
    """Share of noisy counts (R, S, M, K) below 0 or above what (S, M) they are part of."""
    wrong = [np.count_nonzero((a < 0) | (a > most[..., None])) for a, most in answers]
    return float(sum(wrong) / sum(a.size for a, _ in answers))


@dataclass(frozen=True)
class _Simulated:
    """Fresh noise, as the curator adds it, drawn here."""

    question: Question
    mechanism: Mechanism

    def __call__(
        self, cells: Numbers, people: Sizes, epsilon: float, b: int, rng: np.random.Generator
    ) -> Numbers:
        """Noise (B, r, S, M, K) at counts (r, S, M, K), which may matter to it."""
        if not cells.size:
            return np.zeros((b, *cells.shape))
        upper = people[..., None]
        counts = np.clip(np.rint(cells), 0, upper).astype(np.int64)
        counts = np.broadcast_to(counts, (b, *counts.shape))
        simulation = self.mechanism.model_copy(update={"noise": "simulation"})
        relation = HISTOGRAM[self.question.curator.neighbours]
        return simulation.release(counts, relation, epsilon, rng, upper) - counts
