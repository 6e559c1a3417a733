"""An audit of group fairness that sees the sensitive attribute."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fpbench import Auditor, Measure, Sample
from fpbench.auditing import make_suffixes
from fpbench.plugin import MeasureValues, Subject

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


class GroupFairness(Auditor):
    """Independence, separation and sufficiency, from visible groups.

    For every group: `selection_rate` (predicted 1), `true_positive_rate` and `false_positive_rate`
    (predicted 1, given label 1 or label 0), `positive_predictive_value` and `false_omission_rate`
    (label 1, given prediction 1 or 0), `negative_predictive_value` (1 minus the last); a measure is
    named after the rate and the group, `selection_rate_female`. For every rate the `gap`, the
    greatest difference of two groups, and the `ratio`, the least rate divided by the greatest. The
    three notions are the worst of their rates: `independence_gap` of the selection rates,
    `separation_gap` of the true and false positive rates, `sufficiency_gap` of the positive
    predictive values and false omission rates (the event of both is label 1), and the `ratio` of
    each.

    A group without members in a slice has no rate there and is not compared. If all rates are 0,
    their ratio is 1. If no group has a rate, gap and ratio are undefined.

    `independence_gap` and `independence_ratio` are fairlearn's `demographic_parity_difference` and
    `demographic_parity_ratio`, those of separation its `equalized_odds_difference` and
    `equalized_odds_ratio`, and the rates those of its `MetricFrame`.

    Notes
    -----
    Intervals are percentile bootstrap intervals (Efron, 1979) of people drawn with replacement
    regardless of group: they are about the population that the people were sampled from, whose
    shares of groups are unknown too. A resample is a multinomial draw of the counts by label,
    prediction and group, which is equivalent and whose cost does not depend on the number of
    people. Gaps are never negative, so the lower end is above 0 even for equal groups. A resample
    with an undefined rate or gap is left out for that measure.
    """

    name = "group-fairness"
    summary = "independence, separation and sufficiency: gaps, ratios, group rates, with intervals"
    reference = "Barocas, Hardt & Narayanan, Fairness and Machine Learning, MIT Press 2023, ch. 3"
    sees = frozenset({"labels", "sensitive", "predictions"})
    measures = (
        *GAPS,
        *Measure.table("asked", """
        *_gap_interval_* | neither | an end of the bootstrap interval of a gap
        *_ratio_interval_* | neither | an end of the bootstrap interval of a ratio
        *_interval_* | neither share | an end of the bootstrap interval of a rate
        *_gap | less | greatest difference of a rate between groups
        *_ratio | greater ratio | least rate of a group divided by the greatest
        people_* | neither people | number of people of a group
        *_rate_* | neither share | a rate in one group
        *_predictive_value_* | neither share | share of the label, given the prediction, in a group
        """),
    )  # fmt: skip

    part: Literal["test", "train"] = Field("test", description="the measured people")
    resamples: int = Field(
        2_000, ge=0, le=1_000_000, description="bootstrap resamples; 0 gives no intervals"
    )
    confidence: float = Field(0.95, gt=0, lt=1, description="confidence level of the intervals")

    def audit(self, subject: Subject, rng: np.random.Generator) -> MeasureValues:
        """Rates, gaps and ratios, with bootstrap intervals."""
        people = subject.test if self.part == "test" else subject.train
        counts = count_by_group(people)
        names = make_suffixes(people.groups)
        measured = measure_counts(counts, names)
        drawn = {}
        if self.resamples:
            flat = counts.ravel()
            resampled = rng.multinomial(flat.sum(), flat / flat.sum(), size=self.resamples)
            drawn = measure_counts(resampled.reshape(-1, *counts.shape), names)
        tails = (1 - self.confidence) / 2, (1 + self.confidence) / 2
        members = counts.sum(axis=(0, 1))
        measures: MeasureValues = {
            f"people_{name}": int(count) for name, count in zip(names, members, strict=True)
        }
        for name, value in measured.items():
            measures[name] = None if np.isnan(value) else float(value)
            if name in drawn:
                ends = _find_ends(drawn[name], tails) if measures[name] is not None else (None,) * 2
                measures[f"{name}_interval_low"], measures[f"{name}_interval_high"] = ends
        return measures


def _find_ends(
    drawn: NDArray[np.float64], levels: tuple[float, float]
) -> tuple[float | None, float | None]:
    """Quantiles of the defined draws; None if there are none."""
    defined = drawn[~np.isnan(drawn)]
    if not defined.size:
        return None, None
    low, high = np.quantile(defined, levels)
    return float(low), float(high)
