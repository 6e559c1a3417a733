"""The adversary that draws groups at random by their shares."""

import numpy as np

from fpbench import Guess, View
from fpbench.builtin.adversaries._holding_out import HoldingOut, estimate_shares, split_rows


class Prior(HoldingOut):
    """Draws everyone's group from the shares of the groups in the attack set.

    Its beliefs are those shares, the same for everyone. Its guess has the right shares and no other
    information, so any gain of a corrector comes from the claim alone. It uses only the number of
    target people.
    """

    name = "prior"
    summary = "draws groups at random by their shares: a baseline for other attacks"
    sees = frozenset({"labels"})

    def guess(self, view: View, rng: np.random.Generator) -> Guess:
        """Count groups in a random part of the attack set, then draw.

        Raises DataError if the attack set has fewer than two people.
        """
        held_out, training = split_rows(len(view.attack), self.held_out, rng)
        shares = estimate_shares(view.attack.sensitive[training], len(view.attack.groups))
        values = rng.choice(len(shares), len(view.target), p=shares).astype(np.int8)
        check_values = rng.choice(len(shares), len(held_out), p=shares).astype(np.int8)
        return Guess(
            values, shares[values], held_out, check_values, shares[check_values],
            beliefs=np.tile(shares, (len(values), 1)),
            held_out_beliefs=np.tile(shares, (len(check_values), 1)),
        )  # fmt: skip
