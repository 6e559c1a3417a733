"""The disclosure of nothing."""

from __future__ import annotations

import numpy as np

from fpbench import Context, Disclosure


class Hidden(Disclosure):
    """Discloses nothing about the target's fairness: only facts in `also` can help.

    The accuracy of attacks against it is the baseline of every other disclosure.
    """

    name = "hidden"
    summary = "nothing is disclosed"

    def forms(self) -> tuple[str, ...]:
        """None."""
        return ()

    def claim(self, context: Context, rng: np.random.Generator) -> None:
        """Claim nothing."""
