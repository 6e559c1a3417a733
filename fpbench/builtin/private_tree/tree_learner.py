"""Private decision trees: their model, parameters and training on declared features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from fpbench import Classifier, Guarantee, Learner, Measure, Mechanism, Sample
from fpbench.builtin.learners._fitted import ScoredModel
from fpbench.builtin.private_tree.fitted import PrivateTree, PrivateTreeBatch, rules_within
from fpbench.builtin.private_tree.growth import grow_trees, grow_trees_apart
from fpbench.builtin.private_tree.recipe import TreeRecipe
from fpbench.builtin.private_tree.split_candidates import SplitCandidates
from fpbench.builtin.private_tree.split_scores import Criterion, Selection
from fpbench.data import Domain
from fpbench.models import EncodedColumn, PublishedTree, Rules, encode, encoded_names, tree_rules
from fpbench.plugin import Codes, MeasureValues
from fpbench.privacy import LEAST_EPSILON

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class DomainTree(ScoredModel):
    """A tree on features of a declared domain."""

    domain: Domain
    tree: PrivateTree
    columns: tuple[EncodedColumn, ...]

    @cached_property
    def rules(self) -> Rules:
        """Its rules."""
        return rules_within(tree_rules(self.tree, self.columns, "one-hot"), self.domain)

    def find_positive(self, features: DataFrame) -> NDArray[np.float64]:
        """Probabilities (n,) of label 1."""
        return self.tree.proba(encode_declared(self.domain, features))[:, 1]


@dataclass(frozen=True)
class RedrawnTrees:
    """R trees of the same people, each with fresh noise: a `fpbench.auditing.RedrawnModels`."""

    domain: Domain
    trees: PrivateTreeBatch

    def proba(self, features: DataFrame) -> NDArray[np.float64]:
        """Probabilities (R, n) of label 1."""
        return self.trees.proba(encode_declared(self.domain, features))


@dataclass(frozen=True)
class PrivateTreeModel(DomainTree):
    """A private tree, and its counterpart without privacy.

    The tree, its predictions, rules and notes are private, by `guarantee`. The baseline, `cells` of
    the training people, and redrawn trees are not private.
    """

    guarantee: Guarantee | None
    """None at infinite epsilon."""
    candidates: SplitCandidates
    people: DataFrame
    """The n training people within their domain; takes less memory than the matrix."""
    labels: Codes

    @cached_property
    def baseline(self) -> DomainTree:
        """The same tree at infinite epsilon."""
        clean = replace(self.candidates, recipe=self.candidates.recipe.without_privacy())
        matrix, unused = encode_declared(self.domain, self.people), np.random.default_rng(0)
        tree = grow_trees(clean, matrix, self.labels, 1, unused).tree(0)
        return DomainTree(self.domain, tree, self.columns)

    @cached_property
    def notes(self) -> MeasureValues:
        """A row's measures of the tree."""
        return _collect_notes(self)

    @cached_property
    def published_trees(self) -> tuple[PublishedTree, ...]:
        """The tree with its noisy counts; empty if it spreads people over neighbourhoods."""
        if self.candidates.recipe.similarity == "ball":
            return ()
        counts = self.tree.tree_.counts
        sigma, scale = self.candidates.recipe.find_noise_law(counts.shape)

        def find_leaves(features: DataFrame) -> NDArray[np.intp]:
            return self.tree.apply(encode_declared(self.domain, features))

        return (PublishedTree(find_leaves, counts, sigma, scale),)

    def redraw(self, repetitions: int, rng: np.random.Generator) -> RedrawnTrees:
        """R trees trained again with fresh noise."""
        matrix = encode_declared(self.domain, self.people)
        trees = grow_trees(self.candidates, matrix, self.labels, repetitions, rng)
        return RedrawnTrees(self.domain, trees)

    def cells(self, features: DataFrame) -> NDArray[np.int64]:
        """Cells (n, features) of similarity `grid`: people of one cell get the same label.

        Raises InputError without cells: if the similarity is not `grid`, or tau = 0.
        """
        return self.candidates.cells(encode_declared(self.domain, features))


def encode_declared(domain: Domain, features: DataFrame) -> NDArray[np.float32]:
    """Features as a matrix, within the domain and one-hot; DataError if a number is missing."""
    return encode(domain.fit(features))


def prepare(
    learner: Learner, people: Sample, recipe: TreeRecipe
) -> tuple[Domain, SplitCandidates, DataFrame]:
    """The declared domain of people's features, candidates for splits, and features within it.

    Raises InputError if something is not declared, or labels are cut at a statistic of everybody.
    """
    who = f"learner {learner.name!r}"
    people.check_cuts(learner.protects, who)
    people.domain.check(people.features, who)
    domain = people.domain.only(str(name) for name in people.features.columns)
    candidates = SplitCandidates.of_domain(people.features, domain, recipe)
    return domain, candidates, domain.fit(people.features)


Thresholds = Annotated[
    int,
    Field(ge=1, le=10_000, description="number of regular candidate thresholds of a number"),
]
MostPeople = Annotated[
    int, Field(ge=2, le=2**53, description="public bound on the number of training people")
]
LeafMechanism = Annotated[
    Mechanism | None,
    Field(description="adds noise to the counts in the leaves; laplace by default"),
]


