"""Values just beyond what parameters allow, from the schema that components publish."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fpbench.components import Component
from fpbench.specs import slot_kinds


def beyond(cls: type[Component]) -> Iterator[tuple[str, Any]]:
    """Parameters, and a value of each that must be refused: past a limit, or of another type."""
    slots = slot_kinds(cls)
    for name, said in cls.model_json_schema().get("properties", {}).items():
        options = said.get("anyOf", [said])
        if name in slots or any("$ref" in option for option in options):
            continue
        yield from ((name, wrong) for wrong in _past(options))
        types = {option.get("type") for option in options}
        if types <= {"integer", "number", "null"}:
            yield name, "a word"


def _past(options: list[dict[str, Any]]) -> Iterator[Any]:
    """Values past the limits of a number that may be nothing else."""
    numbers = [option for option in options if option.get("type") in ("integer", "number")]
    if len(numbers) != 1 or len(options) > 2:
        return
    (said,) = numbers
    one = 1 if said["type"] == "integer" else 1.0
    if "minimum" in said:
        yield said["minimum"] - one
    if "exclusiveMinimum" in said:
        yield one * said["exclusiveMinimum"]
    if "maximum" in said:
        yield said["maximum"] + one
    if "exclusiveMaximum" in said:
        yield one * said["exclusiveMaximum"]
