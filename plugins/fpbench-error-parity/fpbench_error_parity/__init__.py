"""Thresholds of error-parity as a learner of fpbench."""

from fpbench import hookimpl
from fpbench.plugin import Lazy


@hookimpl
def fpbench_learners() -> list[Lazy]:
    """One learner."""
    return [Lazy("relaxed-odds", "fpbench_error_parity.relaxed_odds:RelaxedOdds")]
