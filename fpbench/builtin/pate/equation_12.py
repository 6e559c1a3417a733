"""Students of the paper's equation (12): both labels of each person, weighted by noisy shares.

The weights need not sum to 1 and may be negative, so that the objective may have several minima.
It has at least one: losses grow linearly in theta, and the penalty by squares.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fpbench import InputError

_Floats = NDArray[np.float64]

_EXACT = 1e-9
"""Greatest component of a gradient at the end."""
_STEPS = 500
_HALVINGS = 60
_FLOOR = 1e-3
"""Least eigenvalue of a step's Hessian, in multiples of the penalty's own curvature."""


def fit_weighted_labels(design: _Floats, ones: _Floats, totals: _Floats, penalty: float) -> _Floats:
    """Parameters (R, d) of logistic students of both labels of all m people.

    Each is a minimum of (1/m) sum (t log(1 + exp(z)) - a z) + penalty ||theta||^2, z = x'theta,
    with weights a of label 1 and t - a of label 0. Where there are several minima, it is the one
    to which Newton's method descends from theta = 0; its Hessian is shifted until it is positive
    definite. The start is the same for all, so a student depends on its weights alone.

    Parameters
    ----------
    design
        (m, d) of people that all share.
    ones, totals
        (R, m) weights a of label 1, and t of both labels together; any finite numbers.
    penalty
        Above 0.

    Raises
    ------
    InputError
        If a student has not converged in 500 steps.
    """
    from scipy.special import expit

    theta = np.zeros((len(ones), design.shape[1]))
    running = np.arange(len(theta))
    value = _evaluate(design, theta, ones, totals, penalty)
    for _ in range(_STEPS):
        at, a, t = theta[running], ones[running], totals[running]
        chance = expit(at @ design.T)
        gradient = (t * chance - a) @ design / len(design) + 2 * penalty * at
        rest = np.abs(gradient).max(axis=1, initial=0.0) > _EXACT
        if not rest.any():
            return theta
        running, at, a, t, chance, gradient, value = (
            x[rest] for x in (running, at, a, t, chance, gradient, value)
        )
        hessian = _compute_hessian(design, t * chance * (1 - chance), penalty)
        least = np.linalg.eigvalsh(hessian)[:, 0]
        shift = np.maximum(2 * penalty * _FLOOR - least, 0.0)
        hessian += shift[:, None, None] * np.eye(design.shape[1])
        step = -np.linalg.solve(hessian, gradient[..., None])[..., 0]
        slope = np.einsum("rd,rd->r", step, gradient)
        for _ in range(_HALVINGS):
            new = _evaluate(design, at + step, a, t, penalty)
            bad = ~(new <= value + 1e-4 * slope + 1e-13 * (1 + np.abs(value)))
            if not bad.any():
                break
            step[bad] /= 2
            slope[bad] /= 2
        theta[running], value = at + step, new
    raise InputError(
        f'labels = "equation-12": {len(running)} of {len(theta)} students have not converged in '
        f'{_STEPS} steps; use labels = "soft", more teachers or a greater penalty'
    )


def find_not_convex(design: _Floats, totals: _Floats, penalty: float) -> NDArray[np.bool_]:
    """Whether the objective of each student (R,) has a Hessian at 0 that is not positive definite.

    If so, the objective is not convex; else it still may not be, elsewhere.
    """
    hessian = _compute_hessian(design, totals / 4, penalty)
    return np.asarray(np.linalg.eigvalsh(hessian)[:, 0] <= 0)


def _compute_hessian(design: _Floats, curvature: _Floats, penalty: float) -> _Floats:
    weighted = design * (curvature / len(design))[..., None]
    hessian: _Floats = design.T @ weighted
    return hessian + 2 * penalty * np.eye(design.shape[1])


def _evaluate(
    design: _Floats, theta: _Floats, ones: _Floats, totals: _Floats, penalty: float
) -> _Floats:
    """Objectives (R,)."""
    odds = theta @ design.T
    losses = totals * np.logaddexp(0.0, odds) - ones * odds
    return np.asarray(losses.mean(axis=1) + penalty * (theta * theta).sum(axis=1))
