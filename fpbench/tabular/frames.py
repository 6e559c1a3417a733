"""A data set from a user's own pandas frame, checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fpbench.base.argument_types import check_arguments
from fpbench.base.arguments import show_value
from fpbench.base.errors import DataError, InputError, suggest_name
from fpbench.data.attributes import (
    MOST_VALUES,
    Attribute,
    check_column,
    check_drop,
    format_value,
    get_column_name,
    list_values,
    parse_drop,
    parse_sensitive,
)
from fpbench.data.domain import Domain
from fpbench.data.sample import Codes
from fpbench.data.table import Table
from fpbench.tabular.tabular_dataset import LabelledColumns, tabulate

if TYPE_CHECKING:
    from pandas import DataFrame, Series

_ZERO_ONE = {"0": 0, "1": 1, "false": 0, "true": 1}
"""Labels that need no `positive`, in any case."""
_MISSING = ("error", "drop")
_MOST_LISTED = 5


@check_arguments
def table(
    frame: DataFrame,
    *,
    label: str,
    sensitive: str | Attribute | Mapping[str, Any] | Iterable[str | Attribute | Mapping[str, Any]],
    positive: str | bool | int | float | None = None,
    drop: str | Iterable[str] = (),
    household: str | None = None,
    missing: str = "error",
    domain: Mapping[str, Any] | Domain | None = None,
    name: str = "table",
) -> Table:
    """A data set from a pandas frame.

    Numbers stay numbers; strings, booleans and pandas categoricals become categoricals. A feature
    that is the same for everyone is useless, and one that is different for everyone (strings, or
    consecutive whole numbers) is an identifier: both are refused, with the `drop` that leaves them
    out.

    Parameters
    ----------
    frame
        n rows; columns named by strings.
    label
        Column of the labels.
    sensitive
        The sensitive attribute: a column, an `Attribute` (or the same as a mapping), or several of
        them, which are crossed. These columns are not features.
    positive
        Value of the label that counts as 1, all others as 0; without it, labels must be 0 or 1, or
        booleans.
    drop
        Columns to leave out of the features.
    household
        Column with the same value for people who live together, or whose groups depend on each
        other's for another reason. It is not a feature; larger households widen the limits of
        what a disclosure gives away.
    missing
        What to do about missing values in used columns: `error`, or `drop` to drop their rows.
    domain
        Public domain of features, independent of these people: `[low, high]` of numbers, lists of
        categories; private learners need it.
    name
        Name of the data set.

    Raises
    ------
    InputError
        If it is not a pandas frame; if a column or value does not exist; if a domain is neither
        bounds nor categories.
    DataError
        If values are missing; labels are not 0 or 1, or all the same; a column holds neither
        numbers nor words, or is constant or an identifier.

    Examples
    --------
    >>> import fpbench, pandas as pd
    >>> people = pd.DataFrame({"job": list("ababa"), "age": [20, 70, 64, 35, 70],
    ...                        "paid": [0, 1, 0, 1, 1]})
    >>> fpbench.table(people, label="paid", sensitive={"column": "age", "cuts": [60]}).groups
    ('age < 60', 'age >= 60')
    """
    where = f"data set {name!r}"
    try:
        _check_frame(frame)
        attributes, dropped = parse_sensitive(sensitive), parse_drop(drop)
        _check_columns(list(frame.columns), label, attributes, dropped, household)
        declared = domain if isinstance(domain, Domain) else Domain.of(domain or {})
        declared.check_names(frame.columns)
        if missing not in _MISSING:
            raise InputError(f"missing: must be 'error' or 'drop', not {show_value(missing)}")
        used = _drop_incomplete(frame.drop(columns=list(dropped)), missing)
        codes, positive_name = _encode_labels(used[label], positive)
        apart = [label] if household is None else [label, household]
        columns = _convert_columns(used.drop(columns=apart), declared.categories)
        _refuse_useless(
            columns.drop(columns=[get_column_name(item) for item in attributes]), dropped
        )
    except DataError as error:
        raise DataError(f"{where}: {error}") from None
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    households = None if household is None else used[household].factorize()[0].astype(np.int64)
    people = LabelledColumns(columns, codes, positive_name, households=households)
    return tabulate(people, attributes, domain=declared, name=name)


def _check_frame(frame: Any) -> None:
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"must come from a pandas DataFrame, not from a {type(frame).__name__}")


def _check_columns(
    columns: list[Any],
    label: str,
    sensitive: tuple[str | Attribute, ...],
    drop: tuple[str, ...],
    household: str | None,
) -> None:
    for column, count in Counter(columns).items():
        if not isinstance(column, str):
            raise DataError(f"columns must be named by strings, not {show_value(column)}")
        if count > 1:
            raise DataError(f"{count} columns have the name {column!r}")
    if label not in columns:
        raise InputError(f"label: no column {label!r}; {suggest_name(str(label), columns)}")
    sensitive_columns = [get_column_name(item) for item in sensitive]
    together = () if household is None else (household,)
    for what, names in (
        ("sensitive", sensitive_columns), ("drop", drop), ("household", together)
    ):  # fmt: skip
        for name in names:
            if name == label:
                raise InputError(f"{what}: {name!r} is the label")
            try:
                check_column(name, columns)
            except InputError as error:
                raise InputError(f"{what}: {error}") from None
    check_drop(drop, sensitive)
    if household is not None and household in (*sensitive_columns, *drop):
        other = "sensitive" if household in sensitive_columns else "drop"
        raise InputError(f"household: {household!r} is in `{other}` as well")


def _drop_incomplete(frame: DataFrame, missing: str) -> DataFrame:
    """The rows without missing values."""
    if not len(frame):
        raise DataError("holds no row")
    holes = frame.isna()
    missing_counts = holes.sum()
    missing_counts = missing_counts[missing_counts > 0]
    if missing == "error" and len(missing_counts):
        listing = ", ".join(f"{name!r} ({count:,})" for name, count in missing_counts.items())
        raise DataError(
            f"values are missing in {len(missing_counts)} of its columns: {listing}; "
            'missing = "drop" drops these rows, drop = [...] drops columns'
        )
    complete = frame[~holes.any(axis=1)]
    if not len(complete):
        empty = [name for name, count in missing_counts.items() if count == len(frame)]
        hint = f": nobody has a value of {_quote_list(empty)}; drop = [...] drops columns"
        raise DataError(f"no row is complete among {len(frame):,}{hint if empty else ''}")
    return complete


def _encode_labels(column: Series, positive: str | bool | int | float | None) -> tuple[Codes, str]:
    """Labels (n,) in {0, 1}, and the meaning of label 1."""
    name, values = str(column.name), _convert_column(column)
    by_name = {format_value(value): value for value in list_values(values)}
    sample = ", ".join(map(repr, list(by_name)[:_MOST_LISTED])) + (
        ", ..." if len(by_name) > _MOST_LISTED else ""
    )
    if positive is not None and format_value(positive) not in by_name:
        hint = suggest_name(format_value(positive), by_name) if len(by_name) <= MOST_VALUES else ""
        raise InputError(
            f"positive: no label in {name!r} is {format_value(positive)!r}; {hint}".rstrip("; ")
        )
    plain = {text: _ZERO_ONE.get(text.casefold()) for text in by_name}
    if positive is None and None in plain.values():
        raise DataError(
            f"label {name!r} must be 0 or 1 and holds {sample}; say which value counts as 1 with "
            "positive"
        )
    if len(by_name) < 2 or (positive is None and len(set(plain.values())) < 2):
        raise DataError(f"label {name!r} is {sample} for everyone, so there is nothing to learn")
    if positive is None:
        ones, description = [by_name[text] for text in by_name if plain[text]], f"{name} = 1"
    else:
        ones, description = [by_name[format_value(positive)]], f"{name} = {format_value(positive)}"
    return values.isin(ones).to_numpy().astype(np.int8), description


def _convert_columns(frame: DataFrame, worded: Container[str]) -> DataFrame:
    """Columns as numbers or categoricals; numbers with declared categories are codes."""
    import pandas as pd

    converted = {}
    for name, column in frame.items():
        coded = name in worded and _is_number(column)
        texts = [format_value(value) for value in column.tolist()] if coded else []
        converted[name] = _to_categorical(column, texts) if coded else _convert_column(column)
    return pd.DataFrame(converted).reset_index(drop=True)


def _is_number(column: Series) -> bool:
    from pandas.api import types

    return bool(types.is_numeric_dtype(column.dtype)) and not types.is_bool_dtype(column.dtype)


def _convert_column(column: Series) -> Series:
    """A column as numbers, or as a categorical whose categories are strings."""
    import pandas as pd
    from pandas.api import types

    kind = column.dtype
    if types.is_bool_dtype(kind) and not isinstance(kind, pd.CategoricalDtype):
        return _to_categorical(column, [str(bool(value)) for value in column])
    if isinstance(kind, pd.CategoricalDtype):
        ordered = column.cat.remove_unused_categories()
        names = [format_value(category) for category in ordered.cat.categories]
        if len(set(names)) < len(names):
            raise DataError(f"column {column.name!r} has two categories of the same name")
        return ordered.cat.rename_categories(dict(zip(ordered.cat.categories, names, strict=True)))
    if types.is_integer_dtype(kind) or types.is_float_dtype(kind):
        return pd.Series(_convert_numbers(column), name=column.name, index=column.index)
    if not (types.is_object_dtype(kind) or types.is_string_dtype(kind)):
        raise DataError(
            f"column {column.name!r} holds {kind}, neither numbers nor words; convert it, "
            "or drop it"
        )
    return _convert_objects(column)


def _convert_numbers(column: Series) -> NDArray[Any]:
    kind = column.dtype if isinstance(column.dtype, np.dtype) else None
    if kind is None:  # a nullable type of pandas, by now without missing values
        kind = np.dtype(np.int64 if "int" in str(column.dtype).lower() else np.float64)
    values: NDArray[Any] = column.to_numpy(dtype=kind)
    if not np.isfinite(values).all():
        raise DataError(f"column {column.name!r} holds infinite values")
    return values


def _convert_objects(column: Series) -> Series:
    """A column of Python objects: numbers if all are numbers, otherwise words."""
    import pandas as pd

    values = column.tolist()
    kinds = {type(value) for value in values}
    for kind in kinds:
        if not issubclass(kind, str | bool | int | float | np.number | np.bool_):
            raise DataError(
                f"column {column.name!r} holds {kind.__name__} values, neither numbers nor words"
            )
    if all(issubclass(kind, int | float | np.number) and kind is not bool for kind in kinds):
        numbers = np.array(values)
        if numbers.dtype == object:
            raise DataError(
                f"column {column.name!r} holds whole numbers of more than 64 bits; turn it "
                "into floats or words, or drop it"
            )
        return _convert_column(pd.Series(numbers, name=column.name, index=column.index))
    return _to_categorical(column, [format_value(value) for value in values])


def _to_categorical(column: Series, values: list[str]) -> Series:
    import pandas as pd

    # Categories of the whole table, so that every part has the same encoding.
    categorical = pd.Categorical(values, categories=sorted(set(values)))
    return pd.Series(categorical, name=column.name, index=column.index)


def _refuse_useless(features: DataFrame, dropped: tuple[str, ...]) -> None:
    """Refuse columns with one value for everyone, and columns that identify people."""
    rows = len(features)
    counts = {name: column.nunique() for name, column in features.items()}
    same = [name for name, count in counts.items() if count == 1]
    names = [
        name for name, count in counts.items()
        if count == rows > MOST_VALUES and _names_people(features[name])
    ]  # fmt: skip
    reasons = [
        *([f"the same for everyone: {_quote_list(same)}"] if same else []),
        *([f"different for everyone, and so no feature: {_quote_list(names)}"] if names else []),
    ]
    if reasons:
        out = ", ".join(f'"{name}"' for name in (*dropped, *same, *names))
        raise DataError(
            f"columns are {'; others are '.join(reasons)}; leave them out: drop = [{out}]"
        )


def _names_people(column: Series) -> bool:
    """Whether all values differ and are words or consecutive integers: an identifier."""
    from pandas.api import types

    if types.is_integer_dtype(column.dtype):
        return int(column.max()) - int(column.min()) == len(column) - 1
    return not types.is_float_dtype(column.dtype)


def _quote_list(names: Iterable[Any]) -> str:
    return ", ".join(map(repr, names))
