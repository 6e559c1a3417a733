"""Utility of a published report: how near its rates are to the true ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fpbench.base.argument_types import check_arguments
from fpbench.base.errors import InputError, check_choice
from fpbench.claims.set_counts import Floats
from fpbench.reports.rows import ReportRows
from fpbench.reports.slices import number_slices

_LEAST = 10
"""Least number of a group's people in a slice for the group's rate there to count."""
_APART = 0.1
"""Rates of two groups that differ by more than this are a disparity."""
_RATES = {
    "selection-rate": ("selected", "rejected"),
    "true-positive-rate": ("true-positives", "false-negatives"),
    "false-positive-rate": ("false-positives", "true-negatives"),
}
"""Rates, and the numbers of people with prediction 1 and 0 that they follow from."""


@dataclass(frozen=True)
class ReportUtility:
    """How near the rates that a report shows are to the true ones.

    It covers all slices of the exact report, and in each slice the groups of at least 10 people. A
    rate that is not shown for a slice is replaced by the group's rate among everybody.

    Attributes
    ----------
    rate_error
        Mean absolute error of the rates; None if no group has 10 people anywhere.
    rate_error_max
        Greatest.
    cells_published
        Share of the rates that are shown.
    disparities_visible
        Of the slices in which the true rates of two groups differ by more than .1, the share where
        the shown rates of the same two do, in the same direction; None if there is no such slice.
    """

    rate_error: float | None
    rate_error_max: float | None
    cells_published: float | None
    disparities_visible: float | None


@check_arguments
def measure_utility(report: ReportRows, exact: ReportRows) -> ReportUtility:
    """How near a report's rates are to those of the exact report of the same people.

    Parameters
    ----------
    report
        The report; a rate that it has no row of may follow from its numbers of people.
    exact
        The report of the same people before all defences, with all tables of interest.

    Raises
    ------
    InputError
        If the report has other groups, columns or bins, or `exact` is not exact.
    """
    _check_columns(report, exact)
    if (exact.noisy | (exact.within > 0) | (exact.n < 0)).any() or exact.rounding is not None:
        raise InputError("exact must be a report without defences: min_cell = 0, and nothing else")
    return compare_rates(report, exact)


def compare_rates(report: ReportRows, wanted: ReportRows) -> ReportUtility:
    """How near a report's rates are to those of one that may have defences and finer bins.

    Parameters
    ----------
    report
        The report; its slices by bins that are not wanted count as not shown.
    wanted
        The report to compare with; its rates are taken for true.

    Raises
    ------
    InputError
        If the reports have other groups.
    """
    if report.groups != wanted.groups:
        raise InputError(
            f"the report is about {', '.join(report.groups)}, and the exact one about "
            f"{', '.join(wanted.groups)}"
        )
    cells = _align(report, wanted)
    fits = np.flatnonzero((cells >= -1).all(axis=1))
    report, cells = report.take(fits), cells[fits]
    k, m = len(wanted.groups), len(wanted)
    first, number = number_slices(np.concatenate([wanted.cells, cells]))
    parts = [_find_rates(rows, at, len(first)) for rows, at in
             ((wanted, number[:m]), (report, number[m:]))]  # fmt: skip
    true, people = parts[0]
    shown = parts[1][0]
    counts = (people >= _LEAST) & np.isfinite(true)
    if not counts.any():
        return ReportUtility(None, None, None, None)
    whole = np.flatnonzero((np.concatenate([wanted.cells, cells])[first] < 0).all(axis=1))
    overall = np.full((len(_RATES), 1, k), np.nan)
    if len(whole):
        overall = np.where(np.isnan(shown[:, whole]), true[:, whole], shown[:, whole])
    filled = np.where(np.isnan(shown), overall, shown)
    errors = np.abs(filled - true)[counts]
    errors = errors[np.isfinite(errors)]  # nobody's rate among all is known without such a slice
    seen = _count_visible(np.where(counts, true, np.nan).reshape(-1, k), shown.reshape(-1, k))
    mean, most = (float(f(errors)) if len(errors) else None for f in (np.mean, np.max))
    return ReportUtility(mean, most, float(np.isfinite(shown)[counts].mean()), seen)


def measure_nothing(exact: ReportRows) -> float | None:
    """Mean error of who takes the rate of a slice, which is public, for that of each group."""
    first, number = number_slices(exact.cells)
    rates, people = _find_rates(exact, number, len(first))
    with np.errstate(invalid="ignore"):
        public = np.nansum(rates * people, axis=2) / people.sum(axis=2)
    errors = np.abs(public[:, :, None] - rates)[(people >= _LEAST) & np.isfinite(rates)]
    return float(errors.mean()) if len(errors) else None


def _check_columns(report: ReportRows, exact: ReportRows) -> None:
    """Refuse a report with columns or bins that the exact one lacks."""
    own = {column.name: column.values for column in exact.columns}
    for column in report.columns:
        check_choice("column of the exact report", column.name, own)
        if own[column.name] != column.values:
            raise InputError(f"column {column.name!r} has other bins or values in the exact report")


def _align(report: ReportRows, wanted: ReportRows) -> NDArray[np.int64]:
    """(R, C) cells of the report as codes of the other's columns; -2 where it has no such value."""
    cells = np.full((len(report), len(wanted.columns)), -1)
    names = [column.name for column in wanted.columns]
    for place, column in enumerate(report.columns):
        codes = report.cells[:, place]
        if column.name not in names:
            cells[codes >= 0] = -2
            continue
        own = names.index(column.name)
        where = {value: code for code, value in enumerate(wanted.columns[own].values)}
        new = np.array([*(where.get(value, -2) for value in column.values), -1])[codes]
        cells[:, own] = np.where(cells[:, own] == -2, -2, new)
    return cells


