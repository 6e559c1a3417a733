"""Numbers of people that are those of one table: noisy ones, fitted to what is public."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from fpbench.base.errors import InputError
from fpbench.claims.count_laws import LAWS, Floats
from fpbench.components.mechanism import Mechanism
from fpbench.privacy.marginal_release import (
    Marginals,
    NoisyMarginals,
    fit_people,
    fit_sizes,
    measure_marginals,
    number_cells,
)
from fpbench.reports.defences.counts_with_noise import Counts
from fpbench.reports.exact_blocks import ExactBlocks, tabulate
from fpbench.reports.rows import ReportedPeople, ReportRows, StatedGuarantee
from fpbench.reports.slices import REPORT_METRICS, Codes, SliceColumn, number_slices

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
    place: Codes
    """(A,) the measured cell of each; -1 of those that only follow from others."""

    @classmethod
    def of(cls, blocks: ExactBlocks, people: ReportedPeople, *, pure: bool) -> FittedCounts:
        """The numbers that blocks publish about these people."""
        counts = Counts.of(blocks)
        codes = people.code(blocks.columns)
        if (counts.label < 0).all():
            codes[:, -2] = 0
        first, kind = number_slices(codes)
        keys = np.column_stack([counts.cells, counts.label, counts.prediction])
        views = [tuple(np.flatnonzero(row).tolist()) for row in np.unique(keys >= 0, axis=0)]
        label = codes.shape[1] - 2
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
        marginals = Marginals.of(codes[first], sizes, largest, single, pure=pure)
        place = np.full(len(keys), -1)
        for number, table in enumerate(marginals.tables):
            cells, at = np.unique(marginals.codes[number], return_index=True)
            own = np.flatnonzero(((keys >= 0) == np.isin(np.arange(keys.shape[1]), table)).all(1))
            stacked = np.concatenate([marginals.kinds[at], keys[own]])
            same = number_cells(stacked, table)
            cell = np.full(int(same.max(initial=-1)) + 1, -1)
            cell[same[: len(cells)]] = cells
            place[own] = cell[same[len(cells) :]]
        return cls(marginals, counts, place)

    def measure(
        self, mechanism: Mechanism, epsilon: float, rng: np.random.Generator
    ) -> NoisyMarginals:
        """What is measured of the true numbers."""
        true = np.full((self.marginals.cells.shape[0], self.counts.people.shape[1]), np.nan)
        told = self.place >= 0
        true[self.place[told]] = self.counts.people[told]
        return measure_marginals(self.marginals, true, mechanism, epsilon, rng)

    def fit(self, noisy: NoisyMarginals) -> Floats:
        """(A, K) whole numbers of one table of people."""
        marginals, groups = self.marginals, self.counts.people.shape[1]
        people = fit_people(marginals, noisy, groups)
        keys = np.column_stack([self.counts.cells, self.counts.label, self.counts.prediction])
        answers = np.zeros((len(keys), groups))
        views, which = np.unique(keys >= 0, axis=0, return_inverse=True)
        for view, cut in enumerate(views):
            own, table = np.flatnonzero(which.ravel() == view), np.flatnonzero(cut).tolist()
            many = len(marginals.kinds)
            same = number_cells(np.concatenate([marginals.kinds, keys[own]]), table)
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


def add_fitted_noise(
    rows: ReportRows,
    people: ReportedPeople,
    mechanism: Mechanism,
    epsilon: float,
    rng: np.random.Generator,
) -> ReportRows:
    """The rows with numbers of one table of people that is likely given noisy numbers.

    The noisy numbers are told beside them: they cost no more privacy, and it is from these that a
    reader learns most. Whoever has the fitted numbers alone learns less.
    """
    blocks = ExactBlocks.of(rows, "noise")
    guarantee = mechanism.guarantee(epsilon, "attribute")
    fitted = FittedCounts.of(blocks, people, pure=guarantee.delta == 0)
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
    for table, own in zip(plan.tables, plan.codes, strict=True):
        same = number_cells(np.concatenate([kinds, codes]), table)
        cell = np.full(int(same.max()) + 1, -1)
        cell[same[: len(kinds)]] = own
        there = cell[same[len(kinds) :]]
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
    for table, own in zip(plan.tables, plan.codes, strict=True):
        mine = ((keys >= 0) == np.isin(np.arange(keys.shape[1]), table)).all(axis=1)
        same = number_cells(np.concatenate([kinds, keys[mine]]), table)
        cell = np.zeros(int(same.max()) + 1, np.int64)
        cell[same[: len(kinds)]] = own
        measured[mine] = noisy.answers[cell[same[len(kinds) :]]]
        width[mine] = noisy.width[cell[same[len(kinds) :]]]
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
