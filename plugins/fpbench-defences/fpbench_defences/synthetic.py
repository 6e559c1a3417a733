"""Any learner on synthetic people, drawn from noisy marginals: differential privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fpbench import Classifier, Guarantee, Measure, Sample
from fpbench.data import Domain
from fpbench.models import LearnerOverBase
from fpbench.plugin import Codes, MeasureValues
from fpbench.privacy import LEAST_EPSILON, epsilon_to_rho
from fpbench_defences.inner_notes import take_notes
from fpbench_defences.tree_marginals import Places, fit_tree, measure_tables

if TYPE_CHECKING:
    from pandas import DataFrame

_MOST = 10_000_000
"""Greatest number of synthetic people: noise on the number of people should not exceed it."""


@dataclass(frozen=True)
class PublicBins:
    """Features as whole numbers: intervals between declared bounds, and declared categories."""

    domain: Domain
    names: tuple[str, ...]
    bins: int

    @property
    def sizes(self) -> list[int]:
        """Values of each feature."""
        return [
            self.bins if name in self.domain.bounds else len(self.domain.categories[name])
            for name in self.names
        ]

    def encode(self, features: DataFrame) -> Places:
        """Codes (n, features); an undeclared category counts as the last one.

        Raises DataError if a number is missing.
        """
        known = self.domain.fit(features)
        codes = np.empty((len(features), len(self.names)), np.intp)
        for at, name in enumerate(self.names):
            if name in self.domain.bounds:
                low, high = self.domain.bounds[name]
                values = known[name].to_numpy(np.float64)
                scaled = (np.clip(values, low, high) / 2 - low / 2) / (high / 2 - low / 2)
                codes[:, at] = np.minimum((scaled * self.bins).astype(np.intp), self.bins - 1)
            else:
                own = known[name].cat.codes.to_numpy().astype(np.intp)
                codes[:, at] = np.where(own < 0, len(self.domain.categories[name]) - 1, own)
        return codes

    def decode(self, codes: Places, like: DataFrame, rng: np.random.Generator) -> DataFrame:
        """Features of these codes: numbers uniform in their interval, with the types of `like`."""
        import pandas as pd

        columns: dict[str, Any] = {}
        for at, name in enumerate(self.names):
            if name in self.domain.bounds:
                low, high = self.domain.bounds[name]
                share = (codes[:, at] + rng.random(len(codes))) / self.bins
                values = low * (1 - share) + high * share
                dtype: Any = like[name].dtype
                columns[name] = np.rint(values).astype(dtype) if dtype.kind in "iu" else values
            else:
                columns[name] = pd.Categorical.from_codes(
                    codes[:, at], categories=pd.Index(self.domain.categories[name])
                )
        return pd.DataFrame(columns)


@dataclass(frozen=True)
class SyntheticModel:
    """A model trained on synthetic people."""

    domain: Domain
    names: tuple[str, ...]
    model: Any
    """The model of the base learner."""
    guarantee: Guarantee
    notes: MeasureValues

    def predict(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> Codes:
        """Predict labels (n,) in {0, 1}."""
        answer: Codes = self.model.predict(self._declare(features), rng, sensitive)
        return answer

    def predict_proba(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> NDArray[np.float64]:
        """Probabilities (n, 2) of label 0 and label 1."""
        return np.asarray(self.model.predict_proba(self._declare(features), rng, sensitive))

    def _declare(self, features: DataFrame) -> DataFrame:
        """Features with the categories of the synthetic people: all declared ones."""
        return self.domain.fit(features[list(self.names)])


class Synthetic(LearnerOverBase):
    """Draws people from a private model of the training people, and trains any learner on them.

    The private model is MST: noisy counts of every column (features, label and group), a tree of
    pairs of columns that the exponential mechanism chooses by their dependence, and noisy counts
    of these pairs. Anything computed from synthetic people has its guarantee: the base may use them
    any number of times. Neighbouring data sets differ by adding or removing one person.

    The features' bounds and categories must be declared with the data set; numbers are cut into
    regular intervals between their bounds, and synthetic numbers are uniform in theirs. The number
    of synthetic people follows from the noisy counts.

    Notes
    -----
    The distribution of the tree is fitted to the noisy counts as in Private-PGM, with exact
    inference on the tree. MST merges rare values before it chooses pairs; here the intervals are
    coarse instead.
    """

    name = "synthetic"
    summary = "any learner on synthetic people from noisy marginals: differential privacy"
    reference = (
        "McKenna, Miklau, Sheldon. Winning the NIST Contest: A scalable and general approach to "
        "differentially private synthetic data. Journal of Privacy and Confidentiality 2021"
    )
    measures = Measure.table("asked", """
        synthetic_epsilon | less | epsilon of the synthetic people
        synthetic_delta | less | delta of the synthetic people
        synthetic_rho | less | rho of the synthetic people
        synthetic_neighbours | neither | which data sets the guarantee compares
        synthetic_rows | neither people | number of synthetic people
    """)  # fmt: skip

    epsilon: float = Field(1.0, ge=LEAST_EPSILON, le=1e9, description="epsilon of synthetic people")
    delta: float = Field(1e-6, gt=0, lt=1, description="delta of the guarantee")
    bins: int = Field(8, ge=2, le=1000, description="number of intervals of a numeric feature")

    @property
    def predicts_with_sensitive(self) -> bool:  # type: ignore[override]
        """Whether the base needs people's groups to predict."""
        return self.base.predicts_with_sensitive

    @property
    def protects(self) -> frozenset[str]:
        """All columns that it trains on."""
        return self.needs

    @property
    def portable(self) -> bool:
        """Never: the fit of the tree stops early."""
        return False

    def fit(self, sample: Sample, rng: np.random.Generator) -> Classifier:
        """Release noisy counts, draw synthetic people, and train the base on them.

        Raises InputError if a feature has no declared bounds or categories, or labels or groups are
        cut at a statistic of everybody; DataError if a number is missing.
        """
        who = f"learner {self.name!r}"
        sample.check_cuts(self.protects, who)
        sample.domain.check(sample.features, who)
        names = tuple(str(name) for name in sample.features.columns)
        coder = PublicBins(sample.domain, names, self.bins)
        codes = np.column_stack([coder.encode(sample.features), sample.labels, sample.sensitive])
        sizes = [*coder.sizes, 2, len(sample.groups)]
        rho = epsilon_to_rho(self.epsilon, self.delta)
        tables = measure_tables(codes.astype(np.intp), sizes, rho, rng)
        rows = min(round(tables.total), _MOST)
        drawn = fit_tree(tables).draw(rows, rng)
        people = Sample(
            sample.groups,
            features=coder.decode(drawn, sample.features, rng),
            labels=drawn[:, -2].astype(np.int8),
            sensitive=drawn[:, -1].astype(np.int8),
            domain=sample.domain,
        )
        model = self.base.fit(people.only(self.base.needs), rng)
        guarantee = Guarantee(self.epsilon, self.delta, "add-remove", rho)
        notes: MeasureValues = {
            **take_notes(model, keep_privacy=False),
            "synthetic_epsilon": guarantee.epsilon,
            "synthetic_delta": guarantee.delta,
            "synthetic_rho": guarantee.rho,
            "synthetic_neighbours": guarantee.neighbours,
            "synthetic_rows": rows,
        }
        return SyntheticModel(sample.domain, names, model, guarantee, notes)
