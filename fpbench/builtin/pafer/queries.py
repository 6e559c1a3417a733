"""PAFER's queries to a curator in either mode, and the rates from the answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fpbench import Mechanism, Policy
from fpbench.builtin.pafer.intervals import Draws, draw_rates, project_totals
from fpbench.errors import BudgetError
from fpbench.models import Rules
from fpbench.plugin import Codes
from fpbench.privacy import (
    COUNT_SENSITIVITY,
    HistogramSource,
    check_epsilon,
    find_invalid_answers,
    project_counts,
)

Numbers: TypeAlias = NDArray[np.float64]
Sizes: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class Query:
    """A request for a histogram of groups in each of S x M cells: S labels, M parts."""

    cells: Codes
    """(n,) the cell of each person, or -1 for none."""
    people: NDArray[np.int64]
    """(S, M) public number of people in each cell."""

    def ask(
        self, curator: HistogramSource, epsilon: float, mechanism: Mechanism, repetitions: int
    ) -> NDArray[np.float64]:
        """Noisy numbers of people (R, S, M, K)."""
        shape = (repetitions, *self.people.shape, len(curator.groups))
        if not self.people.size:  # no rule predicts 1
            return np.zeros(shape)
        counts = curator.histogram(
            self.cells, self.people.size, epsilon=epsilon, mechanism=mechanism,
            repetitions=repetitions,
        )  # fmt: skip
        return np.asarray(counts, dtype=np.float64).reshape(shape)


def make_query(
    parts: Codes, n_parts: int, strata: Codes | None, n_strata: int, *, but_first: bool = False
) -> Query:
    """The request whose cells are every part in every stratum.

    `parts`: (n,) codes in 0..n_parts-1; `but_first` leaves out part 0. `strata`: (n,) codes in
    0..n_strata-1, or -1 for people who are left out; None: all are 0.
    """
    width = n_parts - but_first
    # For ten million people: one byte per person if sufficient, and few passes.
    small = np.dtype(np.int8 if n_strata * n_parts <= np.iinfo(np.int8).max else np.int64)
    cells: Codes = parts.astype(small, copy=False)
    if but_first:
        cells = cells - small.type(1)
    if strata is not None:
        inside = (strata >= 0) & (cells >= 0)
        cells = np.where(inside, cells + strata.astype(small) * small.type(width), small.type(-1))
    if strata is None and not but_first and n_parts == 2:
        ones = int(np.count_nonzero(cells))
        sizes = np.array([len(cells) - ones, ones])
    else:
        sizes = np.bincount(cells[cells >= 0], minlength=n_strata * width)
    return Query(cells, sizes.reshape(n_strata, width).astype(np.int64))


@dataclass(frozen=True)
class Question:
    """The curator, the people's outcomes, and the labels that a metric uses."""

    curator: HistogramSource
    outcomes: Codes
    """(n,) 0: rejected; 1..m: the rule that accepts, or 1 if rules are not distinguished."""
    n_outcomes: int
    """Number of outcomes, m + 1."""
    strata: Codes | None
    """(n,) index of each person's label in `labels`, or -1; None if labels do not matter."""
    labels: tuple[int | None, ...]
    """The S labels that the metric uses."""
    rules: Rules | None
    """The rules, if they are distinguished."""

    def query_outcomes(self, *, accepted_only: bool = False) -> Query:
        """The query about outcomes."""
        return make_query(
            self.outcomes, self.n_outcomes, self.strata, len(self.labels), but_first=accepted_only
        )

    def query_everyone(self) -> Query:
        """The query about everyone, regardless of prediction."""
        return make_query(np.zeros(len(self.outcomes), np.int8), 1, self.strata, len(self.labels))


@dataclass(frozen=True)
class AuditCounts:
    """Repaired noisy counts of R audits."""

    accepted: Numbers
    members: Numbers
    """(R, S, K) repaired numbers of people with a positive prediction, and of all."""
    by_rule: Numbers
    people: Sizes
    """(R, S, m, K) repaired numbers of people of each rule, and (S, m) public ones."""
    epsilons: tuple[float, ...]
    """Epsilon of each histogram of an audit."""
    queries: int
    """Number of histograms of an audit."""
    width: int
    """Number of noisy counts of an audit."""
    invalid_ratio: float
    """Share of the noisy counts that are negative or larger than their total."""
    draw_plausible: Callable[[slice, int, np.random.Generator], Draws]
    """Draws of plausible rates given some of the releases."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(S, m, K)."""
        return self.by_rule.shape[1:]


def ask_partition(
    question: Question, epsilon: float, mechanism: Mechanism, policy: Policy | None, r: int
) -> AuditCounts:
    """One histogram over rejected and accepted, or rejected and each rule, with all of epsilon."""
    outcomes = question.query_outcomes()
    people = outcomes.people
    answers = outcomes.ask(question.curator, epsilon, mechanism, r)
    cells = project_counts(answers, people) if policy is None else policy.repair(answers, people)
    two = cells.shape[-2] == 2
    accepted = cells[..., 1, :] if two else cells[..., 1:, :].sum(axis=-2)
    noise = _SimulatedNoise(question, mechanism)

    def draw_plausible(part: slice, b: int, rng: np.random.Generator) -> Draws:
        may = noise.redraw(answers[part], people, epsilon, b, rng)
        some = project_totals(may[..., 1:, :], people[:, 1:])
        return draw_rates(some, some + project_totals(may[..., :1, :], people[:, :1]), rng)

    return AuditCounts(
        accepted, accepted + cells[..., 0, :], cells[..., 1:, :], people[:, 1:], (epsilon,),
        people.size, cells[0].size, _count_invalid([(answers, people)]), draw_plausible,
    )  # fmt: skip


