"""Sensitive attributes: a column, or a column and a rule that makes groups; dropped columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeAlias, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_serializer,
    model_validator,
)

from fpbench.base.errors import DataError, InputError, suggest_name

if TYPE_CHECKING:
    from pandas import Categorical, DataFrame, Series


MOST_VALUES = 20
"""Greatest number of distinct numbers in a sensitive column without a rule."""

_QUANTILES = {
    0.1: "first decile", 0.2: "first quintile", 0.25: "first quartile", 0.5: "lower half",
}  # fmt: skip


def _to_tuple(value: Any) -> Any:
    """A tuple of the value, or of the values of a list."""
    return tuple(value) if isinstance(value, list | tuple) else (value,)


_Value: TypeAlias = str | bool | int | float
_Values = Annotated[
    tuple[_Value, ...], BeforeValidator(_to_tuple, json_schema_input_type=list[_Value])
]
_Cuts = Annotated[tuple[float, ...], BeforeValidator(_to_tuple, json_schema_input_type=list[float])]


class Attribute(BaseModel):
    """A column and the rule by which it makes groups; exactly one rule.

    ============================== ==========================================================
    rule                           groups
    ============================== ==========================================================
    `one_of = ["White"]`           "White", "others"
    `one_of = ["A", "B"]`          "A or B", "others"
    `cuts = [60]`                  "age < 60", "age >= 60"
    `cuts = [25, 45]`              "age < 25", "25 <= age < 45", "age >= 45"
    `quantile = 0.25`              "first quartile" (at most that quantile of the whole
                                   table, interpolated linearly), "others"
    ============================== ==========================================================

    A quantile is computed from everybody, so one more person may move others into another group:
    components that guarantee differential privacy refuse such groups, and need public `cuts`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    column: str = Field(min_length=1, description="name of the column")
    one_of: _Values = Field((), description="values of the first group; all others are the second")
    cuts: _Cuts = Field((), description="lower bounds of the groups after the first, increasing")
    quantile: float | None = Field(
        None, gt=0, lt=1, description="share of people, with the lowest values, in the first group"
    )

    @model_validator(mode="after")
    def _one_rule(self) -> Self:
        rules = [bool(self.one_of), bool(self.cuts), self.quantile is not None]
        if sum(rules) != 1:
            raise ValueError(
                f"column {self.column!r} needs one rule (one_of, cuts or quantile), but has "
                f"{sum(rules) or 'none'}; to use a column without a rule, write only its name"
            )
        if not all(map(math.isfinite, self.cuts)) or any(b <= a for a, b in pairwise(self.cuts)):
            raise ValueError("cuts must be increasing numbers")
        if len({format_value(value) for value in self.one_of}) < len(self.one_of):
            raise ValueError("one_of names a value twice")
        return self

    @model_serializer(mode="plain")
    def _serialize(self) -> dict[str, Any]:
        """The attribute as in a matrix: the column and its rule."""
        rules = {"one_of": self.one_of, "cuts": self.cuts, "quantile": self.quantile}
        return {"column": self.column, **{key: value for key, value in rules.items() if value}}

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups, in the order of their codes."""
        name = self.column
        if self.cuts:
            cuts = [format_value(cut) for cut in self.cuts]
            between = [f"{low} <= {name} < {high}" for low, high in pairwise(cuts)]
            return (f"{name} < {cuts[0]}", *between, f"{name} >= {cuts[-1]}")
        if self.quantile is not None:
            first = _QUANTILES.get(self.quantile, f"lowest {100 * self.quantile:.12g} %")
        else:
            first = " or ".join(map(format_value, self.one_of))
        return (first, "others" if first != "others" else "all others")

    def __str__(self) -> str:
        """Return the column and its groups in words."""
        words = " | ".join(self.groups)
        if self.quantile is not None:
            words += f" (first: at most the {self.quantile:g} quantile of the table)"
        return f"{self.column}: {words}"

    def group(self, column: Series, where: str) -> Categorical[Any]:
        """The group of each person, from a column.

        Parameters
        ----------
        column
            (n,) numbers, or a pandas categorical.
        where
            The data set of the column, for messages.

        Raises
        ------
        DataError
            If the rule does not fit the column, or a group has no members.
        """
        import numpy as np
        import pandas as pd

        numeric = not isinstance(column.dtype, pd.CategoricalDtype)
        if not (self.one_of or numeric):
            rule = "cuts" if self.cuts else "quantile"
            raise DataError(
                f"{where}: column {self.column!r} has no numbers, so {rule} cannot make groups "
                "of it; use one_of"
            )
        if self.cuts:
            codes = np.searchsorted(self.cuts, column.to_numpy(), side="right")
        elif self.quantile is not None:
            limit = np.quantile(column.to_numpy(np.float64), self.quantile)
            codes = (column.to_numpy() > limit).astype(np.intp)
        else:
            values = _match_values(self.one_of, column, f"{where}: column {self.column!r}")
            codes = (~column.isin(values).to_numpy()).astype(np.intp)
        members = np.bincount(codes, minlength=len(self.groups))
        for group in np.flatnonzero(members == 0):
            raise DataError(f"{where}: nobody is in group {self.groups[group]!r} of {str(self)!r}")
        return pd.Categorical.from_codes(codes, categories=pd.Index(self.groups))


def _match_values(values: Sequence[_Value], column: Series, where: str) -> list[Any]:
    """The values of a column that a rule names."""
    by_name = {format_value(value): value for value in list_values(column)}
    for value in values:
        if format_value(value) not in by_name:
            hint = suggest_name(format_value(value), by_name) if len(by_name) <= MOST_VALUES else ""
            raise DataError(f"{where} holds no {format_value(value)!r}; {hint}".rstrip("; "))
    return [by_name[format_value(value)] for value in values]


def list_values(column: Series) -> list[Any]:
    """Values of a column: in the order of its categories, or sorted."""
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        return list(column.cat.remove_unused_categories().cat.categories)
    return sorted(column.unique().tolist())


def format_value(value: Any) -> str:
    """The name of a value: whole numbers without a decimal point, other floats in full."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, float):
        return str(value)
    short = f"{value:.12g}"
    return short if float(short) == value else repr(float(value))


