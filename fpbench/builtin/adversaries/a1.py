"""The adversary that has no access to the target model."""

from fpbench.builtin.adversaries._forest import ForestAdversary


class A1(ForestAdversary):
    """Guesses the group from features and label: what the data gives away without the model.

    Parameters that the authors tuned for each data set (HyperOpt-Sklearn, 100 evaluations) are
    fixed here, with the values of their script as defaults.

    References
    ----------
    Ferry, Aïvodji, Gambs, Huguet, Siala: Exploiting Fairness to Enhance Sensitive Attributes
    Reconstruction. SaTML 2023, section IV-A.
    """

    name = "a1"
    summary = "random forest on features and label; does not see the target model"
    reference = (
        "Ferry et al., Exploiting Fairness to Enhance Sensitive Attributes Reconstruction, "
        "SaTML 2023, section IV-A"
    )
    sees = frozenset({"features", "labels"})
