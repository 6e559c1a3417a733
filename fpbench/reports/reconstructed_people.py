"""Whole people whom a published report tells of, to a reader who knows nobody's columns.

Rows of people are ranked by how often they are in random tables of people that give the published
numbers (Dick, Dwork, Kearns, Liu, Roth, Vietri & Wu, Confidence-ranked reconstruction of census
microdata from published statistics, PNAS 120, 2023). There, a table is fitted by gradients from a
random start, and no row is certain. Here, the law of other people is fitted to the numbers by
iterative proportional fitting, a table is drawn from it and moved to the nearest that gives all of
them (a linear program; in both, a table may hold parts of people). Rows that no table lacks are
then tried: the multipliers of a linear program prove, in whole numbers, how many such people there
are at least. What is left is decided by integer programs, whose bounds rest on the solver.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import block_array, csr_array
from scipy.sparse.csgraph import connected_components

from fpbench.base.argument_types import check_arguments
from fpbench.base.arguments import check_whole_number, show_value, to_generator
from fpbench.base.errors import InputError
from fpbench.claims.set_counts import Floats
from fpbench.correction.exact.highs import HighsModel
from fpbench.correction.facts.linear_programs import bound_cost
from fpbench.data.people import read_people
from fpbench.reports.facts import read_counts
from fpbench.reports.fairness_report import read_groups
from fpbench.reports.rows import ReportRows
from fpbench.reports.slices import (
    VIEWS,
    Codes,
    check_bits,
    check_people,
    code_groups,
    cross,
    locate,
    view_people,
)

if TYPE_CHECKING:
    from pandas import DataFrame

_MOST_ROWS = 2**17
"""Most distinct rows that people may have."""
_SWEEPS = 300
"""Most passes of the fit over all tables."""
_NEAR = 1e-6
"""Tolerance of whole numbers, and of sums of the fit."""
_TOLD = ("prediction", "label", "frequency", "expected", "prior", "at_least")


@check_arguments
def reconstruct_people(
    report: ReportRows,
    X: DataFrame,
    predictions: ArrayLike,
    groups: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    worlds: int = 50,
    seconds: float = 60.0,
    rng: np.random.Generator | int | None = None,
) -> DataFrame:
    """Rows of people (columns of the report, group, prediction) by how surely somebody has them.

    Parameters
    ----------
    report
        Numbers of people, or rates with their sizes, without noise.
    X
        Other people of the same population, with the columns of the report: the law that rows are
        drawn from. A proof does not rest on it.
    predictions, groups
        (n,) in {0, 1}, and names of groups, of these others.
    labels
        (n,) in {0, 1}; needed if a metric of the report looks at labels.
    worlds
        Tables of people to draw.
    seconds
        Half for tables, half for proofs; what is not found by then is left out.
    rng
        A generator or seed.

    Returns
    -------
    DataFrame
        The rows that are possible, the surest first: `at_least`, how many people are proven to have
        them; `frequency`, the share of the drawn tables that have them, in which part of a person
        counts as part; `expected`, people by the fitted law; `prior`, the probability that
        somebody has them by the population alone. A blank stands for a value that no slice has.
        `attrs` holds the tables drawn (`worlds`) and the rows for whose proof time ran out
        (`undecided`).

    Raises
    ------
    InputError
        If the report has noise or rates without sizes, contradicts itself or has too many columns,
        or the people lack a column or are of other groups.
    """
    import pandas as pd

    check_whole_number("worlds", worlds, 1)
    if not seconds > 0:
        raise InputError(f"seconds must be above 0, not {show_value(seconds)}")
    rng, began = to_generator("rng", rng), time.perf_counter()
    names = [column.name for column in report.columns]
    if taken := set(names).intersection(_TOLD):
        raise InputError(f"the report has a column {min(taken)!r}: rename it")
    X, groups, vectors = read_people(X, groups, predictions=predictions, labels=labels)
    check_people(X)
    predicted = check_bits(vectors["predictions"], len(X), "predictions")
    labelled = np.zeros(len(X), np.int64)
    if report.needs_labels.any():
        if vectors["labels"] is None:
            raise InputError("a metric of the report looks at labels: give labels")
        labelled = check_bits(vectors["labels"], len(X), "labels")
    columns = [column.code(X) for column in report.columns]
    coded = code_groups(read_groups(groups, len(X)), report.groups, "groups")
    people = np.column_stack([*columns, coded, labelled, predicted])
    program = _Program.of(report, people)
    chance = -np.expm1(-program.expected)
    at_least, parts = np.zeros(len(chance), np.int64), program.split()
    drawn, undecided = worlds, 0
    for done, part in enumerate(parts):
        now, tables = time.perf_counter(), list[Floats]()
        until = now + (began + seconds - now) / (len(parts) - done)
        while len(tables) < worlds and time.perf_counter() < (now + until) / 2:
            if (table := program.draw(part, (now + until) / 2, rng)) is not None:
                tables.append(table)
        if tables:
            chance[part.rows] = np.minimum(tables, 1).mean(axis=0)
        undecided += program.prove(part, np.reshape(tables, (-1, len(part.rows))), at_least, until)
        drawn = min(drawn, len(tables))
    expected = program.expected
    frame: dict[str, object] = {
        column.name: np.array([*column.values, ""], object)[program.rows[:, c]]
        for c, column in enumerate(report.columns)
    }
    *_, group, label, prediction = program.rows.T
    frame |= {"group": np.array(report.groups, object)[group], "prediction": prediction}
    if report.needs_labels.any():
        frame["label"] = label
    prior = -np.expm1(-expected.sum() * program.prior)
    frame |= {"frequency": chance, "expected": expected, "prior": prior, "at_least": at_least}
    order = np.lexsort((-expected, -chance, -at_least))
    ranked = pd.DataFrame(frame).iloc[order].reset_index(drop=True)
    ranked.attrs |= {"worlds": drawn, "undecided": undecided}
    return ranked


@dataclass(frozen=True)
class _Statement:
    """Numbers of disjoint sets of people: a row of the report each, of one crossing and kind."""

    columns: tuple[int, ...]
    group: int
    view: int
    label: int
    prediction: int
    """-1: with either."""
    cells: Codes
    """(S, C)."""
    low: Floats
    high: Floats

    @property
    def kind(self) -> tuple[int, ...]:
        """What is counted, in any crossing."""
        return self.group, self.view, self.label, self.prediction

    def locate(self, rows: Codes, sizes: list[int]) -> Codes:
        """(R,) the set that each row of people is in; -1 if none, -2 if another kind is counted."""
        *_, group, labels, predictions = rows.T
        shown, other = view_people(VIEWS[self.view], predictions, labels)
        kind = group == self.group
        if self.prediction >= 0:
            kind &= shown == self.prediction
        if self.label >= 0:
            assert other is not None
            kind &= other == self.label
        own = [sizes[c] for c in self.columns]
        key = cross([rows[:, c] for c in self.columns], own, len(rows))
        listed = cross([self.cells[:, c] for c in self.columns], own, len(self.cells))
        order = np.argsort(listed)
        place = locate(key, listed[order])
        return np.where(kind, np.where(place < 0, -1, order[place]), -2)


def _list_statements(report: ReportRows) -> list[_Statement]:
    """What a report says of numbers of people, by crossing, group and what is counted.

    Raises InputError if a row has noise or no size.
    """
    shown, sized = ~report.suppressed, report.is_rate & (report.n >= 0)
    for wrong, why in (
        (report.noisy, "has noise, which proves nothing"),
        (shown & report.is_rate & ~sized, "has no n: publish sizes"),
    ):
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise InputError(
                f"report: row {row}, {report.metric[row]} for {report.describe_slice(row)}: people "
                f"are reconstructed from numbers of people, and this one {why}"
            )
    ends = np.full((3, len(report), 2), np.nan)
    """Numbers of people with prediction 0, with 1, and of both."""
    number = np.flatnonzero(shown)
    of_one, of_other = read_counts(report, number)
    ends[1, number] = np.column_stack(of_one[:2])
    ends[0, number] = np.column_stack(of_other[:2])
    if report.rounding is None:
        ends[2] = report.n[:, None]
    used = report.cells >= 0
    kinds = np.column_stack([used, report.group, report.view, report.label, report.prediction])
    kinds, kind = np.unique(kinds, axis=0, return_inverse=True)
    statements = []
    for place, (*crossed, group, view, label, prediction) in enumerate(kinds.tolist()):
        own = kind.ravel() == place
        for bit in (0, 1, -1):
            stated = own & (shown if bit >= 0 else sized & np.isfinite(ends[2, :, 0]))
            if (prediction >= 0 and bit != 1) or not stated.any():
                continue
            counted = prediction if prediction >= 0 else bit
            low, high = ends[bit, stated].T
            what = tuple(np.flatnonzero(crossed).tolist()), group, view, label, counted
            statements.append(_Statement(*what, report.cells[stated], np.maximum(low, 0), high))
    if not statements:
        raise InputError("report: it shows no number of people")
    return statements


@dataclass(frozen=True)
class _Part:
    """Rows of people that statements connect, and these: as of `_Program`."""

    rows: NDArray[np.intp]
    matrix: csr_array
    low: Floats
    high: Floats

    @property
    def sets(self) -> list[NDArray[np.intp]]:
        """The rows of people in each set."""
        return np.split(self.matrix.indices, self.matrix.indptr[1:-1])


@dataclass(frozen=True)
class _Program:
    """Tables of people: numbers x of R rows with low <= matrix @ x <= high."""

    rows: Codes
    """(R, C + 3) codes of columns, -1 for none of the report's values; group, label, prediction."""
    matrix: csr_array
    """(S, R)."""
    low: Floats
    high: Floats
    most: Floats
    """(R,) people of each row, at most."""
    prior: Floats
    """(R,) share of the population."""
    expected: Floats
    """(R,) people by the law of the population, fitted to the numbers."""

    @classmethod
    def of(cls, report: ReportRows, people: Codes) -> _Program:
        """The program of a report, with the law of other people (n, C + 3)."""
        statements = _list_statements(report)
        sizes = [len(column.values) for column in report.columns]
        rows = _list_rows(statements, sizes, len(report.groups), 1 + int(report.needs_labels.any()))
        places = [one.locate(rows, sizes) for one in statements]
        kept = np.logical_or.reduce([place >= 0 for place in places])  # the report tells of them
        rows, places = rows[kept], [place[kept] for place in places]
        first = np.cumsum([0, *(len(one.low) for one in statements)])
        own = [np.flatnonzero(place >= 0) for place in places]
        sets = [
            place[which] + start for place, which, start in zip(places, own, first, strict=False)
        ]
        ends = np.concatenate(sets), np.concatenate(own)
        matrix = csr_array((np.ones(len(ends[0])), ends), (int(first[-1]), len(rows)))
        low, high = (
            np.concatenate([getattr(one, end) for one in statements]) for end in ("low", "high")
        )
        most = np.full(len(rows), np.inf)
        np.minimum.at(most, ends[1], high[ends[0]])
        if (low > high).any() or (low[np.diff(matrix.indptr) == 0] > 0).any():
            raise _contradict()
        prior = _find_law(rows, people, sizes, len(report.groups))
        expected = prior * max(low.max(), 1.0)
        for _ in range(_SWEEPS):
            worst = 0.0
            for one, place, which in zip(statements, places, own, strict=True):
                sums = np.bincount(place[which], expected[which], minlength=len(one.low))
                wanted = np.clip(sums, one.low, one.high)
                worst = max(worst, float(np.abs(sums - wanted).max()))
                expected[which] *= (wanted / np.where(sums > 0, sums, 1))[place[which]]
            if worst < _NEAR:
                break
        return cls(rows, matrix, low, high, most, prior, expected)

    def split(self) -> list[_Part]:
        """The parts that no statement connects, the smallest first."""
        label = connected_components(block_array([[None, self.matrix], [self.matrix.T, None]]))[1]
        parts = []
        for one in np.unique(label[len(self.low) :]):
            sets, rows = (np.flatnonzero(of == one) for of in np.split(label, [len(self.low)]))
            matrix = csr_array(self.matrix[sets][:, rows])
            parts.append(_Part(rows, matrix, self.low[sets], self.high[sets]))
        return sorted(parts, key=lambda part: len(part.rows))

    def draw(self, part: _Part, deadline: float, rng: np.random.Generator) -> Floats | None:
        """(rows,) the table of a part nearest to one drawn from the law; None if time runs out."""
        table = np.minimum(rng.poisson(self.expected[part.rows]), self.most[part.rows])
        prices = 1 + rng.exponential(size=len(table))
        model = HighsModel()
        up = model.columns(0 * table, self.most[part.rows] - table, prices)
        down = model.columns(0 * table, table, prices)
        sums = part.matrix @ table
        for number, inside in enumerate(part.sets):
            model.row(
                np.concatenate([up[inside], down[inside]]),
                np.repeat([1.0, -1.0], len(inside)),
                part.low[number] - sums[number],
                part.high[number] - sums[number],
            )
        answer = model.solve(deadline - time.perf_counter())
        if answer is None:
            raise _contradict()
        if not answer.proven or answer.values is None:
            return None
        return np.asarray(table + answer.values[up] - answer.values[down])

    def prove(self, part: _Part, tables: Floats, at_least: Codes, deadline: float) -> int:
        """Put into (R,) `at_least` how many people are proven; returns the rows left over."""
        low, high, most = part.low, part.high, self.most[part.rows]
        order = np.argsort(-self.expected[part.rows], kind="stable")
        open_ = np.ones(len(most), np.bool_)  # whole tables have them
        linear = tables.min(axis=0, initial=np.inf) > _NEAR  # all tables have them
        for whole in (False, True):
            for done, row in enumerate(order):
                if not open_[row] or not (whole or linear[row]):
                    continue
                if (left := deadline - time.perf_counter()) <= 0:
                    return int(open_[order[done:]].sum()) if whole else int(open_.sum())
                model, cost = HighsModel(), np.eye(1, len(most), row)[0]
                columns = model.columns(0 * most, most, cost, whole=whole)
                for number, inside in enumerate(part.sets):
                    model.row(columns[inside], np.ones(len(inside)), low[number], high[number])
                answer = model.solve(left)
                if answer is None:
                    raise _contradict()
                if answer.values is not None:
                    table = np.rint(answer.values)
                    linear &= answer.values > _NEAR
                    if np.abs(answer.values - table).max() < _NEAR:
                        open_ &= table > 0
                bound: float | Fraction = answer.bound - _NEAR
                if not whole:
                    prices = np.zeros(len(low)) if answer.prices is None else answer.prices
                    bound = -bound_cost(-cost, -prices, part.matrix, low, high, most)
                if bound > 0:
                    at_least[part.rows[row]] = math.ceil(bound)
                    open_[row] = False
        return 0


