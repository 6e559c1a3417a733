"""Risks of logistic students of noisy labels in closed form: by a normal approximation, and bounds.

The noise of different people's labels is independent, and a student learns from many of them. So
its parameters are nearly normal, N(mu, C), and only mu and C are unknown:

- The gradient of the objective is 0 at every student, so its mean is 0, too:
  mean_x (E[f(x)] - E[y]) x + 2 lambda mu = 0, E[f] the mean of the logistic function under the
  normal distribution of x'theta.
- To first order, a student depends on its labels linearly: C = H^-1 (sum Var[y] x x' / m^2) H^-1,
  H = mean E[f (1 - f)] x x' + 2 lambda I.

Both hold together at a fixed point. With E[f] = f(x'mu) it would be the usual linearisation (the
delta method), which is 3 to 6 % off where this is less than 1 % off; it is the first step.

Bounds on what noisy labels do to a student, and to people's risks (Tran et al.), need no normal
approximation. theta* is learnt from clean labels and theta~ from noisy ones, both with the mean
objective (1/m) sum of losses + lambda ||theta||^2, which is 2 lambda-strongly convex, and in which
the intercept is a component of theta; a loss is the logistic one, or half the squared difference of
x'theta and the label (both have c = -1 in the paper's equation (5)). With delta_x the noisy label
minus the clean one, ||theta~ - theta*|| <= ||sum delta_x x|| / (2 m lambda), whatever the noise:
all bounds follow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from fpbench import InputError
from fpbench.auditing import VoteLabels
from fpbench.builtin.batched.logistic import fit_logistic
from fpbench.builtin.pate.noisy_votes import flip_probabilities, vote_labels

_Floats = NDArray[np.float64]

_FAR = 100.0
"""Standard deviations beyond which a normal tail is 0 in double precision."""


@dataclass(frozen=True, eq=False)
class LabelMoments:
    """Moments of delta, the noisy label minus the clean one, for each of m people."""

    clean: _Floats
    """(m,) labels without noise."""
    mean: _Floats
    """(m,) E[delta]."""
    variance: _Floats
    """(m,) Var[delta]."""
    distance: _Floats
    """(m,) E|delta|: of hard labels, the flip probability."""

    @property
    def square(self) -> _Floats:
        """(m,) E[delta^2]."""
        return self.variance + self.mean**2


def compute_label_moments(
    votes: NDArray[np.int64], sigma: float, labels: VoteLabels
) -> LabelMoments:
    """Moments of the labels of m people, in closed form, from noiseless votes (m, 2) of k teachers.

    `hard`: delta is 1 - 2 y with the flip probability p, else 0. `soft`: delta is normal, of
    standard deviation t = sigma / (sqrt 2 k). `soft-clipped`: the same, cut where the label leaves
    [0, 1]: a censored normal variable. InputError if sigma or the kind of label is invalid.
    """
    teachers = int(votes[0].sum()) if len(votes) else 1
    flips = flip_probabilities(votes, sigma)
    clean = vote_labels(votes.astype(np.float64), labels, teachers)
    if labels == "hard":
        return LabelMoments(clean, (1 - 2 * clean) * flips, flips * (1 - flips), flips)
    deviation = sigma / (math.sqrt(2) * teachers)
    still = np.zeros(len(clean))
    if deviation == 0:
        return LabelMoments(clean, still, still, still)
    if labels == "soft":
        distance = np.full(len(clean), deviation * math.sqrt(2 / math.pi))
        return LabelMoments(clean, still, np.full(len(clean), deviation**2), distance)
    return _compute_censored(clean, deviation)


def _compute_censored(clean: _Floats, deviation: float) -> LabelMoments:
    """Moments of clean + deviation x a standard normal variable, cut to [0, 1]."""
    from scipy.special import ndtr

    with np.errstate(over="ignore"):
        ends = -clean / deviation, (1 - clean) / deviation
    low, high = (np.clip(end, -_FAR, _FAR) for end in ends)
    at_low, at_high = (np.exp(-(end**2) / 2) / math.sqrt(2 * math.pi) for end in (low, high))
    below, above = ndtr(low), ndtr(-high)
    inside = 1 - below - above
    # Of delta: -clean below, 1 - clean above, deviation x normal between.
    mean = deviation * (at_low - at_high) - clean * below + (1 - clean) * above
    square = (
        deviation**2 * (inside + low * at_low - high * at_high)
        + clean**2 * below
        + (1 - clean) ** 2 * above
    )
    top = 1 / math.sqrt(2 * math.pi)
    distance = deviation * (2 * top - at_low - at_high) + clean * below + (1 - clean) * above
    return LabelMoments(clean, mean, np.maximum(square - mean**2, 0.0), distance)


_NODES = 21
"""Of Gauss-Hermite quadrature: exact to 6 digits for the logistic loss at deviations up to 5."""
_STEPS = 60
_WIDEST = 1.5
"""Greatest ratio of the result's variance to the linearisation's; beyond it, trust neither."""


@dataclass(frozen=True, eq=False)
class NormalStudents:
    """Students' parameters, as a normal distribution."""

    mean: _Floats
    """(d,) mu."""
    covariance: _Floats
    """(d, d) C."""
    linear: NormalStudents | None = None
    """The delta method's distribution; its difference from this one estimates the error of both."""

    def scores(self, design: _Floats) -> tuple[_Floats, _Floats]:
        """Means and standard deviations (n,) of x'theta."""
        variances = np.einsum("nd,nd->n", design @ self.covariance, design)
        return design @ self.mean, np.sqrt(np.maximum(variances, 0.0))

    def losses(self, design: _Floats, labels: _Floats) -> _Floats:
        """Expected logistic losses (n,) of people (n, d) with labels (n,) in {0, 1}."""
        nodes, weights = _make_hermite()
        centre, spread = self.scores(design)
        sign = 1 - 2 * labels
        losses = np.zeros(len(design))
        for node, weight in zip(nodes, weights, strict=True):  # (n,) at a time is enough memory
            losses += weight * np.logaddexp(0.0, sign * (centre + node * spread))
        return losses

    def accuracy(self, design: _Floats, labels: _Floats) -> _Floats:
        """Probabilities (n,) that a student predicts the label."""
        from scipy.special import ndtr

        centre, spread = self.scores(design)
        # Without spread, the sign decides; 0 is label 0.
        steep = np.divide(
            centre, spread, out=np.where(centre > 0, np.inf, -np.inf), where=spread > 0
        )
        return np.asarray(ndtr(steep * (2 * labels - 1)))

    def distance(self, point: _Floats) -> tuple[float, float]:
        """Expected distance, and squared distance, to a point (d,)."""
        squares, turned = np.linalg.eigh(self.covariance)
        squares = np.maximum(squares, 0.0)
        away = (turned.T @ (self.mean - point)) ** 2
        second = float(squares.sum() + away.sum())
        return (_compute_mean_root(squares, away, second) if second > 0 else 0.0), second


