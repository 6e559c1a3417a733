"""OpenDP's noisy max over the possible counts: under pure privacy it is permute-and-flip."""

from __future__ import annotations

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


class PermuteAndFlip(OpenDPMechanism):
    """Chooses a count r among 0..upper, the likelier the nearer to the true count q.

    The mechanism visits the candidates in random order, and takes each with probability
    exp(-e (|r - q| - least) / 2), e = epsilon / L1 sensitivity, until one is taken. Each count of a
    histogram is chosen on its own. The upper bounds must be public.

    Notes
    -----
    OpenDP calls it the noisy max. With pure differential privacy as its measure, it adds
    exponential noise to every utility and takes the greatest, which is permute-and-flip (Ding et
    al. 2021), and so is never worse than the exponential mechanism in expected utility. (With
    zero-concentrated privacy, OpenDP's noisy max has Gumbel noise and is the exponential mechanism;
    that is fpbench's `exponential`.)

    The running time grows with the upper bound: every candidate has noise of its own.
    """

    name = "opendp-permute-and-flip"
    summary = "OpenDP's noisy max, which is permute-and-flip: a count within public bounds"
    reference = (
        "OpenDP, opendp.org; McKenna & Sheldon, Permute-and-Flip, NeurIPS 2020; Ding et al., The "
        "Permute-and-Flip Mechanism is Identical to Report-Noisy-Max with Exponential Noise, "
        "arXiv 2105.07260, 2021"
    )
    within_upper = True

    def draw(
        self, counts: list[int], upper: int, epsilon: float, sensitivity: Sensitivity
    ) -> list[float]:
        """Whole numbers in 0..upper."""
        choose = _calibrate_noisy_max(epsilon, round_sensitivity_up(sensitivity.l1))
        # Utilities of all candidates for any count are a part of those for a count of `upper`.
        utilities = [-abs(r) for r in range(-upper, upper + 1)]
        return [float(choose(utilities[upper - q : 2 * upper - q + 1])) for q in counts]


@lru_cache(1024)
def _calibrate_noisy_max(epsilon: float, l1: int) -> Measurement:
    """A measurement for which OpenDP's map states at most epsilon.

    One person changes counts by l1 in sum, and the utilities of a count's candidates by no more
    than the count changes. The map is linear, so that choices of all counts cost map(l1) together.
    """
    dp = load_opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.linf_distance(T="i64")
    pure = dp.max_divergence()
    return calibrate_measurement(
        lambda scale: dp.m.make_noisy_max(*space, pure, scale=scale),
        2 * l1 / epsilon,
        lambda measurement: Fraction(measurement.map(l1)) <= to_fraction(epsilon),
    )
