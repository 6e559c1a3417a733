"""The efficient correction of Ferry et al., solved by CP Optimizer."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import ClassVar

from pydantic import Field

from fpbench import Correction, Problem, SolverStatus
from fpbench.builtin.ferry.cp_engine import CpEngine, CpError
from fpbench.builtin.ferry.cp_model import MoveModel
from fpbench.claims import COUNT_CONSTRAINTS
from fpbench.correction import CountedProblem, OptimalCorrector


class CP(OptimalCorrector):
    """The cheapest change of a guess that satisfies all constraints, found by CP Optimizer.

    People of one class and guessed group differ only in the cost of changing them, so the model
    counts how many of them move where: 2 K (K - 1) integers.

    Notes
    -----
    The engine is IBM software. `pip install 'fpbench-toolkit[cp]'` installs its Community Edition,
    for search spaces of at most 2^1000; `FPBENCH_CPOPTIMIZER` selects another one.
    For two groups it proves optimality in a second; for five or more it may find the optimum
    without proving it. It uses one worker and no tolerances, and is deterministic.
    """

    name = "cp"
    summary = "cheapest correction by the efficient model of Ferry et al., in CP Optimizer"
    reference = (
        "Ferry et al., Exploiting Fairness to Enhance Sensitive Attributes Reconstruction, SaTML "
        "2023, section IV-A"
    )
    expresses: ClassVar[frozenset[str]] = COUNT_CONSTRAINTS

    time_limit: float = Field(
        600.0, gt=0, allow_inf_nan=False, description="seconds, model building included"
    )

    @classmethod
    def unavailable(cls) -> str | None:
        """Why CP Optimizer cannot run here."""
        try:
            CpEngine.find()
        except CpError as error:
            return str(error)
        return None

    @classmethod
    def runs_on(cls) -> str:
        """The installed CP Optimizer, or the command that installs it."""
        try:
            engine = CpEngine.find()
            return f"CP Optimizer {engine.version()}, {engine.path}"
        except CpError as error:
            return str(error)

    def solve(self, problem: Problem) -> Correction:
        """Find the cheapest correction, and prove it if time allows.

        Raises FpbenchError, with the remedy, if CP Optimizer is missing, refuses the problem or
        crashes; InputError if a constraint needs integers beyond its range.
        """
        started = time.perf_counter()
        correction = _solve(CountedProblem(problem), started + self.time_limit)
        return replace(correction, seconds=time.perf_counter() - started)


def _solve(counted: CountedProblem, deadline: float) -> Correction:
    engine = CpEngine.find()
    if counted.known is None:
        return Correction(None, SolverStatus.INFEASIBLE)
    model = MoveModel(counted)
    seconds = deadline - time.perf_counter()
    if seconds <= 0:
        return Correction(None, SolverStatus.TIMEOUT)
    status, result = engine.run(model.model, seconds)
    if status not in (SolverStatus.OPTIMAL, SolverStatus.FEASIBLE):
        return Correction(None, status)
    counts = model.read_counts(result)
    if not counted.holds(counts):
        raise engine.failed("gave counts that violate a constraint")
    bound = min(counted.base + result.get_objective_bound(), counted.cost(counts))
    return counted.correction(counts, status, bound)
