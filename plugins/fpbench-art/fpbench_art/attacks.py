"""Three attacks of ART, by what they see."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpbench import Sample
from fpbench_art._attack import ARTAttack, one_hot


class Baseline(ARTAttack):
    """ART's `AttributeInferenceBaseline`: what features give away without label or model."""

    name = "art-baseline"
    summary = "ART's attribute inference from features alone"
    reference = "Nicolae et al., Adversarial Robustness Toolbox, arXiv 1807.01069, 2018"
    sees = frozenset({"features"})

    def train(self, known: Sample, state: int) -> Any:
        """Train ART's attack."""
        from art.attacks.inference.attribute_inference import AttributeInferenceBaseline

        whole = self.whole(known)
        last = whole.shape[1] - 1
        attack = AttributeInferenceBaseline(attack_model_type=self.model, attack_feature=last)
        self.seeded(attack, state).fit(whole)
        return attack

    def infer(self, attack: Any, sample: Sample) -> NDArray[Any]:
        """Infer from features."""
        found: NDArray[Any] = attack.infer(self.features(sample))
        return found


class TrueLabel(ARTAttack):
    """ART's `AttributeInferenceBaselineTrueLabel`: features and label, as `a1` of Ferry et al."""

    name = "art-true-label"
    summary = "ART's attribute inference from features and label; sees what a1 sees"
    reference = "Nicolae et al., Adversarial Robustness Toolbox, arXiv 1807.01069, 2018"
    sees = frozenset({"features", "labels"})

    def train(self, known: Sample, state: int) -> Any:
        """Train ART's attack."""
        from art.attacks.inference.attribute_inference import AttributeInferenceBaselineTrueLabel

        whole = self.whole(known)
        last = whole.shape[1] - 1
        attack = AttributeInferenceBaselineTrueLabel(
            attack_model_type=self.model, attack_feature=last
        )
        self.seeded(attack, state).fit(whole, one_hot(known.labels))
        return attack

    def infer(self, attack: Any, sample: Sample) -> NDArray[Any]:
        """Infer from features and labels."""
        found: NDArray[Any] = attack.infer(self.features(sample), one_hot(sample.labels))
        return found


class BlackBox(ARTAttack):
    """ART's `AttributeInferenceBlackBox`: features, label and prediction, as `a2`.

    ART standardises what the classifier takes.
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
        """Train ART's attack on what the model said of the people it is trained on."""
        from art.attacks.inference.attribute_inference import AttributeInferenceBlackBox
        from art.estimators.classification import BlackBoxClassifier

        whole, said = self.whole(known), one_hot(known.predictions)
        asked = 0

        def answers(people: NDArray[Any]) -> NDArray[np.float32]:
            """What is known of the next people: ART asks about all, in order, in batches."""
            nonlocal asked
            first, asked = asked, asked + len(people)
            return said[first:asked]

        attack = AttributeInferenceBlackBox(
            BlackBoxClassifier(answers, whole.shape[1:], 2),
            attack_model_type=self.model,
            attack_feature=whole.shape[1] - 1,
        )
        self.seeded(attack, state).fit(whole, one_hot(known.labels))
        return attack

    def infer(self, attack: Any, sample: Sample) -> NDArray[Any]:
        """Infer from features, labels and predictions."""
        said = np.asarray(sample.predictions)[:, None].astype(np.float32)
        found: NDArray[Any] = attack.infer(self.features(sample), one_hot(sample.labels), pred=said)
        return found
