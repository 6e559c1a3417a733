"""Attribute-inference attacks of the Adversarial Robustness Toolbox as adversaries of fpbench."""

from fpbench import hookimpl
from fpbench.plugin import Lazy


@hookimpl
def fpbench_adversaries() -> list[Lazy]:
    """Peers of `a1` and `a2`, and one that sees features only."""
    return [
        Lazy("art-baseline", "fpbench_art.attacks:Baseline"),
        Lazy("art-true-label", "fpbench_art.attacks:TrueLabel"),
        Lazy("art-black-box", "fpbench_art.attacks:BlackBox"),
    ]
