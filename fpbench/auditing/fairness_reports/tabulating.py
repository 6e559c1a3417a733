"""Numbers of people by slice, metric and group: a report before any defence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fpbench.auditing.fairness_reports.exact_blocks import ExactBlocks
from fpbench.auditing.fairness_reports.slices import (
    REPORT_METRICS,
    Codes,
    SliceColumn,
    cross,
    name_values,
)

if TYPE_CHECKING:
    from pandas import Categorical


def tabulate(
    columns: Sequence[SliceColumn],
    codes: Sequence[Codes],
    groups: Categorical,
    predictions: Codes,
    labels: Codes,
    *,
    tables: Iterable[Sequence[int]],
    metrics: Sequence[str],
) -> ExactBlocks:
    """The blocks of all slices that have people; see `FairnessReport.from_predictions`.

    `columns`, `codes`: the C columns, and (n,) codes of each. `groups`, `predictions`, `labels`:
    (n,). `tables`: numbers of the columns that are crossed, of each table.
    """
    n, k = len(predictions), len(groups.categories)
    person = (labels * 2 + predictions) * k + groups.codes
    cells: list[Codes] = []
    names: list[str] = []
    numbers: list[tuple[Codes, Codes]] = []
    for table in tables:
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
            shown = base.any(axis=1)
            cells.append(here[shown])
            names += [name] * int(shown.sum())
            numbers.append((part[shown, 1] if prediction is None else base[shown], base[shown]))
    none = np.zeros((0, k), np.int64)
    counted, base = (np.concatenate([none, *(pair[i] for pair in numbers)]) for i in (0, 1))
    return ExactBlocks(
        tuple(columns), name_values(groups.categories),
        np.concatenate([np.zeros((0, len(columns)), np.int64), *cells]), np.array(names, np.str_),
        counted, base, np.full(len(base), -1), {},
    )  # fmt: skip
