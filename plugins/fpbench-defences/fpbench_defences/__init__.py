"""Learners that defend groups or people, and the disclosure of a private audit, for fpbench."""

from fpbench import hookimpl
from fpbench.plugin import Lazy


@hookimpl
def fpbench_learners() -> list[Lazy]:
    """Learners that are fair, private, or both."""
    return [
        Lazy("adversarial", "fpbench_defences.adversarial:Adversarial"),
        Lazy("distilled", "fpbench_defences.distilled:Distilled"),
        Lazy("fare", "fpbench_defences.fare:Fare"),
        Lazy("lipschitz", "fpbench_defences.lipschitz:Lipschitz"),
        Lazy("pflr", "fpbench_defences.pflr:Pflr"),
        Lazy("synthetic", "fpbench_defences.synthetic:Synthetic"),
    ]


@hookimpl
def fpbench_disclosures() -> list[Lazy]:
    """What a private audit releases."""
    return [Lazy("dp-release", "fpbench_defences.dp_release:DPRelease")]
