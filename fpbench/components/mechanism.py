"""The base classes of noise mechanisms, and of policies that make noisy histograms valid."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field, field_validator

from fpbench.components.attack_kinds import Component
from fpbench.components.guarantee import Guarantee, Neighbours, Sensitivity


class Mechanism(Component):
    """Adds noise to counts so that their release is differentially private."""

    kind = "mechanism"
    continuous: ClassVar[bool] = False
    """Whether its answers are real numbers; such noise can only be simulated."""

    noise: Literal["simulation", "secure"] = Field(
        "simulation",
        description="where the noise comes from: `simulation`, seeded and reproducible, for "
        "benchmarks; `secure`, the operating system's randomness in exact arithmetic, for releases",
    )

    @field_validator("noise")
    @classmethod
    def _can_be_secure(cls, noise: str) -> str:
        if noise == "secure" and cls.continuous:
            raise ValueError(
                f"{cls.name} draws real numbers, and floating-point numbers give the true answer "
                "away by the values they can take (Mironov, CCS 2012); for releases use "
                "discrete-laplace or discrete-gaussian"
            )
        return noise

    def guarantee(self, epsilon: float, neighbours: Neighbours) -> Guarantee:
        """The guarantee of a release with this epsilon: pure differential privacy, by default.

        Raises
        ------
        InputError
            If the mechanism does not support this epsilon.
        """
        pure = Guarantee(epsilon, 0.0, neighbours)
        rho = float(epsilon) * float(epsilon) / 2
        # The square of a huge epsilon overflows, and that of a tiny one underflows.
        return replace(pure, rho=rho if 0 < rho < math.inf else None)

    @abstractmethod
    def release(
        self,
        counts: NDArray[np.int64],
        sensitivity: Sensitivity,
        epsilon: float | NDArray[np.float64],
        rng: np.random.Generator,
        upper: ArrayLike | None = None,
    ) -> NDArray[np.float64]:
        """Noisy counts, of the shape of counts and epsilon, broadcast.

        Parameters
        ----------
        counts
            The true counts, of any shape.
        sensitivity
            Greatest distance between the counts of neighbouring data sets.
        epsilon
            Privacy parameter of the whole release; an array has one release for each element, and
            is broadcast with the counts.
        rng
            For simulated noise; secure noise does not use it.
        upper
            Public upper bounds of the counts, broadcast with them; a mechanism may need them.
        """

    def find_noise_law(
        self, sensitivity: Sensitivity, epsilon: float, upper: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Standard deviation of Gaussian noise, and scale of Laplace noise; one of the two is 0.

        The noise distribution that a reader of noisy counts assumes. By default, the likelier of
        the two for simulated releases of half the bounds; a mechanism with a known distribution
        overrides this.

        Parameters
        ----------
        sensitivity, epsilon
            As for `release`.
        upper
            Public upper bounds of the counts, of any shape; the answers have the same shape.
        """
        simulated = self.model_copy(update={"noise": "simulation"})
        bounds, where = np.unique(upper, return_inverse=True)
        rng = np.random.default_rng(20260104)
        off = np.empty((len(bounds), _SIMULATED))
        for row, (bound, middle) in enumerate(zip(bounds, bounds // 2, strict=True)):
            counts = np.full(_SIMULATED, middle)
            off[row] = simulated.release(counts, sensitivity, epsilon, rng, bound) - middle
        scale = np.maximum(np.abs(off).mean(axis=1), _LEAST_NOISE)
        sigma = np.maximum(np.sqrt((off**2).mean(axis=1)), _LEAST_NOISE)
        # Mean log-likelihoods at the likeliest parameters, without the common terms.
        laplace = (np.log(2 * scale) + 1).sum() < (np.log(2 * np.pi * sigma**2) + 1).sum() / 2
        law = (np.zeros_like(scale), scale) if laplace else (sigma, np.zeros_like(sigma))
        return law[0][where].reshape(upper.shape), law[1][where].reshape(upper.shape)

    def find_exact_law(
        self, sensitivity: Sensitivity, epsilon: float, upper: NDArray[np.int64]
    ) -> tuple[str, NDArray[np.float64]]:
        """Name of the noise's distribution in `fpbench.claims.LAWS`, and its widths; 0 is none.

        By default, what `find_noise_law` says.

        Parameters
        ----------
        sensitivity, epsilon, upper
            As for `find_noise_law`.
        """
        sigma, scale = self.find_noise_law(sensitivity, epsilon, upper)
        return ("gaussian", sigma) if sigma.any() else ("laplace", scale)


_SIMULATED = 2000
"""Simulated releases of each bound, to which a noise distribution is fitted."""
_LEAST_NOISE = 1e-3
"""Lower bound on the noise: a noisy release is never treated as exact."""


class Policy(Component):
    """Repairs invalid noisy histograms; deterministic, and without access to the true counts."""

    kind = "policy"

    @abstractmethod
    def repair(
        self, answers: NDArray[np.float64], total: ArrayLike, upper: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Histograms (..., K) of counts between 0 and their totals, of the shape of the answers.

        Parameters
        ----------
        answers
            (..., K) noisy counts of the K groups.
        total
            (...) public number of people of each histogram, broadcast.
        upper
            (...) greatest valid count, broadcast; the total by default.
        """
