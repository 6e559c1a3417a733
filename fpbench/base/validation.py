"""Validation by pydantic models, with one clear error about the first thing wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from fpbench.base.arguments import show_value
from fpbench.base.errors import MatrixError, suggest_name

_PERCENT = re.compile(r"([0-9]+(?:\.[0-9]*)?) ?%")


def validate(
    model: type[BaseModel], data: dict[str, Any], where: str, also: Iterable[str] = ()
) -> Any:
    """An instance of a pydantic model, or one clear error about the first thing wrong.

    MatrixError says where (file and table), which key, which value, and the nearest valid name;
    `also` are further valid keys.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        wrong = error.errors(include_url=False)
    first = wrong[0]
    if first["type"] == "missing":  # perhaps because its name is mistyped
        first = next((each for each in wrong if each["type"] == "extra_forbidden"), first)
    key, tags = _find_key(first["loc"], data, missing=first["type"] == "missing")
    value, message, hint = first["input"], first["msg"].removeprefix("Value error, "), ""
    match first["type"]:
        case "extra_forbidden":
            valid = suggest_name(key.rpartition(".")[2], _list_keys(model, key, tags, also))
            raise MatrixError(f"{where}: unknown key {key!r}; {valid}")
        case "missing":
            if "label" in also and key.startswith("label_"):
                hint = "; 'label' is what the table is called"
            raise MatrixError(f"{where}: needs a value for {key!r}{hint}")
        case "union_tag_not_found":
            raise MatrixError(f'{where}: {key}: needs use = "NAME"')
        case "union_tag_invalid":
            use, uses = first["ctx"]["tag"], _split_literals(first["ctx"]["expected_tags"])
            raise MatrixError(f"{where}: {key}: unknown use {use!r}; {suggest_name(use, uses)}")
        case "model_attributes_type":
            message = "must be a table"
        case "literal_error" if isinstance(value, str):
            hint = "; " + suggest_name(value, _split_literals(first["ctx"]["expected"]))
    if isinstance(value, list) and first["type"].endswith("_type") and "[[" in where:
        # A table of a matrix takes several values of a parameter as a sweep.
        hint = f"; to try several: {key} = {{ sweep = {value} }}"
    percent = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if percent and "number" in message:
        hint = f"; {value} is {float(percent[1]) / 100:g}"
    told = isinstance(value, str) and repr(value) in message
    actual = "" if told or isinstance(value, dict | BaseModel) else f", not {show_value(value)}"
    # There is no key if a default is wrong, or the table as a whole.
    place = ": ".join(filter(None, (where, key or ".".join(tags))))
    raise MatrixError(f"{place}: {message[:1].lower()}{message[1:]}{actual}{hint}")


def _find_key(path: tuple[int | str, ...], data: Any, *, missing: bool) -> tuple[str, list[str]]:
    """The dotted key of an error location of pydantic, and the union members it names."""
    key, tags = [], []
    for part in path:
        index = isinstance(part, int) and isinstance(data, list | tuple) and part < len(data)
        if index or (isinstance(data, dict) and part in data):
            data = data[part]
            key.append(str(part))
        else:
            tags.append(str(part))
    return ".".join([*key, tags.pop()] if missing else key), tags


def _list_keys(model: type[BaseModel], key: str, tags: list[str], also: Iterable[str]) -> list[str]:
    """The valid keys of the table that holds an unknown key."""
    outer, _, inner = key.partition(".")
    if not (inner and outer in model.model_fields):
        return [*model.model_fields, *also]
    models = {
        m: m.model_fields.get("use") for m in _list_models(model.model_fields[outer].annotation)
    }
    chosen = [
        m for m, use in models.items() if use is None or {*get_args(use.annotation)} & {*tags}
    ]
    return [name for m in chosen for name in m.model_fields]


def _list_models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models in an annotation, at any depth."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _list_models(inner)


def _split_literals(expected: str) -> list[str]:
    return [name.strip(" '") for name in expected.replace(" or ", ", ").split(", ")]