def _find_rates(rows: ReportRows, number: NDArray[np.int64], slices: int) -> tuple[Floats, Floats]:
    """(rates, slices, K) each rate, NaN where it does not follow; and the people behind it."""
    shape = len(_RATES), slices, len(rows.groups)
    rates, people = np.full(shape, np.nan), np.zeros(shape)
    for place, (rate, names) in enumerate(_RATES.items()):
        stated, base = _read(rows, rate, number, shape[1:])
        counts = [_read(rows, name, number, shape[1:])[0] for name in names]
        selected, rejected = (np.maximum(count, 0) for count in counts)
        total = selected + rejected
        with np.errstate(invalid="ignore", divide="ignore"):
            followed = np.where(total > 0, selected / total, np.nan)
        rates[place] = np.where(np.isnan(stated), followed, stated)
        people[place] = np.where(np.isnan(stated), np.nan_to_num(total), base)
    return rates, people


def _read(
    rows: ReportRows, metric: str, number: NDArray[np.int64], shape: tuple[int, ...]
) -> tuple[Floats, Floats]:
    """(slices, K) values of a metric, NaN where there is none, and n."""
    value, n = np.full(shape, np.nan), np.zeros(shape)
    own = rows.metric == metric
    value[number[own], rows.group[own]] = rows.value[own]
    n[number[own], rows.group[own]] = rows.n[own]
    return value, n


def _count_visible(true: Floats, shown: Floats) -> float | None:
    """Share of the slices with a disparity whose shown rates have it, too; None if none has."""
    there = np.isfinite(true).sum(axis=1) >= 2
    true, shown = true[there], shown[there]
    if not len(true):
        return None
    high, low = np.nanargmax(true, axis=1), np.nanargmin(true, axis=1)
    row = np.arange(len(true))
    apart = true[row, high] - true[row, low] > _APART
    if not apart.any():
        return None
    seen = shown[row, high] - shown[row, low] > _APART - 1e-9
    return float(seen[apart].mean())