def _list_rows(statements: list[_Statement], sizes: list[int], groups: int, labels: int) -> Codes:
    """(R, C + 3) all rows of people that the numbers allow; InputError if they are too many."""
    rows = np.array(list(product(range(groups), range(labels), range(2))))
    whole = {one.kind: one.high[0] for one in statements if not one.columns}
    for c in range(-1, len(sizes)):
        if c >= 0:
            if len(rows) * (sizes[c] + 1) > _MOST_ROWS:
                raise InputError(
                    f"report: its {len(sizes)} columns have more than {_MOST_ROWS:,} combinations "
                    "of values: take fewer columns, or bins (`protect`)"
                )
            value = np.tile(np.arange(-1, sizes[c]), len(rows))
            rows = np.insert(np.repeat(rows, sizes[c] + 1, axis=0), c, value, axis=1)
        for one in statements:
            if max(one.columns, default=-1) == c:
                place = one.locate(rows, sizes)
                gone = place >= 0
                gone[gone] = one.high[place[gone]] == 0
                if one.low.sum() == whole.get(one.kind):  # all people are in its sets
                    gone |= place == -1
                rows = rows[~gone]
    return rows


def _find_law(rows: Codes, people: Codes, sizes: list[int], groups: int) -> Floats:
    """(R,) probabilities of rows by other people (n, C + 3).

    Rows that nobody has share the probability of new ones (Good & Turing: people who are alone with
    their row), as if columns were independent within group, label and prediction.
    """
    widths = [size + 1 for size in sizes] + [groups, 2, 2]
    shift = np.array([1] * len(sizes) + [0] * 3)
    keys, own = (cross(list((of + shift).T), widths, len(of)) for of in (people, rows))
    values, count = np.unique(keys, return_counts=True)
    place = locate(own, values)
    seen = np.where(place >= 0, count[place], 0) / len(people)
    new = (count == 1).sum() / len(people)
    kinds, kind = (cross(list(of[:, -3:].T), widths[-3:], len(of)) for of in (people, rows))
    alike = np.bincount(kinds, minlength=4 * groups) + 0.5
    chance = (alike / alike.sum())[kind]
    for c, width in enumerate(widths[:-3]):
        table = np.full((4 * groups, width), 0.5 / width)
        np.add.at(table, (kinds, people[:, c] + 1), 1)
        chance *= table[kind, rows[:, c] + 1] / alike[kind]
    return np.asarray((1 - new) * seen + max(new, 1 / len(people)) * chance)


def _contradict() -> InputError:
    return InputError("report: no people give all its numbers together")