def fit_normal_students(design: _Floats, moments: LabelMoments, penalty: float) -> NormalStudents:
    """The normal distribution of the logistic students of noisy labels, from a design (m, d).

    InputError if the noise is too strong for the penalty (lambda of the mean objective, above 0):
    students are then far from normal.
    """
    m, d = design.shape
    target = moments.clean + moments.mean
    ridge = 2 * penalty * np.eye(d)
    noise = (design.T * (moments.variance / m**2)) @ design
    mean = fit_logistic(design, target[None], penalty)[0]
    covariance = np.zeros((d, d))
    linear: NormalStudents | None = None
    for _ in range(_STEPS):
        chances, curvature = _smooth_logistic(*NormalStudents(mean, covariance).scores(design))
        inverse = np.linalg.inv((design.T * (curvature / m)) @ design + ridge)
        wider = inverse @ noise @ inverse
        step = inverse @ (design.T @ (chances - target) / m + 2 * penalty * mean)
        linear = linear or NormalStudents(mean, wider)
        if np.trace(wider) > _WIDEST * np.trace(linear.covariance):
            break
        moved = max(np.abs(step).max(), np.abs(wider - covariance).max())
        mean, covariance = mean - step, wider
        if moved < 1e-9 * (1 + np.abs(mean).max()):
            return NormalStudents(mean, covariance, linear)
    raise InputError(
        f"method closed-form cannot be trusted here: with a penalty of {penalty:g}, students of so "
        'noisy labels are far from normal; use method = "monte-carlo", or a greater penalty'
    )


def _smooth_logistic(centre: _Floats, spread: _Floats) -> tuple[_Floats, _Floats]:
    """Means (m,) of the logistic function and of its derivative under normal scores."""
    from scipy.special import expit

    nodes, weights = _make_hermite()
    chances = expit(centre[:, None] + spread[:, None] * nodes)
    return chances @ weights, (chances * (1 - chances)) @ weights


@cache
def _make_hermite() -> tuple[_Floats, _Floats]:
    """Nodes and weights of the mean under a standard normal distribution."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    return nodes, weights / weights.sum()


def _compute_mean_root(squares: _Floats, away: _Floats, second: float) -> float:
    """E sqrt(Q) of Q = sum (s_i z_i + b_i)^2, from s^2, b^2 and E Q.

    E sqrt(Q) is the integral over t > 0 of (1 - E exp(-t Q)) t^(-3/2) / (2 sqrt pi), and E
    exp(-t Q) a product. On a logarithmic scale the integrand is analytic and dies down at both
    ends, where the trapezoidal rule is exact to the last digits.
    """
    step = 0.05
    t = np.exp(np.arange(-80.0, 80.0 + step, step)) / second
    wider = 2 * np.outer(t, squares)
    exponent = 0.5 * np.log1p(wider).sum(axis=1) + (np.outer(t, away) / (1 + wider)).sum(axis=1)
    return float((-np.expm1(-exponent) / np.sqrt(t)).sum() * step / (2 * np.sqrt(np.pi)))


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
    gradients: _Floats, smoothness: _Floats, sensitivity: float, sensitivity_squared: float
) -> _Floats:
    """Theorem 3: bounds (n,) on excessive risks, from (n,) norms of gradients at theta*, and beta.

    ||gradient|| E||theta~ - theta*|| + beta / 2 E||theta~ - theta*||^2, with beta = ||x||^2 / 4 of
    the logistic loss, and ||x||^2 of half the square.
    """
    return gradients * sensitivity + smoothness / 2 * sensitivity_squared
