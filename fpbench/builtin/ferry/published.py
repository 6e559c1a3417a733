"""The disclosure of an honest publisher: a claim that is true of the training predictions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from pydantic import Field

from fpbench import Claim, Component, Disclosure, InputError, Learner
from fpbench.builtin.disclosures.claims import limit_step_nats, round_up
from fpbench.claims import Form, Metric, RateConstraint, limit_claim_nats
from fpbench.plugin import Context


class Published(Disclosure):
    """The fairness that the learner was trained for, or the measured fairness if that is worse.

    The tolerance is the larger of the learner's tolerance and the unfairness measured on the
    training predictions, rounded up to a multiple of 0.001 in exact arithmetic, so the claim is
    always true (with `every_slice`, unless a group has no member in a slice). The learner's
    tolerance counts only if it is for the claimed metric and form; otherwise the measured
    unfairness is published.
    """

    name = "published"
    summary = "a true claim: the larger of the learner's tolerance and the measured unfairness"
    reference = (
        "Ferry et al., Exploiting Fairness to Enhance Sensitive Attributes Reconstruction, "
        "SaTML 2023"
    )

    metric: Metric | None = Field(
        None, description="metric of the claim; by default the one the learner is trained for"
    )
    form: Form = Field("to-overall", description="how the claim compares the groups' rates")
    every_slice: bool = Field(
        False,
        description="equalized odds: whether each group has a member in both slices, as in the "
        "paper, or in one",
    )

    def forms(self) -> tuple[str, ...]:
        """The parameter `form`."""
        return (self.form,)

    def incompatible(self, other: Component) -> str | None:
        """Why there is no metric: neither parameter nor learner has one."""
        if isinstance(other, Learner) and other.asked() is None and self.metric is None:
            return (
                f"learner {other.name!r} is trained for no fairness metric, so disclosure "
                f"{self.name!r} must say which one it publishes: add "
                f'`metric = "statistical-parity"` (or another) to it'
            )
        return None

    def claim(self, context: Context, rng: np.random.Generator) -> Claim:
        """Measure the predictions and make a true claim about them.

        Raises InputError if neither the learner nor the disclosure names a metric.
        """
        asked, people = context.asked, context.target
        metric = self.metric or (asked.metric if asked else None)
        if metric is None:
            raise InputError(
                f"disclosure {self.name!r}: the learner is trained for no fairness metric, and "
                "`metric` does not say which one to publish"
            )
        constraint = RateConstraint(metric, form=self.form)
        tolerance = constraint.unfairness(
            people.sensitive, people.predictions, people.labels, len(people.groups)
        )
        least = Fraction(0)
        if asked is not None and (asked.metric, asked.form) == (metric, self.form):
            least = asked.exact_tolerance
        published = round_up(max(tolerance, least))
        claimed = RateConstraint(metric, published, self.form, self.every_slice)
        nats = min(limit_step_nats(least), limit_claim_nats(metric, people))
        return Claim(claimed, self.name, nats=nats)
