"""The task of a worker process of this machine, and the results that it caches.

A worker caches the results that it made or received, up to a number of bytes. The coordinator holds
each result as bytes, which it never unpickles, and sends a large one only to a worker that reports
it missing.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from typing import Any, NamedTuple

from fpbench.execution.isolation.one_use import execute_alone
from fpbench.execution.work.execute import execute_in_worker, write_row
from fpbench.matrix.limits import Limits
from fpbench.matrix.step import Failure, Result, Step

SMALL = 16 * 2**10
"""Greatest size in bytes of a result that is always sent."""
_MOST = 256 * 2**20
"""Bytes of pickled results that a worker caches; the least recently used is dropped first."""


class Packed(NamedTuple):
    """A result, as the coordinator holds it."""

    key: str
    """Key of the step that made it."""
    content: bytes


class ResultRef(NamedTuple):
    """A result that the worker may have in its cache."""

    key: str


class MissingResults(NamedTuple):
    """The answer of a worker that lacks results it was sent references to."""

    keys: frozenset[str]


class LocalOrder(NamedTuple):
    """An order for a worker."""

    step: Step
    parents: tuple[Any, ...]
    """The results of its parents: `Packed`, `ResultRef`, or the values themselves."""
    final: bool
    """Whether the coordinator reads the value."""
    limits: Limits
    address: str | None
    """Address of the server of one-use processes, if the step must run in one."""


class ResultCache:
    """Results by key, the most recently used last."""

    def __init__(self, most: int) -> None:
        self._most, self._size = most, 0
        self._entries: OrderedDict[str, tuple[Any, int]] = OrderedDict()

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def __getitem__(self, key: str) -> Any:
        self._entries.move_to_end(key)
        return self._entries[key][0]

    def add(self, key: str, value: Any, size: int) -> None:
        """Cache a value of `size` bytes, unless it is small or larger than the cache."""
        if key in self._entries or not SMALL < size <= self._most:
            return
        self._entries[key] = (value, size)
        self._size += size
        while self._size > self._most:
            self._size -= self._entries.popitem(last=False)[1][1]


_CACHE = ResultCache(_MOST)


def carry_out(order: LocalOrder) -> bytes | Result | MissingResults:
    """Do a step in a worker.

    Returns: the result as bytes of plain data if it is final or a `Failure`, otherwise with its
    value `Packed`; or the results that are missing.
    """
    missing = {p.key for p in order.parents if isinstance(p, ResultRef) and p.key not in _CACHE}
    if missing:
        return MissingResults(frozenset(missing))
    step, values = order.step, tuple(map(_read_parent, order.parents))
    if order.address is None:
        result = execute_in_worker(step, values)
    else:
        result = execute_alone(step, values, order.limits, order.address)
    if order.final or isinstance(result.value, Failure):
        return write_row(step, result)
    import cloudpickle

    content = cloudpickle.dumps(result.value)
    _CACHE.add(step.key, result.value, len(content))
    return Result(Packed(step.key, content), result.seconds)


def _read_parent(parent: Any) -> Any:
    if isinstance(parent, ResultRef):
        return _CACHE[parent.key]
    if not isinstance(parent, Packed):
        return parent
    value = _CACHE[parent.key] if parent.key in _CACHE else pickle.loads(parent.content)
    _CACHE.add(parent.key, value, len(parent.content))
    return value


def make_refs(parents: tuple[Any, ...], missing: frozenset[str] = frozenset()) -> tuple[Any, ...]:
    """The inputs to send to a worker: references instead of large results, except missing ones."""
    return tuple(
        ResultRef(parent.key)
        if isinstance(parent, Packed) and len(parent.content) > SMALL and parent.key not in missing
        else parent
        for parent in parents
    )
