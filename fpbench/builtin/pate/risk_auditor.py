"""The excessive risk of people and groups: the cost of privacy in expected loss."""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import Field, model_validator

from fpbench import Auditor, Measure
from fpbench.auditing import make_suffixes
from fpbench.builtin.pate.excessive_risk.measure import RiskMethod, excessive_risk
from fpbench.builtin.pate.excessive_risk.report import RiskReport, rank_correlation
from fpbench.plugin import MeasureFigure, MeasureValues, Subject


class ExcessiveRisk(Auditor):
    """A private model's expected loss minus its baseline's, for each group.

    NOT PRIVATE: the baseline, the votes, flip probabilities and risks are functions of the private
    data without noise, which the learner's guarantee does not cover (`audit_private` is 0).

    `train` is the model's training data: for a student of votes the public people and their clean
    majority votes, else the training people and their labels; `test` the test people and their
    labels. Measures for each of the two (E): `risk_E` and `risk_gap_E` (greatest minus least group
    risk) with their standard errors `risk_error_E` and `risk_gap_error_E`; `loss_E` and
    `baseline_loss_E`, which put gaps into proportion; `expected_accuracy_E` and
    `baseline_accuracy_E`; `accuracy_gap_E`, as `risk_gap_E` of lost accuracy; `risk_bound_E`
    (Theorem 3, mean) and `risk_bound_holds_E` (for everybody); `rank_..._E`, rank correlations of
    people's input norm, gradient norm, closeness to the boundary, flip probability and risk. For
    each group G: `people_E_G`, `risk_E_G`, `risk_error_E_G`, `loss_E_G`, `baseline_loss_E_G`,
    `accuracy_lost_E_G`, `risk_bound_E_G`, `closeness_E_G`, `input_norm_E_G`, `gradient_norm_E_G`,
    `flip_probability_E_G`, `flip_drawn_E_G`. For the model: `sensitivity` (expected distance of
    parameters from the baseline's) and `sensitivity_squared` with their errors, mean flip
    probabilities, and for each bound B `bound_B` and `holds_B`. For each of six ranges r of the
    input norm `sensitivity_range_r`, `sensitivity_error_range_r`, `input_norm_range_r`,
    `flip_probability_range_r`, and over them `rank_norm_sensitivity`. Values that a learner or
    method does not provide are undefined.

    Standard errors are for independent draws: antithetic pairs count as one. For a gap it is that
    of the difference between the two groups with the extreme risks. In closed form they come from
    the delta method.

    For values of each person and tables call `fpbench.auditing.excessive_risk`. Formulas, and
    departures from the paper, are in docs/excessive-risk.md.
    """

    name = "excessive-risk"
    summary = "the cost of privacy in expected loss for each group, with the bounds of Tran et al."
    reference = (
        "Tran, Dinh, Beiter, Fioretto. A Fairness Analysis on Private Aggregation of Teacher "
        "Ensembles. arXiv:2109.08630, 2021"
    )
    sees = frozenset({"features", "labels", "sensitive", "model"})
    measures = (
        Measure(
            "risk_gap_train", "train gap", "less", "",
            "greatest difference of the groups' excessive risks, on the training data",
            figure=MeasureFigure(
                "risk", "Excessive risk",
                "Greatest difference of the groups' excessive risks, on the test part and "
                "(dashed) on the training data. Bands are 95 % intervals.",
                "gap of excessive risks",
                (("risk_gap_test", "test"), ("risk_gap_train", "trained on")),
            ),
        ),
        *Measure.table("always", """
        risk_gap_test, test gap | less | the same for the test people
        sensitivity | less | expected distance of the student's parameters from those without noise
        expected_accuracy_test, expected accuracy | greater share | expected accuracy of the private
            model on the test people
        loss_test, loss | less | expected loss of the private model on the test people
        flip_probability, flips | less share | mean probability that noise flips a vote
        baseline_loss_test, clean | less | loss of the model without privacy on the test people
        """),
        *Measure.table("asked", """
        sensitivity_squared | less | the expected square of that distance
        expected_accuracy_* | greater share | expected accuracy of the private model
        baseline_accuracy_* | greater share | accuracy of the model without privacy
        accuracy_gap_* | less share | greatest difference of the accuracy that groups lose
        accuracy_lost_* | less share | accuracy of the model without privacy minus the expected one
        baseline_loss_* | less | loss of the model without privacy
        loss_* | less | expected loss of the private model
        risk_gap_error_* | less | standard error of a gap
        risk_error_* | less | standard error of a risk
        risk_bound_holds_* | greater yes or no | whether the risk of everybody is below its bound
        risk_bound_* | neither | upper bound of the excessive risk
        risk_method | neither | how risks were computed
        risk_repetitions | neither | number of noise draws
        risk_* | less | excessive risk: expected loss of the private model minus that of the
            model without privacy
        rank_norm_sensitivity | neither | rank correlation of input norm and sensitivity, over six
            ranges of the norm
        rank_* | neither | rank correlation of two properties of people
        closeness_* | neither | closeness of people to the decision boundary
        input_norm_* | neither | mean length of the inputs
        gradient_norm_* | neither | mean length of the gradients of the loss
        students_not_convex | neither share | students of equation (12) whose objective is shown
            not to be convex
        flip_* | neither share | votes that noise flipped, if noise was drawn
        sensitivity_range_* | less | sensitivity of a student of one sixth of the people, by their
            input norm
        sensitivity_* | neither | standard error of the sensitivity
        bound_* | neither | a bound of Tran et al.
        holds_* | greater yes or no | whether such a bound holds
        people_* | neither people | number of people of a part, or of a group in it
        antithetic | neither yes or no | whether noise was drawn in pairs
        """),
        Measure(
            "audit_private", "", "greater", "yes or no",
            "whether the audit's result is itself private", "asked",
            if_no="Excessive risk is not a private output: do not release it.",
        ),
    )  # fmt: skip

    repetitions: int = Field(
        100, ge=1, le=100_000, description="number of private models in the expectation"
    )
    method: RiskMethod = Field(
        "monte-carlo",
        description="train `repetitions` models; or closed-form, a normal approximation for "
        "logistic students of votes",
    )
    antithetic: bool = Field(
        True, description="draw the noise of votes in pairs, Z and -Z, which reduces errors"
    )

    @model_validator(mode="after")
    def _check_pairs(self) -> ExcessiveRisk:
        if self.antithetic and self.method == "monte-carlo" and self.repetitions % 2:
            raise ValueError(
                f"repetitions: must be even for antithetic noise, not {self.repetitions}"
            )
        return self

    @property
    def needs_baseline(self) -> bool:
        """Always."""
        return True

    def audit(self, subject: Subject, rng: np.random.Generator) -> MeasureValues:
        """Measures of risk, for one row.

        Raises InputError if the model has no baseline, or lacks what the method needs; or a group
        has no member in the model's training data.
        """
        report = excessive_risk(
            subject.model, subject.train, subject.test, repetitions=self.repetitions,
            method=self.method, antithetic=self.antithetic, rng=rng,
        )  # fmt: skip
        return _flatten_report(report, subject.test.groups)


