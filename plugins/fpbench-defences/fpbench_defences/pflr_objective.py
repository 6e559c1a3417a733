"""The noisy objective of PFLR: sums over people, noise, and minimum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fpbench import Guarantee
from fpbench.base import to_fraction
from fpbench.models import BoundedFeatures
from fpbench.plugin import Codes
from fpbench.privacy import check_epsilon, compose

Floats = NDArray[np.float64]
Variant = Literal["pflr", "pflr*"]
Repair = Literal["floor", "trim"]

_RIDGE = 10.0
"""Ridge in standard deviations of the noise: the code of Zhang et al. adds 5 to each w_j^2, whose
coefficient is half the curvature's."""
_ZERO = 1e-12
"""Share of the greatest eigenvalue below which an eigenvalue is 0 up to rounding."""
_STEPS = 60


@dataclass(frozen=True)
class PeopleSums:
    """The sums over people in the objective. NOT PRIVATE."""

    curvature: Floats
    """(d, d) sum of x x' / 4; the approximate loss of w is 1/2 w'(curvature)w + slope'w."""
    slope: Floats
    """(d,) sum of (1/2 - y) x."""
    groups: Floats
    """(K, d) sum of x in each group; the last column is the number of its members."""
    table: Floats
    """(K, 2) number of people by group and label."""

    @classmethod
    def of(cls, design: Floats, labels: Codes, sensitive: Codes, k: int) -> PeopleSums:
        """The sums of rows (n, d), labels and group codes (n,)."""
        member = np.zeros((len(design), k))
        member[np.arange(len(design)), sensitive] = 1.0
        by_label = np.column_stack([labels == 0, labels == 1]).astype(np.float64)
        return cls(
            design.T @ design / 4, (0.5 - labels) @ design, member.T @ design, member.T @ by_label
        )


@dataclass(frozen=True)
class NoiseBudget:
    """The division of epsilon among releases, and their noise."""

    variant: Variant
    epsilon: float
    fairness: float
    """Alpha: greatest shift of the slope, in multiples of the covariance of group and features."""
    share: float
    """Share of epsilon for releases that only fairness needs; the objective gets the rest."""
    norm: int
    spread: int
    k: int

    @property
    def fair(self) -> bool:
        """Whether anything about groups is released."""
        return self.fairness > 0 and self.k > 1

    @property
    def epsilons(self) -> tuple[float, float]:
        """Epsilon of the objective, and of the releases that only fairness needs."""
        if not self.fair or math.isinf(self.epsilon):
            return self.epsilon, self.epsilon
        apart = float(to_fraction(self.epsilon) * to_fraction(self.share))
        check_epsilon(apart, "epsilon * fairness_share")
        return float(to_fraction(self.epsilon) - to_fraction(apart)), apart

    @property
    def unshifted(self) -> float:
        """L1 sensitivity of the objective's coefficients: s^2 / 8 + s / 2, with s the norm."""
        return self.norm**2 / 8 + self.norm / 2

    @property
    def sensitivity(self) -> float:
        """L1 sensitivity of the released coefficients, including any shift."""
        shifted = self.variant == "pflr*" and self.fair
        return self.unshifted + (self.fairness * self.spread if shifted else 0.0)

    @property
    def scale(self) -> float:
        """Scale of the Laplace noise of each of the objective's coefficients."""
        return self.sensitivity / self.epsilons[0]

    @property
    def fair_scale(self) -> float:
        """Scale of the noise of the groups' sums, or of the table."""
        sensitivity = self.norm if self.variant == "pflr" else 1
        return sensitivity / self.epsilons[1]

    @property
    def claimed(self) -> float | None:
        """Epsilon of this noise if a shift were free, as claimed for PFLR*; None for `pflr`."""
        if self.variant == "pflr" or math.isinf(self.epsilon):
            return None
        return self.unshifted / self.scale

    def guarantee(self) -> Guarantee | None:
        """The guarantee of all releases together; None without noise."""
        if math.isinf(self.epsilon):
            return None
        parts = self.epsilons if self.fair else self.epsilons[:1]
        return compose(Guarantee(epsilon, 0.0, "add-remove") for epsilon in parts)


