"""Names that others give the metrics of reports: those of fairlearn, scikit-learn and papers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from fpbench.base.argument_types import check_arguments
from fpbench.base.errors import InputError, find_near_name
from fpbench.base.text import hyphenate
from fpbench.reports.slices import REPORT_METRICS


class Reading(NamedTuple):
    """What a name tells: one of `REPORT_METRICS`, perhaps 1 less it."""

    metric: str
    from_one: bool = False


_SAME: Mapping[str, str] = {
    "selection-rate": "positive-rate, positive-prediction-rate, acceptance-rate",
    "true-positive-rate": "tpr, recall, recall-score, sensitivity, hit-rate",
    "false-positive-rate": "fpr, fall-out",
    "selected": "predicted-positives",
    "rejected": "predicted-negatives",
    "true-positives": "tp",
    "false-positives": "fp",
    "false-negatives": "fn",
    "true-negatives": "tn",
}
_FROM_ONE: Mapping[str, str] = {
    "selection-rate": "rejection-rate",
    "true-positive-rate": "false-negative-rate, fnr, miss-rate",
    "false-positive-rate": "true-negative-rate, tnr, specificity",
}
READINGS: Mapping[str, Reading] = (
    {metric: Reading(metric) for metric in REPORT_METRICS}
    | {name: Reading(own) for own, names in _SAME.items() for name in names.split(", ")}
    | {name: Reading(own, True) for own, names in _FROM_ONE.items() for name in names.split(", ")}
)
"""By every name that is read, as `hyphenate` writes it."""

_UNREAD = frozenset({
    "accuracy", "accuracy-score", "balanced-accuracy", "balanced-accuracy-score", "error-rate",
    "zero-one-loss", "precision", "precision-score", "ppv", "positive-predictive-value", "npv",
    "negative-predictive-value", "fdr", "false-discovery-rate", "false-omission-rate", "f1",
    "f1-score", "f-score", "auc", "roc-auc", "roc-auc-score", "log-loss", "brier-score", "mcc",
})  # fmt: skip
"""Metrics of the field that reports are not read for, though they tell of groups, too."""

_SIZES = frozenset({"count", "counts", "n", "size", "group-size", "support", "sample-size"})
"""What others call the number of people, as fairlearn's `count`."""


def read_metric(name: str) -> Reading | None:
    """What a name tells, however it is written: `TPR`, `Selection rate`; None if it is unknown."""
    return READINGS.get(hyphenate(name))


@check_arguments
def parse_report_metric(name: str) -> str:
    """The metric of reports that a name stands for.

    Parameters
    ----------
    name
        One of `REPORT_METRICS`, or another name of it: `selection_rate`, `TPR`.

    Raises
    ------
    InputError
        If it is unknown, or 1 less a metric, as `FNR` is.
    """
    reading = read_metric(name)
    if reading is None:
        raise InputError(explain_unknown(name))
    if reading.from_one:
        raise InputError(f"the metric {name!r} is 1 less the {reading.metric}: name that")
    return reading.metric


def find_near_metric(name: object) -> str | None:
    """The name nearest to one that nothing has; of known metrics that are not read, none."""
    written = hyphenate(name) if isinstance(name, str) else ""
    return None if written in _UNREAD else find_near_name(written, READINGS)


def explain_unknown(name: object) -> str:
    """The message about a name that no metric of reports has."""
    if isinstance(name, str) and hyphenate(name) in _SIZES:
        return (
            f"{name!r} is not a metric: put the number of people into column 'n', beside each rate"
        )
    if isinstance(name, str) and hyphenate(name).endswith(("difference", "ratio")):
        return (
            f"{name!r} compares groups, and is not read, though it may tell of people: give the "
            "rate of each group"
        )
    near = find_near_metric(name)
    hint = f"did you mean {near!r}?" if near else f"valid: {', '.join(REPORT_METRICS)}"
    return f"unknown metric {name!r}; {hint}"
