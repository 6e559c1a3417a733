"""The adversary that sees the target model's predictions."""

from fpbench.builtin.adversaries._forest import ForestAdversary


class A2(ForestAdversary):
    """Guesses the group from features, label and the target model's prediction.

    Parameters that the authors tuned for each data set (HyperOpt-Sklearn, 100 evaluations) are
    fixed here, with the values of their script as defaults.

    References
    ----------
    Ferry, Aïvodji, Gambs, Huguet, Siala: Exploiting Fairness to Enhance Sensitive Attributes
    Reconstruction. SaTML 2023, section IV-A.
    """

    name = "a2"
    summary = "random forest on features, label and the target's prediction"
    reference = (
        "Ferry et al., Exploiting Fairness to Enhance Sensitive Attributes Reconstruction, "
        "SaTML 2023, section IV-A"
    )
    sees = frozenset({"features", "labels", "predictions"})
