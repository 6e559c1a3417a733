"""Numbers of people behind rows, which may be changed, and the rows that follow; with noise.

Numbers are changed once for each set of people and group, whatever metrics they are published in;
rates are those of the changed numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from fpbench.claims.count_laws import LAWS, Floats
from fpbench.components.guarantee import Sensitivity
from fpbench.components.mechanism import Mechanism
from fpbench.reports.exact_blocks import ExactBlocks
from fpbench.reports.rows import ReportRows, StatedGuarantee
from fpbench.reports.slices import REPORT_METRICS, Codes, number_slices


@dataclass(frozen=True, eq=False)
class Counts:
    """Numbers of people of A distinct sets: a slice, perhaps a label, and a prediction each."""

    cells: Codes
    """(A, C) slices."""
    label: Codes
    """(A,) the label; -1 where all labels are counted."""
    prediction: Codes
    """(A,)."""
    people: Floats
    """(A, K) numbers of each group."""
    total: Codes
    """(A,) their exact sums."""
    place: Codes
    """(B, 2) the sets of people with prediction 0 and 1 of each block; -1 if not published by
    it."""

    @classmethod
    def of(cls, blocks: ExactBlocks) -> Self:
        """The sets whose numbers the blocks publish."""
        counts_of = [REPORT_METRICS[str(name)] for name in blocks.metric]
        label = np.array([-1 if m.label is None else m.label for m in counts_of], np.int64)
        prediction = np.array([-1 if m.is_rate else m.prediction for m in counts_of], np.int64)
        keys, people, which = [], [], []
        for p in (0, 1):
            own = np.flatnonzero(((prediction == p) | (prediction < 0)) & ~blocks.hidden)
            both = blocks.base[own] - blocks.counted[own]
            counts = both if p == 0 else blocks.counted[own]
            counts = np.where((prediction[own] < 0)[:, None], counts, blocks.counted[own])
            keys.append(np.column_stack([blocks.cells[own], label[own], np.full(len(own), p)]))
            people.append(counts)
            which.append(own)
        key, numbers = np.concatenate(keys), np.concatenate(people)
        first, atom = number_slices(key)
        place = np.full((len(blocks), 2), -1)
        place[which[0], 0], place[which[1], 1] = np.split(atom, [len(which[0])])
        return cls(
            key[first, :-2], key[first, -2], key[first, -1], numbers[first].astype(np.float64),
            numbers[first].sum(axis=1), place,
        )  # fmt: skip

    def publish(
        self,
        blocks: ExactBlocks,
        law: int = 0,
        width: Floats | None = None,
        measured: Floats | None = None,
    ) -> ReportRows:
        """The rows of the blocks with these numbers.

        With the law of their noise and its (A,) widths, and the (A, K) measured numbers that they
        were fitted to.
        """
        k = len(blocks.groups)
        people = np.concatenate([self.people, np.zeros((1, k))])  # the last, where there is none
        rejected, selected = people[self.place[:, 0]], people[self.place[:, 1]]
        rates = blocks.is_rate[:, None]
        counted = np.where(rates | (self.place[:, [1]] >= 0), selected, rejected)
        base = np.where(rates, np.maximum(selected, 0) + np.maximum(rejected, 0), blocks.base)
        counted = np.where(rates, np.maximum(counted, 0), counted)
        rows = replace(blocks, counted=counted, base=base.astype(np.int64)).to_rows()
        if width is None:
            return rows
        widths = np.repeat(np.append(width, 0.0)[self.place].max(axis=1), k)
        rows = replace(rows, law=np.where(widths > 0, law, 0), width=widths)
        if measured is None:
            return rows
        told = np.concatenate([measured, np.full((1, k), np.nan)])[self.place]
        return replace(rows, measured=told.transpose(0, 2, 1).reshape(-1, 2))


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """Noisy numbers, together differentially private for a change of one person's group.

    Suppression by groups before would break the guarantee, so `protect` refuses both together.
    """

    blocks: ExactBlocks
    """What is published."""
    counts: Counts
    """The true numbers behind it."""
    answers: Floats
    """(A, K) noisy ones."""
    law: int
    width: Floats
    """Place in `LAWS` of the noise, and (A,) its widths."""
    guarantee: StatedGuarantee

    @classmethod
    def of(
        cls,
        rows: ReportRows,
        mechanism: Mechanism,
        epsilon: float,
        rng: np.random.Generator,
    ) -> Self:
        """Noisy numbers behind exact rows; parameters as of `FairnessReport.protect`."""
        blocks = ExactBlocks.of(rows, "noise")
        counts = Counts.of(blocks)
        # Somebody is in one cell of each table, among people of all labels and among those of one;
        # another group changes two numbers there.
        views = np.column_stack([counts.cells >= 0, counts.label >= 0])
        changes = 2 * max(len(np.unique(views, axis=0)), 1)
        reach = Sensitivity(changes, changes**0.5)
        total = np.broadcast_to(counts.total[:, None], counts.people.shape)
        answers = mechanism.release(counts.people.astype(np.int64), reach, epsilon, rng, total)
        law, width = mechanism.find_exact_law(reach, epsilon, counts.total)
        stated = StatedGuarantee(
            guarantee=mechanism.guarantee(epsilon, "attribute"),
            mechanism={"use": mechanism.name, **mechanism.model_dump(mode="json")},
            epsilon=float(epsilon), changes=changes,
            fitted=type(mechanism).find_noise_law is Mechanism.find_noise_law,
        )  # fmt: skip
        return cls(blocks, counts, np.rint(answers), LAWS.index(law), width, stated)

    def to_rows(self) -> ReportRows:
        """The rows of the noisy numbers."""
        rows = replace(self.counts, people=self.answers).publish(self.blocks, self.law, self.width)
        stated = self.guarantee
        record = {
            "noise": stated.mechanism,
            "epsilon": stated.guarantee.epsilon,
            "delta": stated.guarantee.delta,
        }
        return replace(rows, defences={**rows.defences, **record}, guarantee=stated)
