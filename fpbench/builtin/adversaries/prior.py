"""The adversary that knows the shares of the groups, and draws."""

import numpy as np

from fpbench import Guess, View
from fpbench.builtin.adversaries._cut import HoldingOut, cut


class Prior(HoldingOut):
    """Draws everyone's group from the shares of the groups in the attack set.

    Its confidence is the share of the group it drew. Its guess has the right shares and knows
    nothing else, so what a corrector gains with it comes from what is claimed alone. Of the people
    it attacks it uses only how many there are.
    """

    name = "prior"
    summary = "draws groups at random with their shares: a floor for other adversaries"
    sees = frozenset({"labels"})

    def guess(self, view: View, rng: np.random.Generator) -> Guess:
        """Count groups in a random part of the attack set, then draw.

        Raises
        ------
        DataError
            If the attack set has fewer than two people.
        """
        kept, training = cut(len(view.attack), self.held_out, rng)
        shares = np.bincount(view.attack.sensitive[training]) / len(training)
        values = rng.choice(len(shares), len(view.target), p=shares).astype(np.int8)
        kept_values = rng.choice(len(shares), len(kept), p=shares).astype(np.int8)
        return Guess(values, shares[values], kept, kept_values, shares[kept_values])
