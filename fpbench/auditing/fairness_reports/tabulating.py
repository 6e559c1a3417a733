"""Numbers of people by slice, metric and group: the rows of a report before any defence."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fpbench.auditing.fairness_reports.report_rows import ReportRows
from fpbench.auditing.fairness_reports.slices import REPORT_METRICS, Codes, SliceColumn, cross

if TYPE_CHECKING:
    from pandas import Categorical


def tabulate(
    columns: Sequence[SliceColumn],
    codes: Sequence[Codes],
    groups: Categorical,
    predictions: Codes,
    labels: Codes,
    *,
    order: int,
    metrics: Sequence[str],
    min_cell: int,
    min_group: int,
) -> ReportRows:
    """The rows about slices that are large enough; see `FairnessReport.from_predictions`.

    Parameters
    ----------
    columns, codes
        The C columns, and (n,) codes of each.
    groups, predictions, labels
        (n,).
    order, metrics, min_cell, min_group
        Which slices, which metrics, and who must be in a slice at least.
    """
    n, k = len(predictions), len(groups.categories)
    person = (labels * 2 + predictions) * k + groups.codes
    slices: list[Codes] = []
    names: list[str] = []
    counted: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    for table in (t for r in range(order + 1) for t in combinations(range(len(columns)), r)):
        key = cross([codes[c] for c in table], [len(columns[c].values) for c in table], n)
        inside = np.flatnonzero(key >= 0)
        _, first, cell = np.unique(key[inside], return_index=True, return_inverse=True)
        counts = np.bincount(cell * 4 * k + person[inside], minlength=len(first) * 4 * k)
        counts = counts.reshape(-1, 2, 2, k)
        here = np.full((len(first), len(columns)), -1)
        for c in table:
            here[:, c] = codes[c][inside][first]
        for name in metrics:
            label, prediction = REPORT_METRICS[name]
            part = counts.sum(axis=1) if label is None else counts[:, label]
            base = part.sum(axis=1) if prediction is None else part[:, prediction]
            shown = (base.sum(axis=1) >= max(min_cell, 1)) & (base.min(axis=1) >= min_group)
            slices.append(here[shown])
            names.append(name)
            counted.append((part[shown, 1] if prediction is None else base[shown], base[shown]))
    lengths = [x.size for x, _ in counted]
    rates = np.repeat([REPORT_METRICS[name].is_rate for name in names], lengths)
    x, base = (np.concatenate([pair[i].ravel() for pair in counted]) for i in (0, 1))
    sizes = np.concatenate([np.repeat(own.sum(axis=1), k) for _, own in counted])
    with np.errstate(invalid="ignore", divide="ignore"):
        value = np.where(rates, x / base, x)
    return ReportRows(
        tuple(columns),
        tuple(map(str, groups.categories)),
        np.concatenate([np.repeat(own, k, axis=0) for own in slices]),
        np.repeat(names, lengths),
        np.tile(np.arange(k), len(x) // k),
        value,
        np.where(rates, base, sizes),
        np.zeros(len(x)),
    )
