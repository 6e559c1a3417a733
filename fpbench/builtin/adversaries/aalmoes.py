"""Attacks that see a model's output for people, and nothing else about them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from fpbench.builtin.adversaries._learned_adversary import LearnedAdversary

_REFERENCE = (
    "Aalmoes, Duddu, Boutet. On the Alignment of Group Fairness with Attribute Privacy. 2024, "
    "arXiv 2211.10209"
)


class AdaptAIA(LearnedAdversary):
    """Guesses the group from the model's score alone, by an adaptive threshold.

    A classifier learns from the attack set how groups depend on scores. It guesses a group at or
    above the threshold of its belief that maximises `balanced_accuracy`, so rare groups are
    guessed too. The paper trains a random forest; the classifier here is that of `a1`.
    """

    name = "adapt-aia"
    summary = "boosted trees on the target model's score alone, with an adaptive threshold"
    reference = f"{_REFERENCE}: AdaptAIA-S"
    sees = frozenset({"scores"})

    naming: Literal["likeliest", "balanced"] = Field(
        "balanced",
        description="which group is guessed: the likeliest, or the one that maximises balanced "
        "accuracy, by a threshold (AdaptAIA); beliefs are the same",
    )
    scope: Literal["cell"] = Field(
        "cell", description="a search is for every target: the attack sees only the model"
    )


class AdaptAIAHard(AdaptAIA):
    """Guesses the group from the model's prediction alone: `adapt-aia` without scores."""

    name = "adapt-aia-hard"
    summary = "the same on the target model's prediction alone"
    reference = f"{_REFERENCE}: AdaptAIA-H"
    sees = frozenset({"predictions"})
