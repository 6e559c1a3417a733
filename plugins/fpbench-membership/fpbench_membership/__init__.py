"""Membership inference by group, and lower bounds on epsilon from models trained with canaries."""

import lazy_loader

from fpbench import hookimpl
from fpbench.plugin import Lazy

# Without its `__dir__`: by `dir`, pluggy looks for hooks.
__getattr__, _, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "attacks": [
            "compute_confidence",
            "compute_log_odds",
            "score_answers",
            "score_fairness_discrepancy",
            "score_lira",
            "score_loss",
            "score_rmia",
        ],
        "measure": ["MembershipReport", "measure_membership"],
        "one_run": ["bound_epsilon_one_run", "compute_one_run_p_value"],
    },
)


@hookimpl
def fpbench_auditors() -> list[Lazy]:
    """Two auditors."""
    return [
        Lazy("epsilon-lower-bound", "fpbench_membership.epsilon_lower_bound:EpsilonLowerBound"),
        Lazy("membership", "fpbench_membership.membership:Membership"),
    ]
