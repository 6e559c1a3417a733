"""Pickling to workers and back; separate from code that opens files."""

from __future__ import annotations

import pickle
from typing import Any, TypeVar

import cloudpickle

T = TypeVar("T")


def pickle_and_back(value: Any) -> Any:
    """The value as another process receives it."""
    return pickle.loads(pickle.dumps(value))


def transfer(result: T, what: str) -> T:
    """A step's result as the worker of the next step receives it.

    Raises AssertionError if engines cannot pickle it.
    """
    try:
        received: T = cloudpickle.loads(cloudpickle.dumps(result))
    except Exception as error:  # a third party's `__reduce__` may raise anything
        problem = f"{what} cannot be sent to another worker: {type(error).__name__}: {error}"
        raise AssertionError(problem) from None
    return received
