"""What the attacks share: how fpbench's people become ART's arrays, and ART's answers a guess."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fpbench import Adversary, Codes, DataError, Guess, Sample, View
from fpbench.models import Encoding, encode, random_state

Matrix = NDArray[np.float32]


class ARTAttack(Adversary):
    """An attribute-inference attack of ART: a classifier from what is seen to the group.

    ART infers a column of a model's features. Here it is the sensitive attribute, as a last
    column: whether the model takes it as a feature makes no difference to these attacks, which
    only read what the model said. A part of the attack set is kept from training and guessed like
    the target, so that a corrector can learn how far to trust the confidence.

    ART says groups and no probabilities. Confidence is what its classifier says when ART asks it
    for the guess: of forests, trees and neighbours, which answer for each group apart, its share
    of all answers.
    """

    model: Literal["rf", "gb", "lr", "dt", "knn"] = Field(
        "rf",
        description="ART's attack_model_type, with scikit-learn's defaults: random forest, "
        "gradient boosting, logistic regression, decision tree or nearest neighbours",
    )
    encoding: Encoding = Field("one-hot", description="how categories become numbers")
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
        kept, training = self._cut(len(view.attack), rng)
        state = random_state(rng)
        known, held = view.attack.take(training), view.attack.take(kept)
        groups = np.unique(known.sensitive)
        if len(groups) == 1:  # there is nothing to tell apart
            n, m = len(view.target), len(kept)
            alone = np.full(n, groups[0], np.int8), np.ones(n)
            return Guess(*alone, kept, np.full(m, groups[0], np.int8), np.ones(m))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ART's, and of scikit-learn about how ART uses it
            attack = self.train(known, state)
            target, own = (self._answers(attack, sample, groups) for sample in (view.target, held))
        return Guess(*target, kept, *own)

    @abstractmethod
    def train(self, known: Sample, state: int) -> Any:
        """A trained attack of ART."""

    @abstractmethod
    def infer(self, attack: Any, sample: Sample) -> NDArray[Any]:
        """Groups (n,) that ART infers."""

    def seeded(self, attack: Any, state: int) -> Any:
        """The attack with its classifier seeded, on one thread, and overheard.

        ART leaves its classifiers to numpy's global randomness.
        """
        names = attack.attack_model.get_params()
        ours = {"random_state": state, "n_jobs": 1, **_LR.get(self.model, {})}
        if self.model == "lr":
            del ours["n_jobs"]  # scikit-learn warns that it is of no use
        attack.attack_model.set_params(**{k: v for k, v in ours.items() if k in names})
        attack.attack_model = Overheard(attack.attack_model)
        return attack

    def features(self, sample: Sample) -> Matrix:
        """(n, columns) features, encoded."""
        return encode(sample.features, self.encoding)

    def whole(self, sample: Sample) -> Matrix:
        """(n, columns + 1) the same, and the group last."""
        return np.column_stack([self.features(sample), sample.sensitive.astype(np.float32)])

    def _answers(
        self, attack: Any, sample: Sample, groups: Codes
    ) -> tuple[Codes, NDArray[np.float64]]:
        values = np.asarray(self.infer(attack, sample)).astype(np.int8)
        probability = attack.attack_model.probability
        at = np.searchsorted(groups, values)
        return values, probability[np.arange(len(values)), at]

    def _cut(
        self, people: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Rows that are kept, and the other rows, ascending; at least one of each."""
        if people < 2:
            raise DataError(
                f"the attack set has {people} people: too few to train an adversary on some and "
                "keep others; take a larger data set, or a larger attack part"
            )
        kept = int(np.clip(round(self.held_out * people), 1, people - 1))
        order = rng.permutation(people)
        return np.sort(order[:kept]), np.sort(order[kept:])


_LR: dict[str, dict[str, Any]] = {"lr": {"max_iter": 1000}}
"""Parameters over ART's: a hundred iterations are too few on one-hot features."""


class Overheard:
    """A classifier of scikit-learn that remembers how sure it was of its last answer."""

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier
        self.probability: NDArray[np.float64] = np.empty((0, 0))
        """(n, k) of the groups that it met."""

    def fit(self, matrix: NDArray[Any], classes: NDArray[Any]) -> Any:
        """Train it."""
        return self.classifier.fit(matrix, classes)

    def predict(self, matrix: NDArray[Any]) -> NDArray[Any]:
        """Its answer."""
        said = self.classifier.predict_proba(matrix)
        if isinstance(said, list):  # for every group: whether it is that one
            own = np.column_stack([np.asarray(answer)[:, 1] for answer in said])
            total = own.sum(axis=1, keepdims=True)
            self.probability = np.where(total > 0, own / np.where(total > 0, total, 1), 0.0)
        else:
            self.probability = np.minimum(np.asarray(said, dtype=np.float64), 1.0)
        answer: NDArray[Any] = self.classifier.predict(matrix)
        return answer


def one_hot(labels: Codes) -> Matrix:
    """(n, 2) labels as ART wants them: it would count the labels that it meets."""
    return np.eye(2, dtype=np.float32)[np.asarray(labels)]
