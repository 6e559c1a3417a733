"""Many ridge logistic regressions at once, solved exactly by Newton's method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fpbench.base.arguments import show_value
from fpbench.base.errors import FpbenchError, InputError
from fpbench.builtin.batched.row_blocks import pad_groups

_CHUNK = 1 << 17
"""Numbers in the largest array of a chunk (1 MB): small enough to stay near the processor."""
_SMALL = 64
"""Number of columns up to which a general product is faster than a symmetric one."""
_OUTER = 1 << 23
"""Greatest size of the products of features that problems of one matrix share (64 MB)."""
_STEPS = 10_000
"""Ten are enough, except for targets far beyond [0, 1] under a penalty of nearly 0."""
_HALVINGS = 60

_Floats = NDArray[np.float64]


def fit_logistic(
    design: _Floats,
    targets: _Floats,
    penalty: float | _Floats,
    weights: _Floats | None = None,
    *,
    start: _Floats | None = None,
    tolerance: float = 1e-5,
) -> _Floats:
    """Parameters of B logistic regressions, each on its own people or all on the same.

    Each minimises (1 / sum w) sum w_i (log(1 + exp(z_i)) - y_i z_i) + penalty ||theta||^2, where
    z = x'theta: the mean loss, and every component penalised, an intercept (a column of ones) too,
    unless its own penalty is 0.
    scikit-learn's `C` is 1 / (2 penalty sum w). A target need not lie in [0, 1]: the objective is
    strongly convex whatever it is. Without people, or if all weights are 0, theta is 0.

    Parameters
    ----------
    design
        (m, d) of people that all share, or (B, n, d).
    targets
        (B, m) or (B, n) finite numbers.
    penalty
        Above 0; else there may be no minimum. Or (B, d) one for each component, at least 0; with a
        0, the caller guarantees a minimum.
    weights
        Of the shape of the targets, not negative; a 0 leaves a person out. All 1 by default.
    start
        (d,) or (B, d) where to start, 0 by default; near the answer saves steps.
    tolerance
        The last step of Newton's method moves nobody's log-odds by more than this. That bounds the
        change of the Hessian, so the remaining error is about its square.

    Returns
    -------
    ndarray
        (B, d).

    Raises
    ------
    InputError
        If shapes do not agree, a number is not finite, or a penalty is not as described.
    FpbenchError
        If Newton's method does not converge.
    """
    design, targets, weights = _check_inputs(design, targets, penalty, weights)
    count, people = targets.shape
    d = design.shape[-1]
    shares = _normalise_weights(targets, weights)
    theta = np.zeros((count, d))
    if start is not None:
        theta[:] = start
    shared = _multiply_columns(design) if design.ndim == 2 else None
    prices = np.broadcast_to(np.asarray(penalty, np.float64), (count, d))
    problems = _Problems(design, shared, targets, shares, prices)
    each = max(people * (1 if shared is not None else d), d * d, 1)
    size = max(1, _CHUNK // each)
    for first in range(0, count, size):
        chunk = slice(first, first + size)
        theta[chunk] = problems.of(chunk).solve(theta[chunk], tolerance)
    return theta


def fit_logistic_apart(
    design: _Floats, labels: _Floats, groups: list[NDArray[np.intp]], penalty: float
) -> _Floats:
    """One logistic regression for each group of rows, of any size, as `fit_logistic` fits it.

    Parameters of a group depend on its own rows, to the last bit, and not on the size or number of
    the other groups.

    Parameters
    ----------
    design, labels
        (n, d) and (n,) in [0, 1]: everybody.
    groups
        B arrays of row numbers; they may be empty.
    penalty
        Above 0.

    Returns
    -------
    ndarray
        (B, d).
    """
    theta = np.zeros((len(groups), design.shape[1]))
    has_ones = bool((design[:, -1:] == 1).all())
    # An even number of columns, so that a group's parameters too begin at a multiple of 16 bytes
    # (see `pad_groups`): the parameter of a column of zeros is 0.
    odd = design.shape[1] % 2
    width = design.shape[1] + odd
    for chosen, rows, present in pad_groups(groups, width, _CHUNK):
        own = labels[rows] * present
        start = np.zeros((len(chosen), width))
        if has_ones:  # an intercept: begin at the log-odds of the share of label 1, or near it
            ones, people = own.sum(axis=1) + 0.5, present.sum(axis=1) + 1
            start[:, -1] = np.log(ones / (people - ones))
        x = np.take(design, rows, axis=0)
        if odd:
            x = np.concatenate([np.zeros((*rows.shape, 1)), x], axis=2)
        theta[chosen] = fit_logistic(x, own, penalty, present, start=start)[:, odd:]
    return theta


def logistic_proba(theta: _Floats, design: _Floats) -> _Floats:
    """Probabilities (B, n) of label 1: of people (n, d), by parameters (B, d).

    Parameters
    ----------
    theta
        (B, d) parameters of B models.
    design
        (n, d) features; a column of ones is the intercept's.
    """
    z = theta @ design.T
    np.negative(z, out=z)
    with np.errstate(over="ignore"):  # exp(inf) is a probability of 0, as it should be
        np.exp(z, out=z)
    z += 1.0
    return np.reciprocal(z, out=z)


def _check_inputs(
    design: _Floats, targets: _Floats, penalty: float | _Floats, weights: _Floats | None
) -> tuple[_Floats, _Floats, _Floats | None]:
    design, targets = np.asarray(design, np.float64), np.asarray(targets, np.float64)
    weights = None if weights is None else np.asarray(weights, np.float64)
    prices = np.asarray(penalty, np.float64)
    if prices.ndim:
        if prices.shape != (len(targets), design.shape[-1]):
            raise InputError(
                f"penalty must be a number or {(len(targets), design.shape[-1])}, one of each "
                f"component of each model, not {prices.shape}"
            )
        if not ((prices >= 0) & (prices < np.inf)).all():
            raise InputError("penalties of components must be at least 0 and finite")
    elif not 0 < prices < np.inf:
        raise InputError(
            f"penalty must be above 0 and finite, not "
            f"{show_value(float(prices))}: without one, logistic "
            "regression has no optimum where labels are separable"
        )
    fits = targets.ndim == 2 and design.ndim in (2, 3) and (
        targets.shape[1] == len(design) if design.ndim == 2 else targets.shape == design.shape[:2]
    )  # fmt: skip
    if not fits or (weights is not None and weights.shape != targets.shape):
        raise InputError(
            f"shapes do not agree: design {design.shape}, targets {targets.shape}, weights "
            f"{None if weights is None else weights.shape}; want (m, d) or (B, m, d), and (B, m)"
        )
    for name, values in (("design", design), ("targets", targets), ("weights", weights)):
        if values is not None and not np.isfinite(values).all():
            raise InputError(f"{name} must be finite numbers")
    if weights is not None and (weights < 0).any():
        raise InputError("weights must not be negative")
    return design, targets, weights


def _normalise_weights(targets: _Floats, weights: _Floats | None) -> _Floats:
    """Weights that sum to 1, or are all 0."""
    if weights is None:
        return np.full(targets.shape, 1 / max(targets.shape[1], 1))
    totals = weights.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(weights, totals, out=np.zeros_like(weights), where=totals > 0))


def _multiply_columns(design: _Floats) -> _Floats | None:
    """The upper triangles of x x' of all people, (m, d (d + 1) / 2); None if that is too much."""
    m, d = design.shape
    if m * d * (d + 1) // 2 > _OUTER:
        return None
    i, j = np.triu_indices(d)
    return np.asarray(design[:, i] * design[:, j])


