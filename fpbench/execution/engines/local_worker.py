"""What a worker process does of a run, and what it keeps: results travel as seldom as they can.

A worker keeps what it has made or was sent, up to a number of bytes. The coordinator holds each
result as the bytes that came, which it never opens, and sends large ones only to workers that say
they lack them.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from typing import Any, NamedTuple

from fpbench.execution.isolation.one_use import execute_alone
from fpbench.execution.work.execute import check_unspoiled, execute_in_worker, told
from fpbench.matrix.limits import Limits
from fpbench.matrix.step import Failure, Result, Step

SMALL = 16 * 2**10
"""Bytes: a result that has no more is sent at once, rather than asked for."""
_MOST = 256 * 2**20
"""Bytes that a worker keeps, as pickled; what was used longest ago goes first."""


class Packed(NamedTuple):
    """A result, as the coordinator holds it."""

    key: str
    """Key of the step that made it."""
    content: bytes


class Ticket(NamedTuple):
    """A result that the worker may have kept."""

    key: str


class Lacking(NamedTuple):
    """What a worker says that was handed tickets of results that it has not."""

    keys: frozenset[str]


class Order(NamedTuple):
    """What a worker is to do."""

    step: Step
    given: tuple[Any, ...]
    """Its parents' results: `Packed`, `Ticket`, or the values themselves."""
    final: bool
    """Whether the value itself is wanted."""
    limits: Limits
    address: str | None
    """Where one-use processes are had, if the step is to run in one."""


class _Shelf:
    """Results by key, the last used last."""

    def __init__(self, most: int) -> None:
        self._most, self._size = most, 0
        self._kept: OrderedDict[str, tuple[Any, int]] = OrderedDict()

    def __contains__(self, key: str) -> bool:
        return key in self._kept

    def __getitem__(self, key: str) -> Any:
        self._kept.move_to_end(key)
        return self._kept[key][0]

    def keep(self, key: str, value: Any, size: int) -> None:
        """Keep a value of so many bytes, unless it is larger than the shelf."""
        if key in self._kept or not SMALL < size <= self._most:
            return
        self._kept[key] = (value, size)
        self._size += size
        while self._size > self._most:
            self._size -= self._kept.popitem(last=False)[1][1]


_SHELF = _Shelf(_MOST)


def carry_out(order: Order) -> bytes | Result | Lacking:
    """Do a step in a worker.

    Returns
    -------
    bytes or Result or Lacking
        The result in plain words if it is final or a `Failure`, otherwise where its value is
        `Packed`; or what is lacking.
    """
    lacking = {g.key for g in order.given if isinstance(g, Ticket) and g.key not in _SHELF}
    if lacking:
        return Lacking(frozenset(lacking))
    step, given = order.step, tuple(map(_opened, order.given))
    if order.address is None:
        result = execute_in_worker(step, given)
    else:
        check_unspoiled()  # what is changed here may keep this worker from asking
        result = execute_alone(step, given, order.limits, order.address)
    if order.final or isinstance(result.value, Failure):
        return told(step, result)
    import cloudpickle

    content = cloudpickle.dumps(result.value)
    _SHELF.keep(step.key, result.value, len(content))
    return Result(Packed(step.key, content), result.seconds)


def _opened(given: Any) -> Any:
    if isinstance(given, Ticket):
        return _SHELF[given.key]
    if not isinstance(given, Packed):
        return given
    value = _SHELF[given.key] if given.key in _SHELF else pickle.loads(given.content)
    _SHELF.keep(given.key, value, len(given.content))
    return value


def tickets(parents: tuple[Any, ...], lacking: frozenset[str] = frozenset()) -> tuple[Any, ...]:
    """What is sent to a worker: of large results that it may have, only the keys."""
    return tuple(
        Ticket(parent.key)
        if isinstance(parent, Packed) and len(parent.content) > SMALL and parent.key not in lacking
        else parent
        for parent in parents
    )
