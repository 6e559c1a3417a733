"""Published files: kinds of their columns, and a strict reader: an unexpected row is an error.

Pandas would fill a short row with missing values, whose row would then be dropped silently.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from io import StringIO
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from fpbench.base import suggest_name
from fpbench.data import DatasetFacts, Domain
from fpbench.errors import DataError
from fpbench.plugin import DataFile, DataHome
from fpbench.tabular import LabelledColumns, TabularDataset

_WHOLE = re.compile(r"[+-]?[0-9]{1,9}", re.ASCII)  # nine digits fit the 32 bits of a column
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", re.ASCII)
"""Accepted spelling of a number."""


class ColumnKind(Protocol):
    """The kind of a column of a file."""

    @property
    def expected(self) -> str:
        """Description of a valid value, for messages."""

    def parse(self, text: str) -> Any:
        """The value of a field; ValueError if invalid."""

    def column(self, values: list[Any]) -> Any:
        """Values as a column of a data frame."""


@dataclass(frozen=True)
class Whole:
    """Whole numbers."""

    optional: bool = False
    """Whether an empty field is a missing value: the column is then of floats."""
    loose: bool = False
    """Whether spreadsheet notation is accepted: 1.00E+05, 20000.0."""
    expected = "a whole number"

    def parse(self, text: str) -> float:
        """A whole number of up to nine digits."""
        if self.optional and not text:
            return float("nan")
        if _WHOLE.fullmatch(text):
            return int(text)
        value = float(text) if self.loose and NUMBER.fullmatch(text) else float("nan")
        if abs(value) < 10**9 and value.is_integer():
            return int(value)
        raise ValueError

    def column(self, values: list[Any]) -> Any:
        """Integers, or floats if some may be missing."""
        return np.array(values, np.float64 if self.optional else np.int32)


@dataclass(frozen=True)
class Number:
    """Numbers."""

    expected = "a number"

    def parse(self, text: str) -> float:
        """A finite number."""
        if not NUMBER.fullmatch(text) or not np.isfinite(value := float(text)):
            raise ValueError
        return value

    def column(self, values: list[Any]) -> Any:
        """Floats."""
        return np.array(values, np.float64)


@dataclass(frozen=True)
class Words:
    """Any words: a categorical with the sorted categories of the whole table."""

    expected = "a word"

    def parse(self, text: str) -> str:
        """A word, not empty."""
        if not text:
            raise ValueError
        return text

    def column(self, values: list[Any]) -> Any:
        """A categorical."""
        return make_categorical(values, sorted(set(values)))


@dataclass(frozen=True)
class Codes:
    """Codes and their names: a categorical with categories in this order."""

    names: Mapping[str, str]

    @property
    def expected(self) -> str:
        """The codes."""
        return " or ".join(map(repr, self.names))

    def parse(self, text: str) -> str:
        """The name of a code."""
        if text not in self.names:
            raise ValueError
        return self.names[text]

    def column(self, values: list[Any]) -> Any:
        """A categorical without unused categories."""
        present = set(values)
        return make_categorical(
            values, [n for n in dict.fromkeys(self.names.values()) if n in present]
        )


@dataclass(frozen=True)
class Label:
    """Words for 0 and 1."""

    values: Mapping[str, int]

    @property
    def expected(self) -> str:
        """The words."""
        return " or ".join(map(repr, self.values))

    def parse(self, text: str) -> int:
        """0 or 1."""
        if text not in self.values:
            raise ValueError
        return self.values[text]

    def column(self, values: list[Any]) -> Any:
        """Labels."""
        return np.array(values, np.int8)


@dataclass(frozen=True)
class Code:
    """Numeric codes without names: a categorical of whole numbers, sorted; -1 if empty."""

    expected = "a code"

    def parse(self, text: str) -> int:
        """A number of up to nine digits, besides leading zeros."""
        if not text:
            return -1
        if not _WHOLE.fullmatch(text):
            raise ValueError
        return int(text)

    def column(self, values: list[Any]) -> Any:
        """A categorical of strings."""
        order = [str(value) for value in sorted(set(values))]
        return make_categorical([str(value) for value in values], order)


@dataclass(frozen=True)
class Day:
    """Times, rounded down to days; an empty field is missing."""

    expected = "a time like 2013-08-13 06:03:42"

    def parse(self, text: str) -> np.datetime64:
        """A day."""
        if not text:
            return np.datetime64("NaT", "D")
        return np.datetime64(datetime.strptime(text, "%Y-%m-%d %H:%M:%S").date())

    def column(self, values: list[Any]) -> Any:
        """Days."""
        return np.array(values, "datetime64[D]").astype("datetime64[s]")


def derive_domain(
    kinds: Mapping[str, ColumnKind], bounds: Mapping[str, tuple[float, float]]
) -> Domain:
    """The public domain of columns: names of their codes, and bounds."""
    coded = {
        name: tuple(dict.fromkeys(kind.names.values()))
        for name, kind in kinds.items()
        if isinstance(kind, Codes)
    }
    return Domain(bounds, coded)


def parse_words(text: str) -> Codes:
    """Codes that are their own names, from words separated by blanks."""
    return Codes({word: word for word in text.split()})


def make_categorical(values: Sequence[Any], categories: Sequence[str]) -> Any:
    """A categorical of strings."""
    import pandas as pd

    return pd.Categorical(values, categories=list(categories))


@dataclass(frozen=True)
class Layout:
    """The layout of a file."""

    what: str
    """Name of the expected file, for messages."""
    columns: Mapping[str, ColumnKind]
    """The columns to read; without a header, all columns in order."""
    check: str = ""
    """A hint for finding the fault, for messages."""
    header: bool = True
    separator: str = ","
    comment: str = ""
    """Prefix of lines to skip."""
    missing: str | None = None
    """Field for a missing value: its row is dropped."""
    other_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Alternative names of columns in the header."""


