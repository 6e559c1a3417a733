"""The catalog of installed components: plugins are discovered, components imported on use.

A plugin that fails is a row in the listing and stops no command.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pluggy

from fpbench.base.arguments import show_value
from fpbench.base.errors import (
    InputError,
    NameUnknownError,
    PluginError,
    find_near_name,
    suggest_name,
)
from fpbench.base.text import add_article
from fpbench.base.trust import (
    GROUP,
    allows_third_party,
    list_entry_points,
    normalize_name,
)
from fpbench.components.hooks import HOOKS, OFFERED, Lazy, Registered
from fpbench.components.names import KINDS

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from fpbench.components.attack_kinds import Component

_OFFERED = {
    ("fpbench-hello", "adversary"): "majority-hello",
    ("fpbench-opendp", "mechanism"): "opendp-laplace, opendp-discrete-laplace, opendp-geometric, "
    "opendp-gaussian, opendp-discrete-gaussian, opendp-permute-and-flip",
    ("fpbench-ortools", "corrector"): "cp-sat",
    ("fpbench-art", "adversary"): "art-baseline, art-true-label, art-black-box",
    ("fpbench-aif360", "learner"): "aif360-reweighing, aif360-disparate-impact-remover",
    ("fpbench-error-parity", "learner"): "relaxed-odds",
    ("fpbench-defences", "learner"): "adversarial, distilled, fare, lipschitz, pflr, synthetic",
    ("fpbench-defences", "disclosure"): "dp-release",
    ("fpbench-dask", "engine"): "dask",
    ("fpbench-membership", "auditor"): "membership, epsilon-lower-bound",
    ("fpbench-app", "command"): "app",
    ("fpbench-board", "command"): "board",
    ("fpbench-curator", "command"): "curator",
}
OWN_PLUGINS = {
    (kind, name): package
    for (package, kind), names in _OFFERED.items()
    for name in names.split(", ")
}
"""The distribution in `plugins/` that has a component, an engine or a command, to name it if it is
missing; by kind and name."""


_OURS = __name__.partition(".")[0]
"""The package that built-ins are in."""


def explain_unknown_kind(kind: object) -> str:
    """Message for an unknown kind: it lists all kinds, as there are few."""
    near = find_near_name(kind, KINDS)
    hint = f"did you mean {near!r}? " if near else ""
    return f"unknown kind {show_value(kind)}; {hint}kinds: {', '.join(KINDS)}"


class Source(NamedTuple):
    """Which distribution a component comes from."""

    distribution: str
    version: str

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}".strip()


class Entry(NamedTuple):
    """A registered component, engine or command."""

    kind: str
    """A kind of component, `engine` or `command`."""
    name: str
    source: Source
    registered: Registered
    rivals: tuple[Source, ...] = ()
    """Distributions that claim the same name; what has rivals cannot be used."""


class Broken(NamedTuple):
    """A plugin that could not be registered."""

    plugin: str
    source: Source
    reason: str
    trace: str


class Catalog:
    """The components, engines and commands that are installed; the plugins that are broken."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, str], Entry] = {}
        self.broken: list[Broken] = []
        self.left_out: list[Source] = []
        """Distributions whose plugins the user forbids."""

    def of_kind(self, kind: str) -> list[Entry]:
        """Entries of a kind, by name."""
        return sorted((e for e in self.entries.values() if e.kind == kind), key=lambda e: e.name)

    def entry(self, kind: str, name: str) -> Entry:
        """The entry of a name.

        Raises
        ------
        NameUnknownError
            If the kind or the name is unknown, or not a string.
        PluginError
            If two distributions claim the name.
        """
        if not isinstance(kind, str) or kind not in KINDS:
            raise NameUnknownError(explain_unknown_kind(kind))
        if not isinstance(name, str):
            raise NameUnknownError(f"{kind}: must be the name of one, not {show_value(name)}")
        return self._find(kind, name)

    def _find(self, kind: str, name: str) -> Entry:
        """As `entry`, of an engine or a command, too."""
        try:
            entry = self.entries[kind, name]
        except KeyError:
            hint = self.explain_missing(kind, name)
            raise NameUnknownError(f"unknown {kind} {name!r}; {hint}") from None
        if entry.rivals:
            owners = dict.fromkeys(map(str, (entry.source, *entry.rivals)))
            claimants = f"{' and '.join(owners)}; uninstall all but one"
            if len(owners) == 1:
                claimants = f"{entry.source} more than once"
            raise PluginError(f"{kind} {name!r} is provided by {claimants}")
        return entry

    def explain_missing(self, kind: str, name: str) -> str:
        """A hint for a component, an engine or a command that is not installed."""
        left_out = ", ".join(map(str, self.left_out))
        package = OWN_PLUGINS.get((kind, name))
        if package is None or any(each.distribution == package for each in self.left_out):
            known = [other.name for other in self.of_kind(kind)]
            if others := [own for own, other in self.entries if other == name and own in KINDS]:
                return f"{name!r} is {' and '.join(map(add_article, others))}"
            missing = "" if find_near_name(name, known) else (
                "; if a plugin has it, install that first (`fpbench plugins` lists what is there)"
            )  # fmt: skip
            hint = f" ({left_out} left out: --no-third-party)" if left_out else missing
            return suggest_name(name, known) + hint
        if any(each.source.distribution == package for each in self.broken):
            return f"the plugin {package} has it, and is broken here: `fpbench plugins` says why"
        return (
            f"the plugin {package} has it, which is not installed; in a checkout of fpbench: pip "
            f"install ./plugins/{package}"
        )

    def component(self, kind: str, name: str) -> type[Component]:
        """The class of a component, imported on first use.

        Raises
        ------
        NameUnknownError
            If the kind or the name is unknown.
        PluginError
            If its import fails, or the imported object is not the registered component.
        """
        entry = self.entry(kind, name)
        return _check_class(_import(entry), entry)

    def load(self, kind: str, name: str) -> Any:
        """The object of an engine or a command; errors are those of `component`."""
        return _import(self._find(kind, name))

    def summary(self, entry: Entry) -> str:
        """The one-line summary of a component or an engine, mostly without importing it.

        Raises
        ------
        PluginError
            If it has to be imported, and the import fails.
        """
        lazy = entry.registered
        written = _read_summary(lazy.target) if isinstance(lazy, Lazy) else None
        if written:
            return written
        made = self.component(entry.kind, entry.name) if entry.kind in KINDS else _import(entry)
        return str(made.summary)

    def __iter__(self) -> Iterator[Entry]:
        return (entry for kind in KINDS for entry in self.of_kind(kind))


