"""Group fairness from noisy counts of a curator, the only one who knows people's groups."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from fpbench import Auditor, Component, InputError, Learner, Measure, Mechanism, Policy, Release
from fpbench.builtin.pafer.intervals import estimate_interval
from fpbench.builtin.pafer.queries import (
    AuditCounts,
    Question,
    ask_partition,
    ask_reference,
    compute_ratios,
    halve_epsilon,
)
from fpbench.claims import Metric, RateConstraint
from fpbench.models import Rules
from fpbench.plugin import MeasureValues, Subject
from fpbench.privacy import LEAST_EPSILON, Neighbours, compose

if TYPE_CHECKING:
    from pandas import DataFrame

_AT_ONCE = 2_000_000
"""Greatest number of draws in memory at a time."""
_LEAST = 20
"""Least number of draws for an interval."""


class Pafer(Auditor):
    """Privacy-aware fairness estimation: the least group rate divided by the greatest.

    `mode = "partition"` asks for one histogram over the cells {rejected, accepted} x group. The
    cells are disjoint, so each uses the full epsilon; a group's size is the sum of its cells. Noisy
    counts are projected onto non-negative counts that sum to the public number of people in each
    cell. `per_rule = true` asks about each rule that predicts 1 instead of "accepted".

    `mode = "reference"` is the method of van der Steen et al.: half of epsilon for the sizes of the
    groups, half for the rules that predict 1, which are disjoint. Without a policy it uses that of
    their experiments, `uniform/uniform`; `0/uniform` has up to 30 % less error.

    For equal opportunity, predictive equality and equalized odds, people of different labels are
    disjoint too: each label uses the full epsilon (the paper assumed that the cost doubles).

    If a group has no members by the repaired counts, its rate is 0; if all rates are 0, the ratio
    is 1. For a group that is empty, or small compared with the noise, estimates are noise, and the
    intervals show it.

    See docs/private-audits.md for formulas, and departures from the paper.
    """

    name = "pafer"
    summary = "group fairness from differentially private counts (van der Steen et al.)"
    reference = (
        "van der Steen, Vink, Kaya. Privacy Constrained Fairness Estimation for Decision Trees. "
        "arXiv:2312.08413, 2023"
    )
    sees = frozenset({"features", "labels", "predictions", "model", "curator"})
    measures = (
        *Measure.table("always", """
        invalid_ratio, invalid | less share | noisy counts below 0 or above their total
        """),
        *Measure.table("asked", """
        n_queries, queries | less | number of histograms that the curator released
        n_queries_most, most queries | neither | greatest number of histograms for a tree of this
            depth
        n_rules, rules | neither | number of rules that predict 1
        n_rules_unpruned | neither | the same before redundant rules were removed
        """),
    )  # fmt: skip

    epsilon: float = Field(
        ge=LEAST_EPSILON, allow_inf_nan=False, description="privacy of the whole audit"
    )
    mechanism: Mechanism = Field(description="adds the noise")
    policy: Policy | None = Field(
        None,
        description="makes noisy counts valid; by default the projection onto the public sums in "
        "mode partition, and uniform/uniform in mode reference",
    )
    mode: Literal["partition", "reference"] = Field(
        "partition", description="one histogram with full epsilon, or the paper's two with half"
    )
    metric: Metric = Field("statistical-parity", description="metric whose rates are compared")
    per_rule: bool = Field(False, description="mode partition: ask about each rule separately")
    neighbours: Neighbours = Field(
        "attribute",
        description="neighbouring data sets in a matrix: they differ in one person's group, or in "
        "whether one person is counted; your own curator has its own relation",
    )
    repetitions: int = Field(
        1, ge=1, le=1_000_000, description="repeated audits, each with fresh noise"
    )
    confidence: float = Field(0.95, gt=0, lt=1, description="confidence level of the intervals")
    resamples: int = Field(
        400,
        ge=0,
        le=100_000,
        description="draws for each interval; 0: no intervals (NaN)",
    )

    @classmethod
    def examples(cls, directory: Path) -> list[dict[str, Any]]:
        """Both modes, with few draws."""
        few = {"epsilon": 1.0, "repetitions": 3, "resamples": 40}
        return [few, {**few, "mode": "reference"}]

    @field_validator("resamples")
    @classmethod
    def _check_resamples(cls, resamples: int) -> int:
        if 0 < resamples < _LEAST:
            raise ValueError(f"must be 0, or {_LEAST} and more for intervals")
        return resamples

    @property
    def needs_rules(self) -> bool:
        """Whether it queries single rules."""
        return self.mode == "reference" or self.per_rule

    @property
    def relation(self) -> Neighbours:
        """The relation of neighbouring data sets."""
        return self.neighbours

    def incompatible(self, other: Component) -> str | None:
        """Why the learner lacks rules, or the mechanism does not support the epsilon."""
        why = super().incompatible(other)
        if why is None and isinstance(other, Learner):  # checked once for each model
            try:
                epsilon = self.epsilon
                if self.mode == "reference":
                    epsilon = halve_epsilon(epsilon)
                self.mechanism.guarantee(epsilon, self.neighbours)
            except InputError as error:
                why = str(error)
        return why

    def audit(self, subject: Subject, rng: np.random.Generator) -> Release:
        """The estimates from the curator's answers.

        Raises InputError if rules are needed and the model has none or they contradict its
        predictions, or if the curator answers about other people; BudgetError if the audit costs
        more than the curator's remaining budget.
        """
        question = self._make_question(subject)
        ask = ask_reference if self.mode == "reference" else ask_partition
        noisy = ask(question, self.epsilon, self.mechanism, self.policy, self.repetitions)
        values = compute_ratios(noisy.accepted, noisy.members)
        low, high = self._compute_intervals(noisy, values, rng)
        neighbours = question.curator.neighbours
        guarantee = compose(self.mechanism.guarantee(e, neighbours) for e in noisy.epsilons)
        rules = None if question.rules is None else _tabulate_rules(question, noisy)
        return Release(
            self.metric, values, low, high, self.confidence, guarantee, self.mechanism.noise,
            self._collect_measures(question, noisy), rules,
        )  # fmt: skip

    def _make_question(self, subject: Subject) -> Question:
        people, curator = subject.test, subject.curator
        if curator is None:
            raise InputError(f"auditor {self.name!r} needs a curator, but none was given")
        predictions, rules = people.predictions, getattr(subject.model, "rules", None)
        if curator.people != len(predictions):
            raise InputError(
                f"the curator answers about {curator.people} people, but {len(predictions)} are "
                "audited"
            )
        labels = RateConstraint(self.metric).labels
        strata = None
        if labels != (None,):
            order = [labels.index(label) if label in labels else -1 for label in (0, 1)]
            strata = np.array(order, dtype=np.int8).take(people.labels)
        if not self.needs_rules:
            return Question(curator, predictions, 2, strata, labels, None)
        if not isinstance(rules, Rules):
            how = 'mode = "reference"' if self.mode == "reference" else "per_rule"
            raise InputError(
                f"auditor {self.name!r} with {how} needs rules, but the model has none; audit a "
                'decision tree or a rule list, or use mode = "partition" without per_rule'
            )
        codes = rules.apply(people.features)
        if not np.array_equal(rules.labels.take(codes), predictions):
            raise InputError("the rules of the model and the model predict different labels")
        outcome_of = np.where(rules.labels == 1, np.cumsum(rules.labels, dtype=np.int64), 0)
        outcomes = outcome_of.take(codes)
        return Question(curator, outcomes, 1 + rules.n_favourable, strata, labels, rules)

    def _compute_intervals(
        self, noisy: AuditCounts, values: NDArray[np.float64], rng: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper ends (R,) of the intervals; NaN without resamples."""
        low, high = np.full((2, len(values)), np.nan)
        if self.resamples:
            k = noisy.members.shape[-1]
            width = self.resamples * max(noisy.width, noisy.members.shape[-2] * k * (k - 1) // 2)
            step = max(_AT_ONCE // width, 1)
            for start in range(0, len(values), step):
                part = slice(start, start + step)
                drawn = noisy.draw_plausible(part, self.resamples, rng)
                low[part], high[part] = estimate_interval(drawn, self.confidence)
            # With a user's policy the estimate may be outside.
            np.minimum(low, values, out=low)
            np.maximum(high, values, out=high)
        return low, high

    def _collect_measures(self, question: Question, noisy: AuditCounts) -> MeasureValues:
        strata = len(question.labels)
        measured: MeasureValues = {
            "n_queries": noisy.queries,
            "invalid_ratio": noisy.invalid_ratio,
        }
        if question.rules is not None:
            rules = question.rules
            most = rules.most_queries
            measured |= {
                "n_rules": rules.n_favourable,
                "n_rules_unpruned": rules.unpruned,
                "n_queries_most": None if most is None else most * strata,
            }
        return measured


def _tabulate_rules(question: Question, noisy: AuditCounts) -> DataFrame:
    """Every rule that predicts 1, for each label, with the counts and rates of the first audit."""
    import pandas as pd

    assert question.rules is not None
    texts = [question.rules.texts[code] for code in question.rules.favourable]
    counts, members = noisy.by_rule[0], np.broadcast_to(noisy.members[0][:, None], noisy.shape)
    rates = np.divide(counts, members, out=np.zeros(noisy.shape), where=members > 0)
    groups = list(enumerate(question.curator.groups))
    columns: dict[str, Any] = {"rule": texts * len(question.labels)}
    if question.labels != (None,):
        columns["label"] = np.repeat(np.array(question.labels, dtype=np.int8), len(texts))
    columns["people"] = noisy.people.ravel()
    columns |= {name: counts[..., g].ravel() for g, name in groups}
    columns |= {f"rate of {name}": rates[..., g].ravel() for g, name in groups}
    columns["ratio"] = compute_ratios(counts[..., None, :], members[..., None, :]).ravel()
    return pd.DataFrame(columns)
