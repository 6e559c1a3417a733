"""A user's own table as text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from fpbench.builtin.datasets._own import OwnFile
from fpbench.tabular import read_csv

if TYPE_CHECKING:
    from pandas import DataFrame


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
