"""The environment of a run: versions, machine, data."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any

from fpbench.base.errors import DISTRIBUTION, tell_extra
from fpbench.components.catalog import Catalog

_KERNELS = ("machine", "blas", "simd", "solvers")
_COMPUTING = ("numpy", "pandas", "scikit-learn")
"""Packages with compiled code that adds up numbers; scipy is listed with the solvers."""
_SOLVERS = ("cplex", "docplex", "highspy", "pyomo", "ortools", "scipy")


def describe_environment(data: Mapping[str, str], catalog: Catalog) -> dict[str, Any]:
    """The environment of a run, as plain data.

    Versions of Python, fpbench, its dependencies, the distributions whose plugins are installed
    and the solvers; the platform; the linear-algebra libraries that numpy and scipy have loaded,
    and the kind of processor that their code is for; the instructions that numpy uses beyond those
    that every processor has; the checksums in `data`, by file.
    """
    return {
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "machine": platform.machine(),
        "packages": _list_packages(catalog),
        "solvers": {name: v for name in _SOLVERS if (v := _find_version(name))},
        "blas": _list_blas(),
        "simd": _list_simd(),
        "data": dict(data),
    }


def have_same_kernels(environments: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the same code computed all runs, so that numbers are the same to the last bit.

    The same machine type, linear algebra for the same kind of processor, instructions, and versions
    of the libraries that compute. An environment without these entries counts as other kernels.
    """
    used = [_read_kernels(environment) for environment in environments]
    return all(each is not None and each == used[0] for each in used)


def _read_kernels(environment: Mapping[str, Any]) -> tuple[Any, ...] | None:
    packages = environment.get("packages")
    if not isinstance(packages, Mapping) or any(name not in environment for name in _KERNELS):
        return None
    return (
        *(environment[name] for name in _KERNELS),
        *(packages.get(name) for name in _COMPUTING),
    )


def warn_of_namesake() -> str | None:
    """What to do if the other `fpbench` of the package index is installed here; None if not."""
    if (installed := _find_version("fpbench")) is None:
        return None
    return (
        f"a distribution fpbench {installed} is installed here beside {DISTRIBUTION}, and both "
        "bring a package `fpbench`: pip uninstall fpbench, then "
        f"pip install --force-reinstall --no-deps {DISTRIBUTION}"
    )


def list_extras() -> list[tuple[str, str]]:
    """The extras of fpbench, and for each its version or the command that installs it."""
    extras = []
    for extra, package in (
        ("cp", "cplex"),
        ("ip", "pyomo"),
        ("search", "optuna"),
        ("acs", "folktables"),
        ("parquet", "pyarrow"),
        ("excel", "python-calamine"),
        ("report", "plotly"),
        ("figures", "matplotlib"),
    ):
        installed = _find_version(package)
        status = f"{package} {installed}" if installed else tell_extra(extra)
        extras.append((extra, status))
    return extras


def _list_packages(catalog: Catalog) -> dict[str, str]:
    names = {DISTRIBUTION, "optuna", *(entry.source.distribution for entry in catalog)}
    for line in requires(DISTRIBUTION) or []:
        if "extra ==" not in line:
            names.add("".join(c if c.isalnum() or c in "-_." else " " for c in line).split()[0])
    return {name: v for name in sorted(names) if (v := _find_version(name))}


def _find_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _list_blas() -> list[str]:
    # threadpoolctl reports what is loaded, and scipy brings a library of its own.
    import numpy as np  # noqa: F401
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info

    return sorted(
        f"{info['internal_api']} {info.get('version') or '?'} {info.get('architecture') or '?'}"
        for info in threadpool_info()
        if info["user_api"] == "blas"
    )


def _list_simd() -> list[str]:
    """Instructions that numpy chose to use, beyond those it was compiled for."""
    import numpy as np

    config = np.show_config(mode="dicts")
    known = config.get("SIMD Extensions", {}) if isinstance(config, dict) else {}
    return list(known.get("found", []))