class Content(NamedTuple):
    """Content in memory, read like a file."""

    name: str
    text: str

    def open(self, **_: Any) -> StringIO:
        """A stream of the content, as of a file."""
        return StringIO(self.text, newline="")

    def __str__(self) -> str:
        return self.name


class PublishedDataset(TabularDataset):
    """A data set of published files with one layout; the last column is the label."""

    published: ClassVar[tuple[DataFile, ...]]
    layout: ClassVar[Layout]
    about: ClassVar[DatasetFacts]

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The published files."""
        return self.published

    def find_files(self, home: DataHome) -> list[Path]:
        """Paths of the files.

        Raises DataError, with the command that fetches it, if one is missing.
        """
        try:
            return [home.find(file) for file in self.files]
        except DataError as error:
            fetch = f"`fpbench data fetch {self.name}` downloads it"
            raise DataError(f"{error}; {fetch}") from None

    def read(self, home: DataHome) -> LabelledColumns:
        """Read the files.

        Raises DataError if a file is missing, or has an unexpected row.
        """
        frame = read(self.find_files(home), self.layout)
        return LabelledColumns(
            frame, frame.pop([*self.layout.columns][-1]).to_numpy(), self.about.label
        )


def read(paths: Sequence[Path | Content], layout: Layout) -> Any:
    """Read files as one data frame, one after the other; errors are those of `read_parts`."""
    return read_parts(paths, layout)[0]


def read_parts(paths: Sequence[Path | Content], layout: Layout) -> tuple[Any, list[int]]:
    """Read files as one data frame, one after the other, and count the rows of each.

    Raises DataError, with file and line, and column and value if known, of unexpected content.
    """
    import pandas as pd

    rows: list[list[str]] = []
    origins: list[tuple[Path | Content, list[int]]] = []
    for path in paths:
        lines = []
        for line, row in _read_rows(path, layout):
            rows.append(row)
            lines.append(line)
        if not lines:
            raise DataError(_locate(str(path), "holds no complete row", layout))
        origins.append((path, lines))
    columns = {}
    for number, (name, kind) in enumerate(layout.columns.items()):
        columns[name] = _parse_column(name, kind, [row[number] for row in rows], origins, layout)
    return pd.DataFrame(columns), [len(lines) for _, lines in origins]


def _parse_column(
    name: str,
    kind: ColumnKind,
    texts: list[str],
    origins: list[tuple[Path | Content, list[int]]],
    layout: Layout,
) -> Any:
    parsed = {}
    for text in dict.fromkeys(texts):
        try:
            parsed[text] = kind.parse(text)
        except ValueError:
            place = _find_line(texts.index(text), origins)
            problem = f"{name} is {text!r}, not {kind.expected}"
            raise DataError(_locate(place, problem, layout)) from None
    return kind.column([parsed[text] for text in texts])


def _find_line(row: int, origins: list[tuple[Path | Content, list[int]]]) -> str:
    for path, lines in origins:
        if row < len(lines):
            return f"{path}, line {lines[row]}"
        row -= len(lines)
    raise IndexError(row)


def _read_rows(path: Path | Content, layout: Layout) -> Iterator[tuple[int, list[str]]]:
    """Line numbers, and fields of the layout's columns, of rows without missing values."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = (line for line in file) if not layout.comment else _blank_comments(file, layout)
            yield from _parse_rows(path, lines, layout)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(_locate(str(path), _explain(error), layout)) from error


def _explain(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        byte = error.object[error.start]
        return f"is not UTF-8 text (byte {byte:#04x} is invalid); save it as UTF-8"
    return f"cannot be read: {error}"


def _blank_comments(file: Iterator[str], layout: Layout) -> Iterator[str]:
    """Lines, with comments replaced by blank lines to keep line numbers."""
    return ("\n" if line.startswith(layout.comment) else line for line in file)


def _parse_rows(
    path: Path | Content, lines: Iterator[str], layout: Layout
) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(lines, delimiter=layout.separator, skipinitialspace=True, strict=True)
    names, header = list(layout.columns), list(layout.columns)
    places = list(range(len(names)))
    if layout.header:
        header = [field.strip() for field in next(reader, [])]
        places = [_find_column(name, header, path, layout) for name in names]
    known: dict[str, str] = {}
    for fields in reader:
        if len(fields) < 2 and not "".join(fields).strip():
            continue
        if len(fields) != len(header):
            problem = f"{len(fields)} columns, but {layout.what} has {len(header)}"
            raise DataError(_locate(f"{path}, line {reader.line_num}", problem, layout))
        row = [fields[place].strip() for place in places]
        if layout.missing is None or layout.missing not in row:
            # Most values repeat: sharing one string for equal values takes a tenth of the memory.
            yield reader.line_num, [known.setdefault(text, text) for text in row]


def _find_column(name: str, header: list[str], path: Path | Content, layout: Layout) -> int:
    """Position of a column; the first of several with its name."""
    for candidate in (name, *layout.other_names.get(name, ())):
        if candidate in header:
            return header.index(candidate)
    problem = f"has no column {name!r}; {suggest_name(name, header)}"
    raise DataError(_locate(f"{path}, line 1", problem, layout))


def _locate(place: str, problem: str, layout: Layout) -> str:
    return f"{place}: {problem}" + (f"; {layout.check}" if layout.check else "")
