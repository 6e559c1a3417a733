"""A differentially private decision tree that treats similar people alike."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from fpbench import Learner
from fpbench.builtin.learners._private_trees import TreeLearner
from fpbench.builtin.learners._twins import make_twin
from fpbench.models import Similarity


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

    **Departures.** The proposal adds noise to each entropy; here the split itself is chosen
    privately, and the number of candidates does not affect privacy. The proposal's criterion is
    `criterion = "entropy"`, `similarity = "ball"`; `gini` needs a twentieth of its noise, and is
    the default.
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
