"""What PFLR releases: sums over people, their sensitivities, and their noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fpbench import Codes, Guarantee, check_epsilon, compose
from fpbench.base import as_written
from fpbench.builtin.learners._pflr_design import Design, Floats

Variant = Literal["pflr", "pflr*"]


@dataclass(frozen=True)
class Sums:
    """Everything that the objective takes of people: sums over them. NOT PRIVATE."""

    curvature: Floats
    """(d, d) sum of x x' / 4: the approximate loss of w is 1/2 w'(curvature)w + slope'w."""
    slope: Floats
    """(d,) sum of (1/2 - y) x."""
    groups: Floats
    """(K, d) sum of x in each group; the last column is the number of its members."""
    table: Floats
    """(K, 2) people by group and label."""

    @classmethod
    def of(cls, design: Floats, labels: Codes, sensitive: Codes, k: int) -> Sums:
        """From rows (n, d), labels and group codes (n,)."""
        member = np.zeros((len(design), k))
        member[np.arange(len(design)), sensitive] = 1.0
        by_label = np.column_stack([labels == 0, labels == 1]).astype(np.float64)
        return cls(
            design.T @ design / 4, (0.5 - labels) @ design, member.T @ design, member.T @ by_label
        )


@dataclass(frozen=True)
class Budget:
    """What is released at which epsilon, and how much noise that is."""

    variant: Variant
    epsilon: float
    fairness: float
    """Alpha: how far the slope may be shifted, in covariances of group and features."""
    share: float
    """Of epsilon, for what only fairness needs; the objective has the rest."""
    norm: int
    spread: int
    k: int

    @property
    def fair(self) -> bool:
        """Whether anything is asked about groups."""
        return self.fairness > 0 and self.k > 1

    @property
    def epsilons(self) -> tuple[float, float]:
        """Of the objective, and of what only fairness needs."""
        if not self.fair or math.isinf(self.epsilon):
            return self.epsilon, self.epsilon
        apart = float(as_written(self.epsilon) * as_written(self.share))
        check_epsilon(apart, "epsilon * fairness_share")
        return float(as_written(self.epsilon) - as_written(apart)), apart

    @property
    def unshifted(self) -> float:
        """L1 sensitivity of the objective's coefficients: s^2 / 8 + s / 2, with s the norm."""
        return self.norm**2 / 8 + self.norm / 2

    @property
    def sensitivity(self) -> float:
        """The same of what is released, with the shift in it, if it is."""
        shifted = self.variant == "pflr*" and self.fair
        return self.unshifted + (self.fairness * self.spread if shifted else 0.0)

    @property
    def scale(self) -> float:
        """Scale of the Laplace noise of each of the objective's coefficients."""
        return self.sensitivity / self.epsilons[0]

    @property
    def fair_scale(self) -> float:
        """Scale of the noise of sums of groups, or of the table: one person moves them by this."""
        moved = self.norm if self.variant == "pflr" else 1
        return moved / self.epsilons[1]

    @property
    def claimed(self) -> float | None:
        """Epsilon of so much noise if a shift cost nothing, as is claimed of PFLR*."""
        if self.variant == "pflr" or math.isinf(self.epsilon):
            return None
        return self.unshifted / self.scale

    def guarantee(self) -> Guarantee | None:
        """Of all that is released together; None without noise."""
        if math.isinf(self.epsilon):
            return None
        parts = self.epsilons if self.fair else self.epsilons[:1]
        return compose(Guarantee(epsilon, 0.0, "add-remove") for epsilon in parts)


@dataclass(frozen=True)
class Released:
    """R releases of the sums, each with noise of its own: all that is learnt of people."""

    curvature: Floats
    """(R, d, d), symmetric."""
    slope: Floats
    """(R, d); with the shift in it, if the variant is `pflr*`."""
    groups: Floats | None
    """(R, K, d), if the variant is `pflr`."""
    table: Floats | None
    """(R, K, 2), if the variant is `pflr*`."""


def release(
    sums: Sums, design: Design, budget: Budget, repetitions: int, rng: np.random.Generator
) -> Released:
    """Add noise to what the variant needs; None of what it does not."""
    scale, d = budget.scale, len(sums.slope)
    curvature = np.repeat(sums.curvature[None], repetitions, axis=0)
    i, j = np.triu_indices(d, 1)
    # Nobody has two categories of one feature: these products are 0, publicly.
    apart = design.blocks[i] != design.blocks[j]
    i, j = i[apart], j[apart]
    crossed = rng.laplace(0.0, scale, (repetitions, len(i)))
    curvature[:, i, j] += crossed
    curvature[:, j, i] += crossed
    # The coefficient of w_j^2 is half of what the curvature has there.
    curvature[:, np.arange(d), np.arange(d)] += 2 * rng.laplace(0.0, scale, (repetitions, d))
    groups = table = None
    slope = np.repeat(sums.slope[None], repetitions, axis=0)
    if budget.fair and budget.variant == "pflr":
        noise = rng.laplace(0.0, budget.fair_scale, (repetitions, *sums.groups.shape))
        groups = sums.groups + noise
    elif budget.fair:
        noise = rng.laplace(0.0, budget.fair_scale, (repetitions, *sums.table.shape))
        table = sums.table + noise
        slope += direction(table, budget.fairness) @ covariances(sums.groups[None])[0]
    slope += rng.laplace(0.0, scale, (repetitions, d))
    return Released(curvature, slope, groups, table)


def covariances(groups: Floats) -> Floats:
    """(R, K, d) sums of (z_k - mean z_k) x, from sums of x in each group, whose last is their size.

    What noise has made negative of a size is taken for 0.
    """
    sizes = np.maximum(groups[..., -1], 0.0)
    total = sizes.sum(axis=-1, keepdims=True)
    shares = np.divide(sizes, total, out=np.zeros_like(sizes), where=total > 0)
    whole = groups.sum(axis=-2, keepdims=True)
    found: Floats = groups - shares[..., None] * whole
    return found


def direction(table: Floats, fairness: float) -> Floats:
    """(R, K) by how much covariances are added to the slope, from people by group and label.

    Against the labels: whose share of label 1 is above the mean is pushed down. Its length is
    fairness / sqrt 2, so that two entries differ by at most `fairness`; of two groups, by just it.
    """
    lean = covariances(np.stack([table[..., 1], table.sum(axis=-1)], axis=-1))[..., 0]
    length = np.linalg.norm(lean, axis=-1, keepdims=True)
    unit = np.divide(lean, length, out=np.zeros_like(lean), where=length > 0)
    found: Floats = unit * fairness / math.sqrt(2)
    return found
