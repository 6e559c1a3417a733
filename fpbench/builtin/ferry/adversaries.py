"""Attacks by a classifier that is trained on people whose groups the adversary knows.

What each sees follows Ferry et al.; those named after the paper also have its classifier.
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

    It sees the same as the adversary of Ferry et al. without the model; `a1-ferry` also has its
    classifier.
    """

    name = "a1"
    summary = "boosted trees on features and label; does not see the target model"
    reference = _VIEW
    sees = frozenset({"features", "labels"})


class A2(LearnedAdversary):
    """Guesses the group from features, label and the target model's prediction.

    Otherwise it is `a1`; `a2-ferry` has the paper's classifier.
    """

    name = "a2"
    summary = "boosted trees on features, label and the target model's prediction"
    reference = _VIEW
    sees = frozenset({"features", "labels", "predictions"})


class A2Proba(LearnedAdversary):
    """Guesses the group from features, label, the target model's prediction and its score.

    The score is the model's probability of label 1. The adversaries of Ferry et al. see
    predictions only; otherwise it is `a2`.
    """

    name = "a2-proba"
    summary = "boosted trees on features, label, and the target model's prediction and score"
    reference = _VIEW
    sees = frozenset({"features", "labels", "predictions", "scores"})


class PaperForest(LearnedAdversary):
    """The defaults of the paper's attacks."""

    family: str = Field("random-forest", description=f"classifier to train: {FAMILY_CHOICE}")
    class_weight: Literal["balanced", "none"] = Field(
        "balanced",
        validate_default=True,
        description="balanced: every group has the same weight in training; none: every person has",
    )
    encoding: Encoding | Literal["auto"] = Field(
        "one-hot", description="encoding of categories; auto: as for `a1`"
    )


class A1Ferry(PaperForest, A1):
    """The adversary of Ferry et al. that does not see the model: a class-balanced random forest.

    By default it is the forest of the authors' script, but on one-hot columns: the script reads
    categories as integer codes (`encoding = "ordinal"`). The authors searched its parameters for
    each data set (HyperOpt-Sklearn, 100 evaluations); `trials = 100` does the same. Otherwise it is
    `a1`.
    """

    name = "a1-ferry"
    summary = "the paper's class-balanced forest on features and label; a weak, skewed guess"
    reference = _REFERENCE


class A2Ferry(PaperForest, A2):
    """The adversary of Ferry et al. that sees predictions: `a1-ferry` with predictions."""

    name = "a2-ferry"
    summary = "the paper's class-balanced forest on features, label and prediction"
    reference = _REFERENCE
