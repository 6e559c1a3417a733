"""Tables in files: CSV, parquet and spreadsheets. Errors name the line.

Pandas' own reader of CSV files fills a short row with missing values, whose row would then be
dropped silently.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from importlib.util import find_spec
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from zipfile import ZipFile, is_zipfile

import numpy as np

from fpbench.base.arguments import show_value
from fpbench.base.errors import DataError, tell_extra
from fpbench.base.files import read_file

if TYPE_CHECKING:
    from pandas import DataFrame
    from pyarrow import Schema
    from pyarrow.parquet import FileMetaData

_MOST_BYTES = 2**33
"""Greatest size of a file of people, and of what is packed in it."""
# Each digit can be matched in one way only: else the time grows with the square of their number.
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", re.ASCII)
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
PARQUET = (".parquet", ".pq")
"""How names of Parquet files end."""
_SPREADSHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")


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
    """A file as a frame, and its checksum.

    Parameters
    ----------
    path
        By its name parquet, a spreadsheet, or else CSV.

    Raises
    ------
    DataError
        As of `read_csv` and `read_parquet`.
    """
    content = load_content(path)
    if path.suffix.lower() in PARQUET:
        frame = parse_parquet(content, str(path))
    else:
        is_sheet = path.suffix.lower() in _SPREADSHEETS
        texts = (parse_sheet if is_sheet else parse_csv)(content, str(path))
        frame = _make_frame({name: _guess_column(values) for name, values in texts.items()})
    return LoadedTable(frame, sha256(content).hexdigest())


def load_content(path: Path, most: int = _MOST_BYTES) -> bytes:
    """Content of a user's file; DataError if it is not regular, or has more than `most` bytes."""
    try:
        return read_file(path, most=most, named=True)
    except (OSError, ValueError) as error:  # a name with a zero byte is a ValueError
        problem = getattr(error, "strerror", None) or error
        raise DataError(f"{path}: cannot be read: {problem}") from error


def parse_csv(content: bytes, where: str, separator: str | None = None) -> dict[str, list[str]]:
    """The fields of a CSV file, without blanks around them, by column.

    Without `separator` fields are separated by commas, and messages suggest no other.

    Raises DataError: as `read_csv`; the message names the file, `where`, and the line.
    """
    try:
        text = content.decode("utf-8-sig")
        if (place := text.find("\0")) >= 0:
            line = text.count("\n", 0, place) + 1
            raise DataError(f"{where}, line {line}: holds a zero byte; save the file as UTF-8 text")
        rows = _read_rows(text, separator or ",")
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


def parse_sheet(content: bytes, where: str) -> dict[str, list[str]]:
    """The cells of a spreadsheet as texts, by column; lines of one cell above the names are titles.

    Raises DataError if several sheets have cells; else as `read_sheets` and `read_csv`.
    """
    sheets = read_sheets(content, where, _MOST_BYTES // 4)
    tables = {
        name: rows
        for name, sheet in sheets.items()
        if (rows := [list(map(_write_cell, row)) for row in sheet.itertuples(index=False)])
        and any(map(any, rows))
    }
    if not tables:
        raise DataError(f"{where}: is empty")
    if len(tables) > 1:
        raise DataError(f"{where}: the sheets {', '.join(tables)} have cells: save one alone")
    rows = [row for row in next(iter(tables.values())) if any(row)]
    while len(rows) > 1 and sum(map(bool, rows[0])) < 2:
        del rows[0]
    columns = [column for column in zip(*rows, strict=True) if any(column)]
    _check_header([name for name, *_ in columns], where, None)
    if len(rows) < 2:
        raise DataError(f"{where}: holds no row")
    return {name: values for name, *values in columns}


def read_sheets(content: bytes, where: str, most: int) -> dict[str, DataFrame]:
    """The sheets of a spreadsheet, by name; cells as they are typed, blank ones as "".

    Raises DataError if it cannot be read, has more than `most` bytes when unpacked, or extra
    `excel` is missing.
    """
    import pandas as pd

    try:
        if is_zipfile(BytesIO(content)):
            with ZipFile(BytesIO(content)) as packed:
                if sum(part.file_size for part in packed.infolist()) > most:
                    raise DataError(f"{where}: is larger than {most // 2**20:,} MiB when unpacked")
                if not any("xl/" in name or "content.xml" in name for name in packed.namelist()):
                    raise DataError(f"{where}: is a zip archive, and no spreadsheet: unpack it")
        if not find_spec("python_calamine"):
            raise DataError(f"{where}: is a spreadsheet: {tell_extra('excel')}, or save it as CSV")
        sheets: dict[str, DataFrame] = pd.read_excel(
            BytesIO(content), sheet_name=None, header=None, dtype=object, engine="calamine",
            na_filter=False,
        )  # fmt: skip
        return sheets
    except DataError:
        raise
    except Exception as error:  # of a damaged file, anything
        problem = " ".join(str(error).split()) or type(error).__name__
        raise DataError(f"{where}: cannot be read as a spreadsheet: {problem}") from error


def _write_cell(value: Any) -> str:
    """A cell as CSV files have it: whole numbers without a point, dates without midnight."""
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value) if whole else value).strip().removesuffix(" 00:00:00")


