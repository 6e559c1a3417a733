"""A shallow decision tree from a grid search: an interpretable model to audit."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field

from fpbench import Classifier, Learner, Measure, Sample
from fpbench.builtin.learners._fitted import Fitted
from fpbench.errors import DataError
from fpbench.models import Encoding, encode, encoded_names, random_state, tree_rules
from fpbench.plugin import Codes, MeasureValues


def _to_tuple(values: Any) -> Any:
    """One value, or a list of them, as a tuple."""
    return tuple(values) if isinstance(values, list | tuple) else (values,)


_Depth = Annotated[int, Field(ge=1, le=64)]
_Leaves = Annotated[int, Field(ge=2, le=100_000)]
_Chosen = Literal["sqrt", "log2", "all"]


_TREES = 5
"""Trees whose thresholds are averaged to cuts."""


class DecisionTree(Learner):
    """scikit-learn's decision tree, the best of a grid by balanced accuracy in cross-validation.

    The grid is that of van der Steen et al.: depth, number of leaves, and number of candidate
    features of a split. Ties go to the first, in the order of scikit-learn's `GridSearchCV`, and
    results are the same. It is faster because a scikit-learn tree with few leaves is the beginning
    of one with many: a fold trains one tree for all numbers of leaves.
    """

    name = "decision-tree"
    summary = "shallow decision tree, the best of a grid by balanced accuracy"
    reference = (
        "van der Steen, Vink, Kaya. Privacy Constrained Fairness Estimation for Decision Trees. "
        "arXiv:2312.08413, 2023, section 5.1.2"
    )
    needs = frozenset({"features", "labels"})
    gives_scores = True
    measures = Measure.table("asked", """
        depth | less | depth of the tree
        leaves | less | number of leaves
        rules | less | number of rules that predict 1
        rules_unpruned | neither | the same before redundant rules were removed
        max_features | neither | number of candidate features of a split
        cv_balanced_accuracy | greater share | best balanced accuracy of the grid, by
            cross-validation
    """)  # fmt: skip

    depths: Annotated[tuple[_Depth, ...], BeforeValidator(_to_tuple)] = Field(
        (2, 3, 4), min_length=1, description="greatest depths to try"
    )
    leaves: Annotated[tuple[_Leaves, ...], BeforeValidator(_to_tuple)] = Field(
        tuple(range(3, 13)), min_length=1, description="greatest numbers of leaves to try"
    )
    max_features: Annotated[tuple[_Chosen, ...], BeforeValidator(_to_tuple)] = Field(
        ("sqrt", "all", "log2"),
        min_length=1,
        description="numbers of candidate features of a split to try",
    )
    minleaf: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="least share of the training people in a leaf; none by default",
    )
    bins: int | None = Field(
        None,
        ge=1,
        le=64,
        description="most cuts of each number, at which alone splits may be: means, by height, of "
        "the thresholds of five trees of the numbers, as whole numbers; any by default",
    )
    criterion: Literal["gini", "entropy"] = Field("gini", description="impurity that splits reduce")
    folds: int = Field(3, ge=2, le=100, description="folds of the cross-validation, not shuffled")
    random_state: int | None = Field(
        None,
        ge=0,
        lt=2**32,
        description="scikit-learn's seed of every tree; by default drawn for each seed",
    )
    encoding: Encoding = Field("one-hot", description="how categories become numbers")

    @property
    def gives_rules(self) -> bool:
        """Always."""
        return True

    @property
    def gives_trees(self) -> bool:
        """Always."""
        return True

    def fit(self, sample: Sample, rng: np.random.Generator) -> Classifier:
        """Search the grid, and train the best tree on everyone.

        Raises DataError if a label has fewer people than there are folds.
        """
        from sklearn.tree import DecisionTreeClassifier

        matrix, labels = encode(sample.features, self.encoding), sample.labels
        cuts = self._find_cuts(sample, matrix, rng)
        for column, own in cuts.items():
            matrix[:, column] = np.searchsorted(own, matrix[:, column])
        fixed = {
            "criterion": self.criterion,
            "min_samples_leaf": 1 if self.minleaf is None else self.minleaf,
            "random_state": random_state(rng) if self.random_state is None else self.random_state,
        }
        chosen, score = self._search(matrix, labels, fixed)
        tree = DecisionTreeClassifier(**chosen, **fixed).fit(matrix, labels)
        splits = tree.tree_
        for node in np.flatnonzero(np.isin(splits.feature, list(cuts))):
            splits.threshold[node] = cuts[splits.feature[node]][int(splits.threshold[node])]
        columns = encoded_names(sample.features, self.encoding)
        rules = tree_rules(tree, columns, self.encoding)
        notes: MeasureValues = {
            "depth": int(tree.get_depth()),
            "leaves": int(tree.get_n_leaves()),
            "max_features": chosen["max_features"] or "all",
            "cv_balanced_accuracy": score,
            "rules": rules.n_favourable,
            "rules_unpruned": rules.unpruned,
        }
        return Fitted(tree, self.encoding, columns, notes)

    def _find_cuts(
        self, sample: Sample, matrix: NDArray[np.float32], rng: np.random.Generator
    ) -> dict[int, NDArray[np.float64]]:
        """Cuts of each column of numbers (section 5.1.3); none unless `bins` says so."""
        from pandas import CategoricalDtype
        from sklearn.tree import DecisionTreeClassifier

        if self.bins is None:
            return {}
        kinds = sample.features.dtypes
        many = sum(not isinstance(kind, CategoricalDtype) for kind in kinds)
        numbers = matrix[:, :many]  # which are encoded first
        seen: dict[tuple[int, int], list[float]] = {}
        for _ in range(_TREES if many else 0):
            drawn = rng.choice(len(numbers), len(numbers))
            grown = DecisionTreeClassifier(max_depth=self.bins, random_state=random_state(rng))
            tree = grown.fit(numbers[drawn], sample.labels[drawn]).tree_
            heights = tree.compute_node_depths()
            for node in np.flatnonzero(tree.feature >= 0).tolist():
                at = int(tree.feature[node]), int(heights[node])
                seen.setdefault(at, []).append(float(tree.threshold[node]))
        means: dict[int, list[float]] = {column: [] for column in range(many)}
        for (column, _), thresholds in seen.items():
            means[column].append(round(float(np.mean(thresholds))))
        return {column: np.unique(own) for column, own in means.items()}

    def _search(
        self, matrix: NDArray[np.float32], labels: Codes, fixed: dict[str, Any]
    ) -> tuple[dict[str, Any], float]:
        """The best point of the grid, and its balanced accuracy."""
        from sklearn.model_selection import StratifiedKFold
        from sklearn.tree import DecisionTreeClassifier

        counts = np.bincount(labels, minlength=2)
        if counts.min() < self.folds:
            raise DataError(
                f"learner {self.name!r}: {counts.min()} of the training people have label "
                f"{counts.argmin()}, but cross-validation with {self.folds} folds needs "
                f"{self.folds} or more"
            )
        folds = list(StratifiedKFold(self.folds).split(matrix, labels))
        parts = [(matrix[fit], labels[fit], matrix[test], labels[test]) for fit, test in folds]
        grid: list[dict[str, Any]] = []
        scores: list[float] = []
        # In the order of scikit-learn's ParameterGrid: by sorted names, then as in the parameters.
        for depth, some in product(self.depths, self.max_features):
            shape = {"max_depth": depth, "max_features": None if some == "all" else some}
            largest = DecisionTreeClassifier(max_leaf_nodes=max(self.leaves), **shape, **fixed)
            by_fold = [
                list(_score_trees(largest.fit(x, y).tree_, test, truth, self.leaves))
                for x, y, test, truth in parts
            ]
            grid += [{**shape, "max_leaf_nodes": leaves} for leaves in self.leaves]
            scores += np.mean(by_fold, axis=0).tolist()
        best = int(np.argmax(scores))
        return grid[best], scores[best]


def _score_trees(
    tree: Any, people: NDArray[np.float32], truth: Codes, leaves: tuple[int, ...]
) -> Iterator[float]:
    """Balanced accuracies of trees with these greatest numbers of leaves, from the largest.

    scikit-learn grows a tree of at most L leaves best split first, numbers nodes in order of
    creation, and draws random numbers of a node at its creation. So the tree with L leaves is the
    first 2 L - 1 nodes of a larger one: a person in a later node belongs to its last ancestor among
    these.
    """
    parent = np.zeros(tree.node_count, dtype=np.intp)
    for children in (tree.children_left, tree.children_right):
        inner = children >= 0
        parent[children[inner]] = np.flatnonzero(inner)
    # People of each label in each node of the whole tree suffice for a balanced accuracy.
    at = tree.apply(people)
    counts = np.stack(
        [np.bincount(at[truth == label], minlength=tree.node_count) for label in (0, 1)]
    )
    predictions = tree.value[:, 0].argmax(axis=1)
    for most in leaves:
        node = np.arange(tree.node_count)
        for late in range(min(2 * most - 1, tree.node_count), tree.node_count):
            node[late] = node[parent[late]]  # a parent comes before its children
        right = counts * (predictions[node] == np.array([[0], [1]]))
        yield float(np.mean(right.sum(axis=1) / counts.sum(axis=1)))
