"""An adversary: it guesses the group of everyone the target was trained on."""

import numpy as np

from fpbench import Adversary, Guess, View, hookimpl


class Example(Adversary):
    """Guesses the most common group of the attack set; `sees` declares what it gets."""

    name = "example-name"
    summary = "guesses the most common group of the attack set"
    sees = frozenset({"features"})

    def guess(self, view: View, rng: np.random.Generator) -> Guess:
        """Count the attack set, whose groups are known, and guess the same for everyone."""
        counts = np.bincount(view.attack.sensitive, minlength=len(view.attack.groups))
        group, sure = int(counts.argmax()), float(counts.max() / max(counts.sum(), 1))
        n, m = len(view.target), len(view.attack)
        return Guess(
            np.full(n, group), np.full(n, sure), np.arange(m), np.full(m, group), np.full(m, sure)
        )


@hookimpl
def fpbench_adversaries() -> list[type[Adversary]]:
    """Register it."""
    return [Example]
