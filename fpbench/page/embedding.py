"""Rows as columns of JSON, small enough to travel inside a page.

A column is `{"all": [...]}` or, if values recur, `{"of": [...], "at": [...]}`: its values, and the
index of each row's value. Values that JSON cannot represent, and whole numbers that a browser
cannot hold, are `{"is": "nan"}`, `{"is": "inf"}`, `{"is": "-inf"}` and
`{"is": "12345678901234567890"}`.
"""

from __future__ import annotations

import base64
import gzip
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

_EXACT = 2**53
"""The greatest whole number that is exact in a browser."""
_DIGITS = 8
"""Digits of means and intervals; measures of cells keep every digit."""


def encode_column(values: Sequence[Any]) -> dict[str, list[Any]]:
    """A column, coded by its distinct values if that is shorter."""
    encoded = [to_plain(value) for value in values]
    keys = [_make_key(value) for value in encoded]
    distinct = dict(zip(keys, encoded, strict=True))
    if 2 * len(distinct) > len(values):
        return {"all": encoded}
    places = {key: i for i, key in enumerate(distinct)}
    return {"of": list(distinct.values()), "at": [places[key] for key in keys]}


def round_numbers(numbers: Iterable[float | None]) -> list[Any]:
    """Numbers rounded to the digits that readers need."""
    return [
        None if x is None else to_plain(float(f"{x:.{_DIGITS}g}") if math.isfinite(x) else x)
        for x in numbers
    ]


def write_json(data: Any) -> str:
    """The shortest JSON of plain data."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def compress(text: str) -> str:
    """Text, compressed, in base 64; always the same for the same text."""
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode("ascii")


def to_plain(value: Any) -> Any:
    """One value in the types of JSON."""
    if hasattr(value, "item"):  # numpy's numbers
        value = value.item()
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if abs(value) <= _EXACT else {"is": str(value)}
    if isinstance(value, float):
        return value if math.isfinite(value) else {"is": str(value)}
    return str(value)


def _make_key(value: Any) -> Any:
    """A key that distinguishes values: in Python 1, 1.0 and True are equal, and 0.0 and -0.0."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict) or value == 0:
        return type(value), repr(value)
    return type(value), value
