"""Three attacks of ART, which see different columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpbench import Sample
from fpbench_art._attack import ARTAttack, encode_labels


class Baseline(ARTAttack):
    """ART's `AttributeInferenceBaseline`: what features reveal without label or model."""

    name = "art-baseline"
    summary = "ART's attribute inference from features alone"
    reference = "Nicolae et al., Adversarial Robustness Toolbox, arXiv 1807.01069, 2018"
    sees = frozenset({"features"})

    def train(self, known: Sample, state: int) -> Any:
        """Train ART's attack."""
        from art.attacks.inference.attribute_inference import AttributeInferenceBaseline

        matrix = self.join_group(known)
        last = matrix.shape[1] - 1
        attack = AttributeInferenceBaseline(attack_model_type=self.model, attack_feature=last)
        self.seed_classifier(attack, state).fit(matrix)
        return attack

    def infer(self, attack: Any, sample: Sample) -> NDArray[Any]:
        """Infer from features."""
        groups: NDArray[Any] = attack.infer(self.encode_features(sample))
        return groups


class TrueLabel(ARTAttack):
    """ART's `AttributeInferenceBaselineTrueLabel`: features and label, as `a1` of Ferry et al."""

    name = "art-true-label"
    summary = "ART's attribute inference from features and label; sees what a1 sees"
    reference = "Nicolae et al., Adversarial Robustness Toolbox, arXiv 1807.01069, 2018"
    sees = frozenset({"features", "labels"})

    def train(self, known: Sample, state: int) -> Any:
        """Train ART's attack."""
        from art.attacks.inference.attribute_inference import AttributeInferenceBaselineTrueLabel

        matrix = self.join_group(known)
        last = matrix.shape[1] - 1
        attack = AttributeInferenceBaselineTrueLabel(
            attack_model_type=self.model, attack_feature=last
        )
        self.seed_classifier(attack, state).fit(matrix, encode_labels(known.labels))
        return attack

    def infer(self, attack: Any, sample: Sample) -> NDArray[Any]:
        """Infer from features and labels."""
        groups: NDArray[Any] = attack.infer(
            self.encode_features(sample), encode_labels(sample.labels)
        )
        return groups


class BlackBox(ARTAttack):
    """ART's `AttributeInferenceBlackBox`: features, label and prediction, as `a2`.

    ART standardises the input of the classifier.
    """

    name = "art-black-box"
    summary = "ART's attribute inference from features, label and prediction; sees what a2 sees"
    reference = (
        "Nicolae et al., Adversarial Robustness Toolbox, arXiv 1807.01069, 2018; Fredrikson et "
        "al., Model Inversion Attacks that Exploit Confidence Information and Basic "
        "Countermeasures, CCS 2015"
    )
    sees = frozenset({"features", "labels", "predictions"})

    def train(self, known: Sample, state: int) -> Any:
        """Train ART's attack on the model's predictions for the known people."""
        from art.attacks.inference.attribute_inference import AttributeInferenceBlackBox
        from art.estimators.classification import BlackBoxClassifier

        matrix, predictions = self.join_group(known), encode_labels(known.predictions)
        start = 0

        def predict_next(people: NDArray[Any]) -> NDArray[np.float32]:
            """Known predictions of the next people: ART queries all, in order, in batches."""
            nonlocal start
            first, start = start, start + len(people)
            return predictions[first:start]

        attack = AttributeInferenceBlackBox(
            BlackBoxClassifier(predict_next, matrix.shape[1:], 2),
            attack_model_type=self.model,
            attack_feature=matrix.shape[1] - 1,
        )
        self.seed_classifier(attack, state).fit(matrix, encode_labels(known.labels))
        return attack

    def infer(self, attack: Any, sample: Sample) -> NDArray[Any]:
        """Infer from features, labels and predictions."""
        predictions = np.asarray(sample.predictions)[:, None].astype(np.float32)
        groups: NDArray[Any] = attack.infer(
            self.encode_features(sample), encode_labels(sample.labels), pred=predictions
        )
        return groups
