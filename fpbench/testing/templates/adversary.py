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
        """Count groups in half of the attack set; their shares are the beliefs about everyone."""
        codes, k = view.attack.sensitive, len(view.attack.groups)
        held_out = np.arange(0, len(codes), 2)  # fpbench calibrates beliefs on people whose groups
        counts = np.bincount(codes[1::2], minlength=k) + 1  # taught the adversary nothing
        n, m, shares = len(view.target), len(held_out), counts / counts.sum()
        return Guess.from_beliefs(np.tile(shares, (n, 1)), held_out, np.tile(shares, (m, 1)))


@hookimpl
def fpbench_adversaries() -> list[type[Adversary]]:
    """Register the component."""
    return [Example]
