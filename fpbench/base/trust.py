"""Which code may be imported, in this process and in the workers that it starts.

A matrix is data, and may come from a stranger. Code comes from installed distributions only: from
plugins, unless the user forbids them, and from a list of distributions of classifiers. What counts
is the file that would be imported, not the module's name: a folder beside the matrix may have any
name. The user's choices are environment variables, which workers inherit and a matrix cannot set.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

NO_THIRD_PARTY = "FPBENCH_NO_THIRD_PARTY"
"""Environment variable: 1 to load built-in components only."""
IMPORTS = "FPBENCH_IMPORTS"
"""Environment variable: further packages, joined by commas, that a matrix may name."""
ALLOWED = {
    "sklearn": "scikit-learn", "fairlearn": "fairlearn", "imblearn": "imbalanced-learn",
    "xgboost": "xgboost", "lightgbm": "lightgbm", "catboost": "catboost",
    "interpret": "interpret-core", "imodels": "imodels", "skorch": "skorch",
}  # fmt: skip
"""Distributions of classifiers that a matrix may name by import path, by their package."""
GROUP = "fpbench"
"""The group of entry points that makes a distribution a plugin."""


def forbid_third_party() -> None:
    """Load built-in components only, in this process and those it starts."""
    os.environ[NO_THIRD_PARTY] = "1"


def allows_third_party() -> bool:
    """Whether plugins of other distributions may be loaded."""
    return os.environ.get(NO_THIRD_PARTY, "") in ("", "0")


def why_not_importable(module: str) -> str | None:
    """Why a module that a matrix names may not be imported; None if it may.

    It may if its package is of a distribution of `ALLOWED` or of a plugin, and Python finds it
    where that is installed; or if the user names the package in `FPBENCH_IMPORTS`, such as one
    installed in editable mode. The check imports nothing.
    """
    package, hint = module.partition(".")[0], ""
    if package in sys.stdlib_module_names or module.rpartition(".")[2] == "__main__":
        return "it is part of Python itself, or a program"
    if allows_third_party():
        if package in os.environ.get(IMPORTS, "").split(","):
            return None
        hint = f"; if you trust it: {IMPORTS}={package}"
    elif package != "sklearn":
        return "without third parties, only classes of scikit-learn may be named"
    spec = find_spec(package)
    if spec is None:
        return f"there is no module {package!r}; is it installed?"
    files = [spec.origin] if spec.has_location else list(spec.submodule_search_locations or ())
    places = _list_places(package)
    if files and all(any(_is_in(file, place) for place in places) for file in files):
        return None
    return (
        f"module {package!r} ({', '.join(map(str, files)) or 'no file'}) did not come with "
        f"{', '.join(ALLOWED.values())} or a plugin, so it is not imported{hint}"
    )


def _list_places(package: str) -> list[str]:
    """Folders in which a package of an allowed distribution or a plugin was installed."""
    from importlib import metadata

    if package in ALLOWED:
        dists = [*metadata.distributions(name=ALLOWED[package], path=_list_install_folders())]
    else:
        points = list_entry_points()
        dists = [p.dist for p in points if p.dist and p.module.partition(".")[0] == package]
    return [str(dist.locate_file("")) for dist in dists]


def _is_in(file: str | None, folder: str) -> bool:
    """Whether a file is in a folder, links followed or not."""
    forms = (os.path.abspath, os.path.realpath)
    return any(Path(a(file or "/")).is_relative_to(b(folder)) for a in forms for b in forms)


def list_entry_points() -> list[EntryPoint]:
    """Plugins of installed distributions, not of a folder beside the matrix."""
    from importlib import metadata

    points: dict[str, list[EntryPoint]] = {}
    for dist in metadata.distributions(path=_list_install_folders()):
        if found := list(dist.entry_points.select(group=GROUP)):
            points.setdefault(normalize_name(dist.name), found)  # imports find the first copy
    return [point for found in points.values() for point in found]


def _list_install_folders() -> list[str]:
    """The import path without the current folder and that of the script, where a matrix may lie.

    Python puts them before all others. A folder that is on the path a second time, or is a
    site-packages folder, holds what somebody installed.
    """
    import site

    script = getattr(sys.modules.get("__main__"), "__file__", None)
    folders = [os.path.realpath(entry) for entry in sys.path if entry not in ("", os.curdir)]
    unsafe = {os.path.dirname(os.path.realpath(script or "x"))}
    with contextlib.suppress(FileNotFoundError):  # it was deleted
        unsafe.add(os.path.realpath(os.curdir))
    unsafe -= {*map(os.path.realpath, [*site.getsitepackages(), site.getusersitepackages()])}
    return [folder for folder in folders if folder not in unsafe or folders.count(folder) > 1]


def normalize_name(name: str) -> str:
    """The name of a distribution in the normal form of PyPI."""
    return re.sub(r"[-_.]+", "-", name).lower()
