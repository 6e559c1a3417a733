"""Public knowledge about the values of features: bounds of numbers, lists of categories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import numpy as np
from pydantic import AfterValidator

from fpbench.base.arguments import show_value
from fpbench.base.errors import DataError, InputError, suggest_name

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Domain:
    """Public bounds of numbers and public lists of categories, by feature.

    A private learner uses only these: the least and greatest value in private data, and the
    categories in them, would reveal people.

    Attributes
    ----------
    bounds
        Least and greatest possible value of numbers.
    categories
        All possible values of categoricals.

    Raises
    ------
    InputError
        If bounds are not two finite numbers, the lower first, or categories are not distinct
        texts; if a feature has both.

    Examples
    --------
    >>> Domain.of({"age": [17, 90], "job": ["clerk", "farmer"]}).bounds
    {'age': (17.0, 90.0)}
    """

    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, bounds in self.bounds.items():
            _check_bounds(name, bounds)
        for name, words in self.categories.items():
            _check_categories(name, words)
        for name in self.bounds:
            if name in self.categories:
                raise InputError(f"domain: {name!r} has both bounds and categories")

    @classmethod
    def of(cls, lists: Mapping[str, Any]) -> Domain:
        """A domain from lists by feature: two numbers are bounds, texts are categories.

        Raises
        ------
        InputError
            If it is not a mapping from texts, or a list is neither.
        """
        bounds: dict[str, tuple[float, float]] = {}
        categories: dict[str, tuple[str, ...]] = {}
        if not isinstance(lists, Mapping) or not all(isinstance(name, str) for name in lists):
            raise InputError(
                'domain: must be lists by feature, { age = [17, 90], job = ["a", "b"] }, not '
                f"{show_value(lists)}"
            )
        for name, value in lists.items():
            values = tuple(value) if isinstance(value, list | tuple) else (value,)
            if values and all(isinstance(value, str) for value in values):
                categories[name] = values
            elif len(values) == 2 and not any(isinstance(value, str) for value in values):
                _check_bounds(name, values)
                bounds[name] = (float(values[0]), float(values[1]))
            else:
                raise InputError(
                    f"domain: {name!r}: must be [low, high] of numbers, or the list of all "
                    f"categories, not {show_value(value)}"
                )
        return cls(bounds, categories)

    def __or__(self, other: Domain) -> Domain:
        """The union of both; `other` takes precedence for features in both."""
        return Domain.of(self.to_lists() | other.to_lists())

    def __bool__(self) -> bool:
        return bool(self.bounds or self.categories)

    def __contains__(self, name: object) -> bool:
        return name in self.bounds or name in self.categories

    def only(self, names: Iterable[str]) -> Domain:
        """The declarations of some features."""
        features = set(names)
        return Domain.of({name: v for name, v in self.to_lists().items() if name in features})

    def check_names(self, names: Iterable[str]) -> None:
        """Refuse declared names that are not columns.

        Raises
        ------
        InputError
            With the nearest column.
        """
        known = list(names)
        for name in (*self.bounds, *self.categories):
            if name not in known:
                raise InputError(f"domain: no column {name!r}; {suggest_name(name, known)}")

    def check(self, features: DataFrame, who: str) -> None:
        """Refuse features without a declaration, or of another type than declared.

        Parameters
        ----------
        features
            n rows: numeric columns and pandas categoricals; only their types are read.
        who
            The component that needs the declaration, for the message.

        Raises
        ------
        InputError
            If a number has no bounds or a categorical no list of categories (the message says how
            to declare them), a type does not match its declaration, or two features have one name.
        """
        import pandas as pd

        undeclared, names = [], list(map(str, features.columns))
        if len(set(names)) < len(names):
            raise InputError(
                f"{who}: two features are called {Counter(names).most_common(1)[0][0]!r}"
            )
        for name, dtype in zip(names, features.dtypes, strict=True):
            if isinstance(dtype, pd.CategoricalDtype):
                if name not in self.categories:
                    undeclared.append(f'{_format_key(name)} = ["...", "..."]')
                    continue
            elif name not in self:
                undeclared.append(f"{_format_key(name)} = [low, high]")
                continue
            _check_type(name, dtype, name in self.categories, who)
        if undeclared:
            raise InputError(
                f"{who} needs the public range of features, and does not read it from the private "
                "data; declare it with the data set: domain = { "
                f"{', '.join(undeclared)} }}"
            )

    def fit(self, features: DataFrame) -> DataFrame:
        """Features within this domain: numbers clipped to their bounds, categories as declared.

        Parameters
        ----------
        features
            n rows, all declared, see `check`.

        Returns
        -------
        DataFrame
            (n rows) The same columns in the same order; undeclared categories become missing
            values.

        Raises
        ------
        InputError
            If a feature has no declaration.
        DataError
            If a number is missing.
        """
        import pandas as pd

        columns = {}
        for name, column in features.items():
            key = str(name)
            if key in self.categories:
                columns[key] = column.cat.set_categories(self.categories[key])
                continue
            if key not in self.bounds:
                raise InputError(f"no bounds or categories are declared for the feature {key!r}")
            low, high = self.bounds[key]
            values = column.to_numpy(dtype=np.float64)
            if np.isnan(values).any():
                raise DataError(f"the feature {key!r} has missing values")
            columns[key] = pd.Series(np.clip(values, low, high), index=column.index)
        return pd.DataFrame(columns, index=features.index)

    def to_lists(self) -> dict[str, list[Any]]:
        """Lists by feature, as `of` takes them."""
        return {
            **{name: list(ends) for name, ends in self.bounds.items()},
            **{name: list(words) for name, words in self.categories.items()},
        }


def _check_type(name: str, dtype: Any, words: bool, who: str) -> None:
    """Refuse a column whose type does not fit its declaration."""
    from pandas import CategoricalDtype
    from pandas.api.types import is_complex_dtype, is_numeric_dtype, is_string_dtype

    if isinstance(dtype, CategoricalDtype):
        if not is_string_dtype(dtype.categories.dtype):
            raise InputError(
                f"{who}: the categories of {name!r} are {dtype.categories.dtype}, but declared "
                "ones are texts; rename them to texts"
            )
    elif words:
        raise InputError(
            f"{who}: the feature {name!r} is {dtype}, but categories are declared; make it "
            "a pandas categorical of texts, or declare bounds"
        )
    elif not is_numeric_dtype(dtype) or is_complex_dtype(dtype):
        raise InputError(
            f"{who}: the feature {name!r} is {dtype}, but bounds are declared; make it numbers"
        )


def _format_key(name: str) -> str:
    """A name as a key of a TOML table."""
    bare = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    return name if bare else f'"{name}"'


def _check_bounds(name: str, bounds: tuple[Any, ...]) -> None:
    numbers = all(
        isinstance(v, int | float | np.number) and not isinstance(v, bool) for v in bounds
    )
    if (
        len(bounds) != 2
        or not numbers
        or not np.isfinite(bounds).all()
        or not bounds[0] < bounds[1]
    ):
        raise InputError(
            f"domain: {name!r}: bounds must be two finite numbers, the lower first, not "
            f"{show_value(list(bounds))}"
        )


def _check_categories(name: str, words: tuple[Any, ...]) -> None:
    if not words or not all(isinstance(word, str) for word in words):
        raise InputError(f"domain: {name!r}: categories must be texts, at least one")
    if len(set(words)) < len(words):
        twice = next(word for word, count in Counter(words).items() if count > 1)
        raise InputError(f"domain: {name!r}: category {twice!r} is named twice")


class _Lists(dict[str, list[Any]]):
    """Hashable lists by feature, as parameters of frozen components must be; never changed."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(repr(self))


def check_declared(lists: Mapping[str, Any], names: Iterable[str] = ()) -> dict[str, list[Any]]:
    """A checked domain parameter, as hashable lists; ValueError if it is wrong."""
    try:
        domain = Domain.of(lists)
        if columns := list(names):
            domain.check_names(columns)
    except InputError as error:
        raise ValueError(str(error).removeprefix("domain: ")) from None
    return _Lists(domain.to_lists())


DomainParameter: TypeAlias = Annotated[dict[str, Any], AfterValidator(check_declared)]
"""Type of a parameter that declares a domain."""
