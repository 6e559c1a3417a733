"""Changes of numbers of people that keep all sums: two groups change places between slices.

Of slices by r columns, take two values of each column. If people of a group are one more in the
slices with an even number of second values, and one fewer in the others, all larger slices keep
their numbers. Those that cut them further by one column change with them, in one value of that
column. So none of these numbers follows from others, if all of them are suppressed.

A column that determines another (education: its years) changes with it, as one column.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, islice, product
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fpbench.claims.set_counts import Floats, Mask
from fpbench.reports.defences.sums_of_counts import Sums
from fpbench.reports.slices import Codes, cross

_MOST = 10**6
"""Most combinations of values that are tried."""
_STARTS = 8
"""Places from which a change is looked for, where columns that change too leave several."""

_Columns = tuple[int, ...]
"""Columns that slices are cut by; the label is the last."""


class _Block(NamedTuple):
    """Columns that change together: (values, columns) those that there are."""

    columns: _Columns
    values: Codes


class _View(NamedTuple):
    """Numbers of a table, by values of blocks."""

    numbers: NDArray[np.intp]
    """By the values of each block, and last of the column that cuts further, if there is one."""
    alike: tuple[Mask, ...]
    """(values, values) of each block, which are the same in the columns of the table."""


@dataclass(frozen=True)
class GroupSwaps:
    """Finds the cheapest such change of a number."""

    sums: Sums
    _views: dict[tuple[tuple[_Columns, ...], int], list[_View] | None] = field(
        default_factory=dict, init=False
    )

    @cached_property
    def _tables(self) -> dict[tuple[_Columns, int], NDArray[np.intp] | None]:
        """By columns and prediction, the index of the number of each combination of values.

        The index is A where there is no number; a table of too many combinations is None.
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
        """By two columns, the first of which determines the second: the second's value."""
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

    @cached_property
    def _blocks(self) -> list[_Block]:
        """Of each column: those that it tells; and one that tells it, with all that this tells."""
        sizes = self.sums.keys.max(axis=0, initial=0) + 1
        blocks: dict[_Columns, _Block] = {}
        own = []
        for column in range(self.sums.keys.shape[1] - 1):
            finest = min((a for a, b in self._told if b == column), default=column)
            columns = tuple(sorted({finest, *(b for a, b in self._told if a == finest)}))
            every = np.arange(sizes[finest])
            values = [every if c == finest else self._told[finest, c] for c in columns]
            # Of columns that tell each other, one block, whichever of them it is found by.
            own.append(blocks.setdefault(columns, _Block(columns, np.column_stack(values))))
        return own

    def _find_views(self, together: tuple[_Columns, ...], prediction: int) -> list[_View] | None:
        """Numbers that change with blocks of columns; None if there are too many.

        `together`: the columns of each block.
        """
        by_columns = {block.columns: block for block in self._blocks}
        blocks = [by_columns[columns] for columns in together]
        inside = {column for columns in together for column in columns}
        views = []
        for (columns, p), table in self._tables.items():
            if p != prediction or not all(set(columns) & set(block) for block in together):
                continue
            if table is None or len(inside.union(columns)) > len(inside) + 1:
                return None
            index: list[Codes] = []
            alike = []
            for column in columns:
                axis = next((a for a, own in enumerate(together) if column in own), len(blocks))
                codes = np.arange(table.shape[len(index)])
                if axis < len(blocks):
                    codes = blocks[axis].values[:, together[axis].index(column)]
                index.append(
                    codes.reshape([-1 if a == axis else 1 for a in range(len(blocks) + 1)])
                )
            for block in blocks:
                own = block.values[:, [c in columns for c in block.columns]]
                alike.append((own[:, None] == own).all(axis=2))
            views.append(_View(table[tuple(index)], tuple(alike)))
        return views

    def find_cheapest(self, atom: int, costs: Floats) -> Codes:
        """Numbers of a cheap change in which one has a part; none if none is known.

        `atom`: the number. `costs`: (A + 1,) of each number; infinite for the last, which stands
        for slices of nobody.
        """
        none = np.zeros(0, np.int64)
        if atom >= len(self.sums.keys):
            return none
        *key, prediction = self.sums.keys[atom].tolist()
        own = [self._blocks[column] for column, value in enumerate(key) if value >= 0]
        together = list({block.columns: block for block in own}.values())
        if len({c for block in together for c in block.columns}) < sum(
            len(block.columns) for block in together
        ):
            return none  # two columns tell a third
        kind = tuple(block.columns for block in together), prediction
        if kind not in self._views:
            self._views[kind] = self._find_views(*kind)
        views = self._views[kind]
        if views is None:
            return none
        starts = []
        for block in together:
            fixed = np.array([key[c] for c in block.columns])
            fits = ((block.values == fixed) | (fixed < 0)).all(axis=1)
            starts.append(np.flatnonzero(fits).tolist())
        best, least = none, np.inf
        for at in islice(product(*starts), _STARTS):
            swap, cost = _find_swap(views, at, costs)
            if cost < least and atom in swap:
                best, least = swap, cost
        return best


def _find_swap(views: list[_View], at: tuple[int, ...], costs: Floats) -> tuple[Codes, float]:
    """The numbers of the cheapest change that begins at one value of each block, and its cost."""
    shape = views[0].numbers.shape[:-1]
    total = np.zeros(shape)
    for view in views:
        corners = costs[view.numbers]
        for axis, start in enumerate(at):
            corners = corners + corners.take([start], axis=axis)
        cost = corners.min(axis=-1)
        for axis, (alike, start) in enumerate(zip(view.alike, at, strict=True)):
            cost[(slice(None),) * axis + (alike[start],)] = 0  # the table keeps its numbers
        total += cost
    for axis, start in enumerate(at):
        total[(slice(None),) * axis + (start,)] = np.inf
    end = np.unravel_index(int(total.argmin()), shape)
    if not np.isfinite(total[end]):
        return np.zeros(0, np.int64), np.inf
    signs = np.ones(1, np.int64)
    for _ in shape:
        signs = np.concatenate([signs, -signs])
    square = np.ix_(*([start, int(other)] for start, other in zip(at, end, strict=True)))
    changed = []
    for view in views:
        atoms = view.numbers[square].reshape(len(signs), -1)
        changed.append(atoms[:, costs[atoms].sum(axis=0).argmin()])
    numbers, place = np.unique(np.concatenate(changed), return_inverse=True)
    change = np.bincount(place, weights=np.tile(signs, len(changed)))
    return numbers[change != 0], float(total[end])