def parse_parquet(content: bytes, where: str, most_places: int = 2**28) -> DataFrame:
    """The content of a parquet file as a frame.

    `most_places`: the greatest number of rows times columns, and an eighth of that of all letters,
    as equal or missing values take no space in a file.

    Raises DataError: as `read_parquet`; the message names the file, `where`.
    """
    if not find_spec("pyarrow"):
        raise DataError(f"{where}: needs pyarrow: {tell_extra('parquet')}")
    from pyarrow import parquet, types

    try:
        with parquet.ParquetFile(BytesIO(content)) as file:
            head, schema = file.metadata, file.schema_arrow
        _check_packed(head, schema, where, most_places)
        # As a dictionary, a text is in memory once: its repetitions are counted, then made.
        texts = [field.name for field in schema if not types.is_dictionary(field.type)]
        with parquet.ParquetFile(BytesIO(content), read_dictionary=texts) as file:
            frame: DataFrame = file.read().to_pandas()
        frame = frame.reset_index(drop=all(name is None for name in frame.index.names))
        left = 8 * most_places
        for name in texts:
            if name in frame and frame[name].dtype == "category":
                distinct = frame[name].cat.categories
                letters = np.array([*map(len, distinct), 0])[frame[name].cat.codes].sum()
                if (left := left - int(letters)) < 0:
                    raise DataError(
                        f"{where}: its texts have more than {8 * most_places:,} letters"
                    )
                frame[name] = frame[name].astype(distinct.dtype)
        return frame
    except DataError:
        raise
    except Exception as error:  # pyarrow or pandas may raise anything on a damaged file
        problem = " ".join(str(error).split()) or type(error).__name__
        raise DataError(f"{where}: cannot be read as parquet: {problem}") from error


def _check_packed(head: FileMetaData, schema: Schema, where: str, most_places: int) -> None:
    """Refuse a parquet file by its description, before its rows take memory."""
    from pyarrow import types

    _check_repeats(schema.names, where)
    parts = [head.row_group(i) for i in range(head.num_row_groups)]
    rows = max(head.num_rows, sum(part.num_rows for part in parts))
    if rows * len(schema) > most_places:
        raise DataError(f"{where}: {rows:,} rows of {len(schema):,} columns are too many")
    if sum(part.total_byte_size for part in parts) > _MOST_BYTES:
        raise DataError(f"{where}: is larger than {_MOST_BYTES // 2**20:,} MiB when unpacked")
    for field in schema:
        kind = field.type.value_type if types.is_dictionary(field.type) else field.type
        if types.is_nested(kind) or types.is_binary(kind) or types.is_fixed_size_binary(kind):
            raise DataError(f"{where}: column {field.name!r} holds {kind}: not texts or numbers")


def _read_rows(text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(
        StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True
    )
    for fields in reader:
        yield reader.line_num, fields


def _check_header(header: Sequence[str], where: str, separator: str | None) -> None:
    if "" in header:
        raise DataError(
            f"{where}, line 1: column {header.index('') + 1} has no name (if pandas wrote "
            "its index there, save with to_csv(index=False))"
        )
    _check_repeats(header, f"{where}, line 1")
    if not header:
        raise DataError(f"{where}: is empty")
    if len(header) == 1:
        likely = next((mark for mark in ";,\t|" if mark in header[0]), ";")
        mend = f"Add, for example, separator = {json.dumps(likely)}"
        raise DataError(
            f"{where}, line 1: found one column, {header[0]!r}; is the separator not "
            f"{show_value(separator or ',')}? {mend if separator else 'Save it with commas'}"
        )


def _check_repeats(names: Sequence[str], where: str) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise DataError(f"{where}: {count} columns have the name {name!r}")


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
