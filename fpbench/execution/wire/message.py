"""Answers of one-use processes as bytes: a JSON header, then arrays. Reading them runs no code.

A hostile component may have chosen every byte, and the process that holds the truth reads them.
So everything that is announced is checked before use: the size of the header, the types of arrays
and their size in bytes. The header is so short that no JSON in it takes much time or memory:
texts and measures, which may be many, travel as arrays. Errors repeat nothing that was sent.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpbench.base.errors import PluginError

MOST_HEADER = 2**16
"""Greatest size in bytes of a header of a few names and numbers; the rest are arrays."""
_MOST_TEXTS = 2**24
"""Greatest size in bytes of the texts and measures of an answer: a row can hold no more."""
_MOST_ARRAYS = 2**16
_MOST_NUMBERS = 2**48
"""Greatest number of numbers of an array, where a side of length 0 counts as 1."""
_SIZE = struct.Struct("!I")
_STEP = 16
"""Arrays start at multiples of this number of bytes."""
_ARRAY = struct.Struct("<3sB3Q4x")
"""Before each array: its type, its number of sides, and its sides; a multiple of `_STEP`."""
_TYPES = {
    (kind + size).encode(): np.dtype(kind + size)
    for kind, sizes in (("|b", "1"), ("|i", "1"), ("|u", "1"), ("<i", "248"), ("<u", "248"),
                        ("<f", "248"))
    for size in sizes
}  # fmt: skip


class Unreadable(PluginError):  # noqa: N818 (users see it as a plugin's error)
    """An invalid answer; the message says what is wrong, and repeats nothing of its content."""


def pack(header: Mapping[str, Any], arrays: Sequence[NDArray[Any]]) -> bytes:
    """The bytes of a header and arrays.

    Raises PluginError if an array holds anything but integers, floats or booleans, or the header is
    too long.
    """
    plain = [_to_little_endian(array) for array in arrays]
    try:
        text = json.dumps(header, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise PluginError(f"its answer has a field that is not plain: {error}") from None
    head = text.encode("utf-8", "surrogatepass")
    if len(head) > MOST_HEADER:
        raise PluginError(f"the names in its answer take more than {MOST_HEADER:,} bytes")
    pieces: list[Any] = [_SIZE.pack(len(head)), head, bytes(-(_SIZE.size + len(head)) % _STEP)]
    for array in plain:
        sides = [*array.shape, 0, 0, 0][:3]
        pieces += [_ARRAY.pack(array.dtype.str.encode(), array.ndim, *sides),
                   array.reshape(-1).view(np.uint8).data, bytes(-array.nbytes % _STEP)]  # fmt: skip
    return b"".join(pieces)


def _to_little_endian(array: Any) -> NDArray[Any]:
    if not isinstance(array, np.ndarray):
        raise PluginError(f"what it gives must be plain arrays, not {type(array).__name__}")
    plain = np.ascontiguousarray(array).reshape(array.shape)
    plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
    if plain.dtype.str.encode() not in _TYPES or plain.ndim > 3:
        raise PluginError(
            "what it gives must be plain arrays of numbers of at most 8 bytes in at most 3 "
            f"dimensions, not of {plain.dtype} in {plain.ndim}"
        )
    return plain


def compute_byte_limit(sizes: Iterable[int]) -> int:
    """The greatest size in bytes of an answer whose arrays have up to `sizes` numbers."""
    return MOST_HEADER + _MOST_TEXTS + sum(8 * size + _ARRAY.size + _STEP for size in sizes)


def unpack(content: bytearray | bytes) -> Message:
    """The header and arrays of bytes; the arrays share the memory of the bytes.

    Raises Unreadable if the bytes are anything else.
    """
    if len(content) < _SIZE.size:
        raise Unreadable("its answer is cut off")
    (size,) = _SIZE.unpack_from(content)
    start = _SIZE.size + size
    if size > MOST_HEADER or start > len(content):
        raise Unreadable("its answer announces a header that is not there")
    header = _read_header(bytes(memoryview(content)[_SIZE.size : start]))
    return Message(header, _read_arrays(content, start + -start % _STEP))


def _read_header(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(
            text.decode("utf-8", "surrogatepass"), object_pairs_hook=_make_mapping,
            parse_float=_read_real, parse_constant=_read_real,
        )  # fmt: skip
    except (ValueError, RecursionError):  # their messages repeat the content
        raise Unreadable("the header of its answer is not JSON of plain values") from None
    if not isinstance(header, dict):
        raise Unreadable("the header of its answer is not a mapping")
    return header


def _make_mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a key twice")
    return values


def _read_real(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError("not finite")
    return value


def _read_arrays(content: bytearray | bytes, start: int) -> list[NDArray[Any]]:
    """The arrays from `start` to the end; each is checked before it is made."""
    arrays: list[NDArray[Any]] = []
    while start < len(content):
        if len(content) - start < _ARRAY.size or len(arrays) == _MOST_ARRAYS:
            raise Unreadable("its answer is cut off, or has too many arrays")
        kind, dimensions, *sides = _ARRAY.unpack_from(content, start)
        dtype, shape = _TYPES.get(kind), tuple(sides[:dimensions])
        if dtype is None or dimensions > len(sides):
            raise Unreadable("its answer has an array that is none of plain numbers")
        count, start = math.prod(shape), start + _ARRAY.size
        end = start + count * dtype.itemsize
        end += -end % _STEP
        if end > len(content) or math.prod(side or 1 for side in shape) > _MOST_NUMBERS:
            raise Unreadable("the arrays of its answer have another size than it announces")
        array = np.frombuffer(content, dtype, count, start).reshape(shape)
        if dtype.kind == "b" and count and array.view(np.uint8).max() > 1:
            raise Unreadable("its answer has truth values that are neither true nor false")
        arrays.append(array)
        start = end
    if start > len(content):  # a header without arrays is padded, too
        raise Unreadable("its answer is cut off")
    return arrays


class Message:
    """A header and arrays whose reader names what it expects; anything else is an error.

    `header`: the fields by name. `arrays`: the arrays in the order of reading.
    """

    def __init__(self, header: dict[str, Any], arrays: list[NDArray[Any]]) -> None:
        self._header, self._arrays = header, iter(arrays)

    def field(self, name: str, *types: type) -> Any:
        """A field of exactly one of these types."""
        value = self._header.get(name)
        if name not in self._header or type(value) not in types:
            raise Unreadable(f"the field {name!r} of its answer is missing, or of another type")
        return value

    def number(self, name: str, *, least: float = -math.inf) -> float:
        """A field that is a finite number and at least `least`."""
        value = self.field(name, int, float)
        if value < least:
            raise Unreadable(f"the field {name!r} of its answer is below {least:g}")
        return float(value)

    def array(self, what: str, kinds: str, *shape: int | None) -> NDArray[Any]:
        """The next array, of one of these kinds and of this shape; None allows any size."""
        array = next(self._arrays, None)
        if array is None or array.ndim != len(shape):
            raise Unreadable(f"{what} must be an array of {len(shape)} dimensions")
        for side, expected in zip(array.shape, shape, strict=True):
            if expected is not None and side != expected:
                raise Unreadable(f"{what} must be an array of the sizes {list(shape)}")
        if array.dtype.kind not in kinds:
            raise Unreadable(f"{what} must be an array of other numbers")
        return array

    def end(self) -> None:
        """Raise Unreadable if an array was not read."""
        if next(self._arrays, None) is not None:
            raise Unreadable("its answer has more arrays than it should")
