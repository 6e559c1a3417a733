"""Public names as the stubs of fpbench and of its rooms list them."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

_ROOT = Path(__file__).parents[1]

RENAMED = {
    "About": "data.DatasetFacts",
    "Apart": "claims.RatesApart",
    "CHOICE": "models.FAMILY_CHOICE",
    "Declared": "data.DomainParameter",
    "HISTOGRAM": "COUNT_SENSITIVITY",
    "Labelled": "tabular.LabelledColumns",
    "Measures": "MeasureValues",
    "ON_COUNTS": "claims.COUNT_CONSTRAINTS",
    "PrivateTrees": "models.PrivateTreeBatch",
    "Redrawn": "auditing.RedrawnModels",
    "Tally": "correction.CountedProblem",
    "Together": "claims.RatesWithin",
    "as_written": "base.to_fraction",
    "calibrated": "correction.calibrate_guess",
    "checked_answers": "privacy.check_answers",
    "fit_ragged": "models.fit_logistic_apart",
    "given_problem": "correction.compute_posterior",
    "invalid_answers": "privacy.find_invalid_answers",
    "nearest": "base.suggest_name",
}
"""Names that fpbench exported earlier, and their present room and name."""


@cache
def list_public_names(package: str = "fpbench") -> dict[str, str]:
    """Modules of the public names of `fpbench` or a room, by name; empty for any other package.

    The module of a room is the room.
    """
    top, _, room = package.partition(".")
    stub = _ROOT.joinpath(*room.split("."), "__init__.pyi")
    if top != _ROOT.name or not stub.is_file():
        return {}
    return {
        name.name: f"{package}.{node.module or name.name}"
        for node in ast.parse(stub.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }


def list_rooms() -> list[str]:
    """Rooms that plugins may import: `fpbench.models`, ..."""
    return sorted(room for name, room in list_public_names().items() if room == f"fpbench.{name}")


def find_moved(name: str) -> str | None:
    """The present place of a room's name, or of one that fpbench exported; None for any other."""
    for room in list_rooms():
        if name in list_public_names(room):
            return f"{room}.{name}"
    return f"fpbench.{RENAMED[name]}" if name in RENAMED else None


def explain_missing(name: str) -> str:
    """Message for a name that fpbench does not export: where it is now, or the nearest name."""
    if place := find_moved(name):
        return f"fpbench.{name} is {place} now"
    from fpbench.base.errors import suggest_name

    return f"fpbench has no {name!r}: {suggest_name(name, list_public_names())}"
