"""Rates of groups, their gaps and ratios."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fpbench import Measure, Sample

_RATES = (
    "selection_rate",
    "true_positive_rate",
    "false_positive_rate",
    "positive_predictive_value",
    "negative_predictive_value",
    "false_omission_rate",
)
NOTIONS = {
    "independence": ("selection_rate",),
    "separation": ("true_positive_rate", "false_positive_rate"),
    "sufficiency": ("positive_predictive_value", "false_omission_rate"),
}
"""The rates that must be equal in all groups, by notion of fairness."""
GAPS = (
    Measure("independence_gap", "independence", "less", "",
            "greatest difference of the groups' selection rates"),
    Measure("separation_gap", "separation", "less", "",
            "greatest difference of the groups' true or false positive rates"),
    Measure("sufficiency_gap", "sufficiency", "less", "",
            "greatest difference of the groups' positive predictive values or false "
            "omission rates"),
)  # fmt: skip
"""The greatest differences between groups, as auditors declare them."""


def count_by_group(people: Sample) -> NDArray[np.int64]:
    """People by label, prediction and group: (2, 2, K)."""
    k = len(people.groups)
    cells = (2 * people.labels.astype(np.intp) + people.predictions) * k + people.sensitive
    return np.bincount(cells, minlength=4 * k).reshape(2, 2, k)


def measure_counts(counts: NDArray[np.int64], names: list[str]) -> dict[str, NDArray[np.float64]]:
    """All measures of counts (..., 2, 2, K), each (...); NaN where undefined."""
    rates = _measure_rates(counts)
    gaps = {name: _measure_gap(rate) for name, rate in rates.items()}
    ratios = {name: _measure_ratio(rate) for name, rate in rates.items()}
    measures = {}
    for notion, parts in NOTIONS.items():
        measures[f"{notion}_gap"] = np.fmax.reduce([gaps[part] for part in parts])
        measures[f"{notion}_ratio"] = np.fmin.reduce([ratios[part] for part in parts])
    for name in _RATES[1:]:  # the gap of the selection rates is that of independence
        measures[f"{name}_gap"], measures[f"{name}_ratio"] = (
            gaps[name],
            ratios[name],
        )
    for rate in _RATES:
        for k, group in enumerate(names):
            measures[f"{rate}_{group}"] = rates[rate][..., k]
    return measures


def _measure_rates(counts: NDArray[np.int64]) -> dict[str, NDArray[np.float64]]:
    """Rates of the groups (..., K), in the order of `_RATES`; NaN for a group without members."""
    right_no, wrong_yes = counts[..., 0, 0, :], counts[..., 0, 1, :]
    wrong_no, right_yes = counts[..., 1, 0, :], counts[..., 1, 1, :]
    yes, no = right_yes + wrong_yes, right_no + wrong_no
    shares = (
        (yes, yes + no),
        (right_yes, right_yes + wrong_no),
        (wrong_yes, wrong_yes + right_no),
        (right_yes, yes),
        (right_no, no),
        (wrong_no, no),
    )
    return {
        name: np.divide(some, all_, out=np.full(all_.shape, np.nan), where=all_ > 0)
        for name, (some, all_) in zip(_RATES, shares, strict=True)
    }


def _measure_gap(rates: NDArray[np.float64]) -> NDArray[np.float64]:
    """The greatest difference of the defined rates (..., K)."""
    return np.asarray(np.fmax.reduce(rates, axis=-1) - np.fmin.reduce(rates, axis=-1))


def _measure_ratio(rates: NDArray[np.float64]) -> NDArray[np.float64]:
    """The least divided by the greatest of the defined rates (..., K)."""
    least, greatest = np.fmin.reduce(rates, axis=-1), np.fmax.reduce(rates, axis=-1)
    alike = np.where(np.isnan(greatest), np.nan, 1.0)
    return np.divide(least, greatest, out=alike, where=greatest > 0)
