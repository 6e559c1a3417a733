"""Sensitive attributes as a user names them: a column, or a column and a rule that makes groups."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    model_serializer,
    model_validator,
)

from fpbench.base.errors import DataError, nearest

if TYPE_CHECKING:
    from pandas import Categorical, DataFrame, Series

MOST_VALUES = 20
"""Distinct numbers that a column may hold to be sensitive without a rule."""

_QUANTILES = {
    0.1: "first decile", 0.2: "first quintile", 0.25: "first quartile", 0.5: "lower half",
}  # fmt: skip


def _listed(given: Any) -> Any:
    """Accept one value, and a list where strict validation wants a tuple."""
    return tuple(given) if isinstance(given, list | tuple) else (given,)


_Value: TypeAlias = str | bool | int | float
_Values = Annotated[
    tuple[_Value, ...], BeforeValidator(_listed, json_schema_input_type=list[_Value])
]
_Cuts = Annotated[tuple[float, ...], BeforeValidator(_listed, json_schema_input_type=list[float])]


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

    A quantile is computed from everybody, so that one person more moves others into another group:
    what guarantees differential privacy refuses such groups, and wants `cuts` that are public.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    column: str = Field(min_length=1, description="name of the column")
    one_of: _Values = Field((), description="values of the first group; all others are the second")
    cuts: _Cuts = Field((), description="numbers at which another group begins, increasing")
    quantile: float | None = Field(
        None, gt=0, lt=1, description="share of the table, by the column, that is the first group"
    )

    @model_validator(mode="after")
    def _one_rule(self) -> Self:
        given = [bool(self.one_of), bool(self.cuts), self.quantile is not None]
        if sum(given) != 1:
            raise ValueError(
                f"column {self.column!r} needs one rule (one_of, cuts or quantile), and has "
                f"{sum(given) or 'none'}; a column without a rule is given as its name alone"
            )
        if not all(map(math.isfinite, self.cuts)) or any(b <= a for a, b in pairwise(self.cuts)):
            raise ValueError("cuts must be numbers that increase")
        if len({text_of(value) for value in self.one_of}) < len(self.one_of):
            raise ValueError("one_of names a value twice")
        return self

    @model_serializer(mode="plain")
    def _given(self) -> dict[str, Any]:
        """What a user would write."""
        rules = {"one_of": self.one_of, "cuts": self.cuts, "quantile": self.quantile}
        return {"column": self.column, **{key: value for key, value in rules.items() if value}}

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups, in the order of their codes."""
        name = self.column
        if self.cuts:
            cuts = [text_of(cut) for cut in self.cuts]
            between = [f"{low} <= {name} < {high}" for low, high in pairwise(cuts)]
            return (f"{name} < {cuts[0]}", *between, f"{name} >= {cuts[-1]}")
        if self.quantile is not None:
            first = _QUANTILES.get(self.quantile, f"lowest {100 * self.quantile:.12g} %")
        else:
            first = " or ".join(map(text_of, self.one_of))
        return (first, "others" if first != "others" else "all others")

    def __str__(self) -> str:
        """Return the rule in words."""
        words = " | ".join(self.groups)
        if self.quantile is not None:
            words += f" (first: at most the {self.quantile:g} quantile of the table)"
        return f"{self.column}: {words}"

    def group(self, column: Series, where: str) -> Categorical[Any]:
        """Groups of the people of a column.

        Parameters
        ----------
        column
            (n,) numbers, or a pandas categorical.
        where
            What the column belongs to, for messages.

        Raises
        ------
        DataError
            If the rule does not fit the column, or leaves a group without members.
        """
        import numpy as np
        import pandas as pd

        numeric = not isinstance(column.dtype, pd.CategoricalDtype)
        if not (self.one_of or numeric):
            rule = "cuts" if self.cuts else "quantile"
            raise DataError(
                f"{where}: column {self.column!r} holds no numbers, so {rule} cannot make groups "
                "of it; use one_of"
            )
        if self.cuts:
            codes = np.searchsorted(self.cuts, column.to_numpy(), side="right")
        elif self.quantile is not None:
            limit = np.quantile(column.to_numpy(np.float64), self.quantile)
            codes = (column.to_numpy() > limit).astype(np.intp)
        else:
            chosen = _chosen(self.one_of, column, f"{where}: column {self.column!r}")
            codes = (~column.isin(chosen).to_numpy()).astype(np.intp)
        members = np.bincount(codes, minlength=len(self.groups))
        for group in np.flatnonzero(members == 0):
            raise DataError(f"{where}: nobody is in group {self.groups[group]!r} of {str(self)!r}")
        return pd.Categorical.from_codes(codes, categories=pd.Index(self.groups))


