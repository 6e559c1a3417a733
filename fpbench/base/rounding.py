"""Numbers without their last bits, so that what is decided with them is the same everywhere.

The same sum of products differs in its last bits between processors: linear-algebra libraries add
up in another order. Where such numbers are sorted, compared or handed to an algorithm that breaks
ties, a difference of 1e-16 becomes another tree, or another person whose guess is changed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

BITS = 24
"""As many as single precision has."""


def drop_last_bits(
    values: NDArray[Any], scale: float = 1.0, bits: int = BITS
) -> NDArray[np.float64]:
    """Numbers rounded to multiples of 2**-bits of the power of two above a scale.

    What should be equal becomes equal, and what differs by rounding alone becomes the same, but
    for numbers that lie within that rounding of the middle between two multiples: of numbers that
    are right to 1e-15 of the scale, one in 100 million at 24 bits.

    Parameters
    ----------
    values
        Numbers of any shape.
    scale
        How large the numbers are that they were added up from, which may be larger than they are:
        what is left of a difference of equal numbers is of the size of their last bits.
    bits
        How many binary digits below the scale are kept.
    """
    # A power of two, so that only the rounding itself changes anything.
    unit = np.ldexp(1.0, int(np.frexp(scale)[1]) - bits)
    return np.asarray(np.rint(np.asarray(values, np.float64) / unit) * unit)
