"""The disclosure of nothing."""

from __future__ import annotations

import numpy as np

from fpbench import Context, Disclosure


class Hidden(Disclosure):
    """Nothing is said of the target's fairness: only what is `also` known can correct a guess.

    What an adversary reaches against it is the baseline of every other disclosure.
    """

    name = "hidden"
    summary = "nothing is disclosed"

    def forms(self) -> tuple[str, ...]:
        """None."""
        return ()

    def claim(self, context: Context, rng: np.random.Generator) -> None:
        """Claim nothing."""
