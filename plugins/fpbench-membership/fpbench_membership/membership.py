"""Membership inference: who can be recognised as a training person, by group."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator

from fpbench import Auditor, InputError, Measure
from fpbench.auditing import make_suffixes
from fpbench.plugin import MeasureFigure, MeasureValues, Subject
from fpbench_membership.attacks import (
    compute_confidence,
    compute_log_odds,
    score_answers,
    score_fairness_discrepancy,
    score_lira,
    score_loss,
    score_rmia,
)
from fpbench_membership.measure import MembershipReport, measure_membership

Attack = Literal["lira", "rmia", "loss", "fd-mia"]
_MEASURES = ("auc", "tpr_at_1_percent", "tpr_at_0p1_percent", "advantage")
_OF_ATTACKS: dict[str, tuple[Attack, ...]] = {
    "mode": ("lira", "rmia"),
    "gamma": ("rmia",),
    "offline_factor": ("rmia",),
}
"""Parameters that have an effect with some attacks only."""


class Membership(Auditor):
    """Whether an adversary can recognise training people, overall and in each group.

    NOT PRIVATE: an audit of private data by its owner (`audit_private` is 0).

    Members are the training people, others the test people; both must come from one population:
    with `[split] test = "original"`, a difference between the two files counts as membership. The
    adversary knows everybody's features, label and group, the learner, and the model's probability
    for everybody, or its prediction if the learner gives no probabilities. It trains `shadows`
    models on random halves of all these people, and everybody is in exactly half of them.

    `lira` is the likelihood-ratio attack of Carlini et al. (2022), with one variance for everybody
    if there are fewer than 64 shadow models; `rmia` that of Zarifzadeh et al. (2024); `loss` takes
    the model's confidence alone (Yeom et al., 2018); `fd-mia` sees the scores of the fair model and
    of its unfair twin, after Tian et al. (2024). `online` compares with shadow models with and
    without the person, `offline` with those without only.

    For everybody, and for each group G with `_G` at the end: `membership_auc`,
    `membership_tpr_at_1_percent` and `membership_tpr_at_0p1_percent` (true positive rate at a false
    positive rate of 1 % or .1 %), `membership_advantage` (true minus false positive rate at a
    threshold chosen on other people, without upward bias). `..._gap` is the greatest minus the
    least value of the groups, and `membership_auc_gap_error` its standard error: equal groups have
    a gap of that size. A rate with too few others is undefined, not 0, and `membership_undefined`
    names it. Shadow models are steps that all auditors
    with equal `shadows` share; `loss` trains none. Formulas and interpretation: the README.
    """

    name = "membership"
    summary = "who can be recognised as a training person: LiRA, RMIA, loss, FD-MIA, by group"
    reference = (
        "Carlini et al. Membership Inference Attacks From First Principles. IEEE S&P 2022; "
        "Zarifzadeh et al. Low-Cost High-Power Membership Inference Attacks. ICML 2024; Yeom et "
        "al. Privacy Risk in Machine Learning. CSF 2018; Tian et al. When Fairness Meets Privacy. "
        "IJCAI 2024"
    )
    sees = frozenset({"labels", "sensitive", "fit"})
    measures = (
        Measure(
            "membership_auc", "member AUC", "less", "share",
            "area under the ROC curve of the attack: .5 is a coin, 1 finds every member",
            figure=MeasureFigure(
                "membership", "Membership inference",
                "How well an attack tells training people from others (area under its ROC curve; "
                ".5 is a coin), and (dashed) the gap between groups. Bands are 95 % intervals.",
                "area under the ROC curve",
                (("membership_auc", "everybody"), ("membership_auc_gap", "gap between groups")),
            ),
        ),
        *Measure.table("always", """
        membership_auc_gap, member AUC gap | less share | greatest minus least such area of
            the groups
        membership_tpr_at_1_percent, TPR at 1 % | less share | true positive rate of the attack at
            a false positive rate of 1 %
        membership_tpr_at_0p1_percent, TPR at .1 % | less share | the same at .1 %; undefined with
            fewer than 1,000 others
        membership_advantage, member advantage | less share | true minus false positive rate of
            the attack, at a threshold chosen on other people
        membership_advantage_gap, member advantage gap | less share | greatest minus least
            advantage of the groups
        """),
        *Measure.table("asked", """
        membership_tpr_at_1_percent_gap | less share | greatest minus least rate of the groups
        membership_tpr_at_0p1_percent_gap | less share | greatest minus least rate of the groups
        membership_auc_gap_error | neither share | standard error of the gap of areas, the
            difference of two groups
        membership_auc_error | neither share | standard error of that area
        membership_auc_error_* | neither share | standard error of the area of a group
        membership_auc_* | less share | area under the ROC curve of a group
        membership_tpr_at_* | less share | true positive rate in a group at a false positive rate
        membership_advantage_* | less share | true minus false positive rate in a group
        membership_members_* | neither people | number of training people of a group
        membership_others_* | neither people | number of test people of a group
        membership_attack | neither | the attack
        membership_shadows | neither | number of shadow models
        membership_soft | neither yes or no | whether the attack saw probabilities, not only labels
        membership_undefined | neither | rates that are undefined, as there are too few others
        """),
        Measure(
            "audit_private", "", "greater", "yes or no",
            "whether the audit's result is itself private", "asked",
            if_no="The audit's result is not private: do not release it.",
        ),
    )  # fmt: skip

    attack: Attack = Field("lira", description="how the attack tells members from others")
    mode: Literal["online", "offline"] = Field(
        "online", description="compare with shadow models with and without a person, or without"
    )
    shadows: int = Field(64, ge=2, le=4096, description="even number of shadow models")
    gamma: float = Field(
        1.0, ge=1, le=1e6, description="`rmia`: how much greater a person's ratio must be"
    )
    offline_factor: float = Field(
        0.3, ge=0, le=1, description="`rmia` offline: a, a substitute for models with the person"
    )

    @model_validator(mode="after")
    def _check_combination(self) -> Membership:
        if self.shadows % 2:
            raise ValueError(f"shadows: must be even, not {self.shadows}: they come in two halves")
        for name, attacks in _OF_ATTACKS.items():
            default = type(self).model_fields[name].default
            if self.attack not in attacks and getattr(self, name) != default:
                raise ValueError(f"{name} has an effect only with attack {' or '.join(attacks)}")
        if self.mode == "online" and self.offline_factor != 0.3:
            raise ValueError('offline_factor has an effect only with mode = "offline"')
        return self

    @property
    def needs_twin(self) -> bool:
        """Whether the attack is `fd-mia`."""
        return self.attack == "fd-mia"

    @property
    def shadow_models(self) -> int:
        """`shadows`; 0 for `loss`, which reads the model's own scores only."""
        return 0 if self.attack == "loss" else self.shadows

    def audit(self, subject: Subject, rng: np.random.Generator) -> MeasureValues:
        """Measures of the attack, for one row.

        Raises InputError if scores of shadow models, or of the twin, are missing and needed.
        """
        scores = self._score(subject)
        train, test = subject.train, subject.test
        members = np.arange(len(scores)) < len(train)
        sensitive = np.concatenate([train.sensitive, test.sensitive])
        report = measure_membership(scores, members, sensitive, train.groups, rng=rng)
        assert subject.shadows is not None
        return {
            **_flatten_report(report),
            "membership_attack": self.attack,
            "membership_shadows": self.shadow_models,
            "membership_soft": int(subject.shadows.soft),
            "audit_private": 0,
        }

    def _score(self, subject: Subject) -> Any:
        """(n,) scores of training and test people."""
        shadows, twin = subject.shadows, subject.twin
        if shadows is None or (self.needs_twin and twin is None):
            missing = "shadow models" if shadows is None else "the unfair twin"
            raise InputError(f"auditor {self.name!r}: needs scores of {missing}")
        labels = np.concatenate([subject.train.labels, subject.test.labels])
        own = compute_confidence(shadows.target, labels)
        if self.attack == "loss":
            return score_loss(own)
        others = compute_confidence(shadows.scores, labels)
        online = self.mode == "online"
        if self.attack == "rmia":
            return score_rmia(
                own, others, shadows.members, online=online, gamma=self.gamma,
                offline_factor=self.offline_factor,
            )  # fmt: skip
        if twin is None or not self.needs_twin:
            if not shadows.soft:
                return score_answers(own, others, shadows.members, online=online)
            return score_lira(
                compute_log_odds(own), compute_log_odds(others), shadows.members, online=online
            )
        twin_own = compute_confidence(twin.target, labels)
        twin_others = compute_confidence(twin.scores, labels)
        if not (shadows.soft and twin.soft):
            right = 2 * (own > 0.5) + (twin_own > 0.5)
            others_right = 2 * (others > 0.5) + (twin_others > 0.5)
            return score_answers(right, others_right, shadows.members)
        return score_fairness_discrepancy(
            compute_log_odds(own), compute_log_odds(others), compute_log_odds(twin_own),
            compute_log_odds(twin_others), shadows.members,
        )  # fmt: skip


def _flatten_report(report: MembershipReport) -> MeasureValues:
    """The report's table as one row."""
    rows = report.table.to_dict("records")
    suffixes = make_suffixes([str(row["group"]) for row in rows[1:]])
    measured: dict[str, Any] = {}
    undefined = []
    for row, suffix in zip(rows, ["", *(f"_{suffix}" for suffix in suffixes)], strict=True):
        values = {name: value for name, value in row.items() if name != "group"}
        if suffix:
            for name in ("members", "others"):
                measured[f"membership_{name}{suffix}"] = values[name]
        for name in (*_MEASURES, "auc_error"):
            known = not np.isnan(values[name])
            measured[f"membership_{name}{suffix}"] = values[name] if known else None
            if not known and name.startswith("tpr"):
                undefined.append(f"{name} of {row['group'] or 'everybody'}")
    for name in _MEASURES:
        gap = report.find_gap(name)
        measured[f"membership_{name}_gap"] = None if np.isnan(gap) else gap
    error = report.find_gap_error()
    measured["membership_auc_gap_error"] = None if np.isnan(error) else error
    measured["membership_undefined"] = ", ".join(undefined) or None
    return measured
