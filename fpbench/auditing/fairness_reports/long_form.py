"""Reports read from frames in long form; whatever is wrong is told with its row and column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fpbench.auditing.fairness_reports.facts import Floats
from fpbench.auditing.fairness_reports.report_rows import Noise, ReportRows
from fpbench.auditing.fairness_reports.slices import FIXED_COLUMNS, REPORT_METRICS, SliceColumn
from fpbench.base.errors import InputError, suggest_name

if TYPE_CHECKING:
    from pandas import DataFrame

_NEEDED = FIXED_COLUMNS[:4]


def read_frame(frame: DataFrame, groups: Sequence[str] | None) -> ReportRows:
    """A report from slice columns, group, metric, value, n, and perhaps within and noise."""
    for need in _NEEDED:
        if need not in frame:
            why = ": rates without sizes tell no counts" if need == "n" else ""
            raise InputError(
                f"the report has no column {need!r}{why}; it needs {', '.join(_NEEDED)} beside the "
                "columns of the slices"
            )
    if not len(frame):
        raise InputError("the report has no rows")
    columns, codes = [], []
    for name in map(str, frame.columns):
        if name in FIXED_COLUMNS:
            continue
        texts = _read_texts(frame, name)
        given = texts[texts != ""]
        if not len(given):
            continue
        column = SliceColumn.parse(name, given.tolist())
        where = {value: code for code, value in enumerate(column.values)} | {"": -1}
        columns.append(column)
        codes.append(np.array([where[text] for text in texts], dtype=np.int64))
    metric, group = _read_texts(frame, "metric"), _read_texts(frame, "group")
    names = tuple(groups) if groups is not None else tuple(sorted(set(group)))
    _check_names(metric, REPORT_METRICS, "metric")
    _check_names(group, names, "group")
    if len(names) < 2:
        raise InputError(f"column 'group': the report is of one group, {names[0]!r}; give `groups`")
    value, n = _read_numbers(frame, "value"), _read_numbers(frame, "n")
    within = _read_numbers(frame, "within") if "within" in frame else np.zeros(len(value))
    _complain(~(n >= 0) | (n != np.floor(n)), "n", n, "must be a number of people")
    _complain(~(within >= 0), "within", within, "must be at least 0")
    noise = _read_noise(frame)
    rates = np.array([REPORT_METRICS[name].prediction is None for name in metric])
    blank = np.isnan(value)
    _complain(blank & ~(rates & (n == 0)), "value", value, "is missing")
    _complain(
        rates & ~blank & ((value < 0) | (value > 1)), "value", value, "is no rate from 0 to 1"
    )
    if noise is None:
        _complain(
            ~rates & ((value < 0) | (value - within > n)), "value", value,
            "is no number of people from 0 to n",
        )  # fmt: skip
    elif rates.any():
        _complain(rates, "metric", metric, "cannot have noise, which is added to numbers of people")
    cells = np.stack(codes, axis=1) if codes else np.zeros((len(value), 0), np.int64)
    where = {name: code for code, name in enumerate(names)}
    report = ReportRows(
        tuple(columns), names, cells, metric, np.array([where[name] for name in group]), value,
        n.astype(np.int64), within, noise,
    )  # fmt: skip
    _check_repeats(report)
    return report


def _check_repeats(report: ReportRows) -> None:
    _, metric = np.unique(report.metric, return_inverse=True)
    keys = np.column_stack([report.cells, metric, report.group])
    _, inverse, count = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    repeated = np.flatnonzero(count[inverse.ravel()] > 1)
    if len(repeated):
        first = repeated[0]
        again = repeated[inverse.ravel()[repeated] == inverse.ravel()[first]][1]
        raise InputError(
            f"rows {first} and {again} are both the {report.metric[first]} of "
            f"{report.groups[report.group[first]]!r} for {report.describe_slice(first)}"
        )


def _read_texts(frame: DataFrame, name: str) -> NDArray[Any]:
    import pandas as pd

    values = frame[name]
    texts = values.astype(object).where(pd.notna(values), "")
    return np.array([str(text) for text in texts], dtype=object)


def _read_numbers(frame: DataFrame, name: str) -> Floats:
    texts = _read_texts(frame, name)
    numbers = np.full(len(texts), np.nan)
    for row, text in enumerate(texts):
        try:
            numbers[row] = float(text) if text else np.nan
        except ValueError:
            raise InputError(f"row {row}, column {name!r}: {text!r} is no number") from None
    _complain(np.isinf(numbers), name, numbers, "is no number")
    return numbers


def _read_noise(frame: DataFrame) -> Noise | None:
    if "noise" not in frame:
        return None
    texts = set(_read_texts(frame, "noise"))
    law, _, scale = next(iter(texts)).partition(" ")
    try:
        width = float(scale)
    except ValueError:
        width = 0.0
    if len(texts) > 1 or law not in ("laplace", "gaussian") or not 0 < width < np.inf:
        raise InputError(
            "column 'noise' must be the same in all rows, a law and its scale: laplace 2.5, or "
            f"gaussian 3; not {', '.join(map(repr, sorted(texts)[:3]))}"
        )
    return Noise("laplace" if law == "laplace" else "gaussian", width)


def _check_names(values: NDArray[Any], valid: Sequence[str] | Any, what: str) -> None:
    for row, value in enumerate(values):
        if value not in valid:
            raise InputError(
                f"row {row}, column {what!r}: unknown {what} {value!r}; "
                f"{suggest_name(value, valid)}"
            )


def _complain(wrong: NDArray[np.bool_], column: str, values: NDArray[Any], why: str) -> None:
    """Raise InputError about the first row that is wrong."""
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        text = values[row] if isinstance(values[row], str) else f"{values[row]:g}"
        raise InputError(f"row {row}, column {column!r}: {text} {why}")
