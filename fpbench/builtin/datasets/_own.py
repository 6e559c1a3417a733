"""The base of data sets from a user's own files."""

from __future__ import annotations

import math
from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from fpbench import DataError, DataFile, DataHome, Dataset, Table, table
from fpbench.data import DomainParameter, Dropped, Sensitive, measured_cuts
from fpbench.tabular import domain_field, sensitive_field

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
