"""Adversaries that know the shares of the groups alone."""

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