def _chosen(values: Sequence[_Value], column: Series, where: str) -> list[Any]:
    """The values of a column that a rule names."""
    known = {text_of(value): value for value in distinct(column)}
    for value in values:
        if text_of(value) not in known:
            hint = nearest(text_of(value), known) if len(known) <= MOST_VALUES else ""
            raise DataError(f"{where} holds no {text_of(value)!r}; {hint}".rstrip("; "))
    return [known[text_of(value)] for value in values]


def distinct(column: Series) -> list[Any]:
    """Values of a column: in the order of its categories, or sorted."""
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        return list(column.cat.remove_unused_categories().cat.categories)
    return sorted(column.unique().tolist())


def text_of(value: Any) -> str:
    """A value as a name: whole numbers without a point."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, float):
        return str(value)
    short = f"{value:.12g}"
    # Values that differ have names that differ.
    return short if float(short) == value else repr(float(value))


def column_of(item: str | Attribute) -> str:
    """The column of a sensitive attribute."""
    return item if isinstance(item, str) else item.column


def in_words(item: str | Attribute) -> str:
    """A sensitive attribute in one line."""
    return f"{item}: one group for each value" if isinstance(item, str) else str(item)


def measured_cuts(sensitive: Iterable[str | Attribute]) -> dict[str, str]:
    """What of a sample is cut at a statistic of the people themselves, and how: its groups.

    Parameters
    ----------
    sensitive
        Names of columns, and attributes with what is done to them.
    """
    cuts = [
        f"column {item.column!r} is cut at its {item.quantile:g} quantile"
        for item in sensitive
        if isinstance(item, Attribute) and item.quantile is not None
    ]
    return {"sensitive": "; ".join(cuts)} if cuts else {}


def no_guarantee(cuts: Mapping[str, str], columns: Iterable[str], who: str) -> str | None:
    """Why nobody can guarantee differential privacy of these columns; None if somebody can.

    Parameters
    ----------
    cuts
        What is cut at a statistic of the people themselves, by column of a sample.
    columns
        Columns of a sample that the guarantee is about.
    who
        Who gives it, for the message.
    """
    for name in sorted({*cuts}.intersection(columns)):
        others = {"labels": "the label", "sensitive": "the group"}.get(name, f"the {name}")
        return (
            f"{who} guarantees differential privacy, but {cuts[name]} of the people themselves: "
            f"one person more may change {others} of many, which no epsilon covers; choose a "
            "public constant that is not computed from them, cuts = [...] instead of a quantile"
        )
    return None


def groups_of(
    sensitive: Iterable[str | Attribute], columns: DataFrame, where: str
) -> dict[str, Categorical[Any]]:
    """Groups by every sensitive attribute.

    Parameters
    ----------
    sensitive
        The attributes.
    columns
        n rows; numbers and pandas categoricals.
    where
        What the columns belong to, for messages.

    Raises
    ------
    DataError
        If a rule does not fit its column, or is needed and not there.
    """
    return {
        column_of(item): item.group(columns[item.column], where)
        if isinstance(item, Attribute)
        else _by_value(item, columns[item], where)
        for item in sensitive
    }


def _by_value(name: str, column: Series, where: str) -> Categorical[Any]:
    """One group for each value."""
    import pandas as pd

    values = distinct(column)
    numeric = not isinstance(column.dtype, pd.CategoricalDtype)
    if numeric and len(values) > MOST_VALUES:
        raise DataError(
            f"{where}: sensitive column {name!r} holds {len(values):,} different numbers; say how "
            f'they make groups, for instance {{ column = "{name}", cuts = '
            f"[{text_of(float(column.median()))}] }}, or with quantile = 0.25, or one_of = [...]"
        )
    codes = pd.Index(values).get_indexer(column)
    return pd.Categorical.from_codes(codes, categories=pd.Index([text_of(v) for v in values]))
