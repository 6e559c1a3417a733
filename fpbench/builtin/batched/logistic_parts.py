"""Many logistic regressions on parts of the same people, each near that on everybody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpbench.base.errors import InputError
from fpbench.builtin.batched.logistic import fit_logistic

_Floats = NDArray[np.float64]
_Singles = NDArray[np.float32]

_BLOCK = 1 << 15
"""Numbers in the largest array of a block of people: small enough to stay near the processor."""
_PRODUCTS = 1 << 24
"""Greatest size of the products of features whose sums are Hessians (64 MB)."""
_FARTHEST = 4.0
"""No step moves log-odds z by more than this + |z|: where labels are separable, Newton's method
overshoots, but large log-odds need long steps and hardly matter."""
_NEAR = 1e-2
"""Remaining error, in log-odds, at which single precision is left."""
_EXACT = 1e-9
"""Greatest estimated error of anybody's log-odds at the end."""
_STEPS = 30
"""Most steps in each precision; models that need more are solved by `fit_logistic`."""
_ROUGH = 0.3
"""The model of everybody stops at a step that changes no log-odds by more than this."""
_ROUGH_STEPS = 8
"""Most steps of that model on a sample of people, and then on all."""
_SAMPLE = 1_000
_JITTER = 1e-6
"""Hessians' diagonals are greater by this factor: more than the rounding of single precision."""


def fit_logistic_parts(
    design: _Floats, labels: _Floats, members: NDArray[np.bool_], ridge: _Floats
) -> _Floats:
    """Parameters (B, d) of B logistic regressions, each of its own part of the people.

    Each minimises the sum of log(1 + exp(z_i)) - y_i z_i over its members, where z = x'theta, plus
    half of sum ridge_j theta_j^2: the minimum that `fit_logistic` finds.

    All start at the model of everybody, and go on by Newton's method in single precision, whose
    matrix products cost half. Some steps in double precision follow, with the last of these
    Hessians, until at most `_EXACT` is left by the rate at which steps shrink. What has not
    converged then is handed to `fit_logistic`. Where the products of all people's features would
    take too much memory, the Hessian of a part is exact in the people of the highest leverage (the
    rare ones, by whom parts differ most), and in the others the part's share of everybody's.

    `design`: (n, d), its columns of about the same scale. `labels`: (n,) in {0, 1}. `members`: (B,
    n) true for people in a part. `ridge`: (B, d), at least 0; with a 0, the caller guarantees a
    minimum.

    Raises InputError if a number is not finite; FpbenchError if a model does not converge.
    """
    if not np.isfinite(design).all():
        raise InputError("design must be finite numbers")
    # exp(inf) is a probability of 0, as it should be; the first step has no rate.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        parts, theta, hessians = _Parts.of(design, labels, members, ridge)
        theta, rest = parts.solve(theta, hessians)
    if len(rest):
        weights = members[rest].astype(np.float64)
        targets = np.broadcast_to(np.asarray(labels, np.float64), weights.shape)
        sizes = np.maximum(weights.sum(axis=1, keepdims=True), 1)
        theta[rest] = fit_logistic(design, targets, ridge[rest] / (2 * sizes), weights)
    return theta


