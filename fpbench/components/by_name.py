"""Components by name, for scripts and for parameters that hold a component."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from fpbench.base.arguments import show_value
from fpbench.base.errors import InputError
from fpbench.components.attack_kinds import Component, Dataset
from fpbench.components.catalog import discover
from fpbench.components.spec import specify
from fpbench.data.data_files import DataHome
from fpbench.data.table import Table


def component(kind: str, name: str, **parameters: Any) -> Component:
    """Any installed component by name.

    Parameters
    ----------
    kind
        `dataset`, `learner`, `disclosure`, `adversary`, `corrector`, `mechanism`, `policy` or
        `auditor`.
    name
        Its name, as `fpbench plugins` lists it.
    **parameters
        Its parameters, as `fpbench describe` lists them.

    Raises
    ------
    InputError
        If the kind, the name or a parameter is unknown, or a value is out of range.
    PluginError
        If the component cannot be loaded.
    """
    return specify(discover(), kind, name, parameters, f"{kind} {name!r}")[0]


def resolve_component(
    kind: str, chosen: str | Mapping[str, Any] | Component, **parameters: Any
) -> Component:
    """The component that a name with parameters, a table with `use`, or a component stands for.

    Raises InputError for anything else, for another kind, or for a component with further
    parameters.
    """
    if isinstance(chosen, str):
        return component(kind, chosen, **parameters)
    if parameters:
        raise InputError(f"{kind}: {', '.join(parameters)} can be given only with a name")
    if isinstance(chosen, Mapping):
        if not isinstance(chosen.get("use"), str):
            raise InputError(f'{kind}: a table needs use = "NAME"')
        return component(kind, chosen["use"], **{k: v for k, v in chosen.items() if k != "use"})
    if getattr(chosen, "kind", None) != kind or isinstance(chosen, type):
        article = "an" if kind[0] in "aeiou" else "a"
        raise InputError(
            f"{kind}: must be a name or {article} {kind}, not {show_value(chosen)}; "
            f"`fpbench describe {kind}` lists the names"
        )
    return chosen


def dataset(name: str, **parameters: Any) -> Table:
    """Load a dataset by name.

    Parameters
    ----------
    name
        Its name in a matrix, as `fpbench plugins` lists it.
    **parameters
        Its parameters, as in a matrix.

    Raises
    ------
    InputError
        If the name or a parameter is unknown; `DataError` if a file is missing or malformed.

    Warns
    -----
    UserWarning
        If a file is not the known original; with both checksums.
    """
    source, home = component("dataset", name, **parameters), DataHome.default()
    assert isinstance(source, Dataset)
    table = source.load(home)
    checksums = {name: compute() for name, compute in source.checksums(home).items()}
    for warning in source.unlike(home, checksums):
        warnings.warn(warning, stacklevel=2)
    return table
