"""The adversary that knows how many people are in each group, and who is most frequent."""

import numpy as np

from fpbench import Guess, View
from fpbench.builtin.adversaries._cut import HoldingOut, cut


class Majority(HoldingOut):
    """Guesses the most frequent group of the attack set for everyone.

    Its confidence is that group's share. It is the accuracy that every other adversary must pass.
    Of the people it attacks it uses only how many there are.
    """

    name = "majority"
    summary = "guesses the most frequent group for everyone: a floor for other adversaries"
    sees = frozenset({"labels"})

    def guess(self, view: View, rng: np.random.Generator) -> Guess:
        """Count groups in a random part of the attack set.

        Raises
        ------
        DataError
            If the attack set has fewer than two people.
        """
        kept, training = cut(len(view.attack), self.held_out, rng)
        counts = np.bincount(view.attack.sensitive[training])
        group = int(np.argmax(counts))
        share = counts[group] / len(training)
        n, m = len(view.target), len(kept)
        return Guess(
            np.full(n, group, dtype=np.int8),
            np.full(n, share),
            kept,
            np.full(m, group, dtype=np.int8),
            np.full(m, share),
        )
