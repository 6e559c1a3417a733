"""The smallest fpbench plugin: an adversary that needs to see nothing of anybody."""

import numpy as np

from fpbench import Adversary, Guess, View, hookimpl


class Majority(Adversary):
    """Guess that everybody belongs to the largest group of the attack set."""

    name = "majority-hello"
    summary = "guesses the most common group of the attack set"
    sees = frozenset({"features"})

    def guess(self, view: View, rng: np.random.Generator) -> Guess:
        counts = np.bincount(view.attack.sensitive, minlength=len(view.attack.groups))
        group, sure = int(counts.argmax()), float(counts.max() / max(counts.sum(), 1))
        n, m = len(view.target), len(view.attack)
        return Guess(
            np.full(n, group), np.full(n, sure), np.arange(m), np.full(m, group), np.full(m, sure)
        )


@hookimpl
def fpbench_adversaries() -> list[type[Adversary]]:
    return [Majority]
