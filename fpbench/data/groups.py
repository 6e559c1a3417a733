"""Group codes of people, from codes or values of sensitive columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpbench.base.arguments import show_value
from fpbench.base.arrays import read_array
from fpbench.base.errors import DataError, InputError, suggest_name
from fpbench.data.attributes import MOST_VALUES, format_value
from fpbench.data.sample import Codes
from fpbench.data.table import Table

if TYPE_CHECKING:
    from pandas import DataFrame

_MOST_GROUPS = 127
_CHUNK = 1 << 16


def group_codes(
    sensitive: ArrayLike | DataFrame, groups: Sequence[str] | None = None, name: str = "sensitive"
) -> tuple[Codes, tuple[str, ...]]:
    """Codes (n,) in 0..K-1 and names of the K groups.

    `sensitive` holds codes or names (n,) if `groups` is given (some groups may be empty); otherwise
    values of any kind, or a data frame of several columns, whose combinations are the groups.
    InputError if codes or names do not match, values are missing, or there are fewer than two
    groups; messages call the argument `name`.
    """
    if groups is not None:
        return _check_codes(sensitive, groups)
    return _encode_values(sensitive, name)


def _check_codes(sensitive: Any, groups: Sequence[str]) -> tuple[Codes, tuple[str, ...]]:
    """The codes of named groups, checked."""
    names = tuple(groups)
    if isinstance(groups, str) or not all(isinstance(name, str) for name in names):
        raise InputError("groups must be a list of names")
    if not 2 <= len(names) <= _MOST_GROUPS:
        raise InputError(f"there must be 2 to {_MOST_GROUPS} groups, not {len(names)}")
    if len(set(names)) < len(names):
        raise InputError("groups names a group twice")
    codes = np.asarray(sensitive)
    if codes.ndim == 1 and codes.dtype.kind in "OUT":
        return _find_names(codes, names), names
    if codes.ndim != 1 or codes.dtype.kind not in "biu":
        raise InputError(
            "with groups, sensitive must be codes or names: one whole number or text per person"
        )
    if len(codes) and not (codes.min() >= 0 and codes.max() < len(names)):
        raise InputError(f"sensitive must be in 0..{len(names) - 1}, as {len(names)} groups")
    return codes, names


def _find_names(values: NDArray[Any], names: tuple[str, ...]) -> Codes:
    """Codes of people from names of groups."""
    places = {name: code for code, name in enumerate(names)}
    texts = list(map(str, values))  # an array of texts has room for the longest in each place
    for name in dict.fromkeys(texts):
        if name not in places:
            raise InputError(f"sensitive: there is no group {name!r}; {suggest_name(name, names)}")
    return np.array([places[text] for text in texts], np.int64)


def _encode_values(sensitive: Any, what: str) -> tuple[Codes, tuple[str, ...]]:
    """Codes and names of groups, one for each distinct value."""
    import pandas as pd

    if not isinstance(sensitive, pd.DataFrame):
        codes = _encode_integers(sensitive)
        if codes is not None:
            return codes
        if isinstance(sensitive, str):
            raise InputError(
                f"{what} must be one value per person, not the text {show_value(sensitive)}; if "
                f"that is a column of X, pass X[{show_value(sensitive)}]"
            )
        values = read_array(what, sensitive)
        if values.ndim == 2 and values.shape[1] == 1:
            sensitive = values[:, 0]
        if np.ndim(sensitive) != 1:
            raise InputError(
                f"{what} must be one value per person, or a data frame with a row per person, not "
                + (f"of shape {values.shape}" if values.ndim else show_value(sensitive))
            )
        sensitive = pd.DataFrame({str(getattr(sensitive, "name", None) or what): sensitive})
    if len(set(map(str, sensitive.columns))) < sensitive.shape[1] or not sensitive.shape[1]:
        raise InputError(f"{what} must have columns with distinct names")
    if not len(sensitive):
        raise InputError(f"{what}: is empty: there must be people")
    columns = {
        str(name): _to_categorical(what if name == what else f"{what} column {name!r}", column)
        for name, column in sensitive.items()
    }
    frame = pd.DataFrame(columns)
    if all(len(column.categories) <= 1 for column in columns.values()):
        only = " and ".join(str(value) for value in frame.head(1).to_numpy().ravel())
        raise InputError(f"{what} has one group, {only}; at least two are needed")
    # A table crosses and checks them.
    no_features = pd.DataFrame(index=frame.index)
    table = Table("of the curator", no_features, np.zeros(len(frame), np.int8), frame)
    return table.codes, table.groups


def _encode_integers(sensitive: Any) -> tuple[Codes, tuple[str, ...]] | None:
    """Codes and names for integers without gaps or booleans, fast; None for other values."""
    if not isinstance(getattr(sensitive, "dtype", None), np.dtype):
        return None
    values: NDArray[Any] = np.asarray(sensitive)
    if values.ndim != 1 or values.dtype.kind not in "biu" or not len(values):
        return None
    low, high = int(values.min()), int(values.max())
    if not 1 <= high - low < MOST_VALUES:
        return None
    boolean = values.dtype.kind == "b"
    codes = values.view(np.uint8) if boolean else (values - low if low else values)
    missing = set(range(high - low + 1))
    for start in range(0, len(codes), _CHUNK):  # the first few people mostly have all groups
        missing -= set(np.unique(codes[start : start + _CHUNK]).tolist())
        if not missing:
            names = ("False", "True") if boolean else map(str, range(low, high + 1))
            return codes, tuple(names)
    return None


def _to_categorical(name: str, column: Any) -> Any:
    """A column of any kind as a categorical of strings; messages call it by its name."""
    import pandas as pd
    from pandas.api.types import is_numeric_dtype

    missing = np.flatnonzero(column.isna())
    if len(missing):
        raise InputError(
            f"{name}: {len(missing):,} values are missing, the first in row {missing[0]:,}; leave "
            "these people out of all arguments, or give them their own group: "
            "fillna('unknown')"
        )
    try:
        categorical = pd.Categorical(column).remove_unused_categories()
    except TypeError as error:  # values that cannot be compared, such as lists
        raise DataError(f"{name} makes no groups: {error}") from error
    if is_numeric_dtype(categorical.categories.dtype) and len(categorical.categories) > MOST_VALUES:
        raise DataError(
            f"{name} holds {len(categorical.categories):,} different numbers; "
            "make groups of them, for example with pandas.cut"
        )
    names = [format_value(value) for value in categorical.categories]
    if len(set(names)) < len(names):
        raise DataError(f"{name} has two groups of the same name")
    return categorical.rename_categories(dict(zip(categorical.categories, names, strict=True)))
