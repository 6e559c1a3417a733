"""Bounds on what noisy labels do to a logistic student, and to people's risks (Tran et al.).

theta* is learnt from clean labels and theta~ from noisy ones, both with the mean objective
(1/m) sum of losses + lambda ||theta||^2, which is 2 lambda-strongly convex, and in which the
intercept is a component of theta. With delta_x the noisy label minus the clean one,
||theta~ - theta*|| <= ||sum delta_x x|| / (2 m lambda), whatever the noise: all bounds follow.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fpbench.auditing.excessive_risk.label_moments import LabelMoments

_Floats = NDArray[np.float64]


def bound_first_moment(design: _Floats, moments: LabelMoments, penalty: float) -> dict[str, float]:
    """Bounds on E||theta~ - theta*||, the model sensitivity, from a design (m, d) and its labels.

    `corollary1`: sum E|delta_x| ||x|| / (2 m lambda); for hard labels E|delta_x| is the flip
    probability. `corollary1_paper`: the paper's 1 / (m lambda), valid, but loose by a factor of 2.
    `corollary1_literal`: the same with the lambda of its equation (1), m times ours, for which it
    is false.
    """
    m = len(design)
    moved = float(moments.distance @ np.linalg.norm(design, axis=1))
    return {
        "corollary1": moved / (2 * m * penalty),
        "corollary1_paper": moved / (m * penalty),
        "corollary1_literal": moved / (m * m * penalty),
    }


def bound_second_moment(design: _Floats, moments: LabelMoments, penalty: float) -> dict[str, float]:
    """Bounds on E||theta~ - theta*||^2, from a design (m, d) and its labels.

    `corollary2`: sum E[delta_x^2] ||x||^2 / (4 m lambda^2). `corollary2_paper`: as printed, sum
    E|delta_x|^2 ||x||^2 / (m lambda^2), and `corollary2_literal`, the same with m lambda for
    lambda; both are false in general. `second_moment`: E||sum delta_x x||^2 / (2 m lambda)^2, the
    best of them, where E||sum delta_x x||^2 = ||sum E[delta_x] x||^2 + sum Var[delta_x] ||x||^2, as
    noises of different people are independent.
    """
    m = len(design)
    lengths = (design**2).sum(axis=1)
    printed = float(moments.distance**2 @ lengths) / m
    drift = moments.mean @ design
    return {
        "corollary2": float(moments.square @ lengths) / (4 * m * penalty**2),
        "corollary2_paper": printed / penalty**2,
        "corollary2_literal": printed / (m * penalty) ** 2,
        "second_moment": float(drift @ drift + moments.variance @ lengths) / (2 * m * penalty) ** 2,
    }


def bound_risks(
    gradients: _Floats, lengths: _Floats, sensitivity: float, sensitivity_squared: float
) -> _Floats:
    """Theorem 3: bounds (n,) on excessive risks, from (n,) norms of gradients at theta* and of x.

    ||gradient|| E||theta~ - theta*|| + beta / 2 E||theta~ - theta*||^2, with beta = ||x||^2 / 4:
    the logistic loss.
    """
    return gradients * sensitivity + lengths**2 / 8 * sensitivity_squared
