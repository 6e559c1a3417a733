"""What is installed: plugins are discovered, components are imported when they are used.

A plugin that fails is a row in the listing, never the end of the command.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import pluggy

from fpbench import hookspecs
from fpbench.errors import NameUnknownError, PluginError, nearest
from fpbench.hookspecs import Lazy, Registered
from fpbench.kinds import KINDS

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from fpbench.components import Component

GROUP = "fpbench"
"""The entry-point group of plugins."""


class Source(NamedTuple):
    """Which distribution a component comes from."""

    distribution: str
    version: str

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}".strip()


class Entry(NamedTuple):
    """A registered component."""

    kind: str
    name: str
    source: Source
    registered: Registered
    rivals: tuple[Source, ...] = ()
    """Distributions that claim the same name; a component with rivals cannot be used."""


class Broken(NamedTuple):
    """A plugin that could not be registered."""

    plugin: str
    source: Source
    reason: str
    trace: str


class Catalog:
    """The components that are installed, and the plugins that are broken."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, str], Entry] = {}
        self.broken: list[Broken] = []

    def of_kind(self, kind: str) -> list[Entry]:
        """Entries of a kind, by name."""
        return sorted((e for e in self.entries.values() if e.kind == kind), key=lambda e: e.name)

    def entry(self, kind: str, name: str) -> Entry:
        """The entry of a name.

        Raises
        ------
        NameUnknownError
            If the kind or the name is unknown.
        PluginError
            If two distributions claim the name.
        """
        if kind not in KINDS:
            raise NameUnknownError(f"unknown kind {kind!r}; {nearest(kind, KINDS)}")
        try:
            entry = self.entries[kind, name]
        except KeyError:
            known = [other.name for other in self.of_kind(kind)]
            raise NameUnknownError(f"unknown {kind} {name!r}; {nearest(name, known)}") from None
        if entry.rivals:
            owners = " and ".join(map(str, (entry.source, *entry.rivals)))
            raise PluginError(f"{kind} {name!r} is claimed by {owners}; uninstall all but one")
        return entry

    def component(self, kind: str, name: str) -> type[Component]:
        """The class of a component, imported now if it was not yet.

        Raises
        ------
        NameUnknownError
            If the kind or the name is unknown.
        PluginError
            If its import fails, or what is there is not what was registered.
        """
        entry = self.entry(kind, name)
        loaded = _import(entry.registered, entry) if isinstance(entry.registered, Lazy) else None
        return _checked(entry.registered if loaded is None else loaded, entry)

    def __iter__(self) -> Iterator[Entry]:
        return (entry for kind in KINDS for entry in self.of_kind(kind))


def _import(lazy: Lazy, entry: Entry) -> Any:
    module, _, attribute = lazy.target.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except Exception as error:
        raise PluginError(
            f"{entry.kind} {entry.name!r} of {entry.source} fails on import: "
            f"{type(error).__name__}: {error}"
        ) from error


def _checked(candidate: Any, entry: Entry) -> type[Component]:
    from fpbench.bases import BASES

    base = BASES[entry.kind]
    if not (isinstance(candidate, type) and issubclass(candidate, base)):
        raise PluginError(
            f"{entry.kind} {entry.name!r} of {entry.source} is not a subclass of {base.__name__}"
        )
    if candidate.name != entry.name:
        raise PluginError(
            f"{entry.kind} {entry.name!r} of {entry.source} calls itself {candidate.name!r}"
        )
    return candidate


@cache
def discover() -> Catalog:
    """Find every installed plugin: one catalog a process, made when first asked for."""
    from importlib.metadata import entry_points

    catalog = Catalog()
    manager = pluggy.PluginManager("fpbench")
    manager.add_hookspecs(hookspecs)
    for point in sorted(entry_points(group=GROUP), key=lambda p: (p.name, p.value)):
        _register(catalog, manager, point)
    return catalog


def _register(catalog: Catalog, manager: pluggy.PluginManager, point: EntryPoint) -> None:
    """Register one plugin; its failure becomes a row of the catalog."""
    dist = point.dist
    source = Source(dist.name, dist.version) if dist else Source(point.value, "")
    name = f"{source.distribution}:{point.name}"
    try:
        plugin = point.load()
        manager.register(plugin, name)
        manager.check_pending()
        found = list(_offered(manager, plugin, source))
    except Exception as error:  # any failure of a stranger's code is a row, not our end
        if manager.has_plugin(name):
            manager.unregister(name=name)
        import traceback

        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        catalog.broken.append(Broken(point.name, source, reason, traceback.format_exc()))
        return
    for entry in found:
        _claim(catalog, entry)


def _offered(manager: pluggy.PluginManager, plugin: object, source: Source) -> Iterable[Entry]:
    others = [other for other in manager.get_plugins() if other is not plugin]
    for kind in KINDS.values():
        caller = manager.subset_hook_caller(kind.hook, remove_plugins=others)
        for offered in caller():
            for registered in offered:
                yield Entry(kind.name, registered.name, source, registered)


def _claim(catalog: Catalog, entry: Entry) -> None:
    key = entry.kind, entry.name
    rival = catalog.entries.get(key)
    if rival is not None:
        entry = Entry(*key, rival.source, rival.registered, (*rival.rivals, entry.source))
    catalog.entries[key] = entry
