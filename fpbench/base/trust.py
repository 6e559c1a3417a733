"""Which code may be imported, in this process and in the workers that it starts.

A matrix is data, and may come from a stranger. Code comes from installed distributions only: from
plugins, unless the user forbids them, and from distributions that build on scikit-learn, whose
classifiers a matrix may name by import path. What counts is the file that would be imported, not
the module's name: a folder beside the matrix may have any name. The user's choices are environment
variables, which workers inherit and a matrix cannot set.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from importlib.metadata import Distribution

NO_THIRD_PARTY = "FPBENCH_NO_THIRD_PARTY"
"""Environment variable: 1 to load built-in components only."""
IMPORTS = "FPBENCH_IMPORTS"
"""Environment variable: further packages, joined by commas, that a matrix may name."""

_SKLEARN = "scikit-learn"
_PLUGINS = "fpbench"
"""The group of entry points that makes a distribution a plugin."""


def forbid_third_party() -> None:
    """Load built-in components only, in this process and those it starts."""
    os.environ[NO_THIRD_PARTY] = "1"


def allows_third_party() -> bool:
    """Whether plugins of other distributions may be loaded."""
    return os.environ.get(NO_THIRD_PARTY, "") in ("", "0")


def why_not_importable(module: str) -> str | None:
    """Why a module that a matrix names may not be imported; None if it may.

    It may if every file that would run came with an accepted distribution: scikit-learn, one that
    requires scikit-learn (even in an extra), or a plugin; or if it belongs to a package that the
    user names in `FPBENCH_IMPORTS`. The check imports nothing. Importing a package may change where
    Python looks for its modules: call this again for each of them.
    """
    package = module.partition(".")[0]
    if package in sys.stdlib_module_names:
        return "it is part of Python itself"
    if module.rpartition(".")[2] == "__main__":
        return "it is a program"
    if allows_third_party():
        if package in os.environ.get(IMPORTS, "").split(","):
            return None
        hint = f"; if you trust it: {IMPORTS}={package}"
    elif package == "sklearn":
        hint = ""
    else:
        return "without third parties, only classes of scikit-learn may be named"
    refusals = (_explain_refusal(part, package, hint) for part in _list_modules(module))
    return next(filter(None, refusals), None)


def _explain_refusal(part: _ImportedModule, package: str, hint: str) -> str | None:
    if not part.exists:
        return f"there is no module {part.name!r}; is it installed?"
    if part.runs_nothing:
        return None
    if any(
        dist.includes(part)
        for dist in _list_accepted(_list_install_folders(), package == "sklearn")
    ):
        return None
    source = _SKLEARN if package == "sklearn" else f"{_SKLEARN}, what requires it, or a plugin"
    named = f"module {part.name!r} ({part.file or 'no file'})"
    return f"{named} did not come with {source}, so it is not imported{hint}"


class PluginEntry(NamedTuple):
    """An entry point of an installed distribution."""

    name: str
    value: str
    """`package.module`, or `package.module:object`; extras in brackets may follow."""
    distribution: str = ""
    version: str = ""

    def load(self) -> Any:
        """The object that it names, imported."""
        named = self.value.partition("[")[0].replace(" ", "")
        module, _, path = named.partition(":")
        return attrgetter(path)(import_module(module)) if path else import_module(module)


def list_entry_points(group: str) -> list[PluginEntry]:
    """Entry points of installed distributions, not of a folder beside the matrix.

    Read from the files themselves: importing `importlib.metadata` takes longer than all the rest.
    """
    points, names = [], set()
    for folder in _list_install_folders():
        for info in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            if not info.endswith((".dist-info", ".egg-info")):
                continue
            name = normalize_name(os.path.splitext(info)[0].partition("-")[0])
            if name not in names:
                names.add(name)  # imports find the first copy
                points += _read_entry_points(os.path.join(folder, info), group)
    return points


def _read_entry_points(info: str, group: str) -> list[PluginEntry]:
    """The entry points that the metadata of a distribution list in a group."""
    _, _, listed = _read_text(info, "entry_points.txt").partition(f"[{group}]\n")
    lines = [line.strip() for line in listed.partition("\n[")[0].splitlines()]
    pairs = [line.partition("=") for line in lines if line and not line.startswith(("#", ";"))]
    if not pairs:
        return []
    head, _, _ = (_read_text(info, "METADATA") or _read_text(info, "PKG-INFO")).partition("\n\n")
    fields = dict(line.partition(": ")[::2] for line in reversed(head.splitlines()))
    name, version = fields.get("Name", ""), fields.get("Version", "")
    return [PluginEntry(key.strip(), value.strip(), name, version) for key, _, value in pairs]


def _read_text(folder: str, name: str) -> str:
    try:
        return Path(folder, name).read_text(encoding="utf-8")
    except (OSError, UnicodeError):
        return ""


@dataclass(frozen=True)
class _ImportedModule:
    """A module that an import would run: the one named, or a package around it."""

    name: str
    exists: bool
    file: str | None = None
    """Path of its code; None if unknown."""
    runs_nothing: bool = False
    """Whether it is a namespace package, which has no code."""
    finder: str | None = None
    """File of the import finder that locates it."""


def _list_modules(module: str) -> Iterator[_ImportedModule]:
    """The packages around a module, outermost first, then the module."""
    names = module.split(".")
    path: Iterable[str] | None = None
    for i in range(len(names)):
        name = ".".join(names[: i + 1])
        loaded = sys.modules.get(name)
        spec, finder = _find(name, path) if i == 0 or path is not None else (None, None)
        spec = getattr(loaded, "__spec__", None) or spec
        if spec is None:
            yield _ImportedModule(name, exists=False)
            return
        file = os.path.abspath(spec.origin) if spec.origin and spec.has_location else None
        bare = spec.origin is None and spec.submodule_search_locations is not None
        yield _ImportedModule(name, True, file, bare, finder)
        path = getattr(loaded, "__path__", None) if loaded else spec.submodule_search_locations


def _find(name: str, path: Iterable[str] | None) -> tuple[ModuleSpec | None, str | None]:
    """The spec of a module as an import finds it, and its finder's file; imports no package."""
    for finder in sys.meta_path:
        find: Any = getattr(finder, "find_spec", None)
        spec = find(name, path, None) if find else None
        if spec is not None:
            code = sys.modules.get(getattr(finder, "__module__", ""))
            return spec, getattr(code, "__file__", None)
    return None, None


