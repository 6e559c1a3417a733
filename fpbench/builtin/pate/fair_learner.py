"""PATE with fairness: votes refused for parity (FairPATE), fair teachers or students (SF-PATE)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator

from fpbench import Learner, Sample
from fpbench.builtin.learners._fitted import make_twin
from fpbench.builtin.pate.learner import _TIE, Pate
from fpbench.builtin.pate.model import Floats, ParityRefusal, Rows, StandardizedFeatures
from fpbench.builtin.pate.noisy_votes import VoteCost


class FairPate(Pate):
    """`pate` with a student who learns from fair votes: equal selection rates of groups.

    `refuse` (FairPATE): people are asked in turn. If the noisy votes say label 1 for somebody whose
    group, among those answered so far, has a share of label 1 that is at least `gap` above that of
    all others, there is no answer, and the student does not learn from that person. The first
    `least` people of each group are always answered.

    `teachers` (SF-PATE, its variant SF_T): the log-odds of every teacher have no covariance with
    groups among the teacher's own people.

    `student` (SF-PATE, its variant SF_S): a second model of every teacher votes on the groups of
    the public people, with the same noise, and the log-odds of the student have no covariance with
    the groups that win.

    **Privacy.** As for `pate`, of the private people. Refusals depend on noisy votes and public
    people alone, so that refused votes cost as much as answered ones, and no more; the groups of
    public people are public, except with `student`, which does not use them. There everybody is
    voted on twice, so that epsilon is that of twice as many answers. A fair teacher depends on its
    own people only.

    **Departures.** FairPATE also refuses decisions of the student; here the student decides about
    everybody. SF-PATE uses networks with a Lagrangian dual; here fair teachers and students are
    logistic regressions without covariance (Zafar et al.), in closed form. For others there is
    `refuse`. SF_S protects groups alone and knows the labels of the public people; here both are
    voted on. Redrawn students and the baseline keep the voted groups.
    """

    name = "fair-pate"
    summary = "PATE with votes refused for demographic parity, fair teachers or a fair student"
    reference = (
        "Mohammad Yaghini, Patty Liu, Franziska Boenisch, Nicolas Papernot. Learning with "
        "Impartiality to Walk on the Pareto Frontier of Fairness, Privacy, and Utility. "
        "arXiv:2302.09183, 2023; Cuong Tran, Keyu Zhu, Ferdinando Fioretto, Pascal Van Hentenryck. "
        "SF-PATE: Scalable, Fair, and Private Aggregation of Teacher Ensembles. IJCAI 2023; "
        "Muhammad Bilal Zafar et al. Fairness Constraints: Mechanisms for Fair Classification. "
        "AISTATS 2017"
    )
    needs = frozenset({"features", "labels", "sensitive"})

    fairness: Literal["refuse", "teachers", "student"] = Field(
        "refuse",
        description="`refuse` votes that widen the gap of groups, fair `teachers`, or a `student` "
        "who is fair to groups that are voted on",
    )
    gap: float = Field(
        0.05, ge=0, le=1, description="refuse: greatest lead of a group in its share of label 1"
    )
    least: int = Field(10, ge=1, description="refuse: people of a group who are always answered")

    @classmethod
    def examples(cls, directory: Path) -> list[dict[str, Any]]:
        """All kinds of fairness, with few teachers and few people."""
        kinds = ("refuse", "teachers", "student")
        return [{"teachers": 5, "public": 60, "fairness": kind} for kind in kinds]

    @model_validator(mode="after")
    def _check_fairness(self) -> FairPate:
        if self.fairness != "refuse":
            fair = "teacher" if self.fairness == "teachers" else "student"
            if getattr(self, fair) != "logistic":
                raise ValueError(f'fairness = "{self.fairness}" needs {fair} = "logistic"')
            for name in ("gap", "least"):
                if getattr(self, name) != type(self).model_fields[name].default:
                    raise ValueError(f'{name} has an effect only with fairness = "refuse"')
        elif self.labels == "equation-12":
            raise ValueError('labels = "equation-12" needs an answer for everybody: use "hard"')
        return self

    def cost(self) -> VoteCost:
        """As of `pate`, and of a second answer about everybody if groups are voted on."""
        cost = super().cost()
        if self.fairness != "student":
            return cost
        return replace(cost, answers=cost.answers + self.public)

    def twin(self) -> Learner:
        """PATE without fairness."""
        return make_twin(self, "pate", Pate.model_fields)

    def _prepare_private(self, design: Floats, sample: Sample, parts: list[Rows]) -> Floats:
        """Features without the directions in which groups of a part differ.

        Ridge regression of such features has no coefficient in these directions. It is the best
        of those without covariance, and takes people's whole features, too.
        """
        if self.fairness != "teachers":
            return design
        fair, member = design.copy(), np.eye(len(sample.groups))[sample.sensitive]
        for rows in parts:
            if len(rows):
                fair[rows] = design[rows] @ project_out_groups(design[rows], member[rows])
        return fair

    def _constrain_student(
        self, scaled: StandardizedFeatures, design: Floats, sample: Sample, parts: list[Rows],
        public: Rows, rng: np.random.Generator,
    ) -> StandardizedFeatures:  # fmt: skip
        """Features without the directions in which voted groups differ among the public people."""
        if self.fairness != "student":
            return scaled
        models_rng, noise_rng = rng.spawn(2)
        family, member = (
            self._make_family(self.teacher, self.teacher_penalty, models_rng),
            np.eye(len(sample.groups)),
        )
        chances = np.stack([
            family.proba(family.teachers(design, own, parts), design[public])
            for own in member[sample.sensitive].T
        ])  # fmt: skip
        # Ties up to rounding are votes for the first group, on every processor.
        firsts = (chances > chances.max(axis=0) - _TIE).argmax(axis=0)
        votes = member[firsts].sum(axis=0)
        votes += self.noise() * noise_rng.standard_normal(votes.shape)
        fair = project_out_groups(design[public], member[votes.argmax(axis=1)])
        return replace(scaled, fair=fair)

    def _make_refusal(self, sample: Sample, public: Rows) -> ParityRefusal | None:
        if self.fairness != "refuse":
            return None
        return ParityRefusal(sample.sensitive[public].astype(np.intp), self.gap, self.least)


def project_out_groups(design: Floats, member: Floats) -> Floats:
    """The projection (d, d) of features (n, d) to what has no covariance with groups (n, K)."""
    covariances = (member - member.mean(axis=0)).T @ design
    inside: Floats = np.linalg.pinv(covariances, rtol=1e-9) @ covariances
    return np.asarray(np.eye(design.shape[1]) - inside)
