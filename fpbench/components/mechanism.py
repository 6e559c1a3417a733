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
                "away by the values they can and cannot take (Mironov, CCS 2012); for releases use "
                "discrete-laplace or discrete-gaussian"
            )
        return noise

    def guarantee(self, epsilon: float, neighbours: Neighbours) -> Guarantee:
        """What a release with this epsilon guarantees: pure differential privacy, by default.

        Raises
        ------
        InputError
            If epsilon is not one that the mechanism can give.
        """
        pure = Guarantee(epsilon, 0.0, neighbours)
        rho = float(epsilon) * float(epsilon) / 2
        # At an epsilon beyond all sense there is no such number.
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
        """Noisy counts of all counts at once.

        Parameters
        ----------
        counts
            The true counts, of any shape.
        sensitivity
            By how much they may differ between neighbours.
        epsilon
            Privacy parameter of the whole release; an array is one release an element, and is
            broadcast with the counts.
        rng
            For simulated noise; secure noise does not use it.
        upper
            Public upper bounds of the counts, broadcast with them; a mechanism may need them.

        Returns
        -------
        ndarray
            Of the shape of counts and epsilon, broadcast.
        """


class Policy(Component):
    """Makes noisy histograms valid again. Deterministic: what it does not know, it cannot leak."""

    kind = "policy"

    @abstractmethod
    def repair(
        self, answers: NDArray[np.float64], total: ArrayLike, upper: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Histograms between 0 and their totals.

        Parameters
        ----------
        answers
            (..., K) noisy counts of the K groups.
        total
            (...) public number of people of each histogram, broadcast.
        upper
            (...) greatest count that passes for valid, broadcast; the total, if not given.

        Returns
        -------
        ndarray
            Of the shape of the answers.
        """