def get_column_name(item: str | Attribute) -> str:
    """The column of a sensitive attribute."""
    return item if isinstance(item, str) else item.column


def describe_attribute(item: str | Attribute) -> str:
    """A sensitive attribute in one line."""
    return f"{item}: one group for each value" if isinstance(item, str) else str(item)


def measured_cuts(sensitive: Iterable[str | Attribute]) -> dict[str, str]:
    """Columns of a sample (`sensitive` or none) cut at a statistic of the people, and how.

    Parameters
    ----------
    sensitive
        Names of columns, and attributes with their rules.
    """
    cuts = [
        f"column {item.column!r} is cut at its {item.quantile:g} quantile"
        for item in sensitive
        if isinstance(item, Attribute) and item.quantile is not None
    ]
    return {"sensitive": "; ".join(cuts)} if cuts else {}


def explain_no_guarantee(cuts: Mapping[str, str], columns: Iterable[str], who: str) -> str | None:
    """Why a component cannot guarantee privacy of these columns; None if it can.

    `cuts` says how columns are cut at a statistic of the people.
    """
    for name in sorted({*cuts}.intersection(columns)):
        others = {"labels": "the label", "sensitive": "the group"}.get(name, f"the {name}")
        return (
            f"{who} guarantees differential privacy, but {cuts[name]} of the people themselves: "
            f"one more person may change {others} of many, which no epsilon covers; choose a "
            "public constant that is not computed from them, cuts = [...] instead of a quantile"
        )
    return None


def make_groups(
    sensitive: Iterable[str | Attribute], columns: DataFrame, where: str
) -> dict[str, Categorical[Any]]:
    """Groups by each sensitive attribute; DataError if a rule is missing or does not fit."""
    return {
        get_column_name(item): item.group(columns[item.column], where)
        if isinstance(item, Attribute)
        else _group_by_value(item, columns[item], where)
        for item in sensitive
    }


