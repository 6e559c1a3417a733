"""Parameters that name columns: those that are sensitive, and those that are left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import AfterValidator, BeforeValidator, TypeAdapter, ValidationError

from fpbench.base.errors import InputError, nearest
from fpbench.data.attributes import Attribute, column_of

_Names = TypeVar("_Names", bound=tuple[Any, ...])


def _distinct_names(given: tuple[str | Attribute, ...]) -> tuple[str | Attribute, ...]:
    names = [column_of(item) for item in given]
    if not names:
        raise ValueError("names no sensitive attribute")
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"names column {name!r} twice")
    return given


def _no_twins(given: tuple[str, ...]) -> tuple[str, ...]:
    for name in given:
        if given.count(name) > 1:
            raise ValueError(f"names column {name!r} twice")
    return given


def _built(given: Any) -> Any:
    """Accept one attribute, and build tables here: what is wrong with them is then one error."""
    items = given if isinstance(given, list | tuple) else (given,)
    if not all(isinstance(item, str | Mapping | Attribute) for item in items):
        raise ValueError("must be a column, a table with a rule, or a list of these")
    return tuple(_attribute(item) if isinstance(item, Mapping) else item for item in items)


def _names(given: Any) -> Any:
    """Accept one name."""
    items = given if isinstance(given, list | tuple) else (given,)
    if not all(isinstance(item, str) for item in items):
        raise ValueError("must be a column, or a list of columns")
    return tuple(items)


def _attribute(given: Mapping[str, Any]) -> Attribute:
    try:
        return Attribute.model_validate(given)
    except ValidationError as error:
        found = error.errors(include_url=False)
    # A misspelt key is also one that is missing: the misspelling says more.
    first = next((said for said in found if said["type"] == "extra_forbidden"), found[0])
    key, message = ".".join(map(str, first["loc"][:1])), first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        raise ValueError(f"unknown key {key!r}; {nearest(key, Attribute.model_fields)}")
    raise ValueError(f"{key}: {message}" if key else message)


Sensitive: TypeAlias = Annotated[
    tuple[str | Attribute, ...],
    AfterValidator(_distinct_names),
    BeforeValidator(_built, json_schema_input_type=str | Attribute | list[str | Attribute]),
]
"""Type of a parameter that names sensitive attributes: one, or several that are crossed."""

Dropped: TypeAlias = Annotated[
    tuple[str, ...],
    AfterValidator(_no_twins),
    BeforeValidator(_names, json_schema_input_type=str | list[str]),
]
"""Type of a parameter that names columns to be left out."""

_SENSITIVE: TypeAdapter[tuple[str | Attribute, ...]] = TypeAdapter(Sensitive)
_DROPPED: TypeAdapter[tuple[str, ...]] = TypeAdapter(Dropped)


def parse_sensitive(given: Any) -> tuple[str | Attribute, ...]:
    """Sensitive attributes in any spelling that a parameter allows.

    Raises
    ------
    InputError
        If it names none, or a rule is not one.
    """
    return _parsed(_SENSITIVE, "sensitive", given)


def parse_drop(given: Any) -> tuple[str, ...]:
    """Columns to be left out in any spelling that a parameter allows.

    Raises
    ------
    InputError
        If it is no name, nor a list of different names.
    """
    several = isinstance(given, Iterable) and not isinstance(given, str)
    return _parsed(_DROPPED, "drop", tuple(given) if several else given)


def _parsed(adapter: TypeAdapter[_Names], what: str, given: Any) -> _Names:
    try:
        return adapter.validate_python(given, strict=True)
    except ValidationError as error:
        said = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
        raise InputError(f"{what}: {said}") from None


def check_column(name: str, columns: Iterable[str]) -> None:
    """Refuse a name that is none of the columns.

    Raises
    ------
    InputError
        Names the nearest column.
    """
    if name not in columns:
        raise InputError(f"no column {name!r}; {nearest(name, columns)}")


def check_drop(drop: Iterable[str], sensitive: Iterable[str | Attribute]) -> None:
    """Refuse to drop what is sensitive.

    Raises
    ------
    InputError
        If a column is both.
    """
    names = [column_of(item) for item in sensitive]
    for name in drop:
        if name in names:
            raise InputError(f"{name!r} is sensitive, and so no feature anyway")
