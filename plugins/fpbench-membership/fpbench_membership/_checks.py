"""Checks of arguments: each raises InputError that names the argument and what it should be."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpbench import InputError
from fpbench.base import suggest_name

Floats = NDArray[np.float64]

_KINDS = {"b": "true or false", "biuf": "numbers"}


def to_array(name: str, value: Any, kinds: str = "biuf") -> NDArray[Any]:
    """An array of numbers, or (`kinds` is `b`) of true or false."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError):  # rows of different lengths
        array = np.asarray(None)
    if array.dtype.kind not in kinds:
        raise InputError(f"{name}: must be an array of {_KINDS[kinds]}, not {value!r:.60}")
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise InputError(f"{name}: must be numbers, not NaN")
    return array


def to_floats(name: str, value: Any) -> Floats:
    """`to_array` of numbers, as floats."""
    return to_array(name, value).astype(np.float64, copy=False)


def check_number(
    name: str, value: Any, least: float, most: float = np.inf, *, whole: bool = False
) -> None:
    """Refuse anything but a number in [least, most], or a whole one."""
    kinds = "iu" if whole else "iuf"
    number = np.asarray(value)
    if number.ndim or number.dtype.kind not in kinds or not least <= value <= most:
        limits = f"at least {least:g}" if most == np.inf else f"in [{least:g}, {most:g}]"
        what = "a whole number" if whole else "a number"
        raise InputError(f"{name}: must be {what} {limits}, not {value!r:.60}")


def check_rows(**arguments: Any) -> None:
    """Refuse pandas objects whose rows are named differently: values are matched by position."""
    indexes = {n: v.index for n, v in arguments.items() if hasattr(v, "to_numpy")}
    for name, index in indexes.items():
        first = next(iter(indexes))
        if len(index) == len(indexes[first]) and not index.equals(indexes[first]):
            raise InputError(
                f"{name}: its rows are named differently from those of {first}: put them in its "
                f"order, {name}.loc[{first}.index], or pass {name}.to_numpy() if they are"
            )


def to_codes(
    sensitive: Any, groups: tuple[str, ...] | None
) -> tuple[NDArray[Any], tuple[str, ...]]:
    """Codes (n,) and names of groups, from codes or names; groups are those that occur if None."""
    values = np.asarray(sensitive)
    if values.ndim != 1 or values.dtype.kind not in "biuUSO":
        raise InputError(f"sensitive: must be (n,) codes or names, not {sensitive!r:.60}")
    if groups is None:
        names, codes = np.unique(values.astype(str), return_inverse=True)
        return codes, tuple(map(str, names))
    names = tuple(map(str, groups))
    if values.dtype.kind in "biu":
        if len(values) and not (values.min() >= 0 and values.max() < len(names)):
            raise InputError(f"sensitive: codes must be below {len(names)}, the number of groups")
        return values.astype(np.intp), names
    places = {name: code for code, name in enumerate(names)}
    for name in map(str, np.unique(values.astype(str))):
        if name not in places:
            raise InputError(f"sensitive: there is no group {name!r}; {suggest_name(name, names)}")
    return np.array([places[str(name)] for name in values], np.intp), names
