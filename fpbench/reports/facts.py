"""The facts that a published report states about the people whom an adversary sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from fpbench.base.errors import InputError, suggest_name
from fpbench.claims.clauses import NO_CLAUSES, Clauses
from fpbench.claims.count_laws import EXACT, CountLaws, is_bounded
from fpbench.claims.set_counts import ContradictionError, Facts, Floats, Mask
from fpbench.claims.set_tables import SetTable, list_members
from fpbench.reports.exact_blocks import WHOLE
from fpbench.reports.linear_statistics import LinearRow, list_sets, needs_labels, to_clauses
from fpbench.reports.rows import ReportRows
from fpbench.reports.slices import (
    MISSING,
    VIEWS,
    Codes,
    cross,
    cut_scores_of,
    find_column,
    locate,
    name_values,
    view_people,
)
from fpbench.reports.unknown_sizes import find_sizes

if TYPE_CHECKING:
    from pandas import DataFrame


class Suppressed(NamedTuple):
    """Numbers of people that a report suppresses, by set of people and group."""

    sets: csr_array
    """(S, n) the members of each set: people of a slice with one prediction (and label)."""
    numbers: Mask
    """(S, K) whether the number of a group is suppressed; not of sets without people."""

    def over(self, rows: NDArray[np.intp], people: int) -> Suppressed:
        """The same among more people: `rows` (n,) of these."""
        sets = self.sets
        wide = (sets.data, rows[sets.indices], sets.indptr), (sets.shape[0], people)
        return self._replace(sets=csr_array(wide[0], wide[1]))


def find_facts(
    report: ReportRows, X: DataFrame, predicted: Codes, labelled: Codes | None
) -> tuple[Facts, NDArray[np.intp], Facts, Suppressed]:
    """The facts, (M,) the row of the report that each comes from, and `_Finder.find_hidden`.

    And the numbers that are suppressed. `predicted`, `labelled`: (n,) in {0, 1}.
    """
    n = len(X)
    if labelled is None:
        _check_labels(report)
    thresholds, at = _cut_scores(report, X, predicted)
    codes = [_code_slices(report, place, X) for place in range(len(report.columns))]
    finder = _Finder(report, at, labelled)
    depends = report.rounding is not None and not report.rounding.is_independent
    small: list[tuple[_Where, NDArray[np.intp], Codes, Codes]] = []
    used = (report.cells >= 0) & ~np.array([c.is_threshold for c in report.columns], np.bool_)
    _, pattern = np.unique(used, axis=0, return_inverse=True)
    order = np.argsort(pattern.ravel(), kind="stable")
    starts = np.flatnonzero(np.diff(pattern.ravel()[order], prepend=-1))
    for rows in np.split(order, starts[1:]) if len(order) else ():
        columns = np.flatnonzero(used[rows[0]])
        sizes = [len(report.columns[c].values) for c in columns]
        people = cross([codes[c] for c in columns], sizes, n)
        cells = cross([report.cells[rows, c] for c in columns], sizes, len(rows))
        for seen, label in product(finder.seen, (-1, 0, 1)):
            own = (report.label[rows] == label) & (report.view[rows] == VIEWS.index(seen[0]))
            own &= thresholds[rows] == seen[1]
            if not own.any():
                continue
            finder.predicted, others = finder.seen[seen]
            inside = people if label < 0 else np.where(others == label, people, -1)
            where = frozenset(columns.tolist()), label, seen
            sized = own & (report.n[rows] >= 0) & ~report.noisy[rows]
            finder.add_sizes(where, rows[sized], cells[sized], inside)
            mine = own & ~report.suppressed[rows]
            for noisy in (False, True):
                part = mine & (report.noisy[rows] == noisy)
                if part.any() and noisy and report.is_fitted:
                    finder.add_measured(where, rows[part], cells[part], inside)
                elif part.any():
                    finder.add_rows(where, rows[part], cells[part], inside)
            hidden = own & (report.below[rows] > 0)
            if hidden.any():
                small.append((where, rows[hidden], cells[hidden], inside))
            unsized = report.is_rate[rows] & (report.n[rows] < 0) & ~report.noisy[rows]
            unsure = own & (report.suppressed[rows] | unsized | depends)
            if unsure.any():
                finder.hide(rows[unsure], cells[unsure], inside)
    finder.add_remainders()
    for sets in list_sets(
        report.statistics, report.columns, report.groups, codes, at, X, labelled, finder.find_sizes
    ):
        finder.add_statistics(*sets)
    for where, mine, cell, inside in small:
        finder.predicted, _ = finder.seen[where[2]]
        finder.add_small_groups(where, mine, cell, inside)
    if not finder.tables:  # everything is suppressed
        nothing = np.zeros((n, 0), np.bool_), np.zeros((0, len(report.groups)))
        return Facts.from_counts(*nothing), np.zeros(0, np.intp), *finder.find_hidden()
    facts = finder.finish()
    return facts, finder.rows[facts.origin], *finder.find_hidden()


def _check_labels(report: ReportRows) -> None:
    """Refuse metrics that look at labels."""
    where = [f"row {row}, column 'metric': " for row in np.flatnonzero(report.needs_labels)]
    names = report.metric[report.needs_labels].tolist()
    names += [one.metric for one in report.statistics if needs_labels(one.metric)]
    if names:
        raise InputError(
            f"{''.join(where[:1])}'{names[0]}' looks at labels: give labels (--label names their "
            "column)"
        )


_LISTED = 20
"""Most values that a message lists."""


def _code_slices(report: ReportRows, place: int, X: DataFrame) -> Codes:
    """(n,) codes of a column of people, which are not looked at if it is of thresholds.

    Refuse a value of a slice column that none of the people has, but rows count people of.
    """
    column, own = report.columns[place], report.cells[:, place]
    if column.is_threshold:
        if column.name in X:
            raise InputError(
                f"column {column.name!r}: of the report these are thresholds of scores, and the "
                "people have a column of this name: rename that one"
            )
        return np.full(len(X), -1)
    codes = column.code(X)
    held = np.append(np.isin(np.arange(len(column.values)), codes), True)  # uncut, at the end
    counts = np.where(report.is_rate, report.n != 0, report.value > 0)
    wrong = ~held[own] & counts & ~report.suppressed & ~report.noisy
    if not wrong.any():
        return codes
    row = int(np.flatnonzero(wrong)[0])
    value = column.values[own[row]]
    there: Sequence[str] = [column.values[code] for code in np.flatnonzero(held[:-1])]
    if column.edges is None and column.rules is None:
        there = sorted(set(name_values(find_column(X, column.name).dropna().unique())))
    why = "the report is about other people, columns or bins: give the people the column as slices "
    why += "were cut by it"
    if value.casefold() in MISSING and (codes < 0).any():
        why = "of people's files it is read as a missing value: give it another name there and here"
    raise InputError(
        f"row {row}, column {column.name!r}: none of these people has {value!r} ("
        f"{suggest_name(value, there[:_LISTED])}); {why}"
    )


_Where = tuple[frozenset[int], int, tuple[str, int]]
"""Numbers of the columns that cells are crossed by, the label that they look at, or -1; and what
stands for the prediction (`VIEWS`), at which threshold (`_cut_scores`)."""


def _cut_scores(
    report: ReportRows, X: DataFrame, predicted: Codes
) -> tuple[Codes, dict[int, Codes]]:
    """(R,) the threshold of each row, -1 of none; and (n,) predictions by threshold."""
    places = [c for c, column in enumerate(report.columns) if column.is_threshold]
    if len(places) > 1:
        raise InputError(f"columns of the report: there are {len(places)} of thresholds")
    thresholds, at = np.full(len(report), -1), {-1: predicted}
    for place in places:
        thresholds = report.cells[:, place]
        own = range(len(report.columns[place].values))
        at |= {code: cut_scores_of(report.columns[place], X, code) for code in own}
    return thresholds, at


@dataclass(frozen=True)
class _Table:
    """Disjoint sets: cells of one crossing, with one prediction each, or with both."""

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
    """(sets,) the row of the report; for a remainder, -1 minus the set that it remains from."""
    laws: CountLaws
    names: tuple[str, ...] = ()
    """Of sets of people who count alike in a statistic: that."""

    @cached_property
    def sizes(self) -> NDArray[np.intp]:
        """(sets,) people of each set."""
        return np.bincount(self.member[self.member >= 0], minlength=len(self.low))

    @cached_property
    def exact(self) -> bool:
        """Whether it has no noise."""
        return bool(((self.laws.kind == EXACT) | is_bounded(self.laws.kind)).all())


def _read_numbers(
    report: ReportRows, middle: Floats, half: Floats
) -> tuple[Floats, Floats, Floats | None]:
    """Ranges of true numbers, low above high if there are none, and published ones that have a law.

    `middle`, `half`: published numbers, up to rounding of the rates that they are behind. NaN where
    more than one number may have been published.
    """
    least, most = middle - half - WHOLE, middle + half + WHOLE
    if report.rounding is None:
        return np.ceil(least), np.floor(most), None
    least, most = report.rounding.find_values(least, most)
    low, high = report.rounding.find_ranges(least)[0], report.rounding.find_ranges(most)[1]
    high = np.where(least > most, -1.0, high)
    told = None
    if report.rounding.law is not None:
        told = np.where(least == most, least, np.nan)
    return low, high, told


def read_counts(
    report: ReportRows, rows: NDArray[np.intp]
) -> tuple[tuple[Floats, Floats, Floats | None], tuple[Floats, Floats, Floats | None]]:
    """What rows with n, none noisy, say: ranges of the numbers of people, and those with a law.

    Of rates, of people with prediction 1, and second of those with 0. InputError if a value is no
    number of people.
    """
    value, n, within = report.value[rows], report.n[rows].astype(np.float64), report.within[rows]
    size = np.where(report.is_rate[rows], n, 1)
    with np.errstate(invalid="ignore"):
        middle, half = np.where(size > 0, value * size, 0), within * size
    low, high, told = _read_numbers(report, middle, half)
    if (low > high).any():
        row = int(np.flatnonzero(low > high)[0])
        if report.rounding is not None:
            raise InputError(
                f"row {rows[row]}, column 'value': {middle[row]:.12g} people are no number "
                f"that was rounded by {report.rounding} (column 'round_to')"
            )
        raise InputError(
            f"row {rows[row]}, column 'value': {value[row]:.12g} of {n[row]:g} is no whole "
            "number of people; if values are rounded, say so by `decimals` (--decimals) or a "
            "column 'within'"
        )
    if report.rounding is None:
        return (low, high, told), (n - high, n - low, None)
    return (low, high, told), _read_numbers(report, n - middle, half)


class _Finder:
    """Puts the facts of a report together, crossing by crossing."""

    def __init__(self, report: ReportRows, at: dict[int, Codes], labelled: Codes | None) -> None:
        self.report, self.people = report, len(at[-1])
        views = [VIEWS[place] for place in np.unique(report.view)]
        self.seen = {
            (view, place): view_people(view, predicted, labelled)
            for view, (place, predicted) in product(views, at.items())
        }
        self.predicted = at[-1]
        """What stands for the prediction in the rows that are being added."""
        self.tables: list[_Table] = []
        self.clauses = NO_CLAUSES
        self.published = self.known = 0
        """Sets that are published, and those with their remainders."""
        self.hidden: list[tuple[Codes, int]] = []
        self.suppressed: list[Mask] = []
        self.vague: list[int] = []
        """Suppressed sets of which only a clause is known."""

    def add_sizes(self, where: _Where, rows: NDArray[np.intp], cells: Codes, people: Codes) -> None:
        """Check the sizes of the cells of one crossing, and add those beside hidden rates."""
        report = self.report
        number = ~report.is_rate[rows]
        keys = 2 * cells[number] + report.prediction[rows[number]]
        self._check_sizes(rows[number], keys, self._split(people))
        rows, cells = rows[~number], cells[~number]
        if report.rounding is None:
            self._check_sizes(rows, cells, people)
        hidden = report.suppressed[rows]
        if hidden.any():
            rows, cells = rows[hidden], cells[hidden]
            off = 2 * report.reach  # as of rates without n
            n = report.n[rows].astype(np.float64)
            ends = n - off, n + off
            self._add(where, False, people, cells, report.group[rows], ends, rows)

    def add_rows(self, where: _Where, rows: NDArray[np.intp], cells: Codes, people: Codes) -> None:
        """Add what rows say about the cells of one crossing, in which people are."""
        report = self.report
        unsized = report.is_rate[rows] & (report.n[rows] < 0)
        if unsized.any() and not report.noisy[rows[0]]:  # whose laws are of numbers
            self._add_unsized(where, rows, cells, people, unsized)
        if unsized.all():
            return
        rows, cells = rows[~unsized], cells[~unsized]
        group, value, n = report.group[rows], report.value[rows], report.n[rows].astype(np.float64)
        within, prediction = report.within[rows], report.prediction[rows]
        rate, number = prediction < 0, prediction >= 0
        split = self._split(people)
        keys = 2 * cells + np.maximum(prediction, 0)
        noisy = bool(report.noisy[rows[0]])
        if noisy:
            sized = number & (n >= 0)
            self._check_sizes(rows[sized], keys[sized], split)
            low = high = np.where(rate, np.rint(np.where(n > 0, value * n, 0)), value)
            below, above, rounded, others = n - high, n - low, None, None
        else:
            (low, high, rounded), (below, above, others) = read_counts(report, rows)
            self._check_sums(rows, np.where(rate, keys + 1, keys), low, high, split)
        # Behind a rate: people with prediction 1, and with 0; then metrics that are numbers of
        # people.
        stated = [np.concatenate([part[rate], part[rate], part[number]]) for part in (rows, group)]
        keys = np.concatenate([keys[rate] + 1, keys[rate], keys[number]])
        if rounded is not None and others is not None:
            rounded = np.concatenate([rounded[rate], others[rate], rounded[number]])
        low, high = (
            np.concatenate([end[rate], other[rate], end[number]])
            for end, other in zip((low, high), (below, above), strict=True)
        )
        self._add(where, True, split, keys, stated[1], (low, high), stated[0], rounded)
        if not noisy and report.rounding is None and (loose := rate & (within > 0)).any():
            sizes = n[loose].astype(np.float64)
            self._add(where, False, people, cells[loose], group[loose], (sizes, sizes), rows[loose])

    def add_measured(
        self, where: _Where, rows: NDArray[np.intp], cells: Codes, people: Codes
    ) -> None:
        """Add the noisy numbers to which those of rows were fitted, which tell no more."""
        measured = self.report.measured[rows]
        own, prediction = np.nonzero(np.isfinite(measured))
        if len(own):
            ends, keys = measured[own, prediction], 2 * cells[own] + prediction
            group = self.report.group[rows[own]]
            self._add(where, True, self._split(people), keys, group, (ends, ends), rows[own])

    def _add_unsized(
        self, where: _Where, rows: NDArray[np.intp], cells: Codes, people: Codes, unsized: Mask
    ) -> None:
        """Add ranges of the sizes that rates without n leave."""
        report, k = self.report, len(self.report.groups)
        mine = report.is_rate[rows]
        slices, cell = np.unique(cells[unsized], return_inverse=True)
        member = locate(people, slices)
        inside = member >= 0
        total = np.bincount(member[inside], minlength=len(slices))
        selected = np.bincount(member[inside & (self.predicted == 1)], minlength=len(slices))
        low, high = np.zeros((len(slices), k)), np.ones((len(slices), k))
        least, most = np.zeros((len(slices), k)), np.repeat(total[:, None], k, axis=1).astype(float)
        own, group = rows[unsized], report.group[rows[unsized]]
        value, half = report.value[own], report.within[own]
        low[cell, group] = np.maximum(value - half, 0)
        high[cell, group] = np.minimum(value + half, 1)
        # Toolkits print a rate of nobody as 0, or 1; reports whose sizes were left out do not.
        told = report.defences.get("sizes") is False
        least[cell, group] = told | (value - half > 0) & (value + half < 1)
        sized = np.flatnonzero(mine & ~unsized & np.isin(cells, slices))
        place, its = np.searchsorted(slices, cells[sized]), report.group[rows[sized]]
        # Both numbers behind a rate may be off by so much, which together moves n times the rate by
        # no more; and n is off by twice as much.
        off = report.reach
        least[place, its] = report.n[rows[sized]] - 2 * off
        most[place, its] = report.n[rows[sized]] + 2 * off
        slack = np.full(low.shape, float(off))
        slack[cell, group] *= 1 + 2 * half
        ranges = find_sizes(total, selected, low, high, least, most, slack)
        if (bad := (ranges.size[0] > ranges.size[1]).any(axis=1)).any():
            row = int(own[np.flatnonzero(bad[cell])[0]])
            raise InputError(
                f"row {row}, column 'value': {report.metric[row]} for {report.describe_slice(row)}:"
                f" no sizes of groups give these rates together, among {total[bad][0]} people of "
                f"whom {selected[bad][0]} have prediction 1; the report is about other people, or "
                "rates are rounded: say so by `decimals` or a column 'within'"
            )
        cells, split, first = cells[unsized], self._split(people), self._size
        for keys, of, ends in (
            (2 * cells + 1, split, ranges.selected),
            (2 * cells, split, ranges.rejected),
            (cells, people, ranges.size),
        ):
            own_ends = ends[0][cell, group], ends[1][cell, group]
            self._add(where, of is split, of, keys, group, own_ends, own)
        sets = first + np.stack([cell, len(slices) + cell], axis=1)
        for pairs, sign in zip(ranges.rate[:, cell, group], (1, -1), strict=True):
            p, q = pairs.T
            # Of x selected and n - x others, the least rate p / q says that p n <= q x.
            factors = sign * np.stack([p - q, p], axis=1)
            self._add_clauses(sets, group, factors, np.zeros(len(own), np.int64))

    def _add_clauses(
        self, sets: Codes, group: Codes, factors: Codes, most: Codes, each: int = 1
    ) -> None:
        """Add clauses of one group each, of `each` rows one after the other."""
        own = Clauses.of(sets, group[:, None], factors, most, np.arange(len(most)) // each)
        self.clauses = Clauses.join([self.clauses, own])

    def _split(self, people: Codes) -> Codes:
        """(n,) the cell and prediction of each person."""
        return np.where(people >= 0, 2 * people + self.predicted, -1)

    def hide(self, rows: NDArray[np.intp], cells: Codes, people: Codes) -> None:
        """Note the sets of rows that groups decided whether, or how exactly, to publish."""
        prediction, told = self.report.prediction[rows], self.report.suppressed[rows]
        own = [np.flatnonzero((prediction == p) | (prediction < 0)) for p in (0, 1)]
        keys = np.concatenate([2 * cells[which] + p for p, which in enumerate(own)])
        sets, place = np.unique(keys, return_inverse=True)
        numbers = np.zeros((len(sets), len(self.report.groups)), np.bool_)
        which = np.concatenate(own)
        numbers[place[told[which]], self.report.group[rows[which[told[which]]]]] = True
        self.hidden.append((locate(self._split(people), sets), len(sets)))
        self.suppressed.append(numbers)

    def find_hidden(self) -> tuple[Facts, Suppressed]:
        """The sets of `hide`, with counts NaN: what their rows tell is a function of the counts.

        And the numbers of them that are suppressed.
        """
        n, k = self.people, len(self.report.groups)
        tables = self.hidden or [(np.full(n, -1), 0)]
        shape = sum(size for _, size in tables), k
        facts = Facts.from_tables(tables, np.zeros(shape), np.full(shape, n))
        nothing = np.full(facts.low.shape, np.nan)
        first = np.cumsum([0, *(size for _, size in tables)])
        own = [
            SetTable.of(member, np.arange(start, start + size))
            for (member, size), start in zip(tables, first, strict=False)
        ]
        sets = list_members(own, n, shape[0])
        numbers = np.concatenate([np.zeros((0, k), np.bool_), *self.suppressed])
        kept = numbers.any(axis=1) & (np.diff(sets.indptr) > 0)
        hidden = Suppressed(sets[kept], numbers[kept])
        return replace(facts, low=nothing, high=nothing), hidden

    def add_remainders(self) -> None:
        """Add remainders: cells minus the published cells that cut them further."""
        exact = [table for table in self.tables if table.exact]
        outers = {(table.where, table.split): table for table in exact}
        self.published = self._size
        for inner in exact:
            columns, label, view = inner.where
            for column in columns:
                outer = outers.get(((columns - {column}, label, view), inner.split))
                if outer is not None:
                    self._add_rest(outer, inner)
        self.known = self._size

    def add_small_groups(
        self, where: _Where, rows: NDArray[np.intp], cells: Codes, people: Codes
    ) -> None:
        """Add suppressed cells, in which some group has fewer than `below` people.

        The small group is known where larger and smaller published slices show that all others have
        that many.
        """
        report = self.report
        for prediction in np.unique(report.prediction[rows]):
            own = report.prediction[rows] == prediction
            keys, first = np.unique(cells[own], return_index=True)
            inside = people
            if prediction >= 0:
                inside = np.where(self.predicted == prediction, people, -1)
            member, its = locate(inside, keys), rows[own][first]
            low, high = self._bound(where, member, len(keys))
            if prediction < 0:  # published numbers are of one prediction, for the most part
                ends = [
                    self._bound(where, np.where(self.predicted == p, member, -1), len(keys))
                    for p in (0, 1)
                ]
                low = np.maximum(low, ends[0][0] + ends[1][0])
                high = np.minimum(high, ends[0][1] + ends[1][1])
            below = report.below[its][:, None]
            may = low < below
            if not may.any(axis=1).all():
                cell = int(np.flatnonzero(~may.any(axis=1))[0])
                raise ContradictionError([
                    f"{report.describe_slice(its[cell])} is suppressed because a group has fewer "
                    f"than {below[cell, 0]} people there (row {its[cell]}), and all have more"
                ])  # fmt: skip
            high = np.where(may & (may.sum(axis=1, keepdims=True) == 1), below - 1, high)
            k = len(report.groups)
            sets = np.repeat(self._size + np.arange(len(keys)), k)
            self._add_clauses(
                sets[:, None], np.tile(np.arange(k), len(keys)), np.ones((1, 1), np.int64),
                np.repeat(below[:, 0] - 1, k), k,
            )  # fmt: skip
            told = (high == below - 1).any(axis=1)
            self.vague += (self._size + np.flatnonzero(~told)).tolist()
            self._append(where, bool(prediction >= 0), member, low, high, its)

    def find_sizes(self, cut: frozenset[int], member: Codes, many: int) -> tuple[Floats, Floats]:
        """Ends (M, K) of the groups' sizes in sets of people (n,) that are cut by columns."""
        return self._bound((cut, -1, ("", -1)), member, many)

    def add_statistics(
        self, member: Codes, names: list[str], clauses: list[list[LinearRow]]
    ) -> None:
        """Add sets of people who count alike in statistics, of whom only clauses are known.

        As of `list_sets`.
        """
        sizes = np.bincount(member[member >= 0], minlength=len(names)).astype(np.float64)
        high = np.repeat(sizes[:, None], len(self.report.groups), axis=1)
        self.vague += range(self._size, self._size + len(names))
        self.hidden.append((member, len(names)))
        self.suppressed.append(np.zeros(high.shape, np.bool_))
        self.clauses = Clauses.join([self.clauses, to_clauses(clauses, self._size)])
        where = frozenset({-1}), -1, ("everybody", -1)
        nothing = np.zeros(high.shape), high, np.zeros(len(names), np.intp)
        self._append(where, False, member, *nothing)
        self.tables[-1] = replace(self.tables[-1], names=tuple(names))

    def _bound(
        self, where: _Where, member: NDArray[np.intp], many_sets: int
    ) -> tuple[Floats, Floats]:
        """Bounds of the numbers in sets, from their exact supersets and subsets."""
        people = np.flatnonzero(member >= 0)
        mine = member[people]
        sizes = np.bincount(mine, minlength=many_sets)[:, None]
        low = np.zeros((len(sizes), len(self.report.groups)))
        high = np.broadcast_to(sizes, low.shape).astype(np.float64)
        for table in self.tables:
            ours, theirs = where[0], table.where[0]
            if not (ours <= theirs or theirs <= ours) or not table.exact:
                continue
            its, size = table.member[people], table.sizes
            # The set of the table that each of ours might lie in is that of any member; ours lies
            # in it if all members say the same. And the other way round.
            if (size.max(initial=0) >= sizes).any():
                outer = np.full(many_sets, -1)
                outer[mine] = its
                agree = np.bincount(mine[its == outer[mine]], minlength=many_sets)
                inner = np.flatnonzero((agree == sizes[:, 0]) & (outer >= 0))
                outer = outer[inner]
                np.maximum.at(low, inner, table.low[outer] - (size[outer][:, None] - sizes[inner]))
                np.minimum.at(high, inner, table.high[outer])
            if not (size[size > 0] <= sizes.max(initial=0)).any():
                continue
            owner = np.full(len(size) + 1, -1)
            owner[its] = mine
            agree = np.bincount(its[(mine == owner[its]) & (its >= 0)], minlength=len(size))
            held = np.flatnonzero((agree == size) & (owner[:-1] >= 0))
            owner = owner[held]
            sums = np.zeros((2, *low.shape))
            np.add.at(sums[0], owner, table.low[held])
            np.add.at(sums[1], owner, (table.high - size[:, None])[held])
            low, high = np.maximum(low, sums[0]), np.minimum(high, sizes + sums[1])
        for _ in range(2):
            low = np.maximum(low, sizes - (high.sum(axis=1, keepdims=True) - high))
            high = np.minimum(high, sizes - (low.sum(axis=1, keepdims=True) - low))
        return low, high

    def finish(self) -> Facts:
        """All of them."""
        derived = np.zeros(self._size, np.bool_)
        derived[self.published : self.known] = derived[self.vague] = True
        facts = Facts.from_tables(
            [(table.member, len(table.low)) for table in self.tables],
            np.concatenate([t.low for t in self.tables]),
            np.concatenate([t.high for t in self.tables]),
            laws=CountLaws.join([t.laws for t in self.tables]),
            derived=derived,
            names=self.describe,
            clauses=self.clauses,
        )
        # Numbers that were rounded are multiples. Facts do not say so of both behind a
        # rate without size, nor of one behind a rate that more than one number may be behind.
        report = self.report
        several = (report.n < 0) | (2 * report.within * report.n >= 1)
        unsure = report.is_rate & ~report.suppressed & several
        names = tuple(report.groups)
        return replace(
            facts, group_names=names, loose=report.rounding is not None and bool(unsure.any())
        )

    @property
    def rows(self) -> NDArray[np.intp]:
        """(sets,) a row of the report; of what remains of a set, the row of that set."""
        rows = np.concatenate([table.rows for table in self.tables])
        while (rest := rows < 0).any():
            rows[rest] = rows[-1 - rows[rest]]
        return rows

    def describe(self, number: int) -> str:
        """A set in words."""
        table = next(t for t in reversed(self.tables) if t.first <= number)
        row = int(table.rows[number - table.first])
        if table.names:
            return table.names[number - table.first]
        if row < 0:
            return f"the rest of [{self.describe(-1 - row)}] without its published parts"
        text = self.report.describe_slice(row)
        _, label, seen = table.where
        view, _ = seen
        if view == "everybody":
            return f"{text} (row {row})"
        bit, other = ("label", "predicted") if view == "label" else ("predicted", "label")
        if label >= 0:
            text += f", {other} {label}"
        members = np.flatnonzero(table.member == number - table.first)
        if table.split and len(members):
            sign = int(self.seen[seen][0][members[0]])
            text += (", wrong", ", right")[sign] if view == "correct" else f", {bit} {sign}"
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
                f"{said}, but {there[k]} of these people are there; the report is about other "
                "people, predictions, columns or bins"
            )

    def _check_sums(
        self, rows: NDArray[np.intp], keys: Codes, low: Floats, high: Floats, people: Codes
    ) -> None:
        """Refuse numbers whose sum over groups is not that of the people with the prediction."""
        report = self.report
        sets, first, which = np.unique(keys, return_index=True, return_inverse=True)
        place = locate(people, sets)
        there = np.bincount(place[place >= 0], minlength=len(sets))
        # Two metrics may tell the number of one group, and none that of another.
        shape = len(sets), len(report.groups)
        ends = np.zeros(shape), np.full(shape, np.inf)
        np.maximum.at(ends[0], (which, report.group[rows]), low)
        np.minimum.at(ends[1], (which, report.group[rows]), high)
        told = np.isfinite(ends[1]).all(axis=1) & (ends[0] <= ends[1]).all(axis=1)
        least, most = (end.sum(axis=1) for end in ends)
        wrong = np.flatnonzero(told & ((least > there) | (most < there)))
        if len(wrong):
            k = wrong[0]
            row, makes = rows[first[k]], f"{least[k]:g}"
            if least[k] != most[k]:
                makes += f" to {most[k]:g}"
            raise InputError(
                f"row {row}, column 'value': {report.metric[row]} for {report.describe_slice(row)} "
                f"makes {makes} people over the groups, but of these people there are {there[k]}; "
                "the report is about other people or predictions, or a value is wrong"
            )

    def _add(
        self, where: _Where, split: bool, people: Codes, keys: Codes, group: Codes,
        ends: tuple[Floats, Floats], rows: NDArray[np.intp], rounded: Floats | None = None,
    ) -> None:  # fmt: skip
        """Add the sets of people whose keys occur, with what is stated of their groups."""
        cells, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        member = locate(people, cells)
        shape = len(cells), len(self.report.groups)
        low, high = np.full(shape, -np.inf), np.full(shape, np.inf)
        laws = CountLaws.of(self.report.law[rows[first]], self.report.width[rows[first]], shape[1])
        if self.report.noisy[rows[0]]:  # of one measurement; a second of the same cell is left out
            low[inverse, group] = high[inverse, group] = ends[0]
        else:
            np.maximum.at(low, (inverse, group), ends[0])
            np.minimum.at(high, (inverse, group), ends[1])
            # What the sizes and the other groups leave: remainders need ends of all groups.
            size = np.bincount(member[member >= 0], minlength=len(cells))[:, None]
            low, high = np.maximum(low, 0), np.minimum(high, size)
            for _ in range(2):
                low = np.maximum(low, size - (high.sum(axis=1, keepdims=True) - high))
                high = np.minimum(high, size - (low.sum(axis=1, keepdims=True) - low))
        if rounded is not None and self.report.rounding is not None:
            laws.rounded[inverse, group] = rounded
            is_rounded = np.isfinite(laws.rounded).any(axis=1)
            laws.kind[is_rounded], laws.width[is_rounded] = self.report.rounding.law or (0, 0)
        self._append(where, split, member, low, high, rows[first], laws)

    def _append(
        self, where: _Where, split: bool, member: NDArray[np.intp], low: Floats, high: Floats,
        rows: NDArray[np.intp], laws: CountLaws | None = None,
    ) -> None:  # fmt: skip
        if laws is None:
            none = np.zeros(len(low))
            laws = CountLaws.of(none.astype(np.int8), none, len(self.report.groups))
        self.tables.append(_Table(where, split, member, self._size, low, high, rows, laws))

    def _add_rest(self, outer: _Table, inner: _Table) -> None:
        """Add the sets of one table minus those of another table that cuts them further."""
        both = (outer.member >= 0) & (inner.member >= 0)
        left = (outer.member >= 0) & (inner.member < 0)
        parent = np.full(len(inner.low), -1)
        parent[inner.member[both]] = outer.member[both]
        cut = np.isin(np.arange(len(outer.low)), parent)
        taken = np.zeros((2, *outer.low.shape))
        known = parent >= 0
        for end, sums in zip((inner.high, inner.low), taken, strict=True):
            np.add.at(sums, parent[known], end[known])
        size = np.bincount(outer.member[left], minlength=len(cut))[:, None]
        rest = size[:, 0] > 0
        bad = ((taken[1] > outer.high) | (taken[0] + size < outer.low)).any(axis=1) & cut
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
        self._append(inner.where, inner.split, member, low, high, rows)
