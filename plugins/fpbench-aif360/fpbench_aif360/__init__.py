"""Preprocessing of AI Fairness 360 as learners of fpbench."""

from fpbench import hookimpl
from fpbench.plugin import Lazy


@hookimpl
def fpbench_learners() -> list[Lazy]:
    """Two learners: one weighs people, one edits features."""
    return [
        Lazy("aif360-reweighing", "fpbench_aif360.reweighing:Reweighing"),
        Lazy(
            "aif360-disparate-impact-remover",
            "fpbench_aif360.disparate_impact_remover:DisparateImpactRemover",
        ),
    ]
