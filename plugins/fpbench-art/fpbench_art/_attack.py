"""The base class of the attacks: people as arrays for ART, and ART's answers as a guess."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fpbench import Adversary, Guess, Sample, View
from fpbench.errors import DataError
from fpbench.models import Encoding, encode, random_state
from fpbench.plugin import Codes

Matrix = NDArray[np.float32]


class ARTAttack(Adversary):
    """An attribute-inference attack of ART: a classifier from the visible columns to the group.

    ART infers a column of a model's features. Here the sensitive attribute is the last column.
    These attacks only read the model's predictions, so it makes no difference to them whether the
    model takes that column. The attack is not trained on a part of the attack set and guesses that
    part like the target, so that a corrector can learn how far to trust the confidence.

    ART returns groups without probabilities. The confidence is the probability that ART's
    classifier computed for the guess. Forests, trees and neighbours answer for each group apart;
    their confidence is the group's share of all answers.
    """

    model: Literal["rf", "gb", "lr", "dt", "knn"] = Field(
        "rf",
        description="ART's attack_model_type, with scikit-learn's defaults: random forest, "
        "gradient boosting, logistic regression, decision tree or nearest neighbours",
    )
    encoding: Encoding = Field("one-hot", description="how categories become numbers")
    held_out: float = Field(
        0.3, gt=0, lt=1, description="share of the attack set that is held out from training"
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
        held_out, training = self._cut(len(view.attack), rng)
        state = random_state(rng)
        known, other = view.attack.take(training), view.attack.take(held_out)
        groups = np.unique(known.sensitive)
        if len(groups) == 1:  # no classifier can be trained
            n, m = len(view.target), len(held_out)
            alone = np.full(n, groups[0], np.int8), np.ones(n)
            return Guess(*alone, held_out, np.full(m, groups[0], np.int8), np.ones(m))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of ART, and of scikit-learn about ART
            attack = self.train(known, state)
            target, own = (
                self._infer_with_confidence(attack, sample, groups)
                for sample in (view.target, other)
            )
        return Guess(*target, held_out, *own)

    @abstractmethod
    def train(self, known: Sample, state: int) -> Any:
        """A trained attack of ART."""

    @abstractmethod
    def infer(self, attack: Any, sample: Sample) -> NDArray[Any]:
        """Groups (n,) that ART infers."""

    def seed_classifier(self, attack: Any, state: int) -> Any:
        """The attack with its classifier seeded, on one thread, and recorded.

        ART leaves its classifiers to numpy's global randomness.
        """
        names = attack.attack_model.get_params()
        settings = {"random_state": state, "n_jobs": 1, **_LR.get(self.model, {})}
        if self.model == "lr":
            del settings["n_jobs"]  # scikit-learn warns that n_jobs has no effect
        attack.attack_model.set_params(**{k: v for k, v in settings.items() if k in names})
        attack.attack_model = RecordingClassifier(attack.attack_model)
        return attack

    def encode_features(self, sample: Sample) -> Matrix:
        """(n, columns) features, encoded."""
        return encode(sample.features, self.encoding)

    def join_group(self, sample: Sample) -> Matrix:
        """(n, columns + 1) encoded features, and the group last."""
        return np.column_stack([self.encode_features(sample), sample.sensitive.astype(np.float32)])

    def _infer_with_confidence(
        self, attack: Any, sample: Sample, groups: Codes
    ) -> tuple[Codes, NDArray[np.float64]]:
        values = np.asarray(self.infer(attack, sample)).astype(np.int8)
        probability = attack.attack_model.probability
        at = np.searchsorted(groups, values)
        return values, probability[np.arange(len(values)), at]

    def _cut(
        self, people: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Rows that are held out, and rows to train on, ascending; at least one of each."""
        if people < 2:
            raise DataError(
                f"the attack set has {people} people: too few to train an adversary on some and "
                "keep others; take a larger data set, or a larger attack part"
            )
        size = int(np.clip(round(self.held_out * people), 1, people - 1))
        order = rng.permutation(people)
        return np.sort(order[:size]), np.sort(order[size:])


_LR: dict[str, dict[str, Any]] = {"lr": {"max_iter": 1000}}
"""Parameters that replace ART's: 100 iterations are too few on one-hot features."""


class RecordingClassifier:
    """A classifier of scikit-learn that stores the probabilities of its last answer."""

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier
        self.probability: NDArray[np.float64] = np.empty((0, 0))
        """(n, k) probabilities of the groups that it was trained on."""

    def fit(self, matrix: NDArray[Any], classes: NDArray[Any]) -> Any:
        """Train the classifier."""
        return self.classifier.fit(matrix, classes)

    def predict(self, matrix: NDArray[Any]) -> NDArray[Any]:
        """Predicted groups; stores their probabilities."""
        proba = self.classifier.predict_proba(matrix)
        if isinstance(proba, list):  # one array for each group: in it or not
            own = np.column_stack([np.asarray(answer)[:, 1] for answer in proba])
            total = own.sum(axis=1, keepdims=True)
            self.probability = np.where(total > 0, own / np.where(total > 0, total, 1), 0.0)
        else:
            self.probability = np.minimum(np.asarray(proba, dtype=np.float64), 1.0)
        answer: NDArray[Any] = self.classifier.predict(matrix)
        return answer


def encode_labels(labels: Codes) -> Matrix:
    """(n, 2) one-hot labels: from plain labels ART would count only those that occur."""
    return np.eye(2, dtype=np.float32)[np.asarray(labels)]
