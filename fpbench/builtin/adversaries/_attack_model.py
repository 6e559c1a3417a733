"""Classifiers that guess people's groups, and the search for their parameters."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, model_validator

from fpbench import InputError
from fpbench.builtin.adversaries._holding_out import split_rows
from fpbench.models import Recipe, random_state
from fpbench.plugin import Codes, MeasureValues

VALIDATION = 0.2
"""Share of the training people used to choose parameters."""


class AttackModel(NamedTuple):
    """A trained classifier of groups."""

    groups: Codes
    """(k,) codes of the groups seen in training, ascending."""
    classifier: Any
    """Its classes index `groups`; None if training saw one group only."""
    people: int
    """Number of people it was trained on."""

    def guess(self, matrix: NDArray[np.float32], groups: int) -> NDArray[np.float64]:
        """Probability of each group, (n, K), of n people.

        A group without training people gets 1 / (m + K), by Laplace's rule of succession for m
        people: probability 0 would exclude it. The others share the rest in proportion to the
        classifier's probabilities, so the likeliest stays the same.
        """
        beliefs = np.zeros((len(matrix), groups))
        if self.classifier is None:
            beliefs[:, self.groups] = 1.0
        else:
            classes = self.groups[np.asarray(self.classifier.classes_, dtype=np.intp)]
            beliefs[:, classes] = self.classifier.predict_proba(matrix)
            total = beliefs.sum(axis=1, keepdims=True)
            if np.abs(total - 1.0).max(initial=0.0) > 1e-12:  # of single precision, for example
                beliefs /= total
        if len(self.groups) < groups:
            unseen = np.setdiff1d(np.arange(groups), self.groups)
            rare = 1.0 / (self.people + groups)
            beliefs *= 1.0 - rare * len(unseen)
            beliefs[:, unseen] = rare
        return beliefs

    def accuracy(self, matrix: NDArray[np.float32], truth: Codes) -> float:
        """Share of people whose group it guesses right."""
        groups = int(max(truth.max(), self.groups[-1])) + 1
        return float(np.mean(self.guess(matrix, groups).argmax(axis=1) == truth))


def train(recipe: Recipe, matrix: NDArray[np.float32], truth: Codes, state: int) -> AttackModel:
    """A classifier trained on people whose groups are known.

    Groups are renumbered without gaps, and a single group is not fitted: some classifiers accept
    neither.
    """
    groups, numbers = np.unique(truth, return_inverse=True)
    classifier = recipe.fit(matrix, numbers, state) if len(groups) > 1 else None
    return AttackModel(groups, classifier, len(truth))


class Range(BaseModel):
    """A closed interval of numbers; integers if both ends are integers."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    low: int | Annotated[float, Field(allow_inf_nan=False)]
    high: int | Annotated[float, Field(allow_inf_nan=False)]
    log: bool = False
    """Whether numbers are sampled on a logarithmic scale."""

    @model_validator(mode="after")
    def _check_order(self) -> Range:
        if self.low >= self.high:
            raise InputError(f"low must be less than high, but {self.low} is not")
        if self.log and self.low <= 0:
            raise InputError(f"with log, low must be above 0, not {self.low}")
        return self

    @property
    def whole(self) -> bool:
        """Whether it has integers only: both ends are written without a decimal point."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    def __contains__(self, value: object) -> bool:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or (self.whole and not isinstance(value, int)):
            return False
        return bool(self.low <= value <= self.high)  # type: ignore[operator]


def _check_domain(domain: Any) -> Any:
    """A table or a list, unchanged; pydantic would report errors of both members of a union."""
    if isinstance(domain, Range | Mapping) or (isinstance(domain, list) and domain):
        return domain
    raise InputError("must be a list of choices, or a table of low, high and log")


Choices: TypeAlias = list[JsonValue]
Space: TypeAlias = dict[str, Annotated[Range | Choices, BeforeValidator(_check_domain)]]
"""The range or the choices of each searched parameter."""

SPACES: Mapping[str, Space] = {
    # The number of trees is not searched: more are rarely worse and only slower.
    "random-forest": {
        "max_depth": Range(low=4, high=30),
        "min_samples_split": Range(low=2, high=50, log=True),
        "min_samples_leaf": Range(low=1, high=30, log=True),
        "max_features": ["sqrt", "log2", 0.3, 0.5],
        "criterion": ["gini", "entropy"],
    },
    "hist-gradient-boosting": {
        "learning_rate": Range(low=0.01, high=0.3, log=True),
        "max_iter": Range(low=50, high=300, log=True),
        "max_leaf_nodes": Range(low=7, high=63, log=True),
        "min_samples_leaf": Range(low=5, high=100, log=True),
        "l2_regularization": Range(low=0.0, high=30.0),
        "max_features": Range(low=0.3, high=1.0),
    },
    "logistic-regression": {"C": Range(low=0.001, high=100.0, log=True)},
    "decision-tree": {
        "max_depth": Range(low=2, high=20),
        "min_samples_split": Range(low=2, high=100, log=True),
        "min_samples_leaf": Range(low=1, high=50, log=True),
        "criterion": ["gini", "entropy"],
    },
}
"""The default search space of each family."""


@dataclass(frozen=True)
class SearchResult:
    """The best parameters of a search, and their accuracy."""

    changes: dict[str, Any]
    """Parameters that differ from those of the first trial."""
    parameters: dict[str, Any]
    """The best value of every searched parameter."""
    accuracy: float
    """Share of right guesses on the validation part."""
    untuned: float
    """The same with the parameters of the first trial."""
    trials: int

    @property
    def notes(self) -> MeasureValues:
        """Notes for the row."""
        return {
            "attack_parameters": json.dumps(self.parameters, sort_keys=True, default=str),
            "attack_trials": self.trials,
            "attack_validation_accuracy": self.accuracy,
            "attack_validation_untuned": self.untuned,
        }


def search(
    recipe: Recipe,
    space: Space,
    matrix: NDArray[np.float32],
    truth: Codes,
    trials: int,
    state: int,
    rng: np.random.Generator,
) -> SearchResult:
    """The best of `trials` sets of parameters, by a tree-structured Parzen estimator (Optuna).

    The first trial is the unchanged recipe, so the result is never worse on the validation part,
    which `rng` draws from the people: `matrix` (n, columns) has their visible columns, `truth` (n,)
    their groups. All trials train on the same people with the same `random_state`.

    Raises DataError if there are fewer than two people; InputError if a class refuses parameters of
    the space.
    """
    validation, training = split_rows(
        len(truth), VALIDATION, rng, "the training part of the attack set"
    )
    accuracies: dict[str, float] = {}

    def measure_accuracy(parameters: dict[str, Any]) -> float:
        key = json.dumps(parameters, sort_keys=True)
        if key not in accuracies:
            candidate = replace(recipe, parameters={**recipe.parameters, **parameters})
            model = train(candidate, matrix[training], truth[training], state)
            accuracies[key] = model.accuracy(matrix[validation], truth[validation])
        return accuracies[key]

    defaults = recipe.defaults()
    first = {name: defaults[name] for name in space}
    untuned = best = measure_accuracy({})
    changes: dict[str, Any] = {}
    study, distributions = _create_study(space, random_state(rng))
    with _quiet_optuna():
        _add_first_trial(study, distributions, space, first, untuned)
        for _ in range(trials - 1):
            trial = study.ask(distributions)
            parameters = {name: _decode(space[name], v) for name, v in trial.params.items()}
            accuracy = measure_accuracy(parameters)
            study.tell(trial, accuracy)
            if accuracy > best:
                best, changes = accuracy, parameters
    return SearchResult(changes, {**first, **changes}, best, untuned, trials)


def _create_study(space: Space, seed: int) -> tuple[Any, dict[str, Any]]:
    """An in-memory study, and the space as Optuna's distributions, with choices by index."""
    import optuna
    from optuna.distributions import (
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )

    distributions: dict[str, Any] = {}
    for name, domain in space.items():
        if not isinstance(domain, Range):
            distributions[name] = CategoricalDistribution(range(len(domain)))
        elif domain.whole:
            distributions[name] = IntDistribution(int(domain.low), int(domain.high), log=domain.log)
        else:
            distributions[name] = FloatDistribution(domain.low, domain.high, log=domain.log)
    with _quiet_optuna():
        sampler = optuna.samplers.TPESampler(seed=seed)
        return optuna.create_study(direction="maximize", sampler=sampler), distributions


def _add_first_trial(
    study: Any, distributions: dict[str, Any], space: Space, first: dict[str, Any], value: float
) -> None:
    """Add the first trial to the study, if its parameters are in the space."""
    from optuna.trial import create_trial

    encoded = {}
    for name, domain in space.items():
        start = first[name]
        if isinstance(domain, Range):
            matches = [start] if start in domain else []
        else:  # 1, 1.0 and true are different choices
            values = [_decode(domain, index) for index in range(len(domain))]
            matches = [i for i, v in enumerate(values) if type(v) is type(start) and v == start][:1]
        if not matches:
            return
        (encoded[name],) = matches
    study.add_trial(create_trial(params=encoded, distributions=distributions, value=value))


def _decode(domain: Any, value: Any) -> Any:
    """The parameter that Optuna's value stands for."""
    if isinstance(domain, Range):
        return value
    return None if domain[value] == "none" else domain[value]


@contextmanager
def _quiet_optuna() -> Iterator[None]:
    """Keep Optuna from reporting every trial; its verbosity is restored afterwards."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
