"""The corrections of Ferry et al.: exact, by their efficient model, by their integer program."""

from __future__ import annotations

import time
from dataclasses import replace
from importlib.util import find_spec
from itertools import chain
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from fpbench import Correction, FpbenchError, Problem
from fpbench.base import tell_extra
from fpbench.builtin.ferry.cp_engine import CpEngine, CpError
from fpbench.builtin.ferry.cp_model import MoveModel
from fpbench.builtin.ferry.ip_model import IntegerModel, exclude_counts
from fpbench.builtin.ferry.ip_solver import SolverAnswer, check_solver, solve
from fpbench.claims import COUNT_CONSTRAINTS, RatesWithin
from fpbench.correction import CountedProblem, OptimalCorrector, solve_exact
from fpbench.plugin import SolverStatus


class Exact(OptimalCorrector):
    """The cheapest change of a guess that satisfies all constraints, proven optimal.

    It solves the same problem as the models of Ferry et al. For two groups only net moves count, so
    one scan over sorted weights suffices, in milliseconds. For more, a linear program finds the
    numbers of people who leave and enter each group, and an exact search the integers near it.
    """

    name = "exact"
    summary = "cheapest correction for any number of groups, proven optimal"
    reference = (
        "Ferry et al., Exploiting Fairness to Enhance Sensitive Attributes Reconstruction, SaTML "
        "2023, sections III and IV-A; the algorithm is ours"
    )
    expresses: ClassVar[frozenset[str]] = COUNT_CONSTRAINTS

    time_limit: float = Field(
        600.0, gt=0, description="seconds; used only by more than two groups or linked constraints"
    )

    def solve(self, problem: Problem) -> Correction:
        """Find the cheapest correction and prove it."""
        return solve_exact(problem, self.time_limit)


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
        correction = _solve_moves(CountedProblem(problem), started + self.time_limit)
        return replace(correction, seconds=time.perf_counter() - started)


def _solve_moves(counted: CountedProblem, deadline: float) -> Correction:
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


class IP(OptimalCorrector):
    """The cheapest change of a guess, from the general model of Ferry et al. and a MIP solver.

    Each move of a person is a variable, so it accepts sums over people too: `LinearConstraint`,
    and the counts of a published table (`Facts`), of which it keeps exact numbers and ranges: noise
    forbids no groups. For the others `exact` gives the same answer thousands of times faster.

    Notes
    -----
    The returned groups satisfy all constraints exactly, whatever the solver's tolerances:
    conditions are checked in integers, and a violation is cut off and the program solved again. A
    `LinearConstraint` holds to 1e-6 of its largest coefficient. Optimality is proven to the
    solver's accuracy, about 1e-6 of the objective. Another solver than HiGHS has its own defaults
    for threads and gaps, and pyomo's older direct interfaces (`cplex_direct`, `gurobi`) ignore
    `time_limit`.

    Departs from the paper in its columns: those of people who stay are left out, and exact equality
    of rates is expressed by multiples of the smallest group with the overall rate. Rates of two
    groups (forms `between-groups` and `ratio`), of which the paper has none, are no rows: while an
    answer violates the claim, a threshold between its rates is drawn, and a cut says that all rates
    are above it or all below it, by the tolerance. For these forms `model` is always `counts`: a
    solver branches on few integers.
    """

    name = "ip"
    summary = "cheapest correction from an integer program over individuals, by any pyomo solver"
    reference = (
        "Ferry et al., Exploiting Fairness to Enhance Sensitive Attributes Reconstruction, SaTML "
        "2023, section III"
    )
    expresses: ClassVar[frozenset[str]] = COUNT_CONSTRAINTS | {"linear", "counts"}

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

    def solve(self, problem: Problem) -> Correction:
        """Find the cheapest correction."""
        deadline = time.perf_counter() + self.time_limit
        counted = CountedProblem(_spread_facts(problem))
        if counted.known is None:
            return Correction(None, SolverStatus.INFEASIBLE)
        in_pairs = any(isinstance(c, RatesWithin) for c in counted.conditions)
        model = IntegerModel(counted, counted=self.model == "counts" or in_pairs)
        bound, conditions = counted.base, list(counted.conditions)
        while True:
            answer = solve(model.program, self.solver, deadline)
            bound = max(bound, counted.base + (answer.bound or 0.0))
            if answer.values is None:
                proven = answer.status is SolverStatus.TIMEOUT
                return Correction(None, answer.status, bound=bound if proven else None)
            settled, counts = model.settle(answer.values), model.read_counts(answer.values)
            # The last one: a cut that the solver let through is not made again.
            violated = next((c for c in reversed(conditions) if not c.holds(counts)), None)
            if violated is not None:
                conditions.append(exclude_counts(violated, counts))
                model.demand(conditions[-1])
            elif model.misses_any(settled):
                model.exclude(answer.values)
            else:
                return _make_correction(settled, counts, answer, bound)


def _spread_facts(problem: Problem) -> Problem:
    """The problem with each count of a published table as a sum over people."""
    from fpbench.claims import Facts

    sums = (c.list_sums() if isinstance(c, Facts) else [c] for c in problem.constraints)
    return replace(problem, constraints=tuple(chain.from_iterable(sums)))


def _make_correction(
    settled: CountedProblem, counts: NDArray[np.int64], answer: SolverAnswer, bound: float
) -> Correction:
    """The cheapest correction with the solver's counts: the solver's, except for ties."""
    if not settled.holds(counts):
        raise FpbenchError("the solver's people do not add up to its counts")
    if answer.status is SolverStatus.OPTIMAL:
        return settled.correction(counts, SolverStatus.OPTIMAL)
    return settled.correction(counts, SolverStatus.FEASIBLE, min(bound, settled.cost(counts)))
