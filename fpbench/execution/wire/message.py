"""Answers of one-use processes as bytes: a JSON header, then arrays. Reading them runs no code.

A hostile component may have chosen every byte, and the process that holds the truth reads them.
So everything that is announced is checked before use: the size of the header, the depth and
number of its items, the types of arrays and their size in bytes. Errors repeat nothing that was
sent.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpbench.base.errors import PluginError

MOST_HEADER = 4 * 2**20
"""Greatest size in bytes of a header of names, numbers and texts; the rest are arrays."""
_MOST_ITEMS = 50_000
_DEEPEST = 8
_MOST_DIGITS = 3_100
"""Greatest number of digits of an integer; a measure may have 10,000 bits."""
_MOST_SIDE = 2**48
_SIZE = struct.Struct("!I")
_STEP = 16
"""Arrays start at multiples of this number of bytes."""
_TYPES = {
    kind + size: np.dtype(kind + size)
    for kind, sizes in (("|b", "1"), ("|i", "1"), ("|u", "1"), ("<i", "248"), ("<u", "248"),
                        ("<f", "248"))
    for size in sizes
}  # fmt: skip
_TEXT = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_BRACKET = re.compile(rb"[\[\]{}]")


class Unreadable(PluginError):  # noqa: N818 (users see it as a plugin's error)
    """An invalid answer; the message says what is wrong, and repeats nothing of its content."""


def pack(header: Mapping[str, Any], arrays: Sequence[NDArray[Any]]) -> bytes:
    """The bytes of a header and arrays.

    Raises PluginError if an array holds anything but integers, floats or booleans, or the header is
    too long.
    """
    plain = [_to_little_endian(array) for array in arrays]
    described = {**header, "arrays": [[array.dtype.str, *array.shape] for array in plain]}
    text = json.dumps(described, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    head = text.encode("utf-8", "surrogatepass")
    if len(head) > MOST_HEADER:
        raise PluginError(f"the texts of its answer take more than {MOST_HEADER:,} bytes")
    pieces: list[Any] = [_SIZE.pack(len(head)), head, bytes(-(_SIZE.size + len(head)) % _STEP)]
    for array in plain:
        pieces += [array.reshape(-1).view(np.uint8).data, bytes(-array.nbytes % _STEP)]
    return b"".join(pieces)


def _to_little_endian(array: Any) -> NDArray[Any]:
    if not isinstance(array, np.ndarray):
        raise PluginError(f"what it gives must be plain arrays, not {type(array).__name__}")
    plain = np.ascontiguousarray(array).reshape(array.shape)
    plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
    if plain.dtype.str not in _TYPES:
        raise PluginError(
            "what it gives must be plain arrays of numbers of at most 8 bytes, not of "
            f"{plain.dtype}"
        )
    return plain


def compute_byte_limit(sizes: Iterable[int]) -> int:
    """The greatest size in bytes of an answer whose arrays have up to `sizes` numbers."""
    return MOST_HEADER + 2 * _STEP + sum(8 * size + _STEP for size in sizes)


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
    return Message(header, _read_arrays(content, start, header.pop("arrays", None)))


def _read_header(text: bytes) -> dict[str, Any]:
    if text.count(b'"') > 4 * _MOST_ITEMS:  # each costs memory in the next step
        raise Unreadable("the header of its answer has too many texts")
    bare = _TEXT.sub(b"", text)
    if sum(map(bare.count, (b",", b":", b"[", b"{"))) > _MOST_ITEMS:
        raise Unreadable("the header of its answer has too many items")
    depth = 0
    for bracket in _BRACKET.findall(bare):
        depth += 1 if bracket in b"[{" else -1
        if not 0 <= depth <= _DEEPEST:
            raise Unreadable("the header of its answer is nested too deeply, or not at all")
    try:
        header = json.loads(
            text.decode("utf-8", "surrogatepass"), object_pairs_hook=_make_mapping,
            parse_int=_parse_int, parse_float=_read_real, parse_constant=_read_real,
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


def _parse_int(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError("too many digits")
    return int(digits)


def _read_real(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError("not finite")
    return value


def _read_arrays(content: bytearray | bytes, start: int, shapes: Any) -> list[NDArray[Any]]:
    """The arrays, after their description was checked."""
    if not isinstance(shapes, list):
        raise Unreadable("its answer does not say which arrays it has")
    plan, end = [], start + -start % _STEP
    for description in shapes:
        kind, *shape = description if isinstance(description, list) and description else [None]
        dtype = _TYPES.get(kind) if isinstance(kind, str) else None
        if dtype is None or len(shape) > 3 or not all(map(_is_side, shape)):
            raise Unreadable("its answer has an array that is none of plain numbers")
        count = math.prod(shape)
        plan.append((dtype, tuple(shape), count, end))
        end += count * dtype.itemsize
        end += -end % _STEP
    # The last array is padded too, and so is a header without arrays.
    if end != len(content):
        raise Unreadable("the arrays of its answer have another size than it announces")
    return [_read_array(content, *each) for each in plan]


def _is_side(side: Any) -> bool:
    return type(side) is int and 0 <= side <= _MOST_SIDE


def _read_array(
    content: bytearray | bytes, dtype: np.dtype[Any], shape: tuple[int, ...], count: int, start: int
) -> NDArray[Any]:
    if not count:
        if max(shape) * dtype.itemsize > _MOST_SIDE:
            raise Unreadable("its answer has an array that is none of plain numbers")
        return np.zeros(shape, dtype)
    array = np.frombuffer(content, dtype, count, start).reshape(shape)
    if dtype.kind == "b" and array.view(np.uint8).max() > 1:
        raise Unreadable("its answer has truth values that are neither true nor false")
    return array


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
        if isinstance(value, int) and abs(value) > 2**1000:
            raise Unreadable(f"the field {name!r} of its answer is out of range")
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
