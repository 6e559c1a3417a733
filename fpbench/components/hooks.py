"""The hooks of fpbench. A plugin implements those it needs and returns what it adds.

Each hook returns component classes, or `Lazy` references to classes that are imported on use.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import pluggy

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
"""What a hook may return."""

hookspec = pluggy.HookspecMarker("fpbench")
hookimpl = pluggy.HookimplMarker("fpbench")
"""Marks a function of a plugin as one that fpbench asks for components."""


@hookspec
def fpbench_datasets() -> "Iterable[Registered]":  # type: ignore[empty-body]
    """Return the datasets this plugin adds."""


@hookspec
def fpbench_learners() -> "Iterable[Registered]":  # type: ignore[empty-body]
    """Return the learners this plugin adds."""


@hookspec
def fpbench_disclosures() -> "Iterable[Registered]":  # type: ignore[empty-body]
    """Return the disclosures this plugin adds."""


@hookspec
def fpbench_adversaries() -> "Iterable[Registered]":  # type: ignore[empty-body]
    """Return the adversaries this plugin adds."""


@hookspec
def fpbench_correctors() -> "Iterable[Registered]":  # type: ignore[empty-body]
    """Return the correctors this plugin adds."""


@hookspec
def fpbench_mechanisms() -> "Iterable[Registered]":  # type: ignore[empty-body]
    """Return the mechanisms this plugin adds."""


@hookspec
def fpbench_policies() -> "Iterable[Registered]":  # type: ignore[empty-body]
    """Return the invalid-answer policies this plugin adds."""


@hookspec
def fpbench_auditors() -> "Iterable[Registered]":  # type: ignore[empty-body]
    """Return the auditors this plugin adds."""
