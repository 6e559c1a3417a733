"""The disclosure of nothing."""

from __future__ import annotations

import numpy as np

from fpbench import Context, Disclosure


class Hidden(Disclosure):
    """Nothing is said of the target's fairness, so that no guess can be corrected.

    What an adversary reaches against it is the baseline of every other disclosure.
    """

    name = "hidden"
    summary = "nothing is disclosed"
    makes_claim = False

    def claim(self, context: Context, rng: np.random.Generator) -> None:
        """Claim nothing."""
