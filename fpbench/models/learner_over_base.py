"""Learners that train another learner on transformed people."""

from __future__ import annotations

from pydantic import Field

from fpbench.claims.rates import RateConstraint
from fpbench.components.attack_kinds import Component, Learner


class LearnerOverBase(Learner):
    """A learner that trains a base learner, with attributes delegated to it."""

    needs = frozenset({"features", "labels", "sensitive"})

    base: Learner = Field(description="learner to train on the transformed people")

    @property
    def gives_scores(self) -> bool:  # type: ignore[override]
        """Whether the base gives scores."""
        return self.base.gives_scores

    def explain_no_scores(self) -> str | None:
        """Why the base gives no probabilities."""
        return self.base.explain_no_scores()

    def twin(self) -> Learner | None:
        """The base's twin on equally transformed people; None if the base has none."""
        base = self.base.twin()
        return None if base is None else self.model_copy(update={"base": base})

    def asked(self) -> RateConstraint | None:
        """The metric and tolerance that the base is trained for."""
        return self.base.asked()

    def incompatible(self, other: Component) -> str | None:
        """Why the base cannot be combined with `other`."""
        return super().incompatible(other) or self.base.incompatible(other)
