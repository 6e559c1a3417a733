"""Numbers of people that are those of one table: noisy ones, fitted to what is public."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fpbench.claims.count_laws import LAWS, Floats
from fpbench.components.mechanism import Mechanism
from fpbench.privacy.marginal_release import (
    Marginals,
    NoisyMarginals,
    fit_people,
    measure_marginals,
    number_cells,
)
from fpbench.reports.defences.counts_with_noise import Counts
from fpbench.reports.exact_blocks import ExactBlocks
from fpbench.reports.rows import ReportedPeople, ReportRows, StatedGuarantee
from fpbench.reports.slices import Codes, number_slices


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