def _flatten_report(report: RiskReport, groups: tuple[str, ...]) -> MeasureValues:
    """The report's tables as one row."""
    measured: dict[str, Any] = {"audit_private": int(report.private), "risk_method": None}
    measured |= report.model
    measured["risk_method"] = measured.pop("method")
    measured["risk_repetitions"] = measured.pop("repetitions")
    for row in report.overall.to_dict("records"):
        on = row.pop("on")
        row["expected_accuracy"] = row.pop("accuracy")
        measured |= {f"{name}_{on}": value for name, value in row.items()}
    suffixes = dict(zip(groups, make_suffixes(groups), strict=True))
    for row in report.groups.to_dict("records"):
        suffix = f"{row.pop('on')}_{suffixes[row.pop('group')]}"
        measured |= {f"{name}_{suffix}": value for name, value in row.items()}
    for row in report.bounds.to_dict("records"):
        measured[f"bound_{row['bound']}"] = row["value"]
        measured[f"holds_{row['bound']}"] = row["holds"]
    for row in report.ranges.to_dict("records"):
        for name in ("input_norm", "flip_probability", "sensitivity", "sensitivity_error"):
            measured[f"{name}_range_{row['range']}"] = row[name]
    norms, moved = report.ranges["input_norm"], report.ranges["sensitivity"]
    if len(norms):
        measured["rank_norm_sensitivity"] = rank_correlation(norms, moved)
    return {name: _to_plain(value) for name, value in measured.items()}


def _to_plain(value: Any) -> float | int | str | None:
    """A value as plain Python; None instead of NaN."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and np.isnan(value):
        return None
    plain: float | int | str | None = value
    return plain
