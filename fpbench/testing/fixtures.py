"""Small artificial people and a model of them: the inputs of components under test."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fpbench.claims.rates import RateConstraint
from fpbench.components.attack_kinds import Context, Dataset, Disclosure, Learner
from fpbench.components.records import Claim, Predictions, Scores
from fpbench.components.sights import keep_model_sights
from fpbench.data.data_files import DataHome
from fpbench.data.domain import Domain
from fpbench.data.sample import Codes, Sample, Split
from fpbench.data.table import Table
from fpbench.execution.work.actions import ACTIONS
from fpbench.matrix.step import EACH_GROUP, Step
from fpbench.models.encoding import encode
from fpbench.models.rules import Rules, encoded_names, tree_rules

if TYPE_CHECKING:
    from pandas import DataFrame

PEOPLE = 400
"""Number of people of the artificial data set; half of them are for training."""
TRAINED_FOR = RateConstraint("statistical-parity", 0.05)


def make_step(seed: int, *options: Any) -> Step:
    """A step of the kit, with its own random stream for each seed."""
    return Step(f"kit {seed}", f"kit {seed}", "test", None, (), options)


def make_generator(what: str) -> np.random.Generator:
    """The random generator of a purpose, the same in every process."""
    return np.random.default_rng(list(hashlib.sha256(what.encode()).digest()))


class KitPeople(Dataset):
    """Artificial people whose group correlates with a number and a category."""

    name = "kit-people"
    summary = "artificial people of the conformance kit"

    groups: int = Field(2, ge=2, le=9, description="number of groups")

    @property
    def n_groups(self) -> int:
        """The parameter `groups`."""
        return self.groups

    def load(self, home: DataHome) -> Table:
        """Generate the table."""
        import pandas as pd

        rng, n, k = make_generator(f"people {self.groups}"), PEOPLE, self.groups
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
    """A small tree with scores, rules and a baseline; with scores alone if it takes groups."""

    def __init__(self, sample: Sample, depth: int, *, takes_groups: bool = False) -> None:
        from sklearn.tree import DecisionTreeClassifier

        self.takes_groups = takes_groups
        self.tree = DecisionTreeClassifier(max_depth=depth, random_state=0)
        groups = sample.sensitive if takes_groups else None
        self.tree.fit(self._encode(sample.features, groups), sample.labels)
        self.columns = encoded_names(sample.features, "one-hot")
        self.baseline = self if depth > 2 else KitModel(sample, 4)

    def _encode(self, features: DataFrame, sensitive: Any) -> NDArray[np.float64]:
        matrix: Any = encode(features)
        return np.column_stack([matrix, sensitive]) if self.takes_groups else matrix

    @property
    def rules(self) -> Rules:
        """The rules of the tree."""
        return tree_rules(self.tree, self.columns, "one-hot")

    def predict(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> Codes:
        """Labels (n,)."""
        labels: Codes = self.tree.predict(self._encode(features, sensitive)).astype(np.int8)
        return labels

    def predict_proba(
        self, features: DataFrame, rng: np.random.Generator, sensitive: Codes | None = None
    ) -> NDArray[np.float64]:
        """Probabilities (n, 2)."""
        proba: NDArray[np.float64] = self.tree.predict_proba(self._encode(features, sensitive))
        return proba


class KitLearner(Learner):
    """Learns the small tree."""

    name = "kit-learner"
    summary = "a learner of the conformance kit"
    needs = frozenset({"features", "labels"})
    gives_scores = True

    @property
    def gives_rules(self) -> bool:
        """Always."""
        return True

    @property
    def gives_baseline(self) -> bool:
        """Always."""
        return True

    def asked(self) -> RateConstraint:
        """A metric and a tolerance."""
        return TRAINED_FOR

    def fit(self, sample: Sample, rng: np.random.Generator) -> KitModel:
        """Train."""
        return KitModel(sample, 2)

    def twin(self) -> KitLearner:
        """Itself."""
        return self


class KitGroupLearner(Learner):
    """Learns the small tree that takes people's groups."""

    name = "kit-group-learner"
    summary = "a learner of the conformance kit whose models take groups"
    gives_scores = True
    predicts_with_sensitive = True

    def fit(self, sample: Sample, rng: np.random.Generator) -> KitModel:
        """Train."""
        return KitModel(sample, 4, takes_groups=True)

    def twin(self) -> KitLearner:
        """A learner that ignores groups."""
        return KitLearner()


class KitDisclosure(Disclosure):
    """Claims statistical parity, in a configurable form."""

    name = "kit-disclosure"
    summary = "a disclosure of the conformance kit"

    words_claimed: list[str] = Field(["to-overall"], description="words of its claims")

    def words(self) -> list[str]:
        """The parameter `words_claimed`."""
        return self.words_claimed

    def claim(self, context: Context, rng: np.random.Generator) -> Claim:
        """Claim."""
        return Claim(TRAINED_FOR, self.name)


@dataclass(frozen=True)
class CellInputs:
    """The inputs of a cell's steps, for people of K groups."""

    table: Table
    split: Split
    model: KitModel
    predictions: Predictions
    scores: Scores


@cache
def make_cell_inputs(k: int) -> CellInputs:
    """People of k groups, split into parts, with the model's predictions and scores."""
    table = KitPeople(groups=k).load(DataHome(()))
    split = ACTIONS["split"](None, (table,), make_step(0, 0.5, 0.25, 0.25))
    learner = KitLearner()
    model = ACTIONS["train"](learner, (split,), make_step(0))
    predictions = ACTIONS["predict"](learner, (model, split), make_step(0))
    scores = ACTIONS["reveal"](learner, (model, split), make_step(0))
    return CellInputs(table, split, model, predictions, scores)


def make_kit_learner(sights: Collection[str]) -> Learner:
    """The learner whose models give some sights."""
    return KitGroupLearner() if "query" in sights else KitLearner()


@cache
def show_to(sights: frozenset[str], k: int) -> tuple[Any, ...]:
    """The inputs of an adversary's view: the split, and visible model outputs, in order."""
    split, learner = make_cell_inputs(k).split, make_kit_learner(sights)
    twin = learner.twin()
    assert twin is not None
    model, unfair = (ACTIONS["train"](one, (split,), make_step(0)) for one in (learner, twin))
    make: dict[str, Callable[[], Any]] = {
        "predictions": lambda: ACTIONS["predict"](learner, (model, split), make_step(0)),
        "scores": lambda: ACTIONS["reveal"](learner, (model, split), make_step(0)),
        "query": lambda: ACTIONS["ask"](learner, (model, split), make_step(0, EACH_GROUP)),
        "twin": lambda: ACTIONS["ask"](twin, (unfair, split), make_step(0)),
    }
    return split, *(make[name]() for name in keep_model_sights(sights))


def hide_otherwise(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Equal inputs to the adversary's eyes, with another group for every target person."""
    split = inputs[0]
    train = split.train.having(sensitive=(split.train.sensitive + 1) % len(split.train.groups))
    return replace(split, train=train), *inputs[1:]
