"""From a published report to facts about the people whom an adversary sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array

from fpbench.auditing.fairness_reports.facts import ContradictionError, Facts, Floats
from fpbench.auditing.fairness_reports.report_rows import ReportRows
from fpbench.auditing.fairness_reports.slices import Codes, check_bits, cross, locate
from fpbench.base.errors import InputError

if TYPE_CHECKING:
    from pandas import DataFrame

_WHOLE = 1e-6
"""How far a rate times its size may be from a whole number, by rounding of floats."""


def find_facts(
    report: ReportRows, X: DataFrame, predictions: ArrayLike, labels: ArrayLike | None
) -> Facts:
    """See `FairnessReport.facts`."""
    n = len(X)
    predicted = check_bits(predictions, n, "predictions")
    labelled = None if labels is None else check_bits(labels, n, "labels")
    if labelled is None and (report.label >= 0).any():
        row = int(np.flatnonzero(report.label >= 0)[0])
        raise InputError(
            f"row {row}, column 'metric': '{report.metric[row]}' looks at labels: give labels"
        )
    if not len(report):
        return Facts.from_counts(np.zeros((n, 0), np.bool_), np.zeros((0, len(report.groups))))
    codes = [column.code(X) for column in report.columns]
    finder = _Finder(report, predicted)
    used = report.cells >= 0
    _, pattern = np.unique(used, axis=0, return_inverse=True)
    order = np.argsort(pattern.ravel(), kind="stable")
    starts = np.flatnonzero(np.diff(pattern.ravel()[order], prepend=-1))
    for rows in np.split(order, starts[1:]):
        columns = np.flatnonzero(used[rows[0]])
        sizes = [len(report.columns[c].values) for c in columns]
        people = cross([codes[c] for c in columns], sizes, n)
        cells = cross([report.cells[rows, c] for c in columns], sizes, len(rows))
        for label in (-1, 0, 1):
            part = report.label[rows] == label
            if part.any():
                inside = people if label < 0 else np.where(labelled == label, people, -1)
                finder.add_rows(
                    (frozenset(columns.tolist()), label), rows[part], cells[part], inside
                )
    if report.noise is None:
        finder.add_remainders()
    return finder.finish()


_Where = tuple[frozenset[int], int]
"""Numbers of the columns that cells are crossed by, and the label that they look at; or -1."""


@dataclass(frozen=True)
class _Table:
    """Sets that share nobody: cells of one crossing, with a prediction each, or with both."""

    where: _Where
    split: bool
    """Whether each set has one prediction."""
    member: NDArray[np.intp]
    """(n,) the set of each person, counted on from `first`; -1 if none."""
    first: int
    low: Floats
    high: Floats
    """(sets, K)."""
    rows: NDArray[np.intp]
    """(sets,) a row of the report each; of remainders -1 less the set that they remain of."""


class _Finder:
    """Puts the facts of a report together, crossing by crossing."""

    def __init__(self, report: ReportRows, predicted: Codes) -> None:
        self.report, self.predicted = report, predicted
        self.tables: list[_Table] = []
        self.published = 0

    def add_rows(self, where: _Where, rows: NDArray[np.intp], cells: Codes, people: Codes) -> None:
        """Add what rows say about the cells of one crossing, in which people are."""
        report = self.report
        group, value, n = report.group[rows], report.value[rows], report.n[rows]
        within, prediction = report.within[rows], report.prediction[rows]
        rate, number = prediction < 0, prediction >= 0
        split = np.where(people >= 0, 2 * people + self.predicted, -1)
        keys = 2 * cells + np.maximum(prediction, 0)
        self._check_sizes(rows[rate], cells[rate], people)
        self._check_sizes(rows[number], keys[number], split)
        if report.noise is not None:
            self._add(where, True, split, keys, group, (value, value), rows)
            return
        size = np.where(rate, n, 1)
        with np.errstate(invalid="ignore"):
            middle, half = np.where(size > 0, value * size, 0), within * size
        low, high = np.ceil(middle - half - _WHOLE), np.floor(middle + half + _WHOLE)
        if (low > high).any():
            row = int(np.flatnonzero(low > high)[0])
            raise InputError(
                f"row {rows[row]}, column 'value': {value[row]:g} of {n[row]:g} is no whole number "
                "of people; if values are rounded, say so by `decimals` or a column 'within'"
            )
        # Those with prediction 1 of whom a rate tells, the others, and numbers of people.
        stated = [np.concatenate([part[rate], part[rate], part[number]]) for part in (rows, group)]
        keys = np.concatenate([keys[rate] + 1, keys[rate], keys[number]])
        low, high = (
            np.concatenate([one[rate], (n - other)[rate], one[number]])
            for one, other in ((low, high), (high, low))
        )
        self._add(where, True, split, keys, stated[1], (low, high), stated[0])
        if (loose := rate & (within > 0)).any():
            sizes = n[loose].astype(np.float64)
            self._add(where, False, people, cells[loose], group[loose], (sizes, sizes), rows[loose])

    def add_remainders(self) -> None:
        """Add what is left of cells when published cells that cut them further are taken away."""
        outers = {(table.where, table.split): table for table in self.tables}
        self.published = self._size
        for inner in list(self.tables):
            columns, label = inner.where
            for column in columns:
                outer = outers.get(((columns - {column}, label), inner.split))
                if outer is not None:
                    self._add_rest(outer, inner)

    def finish(self) -> Facts:
        """All of them."""
        inside = [np.flatnonzero(t.member >= 0) for t in self.tables]
        people = np.concatenate(inside)
        numbers = [t.member[who] + t.first for t, who in zip(self.tables, inside, strict=True)]
        where = people.astype(np.int32), np.concatenate(numbers).astype(np.int32)
        shape = len(self.predicted), self._size
        membership = coo_array((np.ones(len(people), np.int8), where), shape=shape).tocsr()
        noise, law = {}, self.report.noise
        if law is not None:
            noise = {"sigma" if law.law == "gaussian" else "scale": law.scale}
        return Facts.from_counts(
            membership,
            np.concatenate([t.low for t in self.tables]),
            np.concatenate([t.high for t in self.tables]),
            derived=(np.arange(self._size) >= self.published) & (law is None),
            names=self.describe,
            **noise,
        )

    def describe(self, number: int) -> str:
        """A set in words."""
        table = next(t for t in reversed(self.tables) if t.first <= number)
        row = int(table.rows[number - table.first])
        if row < 0:
            return f"the rest of [{self.describe(-1 - row)}] without its published parts"
        text = self.report.describe_slice(row)
        if table.where[1] >= 0:
            text += f", label {table.where[1]}"
        if table.split:
            members = np.flatnonzero(table.member == number - table.first)
            text += f", predicted {self.predicted[members[0]]}" if len(members) else ""
        return f"{text} (row {row})"

    @property
    def _size(self) -> int:
        return self.tables[-1].first + len(self.tables[-1].low) if self.tables else 0

    def _check_sizes(self, rows: NDArray[np.intp], keys: Codes, people: Codes) -> None:
        """Refuse sizes of cells that these people do not have."""
        if not len(rows):
            return
        report, n = self.report, self.report.n[rows]
        cells, cell = np.unique(keys, return_inverse=True)
        place = locate(people, cells)
        there = np.bincount(place[place >= 0], minlength=len(cells))
        rate = report.prediction[rows] < 0
        complete = np.bincount(cell, minlength=len(cells)) == len(report.groups)
        total = np.bincount(cell, weights=n, minlength=len(cells))
        short = (total > there) | (complete & (total != there))
        wrong = np.flatnonzero(np.where(rate, short[cell], n != there[cell]))
        if len(wrong):
            row, k = rows[wrong[0]], cell[wrong[0]]
            said = f"sums to {total[k]:g} over the groups" if rate[0] else f"is {n[wrong[0]]}"
            raise InputError(
                f"row {row}, column 'n': {report.metric[row]} for {report.describe_slice(row)}: n "
                f"{said}, and {there[k]} of these people are there; the report is about other "
                "people, predictions, columns or bins"
            )

    def _add(
        self, where: _Where, split: bool, people: Codes, keys: Codes, group: Codes,
        ends: tuple[Floats, Floats], rows: NDArray[np.intp],
    ) -> None:  # fmt: skip
        """Add the sets of people whose keys occur, with what is stated of their groups."""
        cells, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        member = locate(people, cells)
        shape = len(cells), len(self.report.groups)
        low, high = np.full(shape, -np.inf), np.full(shape, np.inf)
        np.maximum.at(low, (inverse, group), ends[0])
        np.minimum.at(high, (inverse, group), ends[1])
        if self.report.noise is None:
            # What the sizes and the other groups leave: remainders need ends of all groups.
            size = np.bincount(member[member >= 0], minlength=len(cells))[:, None]
            low, high = np.maximum(low, 0), np.minimum(high, size)
            for _ in range(2):
                low = np.maximum(low, size - (high.sum(axis=1, keepdims=True) - high))
                high = np.minimum(high, size - (low.sum(axis=1, keepdims=True) - low))
        self.tables.append(_Table(where, split, member, self._size, low, high, rows[first]))

    def _add_rest(self, outer: _Table, inner: _Table) -> None:
        """Add what is left of the sets of one table without those of another that cuts them."""
        both = (outer.member >= 0) & (inner.member >= 0)
        left = (outer.member >= 0) & (inner.member < 0)
        parent = np.full(len(inner.low), -1)
        parent[inner.member[both]] = outer.member[both]
        cut = np.isin(np.arange(len(outer.low)), parent)
        rest = np.bincount(outer.member[left], minlength=len(cut)) > 0
        taken = np.zeros((2, *outer.low.shape))
        known = parent >= 0
        for end, sums in zip((inner.high, inner.low), taken, strict=True):
            np.add.at(sums, parent[known], end[known])
        bad = ((taken[1] > outer.high) | (taken[0] < outer.low)).any(axis=1) & cut & ~rest
        if bad.any():
            cell = int(np.flatnonzero(bad)[0])
            parts = inner.first + np.flatnonzero(parent == cell)
            raise ContradictionError(map(self.describe, [outer.first + cell, *parts]))
        cells = np.flatnonzero(cut & rest)
        if not len(cells):
            return
        place = np.full(len(cut), -1)
        place[cells] = np.arange(len(cells))
        member = np.where(left, place[outer.member], -1)
        low, high = (outer.low - taken[0])[cells], (outer.high - taken[1])[cells]
        rows = -1 - (outer.first + cells)
        self.tables.append(_Table(inner.where, inner.split, member, self._size, low, high, rows))
