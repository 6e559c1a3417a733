"""Numbers of people that are those of one table: noisy ones, fitted to what is public."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, TypeVar

import numpy as np

from fpbench.base.errors import InputError
from fpbench.claims.count_laws import LAWS, Floats
from fpbench.claims.set_counts import Mask
from fpbench.components.mechanism import Mechanism
from fpbench.privacy.marginal_release import (
    Marginals,
    NoisyMarginals,
    fit_people,
    fit_sizes,
    measure_marginals,
    number_cells,
    plan_marginals,
)
from fpbench.reports.defences.counts_with_noise import Counts
from fpbench.reports.exact_blocks import ExactBlocks, tabulate
from fpbench.reports.facts import find_facts
from fpbench.reports.rows import ReportedPeople, ReportRows, StatedGuarantee
from fpbench.reports.slices import REPORT_METRICS, Codes, SliceColumn, number_slices

Rows = TypeVar("Rows", bound=ReportRows)
_KINDS = 2**16
"""Most combinations of values of secret sizes; the fit of more takes too long."""


@dataclass(frozen=True, eq=False)
class FittedCounts:
    """Numbers of a report that are sums over one table of people.

    A cell is somebody's values of the columns, the label and the prediction.
    """

    marginals: Marginals
    counts: Counts
    """The true numbers behind the report."""
    keys: Codes
    """(A, C) their values of the marginals' columns; -1 where they are not cut."""
    place: Codes
    """(A,) the measured cell of each; -1 of those that only follow from others."""
    earlier: tuple[tuple[Codes, Floats, Floats], ...] = ()
    """Of each earlier report (M, C) keys, (M, K) measured numbers, and (M,) their deviations."""

    @classmethod
    def of(
        cls,
        blocks: ExactBlocks,
        people: ReportedPeople,
        mechanism: Mechanism,
        epsilon: float,
        earlier: Sequence[ReportRows] = (),
    ) -> FittedCounts:
        """The numbers that blocks publish about these people, planned for noise.

        And the numbers that earlier rows had.
        """
        counts, columns = Counts.of(blocks), list(blocks.columns)
        told = [_read_measured(rows, columns) for rows in earlier]
        keys, *others = (
            np.insert(key, [key.shape[1] - 2] * (len(columns) + 2 - key.shape[1]), -1, axis=1)
            for key in (
                np.column_stack([counts.cells, counts.label, counts.prediction]),
                *(key for key, _, _ in told),
            )
        )
        codes = people.code(columns)
        label = codes.shape[1] - 2
        if all((key[:, label] < 0).all() for key in (keys, *others)):
            codes[:, label] = 0
        first, kind = number_slices(codes)
        views = _list_views(keys)
        single = [view for view in views if sum(c < label for c in view) == 1]
        # Of tables by labels one label may be missing: then they do not tell those of all people.
        both = set(np.unique(counts.label)) >= {0, 1}
        largest = [
            view
            for view in views
            if not any(
                set(view) < set(other) and (both or (label in view) == (label in other))
                for other in views
            )
        ]
        sizes = np.bincount(kind, minlength=len(first))
        marginals = plan_marginals(
            codes[first], sizes, largest, single, counts.people.shape[1], mechanism, epsilon
        )
        place = np.full(len(keys), -1)
        for number, table in enumerate(marginals.tables):
            own = _match_view(keys, table)
            place[own] = marginals.locate(number, keys[own])
        measured = tuple((key, *own[1:]) for key, own in zip(others, told, strict=True))
        return cls(marginals, counts, keys, place, measured)

    def measure(
        self, mechanism: Mechanism, epsilon: float, rng: np.random.Generator
    ) -> NoisyMarginals:
        """What is measured of the true numbers."""
        true = np.full((self.marginals.cells.shape[0], self.counts.people.shape[1]), np.nan)
        told = self.place >= 0
        true[self.place[told]] = self.counts.people[told]
        return measure_marginals(self.marginals, true, mechanism, epsilon, rng)

    def pool(self, noisy: NoisyMarginals) -> tuple[Marginals, NoisyMarginals]:
        """All tables, earlier ones too, and one number of each cell for all that was measured.

        That is the mean by precision, with the precisions' sum: as likely as all of them.
        """
        new = self.marginals
        views = {view for keys, _, _ in self.earlier for view in _list_views(keys)}
        more = sorted(views.difference(new.tables))
        every = replace(new, tables=(*new.tables, *more), weights=(*new.weights, *[1] * len(more)))
        size = np.asarray(every.cells @ every.sizes)
        free, unit = noisy.answers.shape[1], 2**0.5 if noisy.law == "laplace" else 1.0
        sums, precision = np.zeros((len(size), free)), np.zeros((len(size), 1))
        parts = [(np.arange(len(noisy.answers)), noisy.answers, noisy.width * unit)]
        for keys, numbers, deviation in self.earlier:
            for number, table in enumerate(every.tables):
                mine = np.flatnonzero(_match_view(keys, table))
                parts.append((every.locate(number, keys[mine]), numbers[mine], deviation[mine]))
        for cell, numbers, deviation in parts:
            own = numbers[:, -free:]
            if numbers.shape[1] == 2 and free == 1:
                own = np.where(np.isfinite(own), own, size[cell, None] - numbers[:, :1])
            told = (cell >= 0) & np.isfinite(own).all(axis=1)
            weight = 1 / np.maximum(deviation[told], 1e-9)[:, None] ** 2
            # This counts once what a report repeats: a set that several metrics tell of.
            sums[cell[told]] += weight * own[told]
            precision[cell[told]] += weight
        with np.errstate(invalid="ignore", divide="ignore"):
            answers = sums / precision
        width = np.where(precision > 0, precision, np.inf)[:, 0] ** -0.5 / unit
        return every, replace(noisy, answers=answers, width=width)

    def fit(self, noisy: NoisyMarginals) -> Floats:
        """(A, K) whole numbers of one table of people."""
        groups, marginals = self.counts.people.shape[1], self.marginals
        if self.earlier:
            marginals, noisy = self.pool(noisy)
        people = fit_people(marginals, noisy, groups)
        answers = np.zeros((len(self.keys), groups))
        for view in _list_views(self.keys):
            own = _match_view(self.keys, view)
            many = len(marginals.kinds)
            same = number_cells(np.concatenate([marginals.kinds, self.keys[own]]), view)
            sums = np.zeros((int(same.max(initial=-1)) + 1, groups))
            np.add.at(sums, same[:many], people)
            answers[own] = sums[same[many:]]
        return answers

    def list_measured(self, noisy: NoisyMarginals) -> tuple[Floats, Floats]:
        """(A, K) noisy numbers, NaN where none was measured, and (A,) widths of their noise."""
        told, groups = self.place >= 0, self.counts.people.shape[1]
        width = np.full(len(self.place), noisy.width.max(initial=0.0))
        width[told] = noisy.width[self.place[told]]
        measured = np.full((len(self.place), groups), np.nan)
        measured[told, -noisy.answers.shape[1] :] = noisy.answers[self.place[told]]
        return measured, width


