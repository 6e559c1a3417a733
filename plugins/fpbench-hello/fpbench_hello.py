"""The smallest fpbench plugin: an adversary that needs to see nothing of anybody."""

import numpy as np

from fpbench import Adversary, Guess, View, hookimpl


class Majority(Adversary):
    """Guess that everybody belongs to the largest group of the attack set."""

    name = "majority-hello"
    summary = "guesses the most common group of the attack set"
    sees = frozenset({"features"})

    def guess(self, view: View, rng: np.random.Generator) -> Guess:
        shares = np.bincount(view.attack.sensitive) / len(view.attack)
        group, sure = int(np.argmax(shares)), float(shares.max())
        n, m = len(view.target), len(view.attack)
        return Guess(
            np.full(n, group), np.full(n, sure), np.arange(m), np.full(m, group), np.full(m, sure)
        )


@hookimpl
def fpbench_adversaries() -> list[type[Adversary]]:
    return [Majority]