def _group_by_value(name: str, column: Series, where: str) -> Categorical[Any]:
    """One group for each value."""
    import pandas as pd

    values = list_values(column)
    numeric = not isinstance(column.dtype, pd.CategoricalDtype)
    if numeric and len(values) > MOST_VALUES:
        median = format_value(float(column.median()))
        raise DataError(
            f"{where}: sensitive column {name!r} holds {len(values):,} different numbers; say how "
            f'they make groups, for instance {{ column = "{name}", cuts = [{median}] }}, or with '
            "quantile = 0.25, or one_of = [...]"
        )
    codes = pd.Index(values).get_indexer(column)
    return pd.Categorical.from_codes(codes, categories=pd.Index([format_value(v) for v in values]))


_Names = TypeVar("_Names", bound=tuple[Any, ...])


def _check_some(items: tuple[Any, ...]) -> tuple[Any, ...]:
    if not items:
        raise ValueError("is empty: name a sensitive attribute")
    return items


def _check_distinct(items: tuple[Any, ...]) -> tuple[Any, ...]:
    names = [get_column_name(item) for item in items]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"names column {name!r} twice")
    return items


def _parse_attributes(value: Any) -> Any:
    """Attributes of one or several names and tables, with one error for a wrong table."""
    items = _to_tuple(value)
    if not all(isinstance(item, str | Mapping | Attribute) for item in items):
        raise ValueError("must be a column, a table with a rule, or a list of these")
    return tuple(_parse_attribute(item) if isinstance(item, Mapping) else item for item in items)


def _parse_names(value: Any) -> Any:
    """Names of one or several columns."""
    items = _to_tuple(value)
    if not all(isinstance(item, str) for item in items):
        raise ValueError("must be a column, or a list of columns")
    return items


def _parse_attribute(table: Mapping[str, Any]) -> Attribute:
    try:
        return Attribute.model_validate(table)
    except ValidationError as error:
        errors = error.errors(include_url=False)
    # With a misspelt key another one is missing; the message names the misspelt one.
    first = next((e for e in errors if e["type"] == "extra_forbidden"), errors[0])
    key, message = ".".join(map(str, first["loc"][:1])), first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        raise ValueError(f"unknown key {key!r}; {suggest_name(key, Attribute.model_fields)}")
    raise ValueError(f"{key}: {message}" if key else message)


Sensitive: TypeAlias = Annotated[
    tuple[str | Attribute, ...],
    AfterValidator(_check_distinct),
    AfterValidator(_check_some),
    BeforeValidator(
        _parse_attributes, json_schema_input_type=str | Attribute | list[str | Attribute]
    ),
]
"""Type of a parameter that names sensitive attributes: one, or several that are crossed."""

Dropped: TypeAlias = Annotated[
    tuple[str, ...],
    AfterValidator(_check_distinct),
    BeforeValidator(_parse_names, json_schema_input_type=str | list[str]),
]
"""Type of a parameter that names columns to leave out of the features."""

_SENSITIVE: TypeAdapter[tuple[str | Attribute, ...]] = TypeAdapter(Sensitive)
_DROPPED: TypeAdapter[tuple[str, ...]] = TypeAdapter(Dropped)


def parse_sensitive(value: Any) -> tuple[str | Attribute, ...]:
    """Sensitive attributes, from any form of the parameter; InputError if empty or invalid."""
    return _parse(_SENSITIVE, "sensitive", value)


def parse_drop(value: Any) -> tuple[str, ...]:
    """Names of columns to drop, from any form of the parameter; InputError if not names."""
    several = isinstance(value, Iterable) and not isinstance(value, str)
    return _parse(_DROPPED, "drop", tuple(value) if several else value)


def _parse(adapter: TypeAdapter[_Names], what: str, value: Any) -> _Names:
    try:
        return adapter.validate_python(value, strict=True)
    except ValidationError as error:
        message = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
        raise InputError(f"{what}: {message}") from None


def check_column(name: str, columns: Iterable[str]) -> None:
    """Raise InputError, with the nearest column, if a name is not one of the columns."""
    if name not in columns:
        raise InputError(f"no column {name!r}; {suggest_name(name, columns)}")


def check_drop(drop: Iterable[str], sensitive: Iterable[str | Attribute]) -> None:
    """Raise InputError if a column to drop is sensitive."""
    names = [get_column_name(item) for item in sensitive]
    for name in drop:
        if name in names:
            raise InputError(f"{name!r} is sensitive, so it is never a feature")
