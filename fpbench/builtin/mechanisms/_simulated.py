"""Seeded, vectorised simulation of the discrete distributions in floating point."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fpbench import InputError

Floats = NDArray[np.float64]

_GREATEST = 2.0**47
"""Greatest scale of noise that can be simulated. Above it, sums exceed the 53 bits of a float, and
far above it NumPy's geometric numbers saturate at 2^63 - 1, where their difference is 0."""


def simulate_discrete_laplace(
    scale: Floats, shape: tuple[int, ...], rng: np.random.Generator
) -> Floats:
    """Integers z with probability proportional to exp(-|z| / scale), of the broadcast shape.

    Raises InputError if a scale is too large to be simulated.
    """
    if np.max(scale, initial=0.0) > _GREATEST:
        raise InputError(
            f"noise of scale {np.max(scale):g} cannot be simulated, the limit is {_GREATEST:g}: "
            "use a larger epsilon or a smaller sensitivity"
        )
    # The difference of two geometric numbers.
    p = -np.expm1(-1 / scale)
    noise = rng.geometric(p, shape).astype(np.float64)
    noise -= rng.geometric(p, shape)
    return noise


def simulate_discrete_gaussian(
    variance: Floats, shape: tuple[int, ...], rng: np.random.Generator
) -> Floats:
    """Integers z with probability proportional to exp(-z^2 / (2 variance)).

    Rejection from discrete Laplace noise, vectorised: Canonne, Kamath & Steinke, NeurIPS 2020,
    Algorithm 3.
    """
    v = np.broadcast_to(variance, shape).ravel()
    t = np.floor(np.sqrt(v)) + 1
    noise = np.empty(v.size)
    rejected = np.arange(v.size)
    while rejected.size:
        z = simulate_discrete_laplace(t[rejected], rejected.shape, rng)
        away = np.abs(z) - v[rejected] / t[rejected]
        accepted = rng.random(rejected.size) < np.exp(-(away**2) / (2 * v[rejected]))
        noise[rejected[accepted]] = z[accepted]
        rejected = rejected[~accepted]
    return noise.reshape(shape)


def simulate_laplace_within(
    center: Floats, upper: Floats, rate: Floats, rng: np.random.Generator
) -> Floats:
    """Integers r in 0..upper with probability proportional to exp(-rate |r - center|).

    All arguments have one shape. The side (below, at or above the center) is drawn first, then the
    distance.
    """

    def mass(distance: Floats) -> Floats:
        """The sum of exp(-rate d) over d from 1 to this distance."""
        with np.errstate(over="ignore"):  # a very high rate leaves only the center
            total: Floats = -np.expm1(-rate * distance) / np.expm1(rate)
        return total

    below, above = mass(center), mass(upper - center)
    side = rng.random(center.shape) * (1 + below + above)
    down, up = (side >= 1) & (side < 1 + below), side >= 1 + below
    most = np.where(down, center, upper - center)
    # Inverse CDF of a geometric distribution truncated at `most`.
    u = rng.random(center.shape)
    distance = 1 + np.floor(-np.log1p(u * np.expm1(-rate * most)) / rate)
    distance = np.minimum(distance, most)
    r: Floats = center + np.where(down, -distance, np.where(up, distance, 0.0))
    return r


def simulate_weighted_within(
    center: int, upper: int, weights: Floats, draws: int, rng: np.random.Generator
) -> Floats:
    """Integers r in 0..upper with probability proportional to weights[|r - center|]."""
    cumulated = np.cumsum(weights)
    below, above = cumulated[center], cumulated[upper - center] - cumulated[0]
    u = rng.random(draws) * (below + above)
    up = u >= below
    distance = np.searchsorted(cumulated, np.where(up, u - below + cumulated[0], u), side="right")
    distance = np.minimum(distance, np.where(up, upper - center, center))
    r: Floats = (center + np.where(up, distance, -distance)).astype(np.float64)
    return r
