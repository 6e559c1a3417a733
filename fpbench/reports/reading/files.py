"""Reports as JSON and Parquet, which describe themselves: columns, bins, groups, defences."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeGuard

import numpy as np

from fpbench.base.arguments import show_value
from fpbench.base.errors import DISTRIBUTION, InputError, check_choice, suggest_name, tell_extra
from fpbench.reports.reading.long_form import check_width, read_frame
from fpbench.reports.rows import ReportRows
from fpbench.reports.slices import SliceColumn, name_values
from fpbench.tabular.table_files import PARQUET, parse_csv, parse_parquet

if TYPE_CHECKING:
    from pandas import DataFrame

_FORMAT = "fpbench-report 1"
MOST_BYTES = 2**28
"""Largest file of a table, and of what is packed in it: it may come from a stranger."""
_MOST_PLACES = 2**26
"""Rows times columns."""
_MOST_EMPTY = 50
"""How many places there may be for each value of a list of rows, if they are many."""


def parse_report(
    content: bytes, file: Path, groups: Sequence[str] | None, decimals: int | None
) -> ReportRows:
    """The report of a file in long form, by its name; InputError for anything else."""
    import pandas as pd

    kind = file.suffix.lower()
    if kind == ".json":
        return _parse_json(content, file, groups, decimals)
    if kind in PARQUET:
        return _parse_parquet(content, file, groups, decimals)
    columns = parse_csv(content, str(file))
    return read_frame(pd.DataFrame(columns, dtype=object), groups, decimals)


def to_json_text(report: ReportRows, frame: DataFrame) -> str:
    """A report as JSON: its description, and its long form column by column."""
    columns = {
        name: [None if value != value else value for value in frame[name].tolist()]  # noqa: PLR0124
        for name in frame.columns
    }
    whole = {**describe(report), "rows": columns}
    return json.dumps(whole, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _parse_json(
    text: bytes, file: object, groups: Sequence[str] | None, decimals: int | None
) -> ReportRows:
    """The report that `to_json_text` wrote, or of a list of rows; InputError for anything else."""
    try:
        whole = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=refuse_repeats)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file} cannot be read as a JSON file: {error}") from None
    if isinstance(whole, list) and all(isinstance(row, dict) for row in whole):
        return read_frame(_make_frame(_collect_columns(whole, file), file), groups, decimals)
    if not isinstance(whole, dict) or not isinstance(rows := whole.get("rows"), dict):
        raise InputError(
            f"{file}: a report in JSON is a list of rows, or has an object `rows` of columns"
        )
    return _read_described(_make_frame(rows, file), whole, file, groups, decimals)


def _collect_columns(rows: Sequence[Mapping[str, Any]], file: object) -> dict[str, list[Any]]:
    """The columns of rows, which may lack some; refused before they take much more memory."""
    names = dict.fromkeys(name for row in rows for name in row)
    check_width(len(names))
    if (places := len(rows) * len(names)) > max(_MOST_EMPTY * sum(map(len, rows)), 2**20):
        raise InputError(
            f"{file}: its {len(rows):,} rows of {len(names):,} columns are {places:,} places, most "
            "of them empty: write every column in each row"
        )
    return {name: [row.get(name) for row in rows] for name in names}


def _make_frame(rows: Mapping[str, Any], file: object) -> DataFrame:
    import pandas as pd

    for name, values in rows.items():
        if not isinstance(values, list) or not all(
            value is None or isinstance(value, str | int | float) for value in values
        ):
            raise InputError(f"{file}: column {name!r} must be a list of texts and numbers")
    if len({len(values) for values in rows.values()}) > 1:
        raise InputError(f"{file}: the columns of `rows` are of different lengths")
    return pd.DataFrame(rows, dtype=object)


def to_parquet_bytes(report: ReportRows, frame: DataFrame) -> bytes:
    """A report as Parquet, its description among the attributes of the frame."""
    if find_spec("pyarrow") is None:
        raise InputError(f"Parquet files need pyarrow: {tell_extra('parquet')}")
    frame = frame.copy()
    for name in frame.columns:  # blanks among whole numbers
        if name in ("n", "below"):
            frame[name] = frame[name].astype("Int64")
    frame.attrs = {"fpbench": json.dumps(describe(report))}
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False)
    return buffer.getvalue()


def _parse_parquet(
    content: bytes, file: object, groups: Sequence[str] | None, decimals: int | None
) -> ReportRows:
    """The report of a Parquet file in long form; InputError for anything else."""
    frame = parse_parquet(content, str(file), _MOST_PLACES)
    described = frame.attrs.get("fpbench", "{}")
    try:
        description = json.loads(described) if isinstance(described, str) else None
    except (ValueError, RecursionError):
        description = None
    if not isinstance(description, dict):
        raise InputError(f"{file}: its description is no JSON")
    return _read_described(frame, description, file, groups, decimals)


def describe(report: ReportRows) -> dict[str, Any]:
    """What a report is made of, as JSON has it."""
    return {
        "format": _FORMAT,
        "fpbench": version(DISTRIBUTION),
        "groups": list(report.groups),
        "columns": [
            {"name": c.name, "values": list(c.values)}
            | ({} if c.edges is None else {"edges": list(c.edges)})
            for c in report.columns
        ],
        "defences": dict(report.defences),
    }


def _read_described(
    frame: DataFrame,
    description: Mapping[str, Any],
    file: object,
    group_names: Sequence[str] | None,
    decimals: int | None,
) -> ReportRows:
    """A report in long form, with the groups, columns and defences that are described."""
    if not description:  # of somebody who wrote the long form alone
        return read_frame(frame, group_names, decimals)
    if description.get("format") != _FORMAT:
        found = show_value(description.get("format"))
        raise InputError(f"{file}: its format must be {_FORMAT!r}, not {found}")
    groups, defences = description.get("groups"), description.get("defences")
    if not _are_texts(groups) or not isinstance(defences, dict):
        raise InputError(f"{file}: `groups` must be a list of names, and `defences` an object")
    report = read_frame(frame, groups if group_names is None else group_names, decimals)
    columns = description.get("columns")
    if not isinstance(columns, list):
        raise InputError(f"{file}: `columns` must be a list")
    described = [_read_column(column, file) for column in columns]
    by_name = {column.name: column for column in described}
    if len(by_name) < len(described) or {c.name for c in report.columns} - set(by_name):
        raise InputError(f"{file}: `columns` must name each column of slices once")
    for name, value in (pair for one in report.statistics for pair in one.slice):
        check_choice(f"value of column {name!r}", value, by_name[name].values)
    order = {column.name: place for place, column in enumerate(report.columns)}
    cells = np.full((len(report), len(described)), -1)
    for place, column in enumerate(described):
        if column.name not in order:
            continue
        old = report.columns[order[column.name]]
        where = {value: code for code, value in enumerate(column.values)}
        used = np.unique(report.cells[:, order[column.name]])
        for code in used[used >= 0]:
            if old.values[code] not in where:
                row = int(np.flatnonzero(report.cells[:, order[column.name]] == code)[0])
                raise InputError(
                    f"{file}: row {row}, column {column.name!r}: {old.values[code]!r} is none of "
                    "the values that `columns` lists; "
                    f"{suggest_name(old.values[code], column.values)}"
                )
        codes = np.array([*(where.get(value, -1) for value in old.values), -1])
        cells[:, place] = codes[report.cells[:, order[column.name]]]
    return replace(report, columns=tuple(described), cells=cells, defences=defences)


def _read_column(column: Any, file: object) -> SliceColumn:
    if isinstance(column, dict) and isinstance(name := column.get("name"), str):
        values, edges = column.get("values"), column.get("edges")
        if _are_texts(values) and edges is None and "" not in values:
            return SliceColumn(name, name_values(values, f"column {name!r}"))
        if isinstance(edges, list) and all(
            isinstance(edge, int | float) and abs(edge) < np.inf for edge in edges
        ):
            binned = SliceColumn.with_edges(name, edges)
            if sorted(set(edges)) == edges and list(binned.values) == values:
                return binned
    raise InputError(
        f"{file}: a column needs a name, and values that are texts, or bins between its edges; not "
        f"{show_value(column)}"
    )


def _are_texts(values: Any) -> TypeGuard[list[str]]:
    return (
        isinstance(values, list)
        and all(isinstance(value, str) for value in values)
        and len(set(values)) == len(values)
    )


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def refuse_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, whose names are to be different."""
    whole = dict(pairs)
    if len(whole) < len(pairs):
        names = Counter(name for name, _ in pairs)
        raise ValueError(f"an object has two values of {max(names, key=names.__getitem__)!r}")
    return whole
