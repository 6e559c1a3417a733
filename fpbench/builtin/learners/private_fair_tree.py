"""A differentially private decision tree that minds who is similar to whom."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from fpbench.builtin.learners._private_trees import TreeLearner
from fpbench.models import Similarity


class PrivateFairTree(TreeLearner):
    """The private and fair tree that Silva and Machado proposed, made precise.

    People are similar if they have the same categories, and their numbers, scaled to [0, 1] by
    their declared bounds, differ by at most `tau`. As `private-tree`, and besides:

    `grid` puts all thresholds on borders of cells of width tau: people of one cell get one label by
    every tree, with certainty. Similar people on two sides of a border may still get two.

    `ball` spreads a person's mass evenly over [z - tau, z + tau] while a split is chosen, so that a
    threshold that would part many similar people looks worse; "the values of similar people count
    in the same proportion". It promises nothing. Who belongs to a node stays decided by their own
    values, so that nodes of a level share nobody, and leaves count people whole. Sensitivities
    stay as they are without it.

    **Departures.** The proposal adds noise to each entropy; here the split itself is chosen
    privately, for which the number of candidates costs nothing. Its criterion is `criterion =
    "entropy"`, `similarity = "ball"`; `gini` needs a twentieth of its noise, and is the default.

    References
    ----------
    Silva, Machado: Classificacao diferencialmente privada e nao discriminatoria utilizando arvore
    de decisao. SBBD 2021. Friedman, Schuster: Data Mining with Differential Privacy. KDD 2010.
    """

    name = "private-fair-tree"
    summary = "private decision tree that treats similar people alike, by cells or by shared mass"
    reference = (
        "Maria L. M. Silva, Javam C. Machado. Classificação diferencialmente privada e não "
        "discriminatória utilizando árvore de decisão. SBBD 2021"
    )

    similarity: Similarity = Field(
        "grid", description="`grid`: thresholds on borders of cells; `ball`: spread mass; or `none`"
    )
    tau: float = Field(
        0.05, ge=0, lt=1, description="greatest difference of similar people's scaled numbers"
    )

    @model_validator(mode="before")
    @classmethod
    def _no_tau_in_vain(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("similarity") == "none":
            return {"tau": 0.0, **given}
        return given
