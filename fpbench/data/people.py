"""People as their owner has them, of any library of data frames: what every door reads first."""

from __future__ import annotations

from typing import Any

import numpy as np

from fpbench.base.arguments import check_same_rows, show_value
from fpbench.base.errors import InputError, suggest_name, tell_extra


def read_people(X: Any, groups: Any = None, **columns: Any) -> tuple[Any, Any, dict[str, Any]]:
    """People without the columns that are their groups, these groups, and the other columns.

    Whatever narwhals reads (polars, Arrow, DuckDB, ...) becomes pandas; all else, such as arrays,
    lists and models, stays what it is.

    Parameters
    ----------
    X
        n people.
    groups
        Values, or names of columns of X: one, or a list of several.
    **columns
        Values of people, or what stands for them.

    Raises
    ------
    InputError
        If rows are named differently, there is no column of the groups' name, or a value is a list
        or another container.
    """
    import pandas as pd

    given = {"X": X, "groups": groups, **columns}
    check_same_rows(**given)
    read = {name: to_pandas(name, value) for name, value in given.items()}
    # Rows without names are in the order of the others.
    indexes = (v.index for v in given.values() if isinstance(v, pd.DataFrame | pd.Series))
    if (index := next(indexes, None)) is not None:
        for name, value in read.items():
            if value is not given[name] and len(value) == len(index):
                read[name] = value.set_axis(index)
    X, groups = read.pop("X"), read.pop("groups")
    if named := _list_names(X, groups):
        groups, X = X[named], X.drop(columns=named)
    return X, groups, read


def to_pandas(name: str, value: Any) -> Any:
    """A table or column of any library that narwhals reads as pandas; all else is unchanged.

    Raises InputError if a value of it is a list or another container; messages call it `name`.
    """
    import pandas as pd

    plain = isinstance(value, pd.DataFrame | pd.Series | np.ndarray | list | tuple | str)
    if not plain and value is not None:
        value = _convert(name, value)
    _check_flat(name, value)
    return value


def _convert(name: str, value: Any) -> Any:
    import narwhals.stable.v1 as nw

    try:
        table = nw.from_native(value, allow_series=True, pass_through=True)
        if isinstance(table, nw.LazyFrame):
            table = table.collect()
        if table is not value:
            return table.to_pandas()
        # An array of Arrow, which narwhals does not read.
        return value.to_pandas() if type(value).__module__.startswith("pyarrow") else value
    except ModuleNotFoundError as error:
        kind = f"{type(value).__module__.partition('.')[0]}.{type(value).__name__}"
        raise InputError(f"{name}: to read a {kind}: {tell_extra('parquet')} ({error})") from None


def _list_names(X: Any, groups: Any) -> list[Any]:
    """The columns of X that groups name; empty if these are values."""
    import pandas as pd

    framed = isinstance(X, pd.DataFrame)
    if not isinstance(groups, str):
        several = framed and isinstance(groups, list | tuple) and len(groups) != len(X)
        if not (several and all(isinstance(g, str) for g in groups) and {*groups} & {*X.columns}):
            return []
    if not framed:
        raise InputError(
            f"groups: {show_value(groups)} names a column, but X is no data frame: give one value "
            "a person"
        )
    names = [groups] if isinstance(groups, str) else [*groups]
    for name in names:
        if name not in X.columns:
            raise InputError(
                f"groups: X has no column {show_value(name)}; "
                f"{suggest_name(name, map(str, X.columns))}"
            )
    return names


def _check_flat(name: str, value: Any) -> None:
    """Refuse values that hold several."""
    import pandas as pd

    if isinstance(value, pd.DataFrame):
        for place, column in enumerate(value.columns):
            _check_values(f"{name}: column {show_value(column)}", value.iloc[:, place])
    elif isinstance(value, pd.Series):
        _check_values(name, value)
    elif isinstance(value, np.ndarray | list | tuple):
        try:
            values = np.asarray(value) if hasattr(value, "ndim") else np.array(value, dtype=object)
        except ValueError:  # of arrays and frames of several shapes
            raise InputError(f"{name}: must hold one value a person, not tables") from None
        for one in values.T if values.ndim == 2 else [values]:
            _check_values(name, one)


def _check_values(name: str, values: Any) -> None:
    from pandas.api.types import infer_dtype, is_list_like

    nested = values.ndim == 1 and values.dtype.kind == "O"
    if not nested or not infer_dtype(values).startswith("mixed"):
        return
    for row, value in enumerate(values):
        if is_list_like(value):
            raise InputError(
                f"{name} must hold one value a person, not {show_value(value)} in row {row}"
            )
