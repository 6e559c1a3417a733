"""Tables in files: CSV and parquet. What is not as expected is an error with its line.

Not pandas' reader of CSV files: that fills a short row with missing values, which would then be
dropped in silence.
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
"""Of a file of people."""
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", re.ASCII)
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_CODE = re.compile(r"0[0-9]+", re.ASCII)  # a number would lose its leading zero
_EMPTY = {"", "?", "NA", "N/A", "NaN", "nan", "null", "NULL"}
_PACKED = {
    b"PK\x03\x04": "a spreadsheet, or another zip archive: save it as CSV",
    b"\xd0\xcf\x11\xe0": "a spreadsheet of an older Excel: save it as CSV",
    b"\x1f\x8b": "compressed by gzip: unpack it",
    b"PAR1": "a Parquet file: give it a name that ends in .parquet",
}
"""What files that are no text begin with."""
_PARQUET = (".parquet", ".pq")


class LoadedTable(NamedTuple):
    """A table that was in a file."""

    frame: DataFrame
    checksum: str
    """SHA-256 of the file, in hexadecimal digits."""


def read_csv(path: Path, separator: str = ",") -> DataFrame:
    """A CSV file as a frame: columns of numbers where all values are, else of strings.

    Parameters
    ----------
    path
        UTF-8 text; names of the columns in the first line.
    separator
        Between two fields.

    Raises
    ------
    DataError
        If it cannot be read, has no row, one column, a name twice, or a row of another length.
    """
    texts = parse_csv(load_content(path), str(path), separator)
    return _make_frame({name: _guess_column(values) for name, values in texts.items()})


def read_parquet(path: Path) -> DataFrame:
    """A parquet file as a frame; an index that was written with a name is a column.

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
    """A file as a frame, parquet by its name (.parquet, .pq) and else CSV, and its checksum.

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
    """A regular file that the user named; DataError if it is none, or too large."""
    try:
        return read_file(path, most=_MOST_BYTES, named=True)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error


def parse_csv(content: bytes, where: str, separator: str | None = None) -> dict[str, list[str]]:
    """The fields of a CSV file, without blanks around them, by column.

    Commas are between them where nobody can name another separator.

    Raises DataError: as `read_csv`; names the file, `where`, and the line.
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
                    f"{where}, line {line}: {len(fields)} columns where the first line has "
                    f"{len(header)}"
                )
            # Most values occur often: one string for all of them is a tenth of the memory.
            table.append([known.setdefault(text, text) for text in map(str.strip, fields)])
    except UnicodeDecodeError as error:
        packed = next((what for mark, what in _PACKED.items() if content.startswith(mark)), None)
        if packed is not None:
            raise DataError(f"{where}: is {packed}") from error
        byte = error.object[error.start]
        raise DataError(
            f"{where}: is not UTF-8 text (there is a byte {byte:#04x} that is none); save it as "
            "UTF-8"
        ) from error
    except csv.Error as error:
        raise DataError(f"{where}: cannot be read: {error}") from error
    if not table:
        raise DataError(f"{where}: holds no row")
    return dict(zip(header, map(list, zip(*table, strict=True)), strict=True))


def parse_parquet(content: bytes, where: str) -> DataFrame:
    """The content of a parquet file as a frame.

    Raises DataError: as `read_parquet`; names the file, `where`.
    """
    import pandas as pd

    if not find_spec("pyarrow"):
        raise DataError(f"{where}: needs pyarrow: {tell_extra('parquet')}")
    try:
        frame = pd.read_parquet(BytesIO(content))
        return frame.reset_index(drop=all(name is None for name in frame.index.names))
    except Exception as error:  # what a damaged file makes pyarrow or pandas stumble over
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
            raise DataError(f"{where}, line 1: there are {header.count(name)} columns {name!r}")
    if not header:
        raise DataError(f"{where}: is empty")
    if len(header) == 1:
        likely = next((mark for mark in ";,\t|" if mark in header[0]), ";")
        mend = f"Add, for instance, separator = {json.dumps(likely)}"
        raise DataError(
            f"{where}, line 1: found one column, {header[0]!r}; is the separator not "
            f"{show_value(separator or ',')}? {mend if separator else 'Save it with commas'}"
        )


def _make_frame(columns: dict[str, Any]) -> DataFrame:
    import pandas as pd

    return pd.DataFrame(columns)


def _guess_column(texts: Sequence[str]) -> Any:
    """A column as numbers if all that is not missing is, else as strings."""
    values = {text for text in texts if text not in _EMPTY}
    codes = any(_CODE.fullmatch(text) for text in values)
    if values and not codes and all(_NUMBER.fullmatch(text) for text in values):
        if values == set(texts) and all(_INTEGER.fullmatch(text) for text in values):
            return np.array([int(text) for text in texts], np.int64)
        return np.array([float("nan") if text in _EMPTY else float(text) for text in texts])
    return np.array([None if text in _EMPTY else text for text in texts], object)
