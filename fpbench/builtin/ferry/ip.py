"""The correction of guesses as an integer program over individuals."""

from __future__ import annotations

import time
from importlib.util import find_spec
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from fpbench import Correction, FpbenchError, InputError, Problem, SolverStatus
from fpbench.base import tell_extra
from fpbench.builtin.ferry.ip_model import IntegerModel, exclude_counts, is_linear
from fpbench.builtin.ferry.ip_solver import SolverAnswer, check_solver, solve
from fpbench.correction import CountedProblem, OptimalCorrector


class IP(OptimalCorrector):
    """The cheapest change of a guess, from the general model of Ferry et al. and a MIP solver.

    Each move of a person is a variable, so it accepts all constraints that are linear in people's
    groups, also `LinearConstraint`. For the others `exact` gives the same answer thousands of times
    faster.

    Notes
    -----
    The returned groups satisfy all constraints exactly, whatever the solver's tolerances:
    conditions are checked in integers, and a violation is cut off and the program solved again. A
    `LinearConstraint` holds to 1e-6 of its largest coefficient. Optimality is proven to the
    solver's accuracy, about 1e-6 of the objective. Another solver than HiGHS has its own defaults
    for threads and gaps, and pyomo's older direct interfaces (`cplex_direct`, `gurobi`) ignore
    `time_limit`.

    Departs from the paper in its columns: those of people who stay are left out, and exact equality
    of rates is expressed by multiples of the smallest group with the overall rate.
    """

    name = "ip"
    summary = "cheapest correction from an integer program over individuals, by any pyomo solver"
    reference = (
        "Ferry et al., Exploiting Fairness to Enhance Sensitive Attributes Reconstruction, SaTML "
        "2023, section III"
    )
    expresses: ClassVar[frozenset[str]] = frozenset(
        {"to-overall", "share", "positive-rate", "unfairness", "known", "linear"}
    )

    solver: str = Field(
        "highs", description="highs, or another solver of pyomo, such as cbc or appsi_cplex"
    )
    time_limit: float = Field(600.0, gt=0, description="seconds, model building included")
    model: Literal["individuals", "counts"] = Field(
        "individuals",
        description="rows over individuals, all integer, as published; or over integer counts of "
        "individuals, who are then integral anyway: the same optimum, faster",
    )

    @classmethod
    def unavailable(cls) -> str | None:
        """Why it cannot run here: pyomo is an extra."""
        return None if find_spec("pyomo") else f"needs pyomo: {tell_extra('ip')}"

    @field_validator("solver")
    @classmethod
    def _check_solver(cls, name: str) -> str:
        return check_solver(name)

    def check(self, problem: Problem) -> None:
        """Refuse a problem that it cannot express.

        Raises InputError if there is no constraint, or one that is not linear.
        """
        super().check(problem)
        classes = CountedProblem(problem).classes
        for constraint in problem.constraints:
            if not all(is_linear(condition) for condition in constraint.conditions(classes)):
                raise InputError(
                    f"corrector {self.name!r} cannot express {constraint!r}: rates of two groups "
                    "are compared with each other, which is not linear; it can compare them with "
                    "the overall rate (form 'to-overall')"
                )

    def solve(self, problem: Problem) -> Correction:
        """Find the cheapest correction."""
        deadline = time.perf_counter() + self.time_limit
        counted = CountedProblem(problem)
        if counted.known is None:
            return Correction(None, SolverStatus.INFEASIBLE)
        model = IntegerModel(counted, counted=self.model == "counts")
        bound = counted.base
        while True:
            answer = solve(model.program, self.solver, deadline)
            bound = max(bound, counted.base + (answer.bound or 0.0))
            if answer.values is None:
                proven = answer.status is SolverStatus.TIMEOUT
                return Correction(None, answer.status, bound=bound if proven else None)
            settled, counts = model.settle(answer.values), model.read_counts(answer.values)
            violated = next((c for c in counted.conditions if not c.holds(counts)), None)
            if violated is not None:
                model.demand(exclude_counts(violated, counts))
            elif model.misses_any(settled):
                model.exclude(answer.values)
            else:
                return _make_correction(settled, counts, answer, bound)


def _make_correction(
    settled: CountedProblem, counts: NDArray[np.int64], answer: SolverAnswer, bound: float
) -> Correction:
    """The cheapest correction with the solver's counts: the solver's, except for ties."""
    if not settled.holds(counts):
        raise FpbenchError("the solver's people do not add up to its counts")
    if answer.status is SolverStatus.OPTIMAL:
        return settled.correction(counts, SolverStatus.OPTIMAL)
    return settled.correction(counts, SolverStatus.FEASIBLE, min(bound, settled.cost(counts)))
