"""Results that several steps read cannot be written to."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import pandas as pd

from fpbench.data.sample import Sample

_LOCKED: WeakValueDictionary[int, pd.DataFrame] = WeakValueDictionary()
"""Frames whose columns are read-only already, by identity: every step reads the same features."""


def make_read_only(value: Any) -> None:
    """Make all arrays of a result read-only: in samples, records, containers.

    Objects of other libraries stay as they are: their models may store computed values. A `Sample`
    returns copies of its features, which share memory until written to.
    """
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    elif isinstance(value, Sample):
        make_read_only(value.stored())
    elif isinstance(value, pd.DataFrame):
        if _LOCKED.get(id(value)) is not value:
            for _, column in value.items():
                _lock_column(column)
            _LOCKED[id(value)] = value
    elif isinstance(value, tuple | list):
        for one in value:
            make_read_only(one)
    elif isinstance(value, dict):
        make_read_only(list(value.values()))
    elif is_dataclass(value) and type(value).__module__.startswith("fpbench."):
        for field in fields(value):
            make_read_only(getattr(value, field.name, None))


def _lock_column(column: pd.Series) -> None:
    """Make the memory of a column read-only, which `column.array` would show writable.

    A copy of the frame still copies the column at the first write.
    """
    memory = getattr(column.array, "_ndarray", None)
    while isinstance(memory, np.ndarray):
        memory.flags.writeable = False
        memory = memory.base
