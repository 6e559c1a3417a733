"""Pickling to workers and back: a module of its own, because it opens no file."""

from __future__ import annotations

import pickle
from typing import Any, TypeVar

import cloudpickle

T = TypeVar("T")


def pickle_and_back(value: Any) -> Any:
    """The value as another process would get it."""
    return pickle.loads(pickle.dumps(value))


def transfer(result: T, what: str) -> T:
    """A step's result as the worker that does the next step gets it.

    Raises AssertionError if it cannot be pickled, not even as engines pickle it.
    """
    try:
        received: T = cloudpickle.loads(cloudpickle.dumps(result))
    except Exception as error:  # whatever a stranger's `__reduce__` raises
        problem = f"{what} cannot travel to another worker: {type(error).__name__}: {error}"
        raise AssertionError(problem) from None
    return received
