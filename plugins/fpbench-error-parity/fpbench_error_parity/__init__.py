"""Thresholds of error-parity as a learner of fpbench."""

from fpbench import Lazy, hookimpl


@hookimpl
def fpbench_learners() -> list[Lazy]:
    """One learner."""
    return [Lazy("relaxed-odds", "fpbench_error_parity.relaxed_odds:RelaxedOdds")]