@dataclass(frozen=True)
class NoisySums:
    """R releases of the sums, each with fresh noise: the only use of people's data."""

    curvature: Floats
    """(R, d, d), symmetric."""
    slope: Floats
    """(R, d); shifted if the variant is `pflr*`."""
    groups: Floats | None
    """(R, K, d), if the variant is `pflr`."""
    table: Floats | None
    """(R, K, 2), if the variant is `pflr*`."""


def release_sums(
    sums: PeopleSums,
    design: BoundedFeatures,
    budget: NoiseBudget,
    repetitions: int,
    rng: np.random.Generator,
) -> NoisySums:
    """R noisy releases of the sums that the variant needs; the others are None."""
    scale, d = budget.scale, len(sums.slope)
    curvature = np.repeat(sums.curvature[None], repetitions, axis=0)
    i, j = np.triu_indices(d, 1)
    # Nobody has two categories of one feature, so these products are 0 publicly.
    apart = design.blocks[i] != design.blocks[j]
    i, j = i[apart], j[apart]
    crossed = rng.laplace(0.0, scale, (repetitions, len(i)))
    curvature[:, i, j] += crossed
    curvature[:, j, i] += crossed
    # The coefficient of w_j^2 is half the diagonal entry of the curvature.
    curvature[:, np.arange(d), np.arange(d)] += 2 * rng.laplace(0.0, scale, (repetitions, d))
    groups = table = None
    slope = np.repeat(sums.slope[None], repetitions, axis=0)
    if budget.fair and budget.variant == "pflr":
        noise = rng.laplace(0.0, budget.fair_scale, (repetitions, *sums.groups.shape))
        groups = sums.groups + noise
    elif budget.fair:
        noise = rng.laplace(0.0, budget.fair_scale, (repetitions, *sums.table.shape))
        table = sums.table + noise
        slope += shift_direction(table, budget.fairness) @ group_covariances(sums.groups[None])[0]
    slope += rng.laplace(0.0, scale, (repetitions, d))
    return NoisySums(curvature, slope, groups, table)


def group_covariances(groups: Floats) -> Floats:
    """(R, K, d) sums of (z_k - mean z_k) x, from sums of x in each group; the last is its size.

    Noisy sizes below 0 count as 0.
    """
    sizes = np.maximum(groups[..., -1], 0.0)
    total = sizes.sum(axis=-1, keepdims=True)
    shares = np.divide(sizes, total, out=np.zeros_like(sizes), where=total > 0)
    whole = groups.sum(axis=-2, keepdims=True)
    centred: Floats = groups - shares[..., None] * whole
    return centred


def shift_direction(table: Floats, fairness: float) -> Floats:
    """(R, K) multiples of the covariances to add to the slope, from people by group and label.

    It lowers the log-odds of groups with a share of label 1 above the mean. Its length is
    fairness / sqrt 2, so that two entries differ by at most `fairness`, with two groups exactly.
    """
    excess = group_covariances(np.stack([table[..., 1], table.sum(axis=-1)], axis=-1))[..., 0]
    length = np.linalg.norm(excess, axis=-1, keepdims=True)
    unit = np.divide(excess, length, out=np.zeros_like(excess), where=length > 0)
    direction: Floats = unit * fairness / math.sqrt(2)
    return direction


