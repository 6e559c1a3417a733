"""Helpers on NumPy arrays: portable rounding, and values that must be 0 or 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpbench.base.arguments import show_value, to_python_number
from fpbench.base.errors import InputError, suggest_name

BITS = 24
"""As many bits as single precision has."""
_MOST_LISTED = 5
"""Greatest number of values that a message lists."""


def drop_last_bits(
    values: NDArray[Any], scale: float = 1.0, bits: int = BITS
) -> NDArray[np.float64]:
    """Numbers rounded to multiples of 2**-bits of the power of two above a scale.

    The same sum of products differs in its last bits between processors, because linear-algebra
    libraries add up in another order. Where such numbers are sorted, compared or handed to an
    algorithm that breaks ties, a difference of 1e-16 becomes another tree, or another person whose
    guess is changed. Rounding makes such numbers equal, unless they lie within a rounding error of
    the middle between two multiples: of numbers that are right to 1e-15 of the scale, one in 100
    million at 24 bits.

    Parameters
    ----------
    values
        Numbers of any shape.
    scale
        Magnitude of the summands, which may be larger than the sums: a difference of nearly equal
        numbers has errors of the size of these numbers' last bits.
    bits
        Number of binary digits kept below the scale.
    """
    # A power of two, so that only the rounding itself changes anything.
    unit = np.ldexp(1.0, int(np.frexp(scale)[1]) - bits)
    return np.asarray(np.rint(np.asarray(values, np.float64) / unit) * unit)


def check_binary(
    name: str,
    raw_values: Any,
    positive: Any = None,
    *,
    nameable: bool = False,
    cuttable: bool = False,
) -> NDArray[np.int8]:
    """Labels or predictions (n,) as bytes, 0 or 1, from two distinct values.

    `raw_values`: 0 and 1, or truth values; any two values if `positive` is one of them. An array, a
    list, or a column, which may be nullable or categorical. `positive`: the value that counts as 1;
    None for 1 itself. `nameable`: whether a caller can name the positive value; `cuttable`: or a
    threshold of scores.

    Raises InputError if there are other values, or some are missing.
    """
    values = to_plain(name, raw_values)
    if values.ndim != 1:
        raise InputError(f"{name}: {explain_shape(values)}")
    if not len(values):
        raise InputError(f"{name}: is empty")
    if values.dtype.kind != "O":  # `to_plain` checked objects
        check_present(name, values)
    if positive is not None:
        return _compare(name, values, positive)
    if values.dtype.kind == "b":
        return values.view(np.int8)
    if values.dtype.kind in "iuf":
        binary = values.dtype.kind != "f" and values.min() >= 0 and values.max() <= 1
        wrong = np.empty(0) if binary else np.flatnonzero((values != 0) & (values != 1))
    else:
        wrong = np.zeros(1, np.intp)
    if not len(wrong):
        return values.astype(np.int8, copy=False)
    row = int(wrong[0])
    raise InputError(
        f"{name}: must be 0 or 1, not {show_value(values[row])} at {row}"
        f"{suggest_binary(values, nameable=nameable, cuttable=cuttable)}"
    )


def cut_scores(name: str, scores: Any, threshold: float | None) -> Any:
    """Predictions from scores: 1 from the threshold on, missing values stay; all without one.

    InputError if the threshold or the scores are no numbers; messages call the scores `name`.
    """
    if threshold is None:
        return scores
    limit = to_python_number(threshold, "threshold")
    values = to_plain(name, scores)
    if values.dtype.kind not in "iuf":
        raise InputError(f"{name}: threshold cuts scores, not {show_value(values[:1].tolist())}")
    cut = values >= limit
    missing = np.isnan(values)
    return np.where(missing, np.nan, cut) if missing.any() else cut


def to_plain(name: str, raw_values: Any) -> NDArray[Any]:
    """A column of any kind as an array; truth values and numbers get an array of their type.

    A column (n, 1), as of a data frame, becomes (n,). Raises InputError if a value of another type
    than NumPy's is missing.
    """
    values = read_array(name, raw_values)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.dtype.kind != "O" or values.ndim != 1:
        return values
    check_present(name, values)
    numbers = all(isinstance(value, bool | int | float | np.number | np.bool_) for value in values)
    return np.array(values.tolist()) if numbers else values


def read_array(name: str, values: Any) -> NDArray[Any]:
    """Values of any kind and shape as an array; InputError if rows have different lengths."""
    try:
        return np.asarray(values)
    except ValueError:
        raise InputError(f"{name}: must not be lists of different lengths") from None


def explain_shape(values: NDArray[Any]) -> str:
    """Why values are not one value per person, for messages."""
    if values.ndim == 0:
        value = show_value(values.item())
        column = f"; if that is a column of X, pass X[{value}]" if values.dtype.kind == "U" else ""
        return f"must be one value a person, not {value}{column}"
    pairs = values.ndim == 2 and values.shape[1] == 2 and are_fractions(values)
    if pairs and values.min() >= 0 and values.max() <= 1:
        return (
            "are two columns of scores, as predict_proba gives them; give predictions: "
            "(scores[:, 1] >= 0.5), say"
        )
    return f"must have one dimension, one value a person, not the shape {values.shape}"


def are_fractions(values: NDArray[Any]) -> bool:
    """Whether some of the values are fractions, as scores are."""
    return values.dtype.kind == "f" and bool((values != np.rint(values)).any())


def check_present(name: str, values: NDArray[Any]) -> None:
    """Raise InputError if one of (n,) values is missing."""
    if values.dtype.kind not in "fcOmM":
        return
    from pandas import isna

    missing = np.flatnonzero(isna(values))
    if len(missing):
        raise InputError(f"{name}: row {missing[0]} is missing; leave out people without a value")


def _compare(name: str, values: NDArray[Any], positive: Any) -> NDArray[np.int8]:
    """(n,) 1 for the positive one of two values, 0 for the other."""
    from pandas import isna
    from pandas.api.types import is_scalar

    objects = values.astype(object)
    distinct = list(dict.fromkeys(objects.tolist()))
    if len(distinct) > 2:
        raise InputError(
            f"{name}: must have two values, not {list_values(distinct)}{suggest_binary(values)}"
        )
    if not is_scalar(positive) or isna(positive):
        raise InputError(
            f"positive: must be one of the values of {name}, {list_values(distinct)}, not "
            f"{show_value(positive)}"
        )
    # Predictions may be the same for everybody, but 1 is not "1".
    alike = len(distinct) == 1 and str(positive) != str(distinct[0])
    if positive not in distinct and not alike:
        hint = suggest_name(str(positive), map(str, distinct))
        raise InputError(f"positive: {show_value(positive)} is not among {name}; {hint}")
    return np.asarray(objects == positive, np.int8)


def suggest_binary(values: NDArray[Any], *, nameable: bool = False, cuttable: bool = False) -> str:
    """A hint for messages: how to turn scores, texts or numbers into 0 and 1; else empty.

    `nameable`, `cuttable`: as of `check_binary`.
    """
    seen = list(dict.fromkeys(values.ravel().tolist()))
    if are_fractions(values):
        if cuttable:
            return "; to turn scores into predictions, give threshold=0.5 for instance"
        return "; turn scores into predictions first: (scores >= 0.5) for instance"
    if len(seen) > _MOST_LISTED or not (
        all(isinstance(value, str) for value in seen)
        or all(isinstance(value, int | float) for value in seen)
    ):
        return ""
    each = [show_value(value) for value in sorted(seen)]
    if len(seen) == 2:
        which = " or ".join(f"positive={value}" for value in each)
        mend = f"say which counts as 1, {which}" if nameable else f"pass (values == {each[1]})"
        return f"; they are {each[0]} and {each[1]}: {mend}"
    if len(seen) > 2 and values.dtype.kind != "f":
        return f"; to look at one of {len(seen)} values, pass (values == {each[-1]}) for instance"
    return ""


def list_values(values: Sequence[Any]) -> str:
    """Some values, as messages show them."""
    more = ", ..." if len(values) > _MOST_LISTED else ""
    return ", ".join(map(show_value, values[:_MOST_LISTED])) + more
