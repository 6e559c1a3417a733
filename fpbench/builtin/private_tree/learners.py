"""Differentially private decision trees and forests: for accuracy, and for similar people."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from fpbench import Learner
from fpbench.builtin.learners._fitted import make_twin
from fpbench.builtin.private_tree.recipe import Similarity
from fpbench.builtin.private_tree.tree_learner import TreeLearner


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
    tree without noise. See docs/paper-private-fair-tree.md.
    """

    name = "private-tree"
    summary = "decision tree with noisy splits and leaves: differential privacy"
    reference = "Arik Friedman, Assaf Schuster. Data Mining with Differential Privacy. KDD 2010"


class PrivateFairTree(TreeLearner):
    """The private and fair tree that Silva and Machado proposed, made precise.

    People are similar if they have the same categories, and their numbers, scaled to [0, 1] by
    their declared bounds, differ by at most `tau`. It is `private-tree`, with a similarity:

    `grid` puts all thresholds on borders of cells of width tau: every tree is guaranteed to give
    people of one cell the same label. Similar people on two sides of a border may get different
    labels.

    `ball` spreads a person's mass evenly over [z - tau, z + tau] while a split is chosen, so a
    threshold that separates many similar people scores worse; "the values of similar people count
    in the same proportion". It has no guarantee. People belong to nodes by their own values, so
    nodes of a level stay disjoint, leaves count whole people, and sensitivities do not change.

    **Departures.** The proposal adds noise to each entropy: `selection = "reference"`, with
    `criterion = "entropy"` and `similarity = "ball"`. All candidates of a node then share the
    epsilon of its level, which pays for publishing their entropies, though only the tree is
    published. By default the split itself is chosen privately, and the number of candidates does
    not affect privacy; `gini` needs a twentieth of the noise of `entropy`.
    """

    name = "private-fair-tree"
    summary = "private decision tree that aims to give similar people the same label"
    reference = (
        "Maria L. M. Silva, Javam C. Machado. Classificação diferencialmente privada e não "
        "discriminatória utilizando árvore de decisão. SBBD 2021; Arik Friedman, Assaf Schuster. "
        "Data Mining with Differential Privacy. KDD 2010"
    )

    similarity: Similarity = Field(
        "grid", description="`grid`: thresholds on borders of cells; `ball`: spread mass; or `none`"
    )
    tau: float = Field(
        0.05, ge=0, lt=1, description="greatest difference of similar people's scaled numbers"
    )

    def twin(self) -> Learner:
        """The private tree without similarity."""
        return make_twin(self, "private-tree", TreeLearner.model_fields)

    @model_validator(mode="before")
    @classmethod
    def _drop_unused_tau(cls, parameters: Any) -> Any:
        if isinstance(parameters, dict) and parameters.get("similarity") == "none":
            return {"tau": 0.0, **parameters}
        return parameters
