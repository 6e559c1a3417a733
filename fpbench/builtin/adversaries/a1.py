"""The adversary that has no access to the target model."""

from fpbench.builtin.adversaries._learned import LearnedAdversary


class A1(LearnedAdversary):
    """Guesses the group from features and label: what the data gives away without the model.

    With its defaults it is the forest of the authors' script, on one-hot columns: the script reads
    codes of categories (`encoding = "ordinal"`). They searched its parameters for each data set
    (HyperOpt-Sklearn, 100 evaluations): `trials = 100` does so too.

    References
    ----------
    Ferry, Aïvodji, Gambs, Huguet, Siala: Exploiting Fairness to Enhance Sensitive Attributes
    Reconstruction. SaTML 2023, section IV-A.
    """

    name = "a1"
    summary = "classifier on features and label; does not see the target model"
    reference = (
        "Ferry et al., Exploiting Fairness to Enhance Sensitive Attributes Reconstruction, "
        "SaTML 2023, section IV-A"
    )
    sees = frozenset({"features", "labels"})
