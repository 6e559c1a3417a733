"""Disclosures of nothing, of a noisy unfairness, and of what adversaries estimate by themselves."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field

from fpbench import Claim, Component, Disclosure, InputError, Learner, Measure, Mechanism
from fpbench.claims import (
    METRICS,
    Form,
    Metric,
    RateConstraint,
    compare_rates,
    group_counts,
    limit_claim_nats,
)
from fpbench.plugin import Context
from fpbench.privacy import COUNT_SENSITIVITY, LEAST_EPSILON, limit_private_nats

_STEPS = 1000
"""Disclosed tolerances are integer multiples of 1 / 1000."""


def limit_step_nats(least: Fraction = Fraction(0)) -> float:
    """Logarithm of the number of possible tolerances from the least one to 1."""
    return math.log(_STEPS - math.ceil(least * _STEPS) + 1)


def round_up(least: Fraction) -> float:
    """The least multiple of 0.001 not below `least`, up to 1, as the float with its digits."""
    return min(math.ceil(least * _STEPS), _STEPS) / _STEPS


class Hidden(Disclosure):
    """Discloses nothing about the target's fairness: only facts in `also` can help.

    The accuracy of attacks against it is the baseline of every other disclosure.
    """

    name = "hidden"
    summary = "nothing is disclosed"

    def forms(self) -> tuple[str, ...]:
        """None."""
        return ()

    def claim(self, context: Context, rng: np.random.Generator) -> None:
        """Claim nothing."""


class AboutOneMetric(Disclosure):
    """A claim about one metric: the one named, or the learner's."""

    metric: Metric | None = Field(
        None, description="metric of the claim; by default the one the learner is trained for"
    )
    form: Form = Field("to-overall", description="how the claim compares the groups' rates")

    def forms(self) -> tuple[str, ...]:
        """The parameter `form`."""
        return (self.form,)

    def incompatible(self, other: Component) -> str | None:
        """Why there is no metric: neither parameter nor learner has one."""
        if isinstance(other, Learner) and other.asked() is None and self.metric is None:
            return (
                f"learner {other.name!r} is trained for no fairness metric, so disclosure "
                f"{self.name!r} must say which one its claim is about: add "
                '`metric = "statistical-parity"` (or another) to it'
            )
        return None

    def find_metric(self, context: Context) -> Metric:
        """The metric; InputError if neither the learner nor the disclosure names one."""
        metric = self.metric or (context.asked.metric if context.asked else None)
        if metric is None:
            raise InputError(
                f"disclosure {self.name!r}: the learner is trained for no fairness metric, and "
                "`metric` does not say which one the claim is about"
            )
        return metric


class Noisy(AboutOneMetric):
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

    @classmethod
    def examples(cls, directory: Path) -> list[dict[str, Any]]:
        """Laplace noise at epsilon 1."""
        return [{"epsilon": 1.0}]

    @property
    def protects(self) -> frozenset[str]:
        """The sensitive attribute."""
        return frozenset({"sensitive"})

    def claim(self, context: Context, rng: np.random.Generator) -> Claim:
        """Count, add noise, and claim the unfairness of the noisy counts.

        Raises InputError if neither the learner nor the disclosure names a metric.
        """
        people, metric = context.target, self.find_metric(context)
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


class Estimated(Disclosure):
    """The adversary measures the target on its attack set, where it knows everyone's group.

    It assumes that the target was trained for the metric with the smallest measured unfairness,
    and that its tolerance is that unfairness, rounded up to a multiple of 0.001. Equalized odds
    is the maximum of two other metrics, so it is never assumed unless `metric` says so. The
    estimate may be wrong: a row says which metric was assumed (`claim_metric`), whether it is the
    one the learner was trained for (`metric_right`), and whether the claim is true of the training
    people (`claim_holds`).
    """

    name = "estimated"
    summary = "the metric and tolerance that the adversary measures on its attack set"
    reference = (
        "Ferry et al., Exploiting Fairness to Enhance Sensitive Attributes Reconstruction, "
        "SaTML 2023"
    )
    measures = Measure.table("varying", """
        metric_right | greater yes or no | whether the learner was trained for the estimated
            metric
    """)  # fmt: skip

    metric: Metric | Literal["asked"] | None = Field(
        None,
        description="the metric, if the adversary knows it; `asked`: the learner's; by default the "
        "one with the least measured unfairness",
    )
    form: Form = Field("to-overall", description="how the groups' rates are compared")
    every_slice: bool = Field(
        False,
        description="equalized odds: whether each group has a member in both slices, as in the "
        "paper, or in one",
    )

    def forms(self) -> tuple[str, ...]:
        """The parameter `form`."""
        return (self.form,)

    def incompatible(self, other: Component) -> str | None:
        """Why the adversary cannot know the learner's metric: there is none."""
        if self.metric == "asked" and isinstance(other, Learner) and other.asked() is None:
            return (
                f"learner {other.name!r} is trained for no fairness metric, so disclosure "
                f'{self.name!r} cannot know it: leave out `metric = "asked"`'
            )
        return None

    def claim(self, context: Context, rng: np.random.Generator) -> Claim:
        """Measure all metrics on the attack set and claim the least unfairness.

        Raises InputError if `metric` is `asked`, and the learner is trained for none.
        """
        target, attack = context.asked, context.attack
        metrics = METRICS
        if self.metric == "asked":
            if target is None:
                raise InputError(f"disclosure {self.name!r}: the learner is trained for no metric")
            metrics = (target.metric,)
        elif self.metric is not None:
            metrics = (self.metric,)
        measured = {
            metric: RateConstraint(metric, form=self.form).unfairness(
                attack.sensitive, attack.predictions, attack.labels, len(attack.groups)
            )
            for metric in metrics
        }
        metric = min(measured, key=lambda name: measured[name])  # the first of tied ones
        right = None if target is None else int(metric == target.metric)
        estimate = round_up(measured[metric])
        constraint = RateConstraint(metric, estimate, self.form, self.every_slice)
        # Computed from known groups of the attack set: no information about the target.
        return Claim(constraint, self.name, notes={"metric_right": right}, nats=0.0)
