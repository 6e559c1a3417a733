"""A disclosure: a public claim about the fairness of the target."""

# `fpbench check .` runs it with three groups, and twice with one seed, and checks that it does not
# modify its input. If it has no answer, it raises `fpbench.InputError`. The difficult inputs:
# - the learner asks for no fairness (`context.asked` is None)
# - three groups, one possibly without people of a label

import math

import numpy as np
from pydantic import Field

from fpbench import Claim, Disclosure, hookimpl
from fpbench.claims import Metric, RateConstraint
from fpbench.plugin import Context


class Example(Disclosure):
    """The unfairness of the training predictions, rounded up: a vague but true claim."""

    name = "example-name"
    summary = "a true claim, rounded up to few digits"

    metric: Metric = Field("statistical-parity", description="published metric")
    digits: int = Field(1, ge=1, le=6, description="digits of the claim")

    def claim(self, context: Context, rng: np.random.Generator) -> Claim:
        """Measure and round up."""
        people = context.target
        true = RateConstraint(self.metric).unfairness(
            people.sensitive, people.predictions, people.labels, len(people.groups)
        )
        rounded = math.ceil(true * 10**self.digits) / 10**self.digits
        # Upper bound on its information: the logarithm of the number of possible tolerances.
        nats = math.log(10**self.digits + 1)
        return Claim(RateConstraint(self.metric, rounded), self.name, nats=nats)


@hookimpl
def fpbench_disclosures() -> list[type[Disclosure]]:
    """Register the component."""
    return [Example]
