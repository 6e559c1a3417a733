"""Multipliers of facts, table by table: for millions of people.

The sets of one table are disjoint, so one Newton step for each of them is a step for all at once; a
sweep takes the tables in turn. With two groups there is one multiplier per set. With more,
multipliers of one set share people: half of a step is safe, because the Hessian, a graph Laplacian,
is at most twice its diagonal. Sweeps settle well-filled cells in a few rounds; a byte a person and
table is read, and nothing of the size of all memberships is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fpbench.claims.set_counts import Floats
from fpbench.claims.set_tables import SetTable

Singles: TypeAlias = NDArray[np.float32]

_LONGEST = 3.0
"""Greatest change of logits in one step."""
_OFTEN, _SELDOM = 3, 10
"""First sweeps that each compute the variances, and the interval at which later ones do."""
_LEAST = 1e-6
"""Least variance."""


@dataclass(eq=False)
class TableSweeps:
    """Multipliers and beliefs during the sweeps."""

    tables: Sequence[SetTable]
    """The sets that people are in."""
    logits: Singles
    """(R, n) of R groups each; one row is that of group 1 over group 0."""
    low: Floats
    high: Floats
    variance: Floats
    most: Floats
    """(M, R) ends of counts, softness, and the greatest multiplier; 0 where nothing is known."""
    multipliers: Floats = field(init=False)
    """(M, R)."""

    def __post_init__(self) -> None:
        self.multipliers = np.zeros(self.low.shape)
        self._spread = np.zeros(self.low.shape)
        self._sweeps = 0

    def sweep(self) -> float:
        """Step through every table; returns the misfit of the counts, as a gap."""
        fresh, gap = self._sweeps < _OFTEN or self._sweeps % _SELDOM == 0, 0.0
        for table in self.tables:
            step, missed = self._step(table, self._expect(table, fresh))
            gap += missed
            for people, codes in table.split():
                for row, change in enumerate(step):
                    self.logits[row, people] += change[codes]
        self._sweeps += 1
        return gap

    def _expect(self, table: SetTable, fresh: bool) -> Floats:
        """(sets, R) expected counts; computes their variances, too, if `fresh`."""
        rows, size = len(self.logits), len(table.numbers) + 1
        expected, spread = np.zeros((rows, size)), np.zeros((rows, size))
        for people, codes in table.split():
            # Sums are quicker of doubles, by more than it takes to make them.
            for row, own in enumerate(find_chances(self.logits[:, people]).astype(np.float64)):
                expected[row] += np.bincount(codes, own, minlength=size)
                if fresh:
                    spread[row] += np.bincount(codes, own * (1 - own), minlength=size)
        if fresh:
            self._spread[table.numbers] = spread[:, 1:].T
        return expected[:, 1:].T

    def _step(self, table: SetTable, expected: Floats) -> tuple[Singles, float]:
        """The change of each set's multiplier, (R, 1 + sets), and the misfit of the counts."""
        own = table.numbers
        now, soft = self.multipliers[own], self.variance[own]
        width = np.maximum(self._spread[own] + soft, _LEAST)
        least, most = (
            now + (end[own] - expected - soft * now) / width for end in (self.low, self.high)
        )
        new = np.where(least > 0, least, np.minimum(most, 0))
        new = np.clip(new, -self.most[own], self.most[own])
        change = np.clip(new - now, -_LONGEST, _LONGEST)
        gap = float((change**2 * width**2 / np.maximum(2 * soft, _LEAST)).sum())
        if len(self.logits) > 1:
            change /= 2
        self.multipliers[own] = now + change
        return np.vstack([np.zeros(change.shape[1]), change]).T.astype(np.float32), gap


def find_chances(logits: Singles) -> Singles:
    """(R, n) probabilities of the groups of each row; of one row, over a group of logit 0."""
    if len(logits) == 1:
        chances = np.exp(-logits)
        chances += 1
        return np.reciprocal(chances, out=chances)
    chances = np.exp(logits - logits.max(axis=0))
    return np.asarray(chances / chances.sum(axis=0))
