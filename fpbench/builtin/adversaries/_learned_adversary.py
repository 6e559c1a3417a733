"""A classifier that guesses groups, trained on people whose groups the adversary knows."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, JsonValue, PrivateAttr, ValidationInfo, field_validator

from fpbench import Adversary, Component, Guess, InputError, Measure, Sample, View
from fpbench.base import tell_extra
from fpbench.builtin.adversaries._attack_model import (
    SPACES,
    AttackModel,
    Range,
    Space,
    search,
    train,
)
from fpbench.builtin.adversaries._holding_out import HoldingOut, split_rows
from fpbench.data import ModelAnswers
from fpbench.models import FAMILIES, FAMILY_CHOICE, Encoding, Recipe, encode, random_state
from fpbench.plugin import Codes, MeasureValues


def stack_columns(
    people: Sample, sights: frozenset[str], encoding: Encoding
) -> NDArray[np.float32]:
    """The visible columns of n people, (n, columns): features first, then a model's answers.

    A twin also gives the difference of its score from the model's. A query gives, for each group:
    the answer, its probability of the person's own label, and whether it equals the model's
    prediction for the person.

    Raises HiddenError if the sample lacks one of the columns.
    """
    columns = [encode(people.features, encoding)] if "features" in sights else []
    for name in ("labels", "predictions", "scores"):
        if name in sights:
            columns.append(_as_columns(getattr(people, name)))
    if "twin" in sights:
        columns += _read_twin(people, scored="scores" in sights)
    if "query" in sights:
        columns += _read_query(people, sights)
    return np.hstack(columns)


def _read_twin(people: Sample, *, scored: bool) -> list[NDArray[np.float32]]:
    twin = people.twin
    columns = [_as_columns(twin.predictions)]
    if twin.scores is not None:
        columns.append(_as_columns(twin.scores))
        if scored:
            columns.append(_as_columns(people.scores - twin.scores))
    return columns


def _read_query(people: Sample, sights: frozenset[str]) -> list[NDArray[np.float32]]:
    answers = people.query
    columns = [_as_columns(answers.predictions)]
    if answers.scores is not None:
        columns.append(_as_columns(answers.scores))
    if "labels" in sights:
        columns.append(_as_columns(find_confidence(answers, people.labels)))
    if "predictions" in sights:
        columns.append(_as_columns(answers.predictions == people.predictions[:, None]))
    return columns


def find_confidence(answers: ModelAnswers, labels: Codes) -> NDArray[np.float64]:
    """(n, K) the model's probability of people's own labels, for each group of a query.

    Without probabilities it is 1 or 0: whether the model predicts the label.
    """
    positive = answers.predictions if answers.scores is None else answers.scores
    return np.where(np.asarray(labels)[:, None] == 1, positive, 1.0 - positive)


def _as_columns(values: NDArray[Any]) -> NDArray[np.float32]:
    return values.astype(np.float32).reshape(len(values), -1)


_PARAMETERS: dict[str, dict[str, JsonValue]] = {
    # An attack set is often small: scikit-learn's defaults overfit hundreds of people.
    "hist-gradient-boosting": {
        "max_leaf_nodes": 7, "l2_regularization": 20.0, "max_features": 0.5,
    }
}  # fmt: skip
"""Parameters of attacks that differ from the defaults of the family."""
_MOST_CATEGORIES = 255
"""Greatest number of categories of a column that hist-gradient-boosting splits by sets."""


class LearnedAdversary(HoldingOut):
    """A classifier that guesses a person's group from the person's visible columns.

    Its beliefs are the classifier's probabilities, and it guesses the likeliest group. By default
    the classifier is strong and unskewed: boosted trees with equal weights of all people, chosen
    by held-out accuracy and likelihood on Adult, COMPAS, German and census-synthetic. A part of
    the attack set is held out from training and guessed like the target, so that its beliefs can
    be calibrated.

    A group without training people has the belief of Laplace's rule of succession: 1 / (m + K)
    after m people.

    With `trials`, parameters of the classifier are searched: each set is trained on 80 % of the
    training people, and the set that is most accurate on the other 20 % is trained again on all
    of them. The search does not use held-out people. With scope `dataset` the search sees neither
    the target people nor the model's answers, and runs once for all learners and seeds: on the
    whole attack set of seed 0, which includes people that seed 0 holds out, and that other seeds
    hold out or attack.
    """

    measures = Measure.table("asked", """
        attack_validation_accuracy | greater share | people of the validation part whose group the
            tuned classifier guesses right
        attack_validation_untuned | greater share | the same with the parameters of the first trial
        attack_parameters | neither | the chosen parameters
        attack_trials | neither | number of trials of the search
    """)  # fmt: skip

    family: str = Field(
        "hist-gradient-boosting", description=f"classifier to train: {FAMILY_CHOICE}"
    )
    class_weight: Literal["balanced", "none"] = Field(
        "none",
        validate_default=True,
        description="balanced: every group has the same weight in training; none: every person has",
    )
    parameters: dict[str, JsonValue] = Field(
        {},
        validate_default=True,
        description='arguments of the classifier, over the defaults here; "none" stands for None',
    )
    encoding: Encoding | Literal["auto"] = Field(
        "auto",
        description="encoding of categories; auto: none for hist-gradient-boosting, whose trees "
        "split sets of categories, one-hot for others",
    )
    trials: int = Field(0, ge=0, le=100_000, description="sets of parameters to try; 0: no search")
    scope: Literal["cell", "dataset"] = Field(
        "cell", description="search again for every target, or once for each data set"
    )
    space: Space = Field(
        {},
        validate_default=True,
        description="search space: a list of choices, or a table of low, high and log, for each "
        "parameter; empty: the family's default space",
    )

    abstain_below: float = Field(
        0.0,
        ge=0,
        le=1,
        description="abstain about people whose likeliest group has a lower probability; 0: never",
    )

    naming: Literal["likeliest", "balanced"] = Field(
        "likeliest",
        description="which group is guessed: the likeliest, or the one that maximises balanced "
        "accuracy, by a threshold (AdaptAIA); beliefs are the same",
    )

    _notes: MeasureValues = PrivateAttr(default_factory=dict)

    @field_validator("family")
    @classmethod
    def _check_family(cls, family: str) -> str:
        if family not in FAMILIES:
            Recipe(family).classifier()
        return family

    @field_validator("class_weight")
    @classmethod
    def _check_balance(cls, weight: str, info: ValidationInfo) -> str:
        if "family" in info.data:
            try:
                Recipe(info.data["family"], balanced=weight == "balanced").check_balance()
            except InputError as error:
                raise InputError(f'{error}; class_weight = "none" needs no balancing') from error
        return weight

    @field_validator("parameters")
    @classmethod
    def _check_parameters(cls, parameters: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        if {"family", "class_weight"} <= info.data.keys():  # otherwise an error is reported already
            balanced = info.data["class_weight"] == "balanced"
            Recipe(info.data["family"], parameters, balanced).check({"predict_proba"})
        return parameters

    @field_validator("space")
    @classmethod
    def _check_space(cls, space: Space, info: ValidationInfo) -> Space:
        if {"family", "class_weight", "parameters", "trials"} <= info.data.keys():
            family = info.data["family"]
            if not space and info.data["trials"] and family not in SPACES:
                raise InputError(f"{family} has no default search space: give one")
            balanced, fixed = info.data["class_weight"] == "balanced", info.data["parameters"]
            Recipe(family, fixed, balanced).check(names=space)
            for name, domain in space.items():  # fail now, not in a trial hours later
                for value in [domain.low, domain.high] if isinstance(domain, Range) else domain:
                    Recipe(family, {**fixed, name: value}, balanced).check()
        return space

    def incompatible(self, other: Component) -> str | None:
        """Why there can be no search: Optuna is not installed."""
        if self.trials and find_spec("optuna") is None:
            return (
                f"adversary {self.name!r} searches its parameters with Optuna: "
                f"{tell_extra('search')}, or trials = 0"
            )
        return super().incompatible(other)

    @property
    def portable(self) -> bool:
        """Whether the family is built in; for other classes it is unknown."""
        return self.family in FAMILIES

    @property
    def recipe(self) -> Recipe:
        """The classifier with its parameters."""
        parameters = {**_PARAMETERS.get(self.family, {}), **self.parameters}
        return Recipe(self.family, parameters, self.class_weight == "balanced")

    @property
    def tunes_once(self) -> bool:
        """Whether one search serves all cells."""
        return self.scope == "dataset" and self.trials > 0

    def tune(self, known: Sample, rng: np.random.Generator) -> Adversary:
        """The same adversary with the best parameters of a search that does not see the model."""
        if not self.tunes_once:
            return self
        matrix = self._encode(known, self.sees_without_model)
        recipe = self._find_recipe(known)
        state, space = random_state(rng), self.space or SPACES[self.family]
        result = search(recipe, space, matrix, known.sensitive, self.trials, state, rng)
        tuned = self.model_copy(
            update={"trials": 0, "parameters": {**self.parameters, **result.changes}}
        )
        tuned._notes = result.notes
        return tuned

    def guess(self, view: View, rng: np.random.Generator) -> Guess:
        """Train on a random part of the attack set; guess its other part and the target.

        Raises DataError if the attack set has fewer than two people, or a searched training part
        has; HiddenError if the view lacks a column that this adversary sees.
        """
        if self.tunes_once:
            return self.tune(view.attack, rng).guess(view, rng)
        held_out, training = split_rows(len(view.attack), self.held_out, rng)
        matrix, truth = self._encode(view.attack, self.sees), view.attack.sensitive
        # Drawn before the search, so a search without improvement changes nothing.
        state, recipe = random_state(rng), self._find_recipe(view.attack)
        model, notes = self._fit(recipe, matrix[training], truth[training], state, rng)
        groups = view.target.groups
        beliefs = model.guess(self._encode(view.target, self.sees), len(groups))
        abstains = beliefs.max(axis=1) < self.abstain_below if self.abstain_below else None
        known = model.guess(matrix[held_out], len(groups))
        if self.naming == "likeliest":
            return Guess.from_beliefs(beliefs, held_out, known, notes, abstains)
        weights = weigh_groups(known, truth[held_out])
        return guess_weighted(beliefs, held_out, known, weights, notes, abstains)

    def _fit(
        self,
        recipe: Recipe,
        matrix: NDArray[np.float32],
        truth: Codes,
        state: int,
        rng: np.random.Generator,
    ) -> tuple[AttackModel, MeasureValues]:
        """The classifier for people (n, columns) and their groups (n,), tuned if `trials` > 0."""
        notes = dict(self._notes)
        if self.trials:
            space = self.space or SPACES[self.family]
            result = search(recipe, space, matrix, truth, self.trials, state, rng)
            recipe = replace(recipe, parameters={**recipe.parameters, **result.changes})
            notes = result.notes
        return train(recipe, matrix, truth, state), notes

    @property
    def _splits_categories(self) -> bool:
        """Whether the classifier gets the list of categorical columns."""
        return self.encoding == "auto" and self.family == "hist-gradient-boosting"

    def _find_recipe(self, people: Sample) -> Recipe:
        """The recipe, with the list of categorical columns if the classifier uses it."""
        recipe, told = self.recipe, "categorical_features" in self.parameters
        if not self._splits_categories or told or "features" not in self.sees:
            return recipe
        sizes = [len(dtype.categories) if hasattr(dtype, "categories") else 0
                 for dtype in people.features.dtypes]  # fmt: skip
        # `encode` puts numbers first.
        first, categoricals = sizes.count(0), [size for size in sizes if size]
        columns = [first + i for i, size in enumerate(categoricals) if size <= _MOST_CATEGORIES]
        return replace(recipe, parameters={**recipe.parameters, "categorical_features": columns})

    def _encode(self, sample: Sample, sights: frozenset[str]) -> NDArray[np.float32]:
        """The visible columns of people as numbers (n, columns)."""
        encoding = self.encoding
        if encoding == "auto":
            encoding = "ordinal" if self._splits_categories else "one-hot"
        return stack_columns(sample, sights, encoding)


Floats = NDArray[np.float64]


def weigh_groups(beliefs: Floats, truth: Codes) -> Floats:
    """Weights (K,) of groups: the greatest weighted belief gives balanced guesses.

    With two groups, the second is guessed at or above the threshold of its belief with the greatest
    balanced accuracy, (TPR + TNR) / 2, on people whose groups are known: the point of their ROC
    curve farthest above the diagonal. With more groups, weights are the inverse shares of the
    groups, which maximise balanced accuracy if beliefs are exact.

    `beliefs`: (m, K) probability of each group, for people whose groups are known. `truth`: (m,)
    their groups.

    Source: Aalmoes, Duddu, Boutet. On the Alignment of Group Fairness with Attribute Privacy. 2024,
    arXiv 2211.10209 (AdaptAIA-S; for binary attributes).
    """
    groups = beliefs.shape[1]
    counts = np.bincount(truth, minlength=groups)
    if groups != 2 or not counts.all():
        return np.asarray(1.0 / np.maximum(counts, 1))
    order = np.argsort(-beliefs[:, 1], kind="stable")
    chances = beliefs[order, 1]
    members = truth[order] == 1
    rise = np.cumsum(members) / counts[1] - np.cumsum(~members) / counts[0]
    last = np.append(np.flatnonzero(np.diff(chances)), len(chances) - 1)  # of tied beliefs
    best = last[int(rise[last].argmax())]
    following = chances[best + 1] if best + 1 < len(chances) else 0.0
    threshold = (chances[best] + following) / 2
    return np.array([threshold, 1.0 - threshold])


def guess_weighted(
    beliefs: Floats,
    held_out: NDArray[np.intp],
    held_out_beliefs: Floats,
    weights: Floats,
    notes: MeasureValues | None = None,
    abstains: NDArray[np.bool_] | None = None,
) -> Guess:
    """A guess of the group with the greatest weighted belief; beliefs are unchanged.

    `beliefs`, `held_out`, `held_out_beliefs`, `notes`, `abstains`: as in `fpbench.Guess`.
    `weights`: (K,) weight of each group.
    """
    values, known = (beliefs * weights).argmax(axis=1), (held_out_beliefs * weights).argmax(axis=1)
    return Guess(
        values, beliefs[np.arange(len(values)), values], held_out, known,
        held_out_beliefs[np.arange(len(known)), known], notes or {}, beliefs, held_out_beliefs,
        abstains,
    )  # fmt: skip
