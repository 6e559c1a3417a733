"""Exact samplers that use integers and rationals only.

Canonne, Kamath & Steinke, The Discrete Gaussian for Differential Privacy, NeurIPS 2020, Algorithms
1 to 3. There are no floating-point numbers, so rounding reveals nothing. The time of a draw depends
on the noise: an observer who times single draws learns about it.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

Below: TypeAlias = Callable[[int], int]
"""Draws a uniform integer in 0..n-1; from the operating system unless a test replaces it."""


def draw_bernoulli_exp(top: int, bottom: int, below: Below = secrets.randbelow) -> bool:
    """True with probability exp(-top / bottom), top >= 0 and bottom > 0."""
    while top > bottom:
        if not _draw_exp_of_fraction(1, 1, below):
            return False
        top -= bottom
    return _draw_exp_of_fraction(top, bottom, below)


def _draw_exp_of_fraction(top: int, bottom: int, below: Below) -> bool:
    # With 0 <= x <= 1, exp(-x) is the probability of an odd first k at which a coin of bias x / k
    # fails.
    k = 1
    while below(bottom * k) < top:
        k += 1
    return k % 2 == 1


def draw_discrete_laplace(scale: Fraction, below: Below = secrets.randbelow) -> int:
    """An integer z with probability proportional to exp(-|z| / scale)."""
    t, s = scale.numerator, scale.denominator
    while True:
        # A geometric number of rate 1 / t in two parts, then one of rate s / t.
        low = below(t)
        if not draw_bernoulli_exp(low, t, below):
            continue
        high = 0
        while _draw_exp_of_fraction(1, 1, below):
            high += 1
        size = (low + t * high) // s
        negative = below(2) == 1
        if not (negative and size == 0):  # otherwise 0 would be twice as likely
            return -size if negative else size


def draw_discrete_gaussian(variance: Fraction, below: Below = secrets.randbelow) -> int:
    """An integer z with probability proportional to exp(-z^2 / (2 variance))."""
    top, bottom = variance.numerator, variance.denominator
    t = math.isqrt(top // bottom) + 1
    while True:
        z = draw_discrete_laplace(Fraction(t), below)
        # Accept with exp(-(|z| - variance / t)^2 / (2 variance)).
        away = abs(z) * t * bottom - top
        if draw_bernoulli_exp(away * away, 2 * t * t * bottom * top, below):
            return z


def draw_laplace_within(
    center: int, upper: int, rate: Fraction, below: Below = secrets.randbelow
) -> int:
    """An integer r in 0..upper with probability proportional to exp(-rate |r - center|)."""
    top, bottom = rate.numerator, rate.denominator
    while rate * upper > 1:  # most mass is near the center: propose from all integers
        r = center + draw_discrete_laplace(1 / rate, below)
        if 0 <= r <= upper:
            return r
    while True:  # all are about equally likely: propose uniformly
        r = below(upper + 1)
        if draw_bernoulli_exp(abs(r - center) * top, bottom, below):
            return r
