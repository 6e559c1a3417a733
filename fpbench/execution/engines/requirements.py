"""What a worker needs: the versions and code of the coordinator, and early imports."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from fpbench.base.errors import DISTRIBUTION, FpbenchError
from fpbench.components.catalog import Catalog
from fpbench.components.spec import Spec, fingerprint
from fpbench.matrix.step import Step
from fpbench.models.classifiers import FAMILIES

_LIBRARIES = (
    DISTRIBUTION, "numpy", "pandas", "scipy", "scikit-learn", "fairlearn", "highspy", "optuna",
    "docplex", "pyomo",
)  # fmt: skip
"""Distributions that results may depend on."""


@dataclass(frozen=True)
class Requirements:
    """The requirements of the steps of a plan on a worker."""

    uses: tuple[tuple[str, str], ...]
    """Kinds and names of the components."""
    here: Mapping[str, str]
    """`read_versions(uses)` on the coordinator."""


def list_requirements(steps: Iterable[Step], catalog: Catalog) -> Requirements:
    """The requirements of steps on a worker."""
    uses: set[tuple[str, str]] = set()
    waiting = [step.spec for step in steps if step.spec]
    while waiting:
        spec = waiting.pop()
        uses.add((spec.kind, spec.use))
        waiting += spec.slots.values()
    known = tuple(sorted(uses))
    return Requirements(known, read_versions(known, catalog))


def read_versions(
    uses: Iterable[tuple[str, str]], catalog: Catalog | None = None
) -> dict[str, str]:
    """Versions of distributions, and versions and code of components, in this process.

    A component that cannot be used here has an empty text, or a text of `!` and the reason.
    """
    if catalog is None:
        from fpbench.components.catalog import discover

        catalog = discover()
    versions = {"Python": ".".join(map(str, sys.version_info[:2]))}
    for name in _LIBRARIES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    for kind, use in uses:
        versions[f"{kind} {use!r}"] = _read_component(kind, use, catalog)
    return versions


def _read_component(kind: str, use: str, catalog: Catalog) -> str:
    if (kind, use) not in catalog.entries:
        return ""
    try:
        missing = catalog.component(kind, use).unavailable()
        return f"!{missing}" if missing else fingerprint(Spec(kind, use, {}), catalog)
    except FpbenchError as error:
        return f"!{error}"


def list_mismatches(here: Mapping[str, str], there: Mapping[str, str]) -> list[str]:
    """The differences of a worker's versions and code from the coordinator's; empty if equal."""
    # A component that cannot be used here either is skipped, or fails on its own.
    return [
        f"{name}: {there.get(name, '').lstrip('!') or 'missing'} there, {mine} here"
        for name, mine in here.items()
        if there.get(name, "") != mine and not mine.startswith("!")
    ]


def list_modules(steps: Iterable[Step]) -> tuple[str, ...]:
    """Modules of the classifiers that the parameters of steps name.

    Only classifiers that have a name here: an import path may lead anywhere.
    """
    named = {
        value
        for step in steps
        if step.spec is not None
        for value in step.spec.parameters.values()
        if isinstance(value, str)
    }
    paths = (family.path for name, family in FAMILIES.items() if name in named)
    return tuple(sorted({path.partition(":")[0] for path in paths}))


def warm(modules: Iterable[str]) -> None:
    """Import modules that steps need, before there are steps."""
    import pandas as pd  # noqa: F401

    from fpbench.components.catalog import discover

    discover()
    for name in modules:
        importlib.import_module(name)