def _list_views(keys: Codes) -> list[tuple[int, ...]]:
    """Columns of each table that keys are of."""
    return [tuple(np.flatnonzero(row).tolist()) for row in np.unique(keys >= 0, axis=0)]


def _match_view(keys: Codes, table: Sequence[int]) -> Mask:
    """(M,) whether keys (M, C) are of a table."""
    return np.asarray(((keys >= 0) == np.isin(np.arange(keys.shape[1]), table)).all(axis=1))


def _read_measured(rows: ReportRows, columns: list[SliceColumn]) -> tuple[Codes, Floats, Floats]:
    """(M, columns + 2) keys, (M, K) measured numbers and (M,) deviations of a report with noise.

    Columns that cut in another way than those of this name are added to `columns`.
    """
    _, places = rows.blocks
    first = places.max(axis=1)
    cells = np.full((len(first), len(columns) + len(rows.columns)), -1)
    for own, column in zip(rows.cells[first].T, rows.columns, strict=True):
        same = [c.name == column.name and set(c.values) >= set(column.values) for c in columns]
        if True not in same:
            columns.append(column)
            same.append(True)
        values = columns[same.index(True)].values
        cells[:, same.index(True)] = np.array([*map(values.index, column.values), -1])[own]
    keys = np.column_stack([cells[:, : len(columns)], rows.label[first], rows.prediction[first]])
    keys = np.repeat(keys, 2, axis=0)
    keys[:, -1] = np.tile([0, 1], len(first))
    numbers = np.where(places[..., None] >= 0, rows.measured[places], np.nan)
    numbers = numbers.transpose(0, 2, 1).reshape(len(keys), -1)
    deviation = np.repeat(np.hypot(rows.sigma, 2**0.5 * rows.scale)[first], 2)
    told = np.isfinite(numbers).any(axis=1) & (deviation > 0)
    return keys[told], numbers[told], deviation[told]


