"""Slices by fewer bins of a column, whose numbers are sums of published ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from fpbench.base.arguments import show_value
from fpbench.base.errors import InputError
from fpbench.claims.set_counts import Floats
from fpbench.reports.exact_blocks import ExactBlocks, stack_blocks
from fpbench.reports.slices import SliceColumn, format_edge, number_slices


def merge_bins(blocks: ExactBlocks, bins: Mapping[str, int | Sequence[float]]) -> ExactBlocks:
    """The same slices by fewer bins; those with a part that is not published are left out."""
    names = [column.name for column in blocks.columns]
    for name, fewer in bins.items():
        c = names.index(name)
        edges = _choose_edges(blocks, c, fewer)
        if edges != blocks.columns[c].edges:
            blocks = _merge(blocks, c, SliceColumn.with_edges(name, edges))
    return blocks


def _choose_edges(blocks: ExactBlocks, c: int, fewer: int | Sequence[float]) -> tuple[float, ...]:
    """The edges of a column that stay."""
    column = blocks.columns[c]
    if not column.edges:
        raise InputError(f"bins: column {column.name!r} of the report has no bins of numbers")
    if not isinstance(fewer, int | np.integer):
        wanted = tuple(float(edge) for edge in fewer)
        if not wanted or any(edge not in column.edges for edge in wanted):
            texts = ", ".join(map(format_edge, column.edges))
            raise InputError(f"bins of {column.name!r} can only keep edges of {texts}")
        return tuple(sorted(set(wanted)))
    if not 2 <= fewer <= len(column.values):
        raise InputError(
            f"bins of {column.name!r}: the report has {len(column.values)}, of which 2 or more "
            f"can be made, not {show_value(fewer)}; to drop a column leave it out of `by`"
        )
    # About equally many people in each bin, as far as the slices by this column alone tell.
    alone = (blocks.cells >= 0).sum(axis=1) == (blocks.cells[:, c] >= 0)
    own = np.flatnonzero(alone & (blocks.cells[:, c] >= 0) & ~blocks.hidden)
    weights: Floats = np.zeros(len(column.values))
    np.maximum.at(weights, blocks.cells[own, c], blocks.base[own].sum(axis=1))
    if not weights.any():
        weights[:] = 1
    before = np.cumsum(weights)[:-1] / weights.sum()
    chosen: list[int] = []
    for place in range(1, int(fewer)):  # among the edges that leave enough for the others
        low = chosen[-1] + 1 if chosen else 0
        high = len(before) - (int(fewer) - 1 - place)
        chosen.append(low + int(np.abs(before[low:high] - place / int(fewer)).argmin()))
    return tuple(column.edges[edge] for edge in chosen)


def _merge(blocks: ExactBlocks, c: int, column: SliceColumn) -> ExactBlocks:
    old, new = blocks.columns[c], np.asarray(column.edges)
    ends = np.concatenate([[-np.inf], np.asarray(old.edges)])
    into = np.searchsorted(new, ends, side="right")
    parts = np.bincount(into, minlength=len(column.values))
    columns = (*blocks.columns[:c], column, *blocks.columns[c + 1 :])
    cut = blocks.cells[:, c] >= 0
    rest = replace(blocks.take(~cut), columns=columns)
    fine = blocks.take(cut & ~blocks.hidden)
    _, metric = np.unique(blocks.metric, return_inverse=True)
    cells = blocks.cells.copy()
    cells[:, c] = -1
    slices, parent = number_slices(np.column_stack([cells, metric.ravel()]))
    # If the published parts have all people of the slice, missing parts are empty.
    people, here = blocks.base.sum(axis=1), np.flatnonzero(cut & ~blocks.hidden)
    shared = np.bincount(parent[here], weights=people[here], minlength=len(slices))
    whole = np.zeros(len(slices), np.bool_)
    outer = ~cut & ~blocks.hidden
    whole[parent[outer]] = shared[parent[outer]] == people[outer]
    coarse = fine.cells.copy()
    coarse[:, c] = into[coarse[:, c]]
    first, which = number_slices(np.column_stack([coarse, metric.ravel()[here]]))
    sums = []
    for numbers in (fine.counted, fine.base):
        total = np.zeros((len(first), numbers.shape[1]), np.int64)
        np.add.at(total, which, numbers)
        sums.append(total)
    there = np.bincount(which, minlength=len(first))
    complete = (there == parts[coarse[first, c]]) | whole[parent[here]][first]
    merged = replace(
        fine.take(first), columns=columns, cells=coarse[first], counted=sums[0], base=sums[1]
    ).take(complete)
    return stack_blocks(rest, [rest, merged])