@dataclass(frozen=True)
class _Parts:
    """The problems. Rows of people of label 1 are as they are, those of label 0 negated."""

    signed: _Floats
    single: _Singles
    """(n, d): `signed`, in single precision."""
    products: _Singles
    """(d (d + 1) / 2, m): the upper triangles of x x' of the first m people."""
    rest: _Floats
    """(B, d, d): the other people in Hessians, and the ridge."""
    members: NDArray[np.bool_]
    ridge: _Floats
    reach: _Floats
    """(d,): the greatest |x| of each column."""

    @classmethod
    def of(
        cls, design: _Floats, labels: _Floats, members: NDArray[np.bool_], ridge: _Floats
    ) -> tuple[_Parts, _Floats, _Floats]:
        """The problems, and what to start at: rough parameters (B, d), Hessians (B, d, d)."""
        n, d = design.shape
        signed = design * np.where(labels > 0, 1.0, -1.0)[:, None]
        single = signed.astype(np.float32)
        theta, curvature, hessian = _fit_everybody(
            single, members.mean(axis=0, dtype=np.float32), ridge.mean(axis=0)
        )
        own = min(n, _PRODUCTS // (d * (d + 1) // 2))
        sizes = members.sum(axis=1)
        share = (sizes / sizes.mean())[:, None, None]
        rest = np.zeros((len(members), d, d))
        if own < n:
            leverage = (single * np.linalg.solve(hessian, single.T).T).sum(axis=1)
            order = np.argpartition(-leverage, own)
            signed, single, members = signed[order], single[order], members[:, order]
            shared = (single[own:] * curvature[order[own:], None]).T @ single[own:]
            rest += shared * share
        rest[:, np.arange(d), np.arange(d)] += ridge
        products = _multiply_columns(np.ascontiguousarray(single[:own].T))
        reach = np.abs(design).max(axis=0)
        parts = cls(signed, single, products, rest, members, ridge, reach)
        return parts, np.repeat(theta[None], len(members), axis=0), hessian * share

    def solve(self, theta: _Floats, hessians: _Floats) -> tuple[_Floats, NDArray[np.intp]]:
        """Parameters (B, d), and numbers of the models that have not converged."""
        everything = np.arange(len(theta))
        near = self.iterate(theta, hessians, everything, self.single, self.products, _NEAR)
        solved = self.iterate(theta, hessians, near, self.signed, None, _EXACT)
        return theta, np.setdiff1d(everything, solved)

    def iterate(
        self,
        theta: _Floats,
        hessians: _Floats,
        chosen: NDArray[np.intp],
        design: NDArray[Any],
        products: _Singles | None,
        tolerance: float,
    ) -> NDArray[np.intp]:
        """Steps of the chosen models, in the design's precision; numbers of those that converged.

        Parameters, and with products Hessians, are changed in place.
        """
        last, converged = np.zeros(len(theta)), np.zeros(len(theta), np.bool_)
        active, members = chosen, self.members[chosen]
        for number in range(_STEPS):
            # The first step is rough anyway.
            own = products if number else None
            gradient, sums = _evaluate(theta[active], design, members, own)
            gradient += self.ridge[active] * theta[active]
            if sums is not None:
                hessians[active] = self.rest[active] + _to_squares(sums, theta.shape[1])
            step = np.asarray(-np.linalg.solve(hessians[active], gradient[..., None])[..., 0])
            move = self.limit(theta[active], step)
            theta[active] += step
            rate, last[active] = move / last[active], move
            # Steps that shrink at a rate leave the sum of a geometric series.
            left_little = (rate < 0.5) & (move * rate <= tolerance * (1 - rate))
            converged[active] |= left_little | (move <= tolerance / 10)
            rest = ~converged[active]
            if not rest.any():
                break
            if np.count_nonzero(rest) < 0.8 * len(rest):  # copying fewer is not worth it
                active, members = active[rest], members[rest]
        return np.flatnonzero(converged)

    def limit(self, theta: _Floats, step: _Floats) -> _Floats:
        """An upper bound (b,) of the change of log-odds by steps; too long ones are shortened."""
        move = np.abs(step) @ self.reach
        long = np.flatnonzero(move > _FARTHEST)
        if len(long):
            step[long] *= _shorten(self.single, theta[long].T, step[long].T)[:, None]
        return np.asarray(move)


def _shorten(design: _Singles, theta: NDArray[Any], step: NDArray[Any]) -> NDArray[Any]:
    """Factors, at most 1, to shorten steps (d, b) from parameters (d, b)."""
    odds, move = (np.abs(design @ values.astype(np.float32)) for values in (theta, step))
    return np.asarray(1 / np.maximum(1, (move / (_FARTHEST + odds)).max(axis=0)))


def _fit_everybody(
    design: _Singles, weights: _Singles, ridge: _Floats
) -> tuple[_Floats, NDArray[Any], NDArray[Any]]:
    """About the parameters (d,) of one model; people's curvatures (n,), and the Hessian (d, d)."""
    theta = np.zeros(design.shape[1], np.float32)
    diagonal = np.diag_indices(len(theta))
    # First on a sample: Newton's method may start anywhere.
    for every in (max(1, len(design) // _SAMPLE), 1):
        rows, present = design[::every], weights[::every] * every
        for _ in range(_ROUGH_STEPS):
            missing = 1 / (1 + np.exp(rows @ theta))
            curvature = present * missing * (1 - missing)
            hessian = (rows * curvature[:, None]).T @ rows
            hessian[diagonal] += _JITTER * (1 + hessian[diagonal]) + ridge
            step = np.linalg.solve(hessian, (present * missing) @ rows - ridge * theta)
            theta += step * _shorten(rows, theta[:, None], step[:, None])
            if np.abs(rows @ step).max() < _ROUGH:
                break
    return theta.astype(np.float64), curvature, hessian


def _multiply_columns(columns: _Singles) -> _Singles:
    """Products (d (d + 1) / 2, n) of all pairs of columns (d, n)."""
    d, n = columns.shape
    products = np.empty((d * (d + 1) // 2, n), np.float32)
    first = 0
    for i in range(d):
        np.multiply(columns[i:], columns[i], out=products[first : first + d - i])
        first += d - i
    return products


def _to_squares(triangles: _Singles, d: int) -> _Floats:
    """Symmetric matrices (B, d, d) of their upper triangles (B, d (d + 1) / 2)."""
    place = np.zeros((d, d), np.intp)
    place[np.triu_indices(d)] = np.arange(triangles.shape[1])
    squares = triangles[:, np.maximum(place, place.T)].astype(np.float64)
    diagonal = np.arange(d)
    squares[:, diagonal, diagonal] += _JITTER * (1 + squares[:, diagonal, diagonal])
    return squares


def _evaluate(
    theta: _Floats,
    design: NDArray[Any],
    members: NDArray[np.bool_],
    products: _Singles | None,
) -> tuple[_Floats, _Singles | None]:
    """Gradients (B, d) of losses; with products of the first people, their upper Hessians, too."""
    gradient = np.zeros(theta.shape)
    own = 0 if products is None else products.shape[1]
    hessians = None if products is None else np.zeros((len(theta), len(products)), np.float32)
    theta = theta.astype(design.dtype)
    size = max(256, _BLOCK // max(1, len(theta)))
    for first in range(0, len(design), size):
        rows = design[first : first + size]
        missing = theta @ rows.T
        np.exp(missing, out=missing)
        missing += 1
        np.divide(members[:, first : first + size], missing, out=missing)
        gradient -= missing @ rows
        if products is not None and hessians is not None and first < own:
            chances = missing[:, : own - first]
            curvature = chances - chances * chances
            hessians += curvature @ products[:, first : first + size].T
    return gradient, hessians
