"""The two ways of PAFER to ask a curator, and what its answers say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fpbench import (
    COUNT_SENSITIVITY,
    BudgetError,
    Codes,
    HistogramSource,
    Mechanism,
    Policy,
    check_epsilon,
    component,
)
from fpbench.builtin.auditors._pafer_intervals import Draws, of_margins, plausible_rates
from fpbench.builtin.auditors._pafer_queries import Query, query
from fpbench.models import Rules
from fpbench.privacy import project_counts

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
    plausible: Callable[[slice, int, np.random.Generator], Draws]
    """Draws of the rates that some of the releases leave plausible."""

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

    def plausible(part: slice, b: int, rng: np.random.Generator) -> Draws:
        may = noise.again(answers[part], people, epsilon, b, rng)
        some = of_margins(may[..., 1:, :], people[:, 1:])
        return plausible_rates(some, some + of_margins(may[..., :1, :], people[:, :1]), rng)

    return Noisy(
        accepted, accepted + cells[..., 0, :], cells[..., 1:, :], people[:, 1:], (epsilon,),
        people.size, cells[0].size, _invalid([(answers, people)]), plausible,
    )  # fmt: skip


def half_of(epsilon: float) -> float:
    """Epsilon of each of the two histograms of mode reference.

    Raises
    ------
    InputError
        If it is too little.
    """
    check_epsilon(epsilon / 2, "epsilon / 2, of each of two histograms,")
    return epsilon / 2


def by_reference(
    question: Question, epsilon: float, mechanism: Mechanism, policy: Policy | None, r: int
) -> Noisy:
    """Half of epsilon for the sizes of the groups, half for the rules that predict 1.

    Two answers are paid for one after the other, if both can be paid for when the first is asked
    for.
    """
    half, everyone = half_of(epsilon), question.everyone()
    asked = question.query(accepted_only=True)
    if asked.people.size:
        _afford_both(question.curator, half, mechanism, r)
    n, people = everyone.people, asked.people
    within = np.broadcast_to(n, people.shape)
    overall = everyone.ask(question.curator, half, mechanism, r)
    try:
        answers = asked.ask(question.curator, half, mechanism, r)
    except BudgetError as error:  # others asked in between
        spent = f"epsilon {r * half:g} was spent on the groups' sizes"
        raise BudgetError(f"{error} on this, after {spent}") from error
    if policy is None:
        chosen = component("policy", _PAPER)
        assert isinstance(chosen, Policy)
        policy = chosen
    sizes = policy.repair(overall, n)
    # In the paper a count above the size of a rule is valid, if not above n (its footnote 8).
    cells = policy.repair(answers, people, within) if people.size else answers
    noise = _Simulated(question, mechanism)

    def plausible(part: slice, b: int, rng: np.random.Generator) -> Draws:
        members = of_margins(noise.again(overall[part], n, half, b, rng), n)
        some = noise.again(answers[part], people, half, b, rng)
        return plausible_rates(of_margins(some, people), members, rng)

    return Noisy(
        cells.sum(axis=-2), sizes[..., 0, :], cells, people, (half, half), n.size + people.size,
        sizes[0].size + cells[0].size, _invalid([(overall, n), (answers, within)]), plausible,
    )  # fmt: skip


_ROUNDING = 1 + 1e-9
"""What is left is told as a float; whether a hair less is enough, the ledger itself decides."""


def _afford_both(curator: HistogramSource, epsilon: float, mechanism: Mechanism, r: int) -> None:
    """Refuse before anything is spent what would be left half done.

    Raises
    ------
    BudgetError
        If the curator says that it has less left than two answers to each of r audits cost.
    """
    left = getattr(curator, "remaining", None)
    if left is None:
        return
    one = mechanism.guarantee(epsilon, curator.neighbours)
    names = ("epsilon", "delta") if left.rho is None else ("rho",)
    for name in names:
        asked, most = 2 * r * (getattr(one, name) or 0.0), getattr(left, name)
        if asked > most * _ROUNDING:
            raise BudgetError(
                f"the privacy budget does not allow this audit: asked for {name} {asked:.12g}, "
                f"left {name} {most:.12g}; nothing was spent"
            )


def _invalid(answers: list[tuple[Numbers, Sizes]]) -> float:
    """Share of noisy counts (R, S, M, K) below 0 or above what (S, M) they are part of."""
    wrong = [np.count_nonzero((a < 0) | (a > most[..., None])) for a, most in answers]
    return float(sum(wrong) / sum(a.size for a, _ in answers))


@dataclass(frozen=True)
class _Simulated:
    """Fresh noise, as the curator adds it, drawn here."""

    question: Question
    mechanism: Mechanism

    def again(
        self, answers: Numbers, people: Sizes, epsilon: float, b: int, rng: np.random.Generator
    ) -> Numbers:
        """The answers (r, S, M, K) with noise once more, B times: (B, r, S, M, K).

        Noise that is symmetric and the same for every count puts the true counts as far from the
        answers as this. That of the exponential mechanism depends on the count: at the answer it is
        at least bounded as it was.
        """
        if not answers.size:
            return np.zeros((b, *answers.shape))
        upper = people[..., None]
        counts = np.clip(np.rint(answers), 0, upper).astype(np.int64)
        counts = np.broadcast_to(counts, (b, *counts.shape))
        simulation = self.mechanism.model_copy(update={"noise": "simulation"})
        relation = COUNT_SENSITIVITY[self.question.curator.neighbours]
        return answers + simulation.release(counts, relation, epsilon, rng, upper) - counts
