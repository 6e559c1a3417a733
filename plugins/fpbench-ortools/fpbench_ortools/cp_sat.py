"""The efficient correction of Ferry et al., solved by CP-SAT."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fpbench import Correction, FpbenchError, InputError, Problem
from fpbench.claims import COUNT_CONSTRAINTS
from fpbench.correction import CountedProblem, OptimalCorrector
from fpbench.plugin import SolverStatus
from fpbench_ortools._model import Costs, CountModel
from fpbench_ortools._process import ask, start

_PRECISE = 1e-9
"""Relative difference of cost and bound that counts as none."""


class CPSat(OptimalCorrector):
    """The cheapest change of a guess that satisfies what is known, found by CP-SAT of OR-Tools.

    People of one class and guessed group differ only in the cost of changing them, so the model
    has one whole number for each class and group: how many belong there. It is the efficient
    model of Ferry et al., who solve it with CP Optimizer, as fpbench's `cp` does.

    Notes
    -----
    The cost is convex in the number of people who leave. So the model has lines below the cost
    where the paper has tables, and gets more lines near its solution until the lines equal the
    cost there. CP-SAT computes with whole numbers only: costs are rounded down to a small part of a
    budget, and the cost of a solution is the budget of the next round. So its bound is a bound of
    the true cost, and an answer with status optimal is optimal to 1e-9 of the cost, however much
    the weights differ.

    OR-Tools runs in a process of its own, which starts with the first correction, because one
    process cannot load both OR-Tools and highspy, which `exact` and `ip` use. The solver has one
    worker, so equal problems get equal answers.
    """

    name = "cp-sat"
    summary = "cheapest correction by the efficient model of Ferry et al., in CP-SAT (OR-Tools)"
    reference = (
        "Ferry et al., Exploiting Fairness to Enhance Sensitive Attributes Reconstruction, "
        "SaTML 2023; Perron et al., The CP-SAT-LP Solver, CP 2023"
    )
    expresses: ClassVar[frozenset[str]] = COUNT_CONSTRAINTS

    time_limit: float = Field(
        600.0,
        gt=0,
        allow_inf_nan=False,
        description="seconds, building the model included and starting OR-Tools left out",
    )

    @classmethod
    def unavailable(cls) -> str | None:
        """Why there is no OR-Tools here."""
        try:
            version("ortools")
        except PackageNotFoundError:
            return "OR-Tools is not installed: pip install ortools"
        return None

    @classmethod
    def runs_on(cls) -> str:
        """The version of OR-Tools here, or the command that installs it."""
        return cls.unavailable() or f"OR-Tools {version('ortools')}, in a process of its own"

    def solve(self, problem: Problem) -> Correction:
        """Find the cheapest correction, and prove it if time allows.

        Raises
        ------
        FpbenchError
            If OR-Tools cannot be loaded, or crashes.
        InputError
            If a constraint needs larger whole numbers than CP-SAT has, or weights add up to more
            than there are numbers.
        """
        start()  # takes seconds once for each process of fpbench; not counted
        started = time.perf_counter()
        correction = _solve(CountedProblem(problem), started + self.time_limit)
        return replace(correction, seconds=time.perf_counter() - started)


def _solve(counted: CountedProblem, deadline: float) -> Correction:
    if counted.known is None:
        return Correction(None, SolverStatus.INFEASIBLE)
    costs, cost, bound = Costs(counted, _bound_cost(counted)), math.inf, 0.0
    best: NDArray[np.int64] | None = None
    while True:
        model = CountModel(counted, costs)
        seconds = deadline - time.perf_counter()
        answer: dict[str, Any] = {"status": "UNKNOWN"}
        if seconds > 0:
            answer = ask(model.program.to_data(seconds))
        if answer["status"] == "INFEASIBLE" and best is None:
            return Correction(None, SolverStatus.INFEASIBLE)
        if "values" not in answer:
            _check_status(answer)
            break
        counts = model.read_counts(answer["values"])
        if not counted.holds(counts):
            raise FpbenchError("corrector 'cp-sat': its counts do not satisfy what is known")
        bound = max(bound, answer["bound"] * costs.unit)
        if (spent := counted.cost(counts) - counted.base) < cost:
            best, cost = counts, spent
        if best is not None and cost - bound <= _PRECISE * cost:
            return counted.correction(best, SolverStatus.OPTIMAL)
        if answer["status"] == "FEASIBLE":
            break
        if cost < costs.budget / 2:
            costs = costs.with_budget(counted, cost * (1 + 1e-9))
        elif not costs.sharpen(np.maximum(counted.counts - counts, 0)):
            break  # as exact as 64 bits allow
    if best is None:
        return Correction(None, SolverStatus.TIMEOUT)
    return counted.correction(best, SolverStatus.FEASIBLE, counted.base + min(bound, cost))


def _check_status(answer: dict[str, Any]) -> None:
    """Refuse an answer that is neither a solution nor a timeout."""
    if answer["status"] not in ("UNKNOWN", "TIMEOUT"):
        reason = f"{answer['status']} {answer.get('why', '')}".strip()
        raise FpbenchError(f"corrector 'cp-sat': OR-Tools says {reason}")


def _bound_cost(counted: CountedProblem) -> float:
    """The cost of changing everybody: no correction costs more."""
    with np.errstate(over="ignore"):
        every = [counted.prefix_costs(j, k)[-1] for j, k in np.ndindex(counted.counts.shape)]
        most = float(np.sum(every))
    if not math.isfinite(most):
        raise InputError("corrector 'cp-sat': the weights add up to more than there are numbers")
    return most


__all__ = ["CPSat"]
