"""A user's own table as a parquet file."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from fpbench import DataError
from fpbench.base import tell_extra
from fpbench.builtin.datasets._own import OwnFile
from fpbench.tabular import read_parquet

if TYPE_CHECKING:
    from pandas import DataFrame


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
