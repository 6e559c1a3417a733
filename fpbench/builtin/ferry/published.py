"""The disclosure of an honest publisher: a claim that is true of the training predictions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from pydantic import Field

from fpbench import Claim
from fpbench.builtin.disclosures.claims import AboutOneMetric, limit_step_nats, round_up
from fpbench.claims import RateConstraint, limit_claim_nats
from fpbench.plugin import Context


class Published(AboutOneMetric):
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

    every_slice: bool = Field(
        False,
        description="equalized odds: whether each group has a member in both slices, as in the "
        "paper, or in one",
    )

    def claim(self, context: Context, rng: np.random.Generator) -> Claim:
        """Measure the predictions and make a true claim about them.

        Raises InputError if neither the learner nor the disclosure names a metric.
        """
        asked, people = context.asked, context.target
        metric = self.find_metric(context)
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
