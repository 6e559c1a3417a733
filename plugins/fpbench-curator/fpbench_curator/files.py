"""Files of a curator: the token, and the sensitive columns of a table."""

from __future__ import annotations

import csv
import math
import os
import stat
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fpbench import InputError
from fpbench.base import suggest_name, tell_extra
from fpbench.errors import DataError

if TYPE_CHECKING:
    from pandas import DataFrame

_MISSING = {"", "?", "NA", "N/A", "NaN", "nan", "null", "NULL"}


def read_token(path: Path) -> str:
    """The only line of a token file; InputError if it is unreadable, empty or longer."""
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise InputError(f"token file {str(path)!r} cannot be read: {why}") from error
    if not text:
        raise InputError(f"token file {str(path)!r} is empty")
    if len(text.splitlines()) > 1:
        raise InputError(f"token file {str(path)!r} holds more than one line")
    return text


def is_readable_by_others(path: Path) -> bool:
    """Whether other users of this machine may read a file."""
    return os.name == "posix" and bool(path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH))


def read_sensitive(path: Path, columns: Sequence[str]) -> DataFrame:
    """The sensitive columns of a CSV or parquet file; the n-th row is the n-th person.

    InputError if a column is missing or named twice; DataError if the file is unreadable, or a
    value is missing.
    """
    for name in columns:
        if columns.count(name) > 1:
            raise InputError(f"sensitive: column {name!r} is named twice")
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    read = _read_parquet if path.suffix.lower() in (".parquet", ".pq") else _read_text
    try:
        return read(path, list(columns))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: cannot be read: {' '.join(str(error).split())}") from error


def _read_text(path: Path, columns: list[str]) -> DataFrame:
    import pandas as pd

    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, skipinitialspace=True, strict=True)
        header = [name.strip() for name in next(reader, [])]
        _check(path, columns, header)
        places = [header.index(name) for name in columns]
        texts: list[list[str]] = [[] for _ in columns]
        known: dict[str, str] = {}
        for fields in reader:
            where = f"{path}, line {reader.line_num}"
            if len(fields) != len(header):
                raise DataError(f"{where}: {len(fields)} fields where line 1 has {len(header)}")
            for values, name, place in zip(texts, columns, places, strict=True):
                value = fields[place].strip()
                if value in _MISSING:
                    raise DataError(_describe_hole(where, name))
                # One string for all equal words.
                values.append(known.setdefault(value, value))
    return pd.DataFrame({n: _to_numbers(values) for n, values in zip(columns, texts, strict=True)})


def _to_numbers(values: list[str]) -> Any:
    """Numbers if all values are, so that a check of distinct numbers works; else the texts."""
    try:
        numbers = {value: float(value) for value in dict.fromkeys(values)}
    except ValueError:
        return values
    codes = any(len(value) > 1 and value[0] == "0" and value.isdecimal() for value in numbers)
    odd = any("_" in value or not math.isfinite(number) for value, number in numbers.items())
    return values if codes or odd else [numbers[value] for value in values]


def _read_parquet(path: Path, columns: list[str]) -> DataFrame:
    import pandas as pd

    if find_spec("pyarrow") is None:
        raise InputError(f"{path}: needs pyarrow: {tell_extra('parquet')}")
    from pyarrow import ArrowException, parquet

    try:
        _check(path, columns, parquet.read_schema(path).names)
        frame = pd.read_parquet(path, columns=columns).reset_index(drop=True)
    except ArrowException as error:
        raise DataError(f"{path}: cannot be read as parquet: {error}") from error
    for name in columns:
        if frame[name].isna().any():
            raise DataError(_describe_hole(str(path), name))
    return frame


def _check(path: Path, columns: list[str], header: list[str]) -> None:
    for name in columns:
        if name not in header:
            raise InputError(f"{path}: no column {name!r}; {suggest_name(name, header)}")
        if header.count(name) > 1:
            raise DataError(f"{path}: {header.count(name)} columns have the name {name!r}")


def _describe_hole(where: str, name: str) -> str:
    return (
        f"{where}: no value in sensitive column {name!r}; rows cannot be left out, as the auditor "
        "counts them too: give these people a group of their own, `unknown` for instance"
    )
