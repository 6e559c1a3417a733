"""The parameters that a released objective gives: post-processing, which costs no privacy."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from fpbench.builtin.learners._pflr_design import Floats

Repair = Literal["floor", "trim"]

_RIDGE = 10.0
"""In standard deviations of the noise: the code of Zhang et al. adds 5 to that of each w_j^2,
of which the curvature has the double."""
_ZERO = 1e-12
"""Of the greatest eigenvalue: what rounding alone may leave of a 0."""
_STEPS = 60


def repaired(
    curvature: Floats, penalty: float, scale: float, repair: Repair
) -> tuple[Floats, Floats]:
    """Make noisy objectives bounded: the inverse curvature (R, d, d), and what it took (R,).

    Parameters
    ----------
    curvature
        (R, d, d), symmetric.
    penalty
        Added to the diagonal.
    scale
        Of the Laplace noise of the coefficients.
    repair
        `floor`: eigenvalues are at least the root mean square of those that noise alone has,
        sigma sqrt(d), with sigma the standard deviation of its entries. `trim`: 10 sigma is added
        to the diagonal, and directions with an eigenvalue not above 0 are left out.

    Returns
    -------
    inverse
        (R, d, d); a pseudo-inverse where directions were left out.
    changed
        (R,) number of eigenvalues that were raised, or left out.
    """
    d = curvature.shape[-1]
    sigma = math.sqrt(2) * scale
    ridge = penalty + (_RIDGE * sigma if repair == "trim" else 0.0)
    values, vectors = np.linalg.eigh(curvature + ridge * np.eye(d))
    if repair == "floor":
        least = max(penalty, sigma * math.sqrt(d))
        # Rounding may put what is the penalty alone a little below it.
        bad = values < least * (1 - 1e-9)
        inverted = 1 / np.maximum(values, least)
    else:
        bad = values <= _ZERO * np.abs(values).max(axis=-1, keepdims=True)
        inverted = np.where(bad, 0.0, 1 / np.where(bad, 1.0, values))
    inverse = (vectors * inverted[:, None, :]) @ vectors.swapaxes(-1, -2)
    return inverse, bad.sum(axis=-1)


def fair_weights(
    inverse: Floats, slope: Floats, covariances: Floats | None, fairness: float
) -> Floats:
    """Minimise 1/2 w'Hw + slope'w + (fairness / sqrt 2) ||C w|| for each of R objectives.

    Parameters
    ----------
    inverse
        (R, d, d) inverses of H.
    slope
        (R, d).
    covariances
        C, (R, K, d); None: no penalty. Of two groups the penalty is fairness |c'w|, with c the
        covariance of the second group and the features: the first one's is -c.
    fairness
        At least 0; infinite: C w = 0.

    Returns
    -------
    ndarray
        (R, d) w.

    Notes
    -----
    The norm is the greatest of v'Cw over ||v|| <= rho, rho = fairness / sqrt 2. For a given v the
    best w is -H^-1 (slope + C'v): a fair model is one whose slope is shifted by C'v. The best v
    is least in 1/2 v'Gv + h'v, with G = C H^-1 C' and h = C H^-1 slope: -(G + mu)^-1 h, with mu = 0
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
    shift = _in_ball(np.where(real, values, 1.0), turned, fairness / math.sqrt(2))
    shift = np.einsum("rkj,rj->rk", vectors, shift)
    return np.asarray(-plain - np.einsum("rk,rkd->rd", shift, moved))


def _in_ball(values: Floats, turned: Floats, radius: float) -> Floats:
    """(R, K) least of sum 1/2 value v^2 + turned v with ||v|| <= radius; all values above 0."""
    found: Floats = -turned / values
    (far,) = np.nonzero(np.linalg.norm(found, axis=1) > radius)
    values, turned = values[far], turned[far]
    low = np.zeros(len(far))
    high = np.linalg.norm(turned, axis=1) / radius
    for _ in range(_STEPS):
        middle = (low + high) / 2
        there = turned / (values + middle[:, None])
        outside = np.sqrt(np.einsum("rk,rk->r", there, there)) > radius
        low, high = np.where(outside, middle, low), np.where(outside, high, middle)
    found[far] = -turned / (values + high[:, None])
    return found