@dataclass(frozen=True)
class _Problems:
    """Several problems."""

    design: _Floats
    products: _Floats | None
    targets: _Floats
    shares: _Floats
    penalty: _Floats
    """(B, d) of each component."""

    def of(self, chosen: slice | NDArray[np.bool_]) -> _Problems:
        """The chosen problems."""
        return _Problems(
            self.design if self.design.ndim == 2 else self.design[chosen],
            self.products, self.targets[chosen], self.shares[chosen], self.penalty[chosen],
        )  # fmt: skip

    def solve(self, start: _Floats, tolerance: float) -> _Floats:
        """Parameters (B, d) by Newton's method; steps are halved until the objective falls."""
        solved, indices, problems = start.copy(), np.arange(len(start)), self
        theta, odds = start, self.scores(start)
        value, chances = self.evaluate(theta, odds)
        done = np.zeros(len(start), dtype=bool)
        for _ in range(_STEPS):
            gradient = problems.gradient(theta, chances)
            step = problems.newton(gradient, chances)
            move = problems.scores(step)
            now = ~done & (np.abs(move).max(axis=1, initial=0.0) <= tolerance)
            solved[indices[now]] = theta[now] + step[now]
            done |= now
            if done.all():
                return solved
            if 2 * np.count_nonzero(done) > len(done):  # copying fewer is not worth it
                rest = ~done
                problems, indices, done, gradient = (
                    problems.of(rest), indices[rest], done[rest], gradient[rest]
                )  # fmt: skip
                theta, odds, value = theta[rest], odds[rest], value[rest]
                step, move = step[rest], move[rest]
            slope = np.einsum("bd,bd->b", step, gradient)
            theta, odds, value, chances = problems.descend(theta, odds, value, step, move, slope)
        raise FpbenchError(
            f"{np.count_nonzero(~done)} of {len(start)} logistic regressions did not converge in "
            f"{_STEPS} steps of Newton's method with a penalty of {self.penalty.max():g}"
        )

    def scores(self, theta: _Floats) -> _Floats:
        """Log-odds (B, n) of label 1."""
        if self.design.ndim == 2:
            return theta @ self.design.T
        return np.asarray(np.matmul(self.design, theta[..., None])[..., 0])

    def evaluate(self, theta: _Floats, odds: _Floats) -> tuple[_Floats, _Floats]:
        """Objectives (B,), and probabilities (B, n) of label 1."""
        small = np.exp(-np.abs(odds))
        whole = 1.0 + small
        losses = np.log(whole)
        losses += np.maximum(odds, 0.0)
        losses -= self.targets * odds
        value = np.einsum("bn,bn->b", self.shares, losses)
        value += (self.penalty * theta * theta).sum(axis=1)
        return value, np.where(odds >= 0, 1.0, small) / whole

    def gradient(self, theta: _Floats, chances: _Floats) -> _Floats:
        """Gradients (B, d) of the objectives."""
        residuals = (chances - self.targets) * self.shares
        gradient: _Floats
        if self.design.ndim == 2:
            gradient = residuals @ self.design
        else:
            gradient = np.matmul(residuals[:, None, :], self.design)[:, 0]
        return gradient + 2 * self.penalty * theta

    def newton(self, gradient: _Floats, chances: _Floats) -> _Floats:
        """Newton steps (B, d)."""
        # Problems with the same design, probabilities and weights share one Hessian.
        alike = (chances, self.shares, self.penalty)
        if self.design.ndim == 2 and all((a == a[0]).all() for a in alike):
            hessian = self.of(slice(0, 1)).hessian(chances[:1])[0]
            return np.asarray(-np.linalg.solve(hessian, gradient.T).T)
        return np.asarray(-np.linalg.solve(self.hessian(chances), gradient[..., None])[..., 0])

    def hessian(self, chances: _Floats) -> _Floats:
        """Hessians (B, d, d) of the objectives."""
        curvature = chances * (1.0 - chances) * self.shares
        d = self.design.shape[-1]
        if self.products is not None:
            place = np.zeros((d, d), dtype=np.intp)
            place[np.triu_indices(d)] = np.arange(self.products.shape[1])
            place = np.maximum(place, place.T)
            hessian = np.take(curvature @ self.products, place, axis=1)
        elif d <= _SMALL:
            hessian = np.matmul(self.design.swapaxes(-1, -2), self.design * curvature[..., None])
        else:
            # A large matrix is multiplied by its own transpose in half the time.
            root = self.design * np.sqrt(curvature)[..., None]
            hessian = np.matmul(root.swapaxes(-1, -2), root)
        hessian[:, np.arange(d), np.arange(d)] += 2 * self.penalty
        return hessian

    def descend(
        self,
        theta: _Floats,
        odds: _Floats,
        value: _Floats,
        step: _Floats,
        move: _Floats,
        slope: _Floats,
    ) -> tuple[_Floats, _Floats, _Floats, _Floats]:
        """Parameters, log-odds, objectives and probabilities after a step that leads down."""
        size = np.ones((len(theta), 1))
        new, new_odds = theta + step, odds + move
        objective, chances = self.evaluate(new, new_odds)
        for _ in range(_HALVINGS):
            # The last term keeps rounding from rejecting a step near the optimum.
            target = value + 1e-4 * size[:, 0] * slope + 1e-13 * (1 + np.abs(value))
            bad = ~(objective <= target)
            if not bad.any():
                break
            size[bad] /= 2
            new[bad] = theta[bad] + size[bad] * step[bad]
            new_odds[bad] = odds[bad] + size[bad] * move[bad]
            objective[bad], chances[bad] = self.of(bad).evaluate(new[bad], new_odds[bad])
        return new, new_odds, objective, chances
