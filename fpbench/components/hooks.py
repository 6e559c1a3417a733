"""The hooks of fpbench. A plugin implements those it needs and returns what it adds.

Each hook returns component classes, or `Lazy` references to classes that are imported on use.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import pluggy

from fpbench.components.names import KINDS, Kind

if TYPE_CHECKING:
    from fpbench.components.attack_kinds import Component


class Lazy(NamedTuple):
    """A component that is registered by name and imported only when it is used.

    Attributes
    ----------
    name
        Name of the component.
    target
        Where its class is: `package.module:Class`.
    """

    name: str
    target: str


Registered: TypeAlias = "type[Component] | Lazy"
"""A component class, or a reference to one: what hooks return."""

hookimpl = pluggy.HookimplMarker("fpbench")
"""Marks a function of a plugin as one that fpbench asks for components."""


def _specify_hook(kind: Kind) -> "Callable[[], Iterable[Registered]]":
    def hook() -> "Iterable[Registered]":  # type: ignore[empty-body]  # a signature only
        ...

    hook.__doc__ = f"Return the {kind.plural} this plugin adds."
    return pluggy.HookspecMarker("fpbench")(hook)


HOOKS = type("Hooks", (), {kind.hook: _specify_hook(kind) for kind in KINDS.values()})
"""The specification of each hook: `fpbench_datasets`, `fpbench_learners`, ..., one per kind."""
