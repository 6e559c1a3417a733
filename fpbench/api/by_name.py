"""Data sets by name, for scripts and notebooks."""

from __future__ import annotations

import warnings
from typing import Any

from fpbench.components.attack_kinds import Dataset
from fpbench.components.by_name import component
from fpbench.data.data_files import DataHome
from fpbench.data.table import Table


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
