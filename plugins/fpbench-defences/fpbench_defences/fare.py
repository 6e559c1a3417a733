"""Any learner behind a tree that bounds inference of people's groups (FARE)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from fpbench import Classifier, Learner, Measure, Sample
from fpbench.errors import DataError
from fpbench.models import LearnerOverBase
from fpbench.plugin import Codes, MeasureValues
from fpbench_defences.fair_tree import FairTree, grow_fair_tree
from fpbench_defences.inner_notes import take_notes
from fpbench_defences.leaf_certificate import Bound, LeafPeople, certify_leaves

if TYPE_CHECKING:
    from pandas import DataFrame

_FEWEST = 10
"""Least number of people who grow the tree, and of held-out people."""


@dataclass(frozen=True)
class Encoder:
    """A tree, and an artificial person in each leaf, who represents everybody there."""

    tree: FairTree
    typical: DataFrame
    """(k) rows: the median of each number, the most frequent category."""

    def encode(self, features: DataFrame) -> DataFrame:
        """The representative (n rows) of each person's leaf, without any other information."""
        encoded: DataFrame = self.typical.take(list(self.tree.find_leaves(features)))
        return encoded.set_axis(range(len(encoded)), axis=0)


@dataclass(frozen=True)
class FareModel:
    """A model that is queried about encoded people."""

    encoder: Encoder
    model: Any
    """The model of the base learner."""
    notes: MeasureValues

    def predict(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> Codes:
        """Predict labels (n,) in {0, 1}."""
        answer: Codes = self.model.predict(self.encoder.encode(features), rng)
        return answer

    def predict_proba(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> NDArray[np.float64]:
        """Probabilities (n, 2) of label 0 and label 1."""
        return np.asarray(self.model.predict_proba(self.encoder.encode(features), rng))


class Fare(LearnerOverBase):
    """A fair tree encodes people as its leaves, and any learner is trained on encoded people.

    The tree is grown on some of the training people, to separate labels but not groups. The leaves
    of the others, whom it has not seen, give the certificate: with the given confidence,
    `fare_parity_bound` bounds the difference of selection rates between two groups under any model
    of leaves, and `fare_accuracy_bound` the balanced accuracy of any guess of groups from leaves,
    or from a model's output for them. Both hold for people of the training distribution; an
    adversary who also sees features may know more.

    The base sees a leaf as the median of each number and the most frequent category of each
    categorical of its people. A private base loses its guarantee, because the tree is not private.

    Notes
    -----
    `bound = "leaves"` is the paper's bound, which holds for two groups; for more, all pairs share
    the error here. `bound = "sets"` is ours, and lower: see `docs/certified-encoder.md`. The paper
    grows the tree in scikit-learn's code, with other sets of categories, and counts leaves among
    its test people; a learner has training people only.
    """

    name = "fare"
    summary = "any learner on the leaves of a fair tree, with a bound on inference of groups"
    reference = (
        "Jovanović, Balunović, Dimitrov, Vechev. FARE: Provably Fair Representation Learning with "
        "Practical Certificates. ICML 2023"
    )
    measures = (
        Measure("fare_parity_bound", "certified parity", "less", "share",
                "certified upper bound on differences of selection rates of any model of leaves"),
        Measure("fare_accuracy_bound", "certified guess", "less", "share",
                "certified upper bound on the balanced accuracy of guesses of groups from leaves"),
        Measure("fare_confidence", "", "greater", "share",
                "probability with which both bounds hold", "asked"),
        Measure("fare_leaves", "", "neither", "", "number of leaves of the tree", "asked"),
        Measure("fare_held_out", "", "neither", "people", "people who certify the tree", "asked"),
    )  # fmt: skip

    fairness: float = Field(
        0.5, ge=0, le=1, description="weight of groups in the impurity that splits reduce"
    )
    leaves: int = Field(8, ge=2, le=512, description="greatest number of leaves")
    minleaf: int = Field(20, ge=1, description="least number of people in a leaf while growing")
    held_out: float = Field(
        0.5, gt=0, lt=1, description="share of the training people that certify the tree"
    )
    confidence: float = Field(
        0.95, ge=0.5, lt=1, description="probability with which the certificate holds"
    )
    bound: Bound = Field(
        "sets",
        description="Clopper-Pearson bounds of all `sets` of leaves, or the paper's `leaves`",
    )

    @field_validator("base")
    @classmethod
    def _check_base(cls, base: Learner) -> Learner:
        if base.predicts_with_sensitive:
            raise ValueError(
                f"learner {base.name!r} needs people's groups to predict, but a certificate is "
                "about models that see leaves only; take another base"
            )
        return base

    def twin(self) -> Learner:
        """The base without the encoder."""
        return self.base

    def fit(self, sample: Sample, rng: np.random.Generator) -> Classifier:
        """Grow the tree, certify it, and train the base on all people, encoded by the tree.

        Raises DataError if there are too few people to grow and certify a tree.
        """
        rows = rng.permutation(len(sample))
        cut = round(self.held_out * len(rows))
        if min(cut, len(rows) - cut) < _FEWEST:
            raise DataError(
                f"learner {self.name!r}: of {len(rows)} training people {len(rows) - cut} grow the "
                f"tree and {cut} certify it, but each needs at least {_FEWEST}; take more people"
            )
        grown = sample.take(np.sort(rows[cut:]))
        tree = grow_fair_tree(
            grown, fairness=self.fairness, leaves=self.leaves, minleaf=self.minleaf
        )
        leaves = tree.find_leaves(sample.features)
        people = LeafPeople(leaves, sample.sensitive)
        certificate = certify_leaves(
            self.bound, people.take(rows[cut:]), people.take(rows[:cut]), tree.k,
            len(sample.groups), 1 - self.confidence, rng,
        )  # fmt: skip
        encoder = Encoder(tree, _find_typical(grown.features, leaves[np.sort(rows[cut:])], tree.k))
        encoded = sample.having(features=encoder.encode(sample.features))
        model = self.base.fit(encoded.only(self.base.needs), rng)
        notes: MeasureValues = {
            **take_notes(model, keep_privacy=False),
            "fare_parity_bound": certificate.parity,
            "fare_accuracy_bound": certificate.accuracy,
            "fare_confidence": self.confidence,
            "fare_leaves": tree.k,
            "fare_held_out": cut,
        }
        return FareModel(encoder, model, notes)


def _find_typical(features: DataFrame, leaves: NDArray[np.intp], k: int) -> DataFrame:
    """The lower median of each number and the most frequent category, (k) rows by leaf."""
    import pandas as pd

    members = [np.flatnonzero(leaves == leaf) for leaf in range(k)]
    columns: dict[str, Any] = {}
    for name, values in features.items():
        if isinstance(values.dtype, pd.CategoricalDtype):
            codes = values.cat.codes.to_numpy()
            n = len(values.cat.categories)
            common = [
                int(np.bincount(codes[rows] + 1, minlength=n + 1).argmax()) for rows in members
            ]
            columns[str(name)] = pd.Categorical.from_codes(np.array(common) - 1, dtype=values.dtype)
        else:
            numbers = values.to_numpy()
            middle = [np.sort(numbers[rows])[(len(rows) - 1) // 2] for rows in members]
            columns[str(name)] = np.asarray(middle, numbers.dtype)
    return pd.DataFrame(columns)
