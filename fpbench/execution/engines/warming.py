"""Early imports of processes, before there are steps."""

from __future__ import annotations

import importlib
from collections.abc import Iterable

from fpbench.matrix.step import Step
from fpbench.models.classifiers import FAMILIES


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
