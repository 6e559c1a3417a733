"""Measures as plain values, and as columns of bytes, which are read much faster than JSON.

A column holds the values of one measure in many cells: eight bytes for each, little endian. They
are numbers to the last bit, of which one stands for None, or positions in a list of values: most
texts are the same in many cells. Bytes and JSON hold data only: reading them runs no code.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpbench.base.arguments import show_value
from fpbench.base.errors import PluginError

_LEAST, _GREATEST = -(2**63), 2**63 - 1
_NONE = {"f": 0x7FF8_0000_F9BE_0001, "i": _LEAST}
"""The bits that stand for None: a NaN that computing never gives, and the least whole number."""
_TYPES = (type(None), bool, int, float, str)
_LONGEST_NAME = 200
_MOST_NAMES = 10_000
_MOST_LETTERS = 2**20
_MOST_BITS = 10_000
"""Python refuses to write or read much longer numbers as digits."""


def to_plain(measures: Mapping[str, Any]) -> dict[str, Any]:
    """Measures as values of Python's own types.

    Raises PluginError if a value is not a number, text or None, or is a number of too many digits.
    """
    return {_check_name(name): _to_plain(name, value) for name, value in measures.items()}


def _check_name(name: Any) -> str:
    if not isinstance(name, str):
        raise PluginError(f"the name of a measure must be a text, not {show_value(name)}")
    return name


def _to_plain(name: str, value: Any) -> Any:
    match value:
        case None:
            return None
        case bool() | np.bool_():
            return bool(value)
        case float() | np.floating():
            return float(value)
        case int() | np.integer():
            if int(value).bit_length() <= _MOST_BITS:
                return int(value)
        case str():
            return make_storable(value)
    raise PluginError(
        f"measure {name!r} must be a text, None, or a number of at most {_MOST_BITS} bits, not "
        f"{type(value).__name__}"
    )


def make_storable(text: str) -> str:
    """A text that UTF-8 can encode: file names may hold bytes that are not letters."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def why_not_storable(measures: Mapping[str, Any]) -> str | None:
    """Why measures of a component cannot be stored in a row; None if they can."""
    letters = 0
    try:
        for name, value in to_plain(measures).items():
            if not (0 < len(name) <= _LONGEST_NAME and name.isprintable()):
                return (
                    f"the name of a measure must be 1 to {_LONGEST_NAME} letters that can be "
                    f"shown, not {show_value(name[:40])}"
                )
            letters += len(value) if isinstance(value, str) else 0
    except PluginError as error:
        return str(error)
    if letters > _MOST_LETTERS or len(measures) > _MOST_NAMES:
        return (
            f"measures must be at most {_MOST_NAMES:,}, and their texts {_MOST_LETTERS:,} letters, "
            f"not {len(measures):,} and {letters:,}"
        )
    return None


def read_plain(text: str) -> Any:
    """JSON that a stranger may have written: a plain value, a list or a dictionary of such.

    Raises ValueError if it is something else.
    """
    found = json.loads(text)
    values = found.values() if isinstance(found, dict) else found
    if not isinstance(found, dict | list) or not all(type(value) in _TYPES for value in values):
        raise ValueError(f"not plain values: {text[:80]!r}")
    plain = [make_storable(value) if isinstance(value, str) else value for value in values]
    if isinstance(found, dict):
        return dict(zip(map(make_storable, found), plain, strict=True))
    return plain


@dataclass(frozen=True)
class Column:
    """The values of one measure in some cells."""

    data: NDArray[Any]
    """(n,) floats or whole numbers: the values, or their positions in `levels`."""
    levels: Sequence[Any] | None = None
    """The values that occur, each once; None if `data` holds the values themselves."""

    @classmethod
    def of(cls, values: Sequence[Any]) -> Column:
        """Plain values as a column."""
        kinds = set(map(type, values)) - {type(None)}
        if kinds == {float}:
            absent = [value is None for value in values]
            return cls.of_numbers(np.array(values, np.float64), np.array(absent))
        whole = [_LEAST if value is None else value for value in values]
        small = kinds == {int} and min(whole) >= _LEAST and max(whole) <= _GREATEST
        if small and _LEAST not in values:
            return cls(np.array(whole, np.int64))
        place: dict[tuple[type, str], int] = {}
        levels: list[Any] = []
        data = np.empty(len(values), np.int64)
        for i, value in enumerate(values):
            key = type(value), value if isinstance(value, str) else repr(value)
            data[i] = place.setdefault(key, len(place))
            if len(levels) < len(place):
                levels.append(value)
        return cls(data, levels)

    @classmethod
    def of_numbers(cls, numbers: NDArray[np.float64], absent: NDArray[np.bool_]) -> Column:
        """Floats as a column, with None where they are absent."""
        numbers.view(np.int64)[absent] = _NONE["f"]
        return cls(numbers)

    @classmethod
    def read(cls, count: int, kind: str, data: bytes, levels: str | None) -> Column:
        """A column of `count` cells, as `write` wrote it; ValueError if it is not one."""
        types = {"float": "<f8", "int": "<i8"}
        if not isinstance(data, bytes) or len(data) != 8 * count or kind not in types:
            raise ValueError(f"not a column of {count} cells")
        array = np.frombuffer(data, types[kind])
        array = array.astype(array.dtype.newbyteorder("="), copy=False)
        if levels is None:
            return cls(array)
        known = read_plain(levels)
        if not isinstance(known, list) or kind != "int":
            raise ValueError("values of a measure that are not a list")
        if count and not 0 <= array.min() <= array.max() < len(known):
            raise ValueError("a measure refers to a missing value")
        return cls(array, known)

    def write(self) -> tuple[str, bytes, str | None]:
        """The kind of its numbers, their bytes, and its levels as JSON."""
        kind = "float" if self.data.dtype == np.float64 else "int"
        levels = None if self.levels is None else json.dumps(self.levels)
        return kind, self.data.astype(self.data.dtype.newbyteorder("<")).tobytes(), levels

    def take(self, which: NDArray[np.bool_]) -> Column:
        """The values of a mask."""
        return replace(self, data=self.data[which])

    def values(self) -> list[Any]:
        """The values as they were stored."""
        if self.levels is not None:
            return list(map(self.levels.__getitem__, self.data.tolist()))
        values: list[Any] = self.data.tolist()
        for i in np.flatnonzero(self.absent).tolist():
            values[i] = None
        return values

    @property
    def absent(self) -> NDArray[np.bool_]:
        """(n,) whether a number is None; for a column without levels."""
        return np.asarray(self.data.view(np.int64) == _NONE[self.data.dtype.kind])

    def numbers(self) -> NDArray[np.float64]:
        """(n,) the values as floats; NaN where there is no number."""
        if self.levels is None and self.data.dtype == np.float64:
            return self.data
        if self.levels is None:
            return np.where(self.absent, np.nan, self.data)
        levels = np.array([*map(_to_float, self.levels)], np.float64)
        return np.asarray(levels[self.data])


def _to_float(value: Any) -> float:
    if value is None or isinstance(value, str):
        return math.nan
    try:
        return float(value)
    except OverflowError:  # a whole number that is too large for a float
        return math.copysign(math.inf, value)


def is_identical(one: Any, other: Any) -> bool:
    """Whether two values are the same to the last bit: NaN is NaN, and -0.0 is not 0.0."""
    if isinstance(one, float) and isinstance(other, float):
        return struct.pack("<d", one) == struct.pack("<d", other)
    return type(one) is type(other) and bool(one == other)