_SUMMARY = re.compile(r"^ +summary\b.*(?:\n(?: {5,}.*| +\)))*", re.MULTILINE)
"""An assignment to `summary`, with its continuation lines."""


def _read_summary(target: str) -> str | None:
    """The `summary` in the source of a class, so that a listing imports nothing."""
    import ast

    module, _, name = target.partition(":")
    try:
        spec = importlib.util.find_spec(module)
        if spec is None or spec.origin is None or not spec.has_location:
            return None
        source = Path(spec.origin).read_text(encoding="utf-8")
        # A pattern with the name in it would have to be compiled for each component.
        classes = re.finditer(r"^class (\w+)", source, re.MULTILINE)
        start = next((each for each in classes if each[1] == name), None)
        if start is None:
            return None
        # Up to that statement only: the rest of a class takes long to parse. If the statement is
        # not of this class, the cut-off text is not valid Python, or has no summary.
        end = _SUMMARY.search(source, start.end())
        (found,) = ast.parse(source[start.start() : end.end()]).body if end else (None,)
    except (ImportError, OSError, SyntaxError, ValueError):  # an import reports these
        return None
    for line in found.body if isinstance(found, ast.ClassDef) else ():
        match line:
            case ast.Assign(targets=[ast.Name("summary")], value=ast.Constant(str(text))):
                return text
            case ast.AnnAssign(target=ast.Name("summary"), value=ast.Constant(str(text))):
                return text
    return None


def _import(entry: Entry) -> Any:
    if not isinstance(entry.registered, Lazy):
        return entry.registered
    module, _, attribute = entry.registered.target.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (Exception, SystemExit) as error:
        raise PluginError(
            f"{entry.kind} {entry.name!r} of {entry.source} fails on import: "
            f"{type(error).__name__}: {error}"
        ) from error


def _check_class(candidate: Any, entry: Entry) -> type[Component]:
    from fpbench.components.auditor import BASES
    from fpbench.components.own_measures import why_not_declarable

    base = BASES[entry.kind]
    if not (isinstance(candidate, type) and issubclass(candidate, base)):
        raise PluginError(
            f"{entry.kind} {entry.name!r} of {entry.source} is not a subclass of {base.__name__}"
        )
    if candidate.name != entry.name:
        raise PluginError(
            f"{entry.kind} {entry.name!r} of {entry.source} calls itself {candidate.name!r}"
        )
    if wrong := why_not_declarable(candidate.measures):
        raise PluginError(f"{entry.kind} {entry.name!r} of {entry.source}: measures: {wrong}")
    return candidate


