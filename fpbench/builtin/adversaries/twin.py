"""An attack that compares a fair model with its unfair twin."""

from __future__ import annotations

from fpbench.builtin.adversaries._learned_adversary import LearnedAdversary


class Twin(LearnedAdversary):
    """Guesses the group from features, label, and answers of a fair model and its unfair twin.

    The twin is the same learner without its fairness, trained on the same people, such as an
    earlier model. Where both differ, fairness has moved the answer, in different directions for
    different groups. Tian et al. compare both models to infer membership; here the classifier of
    `a2-proba` also sees the twin's answers and the difference of the scores.
    """

    name = "twin"
    summary = "boosted trees on what `a2-proba` sees, and on the answers of the model's unfair twin"
    reference = (
        "after Tian, Zhang, Liu, Zhu, Ding, Zhou. When Fairness Meets Privacy. IJCAI 2024, whose "
        "attack is on membership; the classifier is ours"
    )
    sees = frozenset({"features", "labels", "predictions", "scores", "twin"})
