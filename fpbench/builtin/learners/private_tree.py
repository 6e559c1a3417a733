"""A differentially private decision tree."""

from __future__ import annotations

from fpbench.builtin.learners._private_trees import TreeLearner


class PrivateTree(TreeLearner):
    """Decision tree whose splits and leaves have noise: epsilon-differential privacy.

    `leaf_share` of epsilon is for the counts of both labels in the leaves, and the levels share the
    rest equally; the nodes of a level are disjoint, and so are leaves. A node releases only the
    best of public candidates (regular thresholds between declared bounds, and declared categories),
    whose number does not affect privacy. Neighbouring data sets differ by adding or removing one
    person.

    **Criterion.** Impurities are summed over both children and not divided by sizes, so one person
    changes the impurity of a split by at most (n - 1) / n (`gini`), 1 (`max`), or about log2 n +
    1.44 bits (`entropy`, n is `most_people`); all in one direction, which halves the noise. `gini`
    is the default because it withstands noise best.

    **Leaves.** Growth does not depend on data, so leaves may be empty. A leaf without a positive
    noisy count uses the counts of its nearest ancestor. Probabilities are (noisy count + 1) /
    (sum + 2).

    The features' bounds and categories must be declared with the data set. Its baseline is the same
    tree without noise. See docs/private-fair-tree.md.
    """

    name = "private-tree"
    summary = "decision tree with noisy splits and leaves: differential privacy"
    reference = "Arik Friedman, Assaf Schuster. Data Mining with Differential Privacy. KDD 2010"
