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
    r"""A CSV file of your own, one row a person, the names of the columns in the first line.

    The file is UTF-8 text. A column all of whose values are numbers is one of numbers; any other
    becomes a categorical of strings, and so does one of whole numbers with leading zeros (codes).
    An empty field, `?`, `NA`, `N/A`, `NaN`, `nan`, `null` or `NULL` is a missing value. A row with
    more or fewer fields than the first line has is an error that names its line.

    Labels must be 0 or 1 (or true and false), or `positive` says which value counts as 1.

    A feature that is the same for everyone, or names everyone (words that are all different, or
    numbers that merely count rows), is refused with the `drop` that leaves it out.
    """

    name = "csv"
    summary = "your own table: a CSV file with a label and sensitive columns"

    separator: str = Field(
        ",", min_length=1, max_length=1, pattern='[^"\\r\\n]', description="between two fields"
    )

    @classmethod
    def write_example(cls, frame: DataFrame, path: Path) -> None:
        """Write a frame as a file of this format."""
        frame.to_csv(path, index=False)

    def frame(self, path: Path) -> DataFrame:
        """Everything in the file.

        Raises DataError if it cannot be read, or a row has another number of fields than the first
        line.
        """
        return read_csv(path, self.separator)
