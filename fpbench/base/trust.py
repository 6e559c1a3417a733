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
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from importlib.metadata import Distribution, EntryPoint

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

    It may if its files lie where an accepted distribution installed its package: scikit-learn, one
    that requires scikit-learn (even in an extra), or a plugin; or if it belongs to a package that
    the user names in `FPBENCH_IMPORTS`, such as one installed in editable mode. The check imports
    nothing. Importing a package may change where Python looks for its modules: call this again for
    each of them.
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
    return _explain_refusal(module, package, hint)


def _explain_refusal(module: str, package: str, hint: str) -> str | None:
    for name, spec in _find_modules(module):
        if spec is None:
            return f"there is no module {name!r}; is it installed?"
        file = spec.origin if spec.has_location else None
        if not _is_bare(spec) and (file is None or not _is_installed(file, package)):
            source = f"{_SKLEARN}, what requires it, or a plugin"
            return (
                f"module {name!r} ({file or 'no file'}) did not come with "
                f"{_SKLEARN if package == 'sklearn' else source}, so it is not imported{hint}"
            )
    return None


def _find_modules(module: str) -> Iterator[tuple[str, ModuleSpec | None]]:
    """The packages around a module, outermost first, then the module; imports none of them.

    The spec is None, and the last, if there is no such module.
    """
    path: Sequence[str] | None = None
    for name in accumulate(module.split("."), "{}.{}".format):
        loaded = sys.modules.get(name)
        spec = getattr(loaded, "__spec__", None)
        if spec is None and (path is not None or "." not in name):
            finders = [finder for finder in sys.meta_path if hasattr(finder, "find_spec")]
            specs = (finder.find_spec(name, path) for finder in finders)
            spec = next((found for found in specs if found is not None), None)
        yield name, spec
        if spec is None:
            return
        path = getattr(loaded, "__path__", None) if loaded else spec.submodule_search_locations


def _is_bare(spec: ModuleSpec) -> bool:
    """Whether it is of a namespace package, which has no code."""
    return spec.origin is None and spec.submodule_search_locations is not None


def _is_installed(file: str, package: str) -> bool:
    """Whether a file is in the package that an accepted distribution installed."""
    places = _list_places(package, _list_install_folders())
    for path in {os.path.abspath(file), os.path.realpath(file)}:
        for place in {*map(os.path.abspath, places), *map(os.path.realpath, places)}:
            if Path(path).is_relative_to(place):
                top = Path(path).relative_to(place).parts[0]
                if top.partition(".")[0] == package:
                    return True
    return False


@cache
def _list_places(package: str, folders: tuple[str, ...]) -> list[str]:
    """Folders in which accepted distributions installed a top-level package."""
    from importlib import metadata

    # scikit-learn is the most frequent case, and reading all others takes long.
    name = _SKLEARN if package == "sklearn" else None
    return [
        str(dist.locate_file(""))
        for dist in metadata.distributions(path=list(folders), name=name)
        if package in _list_packages(dist) and (name or _is_accepted(dist))
    ]


def _list_packages(dist: Distribution) -> set[str]:
    listed = {file.parts[0].partition(".")[0] for file in dist.files or ()}
    return listed | set((dist.read_text("top_level.txt") or "").split())


def _is_accepted(dist: Distribution) -> bool:
    required = (re.match(r"[\w.-]*", line) for line in dist.requires or ())
    names = [dist.name or "", *(match.group() for match in required if match)]
    return bool(dist.entry_points.select(group=_PLUGINS)) or _SKLEARN in map(normalize_name, names)


def list_entry_points(group: str) -> list[EntryPoint]:
    """Entry points of installed distributions, not of a folder beside the matrix."""
    from importlib import metadata

    points: dict[str, list[EntryPoint]] = {}
    for dist in metadata.distributions(path=list(_list_install_folders())):
        if found := list(dist.entry_points.select(group=group)):
            points.setdefault(normalize_name(dist.name), found)  # imports find the first copy
    return [point for found in points.values() for point in found]


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


def normalize_name(name: str) -> str:
    """The name of a distribution in the normal form of PyPI."""
    return re.sub(r"[-_.]+", "-", name).lower()
