"""The hooks of fpbench. A plugin implements those it needs and returns what it adds.

Most hooks return component classes, or `Lazy` references to classes that are imported on use.
`fpbench_engines` and `fpbench_commands` return `Lazy` references only.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import pluggy

from fpbench.components.names import KINDS

if TYPE_CHECKING:
    from fpbench.components.attack_kinds import Component


class Lazy(NamedTuple):
    """A component, an engine or a command, registered by name and imported when it is used.

    Attributes
    ----------
    name
        Its name.
    target
        Where it is: `package.module:Class` of a component or an engine, `package.module:app` of a
        command, which is a function with typer's annotations, or a `typer.Typer` with several.
    """

    name: str
    target: str


Registered: TypeAlias = "type[Component] | Lazy"
"""A component class, or a reference to one: what hooks return."""

hookimpl = pluggy.HookimplMarker("fpbench")
"""Marks a function of a plugin as one that fpbench asks for components."""


def _specify_hook(plural: str) -> "Callable[[], Iterable[Registered]]":
    def hook() -> "Iterable[Registered]":  # type: ignore[empty-body]  # a signature only
        ...

    hook.__doc__ = f"Return the {plural} this plugin adds."
    return pluggy.HookspecMarker("fpbench")(hook)


OFFERED = {
    **{name: kind.hook for name, kind in KINDS.items()},
    "engine": "fpbench_engines",
    "command": "fpbench_commands",
}
"""What plugins add, and the hook of each: components of each kind, engines, commands."""
HOOKS = type(
    "Hooks", (), {hook: _specify_hook(hook.removeprefix("fpbench_")) for hook in OFFERED.values()}
)
"""The specification of each hook: `fpbench_datasets`, `fpbench_learners`, ..."""
