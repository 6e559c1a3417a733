"""Differentially private forests of random trees."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fpbench import Guarantee, Sample
from fpbench.builtin.learners._fitted import ScoredModel
from fpbench.builtin.private_tree.fitted import PrivateTree, PrivateTreeBatch
from fpbench.builtin.private_tree.growth import grow_trees
from fpbench.builtin.private_tree.recipe import TreeRecipe, divide_epsilon
from fpbench.builtin.private_tree.tree_learner import (
    LeafMechanism,
    MostPeople,
    RecipeLearner,
    Thresholds,
    encode_declared,
    prepare,
)
from fpbench.data import Domain
from fpbench.models import PublishedTree
from fpbench.privacy import LEAST_EPSILON, compose

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class PrivateForestModel(ScoredModel):
    """A private forest: everything of it is private, by `guarantee`."""

    domain: Domain
    trees: PrivateTreeBatch
    guarantee: Guarantee | None
    """None at infinite epsilon."""

    def find_positive(self, features: DataFrame) -> NDArray[np.float64]:
        """Probabilities (n,) of label 1: means over the trees."""
        return np.asarray(self.trees.proba(encode_declared(self.domain, features)).mean(axis=0))

    @property
    def published_trees(self) -> tuple[PublishedTree, ...]:
        """The trees with their noisy counts."""
        trees = [self.trees.tree(number) for number in range(len(self.trees))]
        find_law = self.trees.candidates.recipe.find_noise_law
        return tuple(
            PublishedTree(
                partial(self._find_leaves, tree),
                tree.tree_.counts,
                *find_law(tree.tree_.counts.shape),
            )
            for tree in trees
        )

    def _find_leaves(self, tree: PrivateTree, features: DataFrame) -> NDArray[np.intp]:
        return tree.apply(encode_declared(self.domain, features))


class PrivateForest(RecipeLearner):
    """Forest of random trees whose leaves have noisy counts: epsilon-differential privacy.

    The splits of a complete tree are drawn without looking at people: a feature uniformly, then one
    of its thresholds or categories. Each tree counts all people, so the trees share epsilon
    equally; leaves are disjoint. This is the forest that Gorgé et al. attack (theirs draws
    splits of one-hot columns). Probabilities are means of (noisy count + 1) / (sum + 2) over trees.

    The features' bounds and categories must be declared with the data set.
    """

    name = "private-forest"
    summary = "forest of random trees with noisy counts in its leaves: differential privacy"
    reference = (
        "Gorgé, Ferry, Gambs, Vidal. Training Set Reconstruction from Differentially Private "
        "Forests: How Effective is DP? SaTML 2026"
    )
    epsilon: float = Field(
        1.0,
        ge=LEAST_EPSILON,
        description="epsilon of the whole forest, if one person is added or removed; inf: no "
        "privacy",
    )
    trees: int = Field(10, ge=1, le=1000, description="number of trees, which share epsilon")
    max_depth: int = Field(5, ge=1, le=16, description="levels of splits; trees are complete")
    thresholds: Thresholds = 64
    most_people: MostPeople = 1_000_000
    mechanism: LeafMechanism = None

    @property
    def gives_trees(self) -> bool:
        """Always."""
        return True

    def recipe(self) -> TreeRecipe:
        """The parameters of one tree."""
        return TreeRecipe(
            epsilon=divide_epsilon(self.epsilon, self.trees),
            selection="random",
            max_depth=self.max_depth,
            thresholds=self.thresholds,
            most_people=self.most_people,
            mechanism=self.mechanism,
        )

    def fit(self, sample: Sample, rng: np.random.Generator) -> PrivateForestModel:
        """Draw the trees and count people in their leaves.

        Raises InputError if a feature's bounds or categories are not declared, bounds are beyond
        single precision, there are more people than `most_people`, or labels are cut at a statistic
        of everybody; DataError if a number is missing.
        """
        recipe = self.recipe()
        domain, candidates, known = prepare(self, sample, recipe)
        matrix, labels = encode_declared(domain, known), np.asarray(sample.labels)
        trees = grow_trees(candidates, matrix, labels, self.trees, rng)
        guarantee = recipe.guarantee
        if guarantee is not None:
            whole = compose([guarantee] * self.trees)
            guarantee = replace(whole, epsilon=max(whole.epsilon, float(self.epsilon)))
        return PrivateForestModel(domain, trees, guarantee)
