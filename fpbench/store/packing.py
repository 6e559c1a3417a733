"""The measures of a cell as bytes, which are read ten times as fast as JSON.

A cell's measures are their names (its *layout*, which most cells of a run share) and a blob: a byte
for the kind of each value, then eight bytes for each value, little endian. Numbers are exact to the
last bit: whole numbers stay whole, NaN stays NaN. A text is stored once, as a *word*, and the
blob holds its number. Final results are collected in *pages*, where the values of one measure of
all cells are side by side. A blob holds data only: reading it runs no code.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fpbench.base.arguments import show_value
from fpbench.base.errors import PluginError

Kinds = NDArray[np.uint8]
"""(names, rows) the `ValueKind` of each value."""
Bits = NDArray[np.int64]
"""(names, rows) the eight bytes of each value."""


class ValueKind(IntEnum):
    """The type of a value, and so the meaning of its eight bytes."""

    NONE = 0
    FLOAT = 1
    INT = 2
    BOOL = 3
    WORD = 4
    """A text: the number of a word."""
    BIG = 5
    """A whole number that eight bytes cannot hold: the number of a word, its digits."""


_LEAST, _GREATEST = -(2**63), 2**63 - 1
_LONGEST_NAME = 200
_MOST_NAMES = 10_000
_MOST_LETTERS = 2**20
_MOST_BITS = 10_000
"""Python refuses to write or read much longer numbers as digits."""


def pack(measures: Mapping[str, Any], number: Callable[[str], int]) -> bytes:
    """The values of measures as a blob, in their order.

    `number`: returns the number of a word.

    Raises PluginError if a value is not a number, text or None, or is a number of too many digits.
    """
    kinds, values = bytearray(), []
    for name, value in measures.items():
        if not isinstance(name, str):
            raise PluginError(f"the name of a measure must be a text, not {show_value(name)}")
        kind, plain = _to_plain(name, value)
        kinds.append(kind)
        values.append(number(plain) if kind in (ValueKind.WORD, ValueKind.BIG) else plain)
    return bytes(kinds) + _make_format(bytes(kinds)).pack(*values)


def why_not_storable(measures: Mapping[str, Any]) -> str | None:
    """Why measures of a component cannot be stored in a row; None if they can."""
    try:
        pack(measures, lambda _: 0)
        _check_size(measures)
    except PluginError as error:
        return str(error)
    return None


def _check_size(measures: Mapping[str, Any]) -> None:
    """Refuse names and texts that are too long or too many."""
    letters = 0
    for name, value in measures.items():
        if not (0 < len(name) <= _LONGEST_NAME and name.isprintable()):
            raise PluginError(
                f"the name of a measure must be 1 to {_LONGEST_NAME} letters that can be shown, "
                f"not {show_value(name[:40])}"
            )
        letters += len(value) if isinstance(value, str) else 0
    if letters > _MOST_LETTERS or len(measures) > _MOST_NAMES:
        raise PluginError(
            f"measures must be at most {_MOST_NAMES:,}, and their texts {_MOST_LETTERS:,} letters, "
            f"not {len(measures):,} and {letters:,}"
        )


def _to_plain(name: str, value: Any) -> tuple[ValueKind, Any]:
    match value:
        case None:
            return ValueKind.NONE, 0
        case bool() | np.bool_():
            return ValueKind.BOOL, int(value)
        case float() | np.floating():
            return ValueKind.FLOAT, float(value)
        case int() | np.integer():
            whole = int(value)
            if _LEAST <= whole <= _GREATEST:
                return ValueKind.INT, whole
            if whole.bit_length() <= _MOST_BITS:
                return ValueKind.BIG, str(whole)
        case str():
            return ValueKind.WORD, str(value)
    raise PluginError(
        f"measure {name!r} must be a text, None, or a number of at most {_MOST_BITS} bits, not "
        f"{type(value).__name__}"
    )


@lru_cache(maxsize=1024)
def _make_format(kinds: bytes) -> struct.Struct:
    return struct.Struct("<" + "".join("d" if kind == ValueKind.FLOAT else "q" for kind in kinds))


def split(blobs: Sequence[bytes], width: int) -> tuple[Kinds, Bits]:
    """The kinds and bits of the values of cells of one layout, by name and cell.

    Raises ValueError if a blob is not one of `width` values.
    """
    if any(len(blob) != 9 * width for blob in blobs):
        raise ValueError(f"measures of another length than {9 * width} bytes")
    raw = np.frombuffer(b"".join(blobs), np.uint8).reshape(len(blobs), 9 * width)
    kinds = np.ascontiguousarray(raw[:, :width].T)
    wide = np.ascontiguousarray(raw[:, width:]).view("<i8")
    return _check_kinds(kinds), np.ascontiguousarray(wide.T).astype(np.int64, copy=False)


class CellPage(NamedTuple):
    """Results of many cells of one layout, which are read at once."""

    numbers: NDArray[np.int64]
    """(cells,) the numbers of the cells."""
    sessions: NDArray[np.int64]
    seconds: NDArray[np.float64]
    kinds: Kinds
    bits: Bits

    def to_bytes(self) -> bytes:
        """The page as bytes: the widest arrays first, little endian."""
        wide = (self.numbers, self.sessions, self.seconds.view(np.int64), self.bits)
        return b"".join([*(part.astype("<i8").tobytes() for part in wide), self.kinds.tobytes()])


def read_page(blob: bytes, count: int, width: int) -> CellPage:
    """A page of `count` cells and `width` names; ValueError if the bytes are not one."""
    if count < 1 or len(blob) != count * (24 + 9 * width):
        raise ValueError(f"a page that is not one of {count} cells and {width} measures")
    wide = np.frombuffer(blob, "<i8", count * (3 + width)).astype(np.int64, copy=False)
    wide = wide.reshape(3 + width, count)
    kinds = np.frombuffer(blob, np.uint8, count * width, 8 * count * (3 + width))
    return CellPage(
        wide[0],
        wide[1],
        wide[2].view(np.float64),
        _check_kinds(kinds.reshape(width, count)),
        wide[3:],
    )


def _check_kinds(kinds: Kinds) -> Kinds:
    if kinds.size and kinds.max() > max(ValueKind):
        raise ValueError(f"a measure of the unknown kind {kinds.max()}")
    return kinds


def unpack_values(kinds: Kinds, bits: Bits, word: Callable[[int], str]) -> list[Any]:
    """The values of one name, as before packing."""
    first = int(kinds[0]) if len(kinds) else 0
    if first in (ValueKind.FLOAT, ValueKind.INT) and (kinds == first).all():  # nearly always
        plain: list[Any] = (bits.view(np.float64) if first == ValueKind.FLOAT else bits).tolist()
        return plain
    floats = bits.view(np.float64).tolist()
    return [
        _unpack_value(kind, whole, real, word)
        for kind, whole, real in zip(kinds.tolist(), bits.tolist(), floats, strict=True)
    ]


def _unpack_value(kind: int, whole: int, real: float, word: Callable[[int], str]) -> Any:
    match kind:
        case ValueKind.FLOAT:
            return real
        case ValueKind.INT:
            return whole
        case ValueKind.BOOL:
            return bool(whole)
        case ValueKind.WORD:
            return word(whole)
        case ValueKind.BIG:
            return int(word(whole))
    return None


def numbers(kinds: Kinds, bits: Bits, word: Callable[[int], str]) -> NDArray[np.float64]:
    """The values of one name as floats; NaN where there is no number."""
    if (kinds == ValueKind.FLOAT).all():
        return bits.view(np.float64)
    floats = np.where(kinds == ValueKind.FLOAT, bits.view(np.float64), np.nan)
    whole = (kinds == ValueKind.INT) | (kinds == ValueKind.BOOL)
    floats[whole] = bits[whole]
    for i in np.flatnonzero(kinds == ValueKind.BIG):
        floats[i] = _round_number(word(int(bits[i])))
    return floats


def _round_number(digits: str) -> float:
    try:
        return float(int(digits))
    except OverflowError:  # too large for a float
        return math.inf if not digits.startswith("-") else -math.inf


def is_identical(one: Any, other: Any) -> bool:
    """Whether two values are the same to the last bit: NaN is NaN, and -0.0 is not 0.0."""
    if isinstance(one, float) and isinstance(other, float):
        return struct.pack("<d", one) == struct.pack("<d", other)
    return type(one) is type(other) and bool(one == other)
