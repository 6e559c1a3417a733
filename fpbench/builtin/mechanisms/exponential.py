"""The exponential mechanism over the possible counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field, model_validator

from fpbench import Guarantee, InputError, Mechanism
from fpbench.base import to_fraction
from fpbench.builtin.mechanisms._exact import draw_laplace_within as exact
from fpbench.builtin.mechanisms._noise import check_epsilons, check_integers
from fpbench.builtin.mechanisms._simulated import simulate_laplace_within, simulate_weighted_within
from fpbench.privacy import Neighbours, Sensitivity

Floats = NDArray[np.float64]
Utility = Literal["absolute", "squared", "root", "indicator"]

# For each utility -f(|r - q|): f, and its greatest change if q changes by one, for distances up to
# a bound of at least 1.
LOSSES: dict[Utility, tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]] = {
    "absolute": (lambda d: d, np.ones_like),
    "squared": (np.square, lambda upper: 2 * upper - 1),
    "root": (np.sqrt, np.ones_like),
    "indicator": (lambda d: (d > 0).astype(np.float64), np.ones_like),
}


class Exponential(Mechanism):
    """Chooses a count r among 0..upper, more likely the greater its utility.

    P(r) is proportional to exp(e u(r) / (2 D)), where u is the utility, D the greatest change of u
    when the count changes by one, and e = epsilon / L1 sensitivity: a histogram of independently
    chosen counts is epsilon-differentially private. The upper bounds must be public.

    Secure choices are exact for the default utility: discrete Laplace noise, restricted to the
    bounds by rejection.

    Notes
    -----
    Rho is epsilon^2 / 8, a quarter of that of any pure guarantee, because the log-likelihoods of
    all choices lie within a range of epsilon (Cesar & Rogers, ALT 2021).
    """

    name = "exponential"
    summary = "chooses a count within public bounds by its utility: pure differential privacy"
    reference = "McSherry & Talwar, Mechanism Design via Differential Privacy, FOCS 2007"

    utility: Utility = Field(
        "absolute",
        description="utility of r for the true count q: `absolute`, -|r - q|; `squared`, "
        "-(r - q)^2; `root`, -sqrt|r - q|; `indicator`, 0 if r = q, else -1",
    )

    @model_validator(mode="after")
    def _check_secure(self) -> Self:
        if self.noise == "secure" and self.utility != "absolute":
            raise ValueError(
                f"{self.name} can draw exactly, without floating-point numbers, for the utility "
                f'"absolute" only (as discrete Laplace noise), so noise = "secure" is refused for '
                f'"{self.utility}"'
            )
        return self

    def guarantee(self, epsilon: float, neighbours: Neighbours) -> Guarantee:
        """The pure guarantee, and its rho."""
        pure = super().guarantee(epsilon, neighbours)
        return pure if pure.rho is None else replace(pure, rho=pure.rho / 4 or None)

    def release(
        self,
        counts: NDArray[np.int64],
        sensitivity: Sensitivity,
        epsilon: float | NDArray[np.float64],
        rng: np.random.Generator,
        upper: ArrayLike | None = None,
    ) -> NDArray[np.float64]:
        """Chosen counts, whole numbers in 0..upper.

        Raises InputError if there is no upper bound, or a count is not a whole number between 0 and
        its bound.
        """
        counts, epsilon = check_integers(counts, "counts"), check_epsilons(epsilon)
        if upper is None:
            raise InputError(
                f"mechanism {self.name!r} chooses among 0..upper, so it needs `upper`: a public "
                "upper bound of every count"
            )
        upper = check_integers(upper, "upper bounds")
        q, top, e = np.broadcast_arrays(counts, upper, epsilon)
        if ((q < 0) | (q > top)).any():
            raise InputError(f"mechanism {self.name!r}: a count is below 0 or above its bound")
        if self.noise == "secure":
            return _choose_exactly(q, top, e, sensitivity)
        loss, change = LOSSES[self.utility]
        bound = top.astype(np.float64)
        rate = e / (2 * sensitivity.l1 * change(np.maximum(bound, 1.0)))
        if self.utility == "absolute":
            return simulate_laplace_within(q.astype(np.float64), bound, rate, rng)
        return _choose_by_weights(q, top, rate, loss, rng)

    def find_noise_law(
        self, sensitivity: Sensitivity, epsilon: float, upper: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Laplace noise for `absolute`, Gaussian noise for `squared`; else as simulated."""
        epsilon = float(check_epsilons(epsilon))
        if self.utility == "absolute":
            return np.zeros(upper.shape), np.full(upper.shape, 2 * sensitivity.l1 / epsilon)
        if self.utility == "squared":  # exp(-rate d^2) with rate = epsilon / (2 l1 (2 upper - 1))
            changes = 2 * np.maximum(upper, 1).astype(np.float64) - 1
            return np.sqrt(sensitivity.l1 * changes / epsilon), np.zeros(upper.shape)
        return super().find_noise_law(sensitivity, epsilon, upper)

    def find_exact_law(
        self, sensitivity: Sensitivity, epsilon: float, upper: NDArray[np.int64]
    ) -> tuple[str, NDArray[np.float64]]:
        """The distribution that numbers are chosen by, and one over its rates."""
        change = LOSSES[self.utility][1](np.maximum(upper, 1).astype(np.float64))
        width = 2 * sensitivity.l1 * change / float(check_epsilons(epsilon))
        return f"exponential-{self.utility}", width


def _choose_exactly(
    q: NDArray[np.int64], top: NDArray[np.int64], e: Floats, sensitivity: Sensitivity
) -> Floats:
    l1 = to_fraction(sensitivity.l1)
    chosen = [
        exact(int(center), int(most), to_fraction(value) / (2 * l1))
        for center, most, value in zip(q.flat, top.flat, e.flat, strict=True)
    ]
    return np.array(chosen, dtype=np.float64).reshape(q.shape)


def _choose_by_weights(
    q: NDArray[np.int64],
    top: NDArray[np.int64],
    rate: Floats,
    loss: Callable[[Floats], Floats],
    rng: np.random.Generator,
) -> Floats:
    """Choices by utility; draws with the same count, bound and rate share a table of weights."""
    columns = [np.ravel(column) for column in (q, top, rate)]
    order = np.lexsort(columns)
    changes = np.zeros(order.size, dtype=bool)
    for column in columns:
        changes[1:] |= column[order][1:] != column[order][:-1]
    chosen = np.empty(order.size)
    for rows in np.split(order, np.flatnonzero(changes)):
        if rows.size:
            center, most, row_rate = (column[rows[0]] for column in columns)
            weights = np.exp(-row_rate * loss(np.arange(max(center, most - center) + 1.0)))
            chosen[rows] = simulate_weighted_within(int(center), int(most), weights, rows.size, rng)
    return chosen.reshape(q.shape)
