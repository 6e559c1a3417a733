"""Public names as the stubs of fpbench and of its rooms list them."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import resolve_name
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[1]


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
        name.name: resolve_name("." * node.level + (node.module or name.name), package)
        for node in ast.parse(stub.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }


def attach_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a room that also lists names of other rooms.

    `lazy_loader.attach_stub` refuses such a stub.
    """
    modules = list_public_names(package)

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"{package} has no {name!r}", name=name)
        value = getattr(import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: list(modules), list(modules)


def list_rooms() -> list[str]:
    """Rooms that plugins may import: `fpbench.models`, ..."""
    return sorted(room for name, room in list_public_names().items() if room == f"fpbench.{name}")


def find_place(name: str) -> str | None:
    """The room and name of a room's name; None for any other."""
    rooms = (room for room in list_rooms() if name in list_public_names(room))
    return next((f"{room}.{name}" for room in rooms), None)


def explain_missing(name: str) -> str:
    """Message for a name that fpbench does not export: its room, or the nearest name."""
    if place := find_place(name):
        return f"fpbench has no {name!r}: it is {place}"
    from fpbench.base.errors import suggest_name

    return f"fpbench has no {name!r}: {suggest_name(name, list_public_names())}"
