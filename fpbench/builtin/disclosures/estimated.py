"""What an adversary believes of the target's fairness when nothing is disclosed."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from fpbench import (
    METRICS,
    Claim,
    Component,
    Context,
    Disclosure,
    Form,
    InputError,
    Learner,
    Metric,
    RateConstraint,
)
from fpbench.builtin.disclosures._rounding import rounded_up


class Estimated(Disclosure):
    """The adversary measures the target on its attack set, where it knows everyone's group.

    Of all metrics the one with the smallest unfairness is taken for the one that the target was
    trained for, and that unfairness, rounded up to a multiple of 0.001, for its tolerance.
    Equalized odds is a maximum of two others, so it is never taken unless it is told. The
    estimate may be wrong: a row says which metric was taken (`claim_metric`), whether it is the one
    the learner was trained for (`metric_right`), and whether the claim is true of the training
    people (`claim_holds`).

    References
    ----------
    Ferry, Aïvodji, Gambs, Huguet, Siala: Exploiting Fairness to Enhance Sensitive Attributes
    Reconstruction. SaTML 2023.
    """

    name = "estimated"
    summary = "the metric and tolerance that the adversary measures on its attack set"
    reference = (
        "Ferry et al., Exploiting Fairness to Enhance Sensitive Attributes Reconstruction, "
        "SaTML 2023"
    )

    metric: Metric | Literal["asked"] | None = Field(
        None,
        description="the metric, if the adversary knows it; `asked`: the learner's; by default it "
        "takes the one that it measures least unfairness in",
    )
    form: Form = Field("to-overall", description="how the groups' rates are compared")

    def forms(self) -> tuple[str, ...]:
        """The form it measures in."""
        return (self.form,)

    def incompatible(self, other: Component) -> str | None:
        """The learner's metric is known only if it has one."""
        if self.metric == "asked" and isinstance(other, Learner) and other.asked() is None:
            return (
                f"learner {other.name!r} is trained for no fairness metric, so disclosure "
                f'{self.name!r} cannot know it: leave out `metric = "asked"`'
            )
        return None

    def claim(self, context: Context, rng: np.random.Generator) -> Claim:
        """Measure the attack set and believe what is least.

        Raises
        ------
        InputError
            If the learner's metric is to be known, and it has none.
        """
        asked, attack = context.asked, context.attack
        metrics = METRICS
        if self.metric == "asked":
            if asked is None:
                raise InputError(f"disclosure {self.name!r}: the learner is trained for no metric")
            metrics = (asked.metric,)
        elif self.metric is not None:
            metrics = (self.metric,)
        measured = {
            metric: RateConstraint(metric, form=self.form).unfairness(
                attack.sensitive, attack.predictions, attack.labels, len(attack.groups)
            )
            for metric in metrics
        }
        metric = min(measured, key=lambda name: measured[name])  # the first of equals
        right = None if asked is None else int(metric == asked.metric)
        constraint = RateConstraint(metric, rounded_up(measured[metric]), self.form)
        return Claim(constraint, self.name, notes={"metric_right": right})
