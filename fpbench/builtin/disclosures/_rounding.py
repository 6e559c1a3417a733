"""Rounding of tolerances before they are disclosed."""

import math
from fractions import Fraction

_STEPS = 1000
"""Disclosed tolerances are integer multiples of 1 / 1000."""


def limit_step_nats(least: Fraction = Fraction(0)) -> float:
    """Logarithm of the number of possible tolerances from the least one to 1."""
    return math.log(_STEPS - math.ceil(least * _STEPS) + 1)


def round_up(least: Fraction) -> float:
    """The least multiple of 0.001 not below `least`, up to 1, as the float with its digits."""
    return min(math.ceil(least * _STEPS), _STEPS) / _STEPS
