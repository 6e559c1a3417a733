"""Exact numbers of people behind the rows of a report, one block for each metric of each slice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from fpbench.base.errors import InputError
from fpbench.claims.set_counts import Mask
from fpbench.reports.rows import ReportRows
from fpbench.reports.slices import (
    REPORT_METRICS,
    Codes,
    SliceColumn,
    cross,
    name_values,
    view_people,
)

if TYPE_CHECKING:
    from pandas import Categorical

WHOLE = 1e-6
"""Tolerance of a rate times its size being a whole number, for rounding of floats."""


@dataclass(frozen=True, eq=False)
class ExactBlocks:
    """B blocks, each a metric of one slice with its numbers of all K groups."""

    columns: tuple[SliceColumn, ...]
    groups: tuple[str, ...]
    """As of `ReportRows`."""
    cells: Codes
    """(B, C) slices."""
    metric: NDArray[np.str_]
    """(B,) names."""
    counted: Codes
    """(B, K) people of each group with prediction 1 of a rate, or the number itself."""
    base: Codes
    """(B, K) people that a rate is taken over; `counted` of numbers."""
    below: Codes
    """(B,) of suppressed blocks; -1 of others. Numbers of suppressed blocks may be 0, for
    unknown."""
    defences: Mapping[str, Any]
    """As of `ReportRows`."""

    @classmethod
    def of(cls, rows: ReportRows, what: str) -> Self:
        """The numbers behind exact rows.

        Raises InputError if a row is not exact, or one of a group is missing: `what` needs them.
        """
        for wrong, why in (
            (rows.noisy, "has noise"),
            (np.full(len(rows), rows.rounding is not None), "is rounded"),
            (rows.within > 0, "is rounded"),
            ((rows.n < 0) & ~rows.suppressed, "has no n"),
        ):
            if wrong.any():
                row = int(np.flatnonzero(wrong)[0])
                raise InputError(
                    f"row {row}, {rows.metric[row]} for {rows.describe_slice(row)}: {what} needs "
                    f"the exact numbers of people, and this one {why}; protect the exact report"
                )
        _, places = rows.blocks
        first = places.max(axis=1)
        if (places < 0).any():
            block, k = (int(found[0]) for found in np.nonzero(places < 0))
            raise InputError(
                f"row {first[block]}: {what} needs the numbers of all groups, and there is no "
                f"{rows.metric[first[block]]} of {rows.groups[k]!r} for "
                f"{rows.describe_slice(int(first[block]))}"
            )
        value, n = np.nan_to_num(rows.value), np.maximum(rows.n, 0)
        people = np.where(rows.is_rate, value * n, value)
        counted = np.rint(people)
        if (off := np.abs(people - counted) > WHOLE).any():
            row = int(np.flatnonzero(off)[0])
            raise InputError(
                f"row {row}, column 'value': {rows.value[row]:.12g} of {n[row]} is no whole number "
                "of people; if values are rounded, say so by `decimals` or a column 'within'"
            )
        base = np.where(rows.is_rate, n, counted)
        hidden = rows.suppressed[places].any(axis=1)
        return cls(
            rows.columns, rows.groups, rows.cells[first], rows.metric[first],
            counted[places].astype(np.int64), base[places].astype(np.int64),
            np.where(hidden, rows.below[places].max(axis=1), -1), rows.defences,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.metric)

    @property
    def hidden(self) -> Mask:
        """(B,) whether a block is suppressed."""
        return self.below >= 0

    @property
    def is_rate(self) -> Mask:
        """(B,) whether a block is of rates."""
        return np.isin(self.metric, [name for name, m in REPORT_METRICS.items() if m.is_rate])

    def take(self, which: NDArray[Any]) -> Self:
        """Some of the blocks, by a mask or their numbers."""
        names = ("cells", "metric", "counted", "base", "below")
        return replace(self, **{name: getattr(self, name)[which] for name in names})

    def to_rows(self) -> ReportRows:
        """The K rows of each block; those of suppressed blocks have no value and no n."""
        b, k = self.base.shape
        rates, hidden = self.is_rate[:, None], self.hidden[:, None]
        with np.errstate(invalid="ignore", divide="ignore"):
            value = np.where(rates, self.counted / self.base, self.counted)
        n = np.where(rates, self.base, self.base.sum(axis=1, keepdims=True))
        exact = np.zeros(b * k)
        return ReportRows(
            self.columns, self.groups, np.repeat(self.cells, k, axis=0), np.repeat(self.metric, k),
            np.tile(np.arange(k), b), np.where(hidden, np.nan, value).ravel(),
            np.where(hidden, -1, n).ravel(), exact, exact.astype(np.int64), exact,
            np.repeat(np.maximum(self.below, 0), k), np.full((b * k, 2), np.nan), None,
            self.defences,
        )  # fmt: skip


def stack_blocks(like: ExactBlocks, parts: Sequence[ExactBlocks]) -> ExactBlocks:
    """All blocks of several, in their order; empty ones if there is no part."""
    if not parts:
        return like.take(np.zeros(len(like), np.bool_))
    names = ("cells", "metric", "counted", "base", "below")
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in names
    }
    return replace(like, **joined)


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
    views = dict.fromkeys(REPORT_METRICS[name].view for name in metrics)
    persons = {}
    for view in views:
        bits, others = view_people(view, predictions, labels)
        assert others is not None
        persons[view] = (others * 2 + bits) * k + groups.codes
    cells: list[Codes] = []
    names: list[str] = []
    numbers: list[tuple[Codes, Codes]] = []
    for table in tables:
        key = cross([codes[c] for c in table], [len(columns[c].values) for c in table], n)
        inside = np.flatnonzero(key >= 0)
        _, first, cell = np.unique(key[inside], return_index=True, return_inverse=True)
        counted_by = {
            view: np.bincount(cell * 4 * k + person[inside], minlength=len(first) * 4 * k).reshape(
                -1, 2, 2, k
            )
            for view, person in persons.items()
        }
        here = np.full((len(first), len(columns)), -1)
        for c in table:
            here[:, c] = codes[c][inside][first]
        for name in metrics:
            label, prediction, view = REPORT_METRICS[name]
            counts = counted_by[view]
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