class RecipeLearner(Learner, ABC):
    """A learner of private trees, whose parameters are those of a recipe."""

    needs = frozenset({"features", "labels"})
    gives_scores = True

    @abstractmethod
    def recipe(self) -> TreeRecipe:
        """The parameters of one tree."""

    @model_validator(mode="after")
    def _check_recipe(self) -> Self:
        self.recipe()
        return self

    @property
    def protects(self) -> frozenset[str]:
        """All columns that it trains on; none without a guarantee."""
        return self.needs if self.recipe().guarantee else frozenset()


class TreeLearner(RecipeLearner):
    """Parameters and training of private trees."""

    measures = Measure.table("asked", """
        tree_epsilon | less | epsilon of the tree
        tree_delta | less | delta of the tree
        tree_neighbours | neither | which data sets the tree's guarantee compares
        tree_candidates | neither | number of candidate splits
        tree_leaves | less | number of leaves
        tree_rules | less | number of rules that predict 1
        tree_rules_unpruned | neither | the same before redundant rules were removed
        tree_height | less | height of the tree
        tree_warning | neither | set if the tree predicts one label for everybody
    """)  # fmt: skip

    epsilon: float = Field(
        1.0,
        ge=LEAST_EPSILON,
        description="epsilon of the whole tree, if one person is added or removed; inf: no privacy",
    )
    leaf_share: float = Field(
        0.5, gt=0, lt=1, description="share of epsilon for the leaves; the splits get the rest"
    )
    max_depth: int = Field(6, ge=1, le=16, description="levels of splits; the tree is complete")
    criterion: Criterion = Field("gini", description="impurity that splits reduce")
    selection: Selection = Field(
        "noisy-max",
        description="private mechanism that chooses a split; `reference`: noise that is paid for "
        "the impurities of every candidate",
    )
    thresholds: Thresholds = 64
    most_people: MostPeople = 1_000_000
    mechanism: LeafMechanism = None

    @property
    def gives_rules(self) -> bool:
        """Always."""
        return True

    @property
    def gives_trees(self) -> bool:
        """Whether leaves count whole people, not people spread over neighbourhoods."""
        return self.recipe().similarity != "ball"

    @property
    def gives_baseline(self) -> bool:
        """Always."""
        return True

    def recipe(self) -> TreeRecipe:
        """Its parameters for `grow_trees`."""
        return TreeRecipe(**{name: getattr(self, name) for name in type(self).model_fields})

    def fit(self, sample: Sample, rng: np.random.Generator) -> PrivateTreeModel:
        """Grow the tree; its counterpart without noise is grown on first use.

        Raises InputError if a feature's bounds or categories are not declared, bounds are beyond
        single precision, there are more people than `most_people`, or labels are cut at a statistic
        of everybody; DataError if a number is missing.
        """
        (model,) = self.fit_many(sample, np.ones((1, len(sample)), bool), [rng])
        assert isinstance(model, PrivateTreeModel)
        return model

    def fit_many(
        self,
        people: Sample,
        members: NDArray[np.bool_],
        rngs: Sequence[np.random.Generator],
    ) -> list[Classifier]:
        """Grow trees of parts of the people, all at once: identical to one by one."""
        recipe = self.recipe()
        domain, candidates, known = prepare(self, people, recipe)
        labels = np.asarray(people.labels)
        matrix, columns = encode_declared(domain, known), encoded_names(known)
        trees = grow_trees_apart(candidates, matrix, labels, members, rngs)
        guarantee = recipe.guarantee
        models: list[Classifier] = []
        for number, chosen in enumerate(members):
            rows = np.flatnonzero(chosen)
            own = known if len(rows) == len(known) else known.iloc[rows].reset_index(drop=True)
            models.append(
                PrivateTreeModel(
                    domain, trees.tree(number), columns, guarantee, candidates, own, labels[rows]
                )
            )
        return models

    def score_many(
        self, models: Sequence[Classifier], people: Sample, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Outputs of trees for people, whose features are encoded once."""
        trees = [model for model in models if isinstance(model, DomainTree)]
        domains = {id(tree.domain): tree.domain for tree in trees}
        if len(trees) < len(models):
            return super().score_many(models, people, rng)
        matrices = {key: encode_declared(one, people.features) for key, one in domains.items()}
        return np.stack([tree.tree.proba(matrices[id(tree.domain)])[:, 1] for tree in trees])


def _collect_notes(model: PrivateTreeModel) -> MeasureValues:
    """A row's measures of the tree; each is public or computed from noisy results."""
    rules, guarantee = model.rules, model.guarantee
    one = len(rules) == 1
    return {
        "tree_epsilon": guarantee.epsilon if guarantee else None,
        "tree_delta": guarantee.delta if guarantee else None,
        "tree_neighbours": guarantee.neighbours if guarantee else None,
        "tree_candidates": len(model.candidates),
        "tree_leaves": model.tree.tree_.n_leaves,
        "tree_rules": rules.n_favourable,
        "tree_rules_unpruned": rules.unpruned,
        "tree_height": rules.height,
        "tree_warning": f"the tree predicts {rules.labels[0]:d} for everybody" if one else None,
    }