@cache
def discover() -> Catalog:
    """The catalog of all installed plugins: one per process, made on first use.

    If third parties are forbidden (`fpbench.base.trust`), their code is not even imported.
    """
    return _register_all((point, _find_source(point)) for point in list_entry_points())


def _register_all(points: Iterable[tuple[EntryPoint, Source]]) -> Catalog:
    catalog, everyone = Catalog(), allows_third_party()
    manager = pluggy.PluginManager("fpbench")
    manager.add_hookspecs(HOOKS)
    for point, source in sorted(points, key=lambda p: (p[0].name, p[0].value)):
        if everyone or point.value.partition(".")[0] == _OURS:
            _register(catalog, manager, point, source)
        else:
            catalog.left_out.append(source)
    return catalog


def discover_in(path: Path) -> tuple[Catalog, Source]:
    """The catalog of installed plugins and those of a path, and the source of the latter.

    The path is a folder with a `pyproject.toml` that names plugins, a package, or a module;
    InputError if it has no plugin. Installed plugins of the same distribution or module are left
    out.
    """
    from importlib.metadata import EntryPoint

    source, folder, values = _read_plugins(path.resolve())
    for place in (folder, folder / "src"):
        if place.is_dir() and str(place) not in sys.path:
            sys.path.insert(0, str(place))
    importlib.invalidate_caches()
    modules = {value.partition(":")[0] for value in values.values()}
    installed = [
        (point, own_source)
        for point in list_entry_points()
        if normalize_name((own_source := _find_source(point)).distribution)
        != normalize_name(source.distribution)
        and point.value.partition(":")[0] not in modules
    ]
    own = [(EntryPoint(name, value, GROUP), source) for name, value in values.items()]
    return _register_all([*installed, *own]), source


def _read_plugins(path: Path) -> tuple[Source, Path, dict[str, str]]:
    """Source of the plugins of a path, their import folder, and modules by plugin name."""
    import tomllib

    project = path / "pyproject.toml"
    if project.is_file():
        try:
            project_table = tomllib.loads(project.read_text(encoding="utf-8")).get("project", {})
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{project}: {error}") from None
        values = project_table.get("entry-points", {}).get(GROUP, {})
        if not values:
            raise InputError(
                f"{project}: has no [project.entry-points.{GROUP}], so it is not a plugin"
            )
        return (
            Source(project_table.get("name", path.name), str(project_table.get("version", ""))),
            path,
            values,
        )
    module = path.suffix == ".py" and path.is_file()
    if not module and not (path / "__init__.py").is_file():
        what = "no pyproject.toml and no __init__.py in it" if path.is_dir() else "no such module"
        raise InputError(f"{path}: is not a plugin: {what}")
    if not path.stem.isidentifier():
        raise InputError(f"{path}: {path.stem!r} is not a module name: use letters, digits and _")
    return Source(path.stem, ""), path.parent, {path.stem: path.stem}


def _find_source(point: EntryPoint) -> Source:
    dist = point.dist
    return Source(dist.name, dist.version) if dist else Source(point.value, "")


def _register(
    catalog: Catalog, manager: pluggy.PluginManager, point: EntryPoint, source: Source
) -> None:
    """Register one plugin; its failure becomes a row of the catalog."""
    name = f"{source.distribution}:{point.name}"
    try:
        plugin = point.load()
        manager.register(plugin, name)
        manager.check_pending()
        entries = list(_list_offers(manager, plugin, source))
    except (Exception, SystemExit) as error:  # a third-party plugin may raise anything
        if manager.has_plugin(name):
            manager.unregister(name=name)
        import traceback

        catalog.broken.append(
            Broken(
                point.name,
                source,
                f"{type(error).__name__}: {error}".splitlines()[0],
                traceback.format_exc(),
            )
        )
        return
    for entry in entries:
        _add_entry(catalog, entry)


def _list_offers(manager: pluggy.PluginManager, plugin: object, source: Source) -> Iterable[Entry]:
    others = [other for other in manager.get_plugins() if other is not plugin]
    for kind, hook in OFFERED.items():
        for offered in manager.subset_hook_caller(hook, remove_plugins=others)():
            for registered in offered:
                yield Entry(kind, registered.name, source, registered)


def _add_entry(catalog: Catalog, entry: Entry) -> None:
    key = entry.kind, entry.name
    rival = catalog.entries.get(key)
    if rival is not None:
        entry = Entry(*key, rival.source, rival.registered, (*rival.rivals, entry.source))
    catalog.entries[key] = entry
