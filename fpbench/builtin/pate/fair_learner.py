"""PATE with fairness: votes refused for parity (FairPATE), or fair teachers (SF-PATE)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator

from fpbench import Learner, Sample
from fpbench.builtin.learners._fitted import make_twin
from fpbench.builtin.pate.learner import Pate
from fpbench.builtin.pate.model import Floats, ParityRefusal, Rows


class FairPate(Pate):
    """`pate` with a student who learns from fair votes: equal selection rates of groups.

    `refuse` (FairPATE): people are asked in turn. If the noisy votes say label 1 for somebody whose
    group, among those answered so far, has a share of label 1 that is at least `gap` above that of
    all others, there is no answer, and the student does not learn from that person. The first
    `least` people of each group are always answered.

    `teachers` (SF-PATE, its variant with fair teachers): the log-odds of every teacher have no
    covariance with groups among the teacher's own people.

    **Privacy.** As for `pate`, of the private people. Refusals depend on noisy votes and public
    people alone, so that refused votes cost as much as answered ones, and no more; the groups of
    public people are public. A fair teacher depends on its own people only.

    **Departures.** FairPATE also refuses decisions of the student; here the student decides about
    everybody. SF-PATE leaves the fair teachers open and uses networks with a Lagrangian dual;
    here they are logistic regressions without covariance (Zafar et al.), in closed form. For
    others than logistic teachers there is `refuse`.
    """

    name = "fair-pate"
    summary = "PATE with votes refused for demographic parity, or with fair teachers"
    reference = (
        "Mohammad Yaghini, Patty Liu, Franziska Boenisch, Nicolas Papernot. Learning with "
        "Impartiality to Walk on the Pareto Frontier of Fairness, Privacy, and Utility. "
        "arXiv:2302.09183, 2023; Cuong Tran, Keyu Zhu, Ferdinando Fioretto, Pascal Van Hentenryck. "
        "SF-PATE: Scalable, Fair, and Private Aggregation of Teacher Ensembles. IJCAI 2023; "
        "Muhammad Bilal Zafar et al. Fairness Constraints: Mechanisms for Fair Classification. "
        "AISTATS 2017"
    )
    needs = frozenset({"features", "labels", "sensitive"})

    fairness: Literal["refuse", "teachers"] = Field(
        "refuse", description="`refuse` votes that widen the gap of groups, or fair `teachers`"
    )
    gap: float = Field(
        0.05, ge=0, le=1, description="refuse: greatest lead of a group in its share of label 1"
    )
    least: int = Field(10, ge=1, description="refuse: people of a group who are always answered")

    @classmethod
    def examples(cls, directory: Path) -> list[dict[str, Any]]:
        """Both kinds of fairness, with few teachers and few people."""
        kinds = ("refuse", "teachers")
        return [{"teachers": 5, "public": 60, "fairness": kind} for kind in kinds]

    @model_validator(mode="after")
    def _check_fairness(self) -> FairPate:
        if self.fairness == "teachers":
            if self.teacher != "logistic":
                raise ValueError('fairness = "teachers" needs teacher = "logistic"')
            for name in ("gap", "least"):
                if getattr(self, name) != type(self).model_fields[name].default:
                    raise ValueError(f'{name} has an effect only with fairness = "refuse"')
        elif self.labels == "equation-12":
            raise ValueError('labels = "equation-12" needs an answer for everybody: use "hard"')
        return self

    def twin(self) -> Learner:
        """PATE without fairness."""
        return make_twin(self, "pate", Pate.model_fields)

    def _prepare_private(self, design: Floats, sample: Sample, parts: list[Rows]) -> Floats:
        """Features without the directions in which groups of a part differ.

        Ridge regression of such features has no coefficient in these directions. It is the best
        of those without covariance, and takes people's whole features, too.
        """
        if self.fairness == "refuse":
            return design
        fair, member = design.copy(), np.eye(len(sample.groups))[sample.sensitive]
        for rows in parts:
            x, z = design[rows], member[rows]
            if len(rows):
                covariances = (z - z.mean(axis=0)).T @ x
                fair[rows] = x - x @ (np.linalg.pinv(covariances, rtol=1e-9) @ covariances)
        return fair

    def _make_refusal(self, sample: Sample, public: Rows) -> ParityRefusal | None:
        if self.fairness == "teachers":
            return None
        return ParityRefusal(sample.sensitive[public].astype(np.intp), self.gap, self.least)
