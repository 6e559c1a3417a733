"""The smallest fpbench plugin: an adversary that uses only what it knows of other people."""

import numpy as np

from fpbench import Adversary, Guess, View, hookimpl


class Majority(Adversary):
    """Guess that everybody belongs to the largest group of the attack set."""

    name = "majority-hello"
    summary = "guesses the most common group of the attack set"
    sees = frozenset({"features"})  # of the people it attacks; a view holds nothing else

    def guess(self, view: View, rng: np.random.Generator) -> Guess:
        counts = np.bincount(view.attack.sensitive, minlength=len(view.attack.groups))
        group, sure = counts.argmax(), counts.max() / max(counts.sum(), 1)
        n, m = len(view.target), len(view.attack)
        held_out = np.arange(m), np.full(m, group), np.full(m, sure)  # how good is it? on these
        return Guess(np.full(n, group), np.full(n, sure), *held_out)


@hookimpl
def fpbench_adversaries() -> list[type[Adversary]]:
    return [Majority]
