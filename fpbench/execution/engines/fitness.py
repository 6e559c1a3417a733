"""What a worker on another machine must have: the same versions, the same code."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from fpbench.base.errors import FpbenchError
from fpbench.components.catalog import Catalog
from fpbench.components.spec import Spec, fingerprint
from fpbench.matrix.step import Step

_LIBRARIES = (
    "fpbench", "numpy", "pandas", "scipy", "scikit-learn", "fairlearn", "highspy", "optuna",
    "docplex", "pyomo",
)  # fmt: skip
"""Distributions that results may depend on."""


@dataclass(frozen=True)
class Needs:
    """What the steps of a plan need, and what of it is here.

    Attributes
    ----------
    uses
        Kinds and names of the components.
    here
        What `found(uses)` says on the coordinator.
    """

    uses: tuple[tuple[str, str], ...]
    here: Mapping[str, str]


def needs_of(steps: Iterable[Step], catalog: Catalog) -> Needs:
    """What steps need of a worker."""
    uses: set[tuple[str, str]] = set()
    waiting = [step.spec for step in steps if step.spec]
    while waiting:
        spec = waiting.pop()
        uses.add((spec.kind, spec.use))
        waiting += spec.slots.values()
    known = tuple(sorted(uses))
    return Needs(known, found(known, catalog))


def found(uses: Iterable[tuple[str, str]], catalog: Catalog | None = None) -> dict[str, str]:
    """What this process has: versions by distribution, versions and code by component.

    A component that cannot be used here has an empty text, or one that begins with `!` and says
    why.
    """
    if catalog is None:
        from fpbench.components.catalog import discover

        catalog = discover()
    has = {"Python": ".".join(map(str, sys.version_info[:2]))}
    for name in _LIBRARIES:
        with suppress(PackageNotFoundError):
            has[name] = version(name)
    for kind, use in uses:
        has[f"{kind} {use!r}"] = _component(kind, use, catalog)
    return has


def _component(kind: str, use: str, catalog: Catalog) -> str:
    if (kind, use) not in catalog.entries:
        return ""
    try:
        lacking = catalog.component(kind, use).unavailable()
        return f"!{lacking}" if lacking else fingerprint(Spec(kind, use, {}), catalog)
    except FpbenchError as error:
        return f"!{error}"


def unlike(here: Mapping[str, str], there: Mapping[str, str]) -> list[str]:
    """How what a worker has differs from what the coordinator has; empty if it does not.

    A worker that has the wrong version of a distribution is not also told what of it differs.
    """
    said = []
    for name, mine in here.items():
        theirs = there.get(name, "")
        # What cannot be used here either is skipped, or fails on its own.
        if mine == theirs or mine.startswith("!"):
            continue
        my_source, _, my_code = mine.partition("/")
        source = theirs.partition("/")[0]
        if not my_code:
            said.append(f"{name} {theirs}, not {mine}" if theirs else f"no {name} (here {mine})")
        elif not theirs:
            said.append(f"no {name}, which is of {my_source} here")
        elif theirs.startswith("!"):
            said.append(f"{name} cannot be used: {theirs[1:]}; here it is of {my_source}")
        elif source != my_source:
            said.append(f"{name} of {source}, not of {my_source}")
        else:
            said.append(f"{name} of {source} with other code than here")
    return said
