"""The smallest fpbench plugin: an adversary that uses only what it knows of other people."""

import numpy as np

from fpbench import Adversary, Guess, View, hookimpl


class Majority(Adversary):
    """Guess that everybody belongs to the largest group of the attack set."""

    name = "majority-hello"
    summary = "guesses the most common group of the attack set"
    sees = frozenset({"features"})  # of the people it attacks; a view holds nothing else

    def guess(self, view: View, rng: np.random.Generator) -> Guess:
        counts = np.bincount(view.attack.sensitive, minlength=len(view.attack.groups)) + 1
        n, m, shares = len(view.target), len(view.attack), counts / counts.sum()
        held_out = np.arange(m)  # people on whom fpbench measures how far to trust it
        return Guess.from_beliefs(np.tile(shares, (n, 1)), held_out, np.tile(shares, (m, 1)))


@hookimpl
def fpbench_adversaries() -> list[type[Adversary]]:
    return [Majority]
