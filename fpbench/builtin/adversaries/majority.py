"""The adversary that always guesses the most frequent group."""

import numpy as np

from fpbench import Guess, View
from fpbench.builtin.adversaries._holding_out import HoldingOut, estimate_shares, split_rows


class Majority(HoldingOut):
    """Guesses the most frequent group of the attack set for everyone.

    Its beliefs are the shares of the groups, the same for everyone. A useful adversary must be more
    accurate. It uses only the number of target people.
    """

    name = "majority"
    summary = "guesses the most frequent group for everyone: the baseline to beat"
    sees = frozenset({"labels"})

    def guess(self, view: View, rng: np.random.Generator) -> Guess:
        """Count groups in a random part of the attack set.

        Raises DataError if the attack set has fewer than two people.
        """
        held_out, training = split_rows(len(view.attack), self.held_out, rng)
        shares = estimate_shares(view.attack.sensitive[training], len(view.attack.groups))
        beliefs, held_out_beliefs = (
            np.tile(shares, (people, 1)) for people in (len(view.target), len(held_out))
        )
        return Guess.from_beliefs(beliefs, held_out, held_out_beliefs)
