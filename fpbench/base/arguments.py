"""Checks of arguments: each raises InputError that names the argument and what it should be."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from numbers import Integral, Rational, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fpbench.base.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def show_value(value: object) -> str:
    """The beginning of a value on one line, as messages show it: 474, not np.int64(474)."""
    import numpy as np

    try:
        with np.printoptions(legacy="1.21"):  # before NumPy 2, its numbers showed as numbers
            return " ".join(f"{value!r:.60}".split())
    except ValueError:  # Python refuses to write it
        return "an int of thousands of digits"


def to_path(name: str, value: Any) -> Path:
    """A text or path as a path; InputError for anything else."""
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if isinstance(text, str) and text and "\0" not in text:
        return Path(text)
    raise InputError(f"{name} must be a path, not {show_value(value)}")


def check_whole_number(name: str, value: Any, least: int) -> None:
    """Refuse anything but an int, of Python or NumPy, of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InputError(f"{name} must be a whole number, not {show_value(value)}")
    if value < least:
        raise InputError(f"{name} must be {least} or more, not {show_value(value)}")


def to_new_directory(name: str, value: Any) -> Path:
    """The directory to write to, from a text or path; `~` is the home directory."""
    if isinstance(value, str | os.PathLike) and str(value) in {"", "-"}:
        raise InputError(
            f"{name} must be a directory, not "
            f"{show_value(str(value))}: a run has several files, which "
            "standard output cannot hold"
        )
    path = to_path(name, value)
    try:
        return path.expanduser()
    except RuntimeError:
        raise InputError(f"{name} {str(value)!r}: there is no such home directory") from None


def to_python_number(value: Any, name: str) -> float:
    """One int or float of Python, from any kind of number; InputError for anything else."""
    kind: type = type(value)
    if kind is not bool and isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real) and not isinstance(value, Rational):
        return float(value)
    raise InputError(f"{name} must be a number, not {show_value(value)}")


_KINDS = {"b": "true or false", "biu": "whole numbers", "biuf": "numbers"}
"""Kinds of NumPy's data types, and their names in messages."""


def to_array(
    name: str, value: Any, kinds: str = "biuf", shape: tuple[int, ...] | None = None
) -> NDArray[Any]:
    """A value as an array of numbers, without a copy if it is one already.

    `value`: an array, or lists as deep as it has dimensions. `kinds`: `biuf` for numbers, `biu` for
    whole ones, `b` for true or false. `shape`: the required shape; any by default.

    Raises InputError if the value is not such an array, a number is NaN, or the shape is wrong.
    """
    import numpy as np

    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError, RecursionError):  # rows of different lengths
        array = np.asarray(None)
    if not array.size and array.ndim and array.dtype == np.float64:
        array = array.astype(np.int64 if "i" in kinds else np.bool_)  # of an empty list
    if array.dtype.kind not in kinds:
        bits = kinds == "b" and array.dtype.kind in "iuf" and np.isin(array, (0, 1)).all()
        mend = ": pass (values == 1)" if bits else ""
        raise InputError(
            f"{name} must be an array of {_KINDS[kinds]}, not {show_value(value)}{mend}"
        )
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise InputError(f"{name} must be numbers, not NaN")
    if shape is not None and array.shape != shape:
        raise InputError(f"{name} must be of shape {shape}, not {array.shape}")
    return array


def to_floats(name: str, value: Any, shape: tuple[int, ...] | None = None) -> NDArray[np.float64]:
    """`to_array` of numbers, as floats."""
    import numpy as np

    return to_array(name, value, shape=shape).astype(np.float64, copy=False)


def to_generator(name: str, value: Any) -> np.random.Generator:
    """The generator for a seed, or a given generator; a fresh one for None."""
    import numpy as np

    try:
        return np.random.default_rng(value)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a seed or a generator, not {show_value(value)}") from None


def check_same_rows(**arguments: Any) -> None:
    """Refuse empty arguments, and pandas objects whose rows are named differently.

    Values are matched by position, which is wrong if one of two tables was shuffled or filtered.

    Raises InputError if an argument has no rows, or if two have different indexes of the same
    length; the message names both.
    """
    for name, value in arguments.items():
        if count_rows(value) == 0:
            raise InputError(f"{name}: is empty: there must be people")
    indexes = {
        name: value.index
        for name, value in arguments.items()
        if hasattr(getattr(value, "index", None), "equals")
    }
    for name, index in indexes.items():
        first = next(iter(indexes))
        if len(index) != len(indexes[first]) or index.equals(indexes[first]):
            continue
        pairs = enumerate(zip(index, indexes[first], strict=True))
        row = next((n for n, (own, other) in pairs if own != other), 0)
        raise InputError(
            f"{name}: its rows are named differently from those of {first} (row {row} is "
            f"{show_value(index[row])}, there {show_value(indexes[first][row])}): put them in its "
            f"order, {name}.loc[{first}.index], or pass {name}.to_numpy() if they are"
        )


def count_rows(value: Any) -> int | None:
    """The number of rows of a table, array or list, a sparse one too; None for anything else."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape and isinstance(shape[0], int):
        return shape[0]
    return len(value) if isinstance(value, list | tuple) or hasattr(value, "to_list") else None


def check_columns_distinct(whose: str, names: Iterable[Any]) -> None:
    """Refuse a table in which two columns have one name, as text; `whose`: "X has"."""
    seen: set[str] = set()
    for name in map(str, names):
        if name in seen:
            raise InputError(f"{whose} more than one column {name!r}: rename one")
        seen.add(name)


def check_pairs(name: str, value: Sequence[Any], what: str) -> None:
    """Refuse a list that holds anything but pairs; `what` describes the pairs."""
    for place, pair in enumerate(value):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InputError(f"{name} must be {what}, not {show_value(pair)} in place {place}")


def check_type(name: str, value: Any, cls: type, what: str) -> None:
    """Refuse anything but an instance of a class; `what` is its name in the message."""
    if not isinstance(value, cls):
        raise InputError(f"{name} must be {what}, not {show_value(value)}")


def read_share(what: str, share: float | str, example: float) -> float:
    """A share below 1, or in percent ("1%"); 1 could be read either way. InputError otherwise."""
    text = str(share).rstrip()
    percent = text.endswith("%")
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        number = math.nan
    read = round(number / 100, 12) if percent else number
    if not (0 <= read <= 1 if percent else 0 <= read < 1):
        value = number / 100 if 1 <= number < 100 else example
        raise InputError(
            f"{what}: {show_value(share)} is no share of people: write {100 * value:g}% or "
            f"{value:g} (a number without % is below 1)"
        )
    return read
