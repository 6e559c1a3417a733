"""The corrector that leaves the guess as it is."""

from __future__ import annotations

from fpbench import Component, Correction, Corrector, Problem


class NoCorrection(Corrector):
    """The adversary's guess, unchanged: the baseline of corrections.

    It needs no claim, so it is compatible with every disclosure.
    """

    name = "none"
    summary = "leaves the guess as it is"

    def incompatible(self, other: Component) -> None:
        """None: it is compatible with everything."""

    def correct(self, problem: Problem) -> Correction:
        """A copy of the guess; nothing is solved, so there is no status."""
        return Correction(problem.guess.copy(), None)
