"""Attacks by a classifier that is trained on people whose groups the adversary knows.

What each sees is from Ferry et al.; so is the classifier of those named after the paper.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from fpbench.builtin.adversaries._learned_adversary import LearnedAdversary
from fpbench.models import FAMILY_CHOICE, Encoding

_REFERENCE = (
    "Ferry et al., Exploiting Fairness to Enhance Sensitive Attributes Reconstruction, "
    "SaTML 2023, section IV-A"
)
_VIEW = f"what it sees: {_REFERENCE}; the classifier is ours"


class A1(LearnedAdversary):
    """Guesses the group from features and label: what the data reveal without the model.

    It sees what the adversary of Ferry et al. without the model sees, whose own classifier is
    `a1-ferry`.
    """

    name = "a1"
    summary = "boosted trees on features and label; does not see the target model"
    reference = _VIEW
    sees = frozenset({"features", "labels"})


class A2(LearnedAdversary):
    """Guesses the group from features, label and the target model's prediction.

    In all else it is `a1`; the paper's classifier is `a2-ferry`.
    """

    name = "a2"
    summary = "boosted trees on features, label and the target model's prediction"
    reference = _VIEW
    sees = frozenset({"features", "labels", "predictions"})


class A2Proba(LearnedAdversary):
    """Guesses the group from features, label, the target model's prediction and its score.

    The score is the model's probability of label 1. The adversaries of Ferry et al. see
    predictions only; in all else it is `a2`.
    """

    name = "a2-proba"
    summary = "boosted trees on features, label, and the target model's prediction and score"
    reference = _VIEW
    sees = frozenset({"features", "labels", "predictions", "scores"})


class PaperForest(LearnedAdversary):
    """The defaults of the paper's attacks, whatever they see."""

    family: str = Field("random-forest", description=f"classifier that is trained: {FAMILY_CHOICE}")
    class_weight: Literal["balanced", "none"] = Field(
        "balanced",
        validate_default=True,
        description="balanced: every group weighs the same in training; none: every person does",
    )
    encoding: Encoding | Literal["auto"] = Field(
        "one-hot", description="how categories become numbers; auto: as `a1` does"
    )


class A1Ferry(PaperForest, A1):
    """The adversary of Ferry et al. that does not see the model: a class-balanced random forest.

    By default it is the forest of the authors' script, but on one-hot columns: the script reads
    categories as integer codes (`encoding = "ordinal"`). The authors searched its parameters for
    each data set (HyperOpt-Sklearn, 100 evaluations); `trials = 100` does the same. In all else it
    is `a1`.
    """

    name = "a1-ferry"
    summary = "the paper's class-balanced forest on features and label; a weak, skewed guess"
    reference = _REFERENCE


class A2Ferry(PaperForest, A2):
    """The adversary of Ferry et al. that sees the model's predictions: `a1-ferry` with them."""

    name = "a2-ferry"
    summary = "the paper's class-balanced forest on features, label and prediction"
    reference = _REFERENCE
