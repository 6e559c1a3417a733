"""Tables in files: CSV and parquet. Errors name the line.

Pandas' own reader of CSV files fills a short row with missing values, whose row would then be
dropped silently.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from importlib.util import find_spec
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fpbench.base.arguments import show_value
from fpbench.base.distribution import tell_extra
from fpbench.base.errors import DataError
from fpbench.base.files import read_file

if TYPE_CHECKING:
    from pandas import DataFrame

_MOST_BYTES = 2**33
"""Greatest size of a file of people."""
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", re.ASCII)
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_CODE = re.compile(r"0[0-9]+", re.ASCII)  # as a number it would lose its leading zero
_EMPTY = {"", "?", "NA", "N/A", "NaN", "nan", "null", "NULL"}
_PACKED = {
    b"PK\x03\x04": "a spreadsheet, or another zip archive: save it as CSV",
    b"\xd0\xcf\x11\xe0": "a spreadsheet of an older Excel: save it as CSV",
    b"\x1f\x8b": "compressed by gzip: unpack it",
    b"PAR1": "a Parquet file: give it a name that ends in .parquet",
}
"""First bytes of files that are not text."""
_PARQUET = (".parquet", ".pq")


class LoadedTable(NamedTuple):
    """A table read from a file."""

    frame: DataFrame
    checksum: str
    """SHA-256 of the file, in hexadecimal digits."""


def read_csv(path: Path, separator: str = ",") -> DataFrame:
    """A CSV file as a frame: a column has numbers if all its values are numbers, else strings.

    Parameters
    ----------
    path
        UTF-8 text; the first line has the column names.
    separator
        The separator of fields.

    Raises
    ------
    DataError
        If it cannot be read, has no row, only one column, a repeated name, or a row of another
        length.
    """
    texts = parse_csv(load_content(path), str(path), separator)
    return _make_frame({name: _guess_column(values) for name, values in texts.items()})


def read_parquet(path: Path) -> DataFrame:
    """A parquet file as a frame; a named index becomes a column.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    DataError
        If it cannot be read, or pyarrow is not installed.
    """
    return parse_parquet(load_content(path), str(path))


def load_table(path: Path) -> LoadedTable:
    """A file as a frame, and its checksum: parquet if so named (.parquet, .pq), else CSV.

    Raises DataError: as `read_csv` and `read_parquet`.
    """
    content = load_content(path)
    if path.suffix.lower() in _PARQUET:
        frame = parse_parquet(content, str(path))
    else:
        texts = parse_csv(content, str(path))
        frame = _make_frame({name: _guess_column(values) for name, values in texts.items()})
    return LoadedTable(frame, sha256(content).hexdigest())


def load_content(path: Path) -> bytes:
    """Content of a user's file; DataError if it is not a regular file, or too large."""
    try:
        return read_file(path, most=_MOST_BYTES, named=True)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error


def parse_csv(content: bytes, where: str, separator: str | None = None) -> dict[str, list[str]]:
    """The fields of a CSV file, without blanks around them, by column.

    Without `separator` fields are separated by commas, and messages suggest no other.

    Raises DataError: as `read_csv`; the message names the file, `where`, and the line.
    """
    try:
        rows = _read_rows(content.decode("utf-8-sig"), separator or ",")
        header = [name.strip() for name in next(rows, (1, []))[1]]
        _check_header(header, where, separator)
        table: list[list[str]] = []
        known: dict[str, str] = {}
        for line, fields in rows:
            if len(fields) < 2 and not "".join(fields).strip():
                continue
            if len(fields) != len(header):
                raise DataError(
                    f"{where}, line {line}: {len(fields)} columns, but the first line has "
                    f"{len(header)}"
                )
            # Most values repeat: sharing one string for equal values takes a tenth of the memory.
            table.append([known.setdefault(text, text) for text in map(str.strip, fields)])
    except UnicodeDecodeError as error:
        packed = next((what for mark, what in _PACKED.items() if content.startswith(mark)), None)
        if packed is not None:
            raise DataError(f"{where}: is {packed}") from error
        byte = error.object[error.start]
        raise DataError(
            f"{where}: is not UTF-8 text (byte {byte:#04x} is invalid); save it as UTF-8"
        ) from error
    except csv.Error as error:
        raise DataError(f"{where}: cannot be read: {error}") from error
    if not table:
        raise DataError(f"{where}: holds no row")
    return dict(zip(header, map(list, zip(*table, strict=True)), strict=True))


def parse_parquet(content: bytes, where: str) -> DataFrame:
    """The content of a parquet file as a frame.

    Raises DataError: as `read_parquet`; the message names the file, `where`.
    """
    import pandas as pd

    if not find_spec("pyarrow"):
        raise DataError(f"{where}: needs pyarrow: {tell_extra('parquet')}")
    try:
        frame = pd.read_parquet(BytesIO(content))
        return frame.reset_index(drop=all(name is None for name in frame.index.names))
    except Exception as error:  # pyarrow or pandas may raise anything on a damaged file
        problem = " ".join(str(error).split()) or type(error).__name__
        raise DataError(f"{where}: cannot be read as parquet: {problem}") from error


def _read_rows(text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(
        StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True
    )
    for fields in reader:
        yield reader.line_num, fields


def _check_header(header: Sequence[str], where: str, separator: str | None) -> None:
    for name in header:
        if not name:
            raise DataError(
                f"{where}, line 1: column {header.index(name) + 1} has no name (if pandas wrote "
                "its index there, save with to_csv(index=False))"
            )
        if header.count(name) > 1:
            raise DataError(f"{where}, line 1: {header.count(name)} columns have the name {name!r}")
    if not header:
        raise DataError(f"{where}: is empty")
    if len(header) == 1:
        likely = next((mark for mark in ";,\t|" if mark in header[0]), ";")
        mend = f"Add, for example, separator = {json.dumps(likely)}"
        raise DataError(
            f"{where}, line 1: found one column, {header[0]!r}; is the separator not "
            f"{show_value(separator or ',')}? {mend if separator else 'Save it with commas'}"
        )


def _make_frame(columns: dict[str, Any]) -> DataFrame:
    import pandas as pd

    return pd.DataFrame(columns)


def _guess_column(texts: Sequence[str]) -> Any:
    """A column as numbers if all non-missing values are numbers, else as strings."""
    values = {text for text in texts if text not in _EMPTY}
    codes = any(_CODE.fullmatch(text) for text in values)
    if values and not codes and all(_NUMBER.fullmatch(text) for text in values):
        if values == set(texts) and all(_INTEGER.fullmatch(text) for text in values):
            return np.array([int(text) for text in texts], np.int64)
        return np.array([float("nan") if text in _EMPTY else float(text) for text in texts])
    return np.array([None if text in _EMPTY else text for text in texts], object)
