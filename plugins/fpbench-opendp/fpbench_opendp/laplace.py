"""Laplace noise by OpenDP: on a fine grid, on the whole numbers, and within bounds."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from fpbench.base import to_fraction
from fpbench.privacy import Sensitivity
from fpbench_opendp._base import (
    Measurement,
    OpenDPMechanism,
    calibrate_measurement,
    load_opendp,
    round_sensitivity_up,
)

_MOST = 1024
"""Calibrated measurements in the cache."""


class Laplace(OpenDPMechanism):
    """Adds Laplace noise of scale sensitivity / epsilon, drawn securely by OpenDP.

    Answers are real numbers, and safe to release: the noise is a discrete Laplace number on the
    finest grid that floating-point numbers share, drawn in exact arithmetic, so the attack of
    Mironov (CCS 2012) on textbook samplers finds nothing.
    """

    name = "opendp-laplace"
    summary = "OpenDP's Laplace noise, drawn securely: pure differential privacy"
    reference = (
        "OpenDP, opendp.org; Dwork et al., Calibrating Noise to Sensitivity in Private Data "
        "Analysis, TCC 2006"
    )

    def draw(
        self, counts: list[int], upper: int, epsilon: float, sensitivity: Sensitivity
    ) -> list[float]:
        """Real numbers."""
        measurement = _calibrate_laplace(epsilon, sensitivity.l1)
        return list(measurement([float(count) for count in counts]))


class DiscreteLaplace(OpenDPMechanism):
    """Adds a whole number z with probability proportional to exp(-|z| epsilon / sensitivity).

    OpenDP's Laplace mechanism on whole numbers.
    """

    name = "opendp-discrete-laplace"
    summary = "OpenDP's Laplace noise on whole numbers: pure differential privacy"
    reference = (
        "OpenDP, opendp.org; Ghosh et al., Universally Utility-Maximizing Privacy Mechanisms, "
        "STOC 2009; Canonne et al., The Discrete Gaussian for Differential Privacy, NeurIPS 2020"
    )

    def draw(
        self, counts: list[int], upper: int, epsilon: float, sensitivity: Sensitivity
    ) -> list[float]:
        """Whole numbers."""
        return list(
            map(
                float,
                _calibrate_discrete_laplace(epsilon, round_sensitivity_up(sensitivity.l1))(counts),
            )
        )


class Geometric(OpenDPMechanism):
    """Adds discrete Laplace noise in nearly constant time, and answers within 0..upper.

    OpenDP's geometric mechanism with bounds: an answer beyond them is set to the nearest one. Its
    running time reveals almost nothing about the noise; it grows with the upper bound.
    """

    name = "opendp-geometric"
    summary = "OpenDP's geometric noise within bounds, in constant time: pure differential privacy"
    reference = (
        "OpenDP, opendp.org; Ghosh et al., Universally Utility-Maximizing Privacy Mechanisms, "
        "STOC 2009"
    )
    within_upper = True

    def draw(
        self, counts: list[int], upper: int, epsilon: float, sensitivity: Sensitivity
    ) -> list[float]:
        """Whole numbers in 0..upper."""
        if upper == 0:  # 0 is the only answer, and OpenDP has no such noise
            return [0.0] * len(counts)
        measurement = _calibrate_geometric(epsilon, round_sensitivity_up(sensitivity.l1), upper)
        return list(map(float, measurement(counts)))


@lru_cache(_MOST)
def _calibrate_laplace(epsilon: float, l1: float) -> Measurement:
    dp = load_opendp()
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
    return _calibrate_pure(lambda scale: dp.m.make_laplace(*space, scale=scale), epsilon, l1)


@lru_cache(_MOST)
def _calibrate_discrete_laplace(epsilon: float, l1: int) -> Measurement:
    dp = load_opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    return _calibrate_pure(lambda scale: dp.m.make_laplace(*space, scale=scale), epsilon, l1)


@lru_cache(_MOST)
def _calibrate_geometric(epsilon: float, l1: int, upper: int) -> Measurement:
    dp = load_opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    bounds = 0, upper
    return _calibrate_pure(
        lambda scale: dp.m.make_geometric(*space, scale=scale, bounds=bounds), epsilon, l1
    )


def _calibrate_pure(make: Callable[[float], Measurement], epsilon: float, l1: float) -> Measurement:
    """A measurement for which OpenDP's map of pure privacy states at most epsilon as written."""
    return calibrate_measurement(
        make,
        l1 / epsilon,
        lambda measurement: Fraction(measurement.map(l1)) <= to_fraction(epsilon),
    )
