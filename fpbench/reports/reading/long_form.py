"""Reports read from frames in long form; errors name the row and the column."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fpbench.base.arguments import check_columns_distinct, show_value
from fpbench.base.errors import InputError, find_near_name, suggest_name
from fpbench.claims.count_laws import CELL_KEY, LAWS, Floats
from fpbench.reports.linear_statistics import (
    Statistic,
    is_comparison,
    is_rate,
    is_statistic,
)
from fpbench.reports.reading.metric_names import explain_unknown, read_metric
from fpbench.reports.rounding import Rounding
from fpbench.reports.rows import ReportRows, StatedGuarantee
from fpbench.reports.slices import (
    FIXED_COLUMNS,
    MISSING,
    Codes,
    SliceColumn,
    name_values,
)

if TYPE_CHECKING:
    from pandas import DataFrame

_NEEDED = FIXED_COLUMNS[:3]
_MOST_COLUMNS, _MOST_GROUPS = 1000, 1000
_LISTED = 20
"""Columns that a message lists."""
_DIGITS = 15
"""Most digits of rates."""
_OFTENER = 3
"""How many times more rows a group has in a report than a misspelling of its name."""
_HINTS = {
    "%": ": divide percentages by 100",
    ",": ": write a decimal point, and no separators",
    **dict.fromkeys("_' \u00a0\u202f\u2019", ": write digits without separators"),
}
LEAVE_INDEX = "leave it out (pandas writes such an index unless to_csv(index=False) is asked for)"
"""Remedy for a table with a column that numbers its rows."""
_NOISE = tuple(name for name in LAWS[:CELL_KEY] if name not in ("exact", "rounding"))
"""Laws of noise that a row may name."""
_GREATEST = 2.0**53
"""Of numbers of people, which floats hold exactly."""


def read_frame(
    frame: DataFrame, groups: Sequence[str] | None, decimals: int | None = None
) -> ReportRows:
    """A report from slice columns, group, metric, value, and perhaps the other fixed columns.

    See `FairnessReport.from_frame`.
    """
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"a report in long form is a data frame, not {type(frame).__name__}")
    check_width(len(frame.columns))
    frame = frame.set_axis(list(map(str, frame.columns)), axis=1)
    _check_columns(frame)
    _check_options(groups, decimals)
    columns, codes = [], []
    for name in frame.columns:
        if name in FIXED_COLUMNS:
            continue
        texts = _read_texts(frame, name)
        given = texts[texts != ""]
        if not len(given):
            continue
        if numbers_rows(texts.tolist()):
            raise InputError(f"column {name!r} numbers the rows and cuts no slices: {LEAVE_INDEX}")
        column = SliceColumn.parse(name, given.tolist())
        where = {value: code for code, value in enumerate(column.values)} | {"": -1}
        columns.append(column)
        codes.append(np.array([where[text] for text in texts], dtype=np.int64))
    (metric, from_one), group = _read_metrics(frame), _read_texts(frame, "group")
    names = name_values(groups) if groups is not None else tuple(sorted({*group} - {""}))
    if len(set(names)) < len(names):
        raise InputError(f"groups: a name is given twice in {', '.join(names)}")
    compared = np.array(list(map(is_comparison, metric)))
    if (blank := (group == "") & ~compared).any():
        raise InputError(f"row {np.flatnonzero(blank)[0]}, column 'group': is blank")
    if len(names) > _MOST_GROUPS:
        raise InputError(f"column 'group': {len(names):,} groups are more than {_MOST_GROUPS:,}")
    where = {name: code for code, name in enumerate(names)}
    _check_groups(group, where)
    if len(names) < 2:
        raise InputError(
            f"column 'group': every row is of the group {''.join(names)!r}; a report needs rows of "
            "two groups or more, or else the names of all groups (`groups`)"
        )
    value, n = _read_numbers(frame, "value"), _read_numbers(frame, "n", least=0, whole=True)
    value = np.where(from_one, 1 - value, value)
    within = np.nan_to_num(_read_numbers(frame, "within", least=0))
    below = np.nan_to_num(_read_numbers(frame, "below", least=1, whole=True))
    law, noise = _read_noise(frame)
    cells = np.stack(codes, axis=1) if codes else np.zeros((len(value), 0), np.int64)
    if decimals is not None:
        rates = np.array(list(map(is_rate, metric)))
        within = np.maximum(within, np.where(rates, 0.5 * 10.0**-decimals, 0.0))
    left = ~np.array(list(map(is_statistic, metric)))
    report = ReportRows(
        tuple(columns), names, cells[left], metric[left],
        np.array([where[name] for name in group[left]], np.int64), value[left],
        np.where(np.isnan(n), -1, n)[left].astype(np.int64), within[left], law[left], noise[left],
        below[left].astype(np.int64), _read_measured(frame, law)[left], _read_rounding(frame),
        statistics=_read_statistics(columns, cells, metric, group, value, within),
    )  # fmt: skip
    _complain(
        ~left & ((law > 0) | (report.rounding is not None)), "metric", metric,
        "of numbers that are rounded or noisy is not read",
    )  # fmt: skip
    _check_values(report)
    _check_repeats(report, _read_texts(frame, "metric")[left])
    if groups is None:
        _check_spelling(report)
    return replace(report, guarantee=_read_guarantee(frame))


def _read_statistics(
    columns: Sequence[SliceColumn], cells: Codes, metric: NDArray[Any], group: NDArray[Any],
    value: Floats, within: Floats,
) -> tuple[Statistic, ...]:  # fmt: skip
    """The statistics among rows, of which only those that are published tell something."""
    statistics = []
    for row in np.flatnonzero(~np.isnan(value)):
        if is_statistic(metric[row]):
            pairs = zip(columns, cells[row].tolist(), strict=True)
            cut = tuple((column.name, column.values[code]) for column, code in pairs if code >= 0)
            ends = float(value[row]), float(within[row])
            statistics.append(Statistic(metric[row], group[row], cut, *ends))
    return tuple(statistics)


def check_width(columns: int) -> None:
    """Refuse a report of more columns than any has."""
    if columns > _MOST_COLUMNS:
        raise InputError(f"the report has {columns:,} columns, more than {_MOST_COLUMNS:,}")


def numbers_rows(texts: Sequence[str]) -> bool:
    """Whether a column of two rows or more counts them, from 0 or 1, as an index does."""
    return len(texts) > 1 and any(
        all(text == str(row) for row, text in enumerate(texts, first)) for first in (0, 1)
    )


def _check_columns(frame: DataFrame) -> None:
    check_columns_distinct("the report has", frame.columns)
    if not len(frame):
        raise InputError("the report has no rows")
    for need in _NEEDED:
        if need not in frame:
            near = next((own for own in frame.columns if own.casefold() == need), None)
            raise InputError(
                f"the report has no column {need!r}"
                + (f"; did you mean {near!r}?" if near else "")
                + f" (it needs {', '.join(_NEEDED)} beside the columns of the slices; its columns "
                f"are {', '.join(frame.columns[:_LISTED])})"
            )


def _check_options(groups: Sequence[str] | None, decimals: int | None) -> None:
    if groups is not None and (isinstance(groups, str) or len(groups) < 2):
        raise InputError(
            f"groups must be the names of two groups or more, as ['f', 'm'], not "
            f"{show_value(groups)}"
        )
    if decimals is not None and (
        isinstance(decimals, bool)
        or not isinstance(decimals, int | np.integer)
        or not 0 <= decimals <= _DIGITS
    ):
        raise InputError(
            f"decimals must be a whole number from 0 to {_DIGITS}, not {show_value(decimals)}"
        )


def _check_spelling(report: ReportRows) -> None:
    """Refuse a group that seems to be another one, mistyped.

    It is in a few blocks only, and in each of them the other is missing: one of a similar name, or
    one that is missing nowhere else.
    """
    there = report.blocks[1] >= 0
    together, count = there.T.astype(np.float32) @ there, there.sum(axis=0)
    for group in np.argsort(count, kind="stable")[np.count_nonzero(count == 0) :]:
        alike = (together[group] == 0) & (count >= _OFTENER * count[group])
        names = [report.groups[other] for other in np.flatnonzero(alike)]
        near = find_near_name(report.groups[group], names)
        missing = alike & (count + count[group] == len(there))
        if near is None and missing.sum() == 1:
            near = report.groups[int(np.flatnonzero(missing)[0])]
        if near is not None:
            row = int(np.flatnonzero(report.group == group)[0])
            raise InputError(
                f"row {row}, column 'group': unknown group {report.groups[group]!r}; did you mean "
                f"{near!r}? It occurs only where {near!r} is missing; if both are groups, name all "
                "groups by `groups`"
            )


def _check_values(report: ReportRows) -> None:
    """Refuse rates that are none, numbers above sizes, and values that are missing."""
    value, n, rates, noisy = report.value, report.n, report.is_rate, report.noisy
    blank = np.isnan(value)
    _complain(blank & noisy & (n > 0), "value", n, "people with noise, and no value")
    _complain(
        ~blank & rates & ((value < 0) | (value > 1)), "value", value,
        "is not a rate from 0 to 1; divide percentages by 100",
    )  # fmt: skip
    _complain(~blank & rates & (n == 0), "n", n, "people have a rate, which should be blank")
    _complain(
        ~blank & rates & noisy & (n < 0), "value", value,
        "is a noisy rate, and 'n' is missing: what it gives away cannot be measured",
    )  # fmt: skip
    half = report.within + report.reach
    number = ~rates & ~noisy & ~blank
    _complain(
        number & ((value < 0) | (n >= 0) & (value - half > n)), "value", value,
        "is not a number of people from 0 to n",
    )  # fmt: skip
    _complain(
        (report.below > 0) & ~report.suppressed, "below", report.below,
        "is set in a row that is not suppressed: value must be blank there",
    )  # fmt: skip


def _check_repeats(report: ReportRows, written: NDArray[Any]) -> None:
    """Refuse two rows of the same rate, whose metrics may be `written` by different names."""
    block, _ = report.blocks
    _, inverse, count = np.unique(
        block * len(report.groups) + report.group, return_inverse=True, return_counts=True
    )
    repeated = np.flatnonzero(count[inverse.ravel()] > 1)
    if len(repeated):
        first = repeated[0]
        again = repeated[inverse.ravel()[repeated] == inverse.ravel()[first]][1]
        raise InputError(
            f"rows {first} and {again} are both the {report.metric[first]} of "
            f"{report.groups[report.group[first]]!r} for {report.describe_slice(first)}"
            + (
                f" (by the names {written[first]!r} and {written[again]!r}): leave one of them out"
                if written[first] != written[again]
                else ""
            )
        )


def _read_texts(frame: DataFrame, name: str) -> NDArray[Any]:
    import pandas as pd

    values = frame[name]
    texts = values.astype(object).where(pd.notna(values), "")
    return np.array(name_values(texts, f"column {name!r}"), dtype=object)


def _read_numbers(
    frame: DataFrame, name: str, *, least: float = -_GREATEST, whole: bool = False
) -> Floats:
    """The numbers of a column, NaN where it is blank or there is no such column."""
    numbers = np.full(len(frame), np.nan)
    if name not in frame:
        return numbers
    for row, text in enumerate(_read_texts(frame, name)):
        try:
            if text.casefold() in MISSING or "_" in text:  # which float would take
                raise ValueError
            numbers[row] = float(text) if text not in ("", "*") else np.nan
        except ValueError:
            hint = next((h for mark, h in _HINTS.items() if mark in text), "")
            if text.casefold() in MISSING:
                hint = ": leave blank what is not published"
            raise InputError(
                f"row {row}, column {name!r}: {text!r} is not a number{hint}"
            ) from None
    _complain(np.isinf(numbers), name, numbers, "is not a number")
    _complain(np.abs(numbers) > _GREATEST, name, numbers, "is too large")
    wrong = (numbers < least) | whole & (numbers != np.floor(numbers)) & ~np.isnan(numbers)
    what = f"a whole number of at least {least:g}" if whole else f"at least {least:g}"
    _complain(wrong, name, numbers, f"must be {what}")
    return numbers


def _read_rounding(frame: DataFrame) -> Rounding | None:
    if "round_to" not in frame:
        return None
    texts = _read_texts(frame, "round_to")
    if (other := texts != texts[0]).any():
        row = int(np.flatnonzero(other)[0])
        raise InputError(f"row {row}, column 'round_to': must be the same in all rows")
    rounding = Rounding.parse(texts[0])
    if texts[0] and rounding is None:
        raise InputError(
            f"row 0, column 'round_to': {texts[0]!r} is no rounding: write the multiple, a whole "
            "number of at least 2, if it was at random; or nearest 5, midpoint 6, controlled 5, or "
            "cell-key 5 3.0 for the bound and variance of its noise"
        )
    return rounding


def _read_noise(frame: DataFrame) -> tuple[Codes, Floats]:
    """Laws of noise, places in `LAWS`, and their widths; 0 where there is none."""
    laws, widths = np.zeros(len(frame), np.int64), np.zeros(len(frame))
    if "noise" in frame:
        for row, text in enumerate(_read_texts(frame, "noise")):
            if not text:
                continue
            law, _, width = text.partition(" ")
            try:
                widths[row] = float(width)
            except ValueError:
                widths[row] = np.nan
            if law not in _NOISE or not 1e-9 <= widths[row] <= _GREATEST:
                raise InputError(
                    f"row {row}, column 'noise': {text!r} is not a law with its scale, as laplace "
                    "2.5 or gaussian 3"
                )
            laws[row] = LAWS.index(law)
    return laws, widths


def _read_measured(frame: DataFrame, law: Codes) -> Floats:
    """(R, 2) measured numbers that published ones were fitted to; NaN where there are none."""
    measured = np.full((len(frame), 2), np.nan)
    if "measured" not in frame:
        return measured
    for row, text in enumerate(_read_texts(frame, "measured")):
        if not text:
            continue
        with suppress(ValueError):
            measured[row] = [np.nan if part == "-" else float(part) for part in text.split()]
        own = measured[row]
        if not law[row] or np.isnan(own).all() or (np.abs(own) > _GREATEST).any():
            raise InputError(
                f"row {row}, column 'measured': {text!r} must be the noisy numbers of people with "
                "prediction 0 and 1, as '17.5 40', or - for one, beside a noise"
            )
    return measured


def _read_guarantee(frame: DataFrame) -> StatedGuarantee | None:
    """The one guarantee that is stated; None if there is none, or several."""
    stated: dict[str, int] = {}
    if "guarantee" in frame:
        for row, text in enumerate(_read_texts(frame, "guarantee")):
            stated.setdefault(text, row)
    read = [StatedGuarantee.parse(text, row) for text, row in stated.items() if text]
    return read[0] if len(read) == 1 else None


def _read_metrics(frame: DataFrame) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """(R,) metrics by our names, and whether the value is 1 minus the metric."""
    texts = _read_texts(frame, "metric")
    of = {text: read_metric(text) for text in dict.fromkeys(texts.tolist())}
    for text, reading in of.items():
        if reading is None:
            row = int(np.flatnonzero(texts == text)[0])
            raise InputError(
                f"row {row}, column 'metric': {explain_unknown(text)} (leave out rows of other "
                "metrics; what they tell is not assessed)"
            )
    readings = [reading for text in texts if (reading := of[text])]
    return (
        np.array([reading.metric for reading in readings], dtype=object),
        np.array([reading.from_one for reading in readings]),
    )


def _check_groups(values: NDArray[Any], valid: Collection[str]) -> None:
    for row, value in enumerate(values):
        if value and value not in valid:
            raise InputError(
                f"row {row}, column 'group': unknown group {value!r}; {suggest_name(value, valid)}"
            )


def _complain(wrong: NDArray[np.bool_], column: str, values: NDArray[Any], why: str) -> None:
    """Raise InputError about the first row that is wrong."""
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        text = values[row] if isinstance(values[row], str) else f"{values[row]:g}"
        raise InputError(f"row {row}, column {column!r}: {text} {why}")
