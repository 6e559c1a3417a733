"""Watched calls and transfers: results, modified inputs, use of global randomness, pickling."""

from __future__ import annotations

import copy
import os
import pickle
import random
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any, TypeVar

import cloudpickle
import numpy as np

from fpbench.data.sample import Sample

_PLAIN = (str, bytes, bool, int, float, complex, type(None), Enum, os.PathLike)

_GENERATORS: dict[str, tuple[Callable[[], Any], Callable[[Any], None]]] = {
    "numpy.random": (np.random.get_state, np.random.set_state),
    "random": (random.getstate, random.setstate),
}
"""Global generators: functions that read and restore their state."""


@dataclass(frozen=True)
class Watched:
    """The result and the side effects of a call."""

    inputs: Any
    """Its arguments, unchanged."""
    result: Any = None
    error: Exception | SystemExit | None = None
    changed: str = ""
    """The first changed part of its arguments; empty if none."""
    drew: str = ""
    """The global generator that it drew from; empty if none."""


def watch(call: Callable[[Any], Any], inputs: Any) -> Watched:
    """The effects of a call with a copy of the inputs; its warnings are hidden."""
    copied = copy.deepcopy(inputs)
    before, states = dict(list_parts(copied)), _copy_states()
    result, error = None, None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = call(copied)
    except (Exception, SystemExit) as raised:  # laws judge any error of a plugin
        error = raised
    drew = next(
        (name for name, now in _copy_states().items() if find_difference(now, states[name])), ""
    )
    changed = find_first_difference(before, dict(list_parts(copied)))
    return Watched(inputs, result, error, changed, drew)


@contextmanager
def restore_generators() -> Iterator[None]:
    """Restore global generators afterwards, so that every reseeding is detected."""
    states = _copy_states()
    try:
        yield
    finally:
        for name, (_, put_back) in _GENERATORS.items():
            put_back(states[name])


def _copy_states() -> dict[str, Any]:
    # Copies, because numpy returns its own memory.
    return {name: copy.deepcopy(state()) for name, (state, _) in _GENERATORS.items()}


def find_difference(one: Any, other: Any) -> str:
    """The path of the first different part of two results, without times; empty if none."""
    return find_first_difference(dict(list_parts(one)), dict(list_parts(other)))


def find_first_difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """The path of the first different part of two values; empty if none."""
    for path in [*one, *(path for path in other if path not in one)]:
        if one.get(path, _PLAIN) != other.get(path, _PLAIN):
            return path or "the value"
    return ""


def list_parts(
    thing: Any, path: str = "", within: tuple[int, ...] = ()
) -> Iterator[tuple[str, Any]]:
    """All comparable parts of a value with their paths, without measures of time.

    `within` are the ids of the values that contain it: a value may contain itself.
    """
    if path.rpartition(".")[2].endswith("seconds") or id(thing) in within:
        return
    if isinstance(thing, np.ndarray):
        raw = repr(thing.tolist()) if thing.dtype == object else thing.tobytes()
        yield path, (thing.dtype.str, thing.shape, raw)
    elif isinstance(thing, np.generic):
        yield path, repr(thing.item())
    elif isinstance(thing, _PLAIN):
        yield path, repr(thing)  # so that NaN equals NaN
    else:
        inner = list(_list_inside(thing))
        yield f"{path}.type", f"{type(thing).__qualname__} of {len(inner)}"
        for name, value in inner:
            yield from list_parts(value, f"{path}.{name}".lstrip("."), (*within, id(thing)))


def _list_inside(thing: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(thing, Sample):
        for name in sorted(thing.seen):
            yield name, getattr(thing, name)
        yield "domain", thing.domain
    elif isinstance(thing, Mapping):
        yield from ((str(key), value) for key, value in thing.items())
    elif isinstance(thing, set | frozenset):
        yield "members", repr(sorted(map(repr, thing)))
    elif isinstance(thing, Sequence):
        yield from ((str(i), value) for i, value in enumerate(thing))
    elif is_dataclass(thing):
        yield from ((field.name, getattr(thing, field.name)) for field in fields(thing))
    elif hasattr(thing, "columns") and hasattr(thing, "items"):  # a DataFrame
        yield "index", np.asarray(thing.index)
        yield from ((str(name), _split_column(column)) for name, column in thing.items())
    elif not isinstance(thing, type):  # for example a model: its pickled state
        state = thing.__getstate__()
        yield from state.items() if isinstance(state, dict) else [("state", state)]


def _split_column(column: Any) -> Any:
    """A column of a DataFrame as arrays and words."""
    values = column.array
    if hasattr(values, "categories"):
        return np.asarray(values.codes), list(map(str, values.categories)), bool(values.ordered)
    return column.to_numpy()


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
