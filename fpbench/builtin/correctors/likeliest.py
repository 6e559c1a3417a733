"""The likeliest groups of all people together, given an adversary's beliefs and facts."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from fpbench import Correction, Corrector, Measure, Problem
from fpbench.builtin.correctors.posterior import take_beliefs
from fpbench.claims import Facts
from fpbench.correction import CountedProblem, find_likeliest_groups
from fpbench.plugin import SolverStatus


class Likeliest(Corrector):
    """The groups of everybody that are likeliest together, given facts and beliefs.

    Gorgé et al. attack private forests so: of all data sets they search for the one that most
    likely made the noisy counts of the leaves. Theirs has no beliefs and knows nothing of people;
    here the adversary's calibrated probabilities are beliefs (with `prior`, all people's are
    alike), and all but the groups is known. It is a mixed-integer program whose optimum is exact;
    where time ends it, `likeliest_gap` says how much likelier other groups may be. `posterior`
    names each person's likeliest group instead, which is right more often, and takes less time.

    It takes facts alone: a report's counts (disclosure `report`) or a model's (`structure`).
    """

    name = "likeliest"
    summary = "the groups of everybody that are likeliest together, given noisy counts"
    reference = (
        "Gorgé, Ferry, Gambs, Vidal. Training Set Reconstruction from Differentially Private "
        "Forests: How Effective is DP? SaTML 2026"
    )
    expresses: ClassVar[frozenset[str]] = frozenset({Facts.word})
    measures = Measure.table(
        "asked",
        """
        likeliest_gap, nats | less | how much likelier other groups may be, together, than the
            ones that `likeliest` found: 0 if none are
        """,
    )

    time_limit: float = Field(60.0, gt=0, description="seconds")

    def correct(self, problem: Problem) -> Correction:
        """Find the likeliest groups; `infeasible` if facts allow none.

        Raises InputError if there is no fact, or a number's law is not concave.
        """
        self.check(problem)
        prior = take_beliefs(problem, self.name)
        facts = Facts.join([one for one in problem.constraints if isinstance(one, Facts)])
        best = find_likeliest_groups(facts, prior, problem.possible, seconds=self.time_limit)
        if best.groups is None:
            status = SolverStatus.INFEASIBLE if best.proven else SolverStatus.TIMEOUT
            return Correction(None, status)
        gap = 0.0 if best.proven else best.bound - best.log_likelihood
        return CountedProblem(problem).correction_of(
            best.groups.astype(problem.guess.dtype), measures={"likeliest_gap": gap}
        )
