"""Gaussian noise by OpenDP: on a fine grid, and on the whole numbers."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from pydantic import Field

from fpbench import Guarantee, InputError
from fpbench.base import to_fraction
from fpbench.privacy import Neighbours, Sensitivity, epsilon_to_rho
from fpbench_opendp._base import Measurement, OpenDPMechanism, calibrate_measurement, load_opendp

_MOST = 1024
"""Calibrated measurements in the cache."""
_GREATEST = 10_000.0
"""Greatest epsilon that OpenDP converts."""


class _Normal(OpenDPMechanism):
    """Zero-concentrated differential privacy, stated as (epsilon, delta).

    Rho is the greatest that implies (epsilon, delta) (Canonne et al. 2020, Corollary 13), and
    OpenDP's own conversion must agree. That takes a little more noise than fpbench's `gaussian`,
    which is calibrated to (epsilon, delta) itself (Balle & Wang 2018).
    """

    delta: float = Field(
        1e-6, gt=0, lt=1, description="probability with which epsilon may fail to hold"
    )

    def guarantee(self, epsilon: float, neighbours: Neighbours) -> Guarantee:
        """The guarantee (epsilon, delta), and its rho.

        Raises
        ------
        InputError
            If epsilon is not above 0, or is beyond what OpenDP converts.
        """
        return Guarantee(epsilon, self.delta, neighbours, _convert_to_rho(epsilon, self.delta))


class Gaussian(_Normal):
    """Adds normal noise, drawn securely by OpenDP: real numbers, on a fine grid.

    The noise is a discrete Gaussian number on the finest grid that floating-point numbers share,
    drawn in exact arithmetic, so answers are safe to release.
    """

    name = "opendp-gaussian"
    summary = "OpenDP's normal noise, drawn securely: (epsilon, delta)-differential privacy"
    reference = (
        "OpenDP, opendp.org; Bun & Steinke, Concentrated Differential Privacy, TCC 2016; Canonne "
        "et al., The Discrete Gaussian for Differential Privacy, NeurIPS 2020"
    )

    def draw(
        self, counts: list[int], upper: int, epsilon: float, sensitivity: Sensitivity
    ) -> list[float]:
        """Real numbers."""
        measurement = _calibrate_gaussian(float, epsilon, self.delta, sensitivity.l2)
        return list(measurement([float(count) for count in counts]))


class DiscreteGaussian(_Normal):
    """Adds a whole number z with probability proportional to exp(-z^2 / 2 s^2).

    OpenDP's Gaussian mechanism on whole numbers.
    """

    name = "opendp-discrete-gaussian"
    summary = "OpenDP's normal noise on whole numbers: (epsilon, delta)-differential privacy"
    reference = (
        "OpenDP, opendp.org; Canonne et al., The Discrete Gaussian for Differential Privacy, "
        "NeurIPS 2020"
    )

    def draw(
        self, counts: list[int], upper: int, epsilon: float, sensitivity: Sensitivity
    ) -> list[float]:
        """Whole numbers."""
        return list(
            map(float, _calibrate_gaussian(int, epsilon, self.delta, sensitivity.l2)(counts))
        )


def _convert_to_rho(epsilon: float, delta: float) -> float:
    if epsilon > _GREATEST:
        raise InputError(
            f"OpenDP's Gaussian noise is for epsilon up to {_GREATEST:g}, not {epsilon:g}: beyond "
            "that its conversion to (epsilon, delta) overflows"
        )
    return epsilon_to_rho(epsilon, delta)


@lru_cache(_MOST)
def _calibrate_gaussian(of: type, epsilon: float, delta: float, l2: float) -> Measurement:
    """A measurement for which OpenDP's maps state at most rho, and at most epsilon as written."""
    dp = load_opendp()
    atoms = dp.atom_domain(T=float, nan=False) if of is float else dp.atom_domain(T="i64")
    space = dp.vector_domain(atoms), dp.l2_distance(T=float)
    rho = _convert_to_rho(epsilon, delta)

    def is_private(measurement: Measurement) -> bool:
        approximate = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(measurement), delta=delta)
        spent, failing = approximate.map(l2)
        enough = Fraction(spent) <= to_fraction(epsilon) and failing <= delta
        return bool(enough and measurement.map(l2) <= rho)

    return calibrate_measurement(
        lambda scale: dp.m.make_gaussian(*space, scale=scale), l2 / math.sqrt(2 * rho), is_private
    )
