"""The adversary that sees the target model's probabilities too."""

from fpbench.builtin.adversaries._learned import AskingAdversary


class A2Proba(AskingAdversary):
    """Guesses the group from features, label, the target's prediction and its score.

    The score is the model's probability of label 1. The adversaries of Ferry et al. see
    predictions only; in all else it is `a2`.

    References
    ----------
    Ferry, Aïvodji, Gambs, Huguet, Siala: Exploiting Fairness to Enhance Sensitive Attributes
    Reconstruction. SaTML 2023, section IV-A.
    """

    name = "a2-proba"
    summary = "classifier on features, label, and the target's prediction and score"
    reference = (
        "Ferry et al., Exploiting Fairness to Enhance Sensitive Attributes Reconstruction, "
        "SaTML 2023, section IV-A"
    )
    sees = frozenset({"features", "labels", "predictions", "scores"})
