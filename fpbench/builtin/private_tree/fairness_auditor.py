"""An audit of individual fairness: whether similar people get the same label."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from fpbench import Auditor, Measure
from fpbench.auditing import make_suffixes
from fpbench.builtin.auditors.group_fairness import GAPS, NOTIONS, count_by_group, measure_counts
from fpbench.builtin.private_tree.individual_fairness.measure import (
    SimilarityReport,
    individual_fairness,
)
from fpbench.plugin import MeasureFigure, MeasureValues, Subject

_SHARES = (
    "pair_consistency",
    "pair_consistency_of_others",
    "isolated",
    "certified_consistency",
)


def _to_tuple(names: Any) -> Any:
    """One name, or a list of them, as a tuple."""
    return tuple(names) if isinstance(names, list | tuple) else (names,)


class IndividualFairness(Auditor):
    """How often similar people get the same label, and for how many that is certified.

    People are similar if they have the same categories and their numbers, scaled to [0, 1], differ
    by at most tau. Numbers are scaled by the bounds that the data set declares (its
    `domain`), else by the range of the training people; `scaled_by_range` names the latter.

    `pair_consistency`: share of people who get the same label as everybody similar. `isolated`:
    share of people without similar people, who count as consistent; `pair_consistency_of_others`:
    pair consistency of the rest. `certified_consistency`: share of people for whom every possible
    input within tau gets their label; never above `pair_consistency`. It needs a model whose rules
    come from a tree; otherwise it is undefined, and `certified_note` says why.
    `accuracy_of_certified`: accuracy for these people. With `free` these five are measured again,
    as `..._free`: the free features may have any value, so people who differ only in them are
    similar.

    The sensitive attribute is not a feature and does not affect similarity, so it is always free: a
    learner that needs it to predict shows that in its pairs, and has no rules.

    `independence_gap`, `separation_gap` and `sufficiency_gap` are those of `group-fairness`. All
    measures are exact for these people, not estimates.

    See docs/individual-fairness.md.
    """

    name = "individual-fairness"
    summary = "whether similar people get the same label: pairs, and certified for trees"
    reference = (
        "Dwork, Hardt, Pitassi, Reingold, Zemel. Fairness through Awareness. ITCS 2012; Ranzato, "
        "Urban, Zanella. Fairness-Aware Training of Decision Trees by Abstract Interpretation. "
        "CIKM 2021"
    )
    sees = frozenset({"features", "labels", "sensitive", "predictions", "model"})
    measures = (
        GAPS[0],
        Measure(
            "pair_consistency", "pairs", "greater", "share",
            "people whose similar people all have their label",
            figure=MeasureFigure(
                "consistency", "Consistency of private models",
                "Share of people whose similar people all have their label, and (dashed) of "
                "those for whom every similar input has it. Bands are 95 % intervals.",
                "consistency",
                (("pair_consistency", "pairs"), ("certified_consistency", "certified")),
                against="privacy",
            ),
        ),
        *Measure.table("always", """
        certified_consistency, certified | greater share | people for whom every similar input
            provably gets their label
        isolated | neither share | people without similar people
        """),
        *GAPS[1:],
        *Measure.table("asked", """
        pair_consistency_of_others | greater share | pair consistency of people with similar people
        accuracy_of_certified | greater share | certified people whose label the model predicts
        *_consistency*_free | greater share | the same with the free features left out of similarity
        isolated_free | neither share | the same with the free features left out of similarity
        accuracy_of_certified_free | greater share | the same with the free features left out of
            similarity
        certified_note | neither | why nobody is certified
        scaled_by_range | neither | numbers without bounds, scaled by those of the training people
        """),
    )  # fmt: skip

    tau: float = Field(
        0.05, ge=0, lt=1, description="greatest difference of similar people's scaled numbers"
    )
    free: Annotated[tuple[str, ...], BeforeValidator(_to_tuple)] = Field(
        (), description="features that may have any value, in the measures `..._free`"
    )
    part: Literal["test", "train"] = Field("test", description="the measured people")

    def audit(self, subject: Subject, rng: np.random.Generator) -> MeasureValues:
        """Measures of similar people, and the three gaps between groups.

        Raises InputError if a free feature does not exist, a number without bounds is the same for
        all training people, or the model's rules contradict its predictions.
        """
        people = subject.test if self.part == "test" else subject.train
        measured = self._measure(subject, ())
        if self.free:
            again = self._measure(subject, self.free)
            repeated = (*_SHARES, "accuracy_of_certified")
            measured |= {f"{name}_free": again[name] for name in repeated}
        counts = count_by_group(people)
        gaps = measure_counts(counts, make_suffixes(people.groups))
        for notion in NOTIONS:
            gap = float(gaps[f"{notion}_gap"])
            measured[f"{notion}_gap"] = None if np.isnan(gap) else gap
        return measured

    def _measure(self, subject: Subject, free: tuple[str, ...]) -> MeasureValues:
        """Measures of similar people, with these features free."""
        people = subject.test if self.part == "test" else subject.train
        report = individual_fairness(
            subject.model, people.features, tau=self.tau, free=free, domain=people.domain,
            reference=subject.train.features, predictions=people.predictions,
        )  # fmt: skip
        (shares,) = report.table().to_dict("records")
        measured: MeasureValues = {
            name: None if np.isnan(shares[name]) else float(shares[name]) for name in _SHARES
        }
        right = people.predictions == people.labels
        measured["accuracy_of_certified"] = _measure_certified(report, right, self.tau)
        measured["certified_note"] = report.note
        measured["scaled_by_range"] = ", ".join(report.ranged) or None
        return measured


def _measure_certified(report: SimilarityReport, right: Any, tau: float) -> float | None:
    """Share of certified people whose prediction is right; None if nobody is certified."""
    certified = np.zeros(len(right), bool) if report.region is None else report.region > tau
    return float(right[certified].mean()) if certified.any() else None
