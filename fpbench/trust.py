"""Whose code may run: what the user allows, in this process and in the workers that it starts.

A matrix is data, and may come from a stranger. Code comes from what is installed: from plugins,
unless the user forbids them, and from packages that build on scikit-learn, whose classifiers a
matrix may name by import path. What the user says is kept in environment variables, which workers
inherit; a matrix cannot set them.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from functools import cache

NO_THIRD_PARTY = "FPBENCH_NO_THIRD_PARTY"
"""Environment variable: 1 if only built-in components are to be loaded."""
IMPORTS = "FPBENCH_IMPORTS"
"""Environment variable: packages, joined by commas, that a matrix may name besides."""

_SKLEARN = "scikit-learn"


def forbid_third_party() -> None:
    """From now on, load built-in components only: for this process, and those it starts."""
    os.environ[NO_THIRD_PARTY] = "1"


def third_party_allowed() -> bool:
    """Whether plugins of other distributions may be loaded."""
    return os.environ.get(NO_THIRD_PARTY, "") in ("", "0")


def why_not(module: str) -> str | None:
    """Why a module that a matrix names is not imported; None if it may be.

    It may if it belongs to scikit-learn, to an installed distribution that requires scikit-learn
    (be it in an extra), to an installed plugin, or to a package that the user names in
    `FPBENCH_IMPORTS`. Nothing is imported to find out.
    """
    package = module.partition(".")[0]
    if package in sys.stdlib_module_names:
        return "it is part of Python itself"
    if module.rpartition(".")[2] == "__main__":
        return "it is a program"
    if package == "sklearn":
        return None
    if not third_party_allowed():
        return "without third parties, only classes of scikit-learn may be named"
    return None if package in os.environ.get(IMPORTS, "").split(",") else _unknown(package)


def _unknown(package: str) -> str | None:
    """Why a package of others is not imported; None if it may be."""
    from importlib import util

    found = _distributions().get(package, [])
    if any(_builds_on_sklearn(name) for name in found):
        return None
    if util.find_spec(package) is None:
        return f"there is no module {package!r}; is it installed?"
    said = f"requires {_SKLEARN}" if found else f"is installed and requires {_SKLEARN}"
    return (
        f"package {package!r} is not one that {said}, so it is not imported; if you trust it: "
        f"{IMPORTS}={package}"
    )


@cache
def _distributions() -> dict[str, list[str]]:
    from importlib import metadata

    return dict(metadata.packages_distributions())


@cache
def _builds_on_sklearn(distribution: str) -> bool:
    from importlib import metadata

    dist = metadata.distribution(distribution)
    required = (re.match(r"[\w.-]*", line) for line in dist.requires or ())
    plugin = any(point.group == "fpbench" for point in dist.entry_points)
    return plugin or _SKLEARN in _normal([distribution, *(m.group() for m in required if m)])


def _normal(names: Iterable[str]) -> set[str]:
    """Names of distributions as PyPI compares them."""
    return {re.sub(r"[-_.]+", "-", name).lower() for name in names}
