"""Changes of numbers of people that no sum tells: two groups change places between slices.

Of slices by r columns, take two values of each column. If people of a group are one more in the
slices with an even number of second values, and one fewer in the others, all larger slices keep
their numbers. Those that cut them further by one column change with them, in one value of that
column. So none of these numbers follows from others, if all of them are suppressed.

A column that tells the values of another (education: years of it) changes with it, as one column.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice, product
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fpbench.auditing.fairness_reports.slices import Codes, cross
from fpbench.auditing.fairness_reports.sums_of_counts import Sums
from fpbench.claims.set_counts import Floats

_MOST = 10**6
"""Combinations of values that are looked at, at most."""
_STARTS = 8
"""Places from which a change is looked for, where columns that change too leave several."""

_Columns = tuple[int, ...]
"""Columns that slices are cut by; the label is the last."""


class _Block(NamedTuple):
    """Columns that change together: (values, columns) those that there are."""

    columns: _Columns
    values: Codes


@dataclass(frozen=True)
class GroupSwaps:
    """Looks for such changes of numbers."""

    sums: Sums

    @cached_property
    def _tables(self) -> dict[tuple[_Columns, int], NDArray[np.intp] | None]:
        """By columns and prediction, the number of each combination of values.

        That is the number of all numbers where there is none; None of too many combinations.
        """
        keys, many = self.sums.keys, len(self.sums.total)
        sizes = keys.max(axis=0, initial=0) + 1
        pattern = np.column_stack([keys[:, :-1] >= 0, keys[:, -1]])
        kinds, kind = np.unique(pattern, axis=0, return_inverse=True)
        order = np.argsort(kind.ravel(), kind="stable")
        ends = np.cumsum(np.bincount(kind.ravel(), minlength=len(kinds)))
        tables: dict[tuple[_Columns, int], NDArray[np.intp] | None] = {}
        for own, atoms in zip(kinds, np.split(order, ends[:-1]), strict=True):
            columns = np.flatnonzero(own[:-1]).tolist()
            shape = [int(sizes[c]) for c in columns]
            table = None
            if prod(shape) <= _MOST:
                table = np.full(prod(shape), many)
                table[cross([keys[atoms, c] for c in columns], shape, len(atoms))] = atoms
                table = table.reshape(shape)
            tables[tuple(columns), int(own[-1])] = table
        return tables

    @cached_property
    def _told(self) -> dict[tuple[int, int], Codes]:
        """By two columns, the value of the second that the first tells; only where it does."""
        keys = self.sums.keys[:, :-1]
        keys = keys[self.sums.total[: len(keys)] > 0]
        told = {}
        for pair in combinations(range(keys.shape[1]), 2):
            own = keys[(keys[:, pair] >= 0).all(axis=1) & ((keys >= 0).sum(axis=1) == 2)]
            values = np.unique(own[:, pair], axis=0)
            for one, other in ((0, 1), (1, 0)):
                if len(values) and len(np.unique(values[:, one])) == len(values):
                    code = np.full(int(keys[:, pair[one]].max()) + 1, -1)
                    code[values[:, one]] = values[:, other]
                    if (code >= 0).all():
                        told[pair[one], pair[other]] = code
        return told

    def _find_block(self, column: int) -> _Block:
        """A column with those that it tells; and one that tells it, with all that this tells."""
        finest = min((a for a, b in self._told if b == column), default=column)
        columns = tuple(sorted({finest, *(b for a, b in self._told if a == finest)}))
        size = int(self.sums.keys[:, finest].max()) + 1
        values = [
            np.arange(size) if c == finest else self._told[finest, c] for c in columns
        ]  # fmt: skip
        return _Block(columns, np.column_stack(values))

    def find_cheapest(self, atom: int, costs: Floats) -> Codes:
        """Numbers of a cheap change in which one has a part; none if none is known.

        Parameters
        ----------
        atom
            The number.
        costs
            (A + 1,) of each number; infinite for the last, which stands for slices of nobody.
        """
        none = np.zeros(0, np.int64)
        if atom >= len(self.sums.keys):
            return none
        *key, prediction = self.sums.keys[atom].tolist()
        blocks: dict[_Columns, _Block] = {}
        for column in np.flatnonzero(np.array(key) >= 0).tolist():
            block = self._find_block(column)
            blocks[block.columns] = block
        together = list(blocks.values())
        inside = {c for block in together for c in block.columns}
        if len(inside) < sum(len(block.columns) for block in together):
            return none  # two columns tell a third
        changed: list[tuple[_Columns, NDArray[np.intp], int]] = []
        for (columns, p), table in self._tables.items():
            if p == prediction and all(set(columns) & set(block.columns) for block in together):
                free = [place for place, c in enumerate(columns) if c not in inside]
                if table is None or len(free) > 1:
                    return none
                changed.append((columns, table, free[0] if free else -1))
        starts = []
        for block in together:
            fixed = np.array([key[c] for c in block.columns])
            fits = ((block.values == fixed) | (fixed < 0)).all(axis=1)
            starts.append(np.flatnonzero(fits).tolist())
        best, least = none, np.inf
        for at in islice(product(*starts), _STARTS):
            swap, cost = _find_swap(changed, together, at, costs)
            if cost < least and atom in swap:
                best, least = swap, cost
        return best


def _find_swap(
    changed: list[tuple[_Columns, NDArray[np.intp], int]],
    blocks: list[_Block],
    at: tuple[int, ...],
    costs: Floats,
) -> tuple[Codes, float]:
    """The numbers of the cheapest change that begins at one value of each block, and its cost."""
    shape = tuple(len(block.values) for block in blocks)
    total = np.zeros(shape)
    views = []
    for columns, table, free in changed:
        index: list[Any] = []
        keeps = np.zeros(shape, np.bool_)
        for axis, (block, start) in enumerate(zip(blocks, at, strict=True)):
            own = [place for place, c in enumerate(block.columns) if c in columns]
            same = (block.values[:, own] == block.values[start, own]).all(axis=1)
            keeps |= same.reshape([-1 if a == axis else 1 for a in range(len(shape))])
        for place, column in enumerate(columns):
            if place == free:
                index.append(np.arange(table.shape[place]))
                index[-1] = index[-1].reshape([1] * len(shape) + [-1])
                continue
            axis = next(a for a, block in enumerate(blocks) if column in block.columns)
            codes = blocks[axis].values[:, blocks[axis].columns.index(column)]
            index.append(codes.reshape([-1 if a == axis else 1 for a in range(len(shape) + 1)]))
        view = table[tuple(index)]  # by values of blocks, and of the column that cuts further
        views.append(view)
        corners = costs[view]
        for axis, start in enumerate(at):
            corners = corners + corners.take([start], axis=axis)
        total += np.where(keeps, 0, corners.min(axis=-1))
    for axis, start in enumerate(at):
        total[(slice(None),) * axis + (start,)] = np.inf
    end = np.unravel_index(int(total.argmin()), shape)
    if not np.isfinite(total[end]):
        return np.zeros(0, np.int64), np.inf
    signs = np.zeros(1, np.int64) + 1
    for _ in shape:
        signs = np.concatenate([signs, -signs])
    square = np.ix_(*([start, int(other)] for start, other in zip(at, end, strict=True)))
    change = np.zeros(len(costs), np.int64)
    for view in views:
        corners = view[square].reshape(len(signs), -1)
        cheapest = corners[:, costs[corners].sum(axis=0).argmin()]
        np.add.at(change, cheapest, signs)
    numbers = np.flatnonzero(change)
    return numbers, float(total[end])
