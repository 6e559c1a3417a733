"""The smallest fpbench plugin: an adversary that uses only what it knows of other people."""

import numpy as np

from fpbench import Adversary, Guess, View, hookimpl


class Majority(Adversary):
    """Guess that everybody belongs to the largest group of the attack set."""

    name = "majority-hello"
    summary = "guesses the most common group of the attack set"
    sees = frozenset({"features"})  # of the people it attacks; a view holds nothing else

    def guess(self, view: View, rng: np.random.Generator) -> Guess:
        codes, k = view.attack.sensitive, len(view.attack.groups)
        held_out = np.arange(0, len(codes), 2)  # on whom fpbench measures how far to trust it
        counts = np.bincount(codes[1::2], minlength=k) + 1  # learnt from the others
        n, m, shares = len(view.target), len(held_out), counts / counts.sum()
        return Guess.from_beliefs(np.tile(shares, (n, 1)), held_out, np.tile(shares, (m, 1)))


@hookimpl
def fpbench_adversaries() -> list[type[Adversary]]:
    return [Majority]
