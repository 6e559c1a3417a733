"""Which measure lines are ranked by, and which way."""

from __future__ import annotations

from collections.abc import Set

from fpbench.components.own_measures import MEASURES

_OF_AUDITS = ("error", "independence_gap", "risk_gap_train")
"""What audits are ranked by where the measure to rank by is one of attacks."""
_LEAST_FIRST = frozenset({
    "error", "independence_gap", "separation_gap", "sufficiency_gap", "interval_width",
    "invalid_ratio", "risk_gap_train", "risk_gap_test", "risk_train", "risk_test", "loss_train",
    "loss_test", "sensitivity", "sensitivity_squared", "flip_probability", "leak", "mean_leak",
    "seconds", "changes", "solver_gap", "error_deviation", "relaxed_tolerance",
})  # fmt: skip
_LEAST_FIRST_ENDS = ("_seconds", "_unfairness", "_epsilon", "_error")
"""Measures of which less is better; and ends of the names of such."""


def least_first(measure: str) -> bool:
    """Whether less of a measure is better."""
    return measure in _LEAST_FIRST or measure.endswith(_LEAST_FIRST_ENDS)


def ranked_by(wanted: str, measured: Set[str]) -> str:
    """The measure that lines are ranked by: audits have none of those that only attacks have."""
    if wanted in MEASURES and wanted not in measured:
        return next((name for name in _OF_AUDITS if name in measured), wanted)
    return wanted
