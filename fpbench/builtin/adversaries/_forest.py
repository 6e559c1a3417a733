"""The attack of Ferry et al.: a random forest trained where the adversary knows the groups."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fpbench import Adversary, Codes, DataError, Guess, Sample, View, encode, random_state


class ForestAdversary(Adversary):
    """A forest, or boosted trees, from what is seen of a person to the person's group.

    Its confidence is the model's probability for the group it guesses. A part of the attack set
    is kept from training and guessed like the target, so that a corrector can learn how far to
    trust that confidence.
    """

    family: Literal["random-forest", "hist-gradient-boosting"] = Field(
        "random-forest",
        description="the paper's model, or a stronger one, which takes only class_weight",
    )
    n_estimators: int = Field(100, ge=1, le=10_000, description="number of trees")
    max_depth: int = Field(6, ge=1, le=1_000, description="greatest depth of a tree")
    min_samples_split: int = Field(
        10, ge=2, description="least people in a node that may be split further"
    )
    min_samples_leaf: int = Field(1, ge=1, description="least people in a leaf")
    class_weight: Literal["balanced", "none"] = Field(
        "balanced",
        description="balanced: every group weighs the same in training; none: every person does",
    )
    held_out: float = Field(
        0.3, gt=0, lt=1, description="share of the attack set that is kept from training"
    )

    def guess(self, view: View, rng: np.random.Generator) -> Guess:
        """Train on a random part of the attack set; guess its other part and the target.

        Raises
        ------
        DataError
            If the attack set has fewer than two people.
        HiddenError
            If the view lacks a column that this adversary sees.
        """
        kept, training = _cut(len(view.attack), self.held_out, rng)
        known, truth = self._matrix(view.attack), view.attack.sensitive
        model = self._boosting(rng) if self.family != "random-forest" else self._forest(rng)
        forest = model.fit(known[training], truth[training])
        values, confidence = _guess(forest, self._matrix(view.target))
        kept_values, kept_confidence = _guess(forest, known[kept])
        return Guess(values, confidence, kept, kept_values, kept_confidence)

    def _matrix(self, sample: Sample) -> NDArray[np.float32]:
        """What is seen: encoded features, then one column each for label and prediction."""
        columns = [encode(sample.features)]
        for column in ("labels", "predictions"):
            if column in self.sees:
                codes: Codes = getattr(sample, column)
                columns.append(codes.astype(np.float32)[:, None])
        return np.hstack(columns)

    def _boosting(self, rng: np.random.Generator) -> Any:
        from sklearn.ensemble import HistGradientBoostingClassifier

        weight = None if self.class_weight == "none" else self.class_weight
        return HistGradientBoostingClassifier(class_weight=weight, random_state=random_state(rng))

    def _forest(self, rng: np.random.Generator) -> Any:
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(
            n_estimators=self.n_estimators,
            max_depth=self.max_depth,
            min_samples_split=self.min_samples_split,
            min_samples_leaf=self.min_samples_leaf,
            class_weight=None if self.class_weight == "none" else self.class_weight,
            random_state=random_state(rng),
            # Several threads would add up probabilities in an order that changes their last digit.
            n_jobs=1,
        )


def _cut(
    people: int, share: float, rng: np.random.Generator
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows kept from training, and rows to train on, ascending; at least one of each."""
    if people < 2:
        raise DataError(
            f"the attack set has {people} people: too few to train an adversary on some and keep "
            "others; take a larger data set, or a larger attack part"
        )
    kept = int(np.clip(round(share * people), 1, people - 1))
    order = rng.permutation(people)
    return np.sort(order[:kept]), np.sort(order[kept:])


def _guess(forest: Any, matrix: NDArray[np.float32]) -> tuple[Codes, NDArray[np.float64]]:
    """The most probable group of each person, and its probability.

    A group without anyone to train on is not among the forest's classes, and is never guessed.
    """
    probability = forest.predict_proba(matrix)
    best = np.argmax(probability, axis=1)
    confidence = np.take_along_axis(probability, best[:, None], axis=1)[:, 0]
    return forest.classes_[best].astype(np.int8), confidence.astype(np.float64, copy=False)