def _list_install_folders() -> tuple[str, ...]:
    """Folders of installed distributions: the import path without the current or script folder.

    Python puts the current folder, or that of a script, before all others. A matrix may lie there,
    and beside it a folder that looks like an installed distribution. If the same folder is on the
    path a second time, or is a site-packages folder, somebody installed something there.
    """
    import site

    site_packages = {
        os.path.realpath(p) for p in (*site.getsitepackages(), site.getusersitepackages())
    }
    excluded = _list_script_folders() - site_packages
    folders = []
    for entry in sys.path:
        folder = os.path.realpath(entry) if entry not in ("", os.curdir) else None
        if folder in excluded:
            excluded.discard(folder)
        elif folder is not None:
            folders.append(entry)
    return tuple(folders)


def _list_script_folders() -> set[str | None]:
    """The current folder, and the folder of the running script."""
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    try:
        current = os.path.realpath(os.curdir)
    except FileNotFoundError:  # it was deleted
        current = None
    return {current, os.path.dirname(os.path.realpath(main)) if main else current} - {None}


def _list_distributions(places: tuple[str, ...], name: str | None = None) -> Iterable[Distribution]:
    """All distributions, or those of a name."""
    from importlib import metadata

    return metadata.distributions(path=list(places), name=name)


@cache
def _list_accepted(places: tuple[str, ...], sklearn_only: bool) -> list[_InstalledFiles]:
    """Files of scikit-learn, of distributions that require it, and of plugins."""
    if sklearn_only:  # the most frequent case, and reading all others takes long
        return [_InstalledFiles.of(dist) for dist in _list_distributions(places, _SKLEARN)]
    return [_InstalledFiles.of(dist) for dist in _list_distributions(places) if _is_trusted(dist)]


