"""A decision tree that imitates another learner's model, so that the model has rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fpbench import (
    Adversary,
    Classifier,
    Component,
    Guarantee,
    InputError,
    Learner,
    Measure,
    Sample,
)
from fpbench.claims import RateConstraint
from fpbench.models import (
    EncodedColumn,
    Encoding,
    PublishedTree,
    Rules,
    encode,
    encoded_names,
    random_state,
    read_trees,
    tree_rules,
)
from fpbench.plugin import Codes, MeasureValues
from fpbench_defences.inner_notes import take_notes

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Imitation:
    """A tree that was fitted to another model's predictions."""

    tree: Any
    """Of scikit-learn."""
    encoding: Encoding
    columns: tuple[EncodedColumn, ...]
    """Features of the matrix's columns, for names in rules."""
    notes: MeasureValues = field(default_factory=dict)
    guarantee: Guarantee | None = None
    """The teacher's guarantee if the tree saw public people only, else None."""
    baseline: Imitation | None = None
    """The tree that imitates the teacher's non-private counterpart, if there is one."""

    @cached_property
    def rules(self) -> Rules:
        """The rules of the tree."""
        return tree_rules(self.tree, self.columns, self.encoding)

    @cached_property
    def published_trees(self) -> tuple[PublishedTree, ...]:
        """The tree with the numbers of people in its leaves."""
        return read_trees(self.tree, self.encoding)

    def predict(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> Codes:
        """Predict labels (n,) in {0, 1}."""
        return self.tree.predict(encode(features, self.encoding)).astype(np.int8)

    def predict_proba(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> NDArray[np.float64]:
        """Probabilities (n, 2) of label 0 and label 1, even if the teacher predicts one only."""
        probabilities = np.zeros((len(features), 2))
        given = self.tree.predict_proba(encode(features, self.encoding))
        probabilities[:, self.tree.classes_.astype(np.intp)] = given
        return probabilities


class Distilled(Learner):
    """Trains a teacher, and then a decision tree on the predictions of the teacher's model.

    Auditors of rules can audit such a tree, and people can read it. The tree sees features and
    predictions, never the labels of the training people.

    **Privacy.** A tree computed from a private model and public features alone is post-processing:
    it keeps the guarantee of the model, however often the model is queried. So if the teacher's
    model says which rows are public (`public_rows`, as for `pate`), the tree is fitted on these and
    on artificial people mixed from them, and has the teacher's guarantee. This has the teacher's
    assumptions: features of the public rows may be known, and nothing else about the tree (its
    depth, leaves, encoding, the categories of a column) was chosen by looking at private people.
    Fitted on all training people (`people = "training"`), the tree has thresholds from private
    people's features: it has no guarantee, whatever the teacher's, and the teacher's notes about
    its epsilon are left out. `fidelity` in a row is measured on
    all training people, and is not private.

    Notes
    -----
    An artificial person is a mix of two public people, with each column from one of them, so it is
    similar to public people; TREPAN draws each feature from its marginal distribution.
    """

    name = "distilled"
    summary = "decision tree that imitates the model of another learner"
    reference = (
        "Mark Craven, Jude Shavlik. Extracting Tree-Structured Representations of Trained "
        "Networks. NeurIPS 1995"
    )
    gives_scores = True
    measures = Measure.table("asked", """
        fidelity | greater share | training people for whom tree and teacher predict the same
        distilled_on | neither | people whose features the tree saw: public or training
        distilled_people | neither people | number of these people
        distilled_depth | less | depth of the tree
        distilled_leaves | less | number of leaves of the tree
        distilled_rules | less | number of rules that predict 1
    """)  # fmt: skip

    teacher: Learner = Field(description="learner whose model the tree imitates")
    people: Literal["auto", "public", "training"] = Field(
        "auto",
        description="people to fit the tree on: `public`, the rows that the teacher's model marks "
        "as public; `training`, everyone, without a guarantee; `auto`, public if possible",
    )
    artificial: int = Field(
        0,
        ge=0,
        le=1_000_000,
        description="number of added artificial people, mixed from the others",
    )
    depth: int = Field(4, ge=1, le=64, description="greatest depth")
    leaves: int | None = Field(None, ge=2, description="greatest number of leaves; any by default")
    minleaf: float | None = Field(
        None, gt=0, lt=1, description="least share of the people in a leaf; none by default"
    )
    criterion: Literal["gini", "entropy"] = Field("gini", description="impurity that splits reduce")
    encoding: Encoding = Field("one-hot", description="how categories become numbers")

    @property
    def gives_rules(self) -> bool:
        """Always."""
        return True

    @property
    def gives_baseline(self) -> bool:
        """Whether the teacher gives a baseline, which a second tree then imitates."""
        return self.teacher.gives_baseline

    @property
    def protects(self) -> frozenset[str]:
        """Columns that the teacher protects."""
        return self.teacher.protects

    def twin(self) -> Distilled | None:
        """The imitation of the teacher's twin."""
        teacher = self.teacher.twin()
        return None if teacher is None else self.model_copy(update={"teacher": teacher})

    def asked(self) -> RateConstraint | None:
        """The metric and tolerance that the teacher is trained for."""
        return self.teacher.asked()

    def incompatible(self, other: Component) -> str | None:
        """Why the teacher cannot be combined with `other`; adversaries see the tree's scores."""
        return None if isinstance(other, Adversary) else self.teacher.incompatible(other)

    def fit(self, sample: Sample, rng: np.random.Generator) -> Classifier:
        """Train the teacher, and fit a tree to its predictions.

        Raises InputError if `people` is `public`, and the teacher's model does not mark public
        people.
        """
        model = self.teacher.fit(sample.only(self.teacher.needs), rng)
        rows = self._choose_rows(model, len(sample))
        public = getattr(model, "public_rows", None) is not None and self.people != "training"
        features = sample.features.iloc[rows].reset_index(drop=True)
        # A teacher that needs people's groups gets them; the tree never does.
        groups = sample.sensitive[rows] if self.teacher.predicts_with_sensitive else None
        if self.artificial:
            parents = rng.integers(len(rows), size=(self.artificial, 2))
            features = _add_mixed_people(features, parents, rng)
            first = parents[:, 0]
            groups = None if groups is None else np.concatenate([groups, groups[first]])
        state = random_state(rng)
        matrix = encode(features, self.encoding)
        columns = encoded_names(sample.features, self.encoding)
        predictions = np.asarray(model.predict(features, rng, groups))
        baseline = getattr(model, "baseline", None)
        if baseline is not None:
            clean = np.asarray(baseline.predict(features, rng, groups))
            baseline = Imitation(self._fit_tree(matrix, clean, state), self.encoding, columns)
        tree = self._fit_tree(matrix, predictions, state)
        rules = tree_rules(tree, columns, self.encoding)
        guarantee = getattr(model, "guarantee", None) if public else None
        notes: MeasureValues = {
            **take_notes(model, keep_privacy=guarantee is not None),
            "distilled_on": "public" if public else "training",
            "distilled_people": len(features),
            "distilled_depth": int(tree.get_depth()),
            "distilled_leaves": int(tree.get_n_leaves()),
            "distilled_rules": rules.n_favourable,
            "fidelity": self._find_fidelity(tree, model, sample, rng),
        }
        return Imitation(tree, self.encoding, columns, notes, guarantee, baseline)

    def _choose_rows(self, model: Any, n: int) -> NDArray[np.intp]:
        """Rows of the people that the tree is fitted on."""
        public = getattr(model, "public_rows", None)
        if public is None and self.people == "public":
            raise InputError(
                f"learner {self.name!r}: people: is 'public', but the model of "
                f"{self.teacher.name!r} does not mark public people; use "
                "'training', which has no guarantee"
            )
        if public is None or self.people == "training":
            return np.arange(n)
        return np.asarray(public, dtype=np.intp)

    def _fit_tree(self, matrix: NDArray[np.float32], predictions: Codes, state: int) -> Any:
        from sklearn.tree import DecisionTreeClassifier

        return DecisionTreeClassifier(
            max_depth=self.depth,
            max_leaf_nodes=self.leaves,
            min_samples_leaf=1 if self.minleaf is None else self.minleaf,
            criterion=self.criterion,
            random_state=state,
        ).fit(matrix, predictions)

    def _find_fidelity(
        self, tree: Any, model: Any, sample: Sample, rng: np.random.Generator
    ) -> float:
        """Share of the training people for whom tree and model predict the same."""
        groups = sample.sensitive if self.teacher.predicts_with_sensitive else None
        theirs = model.predict(sample.features, rng, groups)
        mine = tree.predict(encode(sample.features, self.encoding))
        return float(np.mean(mine == np.asarray(theirs)))


def _add_mixed_people(
    features: DataFrame, parents: NDArray[np.intp], rng: np.random.Generator
) -> DataFrame:
    """People, and a mix of each pair of parents: every column is that of a random parent."""
    import pandas as pd

    children = {}
    for name, column in features.items():
        parent = parents[np.arange(len(parents)), rng.integers(2, size=len(parents))]
        children[name] = column.take(list(parent)).reset_index(drop=True)
    both: DataFrame = pd.concat([features, pd.DataFrame(children)], ignore_index=True)
    return both
