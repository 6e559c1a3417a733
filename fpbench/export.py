"""The rows of a run as files that other tools read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from fpbench.errors import InputError
from fpbench.kinds import KINDS

if TYPE_CHECKING:
    from pandas import DataFrame

_FIXED = ("cell", *KINDS, "seed", "status", "reason")


def write(frame: DataFrame, form: str, output: Path | None, *, long: bool) -> None:
    """Write rows as `csv`, `parquet` or `jsonl`, to a file or to standard output.

    Parameters
    ----------
    frame
        As `Run.frame()` gives it.
    form
        The format.
    output
        The file; standard output if None, which Parquet refuses.
    long
        One row a measure (columns `measure` and `value`) instead of one a cell.

    Raises
    ------
    InputError
        If the file cannot be written, or Parquet has no file or no pyarrow.
    """
    if long:
        kept = [name for name in _FIXED if name in frame]
        frame = frame.melt(id_vars=kept, var_name="measure", value_name="value")
        frame = frame.dropna(subset="value")
    try:
        if form == "parquet":
            _parquet(frame, output)
        elif form == "csv":
            frame.to_csv(output or sys.stdout, index=False)
        else:
            frame.to_json(output or sys.stdout, orient="records", lines=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(
            f"{output or 'standard output'}: cannot be written: {error.strerror or error}"
        ) from error


def _parquet(frame: DataFrame, output: Path | None) -> None:
    if output is None:
        raise InputError("Parquet is binary: name a file with --output")
    # A long export holds numbers and words in one column, which Parquet has no type for.
    if "value" in frame:
        frame = frame.assign(value=frame["value"].astype(str))
    try:
        frame.to_parquet(output, index=False)
    except ImportError as error:
        raise InputError("Parquet needs pyarrow: pip install 'fpbench[parquet]'") from error
