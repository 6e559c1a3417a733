"""Reports from fairlearn's `MetricFrame`: rates by group, for values of control features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fpbench.base.errors import InputError, check_choice
from fpbench.claims.set_counts import Floats
from fpbench.reports.exact_blocks import WHOLE
from fpbench.reports.reading.long_form import read_frame
from fpbench.reports.reading.metric_names import Reading, find_near_metric, read_metric
from fpbench.reports.rows import ReportRows
from fpbench.reports.slices import FIXED_COLUMNS, REPORT_METRICS

if TYPE_CHECKING:
    from pandas import DataFrame


_RATES = tuple(name for name, counted in REPORT_METRICS.items() if counted.is_rate)
"""The metrics that frames are read for, by any of their names."""
_SAME = 1e-9
"""How far rates may be from each other by rounding of floats."""
_SIZES = "count"
"""The metric that tells how many people a group has."""


def read_metric_frames(
    metric_frames: Sequence[Any],
    metrics: Mapping[str, str] | None,
    groups: Sequence[str] | None,
    decimals: int | None,
) -> ReportRows:
    """See `FairnessReport.from_metric_frame`."""
    import pandas as pd

    if not metric_frames:
        raise InputError("give at least one MetricFrame")
    parts = [_read_one(frame, metrics, decimals is None) for frame in metric_frames]
    names = dict.fromkeys(name for part in parts for name in part if name not in FIXED_COLUMNS)
    columns = [*names, *FIXED_COLUMNS[:4]]
    joined = pd.concat([part.reindex(columns=columns) for part in parts], ignore_index=True)
    whose = {str(name) for frame in metric_frames for name in frame.sensitive_levels}
    if len(whose) > 1:
        raise InputError(
            f"the frames are by different sensitive features: {', '.join(sorted(whose))}"
        )
    # A table that two frames hold is told once, where they agree; else the rows are named.
    alike = joined.assign(value=joined["value"].round(9))
    joined = joined[~alike.duplicated()].reset_index(drop=True)
    return read_frame(joined, groups, decimals)


def _read_one(metric_frame: Any, metrics: Mapping[str, str] | None, exact: bool) -> DataFrame:
    """The long form of one frame, whose rates are `exact` or rounded."""
    import pandas as pd

    try:
        table = metric_frame.by_group
        cuts, whose = list(metric_frame.control_levels or ()), list(metric_frame.sensitive_levels)
    except AttributeError:
        raise InputError(
            f"a MetricFrame of fairlearn is needed, not {type(metric_frame).__name__}"
        ) from None
    if len(whose) != 1:
        raise InputError(
            f"the frame is by {len(whose)} sensitive features, {', '.join(map(str, whose))}: put "
            "them into one column of groups, for the people too"
        )
    if isinstance(table, pd.Series):
        table = table.to_frame()
    if not len(table):
        raise InputError("the MetricFrame has no rows: it is of nobody")
    table.columns = list(map(str, table.columns))
    readings = _find_readings(list(table.columns), metrics)
    flat = table.reset_index()
    cells = {str(name): flat[name].astype(object) for name in cuts}
    for name in cells:
        if name in FIXED_COLUMNS:
            raise InputError(f"a control feature cannot be called {name!r}: rename it")
    sizes = np.full(len(flat), np.nan)
    if _SIZES in table.columns:
        sizes = np.nan_to_num(flat[_SIZES].to_numpy(np.float64))
    values: dict[str, Floats] = {}
    for own, reading in readings.items():
        try:
            value = flat[own].to_numpy(np.float64)
        except (TypeError, ValueError):
            raise InputError(
                f"the metric {own!r} of the frame is not a number everywhere: it is "
                f"{flat[own].iloc[0]!r} in row 0 of by_group"
            ) from None
        value = 1 - value if reading.from_one else value
        if reading.metric in values:
            value = _combine(values[reading.metric], value, own)
        values[reading.metric] = value
    rows = []
    for metric, value in values.items():
        # Only of selection rates is the count what they are taken over; and where there is no
        # value, nobody of the group is in the slice.
        n = sizes if metric == "selection-rate" else np.full(len(flat), np.nan)
        broken = np.abs(value * n - np.rint(value * n)) > WHOLE
        if exact and 2 * broken.sum() > (n > 0).sum():
            raise InputError(
                f"row {int(np.flatnonzero(broken)[0])} of by_group: the selection rate times count "
                f"is no whole number of people, in {broken.sum()} rows in all: rates with weights "
                "of people are not read, so make the frame without weights (or say by `decimals` "
                "that rates are rounded)"
            )
        long = pd.DataFrame({
            **cells, "group": flat[whose[0]].astype(object), "metric": metric, "value": value,
            "n": np.where(np.isnan(value), 0.0, n),
        })  # fmt: skip
        rows.append(long)
    return pd.concat(rows, ignore_index=True)


def _combine(one: Floats, other: Floats, name: str) -> Floats:
    """One rate from two metrics; of an empty group, toolkits print 0 for both."""
    nobody = np.isnan(one) | np.isnan(other) | (np.abs(one - other) == 1)
    differ = ~nobody & (np.abs(one - other) > _SAME)
    if differ.any():
        row = int(np.flatnonzero(differ)[0])
        raise InputError(
            f"row {row} of by_group: {name!r} and another metric tell the same rate, and differ: "
            f"{other[row]:g} and {one[row]:g}"
        )
    return np.where(nobody, np.nan, one)


def _find_readings(own: list[str], metrics: Mapping[str, str] | None) -> dict[str, Reading]:
    """What each metric of a frame is read as."""
    read_as = {name: name for name in own if name != _SIZES} if metrics is None else metrics
    readings = {}
    for name, metric in read_as.items():
        check_choice("metric of the frame", name, own)
        reading = read_metric(metric) if isinstance(metric, str) else None
        if reading is None or reading.metric not in _RATES:
            near = find_near_metric(name) if metrics is None else None
            what = f"a metric {name!r}" if metrics is None else f"{name!r} read as {metric!r}"
            raise InputError(
                f"the frame has {what}, which is not a known rate"
                + (f"; did you mean {near!r}?" if near else f" ({', '.join(_RATES)} are)")
                + '; `metrics` says which to read, and as what: {"my rate": "selection-rate"}'
            )
        readings[name] = reading
    if not readings:
        raise InputError(f"the frame has no known rate; known are {', '.join(_RATES)}")
    return readings
