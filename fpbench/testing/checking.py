"""What values of a result must be, whatever kind it is of."""

from __future__ import annotations

from typing import Any

import numpy as np


def check_measures(measures: Any, what: str) -> None:
    """Raise AssertionError if they are not numbers or texts, by names in snake_case."""
    assert isinstance(measures, dict), f"{what} are a {type(measures).__name__}, not a dict"
    for name, value in measures.items():
        assert isinstance(name, str), f"{what} are named by texts, not {name!r}"
        assert name.isidentifier() and name.lower() == name, f"{what}: {name!r} is not snake_case"
        plain = isinstance(value, str | int | float | np.number | np.bool_ | None)
        assert plain, f"{what}: {name!r} is a {type(value).__name__}, not a number or a text"
        nan = isinstance(value, float | np.floating) and np.isnan(value)
        assert not nan, f"{what}: {name!r} is NaN; what is undefined is None"


def check_probabilities(proba: Any, n: int, whose: str) -> None:
    """Raise AssertionError if they are not (n, 2) probabilities of label 0 and label 1."""
    assert np.shape(proba) == (n, 2), f"{whose}'s scores are {np.shape(proba)}, not ({n}, 2)"
    values = np.asarray(proba)
    assert ((values >= 0) & (values <= 1)).all(), f"{whose}'s scores are not in [0, 1]"
    assert np.allclose(values.sum(axis=1), 1), f"{whose}'s scores of a person do not sum to 1"


def check_whole(values: Any, what: str) -> None:
    """Raise AssertionError if they are not an array of whole numbers."""
    whole = isinstance(values, np.ndarray) and np.issubdtype(values.dtype, np.integer)
    assert whole, f"{what} must be an array of whole numbers"
