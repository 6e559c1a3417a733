"""The adversary that always guesses the most frequent group."""

import numpy as np

from fpbench import Guess, View
from fpbench.builtin.adversaries._holding_out import HoldingOut, split_rows


class Majority(HoldingOut):
    """Guesses the most frequent group of the attack set for everyone.

    Its confidence is that group's share. Every useful adversary must be more accurate. Of the
    target people it uses only their number.
    """

    name = "majority"
    summary = "guesses the most frequent group for everyone: the baseline to beat"
    sees = frozenset({"labels"})

    def guess(self, view: View, rng: np.random.Generator) -> Guess:
        """Count groups in a random part of the attack set.

        Raises
        ------
        DataError
            If the attack set has fewer than two people.
        """
        held_out, training = split_rows(len(view.attack), self.held_out, rng)
        counts = np.bincount(view.attack.sensitive[training])
        group = int(np.argmax(counts))
        share = counts[group] / len(training)
        n, m = len(view.target), len(held_out)
        return Guess(
            np.full(n, group, dtype=np.int8),
            np.full(n, share),
            held_out,
            np.full(m, group, dtype=np.int8),
            np.full(m, share),
        )