def halve_epsilon(epsilon: float) -> float:
    """Epsilon of each of the two histograms of mode reference; InputError if too small."""
    check_epsilon(epsilon / 2, "epsilon / 2, of each of two histograms,")
    return epsilon / 2


def ask_reference(
    question: Question, epsilon: float, mechanism: Mechanism, policy: Policy | None, r: int
) -> AuditCounts:
    """Two histograms, of the groups' sizes and of the rules that predict 1, each with half epsilon.

    The first is requested only if the budget allows both.
    """
    half, everyone = halve_epsilon(epsilon), question.query_everyone()
    accepted = question.query_outcomes(accepted_only=True)
    if accepted.people.size:
        _require_budget(question.curator, half, mechanism, r)
    n, people = everyone.people, accepted.people
    within = np.broadcast_to(n, people.shape)
    overall = everyone.ask(question.curator, half, mechanism, r)
    try:
        answers = accepted.ask(question.curator, half, mechanism, r)
    except BudgetError as error:  # another client spent it in between
        spent = f"epsilon {r * half:g} was spent on the groups' sizes"
        raise BudgetError(f"{error} on this, after {spent}") from error
    sizes = _repair(policy, overall, n, n)
    # In the paper a count above the size of a rule is valid up to n (footnote 8).
    cells = _repair(policy, answers, people, within) if people.size else answers
    noise = _SimulatedNoise(question, mechanism)

    def draw_plausible(part: slice, b: int, rng: np.random.Generator) -> Draws:
        members = project_totals(noise.redraw(overall[part], n, half, b, rng), n)
        some = noise.redraw(answers[part], people, half, b, rng)
        return draw_rates(project_totals(some, people), members, rng)

    return AuditCounts(
        cells.sum(axis=-2), sizes[..., 0, :], cells, people, (half, half), n.size + people.size,
        sizes[0].size + cells[0].size, _count_invalid([(overall, n), (answers, within)]),
        draw_plausible,
    )  # fmt: skip


def _repair(
    policy: Policy | None,
    answers: NDArray[np.float64],
    totals: NDArray[np.int64],
    upper: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Counts repaired by a policy; None: by `uniform/uniform`, as in the paper's experiments."""
    if policy is not None:
        return policy.repair(answers, totals, upper)
    uniform = totals[..., None] / answers.shape[-1]
    return np.where(find_invalid_answers(answers, upper), uniform, answers)


_ROUNDING = 1 + 1e-9
"""Slack for the remaining budget, which is a float; the ledger itself decides exactly."""


def _require_budget(curator: HistogramSource, epsilon: float, mechanism: Mechanism, r: int) -> None:
    """Refuse an audit whose second histogram the budget does not allow, before anything is spent.

    Raises BudgetError if two histograms for each of r audits cost more than the remaining budget.
    """
    remaining = getattr(curator, "remaining", None)
    if remaining is None:
        return
    one = mechanism.guarantee(epsilon, curator.neighbours)
    names = ("epsilon", "delta") if remaining.rho is None else ("rho",)
    for name in names:
        cost, most = 2 * r * (getattr(one, name) or 0.0), getattr(remaining, name)
        if cost > most * _ROUNDING:
            raise BudgetError(
                f"the privacy budget does not allow this audit: asked for {name} {cost:.12g}, "
                f"left {name} {most:.12g}; nothing was spent"
            )


def _count_invalid(answers: list[tuple[Numbers, Sizes]]) -> float:
    """Share of noisy counts (R, S, M, K) below 0 or above their totals (S, M)."""
    wrong = [np.count_nonzero((a < 0) | (a > most[..., None])) for a, most in answers]
    return float(sum(wrong) / sum(a.size for a, _ in answers))


@dataclass(frozen=True)
class _SimulatedNoise:
    """Draws of the noise that the curator adds."""

    question: Question
    mechanism: Mechanism

    def redraw(
        self, answers: Numbers, people: Sizes, epsilon: float, b: int, rng: np.random.Generator
    ) -> Numbers:
        """The answers (r, S, M, K) with fresh noise added B times: (B, r, S, M, K).

        If noise is symmetric and independent of the count, the true counts are distributed around
        the answers like these draws. The exponential mechanism's noise depends on the count; at
        the answer it at least has the same bounds.
        """
        if not answers.size:
            return np.zeros((b, *answers.shape))
        upper = people[..., None]
        counts = np.clip(np.rint(answers), 0, upper).astype(np.int64)
        counts = np.broadcast_to(counts, (b, *counts.shape))
        simulation = self.mechanism.model_copy(update={"noise": "simulation"})
        relation = COUNT_SENSITIVITY[self.question.curator.neighbours]
        return answers + simulation.release(counts, relation, epsilon, rng, upper) - counts


def compute_ratios(accepted: Numbers, members: Numbers) -> Numbers:
    """(...) the least group rate divided by the greatest, minimum over strata.

    A rate without members is 0; if all rates are 0, the ratio is 1.

    `accepted`, `members`: (..., S, K) non-negative numbers of people.
    """
    # Groups come first: minima over a short last axis are slow.
    some, all_ = np.moveaxis(accepted, -1, 0), np.moveaxis(members, -1, 0)
    rates = np.divide(some, all_, out=np.zeros(some.shape), where=all_ > 0)
    least, greatest = rates.min(axis=0), rates.max(axis=0)
    by_stratum = np.divide(least, greatest, out=np.ones(least.shape), where=greatest > 0)
    return np.asarray(by_stratum[..., 0] if by_stratum.shape[-1] == 1 else by_stratum.min(axis=-1))
