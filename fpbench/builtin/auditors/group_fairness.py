"""An audit of group fairness that sees everything: the yardstick of those that do not."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fpbench import Auditor, Measures, Sample, Subject
from fpbench.builtin.auditors._group_ends import group_ends

_RATES = (
    "selection_rate",
    "true_positive_rate",
    "false_positive_rate",
    "positive_predictive_value",
    "negative_predictive_value",
    "false_omission_rate",
)
_NOTIONS = {
    "independence": ("selection_rate",),
    "separation": ("true_positive_rate", "false_positive_rate"),
    "sufficiency": ("positive_predictive_value", "false_omission_rate"),
}
"""What must be the same in all groups, by what it is called."""


class GroupFairness(Auditor):
    """Independence, separation and sufficiency, with the sensitive attribute in the open.

    Of every group: `selection_rate` (predicted 1), `true_positive_rate` and `false_positive_rate`
    (predicted 1, of label 1 and of label 0), `positive_predictive_value` and `false_omission_rate`
    (label 1, of those predicted 1 and of those predicted 0), `negative_predictive_value` (1 less
    the last); a measure is called by the rate and the group, `selection_rate_female`. Of every rate
    the `gap`, the greatest difference of two groups, and the `ratio`, the least rate divided by the
    greatest. The three notions are the worst of their rates: `independence_gap` of the selection
    rates, `separation_gap` of the true and false positive rates, `sufficiency_gap` of the positive
    predictive values and false omission rates (in both of which the event is label 1), and the
    `ratio` of each.

    A group without members in a slice has no rate there, and is not compared. If all rates are 0,
    they are alike: their ratio is 1. Where nobody has a rate, gap and ratio are undefined.

    `independence_gap` and `independence_ratio` are fairlearn's `demographic_parity_difference` and
    `demographic_parity_ratio`, those of separation its `equalized_odds_difference` and
    `equalized_odds_ratio`, and the rates those of its `MetricFrame`.

    Notes
    -----
    Intervals are percentile bootstrap intervals (Efron, 1979) of people drawn with replacement,
    whatever their group: they speak of the population that the people are a sample of, in which
    the groups' shares are not known either. A resample is a multinomial draw of the counts by
    label, prediction and group, which is the same and does not depend on how many people there
    are. Gaps are never negative, so that of equal groups even the lower end lies above 0. A
    resample in which a rate or gap is undefined does not count for it.

    References
    ----------
    Barocas, Hardt, Narayanan: Fairness and Machine Learning. MIT Press 2023, chapter 3.
    """

    name = "group-fairness"
    summary = "independence, separation and sufficiency: gaps, ratios, group rates, with intervals"
    reference = "Barocas, Hardt & Narayanan, Fairness and Machine Learning, MIT Press 2023, ch. 3"
    sees = frozenset({"labels", "sensitive", "predictions"})

    part: Literal["test", "train"] = Field("test", description="the people it is about")
    resamples: int = Field(
        2_000, ge=0, le=1_000_000, description="bootstrap resamples; 0 gives no intervals"
    )
    confidence: float = Field(0.95, gt=0, lt=1, description="of the intervals")

    def audit(self, subject: Subject, rng: np.random.Generator) -> Measures:
        """Measure rates, gaps and ratios, and what they might as well have been."""
        people = subject.test if self.part == "test" else subject.train
        counts = _counts(people)
        names = group_ends(people.groups)
        found = _measured(counts, names)
        drawn = {}
        if self.resamples:
            flat = counts.ravel()
            resampled = rng.multinomial(flat.sum(), flat / flat.sum(), size=self.resamples)
            drawn = _measured(resampled.reshape(-1, *counts.shape), names)
        tails = (1 - self.confidence) / 2, (1 + self.confidence) / 2
        members = counts.sum(axis=(0, 1))
        measures: Measures = {
            f"people_{name}": int(count) for name, count in zip(names, members, strict=True)
        }
        for name, value in found.items():
            measures[name] = None if np.isnan(value) else float(value)
            if name in drawn:
                ends = _quantiles(drawn[name], tails) if measures[name] is not None else (None,) * 2
                measures[f"{name}_interval_low"], measures[f"{name}_interval_high"] = ends
        return measures


def _counts(people: Sample) -> NDArray[np.int64]:
    """People by label, prediction and group: (2, 2, K)."""
    k = len(people.groups)
    cells = (2 * people.labels.astype(np.intp) + people.predictions) * k + people.sensitive
    return np.bincount(cells, minlength=4 * k).reshape(2, 2, k)


def _measured(counts: NDArray[np.int64], names: list[str]) -> dict[str, NDArray[np.float64]]:
    """Everything that is measured of counts (..., 2, 2, K), each (...); NaN where undefined."""
    rates = _rates(counts)
    gaps = {name: _gap(rate) for name, rate in rates.items()}
    ratios = {name: _ratio(rate) for name, rate in rates.items()}
    found = {}
    for notion, parts in _NOTIONS.items():
        found[f"{notion}_gap"] = np.fmax.reduce([gaps[part] for part in parts])
        found[f"{notion}_ratio"] = np.fmin.reduce([ratios[part] for part in parts])
    for name in _RATES[1:]:  # the gap of the selection rates is that of independence
        found[f"{name}_gap"], found[f"{name}_ratio"] = gaps[name], ratios[name]
    for rate in _RATES:
        for k, group in enumerate(names):
            found[f"{rate}_{group}"] = rates[rate][..., k]
    return found


def _rates(counts: NDArray[np.int64]) -> dict[str, NDArray[np.float64]]:
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


def _gap(rates: NDArray[np.float64]) -> NDArray[np.float64]:
    """The greatest difference of the rates (..., K) that there are."""
    return np.asarray(np.fmax.reduce(rates, axis=-1) - np.fmin.reduce(rates, axis=-1))


def _ratio(rates: NDArray[np.float64]) -> NDArray[np.float64]:
    """The least divided by the greatest of the rates (..., K) that there are."""
    least, greatest = np.fmin.reduce(rates, axis=-1), np.fmax.reduce(rates, axis=-1)
    alike = np.where(np.isnan(greatest), np.nan, 1.0)
    return np.divide(least, greatest, out=alike, where=greatest > 0)


def _quantiles(
    drawn: NDArray[np.float64], levels: tuple[float, float]
) -> tuple[float | None, float | None]:
    """Quantiles of those that are defined; None if none are."""
    defined = drawn[~np.isnan(drawn)]
    if not defined.size:
        return None, None
    low, high = np.quantile(defined, levels)
    return float(low), float(high)
