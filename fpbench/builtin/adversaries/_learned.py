"""The attack of Ferry et al.: a classifier trained where the adversary knows the groups."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, JsonValue, PrivateAttr, ValidationInfo, field_validator

from fpbench import (
    CHOICE,
    FAMILIES,
    Adversary,
    Component,
    Encoding,
    Guess,
    InputError,
    Learner,
    Measures,
    Recipe,
    Sample,
    View,
    encode,
    random_state,
)
from fpbench.builtin.adversaries._cut import HoldingOut, cut
from fpbench.builtin.adversaries._model import train
from fpbench.builtin.adversaries._search import search
from fpbench.builtin.adversaries._space import SPACES, Space, ends

_OF_MODEL = frozenset({"predictions", "scores"})


class LearnedAdversary(HoldingOut):
    """A classifier from what is seen of a person to the person's group.

    Its confidence is the classifier's probability for the group it guesses. A part of the attack
    set is kept from training and guessed like the target, so that a corrector can learn how far to
    trust that confidence.

    With `trials`, parameters of the classifier are searched: each set is trained on 80 % of the
    people it may train on, and that which guesses most groups of the other 20 % is trained again
    on all of them. People who are held out have no part in it. With scope `dataset` the search
    sees neither the target nor what it says, and is made once, for all learners and seeds: on
    the whole attack set of seed 0, some of whose people that seed holds out, and other seeds hold
    out or attack.
    """

    family: str = Field("random-forest", description=f"classifier that is trained: {CHOICE}")
    class_weight: Literal["balanced", "none"] = Field(
        "balanced",
        validate_default=True,
        description="balanced: every group weighs the same in training; none: every person does",
    )
    parameters: dict[str, JsonValue] = Field(
        {},
        validate_default=True,
        description='arguments of the classifier over its defaults here; "none" stands for None',
    )
    encoding: Encoding = Field("one-hot", description="how categories become numbers")
    trials: int = Field(
        0, ge=0, le=100_000, description="sets of parameters that are tried; 0: no search"
    )
    scope: Literal["cell", "dataset"] = Field(
        "cell", description="search anew for every target, or once for a data set"
    )
    space: Space = Field(
        {},
        validate_default=True,
        description="where parameters are searched: each a list of choices, or a table of low, "
        "high and log; empty: where the family is usually searched",
    )

    _notes: Measures = PrivateAttr(default_factory=dict)

    @field_validator("family")
    @classmethod
    def _is_there(cls, family: str) -> str:
        if family not in FAMILIES:
            Recipe(family).classifier()
        return family

    @field_validator("class_weight")
    @classmethod
    def _can_be_balanced(cls, weight: str, info: ValidationInfo) -> str:
        if "family" in info.data:
            try:
                Recipe(info.data["family"], balanced=weight == "balanced").check_balance()
            except InputError as error:
                raise InputError(f'{error}; class_weight = "none" does without') from error
        return weight

    @field_validator("parameters")
    @classmethod
    def _can_be_made(cls, given: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        if {"family", "class_weight"} <= info.data.keys():  # or something was wrong already
            balanced = info.data["class_weight"] == "balanced"
            Recipe(info.data["family"], given, balanced).check({"predict_proba"})
        return given

    @field_validator("space")
    @classmethod
    def _can_be_searched(cls, space: Space, info: ValidationInfo) -> Space:
        if {"family", "class_weight", "parameters", "trials"} <= info.data.keys():
            family = info.data["family"]
            if not space and info.data["trials"] and family not in SPACES:
                raise InputError(f"{family} has no usual space to be searched: give one")
            balanced, given = info.data["class_weight"] == "balanced", info.data["parameters"]
            Recipe(family, given, balanced).check(names=space)
            for name, where in space.items():  # or a trial, hours from now, would be the first
                for value in ends(where):
                    Recipe(family, {**given, name: value}, balanced).check()
        return space

    @property
    def portable(self) -> bool:
        """With a family that has a name here; of any other class nobody knows."""
        return self.family in FAMILIES

    @property
    def recipe(self) -> Recipe:
        """How the classifier is made."""
        return Recipe(self.family, self.parameters, self.class_weight == "balanced")

    @property
    def tunes_once(self) -> bool:
        """Whether there is a search, and one for all."""
        return self.scope == "dataset" and self.trials > 0

    def tune(self, known: Sample, rng: np.random.Generator) -> Adversary:
        """The same with the best parameters that a search without the model finds."""
        if not self.tunes_once:
            return self
        matrix = self._matrix(known, self.sees - _OF_MODEL)
        state, space = random_state(rng), self.space or SPACES[self.family]
        found = search(self.recipe, space, matrix, known.sensitive, self.trials, state, rng)
        tuned = self.model_copy(
            update={"trials": 0, "parameters": {**self.parameters, **found.chosen}}
        )
        tuned._notes = found.notes
        return tuned

    def guess(self, view: View, rng: np.random.Generator) -> Guess:
        """Train on a random part of the attack set; guess its other part and the target.

        Raises
        ------
        DataError
            If the attack set has fewer than two people, or its training part has and is searched.
        HiddenError
            If the view lacks a column that this adversary sees.
        """
        if self.tunes_once:
            return self.tune(view.attack, rng).guess(view, rng)
        kept, training = cut(len(view.attack), self.held_out, rng)
        known, truth = self._matrix(view.attack, self.sees), view.attack.sensitive
        # Drawn before a search, so that one that finds nothing better changes nothing.
        state, recipe, notes = random_state(rng), self.recipe, dict(self._notes)
        if self.trials:
            space = self.space or SPACES[self.family]
            found = search(recipe, space, known[training], truth[training], self.trials, state, rng)
            recipe = Recipe(
                self.family, {**self.parameters, **found.chosen}, self.class_weight == "balanced"
            )
            notes = found.notes
        model = train(recipe, known[training], truth[training], state)
        values, confidence = model.guess(self._matrix(view.target, self.sees))
        return Guess(values, confidence, kept, *model.guess(known[kept]), notes)

    def _matrix(self, sample: Sample, columns: frozenset[str]) -> NDArray[np.float32]:
        """What is seen: encoded features, then one column each for all else."""
        seen = [encode(sample.features, self.encoding)]
        for column in ("labels", "predictions", "scores"):
            if column in columns:
                values: NDArray[Any] = getattr(sample, column)
                seen.append(values.astype(np.float32)[:, None])
        return np.hstack(seen)


class AskingAdversary(LearnedAdversary):
    """A learned attack that sees what the target model says of people."""

    access: Literal["given", "query"] = Field(
        "given",
        description="what the model says is known of everyone, or the adversary must ask it, "
        "which needs a model that is not told groups",
    )

    def incompatible(self, other: Component) -> str | None:
        """Nobody can ask a model that must be told what is to be guessed."""
        told = isinstance(other, Learner) and other.predicts_with_sensitive
        if told and self.access == "query":
            return (
                f"adversary {self.name!r} asks the model about people, and that of learner "
                f"{other.name!r} must be told their groups to answer"
            )
        return super().incompatible(other)
