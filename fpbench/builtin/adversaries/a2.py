"""The adversary that sees the target model's predictions."""

from fpbench.builtin.adversaries._learned import AskingAdversary


class A2(AskingAdversary):
    """Guesses the group from features, label and the target model's prediction.

    With its defaults it is the forest of the authors' script, on one-hot columns: the script reads
    codes of categories (`encoding = "ordinal"`). They searched its parameters for each data set
    (HyperOpt-Sklearn, 100 evaluations): `trials = 100` does so too.

    References
    ----------
    Ferry, Aïvodji, Gambs, Huguet, Siala: Exploiting Fairness to Enhance Sensitive Attributes
    Reconstruction. SaTML 2023, section IV-A.
    """

    name = "a2"
    summary = "classifier on features, label and the target's prediction"
    reference = (
        "Ferry et al., Exploiting Fairness to Enhance Sensitive Attributes Reconstruction, "
        "SaTML 2023, section IV-A"
    )
    sees = frozenset({"features", "labels", "predictions"})