def _is_trusted(dist: Distribution) -> bool:
    required = (re.match(r"[\w.-]*", line) for line in dist.requires or ())
    plugin = any(point.group == _PLUGINS for point in dist.entry_points)
    names = [dist.name or "", *(match.group() for match in required if match)]
    return plugin or _SKLEARN in map(normalize_name, names)


@dataclass(frozen=True)
class _InstalledFiles:
    """The modules that a distribution installed."""

    packages: frozenset[str]
    """Names of top-level modules and packages, as far as known."""
    places: tuple[str, ...]
    """The folder it is installed in, as the import path has it, and with links resolved."""
    files: frozenset[str] | None
    """Its files, relative to that folder; None if its metadata do not list them."""
    source: str | None
    """The folder of its source, if it is an editable install."""
    linked: tuple[str, ...]
    """Folders of its source that it put on the import path."""

    @classmethod
    def of(cls, dist: Distribution) -> _InstalledFiles:
        listed = None if dist.files is None else [str(file) for file in dist.files]
        names = {file.partition(os.sep)[0].partition(".")[0] for file in listed or ()}
        names |= set((dist.read_text("top_level.txt") or "").split())
        place = os.path.abspath(str(dist.locate_file("")))
        source = _find_editable_source(dist)
        links = [file for file in listed or () if file.endswith(".pth")] if source else []
        return cls(
            packages=frozenset(names),
            places=tuple({place, os.path.realpath(place)}),
            files=None if listed is None else frozenset(map(os.path.normpath, listed)),
            source=source,
            linked=tuple(
                folder for link in links for folder in _list_linked_folders(Path(place, link))
            ),
        )

    def includes(self, part: _ImportedModule) -> bool:
        """Whether the distribution installed a module's file, or links to it in its source."""
        if part.file is None:
            return False
        real = os.path.realpath(part.file)
        if self.files is None:
            named = part.name.partition(".")[0] in self.packages
            return named and any(_is_module_file(real, part.name, place) for place in self.places)
        if self._installed(part.file) or self._installed(real):
            return True
        if self.source is None or not Path(real).is_relative_to(self.source):
            return False
        finds = part.finder is not None and self._installed(part.finder)
        return finds or any(_is_module_file(real, part.name, folder) for folder in self.linked)

    def _installed(self, file: str) -> bool:
        return self.files is not None and any(
            Path(file).is_relative_to(place) and os.path.relpath(file, place) in self.files
            for place in self.places
        )


def _is_module_file(file: str, module: str, folder: str) -> bool:
    """Whether a file is the module of that name in a folder of the import path."""
    if not Path(file).is_relative_to(folder):
        return False
    *parents, last = Path(file).relative_to(folder).parts
    stem = last.partition(".")[0]
    return [*parents, *([] if stem == "__init__" else [stem])] == module.split(".")


def _find_editable_source(dist: Distribution) -> str | None:
    """The source folder of an editable install (PEP 610); None of any other."""
    import json
    from urllib.parse import unquote, urlparse

    try:
        origin = json.loads(dist.read_text("direct_url.json") or "{}")
        if origin.get("dir_info", {}).get("editable") is not True:
            return None
        return os.path.realpath(unquote(urlparse(origin["url"]).path))
    except (ValueError, KeyError, AttributeError, TypeError):
        return None


def _list_linked_folders(link: Path) -> Iterator[str]:
    """The folders that a .pth file puts on the import path."""
    try:
        lines = link.read_text().splitlines()
    except (OSError, UnicodeError):
        return
    for line in lines:
        if line.strip() and not line.startswith(("#", "import ", "import\t")):
            yield os.path.realpath(link.parent / line.strip())


def normalize_name(name: str) -> str:
    """The name of a distribution in the normal form of PyPI."""
    return re.sub(r"[-_.]+", "-", name).lower()
