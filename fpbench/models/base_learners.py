"""Base classes of learners around a scikit-learn classifier, or around another learner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, JsonValue, ValidationInfo, field_validator

from fpbench.base.errors import InputError
from fpbench.claims.rates import RateConstraint
from fpbench.components.attack_kinds import Component, Learner
from fpbench.models.classifiers import FAMILIES, FAMILY_CHOICE, Recipe, random_state
from fpbench.models.encoding import Encoding, encode

if TYPE_CHECKING:
    from pandas import DataFrame


class SklearnLearner(Learner):
    """A learner around a scikit-learn classifier of the user's choice."""

    gives_scores = True
    base_needs: ClassVar[frozenset[str]] = frozenset()
    """What the base must have: `predict_proba`, `sample_weight`, or both."""
    scores_of_base: ClassVar[bool] = True
    """Whether the model's probabilities are those of the base: it has none if the base has none."""

    base: str = Field(
        "decision-tree", description=f"classifier that is trained underneath: {FAMILY_CHOICE}"
    )
    base_parameters: dict[str, JsonValue] = Field(
        {},
        validate_default=True,
        description='arguments of the base over its defaults here; "none" stands for None',
    )
    encoding: Encoding = Field("one-hot", description="how categories become numbers")

    @field_validator("base")
    @classmethod
    def _check_base(cls, base: str) -> str:
        if base not in FAMILIES:
            Recipe(base).classifier()
        return base

    @field_validator("base_parameters")
    @classmethod
    def _check_base_parameters(
        cls, parameters: dict[str, Any], info: ValidationInfo
    ) -> dict[str, Any]:
        if "base" in info.data:  # or something else was wrong already
            Recipe(info.data["base"], parameters).check(cls.base_needs)
        return parameters

    @property
    def portable(self) -> bool:
        """True for a base that has a name here; unknown, so False, for any other class."""
        return self.base in FAMILIES

    @property
    def recipe(self) -> Recipe:
        """The recipe of the base."""
        return Recipe(self.base, self.base_parameters)

    def estimator(self, rng: np.random.Generator) -> Any:
        """The base model, not yet fitted."""
        return self.recipe.make(random_state(rng))

    def encode(self, features: DataFrame) -> NDArray[np.float32]:
        """Features as the base model takes them: (n, columns), single precision."""
        return encode(features, self.encoding)

    def explain_no_scores(self) -> str | None:
        """Why the base gives no probabilities, if the model's are those of the base."""
        if self.scores_of_base:
            try:
                self.recipe.check({"predict_proba"})
            except InputError as error:
                return str(error)
        return None


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
