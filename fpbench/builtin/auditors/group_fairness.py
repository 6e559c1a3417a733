"""An audit of group fairness that sees the sensitive attribute."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fpbench import Auditor, Measure, MeasureValues, Subject
from fpbench.builtin.auditors._groups import GAPS, count_by_group, make_suffixes, measure_counts


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

    A group without members in a slice has no rate there and is not compared. If all rates are 0,
    their ratio is 1. Where no group has a rate, gap and ratio are undefined.

    `independence_gap` and `independence_ratio` are fairlearn's `demographic_parity_difference` and
    `demographic_parity_ratio`, those of separation its `equalized_odds_difference` and
    `equalized_odds_ratio`, and the rates those of its `MetricFrame`.

    Notes
    -----
    Intervals are percentile bootstrap intervals (Efron, 1979) of people drawn with replacement
    regardless of group: they are about the population that the people were sampled from, whose
    shares of groups are not known either. A resample is a multinomial draw of the counts by label,
    prediction and group, which is equivalent and whose cost does not depend on the number of
    people. Gaps are never negative, so even of equal groups the lower end lies above 0. A resample
    in which a rate or gap is undefined is left out for that measure.
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
        *_ratio | greater ratio | least rate of a group over the greatest
        people_* | neither people | people of a group
        *_rate_* | neither share | a rate in one group
        *_predictive_value_* | neither share | people of a group predicted alike who have that label
        """),
    )  # fmt: skip

    part: Literal["test", "train"] = Field("test", description="the people that are measured")
    resamples: int = Field(
        2_000, ge=0, le=1_000_000, description="bootstrap resamples; 0 gives no intervals"
    )
    confidence: float = Field(0.95, gt=0, lt=1, description="of the intervals")

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
