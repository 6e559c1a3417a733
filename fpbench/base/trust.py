"""Whose code may run: what the user allows, in this process and in the workers that it starts.

A matrix is data, and may come from a stranger. Code comes from what is installed: from plugins,
unless the user forbids them, and from distributions that build on scikit-learn, whose classifiers a
matrix may name by import path. What counts is the file that would be imported, not its name: a
folder beside the matrix may have any name. What the user says is kept in environment variables,
which workers inherit; a matrix cannot set them.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from importlib.metadata import Distribution, EntryPoint

NO_THIRD_PARTY = "FPBENCH_NO_THIRD_PARTY"
"""Environment variable: 1 if only built-in components are to be loaded."""
IMPORTS = "FPBENCH_IMPORTS"
"""Environment variable: packages, joined by commas, that a matrix may name besides."""

_SKLEARN = "scikit-learn"
_PLUGINS = "fpbench"
"""The group of entry points that makes a distribution a plugin."""


def forbid_third_party() -> None:
    """From now on, load built-in components only: for this process, and those it starts."""
    os.environ[NO_THIRD_PARTY] = "1"


def third_party_allowed() -> bool:
    """Whether plugins of other distributions may be loaded."""
    return os.environ.get(NO_THIRD_PARTY, "") in ("", "0")


def why_not(module: str) -> str | None:
    """Why a module that a matrix names is not imported; None if it may be.

    It may if every file that would run came with an accepted distribution: scikit-learn, one that
    requires scikit-learn (be it in an extra), or a plugin. It may, too, if it belongs to a package
    that the user names in `FPBENCH_IMPORTS`. Nothing is imported to find out. What a package does
    when it is imported may change where its modules are looked for: ask about them again then.
    """
    package = module.partition(".")[0]
    if package in sys.stdlib_module_names:
        return "it is part of Python itself"
    if module.rpartition(".")[2] == "__main__":
        return "it is a program"
    if third_party_allowed():
        if package in os.environ.get(IMPORTS, "").split(","):
            return None
        hint = f"; if you trust it: {IMPORTS}={package}"
    elif package == "sklearn":
        hint = ""
    else:
        return "without third parties, only classes of scikit-learn may be named"
    refusals = (_refusal(part, package, hint) for part in _parts(module))
    return next(filter(None, refusals), None)


def _refusal(part: _Part, package: str, hint: str) -> str | None:
    if not part.exists:
        return f"there is no module {part.name!r}; is it installed?"
    if part.runs_nothing:
        return None
    if any(dist.brought(part) for dist in _accepted(_places(), package == "sklearn")):
        return None
    source = _SKLEARN if package == "sklearn" else f"{_SKLEARN}, what requires it, or a plugin"
    named = f"module {part.name!r} ({part.file or 'no file'})"
    return f"{named} did not come with {source}, so it is not imported{hint}"


def installed_entry_points(group: str) -> list[EntryPoint]:
    """Entry points of what is installed; a folder beside the matrix is not."""
    seen: dict[str, Distribution] = {}
    for dist in _distributions(_places()):
        seen.setdefault(normal(dist.name or ""), dist)  # of two copies, imports find the first
    return [point for dist in seen.values() for point in dist.entry_points if point.group == group]


@dataclass(frozen=True)
class _Part:
    """A module that an import would run: the one that is wanted, or a package around it."""

    name: str
    exists: bool
    file: str | None = None
    """Where its code lies; None if that is not known."""
    runs_nothing: bool = False
    """Whether it is a folder without code (a namespace package)."""
    finder: str | None = None
    """The file of the code that found it."""


def _parts(module: str) -> Iterator[_Part]:
    """The packages around a module, outermost first, and the module."""
    names = module.split(".")
    path: Iterable[str] | None = None
    for i in range(len(names)):
        name = ".".join(names[: i + 1])
        loaded = sys.modules.get(name)
        spec, finder = _find(name, path) if i == 0 or path is not None else (None, None)
        spec = getattr(loaded, "__spec__", None) or spec
        if spec is None:
            yield _Part(name, exists=False)
            return
        file = os.path.abspath(spec.origin) if spec.origin and spec.has_location else None
        bare = spec.origin is None and spec.submodule_search_locations is not None
        yield _Part(name, True, file, bare, finder)
        path = getattr(loaded, "__path__", None) if loaded else spec.submodule_search_locations


def _find(name: str, path: Iterable[str] | None) -> tuple[ModuleSpec | None, str | None]:
    """As an import finds a module, without importing the packages around it."""
    for finder in sys.meta_path:
        find: Any = getattr(finder, "find_spec", None)
        spec = find(name, path, None) if find else None
        if spec is not None:
            code = sys.modules.get(getattr(finder, "__module__", ""))
            return spec, getattr(code, "__file__", None)
    return None, None


# What is installed


def _places() -> tuple[str, ...]:
    """Where installed distributions lie: the import path without what merely lies about.

    Python puts the current folder, or that of a script, before all others. A matrix may lie there,
    and beside it a folder that looks like an installed distribution. The same folder a second time,
    or as one of Python's own for what is installed, is there because somebody installed something.
    """
    import site

    own = {os.path.realpath(p) for p in (*site.getsitepackages(), site.getusersitepackages())}
    about = _folders_about() - own
    kept = []
    for entry in sys.path:
        folder = os.path.realpath(entry) if entry not in ("", os.curdir) else None
        if folder in about:
            about.discard(folder)
        elif folder is not None:
            kept.append(entry)
    return tuple(kept)


def _folders_about() -> set[str | None]:
    """The current folder, and that of the script that runs."""
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    try:
        here = os.path.realpath(os.curdir)
    except FileNotFoundError:  # it was deleted
        here = None
    return {here, os.path.dirname(os.path.realpath(main)) if main else here} - {None}


def _distributions(places: tuple[str, ...], name: str | None = None) -> Iterable[Distribution]:
    """All, or those of a name."""
    from importlib import metadata

    return metadata.distributions(path=list(places), name=name)


@cache
def _accepted(places: tuple[str, ...], sklearn_only: bool) -> list[_Brought]:
    """What scikit-learn brought; and what those brought that require it, and plugins."""
    if sklearn_only:  # most often asked for, and reading about all others takes long
        return [_Brought.of(dist) for dist in _distributions(places, _SKLEARN)]
    return [_Brought.of(dist) for dist in _distributions(places) if _is_trusted(dist)]


def _is_trusted(dist: Distribution) -> bool:
    required = (re.match(r"[\w.-]*", line) for line in dist.requires or ())
    plugin = any(point.group == _PLUGINS for point in dist.entry_points)
    names = [dist.name or "", *(match.group() for match in required if match)]
    return plugin or _SKLEARN in map(normal, names)


@dataclass(frozen=True)
class _Brought:
    """What a distribution can have imported."""

    packages: frozenset[str]
    """Names of modules and packages at the top, as far as they are known."""
    places: tuple[str, ...]
    """The folder that it is installed in, as the import path has it, and without links."""
    files: frozenset[str] | None
    """Relative to that folder; None if it does not say which files are its own."""
    source: str | None
    """The folder of its source, if it is installed to be edited."""
    linked: tuple[str, ...]
    """Folders there that it put on the import path."""

    @classmethod
    def of(cls, dist: Distribution) -> _Brought:
        listed = None if dist.files is None else [str(file) for file in dist.files]
        names = {file.partition(os.sep)[0].partition(".")[0] for file in listed or ()}
        names |= set((dist.read_text("top_level.txt") or "").split())
        place = os.path.abspath(str(dist.locate_file("")))
        source = _editable_source(dist)
        links = [file for file in listed or () if file.endswith(".pth")] if source else []
        return cls(
            packages=frozenset(names),
            places=tuple({place, os.path.realpath(place)}),
            files=None if listed is None else frozenset(map(os.path.normpath, listed)),
            source=source,
            linked=tuple(folder for link in links for folder in _folders(Path(place, link))),
        )

    def brought(self, part: _Part) -> bool:
        """Whether it installed the file of a module, or links to it in its source."""
        if part.file is None:
            return False
        real = os.path.realpath(part.file)
        if self.files is None:
            named = part.name.partition(".")[0] in self.packages
            return named and any(_lies(real, part.name, place) for place in self.places)
        if self._installed(part.file) or self._installed(real):
            return True
        if self.source is None or not Path(real).is_relative_to(self.source):
            return False
        finds = part.finder is not None and self._installed(part.finder)
        return finds or any(_lies(real, part.name, folder) for folder in self.linked)

    def _installed(self, file: str) -> bool:
        return self.files is not None and any(
            Path(file).is_relative_to(place) and os.path.relpath(file, place) in self.files
            for place in self.places
        )


def _lies(file: str, module: str, folder: str) -> bool:
    """Whether a file is where a folder of the import path has a module of that name."""
    if not Path(file).is_relative_to(folder):
        return False
    *parents, last = Path(file).relative_to(folder).parts
    stem = last.partition(".")[0]
    return [*parents, *([] if stem == "__init__" else [stem])] == module.split(".")


def _editable_source(dist: Distribution) -> str | None:
    """Where the source of a distribution lies that is installed to be edited (PEP 610)."""
    try:
        said = json.loads(dist.read_text("direct_url.json") or "{}")
        if said.get("dir_info", {}).get("editable") is not True:
            return None
        return os.path.realpath(unquote(urlparse(said["url"]).path))
    except (ValueError, KeyError, AttributeError, TypeError):
        return None


def _folders(link: Path) -> Iterator[str]:
    """The folders that a .pth file puts on the import path."""
    try:
        lines = link.read_text().splitlines()
    except (OSError, UnicodeError):
        return
    for line in lines:
        if line.strip() and not line.startswith(("#", "import ", "import\t")):
            yield os.path.realpath(link.parent / line.strip())


def normal(name: str) -> str:
    """The name of a distribution as PyPI compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()
