"""How tolerances are rounded before they are disclosed."""

import math
from fractions import Fraction

_STEPS = 1000
"""Disclosed tolerances are whole multiples of 1 / 1000."""


def rounded_up(least: Fraction) -> float:
    """The least multiple of 0.001 that is not below; the float that is written with its digits."""
    return min(math.ceil(least * _STEPS), _STEPS) / _STEPS


def rounded_down(greatest: Fraction) -> float:
    """The greatest multiple of 0.001 that is not above, alike."""
    return max(math.floor(greatest * _STEPS), 0) / _STEPS
