"""The adversary's estimate of the target's fairness if nothing is disclosed."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from fpbench import Claim, Component, Context, Disclosure, InputError, Learner, Measure
from fpbench.builtin.disclosures._rounding import round_up
from fpbench.claims import METRICS, Form, Metric, RateConstraint


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
        constraint = RateConstraint(metric, round_up(measured[metric]), self.form)
        # Computed from known groups of the attack set: no information about the target.
        return Claim(constraint, self.name, notes={"metric_right": right}, nats=0.0)
