"""The rows of a run as files that other tools read."""

from __future__ import annotations

import sys
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fpbench.base.errors import InputError, suggest_name, tell_extra
from fpbench.base.files import check_output, write_output
from fpbench.base.text import escape_unprintable
from fpbench.store.results import Results

if TYPE_CHECKING:
    from pandas import DataFrame


FORMATS = ("csv", "parquet", "jsonl")
NOT_RUN = "not run"
"""Status of a cell without one: it was not chosen, or the run was interrupted before it."""


_OTHER_FORMATS = frozenset({"xlsx", "xls", "ods", "json", "feather", "arrow", "html", "md", "tex",
                            "gz", "bz2", "xz", "zip", "zst"})  # fmt: skip
"""Endings of formats that rows are not written in."""


def choose_format(output: Path | None, form: str | None) -> str:
    """One of `FORMATS`: the one asked for, else by the ending of the file; CSV by default.

    Raises InputError if another format is asked for, by its name or by the ending.
    """
    if form is not None and form not in FORMATS:
        raise InputError(f"unknown format {form!r}; {suggest_name(form, FORMATS)}")
    ending = "" if output is None else output.suffix.lower().removeprefix(".")
    if form is None and ending in _OTHER_FORMATS:
        raise InputError(
            f"{output}: rows are written as {', '.join(FORMATS)}, not {ending}; name a file of one "
            "of these, or say --format"
        )
    return form or (ending if ending in FORMATS else "csv")


def export_rows(results: Results, form: str, output: Path | None, *, long: bool) -> None:
    """Write rows as `csv`, `parquet` or `jsonl`, to a file or to standard output.

    Texts are written unchanged, except that CSV on a terminal spells out control characters. JSON
    always does.

    `output`: the file; standard output if None, which Parquet refuses. `long`: one row per measure
    (columns `measure` and `value`) instead of one per cell.

    Raises InputError if the file cannot be written, Parquet has no file or no pyarrow, or a table
    that is not `long` would be nearly empty.
    """
    if output is not None:
        check_output(output)
    frame = _to_long(results) if long else results.frame()
    frame["status"] = frame["status"].replace("", NOT_RUN)
    content = BytesIO()
    stream: Any = sys.stdout if output is None else content
    try:
        if form == "parquet":
            _write_parquet(frame, None if output is None else content)
        elif form == "csv":
            printable = _escape_texts(frame) if output is None and sys.stdout.isatty() else frame
            printable.to_csv(stream, index=False)
        else:
            frame.to_json(stream, orient="records", lines=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        why = error.strerror or error
        raise InputError(f"standard output: cannot be written: {why}") from error
    if output is not None:
        write_output(output, content.getvalue())


def _to_long(results: Results) -> DataFrame:
    """One row per value; missing values take no room."""
    import pandas as pd

    fixed = results.fixed()
    parts = [(np.arange(len(results)), "seconds", fixed.pop("seconds").tolist())]
    parts += [
        (rows, name, column.values())
        for name in results.names for rows, column in results.columns(name)
    ]  # fmt: skip
    frame = pd.DataFrame(fixed).take(np.concatenate([rows for rows, *_ in parts]))
    frame["measure"] = [name for rows, name, _ in parts for _ in rows]
    frame["value"] = [value for *_, values in parts for value in values]
    return frame.dropna(subset="value")


def _escape_texts(frame: DataFrame) -> DataFrame:
    def spell(value: Any) -> Any:
        return escape_unprintable(value) if isinstance(value, str) else value

    texts = [name for name in frame if frame[name].dtype.kind not in "biuf"]
    printable = frame.copy(deep=False)
    for name in texts:
        printable[name] = frame[name].map(spell)
    return printable.rename(columns=spell)


def _write_parquet(frame: DataFrame, stream: BytesIO | None) -> None:
    if stream is None:
        raise InputError("Parquet is binary: name a file with --output")
    # A long export holds numbers and words in one column, which Parquet has no type for.
    if "value" in frame:
        frame = frame.assign(value=frame["value"].astype(str))
    try:
        frame.to_parquet(stream, index=False)
    except ImportError as error:
        raise InputError(f"Parquet needs pyarrow: {tell_extra('parquet')}") from error
