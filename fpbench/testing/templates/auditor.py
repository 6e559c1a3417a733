"""An auditor: it measures a trained model."""

# `fpbench check .` runs it with three groups, and twice with one seed, and checks that it does not
# modify its input. If it has no answer, it raises `fpbench.InputError`. The difficult inputs:
# - no model or no curator, if it needs one
# - three groups, one possibly without people of a label

import numpy as np
from pydantic import Field

from fpbench import Auditor, Measure, hookimpl
from fpbench.plugin import MeasureValues, Subject


class Example(Auditor):
    """The gap between the groups' accuracies."""

    name = "example-name"
    summary = "the gap between the groups' accuracies"
    sees = frozenset({"labels", "sensitive", "predictions"})
    measures = (Measure("accuracy_gap", better="less", meaning="greatest minus least accuracy"),)

    least: int = Field(1, ge=1, description="least number of people in a group that counts")

    def audit(self, subject: Subject, rng: np.random.Generator) -> MeasureValues:
        """Measure the test people; names of measures are snake_case."""
        people = subject.test
        right = people.predictions == people.labels
        members = [people.sensitive == group for group in range(len(people.groups))]
        accuracies = [float(right[who].mean()) for who in members if who.sum() >= self.least]
        return {"accuracy_gap": max(accuracies) - min(accuracies) if accuracies else None}


@hookimpl
def fpbench_auditors() -> list[type[Auditor]]:
    """Register the component."""
    return [Example]
