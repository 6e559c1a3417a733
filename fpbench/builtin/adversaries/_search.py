"""The search for the parameters of an attack model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpbench import Codes, Measures, Recipe, random_state
from fpbench.builtin.adversaries._cut import cut
from fpbench.builtin.adversaries._model import train
from fpbench.builtin.adversaries._space import Range, Space, same

VALIDATION = 0.2
"""Share of the people trained on that parameters are chosen on."""


@dataclass(frozen=True)
class Found:
    """What a search found."""

    chosen: dict[str, Any]
    """Parameters that differ from those the search began with."""
    parameters: dict[str, Any]
    """All that were searched, as they are now."""
    accuracy: float
    """Share of right guesses on the validation cut."""
    untuned: float
    """The same with the parameters that the search began with."""
    trials: int

    @property
    def notes(self) -> Measures:
        """What a row should say."""
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
) -> Found:
    """Choose parameters by a tree-structured Parzen estimator (Optuna).

    The first trial is the recipe as it is, so what is found is never worse than that on the
    validation cut. All trials train on the same people with the same `state`.

    Parameters
    ----------
    recipe
        Where the search begins.
    space
        Which parameters are searched, and where.
    matrix, truth
        (n, columns) what is seen of people, and (n,) their groups: a validation cut of them is
        kept from training.
    trials
        Number of sets of parameters that are tried, the first included.
    state
        `random_state` of every model.
    rng
        Chooses the validation cut, and the sets of parameters.

    Raises
    ------
    DataError
        If there are fewer than two people.
    InputError
        If a class refuses parameters that the space allows.
    """
    validation, training = cut(len(truth), VALIDATION, rng, "the training part of the attack set")
    known: dict[str, float] = {}

    def accuracy(parameters: dict[str, Any]) -> float:
        key = json.dumps(parameters, sort_keys=True)
        if key not in known:
            tried = replace(recipe, parameters={**recipe.parameters, **parameters})
            model = train(tried, matrix[training], truth[training], state)
            known[key] = model.accuracy(matrix[validation], truth[validation])
        return known[key]

    everything = recipe.defaults()
    began = {name: everything[name] for name in space}
    untuned = best = accuracy({})
    chosen: dict[str, Any] = {}
    study, distributions = _study(space, random_state(rng))
    with _quietly():
        _tell(study, distributions, space, began, untuned)
        for _ in range(trials - 1):
            trial = study.ask(distributions)
            parameters = {name: _value(space[name], v) for name, v in trial.params.items()}
            reached = accuracy(parameters)
            study.tell(trial, reached)
            if reached > best:
                best, chosen = reached, parameters
    return Found(chosen, {**began, **chosen}, best, untuned, trials)


def _study(space: Space, seed: int) -> tuple[Any, dict[str, Any]]:
    """A study in memory, and Optuna's words for the space: a choice is its number."""
    import optuna
    from optuna.distributions import (
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )

    distributions: dict[str, Any] = {}
    for name, where in space.items():
        if not isinstance(where, Range):
            distributions[name] = CategoricalDistribution(range(len(where)))
        elif where.whole:
            distributions[name] = IntDistribution(int(where.low), int(where.high), log=where.log)
        else:
            distributions[name] = FloatDistribution(where.low, where.high, log=where.log)
    with _quietly():
        sampler = optuna.samplers.TPESampler(seed=seed)
        return optuna.create_study(direction="maximize", sampler=sampler), distributions


def _tell(
    study: Any, distributions: dict[str, Any], space: Space, began: dict[str, Any], value: float
) -> None:
    """Let the study know of the first trial, if its parameters are in the space."""
    from optuna.trial import create_trial

    told = {}
    for name, where in space.items():
        if isinstance(where, Range):
            found = [began[name]] if began[name] in where else []
        else:
            found = [n for n, _ in enumerate(where) if same(_value(where, n), began[name])][:1]
        if not found:
            return
        (told[name],) = found
    study.add_trial(create_trial(params=told, distributions=distributions, value=value))


def _value(where: Any, said: Any) -> Any:
    """A parameter, from Optuna's word for it."""
    if isinstance(where, Range):
        return said
    return None if where[said] == "none" else where[said]


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep Optuna from reporting every trial; what others set it to is kept."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