def read_earlier(name: str, report: Rows, people: ReportedPeople, groups: Sequence[str]) -> Rows:
    """A report that was published before, with groups in this order.

    Raises InputError, which begins with its name, if it has no measured numbers, or is not about
    these people.
    """
    if set(report.groups) != set(groups):
        raise InputError(
            f"{name}: is by the groups {', '.join(report.groups)}, and these people are "
            f"{', '.join(groups)}"
        )
    if not report.is_fitted:
        raise InputError(f"{name}: has no noisy numbers beside fitted ones, as released tables do")
    place = np.array([groups.index(one) for one in report.groups])
    read = replace(report, groups=tuple(groups), group=place[report.group])
    # Its numbers are those of one table of people, with the true sizes.
    law, width = np.zeros_like(report.law), np.zeros_like(report.width)
    try:
        exact = replace(read, law=law, width=width)
        find_facts(exact, people.X, people.predictions, people.labels)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    return read


def add_fitted_noise(
    rows: ReportRows,
    people: ReportedPeople,
    mechanism: Mechanism,
    epsilon: float,
    rng: np.random.Generator,
    earlier: Sequence[ReportRows] = (),
) -> ReportRows:
    """The rows with numbers of one table of people that is likely given noisy numbers.

    The noisy numbers are told beside them: they cost no more privacy, and it is from these that a
    reader learns most. Whoever has the fitted numbers alone learns less. Those of earlier reports
    about the same people, which are public, are used, too.
    """
    blocks = ExactBlocks.of(rows, "noise")
    guarantee = mechanism.guarantee(epsilon, "attribute")
    before = [
        read_earlier(f"earlier report {number}", report, people, rows.groups)
        for number, report in enumerate(earlier, 1)
    ]
    fitted = FittedCounts.of(blocks, people, mechanism, epsilon, before)
    noisy = fitted.measure(mechanism, epsilon, rng)
    measured, width = fitted.list_measured(noisy)
    stated = StatedGuarantee(
        guarantee=guarantee,
        mechanism={"use": mechanism.name, **mechanism.model_dump(mode="json")},
        epsilon=float(epsilon),
        changes=int(fitted.marginals.find_reach(len(rows.groups)).l1),
        fitted=True,
    )
    published = replace(fitted.counts, people=fitted.fit(noisy)).publish(
        blocks, LAWS.index(noisy.law), width, measured
    )
    record = {
        "noise": stated.mechanism,
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
    }
    return replace(published, defences={**published.defences, **record}, guarantee=stated)


