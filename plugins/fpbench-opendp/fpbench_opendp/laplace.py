"""Laplace noise by OpenDP: on a fine grid, on the whole numbers, and within bounds."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from fpbench import Sensitivity
from fpbench.base import to_fraction
from fpbench_opendp._base import (
    Measurement,
    OpenDPMechanism,
    calibrate_measurement,
    opendp,
    whole_steps,
)

_MOST = 1024
"""Calibrated mechanisms that are kept."""


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
        made = _laplace(epsilon, sensitivity.l1)
        return list(made([float(count) for count in counts]))


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
        return list(map(float, _discrete_laplace(epsilon, whole_steps(sensitivity.l1))(counts)))


class Geometric(OpenDPMechanism):
    """Adds discrete Laplace noise in nearly constant time, and answers within 0..upper.

    OpenDP's geometric mechanism with bounds: what would leave them stays at the nearest one. Its
    time tells next to nothing about the noise; it grows with the upper bound instead.
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
        if upper == 0:  # there is one answer, and OpenDP has no noise for it
            return [0.0] * len(counts)
        made = _geometric(epsilon, whole_steps(sensitivity.l1), upper)
        return list(map(float, made(counts)))


@lru_cache(_MOST)
def _laplace(epsilon: float, l1: float) -> Measurement:
    dp = opendp()
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
    return _pure(lambda scale: dp.m.make_laplace(*space, scale=scale), epsilon, l1)


@lru_cache(_MOST)
def _discrete_laplace(epsilon: float, l1: int) -> Measurement:
    dp = opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    return _pure(lambda scale: dp.m.make_laplace(*space, scale=scale), epsilon, l1)


@lru_cache(_MOST)
def _geometric(epsilon: float, l1: int, upper: int) -> Measurement:
    dp = opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    bounds = 0, upper
    return _pure(lambda scale: dp.m.make_geometric(*space, scale=scale, bounds=bounds), epsilon, l1)


def _pure(make: Callable[[float], Measurement], epsilon: float, l1: float) -> Measurement:
    """Calibrated so that OpenDP's map of pure privacy says no more than epsilon as written."""
    return calibrate_measurement(
        make, l1 / epsilon, lambda made: Fraction(made.map(l1)) <= to_fraction(epsilon)
    )
