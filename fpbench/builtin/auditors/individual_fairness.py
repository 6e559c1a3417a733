"""An audit of individual fairness: whether similar people get the same label."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from fpbench import Auditor, Measures, Subject, individual_fairness
from fpbench.auditing import SimilarityReport
from fpbench.builtin.auditors._group_ends import group_ends
from fpbench.builtin.auditors._group_rates import NOTIONS, counts_by_group, measured_of

_SHARES = (
    "pair_consistency",
    "pair_consistency_of_others",
    "isolated",
    "certified_consistency",
)


def _several(given: Any) -> Any:
    """Accept one name, and a list as a file has it."""
    return tuple(given) if isinstance(given, list | tuple) else (given,)


class IndividualFairness(Auditor):
    """How often people who are similar get the same label, and how often they must.

    Similar are people of the same categories, none of whose numbers differ by more than tau, scaled
    to [0, 1]: by the bounds that the data set declares (its `domain`), else by the range of the
    training people. `scaled_by_range` names the numbers of which that is so.

    `pair_consistency`: share of people all of whose similar people have their label. `isolated`:
    share of people to whom nobody is similar, who are consistent for that alone;
    `pair_consistency_of_others` is that of the rest. `certified_consistency`: share of people for
    whom every input within tau has their label, whether anybody has it or not; never greater than
    `pair_consistency`. It needs a model whose rules come from a tree; of any other it is undefined,
    and `certified_note` says why. `accuracy_of_certified`: their accuracy. With `free` these
    five are measured again, called `..._free`: people who differ in nothing but
    these features are similar, and they may have any value.

    The sensitive attribute is no feature and plays no part in who is similar, so that it is always
    free: a learner that is told it to predict shows that in its pairs, and has no rules.

    `independence_gap`, `separation_gap` and `sufficiency_gap` are those of `group-fairness`. All is
    exact, and about these people: none of it is an estimate.

    References
    ----------
    Dwork, Hardt, Pitassi, Reingold, Zemel: Fairness through Awareness. ITCS 2012. Ranzato, Urban,
    Zanella: Fairness-Aware Training of Decision Trees by Abstract Interpretation. CIKM 2021. See
    docs/individual-fairness.md.
    """

    name = "individual-fairness"
    summary = "do similar people get the same label: pairs, and certified for trees"
    reference = (
        "Ranzato, Urban, Zanella. Fairness-Aware Training of Decision Trees by Abstract "
        "Interpretation. CIKM 2021"
    )
    sees = frozenset({"features", "labels", "sensitive", "predictions", "model"})

    tau: float = Field(
        0.05, ge=0, lt=1, description="how far the numbers of similar people are apart at most"
    )
    free: Annotated[tuple[str, ...], BeforeValidator(_several)] = Field(
        (), description="features that may have any value, in the measures `..._free`"
    )
    part: Literal["test", "train"] = Field("test", description="the people it is about")

    def audit(self, subject: Subject, rng: np.random.Generator) -> Measures:
        """Measure.

        Raises
        ------
        InputError
            If there is no such free feature, a number without bounds is the same for all training
            people, or the model's rules do not predict what it predicts.
        """
        people = subject.test if self.part == "test" else subject.train
        measured = self._of(subject, ())
        if self.free:
            again = self._of(subject, self.free)
            repeated = (*_SHARES, "accuracy_of_certified")
            measured |= {f"{name}_free": again[name] for name in repeated}
        counts = counts_by_group(people)
        gaps = measured_of(counts, group_ends(people.groups))
        for notion in NOTIONS:
            gap = float(gaps[f"{notion}_gap"])
            measured[f"{notion}_gap"] = None if np.isnan(gap) else gap
        return measured

    def _of(self, subject: Subject, free: tuple[str, ...]) -> Measures:
        """Everything that is about similar people, with these features free."""
        people = subject.test if self.part == "test" else subject.train
        report = individual_fairness(
            subject.model, people.features, tau=self.tau, free=free, domain=people.domain,
            reference=subject.train.features, predictions=people.predictions,
        )  # fmt: skip
        (found,) = report.table().to_dict("records")
        measured: Measures = {
            name: None if np.isnan(found[name]) else float(found[name]) for name in _SHARES
        }
        right = people.predictions == people.labels
        measured["accuracy_of_certified"] = _of_certified(report, right, self.tau)
        measured["certified_note"] = report.note
        measured["scaled_by_range"] = ", ".join(report.ranged) or None
        return measured


def _of_certified(report: SimilarityReport, right: Any, tau: float) -> float | None:
    """Share of the certified who are predicted their label; None if nobody is known to be one."""
    certified = np.zeros(len(right), bool) if report.region is None else report.region > tau
    return float(right[certified].mean()) if certified.any() else None