def release_secret_sizes(
    columns: Sequence[SliceColumn],
    groups: Sequence[str],
    people: ReportedPeople,
    mechanism: Mechanism,
    epsilon: float,
    rng: np.random.Generator,
    *,
    order: int,
    metrics: Sequence[str],
    min_cell: int,
) -> ReportRows:
    """The rows of one table of people that is likely given noisy numbers, where nothing is public.

    Only columns, their values (and whether some are missing) and names of groups are: kinds of
    people are all combinations of these, whoever there is. `order` and `metrics` say what is
    published, of cells of at least `min_cell` fitted people.
    """
    import pandas as pd

    if type(mechanism).find_noise_law is Mechanism.find_noise_law:
        raise InputError(
            f"mechanism {mechanism.name!r} needs public sizes: use discrete-laplace, or leave out "
            'public = "nothing"'
        )
    for name in metrics:
        if REPORT_METRICS[name].view != "prediction":
            raise InputError(f"{name!r} is no rate or number by prediction, which noise is for")
    assert people.groups is not None
    codes, label, k = people.code(columns), len(columns), len(groups)
    labelled = sorted({REPORT_METRICS[name].label is not None for name in metrics})
    if labelled == [False]:
        codes[:, -2] = 0
    crossed = [t for size in range(order + 1) for t in combinations(range(label), size)]
    views = [(*t, *[label] * by, label + 1) for t in crossed for by in labelled]
    largest = [view for view in views if not any(set(view) < set(other) for other in views)]
    single = [view for view in views if sum(c < label for c in view) == 1]
    kinds = _list_kinds([
        *(np.arange(-bool((own < 0).any()), len(column.values))
          for own, column in zip(codes.T[:-2], columns, strict=True)),
        np.arange(1 + labelled[-1]), np.arange(2),
    ])  # fmt: skip
    pure = mechanism.guarantee(epsilon, "attribute").delta == 0
    plan = replace(
        Marginals.of(kinds, np.ones(len(kinds), np.int64), largest, single, pure=pure), secret=True
    )
    true = np.zeros((plan.cells.shape[0], k))
    for number in range(len(plan.tables)):
        there = plan.locate(number, codes)
        np.add.at(true, (there[there >= 0], people.groups[there >= 0]), 1)
    noisy = measure_marginals(plan, true, mechanism, epsilon, rng)
    sizes = fit_sizes(plan, noisy)
    numbers = fit_people(replace(plan, sizes=sizes, secret=False), noisy, k)
    kind, group = np.divmod(np.repeat(np.arange(numbers.size), numbers.ravel()), k)
    made: Any = pd.Categorical.from_codes(group, pd.Index(groups))
    fitted = tabulate(
        columns, list(kinds[kind, :label].T), made,
        kinds[kind, -1], kinds[kind, -2], tables=crossed, metrics=metrics,
    )  # fmt: skip
    fitted = fitted.take(fitted.base.sum(axis=1) >= max(min_cell, 1))
    own_counts = Counts.of(fitted)
    keys = np.column_stack([own_counts.cells, own_counts.label, own_counts.prediction])
    measured = np.full((len(keys), k), np.nan)
    width = np.full(len(keys), noisy.width.max(initial=0.0))
    for number, table in enumerate(plan.tables):
        mine = _match_view(keys, table)
        cell = plan.locate(number, keys[mine])
        measured[mine], width[mine] = noisy.answers[cell], noisy.width[cell]
    stated = StatedGuarantee(
        guarantee=noisy.guarantee,
        mechanism={"use": mechanism.name, **mechanism.model_dump(mode="json")},
        epsilon=float(epsilon), changes=int(plan.find_reach(k).l1), fitted=True,
    )  # fmt: skip
    done = own_counts.publish(fitted, LAWS.index(noisy.law), width, measured)
    record = {
        "min_cell": min_cell, "noise": stated.mechanism, "epsilon": noisy.guarantee.epsilon,
        "delta": noisy.guarantee.delta, "consistent": True,
    }  # fmt: skip
    done = replace(done, n=np.where(done.is_rate, done.n, -1), defences=record)
    return done.state(stated)


def _list_kinds(values: list[Codes]) -> Codes:
    """(A, C) all combinations of the values of columns; InputError if they are too many."""
    many = math.prod(len(own) for own in values)
    if many > _KINDS:
        raise InputError(
            f'public = "nothing": the columns have {many:,} combinations of values, and {_KINDS:,} '
            "can be fitted: name fewer columns (by, --by), or cut them into fewer values"
        )
    return np.stack(np.meshgrid(*values, indexing="ij"), axis=-1).reshape(-1, len(values))
