"""Values just beyond what parameters allow, from the schema that components publish."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from fpbench.components.attack_kinds import Component
from fpbench.components.spec import slot_kinds

_OF_TYPE: dict[str, Any] = {"string": "1", "number": 1.5, "boolean": True, "object": {}}
"""A value of each type of JSON; a whole number is a number, too."""

_TYPED = {"type", "$ref", "allOf", "anyOf", "oneOf", "enum", "const"}
"""What a schema says of a value that may not be anything."""


def beyond(cls: type[Component]) -> Iterator[tuple[str, Any]]:
    """Parameters, and values of each that must be refused: past a limit, or of another type."""
    slots = slot_kinds(cls)
    for name, said in cls.model_json_schema().get("properties", {}).items():
        if name in slots:
            continue
        options = said.get("anyOf", [said])
        if not all(_TYPED & option.keys() for option in options):
            yield name, {"no-such-parameter": 1}
        if all("type" in option for option in options):
            yield from ((name, wrong) for wrong in (*_past(options), *_of_another_type(options)))


def _of_another_type(options: list[dict[str, Any]]) -> Iterator[Any]:
    types = {option["type"] for option in options}
    if "array" in types:  # what is in a list may stand for a list of one
        return
    yield from (value for name, value in _OF_TYPE.items() if name not in types)


def _past(options: list[dict[str, Any]]) -> Iterator[Any]:
    """Values past the limits of a number that may be nothing else."""
    told = [option for option in options if option["type"] != "null"]
    if len(told) != 1 or told[0]["type"] not in ("integer", "number"):
        return
    (said,) = told
    one = 1 if said["type"] == "integer" else 1.0
    yield math.nan
    if "minimum" in said:
        yield said["minimum"] - one
    if "exclusiveMinimum" in said:
        yield one * said["exclusiveMinimum"]
    if "maximum" in said:
        yield said["maximum"] + one
    if "exclusiveMaximum" in said:
        yield one * said["exclusiveMaximum"]
