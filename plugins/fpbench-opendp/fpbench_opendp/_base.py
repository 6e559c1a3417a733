"""The base class of the mechanisms: OpenDP, calibrated until its own privacy map agrees."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from fpbench import InputError, Mechanism
from fpbench.privacy import Sensitivity, check_epsilon

Measurement: TypeAlias = Any
"""A measurement of OpenDP: a random function, and a map of its privacy."""


class OpenDPMechanism(Mechanism):
    """A mechanism that OpenDP draws; fpbench says how private it must be.

    The randomness comes from the operating system and cannot be seeded, so each run draws other
    noise. fpbench has mechanisms of its own whose noise can be reproduced.
    """

    within_upper: ClassVar[bool] = False
    """Whether answers lie between 0 and an upper bound, which `release` then requires."""

    noise: Literal["secure"] = Field(
        "secure", description="OpenDP has the operating system's randomness and no other"
    )

    def release(
        self,
        counts: NDArray[np.int64],
        sensitivity: Sensitivity,
        epsilon: float | NDArray[np.float64],
        rng: np.random.Generator,
        upper: ArrayLike | None = None,
    ) -> NDArray[np.float64]:
        """Noisy counts; the generator is not used.

        Raises
        ------
        InputError
            If counts are not whole numbers, or epsilon is not above 0 and finite; if a mechanism
            needs upper bounds and there are none, or a count exceeds its bound; if OpenDP refuses.
        """
        from opendp.mod import OpenDPException

        q, e, top = np.broadcast_arrays(
            self._check_whole(counts, "counts"),
            self._check_epsilon(epsilon),
            self._check_upper(counts, upper),
        )
        noisy = np.empty(q.shape)
        settings = np.stack([e.ravel(), top.ravel()])
        distinct, which = np.unique(settings, axis=1, return_inverse=True)
        which = which.reshape(q.shape)
        for number, (own, bound) in enumerate(distinct.T.tolist()):
            mine = which == number
            try:
                noisy[mine] = self.draw(q[mine].tolist(), int(bound), own, sensitivity)
            except OpenDPException as error:
                reason = " ".join(str(error).split())
                raise InputError(
                    f"mechanism {self.name!r}: OpenDP refuses epsilon {own:g}: {reason}"
                ) from error
        return noisy

    @abstractmethod
    def draw(
        self, counts: list[int], upper: int, epsilon: float, sensitivity: Sensitivity
    ) -> list[float]:
        """Noisy counts for counts with one epsilon and one upper bound (0 without bounds)."""

    def _check_epsilon(self, epsilon: ArrayLike) -> NDArray[np.float64]:
        check_epsilon(epsilon)
        return np.asarray(epsilon, dtype=np.float64)

    def _check_upper(self, counts: ArrayLike, upper: ArrayLike | None) -> NDArray[np.int64]:
        if not self.within_upper:
            return np.zeros((), dtype=np.int64)
        if upper is None:
            raise InputError(
                f"mechanism {self.name!r} answers within 0..upper, and needs `upper`: a public "
                "bound of every count"
            )
        top = self._check_whole(upper, "upper bounds")
        q, bound = np.broadcast_arrays(np.asarray(counts), top)
        if ((q < 0) | (q > bound)).any():
            raise InputError(f"mechanism {self.name!r}: a count is below 0 or above its bound")
        return top

    def _check_whole(self, numbers: ArrayLike, what: str) -> NDArray[np.int64]:
        values = np.asarray(numbers)
        if not np.issubdtype(values.dtype, np.integer):
            raise InputError(f"{what} must be whole numbers, not of type {values.dtype}")
        return values.astype(np.int64, copy=False)


@cache
def load_opendp() -> Any:
    """OpenDP with its feature `contrib`, which all mechanisms here need.

    Its committee has not vetted these constructors yet: their proofs are published, and the review
    is not finished.
    """
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp


def calibrate_measurement(
    make: Callable[[float], Measurement], scale: float, private: Callable[[Measurement], bool]
) -> Measurement:
    """The measurement of the least scale, from this one upwards, that is private enough.

    The scale from the textbook may be too small by a rounding error; the loop adds a few parts in
    2^50.

    Raises
    ------
    InputError
        If twice the scale is not enough: floating-point numbers cannot express it.
    """
    more = 2.0**-50
    while more < 1 and math.isfinite(scale):
        measurement = make(scale)
        if private(measurement):
            return measurement
        scale, more = scale * (1 + more), more * 2
    raise InputError(f"OpenDP has no noise of scale {scale:g} that is private enough")


def round_sensitivity_up(sensitivity: float) -> int:
    """The sensitivity rounded up, as OpenDP requires for whole numbers."""
    return math.ceil(sensitivity)
