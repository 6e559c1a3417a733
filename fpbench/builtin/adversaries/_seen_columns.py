"""The columns that adversaries see, as numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpbench import Codes, Sample
from fpbench.data import ModelAnswers
from fpbench.models import Encoding, encode


def stack_columns(
    people: Sample, sights: frozenset[str], encoding: Encoding
) -> NDArray[np.float32]:
    """The visible columns of n people, (n, columns): features first, then a model's answers.

    A twin also gives the difference of its score from the model's. A query gives, for each group:
    the answer, its probability of the person's own label, and whether it equals the model's
    prediction for the person.

    Raises HiddenError if the sample lacks one of the columns.
    """
    columns = [encode(people.features, encoding)] if "features" in sights else []
    for name in ("labels", "predictions", "scores"):
        if name in sights:
            columns.append(_as_columns(getattr(people, name)))
    if "twin" in sights:
        columns += _read_twin(people, scored="scores" in sights)
    if "query" in sights:
        columns += _read_query(people, sights)
    return np.hstack(columns)


def _read_twin(people: Sample, *, scored: bool) -> list[NDArray[np.float32]]:
    twin = people.twin
    columns = [_as_columns(twin.predictions)]
    if twin.scores is not None:
        columns.append(_as_columns(twin.scores))
        if scored:
            columns.append(_as_columns(people.scores - twin.scores))
    return columns


def _read_query(people: Sample, sights: frozenset[str]) -> list[NDArray[np.float32]]:
    answers = people.query
    columns = [_as_columns(answers.predictions)]
    if answers.scores is not None:
        columns.append(_as_columns(answers.scores))
    if "labels" in sights:
        columns.append(_as_columns(find_confidence(answers, people.labels)))
    if "predictions" in sights:
        columns.append(_as_columns(answers.predictions == people.predictions[:, None]))
    return columns


def find_confidence(answers: ModelAnswers, labels: Codes) -> NDArray[np.float64]:
    """(n, K) the model's probability of people's own labels, for each group of a query.

    Without probabilities it is 1 or 0: whether the model predicts the label.
    """
    positive = answers.predictions if answers.scores is None else answers.scores
    return np.where(np.asarray(labels)[:, None] == 1, positive, 1.0 - positive)


def _as_columns(values: NDArray[Any]) -> NDArray[np.float32]:
    return values.astype(np.float32).reshape(len(values), -1)
