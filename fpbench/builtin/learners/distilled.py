"""A decision tree that imitates another learner's model: rules for a model that has none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fpbench import (
    Adversary,
    Classifier,
    Codes,
    Component,
    Guarantee,
    InputError,
    Learner,
    Measures,
    Sample,
)
from fpbench.builtin.learners._fitted import Fitted
from fpbench.claims import RateConstraint
from fpbench.models import Encoding, encode, encoded_names, random_state, tree_rules

if TYPE_CHECKING:
    from pandas import DataFrame


_PROMISES = {"epsilon", "delta", "rho", "neighbours"}
"""Words in the names of notes that are about a guarantee."""


@dataclass(frozen=True)
class Imitation(Fitted):
    """A tree that was fitted to what another model says."""

    guarantee: Guarantee | None = None
    """That of the teacher's model, if the tree has seen public people only; else None."""
    baseline: Fitted | None = None
    """The tree that imitates the teacher's non-private counterpart, if there is one."""


class Distilled(Learner):
    """Trains a teacher, and then a decision tree on what the teacher's model says of people.

    Whatever audits rules can audit such a tree, and a person can read it. Labels of the training
    people are the teacher's business only: the tree sees features, and predictions.

    **Privacy.** A tree computed from a private model and public features alone is post-processing:
    it keeps the guarantee of the model, unchanged, however often the model is asked. So where the
    teacher's model says which rows are public (`public_rows`, as that of `pate` does), the tree is
    fitted on those, and made-up people that are mixed from them; it then has the teacher's
    guarantee. This assumes what the teacher assumes: that features of the public rows may be
    known, and that nothing else of the tree (its depth, leaves, encoding, the categories that a
    column may have) was chosen by looking at private people. Fitted on all training people
    (`people = "training"`), thresholds of the tree are values of private people's features, and
    it has no guarantee, whatever the teacher has, and of the teacher's notes those about its
    epsilon are left out. `fidelity`, which a row shows, is measured on
    all training people, and is not private.

    Notes
    -----
    Made-up people are drawn as a person of two public parents, each column from either of them,
    so that they stay near to the public people, where TREPAN draws each feature from its marginal
    distribution alone.

    References
    ----------
    Craven, Shavlik: Extracting Tree-Structured Representations of Trained Networks. NeurIPS 1995.
    """

    name = "distilled"
    summary = "decision tree that imitates the model of another learner"
    reference = (
        "Mark Craven, Jude Shavlik. Extracting Tree-Structured Representations of Trained "
        "Networks. NeurIPS 1995"
    )
    gives_scores = True

    teacher: Learner = Field(description="whose model is imitated")
    people: Literal["auto", "public", "training"] = Field(
        "auto",
        description="on whom: `public`, the rows that the teacher's model says are public; "
        "`training`, everyone, without any guarantee; `auto`, the first if it says so",
    )
    artificial: int = Field(
        0,
        ge=0,
        le=1_000_000,
        description="made-up people to imitate the teacher on, too, mixed from those it uses",
    )
    depth: int = Field(4, ge=1, le=64, description="greatest depth")
    leaves: int | None = Field(None, ge=2, description="greatest number of leaves; any by default")
    minleaf: float | None = Field(
        None, gt=0, lt=1, description="least share of the people in a leaf; none by default"
    )
    criterion: Literal["gini", "entropy"] = Field("gini", description="what a split makes small")
    encoding: Encoding = Field("one-hot", description="how categories become numbers")

    @property
    def gives_rules(self) -> bool:
        """Always."""
        return True

    @property
    def gives_baseline(self) -> bool:
        """Whether the teacher's do: the tree that imitates the teacher's baseline."""
        return self.teacher.gives_baseline

    @property
    def protects(self) -> frozenset[str]:
        """What the teacher does."""
        return self.teacher.protects

    def asked(self) -> RateConstraint | None:
        """What the teacher is trained for."""
        return self.teacher.asked()

    def incompatible(self, other: Component) -> str | None:
        """What the teacher cannot be combined with; scores are the tree's own."""
        return None if isinstance(other, Adversary) else self.teacher.incompatible(other)

    def fit(self, sample: Sample, rng: np.random.Generator) -> Classifier:
        """Train the teacher, and imitate it.

        Raises
        ------
        InputError
            If the tree is to be fitted on public people, and the teacher's model knows none.
        """
        model = self.teacher.fit(sample.only(self.teacher.needs), rng)
        rows = self._rows(model, len(sample))
        public = getattr(model, "public_rows", None) is not None and self.people != "training"
        features = sample.features.iloc[rows].reset_index(drop=True)
        # A teacher that must know people's groups is told them; the tree never is.
        groups = sample.sensitive[rows] if self.teacher.predicts_with_sensitive else None
        if self.artificial:
            parents = rng.integers(len(rows), size=(self.artificial, 2))
            features = _with_mixed(features, parents, rng)
            first = parents[:, 0]
            groups = None if groups is None else np.concatenate([groups, groups[first]])
        state = random_state(rng)
        matrix = encode(features, self.encoding)
        columns = encoded_names(sample.features, self.encoding)
        said = np.asarray(model.predict(features, rng, groups))
        baseline = getattr(model, "baseline", None)
        if baseline is not None:
            clean = np.asarray(baseline.predict(features, rng, groups))
            baseline = Fitted(self._tree(matrix, clean, state), self.encoding, columns)
        tree = self._tree(matrix, said, state)
        rules = tree_rules(tree, columns, self.encoding)
        guarantee = getattr(model, "guarantee", None) if public else None
        notes: Measures = {
            **_notes_of(model, keeps=guarantee is not None),
            "distilled_on": "public" if public else "training",
            "distilled_people": len(features),
            "distilled_depth": int(tree.get_depth()),
            "distilled_leaves": int(tree.get_n_leaves()),
            "distilled_rules": rules.n_favourable,
            "fidelity": self._fidelity(tree, model, sample, rng),
        }
        return Imitation(tree, self.encoding, columns, notes, guarantee, baseline)

    def _rows(self, model: Any, n: int) -> NDArray[np.intp]:
        """Whose features the tree sees."""
        public = getattr(model, "public_rows", None)
        if public is None and self.people == "public":
            raise InputError(
                f"learner {self.name!r}: people: is 'public', but the model of "
                f"{self.teacher.name!r} does not say who is public; use 'training', which has no "
                "guarantee"
            )
        if public is None or self.people == "training":
            return np.arange(n)
        return np.asarray(public, dtype=np.intp)

    def _tree(self, matrix: NDArray[np.float32], said: Codes, state: int) -> Any:
        from sklearn.tree import DecisionTreeClassifier

        return DecisionTreeClassifier(
            max_depth=self.depth,
            max_leaf_nodes=self.leaves,
            min_samples_leaf=1 if self.minleaf is None else self.minleaf,
            criterion=self.criterion,
            random_state=state,
        ).fit(matrix, said)

    def _fidelity(self, tree: Any, model: Any, sample: Sample, rng: np.random.Generator) -> float:
        """Share of the training people of whom both say the same."""
        groups = sample.sensitive if self.teacher.predicts_with_sensitive else None
        theirs = model.predict(sample.features, rng, groups)
        mine = tree.predict(encode(sample.features, self.encoding))
        return float(np.mean(mine == np.asarray(theirs)))


def _notes_of(model: Any, *, keeps: bool) -> Measures:
    """What the teacher's model says; nothing of a guarantee that the tree does not keep."""
    return {
        name: value
        for name, value in getattr(model, "notes", {}).items()
        if keeps or not _PROMISES & set(name.split("_"))
    }


def _with_mixed(
    features: DataFrame, parents: NDArray[np.intp], rng: np.random.Generator
) -> DataFrame:
    """People, and a child of each pair of them: every column is one parent's, by a coin."""
    import pandas as pd

    children = {}
    for name, column in features.items():
        parent = parents[np.arange(len(parents)), rng.integers(2, size=len(parents))]
        children[name] = column.take(list(parent)).reset_index(drop=True)
    both: DataFrame = pd.concat([features, pd.DataFrame(children)], ignore_index=True)
    return both
