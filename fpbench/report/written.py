"""What the matrix of a run says about its labels: the components behind them, their parameters."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fpbench.base.errors import FpbenchError
from fpbench.components.catalog import Catalog
from fpbench.components.names import KINDS
from fpbench.components.spec import specify


@dataclass(frozen=True)
class Chosen:
    """The component behind a label of a run."""

    use: str
    given: Mapping[str, Any]
    """The parameters that the matrix gives."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """The others, where they are known."""
    note: str = ""
    """Why they are not."""


Components = Mapping[str, Mapping[str, Chosen]]
"""By kind and label."""


def chosen(matrix: str | None) -> dict[str, dict[str, Chosen]]:
    """The components of a run by kind and label, with the parameters that its matrix gives.

    Parameters
    ----------
    matrix
        As `Store.matrix` gives it: JSON of shares, axes and exclusions. What cannot be read tells
        nothing, and is no error: a report needs it for what stands beside its numbers only.
    """
    try:
        axes = json.loads(matrix or "")[1]
        return {
            kind: {label: Chosen(use, given) for use, label, given in axes.get(kind, [])}
            for kind in KINDS
        }
    except (ValueError, LookupError, TypeError, AttributeError):
        return {kind: {} for kind in KINDS}


def with_defaults(
    components: Components, catalog: Catalog, made_with: Mapping[str, str]
) -> dict[str, dict[str, Chosen]]:
    """The same with the parameters that the matrix leaves as they are.

    Parameters
    ----------
    components
        As `chosen` gives them.
    catalog
        What is installed here.
    made_with
        Versions of the distributions that the run was made with: others may have other defaults.
    """
    return {
        kind: {label: _completed(kind, one, catalog, made_with) for label, one in mine.items()}
        for kind, mine in components.items()
    }


def _completed(kind: str, one: Chosen, catalog: Catalog, made_with: Mapping[str, str]) -> Chosen:
    try:
        source = catalog.entry(kind, one.use).source
        then = made_with.get(source.distribution)
        if then != source.version:
            said = f"{source.distribution} {then or 'of an unknown version'}"
            note = f"defaults are not known: made with {said}, and {source.version} is here"
            return Chosen(one.use, one.given, note=note)
        _, spec = specify(catalog, kind, one.use, dict(one.given), f"{kind} {one.use!r}")
    except (FpbenchError, ValueError) as error:
        return Chosen(one.use, one.given, note=f"defaults are not known here: {error}")
    others = {name: value for name, value in spec.parameters.items() if name not in one.given}
    return Chosen(one.use, one.given, others)


@dataclass(frozen=True)
class Reading:
    """A label taken apart."""

    base: str
    """The label without the values that it was swept over."""
    swept: Mapping[str, Any]
    """Parameters whose values the label names, in the order of the matrix."""


def read_labels(components: Mapping[str, Chosen]) -> dict[str, Reading]:
    """Labels of one kind, taken apart: `fair tolerance=0.1` is `fair` at a tolerance of 0.1.

    Parameters
    ----------
    components
        What is behind them.
    """
    by_use: dict[str, list[Chosen]] = {}
    for one in components.values():
        by_use.setdefault(one.use, []).append(one)
    varying = {use: _varying(found) for use, found in by_use.items()}
    found = {label: _read(label, one, varying[one.use]) for label, one in components.items()}
    alike = Counter((one.base, *one.swept) for one in found.values())
    return {  # an end that only one label has is part of its name
        label: one if alike[one.base, *one.swept] > 1 else Reading(label, {})
        for label, one in found.items()
    }


def _varying(found: Iterable[Chosen]) -> list[str]:
    values: dict[str, set[str]] = {}
    for one in found:
        for name, value in one.given.items():
            values.setdefault(name, set()).add(json.dumps(value, default=str))
    return [name for name, several in values.items() if len(several) > 1]


def _read(label: str, one: Chosen, varying: Iterable[str]) -> Reading:
    """As `sweeps.combinations` makes labels: a word says what it is about, a number does not."""
    base, swept = label, {}
    for name in reversed([name for name in varying if name in one.given]):
        value = one.given[name]
        token = f" {value}" if isinstance(value, str) else f" {name}={value}"
        if base.endswith(token):
            base = base.removesuffix(token)
            swept[name] = value
    return Reading(base, dict(reversed(swept.items())))
