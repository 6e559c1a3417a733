"""The efficient correction of Ferry et al., solved by CP-SAT."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fpbench import Correction, FpbenchError, InputError, Problem, SolverStatus
from fpbench.claims import COUNT_CONSTRAINTS
from fpbench.correction import CountedProblem, OptimalCorrector
from fpbench_ortools._model import Costs, CountModel
from fpbench_ortools._process import ask, start

_PRECISE = 1e-9
"""Relative difference of cost and bound that passes for none."""


class CPSat(OptimalCorrector):
    """The cheapest change of a guess that satisfies what is known, found by CP-SAT of OR-Tools.

    People of one class and guessed group differ only in the cost of changing them, so the model
    has one whole number for each class and group: how many belong there. It is the efficient
    model of Ferry et al., who solve it with CP Optimizer, as fpbench's `cp` does.

    Notes
    -----
    Costs are convex in how many leave, so the model has lines below them where the paper has
    tables, and gets more lines where its solution is until that costs what they say. CP-SAT knows
    whole numbers only: costs are rounded down to a small part of a budget, and what a solution
    costs is the budget of the next round. So its bound is one of the true cost, and what is said
    to be optimal is, to 1e-9 of the cost, however far apart the weights are.

    OR-Tools runs in a process of its own, started with the first correction, because it and
    highspy, which `exact` and `ip` use, cannot be loaded together. It has one worker, and answers
    the same way every time.
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
            installed("ortools")
        except PackageNotFoundError:
            return "OR-Tools is not installed: pip install ortools"
        return None

    @classmethod
    def runs_on(cls) -> str:
        """The OR-Tools that is installed, or the command that installs it."""
        return cls.unavailable() or f"OR-Tools {installed('ortools')}, in a process of its own"

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
        start()  # seconds, once for each process of fpbench: none of them is this problem's
        started = time.perf_counter()
        found = _solve(CountedProblem(problem), started + self.time_limit)
        return replace(found, seconds=time.perf_counter() - started)


def _solve(counted: CountedProblem, deadline: float) -> Correction:
    if counted.known is None:
        return Correction(None, SolverStatus.INFEASIBLE)
    costs, cost, bound = Costs(counted, _most(counted)), math.inf, 0.0
    best: NDArray[np.int64] | None = None
    while True:
        model = CountModel(counted, costs)
        seconds = deadline - time.perf_counter()
        answer: dict[str, Any] = {"status": "UNKNOWN"}
        if seconds > 0:
            answer = ask(model.program.plain(seconds))
        if answer["status"] == "INFEASIBLE" and best is None:
            return Correction(None, SolverStatus.INFEASIBLE)
        if "values" not in answer:
            _check(answer)
            break
        found = model.counts(answer["values"])
        if not counted.holds(found):
            raise FpbenchError("corrector 'cp-sat': its counts do not satisfy what is known")
        bound = max(bound, answer["bound"] * costs.unit)
        if (spent := counted.cost(found) - counted.base) < cost:
            best, cost = found, spent
        if best is not None and cost - bound <= _PRECISE * cost:
            return counted.correction(best, SolverStatus.OPTIMAL)
        if answer["status"] == "FEASIBLE":
            break
        if cost < costs.budget / 2:
            costs = costs.within(counted, cost * (1 + 1e-9))
        elif not costs.sharpen(np.maximum(counted.counts - found, 0)):
            break  # it is as exact as 64 bits allow
    if best is None:
        return Correction(None, SolverStatus.TIMEOUT)
    return counted.correction(best, SolverStatus.FEASIBLE, counted.base + min(bound, cost))


def _check(answer: dict[str, Any]) -> None:
    """Refuse an answer that is neither a solution nor that there was no time for one."""
    if answer["status"] not in ("UNKNOWN", "TIMEOUT"):
        said = f"{answer['status']} {answer.get('why', '')}".strip()
        raise FpbenchError(f"corrector 'cp-sat': OR-Tools says {said}")


def _most(counted: CountedProblem) -> float:
    """What no correction costs more than: changing everybody."""
    with np.errstate(over="ignore"):
        every = [counted.prefix_costs(j, k)[-1] for j, k in np.ndindex(counted.counts.shape)]
        most = float(np.sum(every))
    if not math.isfinite(most):
        raise InputError("corrector 'cp-sat': the weights add up to more than there are numbers")
    return most


__all__ = ["CPSat"]