def invert_repaired(
    curvature: Floats, penalty: float, scale: float, repair: Repair
) -> tuple[Floats, Floats]:
    """Inverses (R, d, d) of repaired noisy curvatures, and numbers of changed eigenvalues (R,).

    Parameters
    ----------
    curvature
        (R, d, d), symmetric.
    penalty
        Added to the diagonal.
    scale
        Scale of the Laplace noise of the coefficients.
    repair
        `floor`: eigenvalues are raised to sigma sqrt(d), the root mean square of the eigenvalues of
        noise alone, with sigma the standard deviation of its entries. `trim`: 10 sigma is added to
        the diagonal, and directions with an eigenvalue not above 0 are left out.

    Returns
    -------
    inverse
        (R, d, d); a pseudo-inverse if directions were left out.
    changed
        (R,) number of eigenvalues raised, or left out.
    """
    d = curvature.shape[-1]
    sigma = math.sqrt(2) * scale
    ridge = penalty + (_RIDGE * sigma if repair == "trim" else 0.0)
    values, vectors = np.linalg.eigh(curvature + ridge * np.eye(d))
    if repair == "floor":
        least = max(penalty, sigma * math.sqrt(d))
        # Rounding may put an eigenvalue that equals the penalty a little below it.
        bad = values < least * (1 - 1e-9)
        inverted = 1 / np.maximum(values, least)
    else:
        bad = values <= _ZERO * np.abs(values).max(axis=-1, keepdims=True)
        inverted = np.where(bad, 0.0, 1 / np.where(bad, 1.0, values))
    inverse = (vectors * inverted[:, None, :]) @ vectors.swapaxes(-1, -2)
    return inverse, bad.sum(axis=-1)


def find_fair_weights(
    inverse: Floats, slope: Floats, covariances: Floats | None, fairness: float
) -> Floats:
    """Weights (R, d) that minimise 1/2 w'Hw + slope'w + (fairness / sqrt 2) ||C w||.

    `inverse`: (R, d, d) inverses of H. `slope`: (R, d). `covariances`: C, (R, K, d); None: no
    penalty. For two groups the penalty is fairness |c'w|, with c the covariance of the second group
    and the features: the first one's is -c. `fairness`: at least 0; infinite: C w = 0.

    The norm is the greatest of v'Cw over ||v|| <= rho, rho = fairness / sqrt 2. For a given v the
    best w is -H^-1 (slope + C'v): a fair model is one whose slope is shifted by C'v. The best v
    minimises 1/2 v'Gv + h'v, with G = C H^-1 C' and h = C H^-1 slope: -(G + mu)^-1 h, with mu = 0
    or ||v|| = rho. In the eigenvectors of G that is one equation for mu, which bisection solves.
    """
    plain: Floats = np.einsum("rij,rj->ri", inverse, slope)
    if covariances is None or fairness == 0:
        return -plain
    moved = covariances @ inverse  # (R, K, d)
    values, vectors = np.linalg.eigh(moved @ covariances.swapaxes(-1, -2))
    values = np.maximum(values, 0.0)
    real = values > _ZERO * values[:, -1:]
    turned = np.einsum("rkj,rk->rj", vectors, np.einsum("rkd,rd->rk", covariances, plain))
    turned = np.where(real, turned, 0.0)
    shift = _minimise_in_ball(np.where(real, values, 1.0), turned, fairness / math.sqrt(2))
    shift = np.einsum("rkj,rj->rk", vectors, shift)
    return np.asarray(-plain - np.einsum("rk,rkd->rd", shift, moved))


def _minimise_in_ball(values: Floats, turned: Floats, radius: float) -> Floats:
    """Minima (R, K) of sum 1/2 value v^2 + turned v with ||v|| <= radius, for positive values."""
    minima: Floats = -turned / values
    (far,) = np.nonzero(np.linalg.norm(minima, axis=1) > radius)
    values, turned = values[far], turned[far]
    low = np.zeros(len(far))
    high = np.linalg.norm(turned, axis=1) / radius
    for _ in range(_STEPS):
        middle = (low + high) / 2
        shifted = turned / (values + middle[:, None])
        outside = np.sqrt(np.einsum("rk,rk->r", shifted, shifted)) > radius
        low, high = np.where(outside, middle, low), np.where(outside, high, middle)
    minima[far] = -turned / (values + high[:, None])
    return minima
