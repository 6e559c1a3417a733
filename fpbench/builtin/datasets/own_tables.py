"""Data sets of a user's own: CSV and parquet files, and tables passed from Python."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from fpbench import Dataset, Table, table
from fpbench.base import suggest_name, tell_extra
from fpbench.data import DomainParameter, Dropped, Sensitive, measured_cuts
from fpbench.errors import DataError
from fpbench.plugin import DataFile, DataHome
from fpbench.tabular import domain_field, read_csv, read_parquet, sensitive_field

if TYPE_CHECKING:
    from pandas import DataFrame

_READ_AT_ONCE = 32 * 1024**2
"""Greatest size in bytes of a file to read while planning: about a second."""
_EXAMPLE = {"label_column": "paid", "positive": "yes", "sensitive": "sex"}


class OwnFile(Dataset):
    """A file of the user's own; its columns are treated as by `fpbench.table`."""

    path: str = Field(
        min_length=1,
        description="the file: absolute, or relative to the working or a data directory",
    )
    label_column: str = Field(description="column of the labels")
    sensitive: Sensitive = sensitive_field()
    positive: str | bool | int | float | None = Field(
        None, description="label that counts as 1; without it, labels must be 0 or 1, or booleans"
    )
    drop: Dropped = Field((), description="columns to leave out of the features")
    household: str | None = Field(
        None, description="column of household ids; larger households widen limits"
    )
    missing: Literal["error", "drop"] = Field(
        "error", description="what to do about missing values in used columns"
    )
    domain: DomainParameter = domain_field()

    @classmethod
    def examples(cls, directory: Path) -> list[dict[str, Any]]:
        """A small file of people."""
        import pandas as pd

        frame = pd.DataFrame(
            {
                "age": [20 + (7 * i) % 45 for i in range(60)],
                "job": [("clerk", "farmer", "nurse")[i % 3] for i in range(60)],
                "sex": [("Female", "Male")[i % 2] for i in range(60)],
                "paid": [("no", "yes")[i // 2 % 2] for i in range(60)],
            }
        )
        path = directory / f"people.{cls.name}"
        cls.write_example(frame, path)
        return [{"path": str(path), **_EXAMPLE}]

    @classmethod
    @abstractmethod
    def write_example(cls, frame: DataFrame, path: Path) -> None:
        """Write a frame as a file of this format."""

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The file; in the working directory if it exists there."""
        path = Path(self.path).expanduser()
        return (DataFile(str(path.resolve()) if path.is_file() else str(path)),)

    @property
    def n_groups(self) -> int | None:
        """Number of groups, if the rules determine it."""
        if any(isinstance(item, str) for item in self.sensitive):
            return None
        return math.prod(len(item.groups) for item in self.sensitive if not isinstance(item, str))

    @property
    def measured_cuts(self) -> dict[str, str]:
        """Groups that are cut at a quantile, and how."""
        return measured_cuts(self.sensitive)

    def absent(self, home: DataHome) -> str | None:
        """Why it cannot be loaded here; None if it can."""
        if not home.missing(self.files):
            return None
        if Path(self.path).expanduser().is_dir():
            return f"{self.name}: {self.path!r} is a directory, not a file"
        return f"{self.name}: no file {self.path!r} in the working directory or in {home}"

    def fetch(self, home: DataHome) -> list[Path]:
        """Refuse: the file is the user's; DataError if it is not here."""
        if (why := self.absent(home)) is not None:
            raise DataError(why)
        return [home.find(file) for file in self.files]

    def check(self, home: DataHome) -> None:
        """Read the file, unless it is too large: the run reads it anyway.

        Raises InputError, DataError: as `load`.
        """
        (path,) = self.fetch(home)
        if path.stat().st_size <= _READ_AT_ONCE:
            self.load(home)

    def load(self, home: DataHome) -> Table:
        """Read the file.

        Raises InputError if a named column or value does not exist; DataError if the file cannot be
        read, or `fpbench.table` refuses it.
        """
        (path,) = self.fetch(home)
        return table(
            self.frame(path),
            label=self.label_column,
            sensitive=self.sensitive,
            positive=self.positive,
            drop=self.drop,
            household=self.household,
            missing=self.missing,
            domain=self.domain,
            name=path.name,
        )

    @abstractmethod
    def frame(self, path: Path) -> DataFrame:
        """The whole file as a frame; DataError if it cannot be read."""


class CSV(OwnFile):
    r"""A CSV file of your own, one row per person, with column names in the first line.

    The file is UTF-8 text. A column is numeric if all its values are numbers; any other becomes a
    categorical of strings, and so do whole numbers with leading zeros (codes).
    An empty field, `?`, `NA`, `N/A`, `NaN`, `nan`, `null` or `NULL` is a missing value. A row with
    more or fewer fields than the first line is an error that names its line.

    Labels must be 0 or 1 (or true and false), or `positive` says which value counts as 1.

    A feature that is the same for everyone, or an identifier (distinct words, or numbers that count
    rows), is refused with the `drop` that leaves it out.
    """

    name = "csv"
    summary = "your own table: a CSV file with a label and sensitive columns"

    separator: str = Field(
        ",", min_length=1, max_length=1, pattern='[^"\\r\\n]', description="separator of fields"
    )

    @classmethod
    def write_example(cls, frame: DataFrame, path: Path) -> None:
        """Write a frame as a file of this format."""
        frame.to_csv(path, index=False)

    def frame(self, path: Path) -> DataFrame:
        """The whole file as a frame.

        Raises DataError if it cannot be read, or a row and the first line differ in the number of
        fields.
        """
        return read_csv(path, self.separator)


class Parquet(OwnFile):
    """A parquet file of your own, one row per person.

    Numbers stay numbers; strings, booleans and categoricals become categoricals; other types
    (dates, lists) are refused with the name of the column, which you may drop. A named index
    becomes a column.

    Labels must be 0 or 1 or booleans, or `positive` says which value counts as 1.

    A feature that is the same for everyone, or an identifier (distinct words, or numbers that count
    rows), is refused with the `drop` that leaves it out.
    """

    name = "parquet"
    summary = "your own table: a parquet file with a label and sensitive columns"

    @classmethod
    def unavailable(cls) -> str | None:
        """Why it cannot run here: without pyarrow."""
        return None if find_spec("pyarrow") else f"needs pyarrow: {tell_extra('parquet')}"

    @classmethod
    def write_example(cls, frame: DataFrame, path: Path) -> None:
        """Write a frame as a file of this format, if pyarrow is installed."""
        if cls.unavailable() is None:
            frame.to_parquet(path)

    def frame(self, path: Path) -> DataFrame:
        """The whole file as a frame; DataError if it cannot be read."""
        if why := self.unavailable():
            raise DataError(f"{path}: {why}")
        return read_parquet(path)


class GivenTable(Dataset):
    """A table of your own, passed from Python with the matrix.

    In the matrix, `use = "table"` and `table = "people"`; in Python::

        people = fpbench.table(frame, label="paid", sensitive="sex")
        fpbench.run("matrix.toml", tables={"people": people})

    Results are stored by the table's content: another table of the same name makes other cells.
    """

    name = "table"
    summary = "your own table, passed from Python: fpbench.run(..., tables={...})"

    table: str = Field(min_length=1, description="its name in `tables`")

    @classmethod
    def examples(cls, directory: Path) -> list[dict[str, Any]]:
        """The table that `fpbench check` passes."""
        return [{"table": "people"}]

    def absent(self, home: DataHome) -> str | None:
        """Why it cannot be loaded here; None if it can."""
        if self.table in home.tables:
            value: object = home.tables[self.table]
            if isinstance(value, Table):
                return None
            return (
                f"table {self.table!r} is a {type(value).__name__}: make a table of it, "
                "fpbench.table(frame, label=..., sensitive=...)"
            )
        known = f"; {suggest_name(self.table, home.tables)}" if home.tables else ""
        return (
            f"no table {self.table!r} was passed: use fpbench.run(..., "
            f'tables={{"{self.table}": ...}}) in Python{known}'
        )

    def checksums(self, home: DataHome) -> dict[str, Callable[[], str]]:
        """A function that computes the checksum of the table's content."""
        return {f"table {self.table}": home.tables[self.table].digest}

    def load(self, home: DataHome) -> Table:
        """The table; DataError if no table of this name was passed."""
        if (why := self.absent(home)) is not None:
            raise DataError(why)
        return home.tables[self.table]
