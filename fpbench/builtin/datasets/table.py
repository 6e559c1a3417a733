"""A table passed from Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import Field

from fpbench import DataError, DataHome, Dataset, Table
from fpbench.base import suggest_name


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
