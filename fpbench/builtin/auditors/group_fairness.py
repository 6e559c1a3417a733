"""An audit of group fairness that sees the sensitive attribute."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fpbench import Auditor, Measure, MeasureValues, Subject
from fpbench.auditing import make_suffixes
from fpbench.builtin.auditors._groups import GAPS, count_by_group, measure_counts


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
