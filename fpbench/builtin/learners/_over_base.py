"""Learners that train another learner on people whom they have changed."""

from __future__ import annotations

from pydantic import Field

from fpbench import Component, Learner
from fpbench.claims import RateConstraint


class LearnerOverBase(Learner):
    """What all of them answer as their base does."""

    needs = frozenset({"features", "labels", "sensitive"})

    base: Learner = Field(description="learner that is trained on the changed people")

    @property
    def gives_scores(self) -> bool:  # type: ignore[override]
        """Whether the base gives scores."""
        return self.base.gives_scores

    def explain_no_scores(self) -> str | None:
        """Why the base gives no probabilities."""
        return self.base.explain_no_scores()

    def twin(self) -> Learner | None:
        """The base's twin on people who are changed alike; None if the base has none."""
        base = self.base.twin()
        return None if base is None else self.model_copy(update={"base": base})

    def asked(self) -> RateConstraint | None:
        """The metric and tolerance that the base is trained for."""
        return self.base.asked()

    def incompatible(self, other: Component) -> str | None:
        """Why the base cannot be combined with it."""
        return super().incompatible(other) or self.base.incompatible(other)
