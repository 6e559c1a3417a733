"""The components behind the labels of a run, and the parameters that labels name."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from fpbench.base.toml_files import check_depth
from fpbench.components.names import KINDS


@dataclass(frozen=True)
class ConfiguredComponent:
    """The component behind a label of a run."""

    use: str
    parameters: Mapping[str, Any]
    """The parameters that the matrix sets."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """The other parameters, where they are known."""
    note: str = ""
    """Why they are not known."""


Components: TypeAlias = Mapping[str, Mapping[str, ConfiguredComponent]]
"""By kind and label."""


def read_components(matrix: str | None) -> dict[str, dict[str, ConfiguredComponent]]:
    """The components of a run by kind and label, with the parameters that its matrix sets.

    `matrix`: as `Store.matrix` gives it: JSON of shares, axes and exclusions. Unreadable parts are
    left out without an error: the parameters only explain the numbers of a run.
    """
    try:
        axes = json.loads(matrix or "")[1]
        check_depth(axes, "matrix")
        return {
            kind: {label: ConfiguredComponent(use, parameters)
                   for use, label, parameters in axes.get(kind, [])
                   if isinstance(use, str) and isinstance(parameters, dict)}
            for kind in KINDS
        }  # fmt: skip
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return {kind: {} for kind in KINDS}


@dataclass(frozen=True)
class LabelParts:
    """The parts of a label."""

    base: str
    """The label without the values of swept parameters."""
    swept: Mapping[str, Any]
    """The swept parameters that the label names, in the order of the matrix."""

    def without(self, name: str) -> str:
        """The label without one of its parameters."""
        others = (_make_token(other, value) for other, value in self.swept.items() if other != name)
        return "".join((self.base, *others))


LabelsByKind: TypeAlias = Mapping[str, Mapping[str, LabelParts]]
"""The parts of labels, by kind and label."""


def _make_token(name: str, value: Any) -> str:
    """The part of a label for a swept value, see `fpbench.matrix.axes`."""
    return f" {value}" if isinstance(value, str) else f" {name}={value}"


def name_parameters(components: Components) -> dict[str, dict[str, LabelParts]]:
    """The parts of the labels of a run: `fair tolerance=0.1` is `fair` at a tolerance of 0.1.

    `components`: the components behind the labels; values are those that the matrix sets.
    """
    return {kind: _name_parameters(mine) for kind, mine in components.items()}


def _name_parameters(components: Mapping[str, ConfiguredComponent]) -> dict[str, LabelParts]:
    by_use: dict[str, list[ConfiguredComponent]] = {}
    for component in components.values():
        by_use.setdefault(component.use, []).append(component)
    varying = {use: _list_varying(alike) for use, alike in by_use.items()}
    parts = {
        label: _split_label(label, component, varying[component.use])
        for label, component in components.items()
    }
    alike = Counter((each.base, *each.swept) for each in parts.values())
    return {  # an end that only one label has is part of its name
        label: each if alike[each.base, *each.swept] > 1 else LabelParts(label, {})
        for label, each in parts.items()
    }


def _list_varying(components: Iterable[ConfiguredComponent]) -> list[str]:
    values: dict[str, set[str]] = {}
    for component in components:
        for name, value in component.parameters.items():
            values.setdefault(name, set()).add(json.dumps(value, default=str))
    return [name for name, several in values.items() if len(several) > 1]


def _split_label(label: str, component: ConfiguredComponent, varying: Iterable[str]) -> LabelParts:
    base, swept = label, {}
    for name in reversed([name for name in varying if name in component.parameters]):
        value = component.parameters[name]
        if base.endswith(token := _make_token(name, value)):
            base = base.removesuffix(token)
            swept[name] = value
    return LabelParts(base, dict(reversed(swept.items())))
