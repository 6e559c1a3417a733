"""The disclosure of an unfairness measured under differential privacy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from fpbench import (
    COUNT_SENSITIVITY,
    LEAST_EPSILON,
    Claim,
    Component,
    Context,
    Disclosure,
    InputError,
    Learner,
    Mechanism,
)
from fpbench.builtin.disclosures._rounding import limit_step_nats, round_up
from fpbench.claims import (
    Form,
    Metric,
    RateConstraint,
    compare_rates,
    group_counts,
    limit_claim_nats,
)
from fpbench.privacy import limit_private_nats


class Noisy(Disclosure):
    """A defence: the target's unfairness on its training people, computed from noisy counts.

    A trusted party counts the people of each group, label and prediction, adds noise so that the
    counts are differentially private with respect to anyone's group, and publishes the unfairness
    of the noisy counts, rounded up to a multiple of 0.001. Everything after the noise is
    post-processing, so the claim is as private as the counts. The claim may be false or even
    impossible: a row says whether it is true (`claim_holds`); see `on_infeasible` of the
    correctors.

    Notes
    -----
    Neighbouring data sets differ in one person's group. Negative noisy counts become 0.
    """

    name = "noisy"
    summary = "the unfairness computed from differentially private counts"
    reference = "Dwork & Roth, The Algorithmic Foundations of Differential Privacy, 2014"

    mechanism: Mechanism = Field(description='adds the noise: { use = "laplace" }')
    epsilon: float = Field(
        ge=LEAST_EPSILON, allow_inf_nan=False, description="privacy parameter of the whole claim"
    )
    metric: Metric | None = Field(
        None, description="metric of the claim; by default the one the learner is trained for"
    )
    form: Form = Field("to-overall", description="how the claim compares the groups' rates")

    @classmethod
    def examples(cls, directory: Path) -> list[dict[str, Any]]:
        """Laplace noise at epsilon 1."""
        return [{"epsilon": 1.0}]

    @property
    def protects(self) -> frozenset[str]:
        """The sensitive attribute."""
        return frozenset({"sensitive"})

    def forms(self) -> tuple[str, ...]:
        """The parameter `form`."""
        return (self.form,)

    def incompatible(self, other: Component) -> str | None:
        """Why there is no metric: neither parameter nor learner has one."""
        if isinstance(other, Learner) and other.asked() is None and self.metric is None:
            return (
                f"learner {other.name!r} is trained for no fairness metric, so disclosure "
                f'{self.name!r} must say which one it measures: add `metric = "statistical-parity"`'
            )
        return None

    def claim(self, context: Context, rng: np.random.Generator) -> Claim:
        """Count, add noise, and claim the unfairness of the noisy counts.

        Raises InputError if neither the learner nor the disclosure names a metric.
        """
        asked, people = context.asked, context.target
        metric = self.metric or (asked.metric if asked else None)
        if metric is None:
            raise InputError(
                f"disclosure {self.name!r}: `metric` does not say which one to measure"
            )
        k, measured = len(people.groups), []
        # The slices are disjoint, so each may use the full epsilon (parallel composition).
        for part in RateConstraint(metric).slices(people.labels):
            members, positives = group_counts(people.sensitive, people.predictions, k, part)
            counts = np.concatenate([members - positives, positives])
            noisy = self.mechanism.release(
                counts, COUNT_SENSITIVITY["attribute"], self.epsilon, rng, upper=counts.sum()
            )
            negatives, positives = np.rint(np.maximum(noisy, 0)).astype(np.int64).reshape(2, k)
            measured.append(compare_rates(negatives + positives, positives, self.form))
        constraint = RateConstraint(metric, round_up(max(measured)), self.form)
        guarantee = self.mechanism.guarantee(self.epsilon, "attribute")
        nats = min(
            limit_step_nats(), limit_claim_nats(metric, people),
            limit_private_nats(guarantee, len(people)),
        )  # fmt: skip
        return Claim(
            constraint, self.name, guarantee=guarantee, noise=self.mechanism.noise, nats=nats
        )
