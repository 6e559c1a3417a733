"""What an epsilon may be, wherever somebody is asked for one."""

from __future__ import annotations

import math
import sys
from numbers import Integral, Rational, Real
from typing import Any

from fpbench.base.errors import InputError

LEAST_EPSILON = 1e-9
"""Less is refused everywhere. It would be worth nothing, as its noise is in the billions, it would
cost nothing, and simulated noise must be right at every epsilon that is allowed."""


def check_epsilon(epsilon: Any, name: str = "epsilon", *, infinite: bool = False) -> None:
    """Refuse an epsilon that is none, or less than the least.

    Parameters
    ----------
    epsilon
        A number, or an array of several.
    name
        What it is, for the message: a share of an epsilon is another number than was asked for.
    infinite
        Whether it may be infinite, which is no privacy.

    Raises
    ------
    InputError
        If one is no number, not above 0, infinite though it may not be, or below 1e-9.
    """
    if isinstance(epsilon, int | float) and not isinstance(epsilon, bool):
        _check(epsilon, name, infinite)
        return
    import numpy as np

    try:
        values = np.asarray(epsilon)
    except ValueError:  # lists of different lengths
        values = np.empty(0, np.object_)
    if values.dtype.kind not in "iuf":
        raise InputError(f"{name} must be a number, not {epsilon!r:.60}")
    if values.size:  # a minimum is NaN if any is
        _check(values.min().item(), name, infinite)
        _check(values.max().item(), name, infinite)


def plain_number(value: Any, name: str) -> float:
    """One number, as Python's own: whole numbers stay whole, those of NumPy are not NumPy's.

    Raises
    ------
    InputError
        If it is none, or several.
    """
    kind: type = type(value)
    if kind is not bool and isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real) and not isinstance(value, Rational):
        return float(value)
    raise InputError(f"{name} must be a number, not {value!r:.60}")


def _check(epsilon: float, name: str, infinite: bool) -> None:
    shown = f"{float(epsilon)!r}" if isinstance(epsilon, float) else f"{epsilon!r:.40}"
    endless = infinite and epsilon == math.inf
    if not (0 < epsilon <= sys.float_info.max or endless):
        range_ = "above 0" if infinite else "above 0 and finite"
        raise InputError(f"{name} must be {range_}, not {shown}")
    if epsilon < LEAST_EPSILON:
        raise InputError(f"{name} must be at least {LEAST_EPSILON:g}, not {shown}")
