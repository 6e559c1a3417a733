"""An adversary: it guesses the group of everyone the target was trained on."""

# `fpbench check .` runs it with three groups, and twice with one seed, and checks that it does not
# modify its input. If it has no answer, it raises `fpbench.InputError`. The difficult inputs:
# - the attack set is one person
# - the attack set is empty

import numpy as np

from fpbench import Adversary, Guess, View, hookimpl


class Example(Adversary):
    """Guesses the most common group of the attack set; `sees` declares its input."""

    name = "example-name"
    summary = "guesses the most common group of the attack set"
    sees = frozenset({"features"})

    def guess(self, view: View, rng: np.random.Generator) -> Guess:
        """Count the groups of the attack set, and use their shares as beliefs about everyone."""
        counts = np.bincount(view.attack.sensitive, minlength=len(view.attack.groups)) + 1
        n, m, shares = len(view.target), len(view.attack), counts / counts.sum()
        held_out = np.arange(m)  # people on whom fpbench calibrates the beliefs
        return Guess.from_beliefs(np.tile(shares, (n, 1)), held_out, np.tile(shares, (m, 1)))


@hookimpl
def fpbench_adversaries() -> list[type[Adversary]]:
    """Register the component."""
    return [Example]
