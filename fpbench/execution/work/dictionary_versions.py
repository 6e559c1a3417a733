"""Which dictionaries have been written to, found out without touching what they hold.

Up to 3.13, CPython gives a dictionary a new number at every write (PEP 509, removed by PEP 699).
To read it costs less than to compare thousands of values: each that is compared is written to,
as its references are counted, and a process that was forked has to copy its memory for that.
"""

from __future__ import annotations

import ctypes
import gc
from types import MappingProxyType
from typing import Any

_PLACE = object.__basicsize__ + ctypes.sizeof(ctypes.c_ssize_t)
"""Where the number is: behind what all objects have, and how many entries there are."""


def _number(table: dict[Any, Any]) -> ctypes.c_uint64:
    """The number of a dictionary, to be read as long as that lives."""
    return ctypes.c_uint64.from_address(id(table) + _PLACE)


def _is_kept() -> bool:
    """Whether this Python keeps such numbers: what changes them, and what does not, is tried."""
    if dict.__basicsize__ < _PLACE + ctypes.sizeof(ctypes.c_uint64):
        return False
    table: dict[str, Any] = {"old": 1}
    number = _number(table)
    seen = [number.value]
    table["old"] = 2.5
    seen.append(number.value)
    table["new"] = 3
    seen.append(number.value)
    del table["new"]
    seen.append(number.value)
    dict(table)
    return len(set(seen)) == len(seen) and number.value == seen[-1]


KEPT = _is_kept()


class Versions:
    """Tells which of some dictionaries have been written to."""

    def __init__(self) -> None:
        self._tables: list[dict[str, Any]] = []
        self._numbers: list[ctypes.c_uint64] = []
        self._before: list[int] = []

    def add(self, table: dict[str, Any]) -> None:
        """Begin to watch one more, which is kept alive."""
        self._tables.append(table)
        if KEPT:
            self._numbers.append(_number(table))
            self._before.append(self._numbers[-1].value)

    def written(self) -> list[int]:
        """Those, in the order they were added in, that may be others since this was last asked."""
        if not KEPT:
            return list(range(len(self._tables)))
        before, self._before = self._before, [number.value for number in self._numbers]
        if before == self._before:
            return []
        pairs = zip(before, self._before, strict=True)
        return [place for place, (old, new) in enumerate(pairs) if old != new]


def names_of(owner: Any) -> dict[str, Any]:
    """The dictionary of a module or a class, itself: of a class, Python shows a proxy of it."""
    names = owner if isinstance(owner, dict) else vars(owner)
    if isinstance(names, MappingProxyType):
        (names,) = gc.get_referents(names)
    return names
