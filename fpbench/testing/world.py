"""Small made-up people, and a model of them: what components under test are handed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fpbench.claims.rates import RateConstraint
from fpbench.components.attack_kinds import Dataset, Disclosure, Learner
from fpbench.components.protocols import Context
from fpbench.components.records import Claim, Predictions, Scores
from fpbench.data.data_files import DataHome
from fpbench.data.domain import Domain
from fpbench.data.sample import Codes, Sample, Split
from fpbench.data.table import Table
from fpbench.execution.work.actions import ACTIONS
from fpbench.matrix.step import Step
from fpbench.models.encoding import encode
from fpbench.models.rules import Rules, encoded_names, tree_rules

if TYPE_CHECKING:
    from pandas import DataFrame

PEOPLE = 400
"""People of the made-up data set; half of them are trained on."""
ASKED = RateConstraint("statistical-parity", 0.05)


def step(seed: int, *options: Any) -> Step:
    """A step with a stream of randomness for each seed."""
    return Step(f"kit {seed}", f"kit {seed}", "test", None, (), options)


def fill(what: str) -> np.random.Generator:
    """A generator of its own for each use, the same in every process."""
    return np.random.default_rng(list(hashlib.sha256(what.encode()).digest()))


class KitPeople(Dataset):
    """Made-up people whose group shows in a number and in a category."""

    name = "kit-people"
    summary = "made-up people of the conformance kit"

    groups: int = Field(2, ge=2, le=9, description="number of groups")

    @property
    def n_groups(self) -> int:
        """As many as it is told to make."""
        return self.groups

    def load(self, home: DataHome) -> Table:
        """Make them."""
        import pandas as pd

        rng, n, k = fill(f"people {self.groups}"), PEOPLE, self.groups
        group = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
        skill = np.clip(rng.normal(size=n), -3, 3)
        income = np.clip(40 + 10 * (skill + group) + rng.normal(0, 10, n), 0, 100)
        job = np.where(rng.random(n) < 0.6, group, rng.integers(0, k, n))
        names, jobs = [f"group {i}" for i in range(k)], [f"job {i}" for i in range(k)]
        features = pd.DataFrame(
            {
                "skill": skill,
                "income": income,
                "job": pd.Categorical([jobs[i] for i in job], categories=jobs),
            }
        )
        labels = (skill + group + rng.normal(size=n) > k / 2).astype(np.int8)
        sensitive = pd.DataFrame(
            {"group": pd.Categorical([names[i] for i in group], categories=names)}
        )
        domain = Domain.of({"skill": [-3, 3], "income": [0, 100], "job": jobs})
        return Table(self.name, features, labels, sensitive, domain=domain)


class KitModel:
    """A small tree that has everything a model may have: scores, rules, a baseline."""

    def __init__(self, sample: Sample, depth: int) -> None:
        from sklearn.tree import DecisionTreeClassifier

        matrix = encode(sample.features)
        self.tree = DecisionTreeClassifier(max_depth=depth, random_state=0)
        self.tree.fit(matrix, sample.labels)
        self.columns = encoded_names(sample.features, "one-hot")
        self.baseline = self if depth > 2 else KitModel(sample, 4)

    @property
    def rules(self) -> Rules:
        """The rules of the tree."""
        return tree_rules(self.tree, self.columns, "one-hot")

    def predict(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> Codes:
        """Labels (n,)."""
        said: Codes = self.tree.predict(encode(features)).astype(np.int8)
        return said

    def predict_proba(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> NDArray[np.float64]:
        """Probabilities (n, 2)."""
        said: NDArray[np.float64] = self.tree.predict_proba(encode(features))
        return said


class KitLearner(Learner):
    """Learns the small tree."""

    name = "kit-learner"
    summary = "a learner of the conformance kit"
    needs = frozenset({"features", "labels"})
    gives_scores = True

    @property
    def gives_rules(self) -> bool:
        """It does."""
        return True

    @property
    def gives_baseline(self) -> bool:
        """It does."""
        return True

    def asked(self) -> RateConstraint:
        """Some fairness."""
        return ASKED

    def fit(self, sample: Sample, rng: np.random.Generator) -> KitModel:
        """Train."""
        return KitModel(sample, 2)


class KitDisclosure(Disclosure):
    """Claims something simple of a form that may be chosen."""

    name = "kit-disclosure"
    summary = "a disclosure of the conformance kit"

    words_claimed: list[str] = Field(["to-overall"], description="words of what it claims")

    def words(self) -> list[str]:
        """Those it is told."""
        return self.words_claimed

    def claim(self, context: Context, rng: np.random.Generator) -> Claim:
        """Claim."""
        return Claim(ASKED, self.name)


@dataclass(frozen=True)
class World:
    """What the steps of a cell are handed, for people of K groups."""

    table: Table
    split: Split
    model: KitModel
    predictions: Predictions
    scores: Scores


@cache
def world(k: int) -> World:
    """People of k groups, cut into parts, and what the model says of them."""
    table = KitPeople(groups=k).load(DataHome(()))
    split = ACTIONS["split"](None, (table,), step(0, 0.5, 0.25, 0.25))
    learner = KitLearner()
    model = ACTIONS["train"](learner, (split,), step(0))
    predictions = ACTIONS["predict"](learner, (model, split), step(0))
    scores = ACTIONS["reveal"](learner, (model, split), step(0))
    return World(table, split, model, predictions, scores)
